"""Search a memory: find, answer, list, tell what was and what waits.

Reads go from an address outwards, the narrowest part first, and make nothing: where no memory is
yet there is nothing to find. A text that stands at two parts of an address is found once, at the
narrower one. A turn of a conversation is found with its neighbors: a reply beside what it answers.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from reverie.errors import InvalidInput, NotFound, StoreError
from reverie.memory.values import Answered, Change, ChangeOrigin, Found, Pending
from reverie.recall.passages import ROLES
from reverie.session.open_memory import OpenMemory, lend_memories, lend_memory
from reverie.store.project import Project
from reverie.store.recall.index import MAX_INDEXED, HitKind, RecallHit
from reverie.text.format import plural
from reverie.topics.entry import TYPES, TopicFile, is_index
from reverie.topics.versions import Origin, Version
from reverie.world import Say

if TYPE_CHECKING:
    from reverie.session.library import SessionLibrary
    from reverie.session.recall.query import Quote
    from reverie.session.report import Report, ReportEvent
    from reverie.store.home import SessionFile
    from reverie.transcript.records import Entry

KINDS: dict[str, HitKind] = {"memory": "memory", "session": "transcript"}
MOST = 1_000
"""Memories of one search."""
DAY = 86_400
BESIDE = 400
"""Characters of a turn that is shown beside the one that was found."""
LOOKED = 12
"""Memories, and as many passages of sessions, that an answer is looked for in."""
UNKNOWN = "I do not know: nothing in the memories or sessions of this project answers that."
_FIELDS = {
    "path": "file name",
    "name": "name",
    "about": "description",
    "heads": "headings",
    "body": "text",
}
_OTHERS = {
    "near": "the words stand close together",
    "date": "it is of the time asked for",
    "meaning": "it means something alike",
    "session": "the session is about it",
    "speaker": "the person named says it",
    "words": "the words are in what was said",
}


# Searching


def search(project: Project, query: str, limit: int, kind: str, type: str, say: Say) -> list[Found]:  # noqa: A002
    """What answers a query best, from all parts together."""
    if kind not in KINDS:
        raise InvalidInput("There is no such kind", where=kind[:80], do="Use memory or session")
    check_type(type)
    if limit < 1 or limit > MOST:
        raise InvalidInput(f"The limit is a number from 1 to {MOST:,}", where=str(limit))
    now = time.time()
    hits: list[Found] = []
    for one in lend_memories(project, say):
        most = MOST if type else limit
        found = one.index.search(query, now, k=most, kinds=(KINDS[kind],))
        hits += [made for hit in found if (made := _build_found(one, hit, now)) is not None]
    wanted = [hit for hit in _once(hits) if not type or hit.type == type]
    return sorted(wanted, key=lambda hit: -hit.score)[:limit]


def check_type(type: str) -> None:  # noqa: A002
    """Refuse what is no type of memory; "" is none."""
    if type and type not in TYPES:
        known = ", ".join(TYPES)
        raise InvalidInput("There is no such type of memory", where=type[:80], do=f"Use {known}")


def _once(hits: Iterable[Found]) -> list[Found]:
    """Each text once, from the narrowest part that has it."""
    return list({hit.text: hit for hit in reversed(list(hits))}.values())[::-1]


def _build_found(one: OpenMemory, hit: RecallHit, now: float) -> Found | None:
    if hit.kind == "memory":
        text = text_of(one, hit)
        if text is None:
            return None
        level, saved = one.provenance(hit.file)
        file, trust = hit.file, level.label
    else:
        text, saved, file, trust = _exchange(one, hit), hit.saved, hit.session, ""
    return Found(
        text,
        file,
        hit.name,
        hit.type,
        round(hit.score, 4),
        in_words(hit.why),
        age(saved, now),
        saved,
        trust,
        one.scope,
        hit.clear,
        hit.why,
    )


def text_of(one: OpenMemory, hit: RecallHit) -> str | None:
    """The text of a memory that was found; a very long one is read, and may be gone by now."""
    if len(hit.body) < MAX_INDEXED // 4:  # as many characters as those bytes surely are
        return hit.body.strip()
    try:
        return one.store.folder.read(hit.file).body.strip()
    except (NotFound, StoreError):
        return None


def _exchange(one: OpenMemory, hit: RecallHit) -> str:
    """A turn with what it answers and what it was answered; alone it is its text."""
    shown = [
        f"{speaker}: {said if place == hit.line else said[:BESIDE]}"
        for place, speaker, said in one.index.around(hit)
        if place == hit.line or belongs(hit, place, speaker)
    ]
    return "\n".join(shown) if len(shown) > 1 else hit.passage


def belongs(hit: RecallHit, place: int, speaker: str) -> bool:
    """Whether the turn beside one that was found belongs to it: between people each does, with an
    assistant the reply to a message and the message of a reply."""
    if hit.name not in ROLES:
        return True
    pair = (hit.name, speaker) if place > hit.line else (speaker, hit.name)
    return pair == ("user", "assistant")


def in_words(signals: Sequence[tuple[str, float]]) -> str:
    """Why something was found, for a person."""
    given = {name for name, value in signals if value > 0}
    fields = [told for name, told in _FIELDS.items() if name in given]
    matched = " and ".join(filter(None, (", ".join(fields[:-1]), *fields[-1:])))
    parts = [f"words of the query are in its {matched}"] if fields else []
    return "; ".join([*parts, *(told for name, told in _OTHERS.items() if name in given)])


def age(saved: float, now: float) -> str:
    """How old something is, in whole days; "" where nobody knows."""
    days = max(0, int((now - saved) // DAY))
    return "" if not saved else plural(days, "day") if days else "today"


# Answering


def ask(project: Project, question: str, say: Say) -> Answered:
    """Return the sentences that answer a question, from the narrowest part that has some."""
    from reverie.session.recall.query import answer

    if not question.strip():
        raise InvalidInput("The question is empty", do="Ask in words")
    now = time.time()
    for one in lend_memories(project, say):
        hits = one.index.search(question, now, k=LOOKED, kinds=("memory",))
        hits += one.index.search(question, now, k=LOOKED, kinds=("transcript",))
        quotes = answer(question, hits, one.store.folder.read)
        if quotes:
            said = " ".join(quote.text for quote in quotes)
            return Answered(said, True, tuple(_source(one, quote, now) for quote in quotes))
    return Answered(UNKNOWN, False)


def _source(one: OpenMemory, quote: Quote, now: float) -> Found:
    hit = quote.hit
    where = f"{hit.file}:{quote.line}" if hit.kind == "memory" else f"session {hit.session}"
    return Found(
        quote.text,
        where,
        hit.name,
        hit.type,
        quote.score,
        age=age(hit.saved, now),
        saved=hit.saved,
        scope=one.scope,
    )


# Listing


def get(project: Project, file: str, say: Say) -> Found:
    """One memory, from the narrowest part that has it."""
    for one in lend_memories(project, say):
        try:
            return _entry(one, one.store.find(file))
        except NotFound as error:
            if error.code == "ambiguous":
                raise
    raise missing(file)


def missing(file: str) -> NotFound:
    return NotFound(
        "There is no such memory", where=file[:200], do="`list()` gives the files of all memories"
    )


def list_all(project: Project, type: str, say: Say) -> list[Found]:  # noqa: A002
    """All memories, the narrowest part first, in it the newest first."""
    check_type(type)
    found: list[Found] = []
    for one in lend_memories(project, say):
        one.record_changes()
        lines = one.store.folder.scan()
        every = (_entry(one, one.store.folder.read(line.key)) for line in lines)
        found += [each for each in every if not type or each.type == type]
    return found


def _entry(one: OpenMemory, file: TopicFile) -> Found:
    trust, saved = one.provenance(file.key)
    return Found(
        file.body.strip(),
        file.key,
        file.name,
        file.type,
        age=age(saved, time.time()),
        saved=saved,
        trust=trust.label,
        scope=one.scope,
    )


# What was, and what waits


def history(project: Project, file: str, say: Say) -> list[Change]:
    """The versions of a memory, or of all at this address, the oldest first."""
    if not project.has_memory:
        if file:
            raise missing(file)
        return []
    with lend_memory(project, say) as one:
        one.record_changes()
        key = _past_key(one, file) if file else ""
        found = [version for version in one.store.history.log(key) if not is_index(version.key)]
        return [_change(one, version) for version in found]


def _past_key(one: OpenMemory, name: str) -> str:
    """The file that a name means, also one that is gone."""
    keys = {version.key for version in one.store.history.log()}
    known = next((key for key in (name, f"{name}.md") if key in keys), "")
    try:
        return known or one.store.find(name).key
    except NotFound:
        raise missing(name) from None


def _change(one: OpenMemory, version: Version) -> Change:
    try:
        data = one.store.history.content(version.after)
    except (NotFound, StoreError):
        data = b""
    text = TopicFile(version.key, data).body.strip() if data else ""
    return Change(version.id, version.key, version.at, text, origin_value(version.origin))


def origin_value(origin: Origin) -> ChangeOrigin:
    """An origin in plain types."""
    return ChangeOrigin(
        origin.kind,
        origin.agent,
        origin.session,
        origin.messages,
        origin.tool,
        origin.trust.label,
        origin.note,
    )


def pending(project: Project, say: Say) -> list[Pending]:
    """What waits at this address, the oldest first."""
    if not project.has_memory:
        return []
    with lend_memory(project, say) as one:
        return [
            Pending(
                item.id,
                item.key,
                item.body,
                item.at,
                origin_value(item.origin),
                item.reason,
            )
            for item in one.store.review.items()
        ]


# --- What a memory tells of itself: its changes, and the sessions that were held there.
#
# What cannot be read is passed over.


def of_memory(project: Project, since: float, say: Say) -> Report:
    """The changes of the memory at an address, and the sessions that were held there."""
    from reverie.session.budget import figures
    from reverie.session.library import SessionLibrary
    from reverie.session.report import Report, ReportEvent

    events = [
        ReportEvent(one.at, _kind(one.origin.action, one.text), one.file, str(one.origin))
        for one in history(project, "", say)
        if one.at >= since
    ]
    library = SessionLibrary.find(project) if project.has_memory else None
    if library is None:
        return Report(events=tuple(events))
    try:
        files = [file for file in library.sessions() if file.mtime >= since]
        known = figures(library, files, project.settings.compact_breaker_failures)
        events += [event for event in _of_sessions(library, files) if event.at >= since]
    finally:
        library.close()
    cost = known.cost(project.settings)
    main = cost.pop("main", 0.0)
    tallies = known.sources.values()
    return Report(
        sum(one.requests for one in tallies),
        sum(one.usage.input + one.usage.output for one in tallies),
        0,
        known.hit_rate,
        main,
        sum(cost.values()),
        events=tuple(sorted(events, key=lambda event: event.at)),
    )


def _kind(action: str, text: str) -> str:
    """What a change is called: a save in the background is what was learned."""
    if action in ("save", "edit", "remove"):
        return "saved" if text else "removed"
    return {"extract": "learned", "undo": "undone"}.get(action, action)


def _of_sessions(library: SessionLibrary, files: list[SessionFile]) -> Iterator[ReportEvent]:
    from reverie.errors import ReverieError

    for file in files:
        try:
            entries = library.read(file.id).view.entries
        except (ReverieError, OSError):
            continue
        yield from (event for entry in entries if (event := _of_entry(entry)) is not None)


def _of_entry(entry: Entry) -> ReportEvent | None:
    from reverie.session.report import ReportEvent
    from reverie.transcript.records import Failed, Recalled, Replaced

    match entry.record:
        case Recalled(candidates=candidates):
            put = [one.file for one in candidates if one.outcome == "injected"]
            return ReportEvent(entry.at, "recalled", ", ".join(put)) if put else None
        case Replaced(boundary=boundary) if boundary is not None:
            return ReportEvent(entry.at, "compacted", entry.id)
        case Failed() as failed:
            return ReportEvent(entry.at, "failed", failed.layer, failed.error)
        case _:
            return None
