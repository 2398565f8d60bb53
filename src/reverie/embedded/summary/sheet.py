"""A summary in the making: nine sections and the room that is left.

Lines go in while they fit into the share they were given and into the whole; what is not
used stays for what comes later. A name can be put behind a line that stands already.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reverie.transcript.names import REFERENCE
from reverie.transcript.sections import SUMMARY

HEADINGS = tuple(f"## {n}. {title}" for n, title in enumerate(SUMMARY, 1))
NAMES = 2  # the section of names that no file gave
BEFORE_NAMES = "·"
SMALLEST = 12  # bytes of room below which nothing more is tried
_EMPTY = 12  # bytes of what stands in an empty section


def size(line: str) -> int:
    return len(line.encode("utf-8", "replace")) + 1


class Sheet:
    """Sections by number, in a room of so many bytes."""

    def __init__(self, room: int) -> None:
        self.limit = room
        self.room = room - sum(size(heading) + _EMPTY for heading in HEADINGS)
        self.sections: dict[int, list[str]] = {n: [] for n in range(1, len(SUMMARY) + 1)}
        self.behind: dict[str, list[str]] = {}  # names, by the line they stand behind

    @property
    def is_full(self) -> bool:
        return self.room < SMALLEST

    def at_most(self, most: int) -> None:
        """From here on there is no more room than this."""
        self.room = min(self.room, most)

    def put(self, section: int, lines: Iterable[str], share: float) -> set[str]:
        """The lines that fit, in order; one that does not, or stands already, is passed over."""
        room = min(self.room, int(self.limit * share))
        placed: set[str] = set()
        for line in lines:
            cost = size(line)
            if cost <= room and line not in self.sections[section]:
                room -= cost
                self.room -= cost
                placed.add(line)
                self.sections[section].append(line)
        return placed

    def put_words(self, section: int, heading: str, words: Sequence[str], share: float) -> None:
        """One line of words, as many as fit."""
        room = min(self.room, int(self.limit * share)) - size(heading)
        shown: list[str] = []
        for word in words:
            room -= size(word)
            if room < 0:
                break
            shown.append(word)
        if shown:
            self.put(section, [" ".join([heading, *shown])], 1.0)

    def extend(self, line: str, name: str) -> None:
        """A name behind a line; without one, among the names of section 2."""
        cost = size(name) + (0 if line in self.behind else size(BEFORE_NAMES))
        if cost <= self.room:
            self.room -= cost
            self.behind.setdefault(line, []).append(name)

    def references(self) -> set[str]:
        every = (line for lines in self.sections.values() for line in lines)
        return {found for line in every for found in REFERENCE.findall(line)}

    def _whole(self, line: str) -> str:
        found = self.behind.get(line)
        return " ".join([line, BEFORE_NAMES, *found]) if found else line

    def text(self, nothing: str) -> str:
        out: list[str] = []
        for number, heading in enumerate(HEADINGS, 1):
            lines = [self._whole(line) for line in self.sections[number]]
            if number == NAMES and "" in self.behind:
                lines.append(" ".join(self.behind[""]))
            out += [heading, *(lines or [nothing])]
        return "\n".join(out)
