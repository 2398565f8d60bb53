"""What a scan of the memory folder knows of each file, and the list made of it for a model.

A record is made from the beginning of a file alone: frontmatter counts where it closes within
the first lines. A manifest line is `- [type] file.md (ISO time): description`, newest first.
A description cannot begin a second line, hide characters or grow without bound.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from reverie.memory.format import frontmatter
from reverie.memory.format.entry import stem, type_of
from reverie.memory.format.index import shorten
from reverie.memory.ranking import Facts
from reverie.text.hidden import strip

HEADER_LINES = 30
MAX_FILES = 200
MAX_DESCRIPTION = 500


@dataclass(frozen=True, slots=True)
class ManifestLine:
    """One memory file as a scan sees it; `modified` is in seconds."""

    key: str
    modified: float
    type: str = ""
    name: str = ""
    description: str = ""
    size: int = 0
    fault: str = ""

    @property
    def facts(self) -> Facts:
        return Facts(self.modified, self.type)

    @property
    def line(self) -> str:
        kind = f"[{self.type}] " if self.type else ""
        about = shorten(" ".join(strip(self.description).split()), MAX_DESCRIPTION)
        start = f"- {kind}{self.key} ({iso_time(self.modified)})"
        return f"{start}: {about}" if about else start


def record(
    key: str, head: bytes, *, modified: float, size: int = 0, lines: int = HEADER_LINES
) -> ManifestLine:
    """What the beginning of a file says of it."""
    front = frontmatter.parse(head, lines=lines)
    return ManifestLine(
        key,
        modified,
        type_of(front),
        front.get("name") or stem(key),
        front.get("description"),
        size or len(head),
        front.fault,
    )


def newest_first(records: Iterable[ManifestLine]) -> tuple[ManifestLine, ...]:
    return tuple(sorted(records, key=lambda one: (-one.modified, one.key)))


def manifest(records: Iterable[ManifestLine], most: int = MAX_FILES) -> str:
    """The newest records, a line each."""
    return "\n".join(one.line for one in newest_first(records)[:most])


def iso_time(seconds: float) -> str:
    """A moment in UTC, to the second."""
    try:
        moment = datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError, ValueError):
        return "unknown time"
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
