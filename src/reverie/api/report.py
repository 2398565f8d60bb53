"""What a memory tells of itself: its changes, and the sessions that were held there.

What cannot be read is passed over.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from reverie.session.report import Report, ReportEvent

if TYPE_CHECKING:
    from reverie.session.library import Library
    from reverie.store.home import SessionFile
    from reverie.store.project import Project
    from reverie.transcript.records import Entry
    from reverie.world import Say


def of_memory(project: Project, since: float, say: Say) -> Report:
    """The changes of the memory at an address, and the sessions that were held there."""
    from reverie.api.reading import history
    from reverie.session.library import Library
    from reverie.upkeep.metrics import figures

    events = [
        ReportEvent(one.at, _kind(one.origin.action, one.text), one.file, str(one.origin))
        for one in history(project, "", say)
        if one.at >= since
    ]
    library = Library.find(project) if project.has_memory else None
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


def _of_sessions(library: Library, files: list[SessionFile]) -> Iterator[ReportEvent]:
    from reverie.errors import ReverieError

    for file in files:
        try:
            entries = library.read(file.id).view.entries
        except (ReverieError, OSError):
            continue
        yield from (event for entry in entries if (event := _of_entry(entry)) is not None)


def _of_entry(entry: Entry) -> ReportEvent | None:
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
