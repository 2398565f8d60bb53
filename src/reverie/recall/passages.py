"""What somebody said, as something that can be found: a turn of a dialogue or of a session.

A transcript's messages become passages here: the user's words, the assistant's words, what it
called with which input, and the beginning of what came back. Texts that we attached ourselves
are left out, so that recall does not find its own echo.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from reverie.light import dataclass
from reverie.text.markdown import blocks
from reverie.text.tokens import terms
from reverie.transcript.blocks import Block, Json
from reverie.transcript.records import AssistantMessage, Entry, UserMessage

MAX_TEXT = 4_000
"""Characters of one passage; a longer text is known by its beginning."""
MAX_RESULT = 600
"""Characters of a tool's result."""
MAX_INPUT = 1_200
"""Characters of one value in a call's input."""


MAX_LOOKED_AT = 32_000
SHOWN_LINES = 4
_LOOKED_AT = 4
_CLOSE = 200
_FAR = 10_000
_SHORT = 3
MAX_SHOWN = 400
PASSAGE = 600
"""Characters of one passage that is shown of a longer text."""

ROLES = frozenset({"user", "assistant", "tool"})
"""Speakers that are no names: a query that has such a word does not mean them."""
REPLIES = frozenset({"assistant", "tool"})
"""Those of them who reply to what somebody said."""
NAMED = "speaker:"
"""How the origin of a message begins that a named person said."""

_QUESTION = re.compile(r"[^.!?\n]*\?")
_ENDS_ASKING = re.compile(r"\?\s*(?:\[[^\]]*\]\s*)?\Z|[？]\s*\Z")
_FIRST_PERSON = re.compile(r"\b(?:I|I'm|my|me|we|our)\b|我")


@dataclass(frozen=True, slots=True)
class Utterance:
    """One turn: who said what when. `at` is 0 where nobody knows."""

    text: str
    speaker: str = ""
    at: float = 0.0
    message: str = ""

    @property
    def asks(self) -> float:
        """The share of it that is questions."""
        asked = sum(map(len, _QUESTION.findall(self.text)))
        return asked / len(self.text) if self.text else 0.0

    @property
    def ends_asking(self) -> bool:
        return _ENDS_ASKING.search(self.text) is not None

    @property
    def first_person(self) -> bool:
        return _FIRST_PERSON.search(self.text) is not None


def utterances(entries: Iterable[Entry]) -> Iterator[Utterance]:
    """The turns of a transcript, in the order they were written."""
    for entry in entries:
        record = entry.record
        if isinstance(record, AssistantMessage):
            text = "\n".join(filter(None, map(_assistant_text, record.blocks)))
            speaker = "assistant"
        elif isinstance(record, UserMessage) and _is_said(record.origin):
            text = "\n".join(filter(None, map(_user_text, record.blocks)))
            speaker = record.origin.removeprefix(NAMED)
        else:
            continue
        if text.strip():
            yield Utterance(text[:MAX_TEXT], speaker, entry.at, entry.id)


def _is_said(origin: str) -> bool:
    return origin in ROLES or origin.startswith(NAMED)


def _assistant_text(block: Block) -> str:
    if block.type == "text":
        return block.get("text")
    if block.type == "tool_use":
        return f"{block.get('name')} {' '.join(_values(block.value.get('input')))}"
    return ""


def _user_text(block: Block) -> str:
    if block.type == "text":
        return block.get("text")
    if block.type == "tool_result":
        return " ".join(_texts(block.value.get("content")))[:MAX_RESULT]
    return ""


def _values(value: Json, depth: int = 0) -> Iterator[str]:
    """The texts in a call's input, its keys left out."""
    if isinstance(value, str):
        yield value[:MAX_INPUT]
    elif isinstance(value, dict) and depth < 4:
        for one in value.values():
            yield from _values(one, depth + 1)
    elif isinstance(value, list) and depth < 4:
        for one in value[:50]:
            yield from _values(one, depth + 1)


def _texts(content: Json) -> Iterator[str]:
    if isinstance(content, str):
        yield content[:MAX_RESULT]
    elif isinstance(content, list):
        for one in content[:20]:
            if isinstance(one, dict) and one.get("type") == "text":
                yield str(one.get("text"))[:MAX_RESULT]


# A memory's text


def headings(body: str) -> str:
    """The headings of a Markdown text, a line each."""
    if "#" not in body and "==" not in body and "--" not in body:
        return ""
    return "\n".join(body[one.start : one.end] for one in blocks(body) if one.kind == "heading")


def best_lines(body: str, weights: Iterable[tuple[str, float]]) -> tuple[int, str]:
    """The lines of a text where most of the weighed terms stand close together, and how many
    lines come before them.

    A stem counts where it stands in a word: near enough for showing, and fast.
    """
    low = body[:MAX_LOOKED_AT].casefold()
    places: list[tuple[int, str, float]] = []
    for term, weight in weights:
        sought = term.rstrip("ei") if len(term) > _SHORT else term
        at = low.find(sought)
        for _ in range(_LOOKED_AT):
            if at < 0:
                break
            places.append((at, term, weight))
            at = low.find(sought, at + 1)
    best, start = 0.0, len(low) - len(low.lstrip())
    for first, _, _ in sorted(places):
        near = {term: (at, weight) for at, term, weight in places if 0 <= at - first < _CLOSE}
        found = sum([weight - (at - first) / _FAR for at, weight in near.values()])
        if found > best:
            best, start = found, first
    above = low.count("\n", 0, start)  # lines: folding changes how long they are, not how many
    shown = body.split("\n", above + SHOWN_LINES)[above : above + SHOWN_LINES]
    return above, "\n".join(shown)[:MAX_SHOWN].strip()


def around(text: str, query: str) -> str:
    """The part of a text that has most of a query's words, cut at lines where they are short."""
    text = text.strip()
    if len(text) <= PASSAGE:
        return text
    wanted = frozenset(terms(query))
    step = PASSAGE // 2
    starts = range(0, max(1, len(text) - step), step)
    held = {at: len(wanted & frozenset(terms(text[at : at + PASSAGE]))) for at in starts}
    best = max(starts, key=lambda at: (held[at], -at))
    end = best + PASSAGE
    before, after = "[…] " if best else "", " […]" if end < len(text) else ""
    return f"{before}{text[best:end].strip()}{after}"
