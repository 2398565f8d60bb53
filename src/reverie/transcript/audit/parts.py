"""A conversation as parts: whose words, in which message, of which call.

A part is one block's text with the one who wrote it: the user, the assistant, a call, its
result, an error, what stands for older messages, or something attached. Items and the
messages of a request are read the same way. Linear in the text; nothing is judged here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice
from typing import Literal, Protocol, TypeAlias

from reverie.light import dataclass
from reverie.transcript.blocks import Block, Json, Object
from reverie.transcript.messages import HEAD, INTERRUPTED, Item, Piece
from reverie.transcript.names import REFERENCE
from reverie.transcript.records import Role
from reverie.transcript.sections import SUMMARY

Who: TypeAlias = Literal["user", "assistant", "call", "result", "error", "stand", "attached"]
PATH_KEYS = ("file_path", "path", "notebook_path")
REMINDER = "<system-reminder>"
STANDS = 3  # references or known headings in a user's text that make it a stand-in of ours
HEADINGS = (
    *(title.lower() for title in SUMMARY),
    *("files and code sections", "session title", "current state", "task specification"),
    *("files and functions", "workflow", "errors & corrections", "learnings", "key results"),
    *("codebase and system documentation", "worklog"),
)
_HEADING = re.compile(r"(?m)^[ \t]{0,3}(?:#{1,6}[ \t]+|\*\*)?(?:\d{1,2}[.)][ \t]+)?([^\n]{4,40})$")
_TROUBLE = re.compile(
    r"(?m)^.{0,200}?(?:\b(?:[A-Z]\w{0,40})?(?:Error|Exception)\b|\berror:|\bpanic:|\bfatal:"
    r"|\bFAIL(?:ED)?\b|\bTraceback\b|\bundefined:|\bcannot find\b|\bno such file\b"
    r"|\bpermission denied\b|\bcommand not found\b).{0,300}$"
)
_EXIT = re.compile(r"\bexit(?:ed with)? (?:code|status):?[ \t]{0,3}(-?\d{1,9})", re.IGNORECASE)
_OPENING = re.compile(r"\b(?:summary|notes)\b", re.IGNORECASE)
_OPENING_LOOKED_AT = 400  # characters in which a stand-in says what it is
_AT_END = 6_000  # characters of a result in which a failure is looked for


class Spoken(Protocol):
    """An item of a view, or a message of a request."""

    @property
    def role(self) -> Role: ...

    @property
    def pieces(self) -> tuple[Piece, ...]: ...


@dataclass(frozen=True, slots=True)
class Part:
    """The words of one block."""

    who: Who
    text: str
    source: str  # the entry it comes from
    at: int  # the number of its message
    call: str = ""  # the call's id, of a call or a result
    tool: str = ""
    input: Json = None
    media: bool = False

    @property
    def reader(self) -> str:
        """The id whose reference reads it back: its call's, or a user's message's own."""
        return self.call or (self.source if self.who == "user" else "")

    def given(self, key: str) -> str:
        """A member of a call's input that is a string."""
        found = self.input.get(key) if isinstance(self.input, dict) else None
        return found if isinstance(found, str) else ""

    @property
    def path(self) -> str:
        """The file or folder a call names."""
        return next((p for key in PATH_KEYS if (p := self.given(key))), "")


def parts(spoken: Iterable[Spoken]) -> list[Part]:
    """All words of some items or messages, in order; thinking and the head are left out."""
    out: list[Part] = []
    made: dict[str, Part] = {}
    for at, one in enumerate(spoken):
        kind = one.kind if isinstance(one, Item) else ""
        for piece in one.pieces:
            if piece.source == HEAD:
                continue
            found = _part(piece, one.role, kind, at, made)
            if found is not None:
                out.append(found)
    return out


def _part(piece: Piece, role: Role, kind: str, at: int, made: dict[str, Part]) -> Part | None:
    block, source = piece.block, piece.source
    match block.type:
        case "text":
            return None if block.blank else Part(_writer(block, role, kind), block.text, source, at)
        case "tool_use":
            call = block.call
            words = given_words(block.value.get("input"))
            found = Part("call", words, source, at, call, block.get("name"), _input(block))
            made.setdefault(call, found)
            return found
        case "tool_result":
            call = block.call
            asked = made.get(call)
            if block.text == INTERRUPTED:
                return None
            who: Who = "error" if is_failure(block) else "result"
            tool, given = (asked.tool, asked.input) if asked else ("", None)
            return Part(who, block.text, source, at, call, tool, given)
        case "image" | "document":
            return Part(_writer(block, role, kind), f"[{block.type}]", source, at, media=True)
        case _:
            return None


def _input(block: Block) -> Object:
    found = block.value.get("input")
    return found if isinstance(found, dict) else {}


def _writer(block: Block, role: Role, kind: str) -> Who:
    if kind == "replaced":
        return "stand"
    if role == "assistant":
        return "assistant"
    text = block.get("text")
    if kind in ("attached", "synthetic") or text.lstrip()[: len(REMINDER)] == REMINDER:
        return "attached"
    return "stand" if not kind and stands_for_others(text) else "user"


def stands_for_others(text: str) -> bool:
    """Whether a text in the user's place is a summary, notes or sealed lines. A request does
    not say so, and an item does: its kind."""
    if len(list(islice(REFERENCE.finditer(text), STANDS))) == STANDS:
        return True
    if not _OPENING.search(text[:_OPENING_LOOKED_AT]):
        return False
    titles = {m[1].strip(" *:#\t").lower() for m in _HEADING.finditer(text)}
    return len(titles.intersection(HEADINGS)) >= STANDS


def given_words(value: Json) -> str:
    """The texts and numbers in a call's input, line by line."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return "\n".join(filter(None, map(given_words, value.values())))
    if isinstance(value, list):
        return "\n".join(filter(None, map(given_words, value)))
    return "" if value is None or isinstance(value, bool) else str(value)


# --- failures


def is_failure(block: Block) -> bool:
    """Whether a result says that its call failed: by its flag, or by its exit code."""
    if block.value.get("is_error") is True:
        return True
    text = block.text
    code = _EXIT.search(text[:400]) or _EXIT.search(text[-400:])
    return code is not None and int(code[1]) != 0


def trouble(text: str) -> str:
    """The line of a failed result that says what went wrong: the last one that names an
    error and says more than that, or the first line with words."""
    end = text[-_AT_END:]
    every = [m.group() for m in _TROUBLE.finditer(end)]
    found = [line for line in every if len(line.split()) > 1] or every
    lines = found[-1:] or [line for line in text[:_AT_END].splitlines() if line.strip()][:1]
    return " ".join(lines[0].split()) if lines else ""
