"""A session's requests as the prompt cache saw them.

How many there were, how much was read from the cache, what it cost by price, and each break
with its cause, for the main conversation and every fork of it. All of it is worked out from the
transcripts; looking changes nothing, and nobody is asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from reverie.errors import InvalidMessage, ReverieError
from reverie.providers.selection import EMBEDDED
from reverie.session.budget import weight
from reverie.session.library import SessionDisk, SessionLibrary
from reverie.session.summaries import Transcript
from reverie.settings.catalog import Settings
from reverie.store.journal import BadLine, Journal
from reverie.transcript.codec import decode
from reverie.transcript.fold import apply, branch
from reverie.transcript.records import (
    AssistantMessage,
    Entry,
    ForkEnded,
    HeadSet,
    Sent,
    Started,
    Usage,
)
from reverie.transcript.view import EMPTY, View
from reverie.wire.cache_breaks import (
    CacheBreak,
    CacheBreakDetector,
    ChangedPart,
    announcements,
    watch_entries,
)
from reverie.wire.request import render

NOTHING = Usage()


@dataclass(frozen=True, slots=True)
class AnsweredRequest:
    """One answered request."""

    at: float
    source: str
    agent: str
    entry: str
    usage: Usage
    requests: int = 1  # more where only a fork's sum is known
    model: str = ""  # that answered, where it is told

    @property
    def billed(self) -> bool:
        return self.model != EMBEDDED


@dataclass(frozen=True, slots=True)
class CacheReport:
    """What the cache did for one session."""

    session: str
    settings: Settings
    asked: tuple[AnsweredRequest, ...] = ()
    breaks: tuple[tuple[str, CacheBreak], ...] = ()  # agent, break
    unanswered: int = 0
    blind: int = 0  # answers whose requests were not recorded: their breaks cannot be told
    faults: tuple[str, ...] = ()

    def whole(self) -> dict[str, Any]:
        """The sums of all requests."""
        return counts(self.asked, len(self.breaks), self.settings)

    def by_source(self) -> list[dict[str, Any]]:
        """The sums of each source, in the order of their first requests."""
        return [
            {
                "source": name,
                **counts(
                    [a for a in self.asked if a.source == name],
                    sum(found.source == name for _, found in self.breaks),
                    self.settings,
                ),
            }
            for name in dict.fromkeys(a.source for a in self.asked)
        ]

    def value(self, last: int) -> dict[str, Any]:
        """For JSON, with the last so many requests one by one."""
        shown = self.asked[-last:] if last else ()
        return {
            "session": self.session,
            **self.whole(),
            "unanswered": self.unanswered,
            "unrecorded": self.blind,
            "sources": self.by_source(),
            "broken": [_break_value(agent, found) for agent, found in self.breaks],
            "last": [_asked_value(one, self.settings) for one in shown],
            "faults": list(self.faults),
        }


def cache_report(library: SessionLibrary, session: str, settings: Settings) -> CacheReport:
    """The report of a session and of all forks it has."""
    main = library.read(session)
    asked = [*_answered_requests(main.entries, "")]
    breaks = [("", found) for found in watch_entries(main.entries, CacheBreakDetector(settings))]
    seen: set[str] = set()
    faults = list(main.faults)
    for agent, entries, bad in _agents(library, session):
        seen.add(agent)
        faults += bad
        asked += _answered_requests(entries, agent)
        breaks += [(agent, found) for found in _fork_breaks(main, entries, settings)]
    for entry in main.entries:
        record = entry.record
        if isinstance(record, ForkEnded) and record.agent not in seen and record.requests:
            who = (record.source, record.agent, entry.id)
            used = (record.usage, record.requests, record.model)
            asked.append(AnsweredRequest(entry.at, *who, *used))
    sent = sum(isinstance(e.record, Sent) for e in main.entries)
    answers = sum(isinstance(e.record, AssistantMessage) for e in main.entries)
    return CacheReport(
        session,
        settings,
        tuple(sorted(asked, key=lambda a: a.at)),
        tuple(sorted(breaks, key=lambda b: b[1].at)),
        max(0, sent - answers),
        max(0, answers - sent),
        tuple(faults),
    )


def _answered_requests(entries: Sequence[Entry], agent: str) -> Iterator[AnsweredRequest]:
    """Every answer with the usage it came with."""
    source = next((e.record.source for e in entries if isinstance(e.record, Started)), "main")
    for entry in entries:
        if isinstance(entry.record, Sent):
            source = entry.record.source
        elif isinstance(entry.record, AssistantMessage):
            usage, model = entry.record.usage or NOTHING, entry.record.model
            yield AnsweredRequest(entry.at, source or "main", agent, entry.id, usage, model=model)


def _agents(library: SessionLibrary, session: str) -> Iterator[tuple[str, list[Entry], list[str]]]:
    """The transcripts of forks and sub-agents: id, entries, and what cannot be read."""
    load = SessionDisk(library.folder, session).get_blob
    for key in library.files(session):
        if not key.startswith("agents/") or not key.endswith(".jsonl"):
            continue
        agent = key.removeprefix("agents/").removesuffix(".jsonl")
        entries: list[Entry] = []
        faults: list[str] = []
        try:
            log = Journal.open(library.folder, f"{session}/{key}", write=False)
            for found in log.read():
                if isinstance(found, BadLine):
                    faults.append(f"{key}, line {found.number}: {found.reason}")
                else:
                    entries.append(decode(found.text, load))
        except (InvalidMessage, ReverieError) as error:
            faults.append(f"{key}: {error}")
        yield agent, entries, faults


def _fork_breaks(
    main: Transcript, entries: Sequence[Entry], settings: Settings
) -> list[CacheBreak]:
    """A fork's breaks, watched from its parent on: its first request reads the parent's."""
    start = next((e for e in entries if isinstance(e.record, Started)), None)
    if start is None or not isinstance(start.record, Started) or not start.record.forked_at:
        return watch_entries(entries, CacheBreakDetector(settings))
    view, watch = _when_forked(
        main.entries, start.record.forked_at, start.at, CacheBreakDetector(settings)
    )
    return watch_entries(entries, watch, branch(view, start).base or EMPTY)


def _when_forked(
    entries: Sequence[Entry], leaf: str, at: float, watch: CacheBreakDetector
) -> tuple[View, CacheBreakDetector]:
    """The parent as it was when a fork started behind one of its entries."""
    view, heads = EMPTY, list[str]()
    for entry in entries:
        if view.leaf == leaf and (entry.on_chain or entry.at > at):
            break
        record = entry.record
        if isinstance(record, HeadSet):
            heads.append(record.reason)
        elif isinstance(record, Sent):
            request = replace(render(view, record.source), marks=record.marks)
            same = request.parts() == record.parts
            moved, heads = announcements(view, heads), []
            watch = watch.sent(request if same else record, entry.at, moved)
        elif isinstance(record, AssistantMessage):
            watch, _ = watch.answered(record.usage, record.diagnostics, record.applied_edits)
        view = apply(view, entry)
    return view, watch


# --- sums


def counts(asked: Sequence[AnsweredRequest], breaks: int, settings: Settings) -> dict[str, Any]:
    """The sums of some requests, and the hit rate and cost of those that are billed."""
    usage = sum((one.usage for one in asked), NOTHING)
    billed = sum((one.usage for one in asked if one.billed), NOTHING)
    return {
        "requests": sum(a.requests for a in asked),
        **asdict(usage),
        "hit_rate": round(billed.hit_rate, 4),
        "cost": round(weight(billed, settings), 1),
        "breaks": breaks,
    }


def _break_value(agent: str, found: CacheBreak) -> dict[str, Any]:
    return {
        "at": found.at,
        "source": found.source,
        "agent": agent,
        "entry": found.entry,
        "cause": found.cause,
        "part": found.part,
        "place": place_value(found.change),
        "expected": found.expected,
        "read": found.read,
        "lost": found.lost,
        "idle": round(found.idle, 1),
        "expired": found.expired,
        "diagnosis": str(found.diagnosis) if found.diagnosis else "",
        "explanation": found.explanation,
    }


def place_value(change: ChangedPart | None) -> dict[str, Any] | None:
    """The first changed byte, where both requests are at hand."""
    if change is None or change.place is None:
        return None
    place = change.place
    told = {"block": change.name, "byte": place.byte}
    return {**told, "before": place.before, "after": place.after}


def _asked_value(one: AnsweredRequest, settings: Settings) -> dict[str, Any]:
    return {
        "at": one.at,
        "source": one.source,
        "agent": one.agent,
        "entry": one.entry,
        **counts([one], 0, settings),
    }
