"""Plain requests, in English and Chinese, as tool calls.

A message is a request if it begins with one: "read FILE lines 1-20", "run COMMAND", "read back
REFERENCE", "remember …", "forget …", and the same in Chinese. Several may follow each other. What
is not recognised is handed back as it stands, never guessed at. Only words that a user said come
here, and a bounded beginning of them is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from reverie.embedded.history import LOOKED_AT, RequestedCall, read_ask
from reverie.text.cues import read_table
from reverie.text.tokens import has_chinese
from reverie.transcript.blocks import Json

MAX = 16  # requests taken from one message
QUOTES = "\"'`“”"

_QUOTED = r"\"[^\"\n]*\"|'[^'\n]*'|`[^`\n]*`|“[^”\n]*”"
_WORD = rf"(?:{_QUOTED}|[^\s,，、;；\"`“]+)"
_FILE = rf"(?:{_QUOTED}|(?=[^\s,，、;；]*[./])[^\s,，、;；:：\"`“]+|(?-i:[A-Z])\w+)"
_END = r"(?=\s*(?:$|[\n,，、;；.!?。！？]|(?:and|then)\b|然后|并且))"
_LINES = r"(?:\s+lines?\s+(?P<first>\d{1,9})(?:\s*(?:-|–|to)\s*(?P<last>\d{1,9}))?)?"
_NO_COMMAND = r"(?!(?:me|us|it|away|out|into|over|through|by|with|the|a|tests?)\b)"
_POLITE = r"(?:(?:please|could you|can you|hello|hi|and|then|now|请|帮我|然后|并且)[\s,，]*)*"

_NEXT = re.compile(rf"[\s,，、;；.。!！?？]*{_POLITE}", re.IGNORECASE)
_CLAUSE = re.compile(r"[^\n;；。！？]*?(?=[\n;；。！？]|[.!?](?:\s|$)|$)")
_REMEMBER = re.compile(
    r"\s*(?:please )?(?:remember(?: that)?|note(?: down)? that)[:,]?\s+(?P<what>.+)"
    r"|\s*(?:请)?(?:记住|记下)[：:，,]?\s*(?P<zh>.+)",
    re.IGNORECASE | re.DOTALL,
)
_FORGET = re.compile(
    r"\s*(?:please )?forget(?: about)?[:,]?\s+(?P<what>[^\n]{1,200})\s*"
    r"|\s*(?:请)?忘记[：:，,]?\s*(?P<zh>[^\n]{1,200})\s*",
    re.IGNORECASE,
)

Parts: TypeAlias = dict[str, str]


@dataclass(slots=True)
class ParsedRequests:
    """What a message asks for, and what of it was not recognised."""

    asks: list[RequestedCall] = field(default_factory=list[RequestedCall])
    rest: list[str] = field(default_factory=list[str])
    unread: int = 0  # characters behind those that were looked at


def parse_requests(text: str) -> ParsedRequests:
    """The requests of a message; none where it does not begin with one."""
    found = _parse_remember(text)
    if found is not None:
        return found
    out = ParsedRequests(unread=max(0, len(text) - LOOKED_AT))
    text = text[:LOOKED_AT]
    place = _behind(text, 0)
    while place < len(text):
        ask, end = _form(text, place)
        if ask is not None and len(out.asks) < MAX:
            out.asks.append(ask)
        elif not out.asks:
            return ParsedRequests()
        else:
            clause = _CLAUSE.match(text, place)
            end = max(end, clause.end() if clause else len(text), place + 1)
            out.rest.append(text[place:end].strip())
        place = _behind(text, end)
    return out


def _behind(text: str, place: int) -> int:
    """Where the next words stand, behind signs and polite ones."""
    found = _NEXT.match(text, place)
    return found.end() if found else place


def _parse_remember(text: str) -> ParsedRequests | None:
    """A message that asks to remember or to forget something is about that alone, whole."""
    kept, gone = _REMEMBER.fullmatch(text), _FORGET.fullmatch(text)
    if kept and not text.rstrip().endswith(("?", "？")):
        return ParsedRequests(
            [RequestedCall("Remember", {"text": (kept["what"] or kept["zh"]).strip()})]
        )
    if gone and not text.rstrip().endswith(("?", "？")):
        return ParsedRequests(
            [RequestedCall("Forget", {"name": (gone["what"] or gone["zh"]).strip(" .。")})]
        )
    return None


def _form(text: str, place: int) -> tuple[RequestedCall | None, int]:
    """The request that stands at a place, and where it ends."""
    for form, build in FORMS:
        found = form.match(text, place)
        if found is not None:
            parts = {name: bare(value) for name, value in found.groupdict().items() if value}
            return build(parts), found.end()
    return None, place


def bare(word: str) -> str:
    """A word without its quotes, or without the sign that ends its sentence."""
    if len(word) > 1 and word[0] in QUOTES and word[-1] in QUOTES:
        return word[1:-1]
    ends = word[-1:] in ".?!:：" and word.rstrip(".") != "" and word[-2:-1].isalnum()
    return word[:-1] if ends else word


def _read(parts: Parts) -> RequestedCall:
    ask = read_ask(parts["file"])
    if "first" in parts:
        first = int(parts["first"])
        ask.input["offset"] = first
        ask.input["limit"] = max(1, int(parts.get("last", first)) - first + 1)
    return ask


def _read_back(parts: Parts) -> RequestedCall:
    query: dict[str, Json] = {"query": parts["query"]} if "query" in parts else {}
    return RequestedCall("ReadBack", {"reference": parts["name"], **query})


def _run(parts: Parts) -> RequestedCall:
    return RequestedCall("Bash", {"command": parts["command"].strip()})


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE)


Build: TypeAlias = Callable[[Parts], RequestedCall]
FORMS: tuple[tuple[re.Pattern[str], Build], ...] = (
    (_pattern(rf"read back (?P<name>{_WORD})(?: about (?P<query>[^\n,;.]+))?{_END}"), _read_back),
    (_pattern(rf"(?:read\s+|读取\s*)(?P<file>{_FILE}){_LINES}{_END}"), _read),
    (_pattern(rf"(?:run|运行)\s+(?P<command>`[^`\n]+`){_END}"), _run),
    (_pattern(rf"(?:run|运行)\s+{_NO_COMMAND}(?P<command>[^\s`][^\n]*)"), _run),
)


# --- What the embedded model says: `data/phrases.tsv`.


class Phrases:
    """The sentences of one language by name; braces are filled in."""

    def __init__(self, language: str) -> None:
        rows = read_table("reverie.embedded", "phrases.tsv")
        self._texts = {row["name"]: row[language] for row in rows}

    def __getattr__(self, name: str) -> str:
        return self._texts[name]

    def form(self, tool: str) -> str:
        """How a call of a tool is asked for, or ""."""
        return self._texts.get(f"form {tool}", "")

    def counted(self, sentence: str, what: str, count: int, **more: str) -> str:
        """A sentence of these with a count in it."""
        return sentence.format(what=what, count=count, s="" if count == 1 else "s", **more)


ENGLISH, CHINESE = Phrases("en"), Phrases("zh")
TOOLS = tuple(
    row["name"].removeprefix("form ")
    for row in read_table("reverie.embedded", "phrases.tsv")
    if row["name"].startswith("form ")
)


def phrases(words: str) -> Phrases:
    """The language of what was said."""
    return CHINESE if has_chinese(words[:LOOKED_AT]) else ENGLISH
