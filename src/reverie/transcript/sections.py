"""The sections of session notes, and the titles of those of a summary.

A section is a `# ` heading, most often with an italic line below it that says what it is
for, and what follows up to the next heading; joined again, sections are the text to the
byte. A text without headings is one section that has no name. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from reverie.light import dataclass
from reverie.transcript.blocks import estimate

SUMMARY = (
    "Primary request and intent",
    "Key technical concepts",
    "Files and code",
    "Errors and fixes",
    "Problem solving",
    "All user messages",
    "Pending tasks",
    "Current work",
    "Optional next step",
)
"""What every summary has, in this order."""
_ITALIC = re.compile(r"[ \t]*([_*])(?![_*\s]).*\1[ \t\r\n]*")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_FENCE = re.compile(r" {0,3}(```+|~~~+)")


@dataclass(frozen=True, slots=True)
class NotesSection:
    """A part of the notes, as the text it is."""

    heading: str  # with its line end; empty for what stands before the first
    description: str
    body: str

    @property
    def name(self) -> str:
        return self.heading.removeprefix("# ").strip()

    @property
    def text(self) -> str:
        return self.heading + self.description + self.body

    @property
    def tokens(self) -> int:
        return estimate(self.body.strip())

    @property
    def lines(self) -> list[str]:
        return self.body.strip("\n").split("\n") if self.body.strip() else []

    def spaced(self, text: str) -> str:
        """New words for the body, with the space behind it that is there now."""
        above = self.heading + self.description
        before = "" if not above or above.endswith("\n") else "\n"
        if not self.body.strip():
            return f"{before}{text}\n{self.body}"
        return before + text + self.body[len(self.body.rstrip()) :]


def sections(text: str) -> tuple[NotesSection, ...]:
    """A text taken apart. A `# ` in a code block is a heading only with its italic line."""
    lines = _LINE.findall(text)
    starts = list(_headings(lines))
    ends = [*starts, len(lines)]
    out = [NotesSection("", "", "".join(lines[: ends[0]]))]
    for start, end in zip(starts, ends[1:], strict=True):
        heading, *below = lines[start:end]
        about = below.pop(0) if below and _ITALIC.fullmatch(below[0]) else ""
        out.append(NotesSection(heading, about, "".join(below)))
    return tuple(s for s in out if s.text)


def _headings(lines: Sequence[str]) -> Iterator[int]:
    fence = ""
    for at, line in enumerate(lines):
        below = lines[at + 1] if at + 1 < len(lines) else ""
        if line.startswith("# ") and (not fence or _ITALIC.fullmatch(below)):
            fence = ""
            yield at
        elif found := _FENCE.match(line):
            if not fence:
                fence = found[1]
            elif found[1].startswith(fence) and not line.strip(" `~\t\r\n"):
                fence = ""
