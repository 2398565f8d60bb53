"""`reverie cache`: a session's requests as the prompt cache saw them.

How many there were, how much was read from the cache, what it cost by price, and each
break with its cause, for the main conversation and every fork of it. All of it is worked
out from the transcripts; looking changes nothing, and nobody is asked.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any

import typer

from reverie.apps.cli.place import CURRENT, Project, ProjectPlace, one
from reverie.apps.cli.show import Column, JsonOption, age, document, note, plural, say, table
from reverie.errors import InvalidMessage, ReverieError
from reverie.session.budget import weight
from reverie.session.library import Library, Transcript
from reverie.settings import Settings
from reverie.store.journal import BadLine, Journal
from reverie.transcript.breaks import Break, BreakWatch, watch_entries
from reverie.transcript.codec import decode
from reverie.transcript.fold import apply, branch
from reverie.transcript.records import AssistantMessage, Entry, ForkEnded, Sent, Started, Usage
from reverie.transcript.request import render
from reverie.transcript.view import EMPTY, View

LAST = 20
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


@dataclass(frozen=True, slots=True)
class CacheReport:
    """What the cache did for one session."""

    session: str
    asked: tuple[AnsweredRequest, ...]
    breaks: tuple[tuple[str, Break], ...]  # agent, break
    unanswered: int = 0
    blind: int = 0  # answers whose requests were not recorded: their breaks cannot be told
    faults: tuple[str, ...] = ()


def cache(
    session: Annotated[
        str, typer.Argument(metavar="[SESSION]", help="Its id; else the newest.")
    ] = "",
    last: Annotated[int, typer.Option("--last", min=0, help="Requests to list.")] = LAST,
    as_json: JsonOption = False,
    project: Project = CURRENT,
) -> None:
    """Requests, hit rate and cost of a session, and each cache break with its cause."""
    place = ProjectPlace.of(project)
    settings = place.loaded().settings
    library = place.library()
    if library is None or not (session or library.sessions()):
        found = None if not session else one(library, session)
    else:
        found = one(library, session) if session else library.newest()
    if library is None or found is None:
        _nothing(place, as_json)
        return
    report = report_of(library, found, settings)
    if as_json:
        document(_value(report, settings, last))
    else:
        _tell(report, settings, last)


def _nothing(place: ProjectPlace, as_json: bool) -> None:
    if as_json:
        empty = CacheReport("", (), ())
        document({**_value(empty, place.loaded().settings, 0), "session": None})
    else:
        say(f"No session yet in {place.root}; nothing was sent.")


# --- from the transcripts


def report_of(library: Library, session: str, settings: Settings) -> CacheReport:
    """The report of a session and of all forks it has."""
    main = library.read(session)
    asked = [*_asked(main.entries, "")]
    breaks = [("", found) for found in watch_entries(main.entries, BreakWatch(settings))]
    seen: set[str] = set()
    faults = list(main.faults)
    for agent, entries, bad in _agents(library, session):
        seen.add(agent)
        faults += bad
        asked += _asked(entries, agent)
        breaks += [(agent, found) for found in _fork_breaks(main, entries, settings)]
    for entry in main.entries:
        record = entry.record
        if isinstance(record, ForkEnded) and record.agent not in seen and record.requests:
            usage, count = record.usage, record.requests
            asked.append(
                AnsweredRequest(entry.at, record.source, record.agent, entry.id, usage, count)
            )
    sent = sum(isinstance(e.record, Sent) for e in main.entries)
    answers = sum(isinstance(e.record, AssistantMessage) for e in main.entries)
    return CacheReport(
        session,
        tuple(sorted(asked, key=lambda a: a.at)),
        tuple(sorted(breaks, key=lambda b: b[1].at)),
        max(0, sent - answers),
        max(0, answers - sent),
        tuple(faults),
    )


def _asked(entries: Sequence[Entry], agent: str) -> Iterator[AnsweredRequest]:
    """Every answer with the usage it came with."""
    source = next((e.record.source for e in entries if isinstance(e.record, Started)), "main")
    for entry in entries:
        if isinstance(entry.record, Sent):
            source = entry.record.source
        elif isinstance(entry.record, AssistantMessage):
            usage = entry.record.usage or NOTHING
            yield AnsweredRequest(entry.at, source or "main", agent, entry.id, usage)


def _agents(library: Library, session: str) -> Iterator[tuple[str, list[Entry], list[str]]]:
    """The transcripts of forks and sub-agents: id, entries, and what cannot be read."""
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
                    entries.append(decode(found.text, _no_blob))
        except (InvalidMessage, ReverieError) as error:
            faults.append(f"{key}: {error}")
        yield agent, entries, faults


def _fork_breaks(main: Transcript, entries: Sequence[Entry], settings: Settings) -> list[Break]:
    """A fork's breaks, watched from its parent on: its first request reads the parent's."""
    start = next((e for e in entries if isinstance(e.record, Started)), None)
    if start is None or not isinstance(start.record, Started) or not start.record.forked_at:
        return watch_entries(entries, BreakWatch(settings))
    view, watch = _when_forked(main.entries, start.record.forked_at, start.at, BreakWatch(settings))
    return watch_entries(entries, watch, branch(view, start).base or EMPTY)


def _when_forked(
    entries: Sequence[Entry], leaf: str, at: float, watch: BreakWatch
) -> tuple[View, BreakWatch]:
    """The parent as it was when a fork started behind one of its entries."""
    view = EMPTY
    for entry in entries:
        if view.leaf == leaf and (entry.on_chain or entry.at > at):
            break
        record = entry.record
        if isinstance(record, Sent):
            request = replace(render(view, record.source), marks=record.marks)
            same = request.parts() == record.parts
            watch = watch.sent(request if same else record, entry.at, view.moved)
        elif isinstance(record, AssistantMessage):
            watch, _ = watch.answered(record.usage, record.diagnostics, record.applied_edits)
        view = apply(view, entry)
    return view, watch


def _no_blob(name: str) -> None:
    """A fork's transcript names none: its head is its parent's."""
    del name


# --- sums


def _sum(asked: Sequence[AnsweredRequest]) -> Usage:
    return Usage(
        sum(a.usage.uncached for a in asked),
        sum(a.usage.read for a in asked),
        sum(a.usage.written for a in asked),
        sum(a.usage.output for a in asked),
        sum(a.usage.written_1h for a in asked),
    )


def _counted(asked: Sequence[AnsweredRequest], breaks: int, settings: Settings) -> dict[str, Any]:
    usage = _sum(asked)
    return {
        "requests": sum(a.requests for a in asked),
        **asdict(usage),
        "hit_rate": round(usage.hit_rate, 4),
        "cost": round(weight(usage, settings), 1),
        "breaks": breaks,
    }


def _by_source(report: CacheReport, settings: Settings) -> list[dict[str, Any]]:
    names = dict.fromkeys(a.source for a in report.asked)
    return [
        {
            "source": name,
            **_counted(
                [a for a in report.asked if a.source == name],
                sum(found.source == name for _, found in report.breaks),
                settings,
            ),
        }
        for name in names
    ]


def _value(report: CacheReport, settings: Settings, last: int) -> dict[str, Any]:
    shown = report.asked[-last:] if last else ()
    return {
        "session": report.session,
        **_counted(report.asked, len(report.breaks), settings),
        "unanswered": report.unanswered,
        "unrecorded": report.blind,
        "sources": _by_source(report, settings),
        "broken": [_break_value(agent, found) for agent, found in report.breaks],
        "last": [_asked_value(one, settings) for one in shown],
        "faults": list(report.faults),
    }


def _break_value(agent: str, found: Break) -> dict[str, Any]:
    return {
        "at": found.at,
        "source": found.source,
        "agent": agent,
        "entry": found.entry,
        "cause": found.cause,
        "part": found.part,
        "expected": found.expected,
        "read": found.read,
        "lost": found.lost,
        "idle": round(found.idle, 1),
        "expired": found.expired,
        "diagnosis": str(found.diagnosis) if found.diagnosis else "",
        "explanation": found.explanation,
    }


def _asked_value(one_asked: AnsweredRequest, settings: Settings) -> dict[str, Any]:
    return {
        "at": one_asked.at,
        "source": one_asked.source,
        "agent": one_asked.agent,
        "entry": one_asked.entry,
        **_counted([one_asked], 0, settings),
    }


# --- what a person sees


def _tell(report: CacheReport, settings: Settings, last: int) -> None:
    say(report.session, "bold")
    if not report.asked:
        say("Nothing was answered yet, so the cache has nothing to tell.")
        return
    whole = _counted(report.asked, len(report.breaks), settings)
    requests = plural(whole["requests"], "request")
    told = f"{whole['hit_rate']:.1%} read from the cache · cost {whole['cost']:,.0f} input tokens"
    say(f"{requests} · {told} · {plural(len(report.breaks), 'break')}")
    names = (
        "source",
        "requests",
        "hits",
        "read",
        "written",
        "uncached",
        "output",
        "cost",
        "breaks",
    )
    columns = [Column(name, right=name != "source") for name in names]
    table(columns, [_source_row(row) for row in _by_source(report, settings)])
    now = time.time()
    for agent, found in report.breaks:
        by = f"{found.source} {agent[:8]}".strip()
        say(f"{age(now - found.at)} ago, {by}: {found.explanation}", "yellow")
    if not report.breaks and not report.blind:
        say("No break: every answer read what the one before had left.")
    if report.blind:
        blind = plural(report.blind, "answer")
        say(f"Of {blind} the request is not recorded (imported?): breaks there cannot be told.")
    if last:
        _tell_last(report, settings, last, now)
    for fault in report.faults:
        note(f"{report.session}: {fault}")


def _source_row(row: dict[str, Any]) -> list[str]:
    counts = [f"{row[name]:,}" for name in ("read", "written", "uncached", "output")]
    shown = [row["source"], f"{row['requests']:,}", f"{row['hit_rate']:.1%}", *counts]
    return [*shown, f"{row['cost']:,.0f}", f"{row['breaks']:,}"]


def _tell_last(report: CacheReport, settings: Settings, last: int, now: float) -> None:
    shown = report.asked[-last:]
    broken = {found.entry for _, found in report.breaks}
    say(f"The last {plural(len(shown), 'request')}:")
    names = ("ago", "source", "hits", "read", "written", "uncached", "output", "cost", "break")
    rows: list[list[str]] = []
    for one_asked in shown:
        row = _source_row({"source": one_asked.source, **_counted([one_asked], 0, settings)})
        mark = "yes" if one_asked.entry in broken else ""
        rows.append([age(now - one_asked.at), row[0], *row[2:-1], mark])
    table([Column(name, right=name not in ("source", "break")) for name in names], rows)
