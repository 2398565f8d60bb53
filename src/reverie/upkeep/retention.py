"""Sessions that nobody has touched for long go, whole: transcript, stored results, blobs, agents.

Never memory, never one that is in use, and never a file that is not one of ours.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from reverie.errors import ReverieError
from reverie.session.library import DAY, Library
from reverie.store.home import SessionFile
from reverie.store.lock import Holder, holder_of


@dataclass(frozen=True, slots=True)
class OldSessions:
    """The sessions that may go, and those that stay, each with the reason."""

    due: tuple[str, ...] = ()
    kept: dict[str, str] = field(default_factory=dict[str, str])


def find_old(library: Library, days: float, now: float) -> OldSessions:
    """The sessions untouched for so many days; one in use is kept."""
    due: list[str] = []
    kept: dict[str, str] = {}
    for file in library.sessions():
        if now - file.mtime < days * DAY:
            continue
        who = holder(library, file)
        if who is None:
            due.append(file.id)
        else:
            kept[file.id] = f"in use by {who}"
    return OldSessions(tuple(due), kept)


def remove_session(library: Library, session: str) -> str:
    """Remove one; gives why it stays, or nothing."""
    try:
        library.remove(session)
    except ReverieError as error:
        return str(error)
    return ""


def holder(library: Library, file: SessionFile) -> Holder | None:
    """The process that has a session open, as far as the kernel tells."""
    try:
        handle = library.folder.open_read(f"{file.id}.jsonl")
    except ReverieError:
        return None
    try:
        return holder_of(handle)
    finally:
        os.close(handle)
