"""What both grammars share: the request as a value, and what looks like a file.

Nothing here reads a message.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from reverie.text.clauses import Word
from reverie.transcript.blocks import Json

TESTS = "python -m pytest -q"
WRITERS = frozenset({"Write", "Edit", "Bash", "Remember", "Forget"})
SPECIAL = frozenset(r".^$*+?{}[]\|()")
FILES = frozenset(
    {"makefile", "dockerfile", "readme", "license", "changelog", "gemfile", "procfile", "justfile"}
)


@dataclass(frozen=True, slots=True)
class CallAsked:
    """One tool call that a user asked for. `tests`: whatever runs the tests here."""

    tool: str
    input: dict[str, Json] = field(default_factory=dict[str, Json])
    tests: bool = False

    @property
    def alone(self) -> bool:
        """Whether it may change something, and so waits for those before it."""
        return self.tool in WRITERS


def literal(word: str) -> str:
    """A pattern that finds just these characters."""
    return "".join("\\" + c if c in SPECIAL else c for c in word)


def is_glob(word: str) -> bool:
    return "*" in word or "?" in word.rstrip("?")


def is_path(word: Word) -> bool:
    """Whether a word looks like a file or folder."""
    text = word.bare
    if not text or "://" in text or len(text) > 1_000 or "\n" in text:
        return False
    if word.quoted and " " not in text:
        return True
    stem, dot, ending = text.rpartition(".")
    named = bool(dot and ending and ending[0].isalnum() and (stem or len(ending) > 1))
    return "/" in text or named or text in (".", "..", "~") or text.lower() in FILES


def one_line(text: str) -> str:
    """Text as a pattern or a name: one line, of a length that makes sense."""
    return " ".join(text.split())[:1_000]


def between(words: Sequence[Word], start: int, end: int) -> str:
    """Words as the text they stand for: what one pair of quotes held, or all of them."""
    part = words[start:end]
    if len(part) == 1:
        return part[0].text
    return " ".join(w.text for w in part)


def read_ask(path: str, first: int | None = None, count: int | None = None) -> CallAsked:
    given: dict[str, Json] = {"file_path": path}
    if first is not None:
        given["offset"] = first
    if count is not None:
        given["limit"] = count
    return CallAsked("Read", given)


def grep_ask(pattern: str, path: str = "") -> CallAsked:
    given: dict[str, Json] = {"pattern": pattern}
    if path and is_glob(path):
        given["glob"] = path
    elif path:
        given["path"] = path
    return CallAsked("Grep", given)


def glob_ask(pattern: str, path: str = "") -> CallAsked:
    """Files by name, at any depth where the name does not say which."""
    deep = pattern if "/" in pattern else f"**/{pattern}"
    return CallAsked("Glob", {"pattern": deep, "path": path} if path else {"pattern": deep})
