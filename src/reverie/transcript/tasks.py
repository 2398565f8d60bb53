"""Typed purposes of requests, and the sections they write.

Why a request is made, as a value that goes beside its text.

Wire providers ignore it; the embedded one reads it and the messages, and never parses a
prompt of ours. Messages are named by the ids of their entries (`SentBlock.source`), files by
the paths that tools take. Values alone: nothing here reads a file, a clock or a setting.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from reverie.light import dataclass
from reverie.transcript.blocks import estimate


@dataclass(frozen=True, slots=True)
class Task:
    """The kind is the query source of SPEC §1; the main agent's has nothing more to it."""

    kind: str = "main"


@dataclass(frozen=True, slots=True)
class NotesTask(Task):
    """Bring the session notes up to date with what was said since they were."""

    kind: str = "session_memory"
    path: str = ""  # the notes file, the only one that may be edited
    notes: str = ""  # its text now
    since: str = ""  # the last message the notes cover; empty for none
    section_tokens: int = 2_000
    total_tokens: int = 12_000


@dataclass(frozen=True, slots=True)
class SummaryTask(Task):
    """Write the summary that will stand for a range of messages."""

    kind: str = "compact"
    first: str = ""  # the first and the last message of the range; empty for all
    last: str = ""
    instructions: str = ""  # what the user asked to be minded
    tokens: int = 20_000  # at most so long
    dropped: str = ""  # what had to be left out of the request, in our words


@dataclass(frozen=True, slots=True)
class KnownMemory:
    """A memory that exists: a line of the manifest."""

    file: str
    type: str = ""
    name: str = ""
    description: str = ""
    saved: float = 0.0
    lines: tuple[float, ...] = ()  # when each line was written, where they differ


@dataclass(frozen=True, slots=True)
class DoubtedRule:
    """A memory that calls are held against, and what is known against it."""

    file: str
    words: str
    speaks_of: str = ""
    did: str = ""  # what it did so far, counted
    doubts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ExtractTask(Task):
    """Write what is worth keeping of the newest messages into the memory folder."""

    kind: str = "extract_memories"
    folder: str = ""
    since: str = ""  # the last message already seen; empty for none
    times: tuple[tuple[str, float], ...] = ()  # when each new user message was said
    memories: tuple[KnownMemory, ...] = ()
    injected: tuple[str, ...] = ()  # texts that recall put into this conversation
    instructions: str = ""  # what instruction files already say


@dataclass(frozen=True, slots=True)
class RecallTask(Task):
    """Choose the memories that clearly help with what the user just said."""

    kind: str = "recall"
    query: str = ""
    memories: tuple[KnownMemory, ...] = ()
    tools: tuple[str, ...] = ()  # used lately
    files: int = 5  # at most so many


@dataclass(frozen=True, slots=True)
class DreamTask(Task):
    """Consolidate a copy of a memory folder."""

    kind: str = "dream"
    folder: str = ""  # the copy to work on
    files: tuple[tuple[str, bytes], ...] = ()  # its files as it began
    transcripts: str = ""  # where past sessions can be searched
    root: str = ""  # the repository the memories are about
    now: float = 0.0
    memories: tuple[KnownMemory, ...] = ()  # with the time each was saved
    index_lines: int = 200
    index_bytes: int = 25_000
    rules: tuple[DoubtedRule, ...] = ()  # those that may be mended or retired


MAIN = Task()


# --- The sections of session notes, and the titles of those of a summary.
#
# A section is a `# ` heading, most often with an italic line below it that says what it is for,
# and what follows up to the next heading; joined again, sections are the text to the byte. A text
# without headings is one section that has no name. Pure.


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
