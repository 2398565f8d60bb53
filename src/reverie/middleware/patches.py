"""Patches on a client's own bytes: what goes out is its text with some places written over.

A patch names its place in the list of messages. Nothing else of the body is touched: key order,
numbers, spaces and unknown members go out as they came. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable

from reverie.light import dataclass
from reverie.middleware import chain
from reverie.middleware.scanning import Body, ScannedPart
from reverie.transcript.blocks import dump

EPHEMERAL = '{"type":"ephemeral"}'
_TEXT = {"messages": "text", "chat": "text", "responses": "input_text"}


@dataclass(frozen=True, slots=True)
class Patch:
    """A piece of the list that is written over; start and end alike: something is put in."""

    start: int
    end: int
    text: str


def patched(body: Body, patches: Iterable[Patch], outside: Iterable[Patch] = ()) -> str:
    """The body's text with patches on its list, and others whose places count from its start."""
    moved = [Patch(body.base + p.start, body.base + p.end, p.text) for p in patches]
    out: list[str] = []
    at = 0
    for one in sorted([*moved, *outside], key=lambda p: (p.start, p.end)):
        out += (body.text[at : one.start], one.text)
        at = one.end
    out.append(body.text[at:])
    return "".join(out)


def result_patches(body: Body, part: ScannedPart, content: str, added: str) -> list[Patch]:
    """Another content for a result, a JSON text, or "" for its own; and words behind it."""
    start, end = part.inner
    if content and not added:
        return [Patch(start, end, content)]
    if content:
        return [Patch(start, end, f"{content[:-1]}{_more(content, added, body)}{content[-1]}")]
    own = body.text[body.base + start : body.base + end] if added else ""
    more = _more(own, added, body)
    return [Patch(end - 1, end - 1, more)] if more else []


def _more(content: str, words: str, body: Body) -> str:
    """What goes before the last sign of a content, so that words stand behind it; "" where it
    is neither a text nor a list."""
    if not words or content[0] not in '"[':
        return ""
    if content[0] == '"':
        return dump(f"\n\n{words}")[1:-1]
    comma = "," if content[1:-1].strip() else ""
    return f'{comma}{{"type":"{_TEXT[body.form]}","text":{dump(words)}}}'


def reminder_patches(body: Body, part: ScannedPart, text: str) -> list[Patch]:
    """A text behind a block. A mark on the block goes along to it."""
    if part.bare and body.form != "messages":
        return [Patch(part.end - 1, part.end - 1, dump(f"\n\n{text}")[1:-1])]
    block = f'{{"type":"{_TEXT[body.form]}","text":{dump(text)}'
    if part.bare:
        words = f'[{{"type":"text","text":{body.raw(part)}}},{block}}}]'
        return [Patch(part.start, part.end, words)]
    if part.mark == (0, 0):
        return [Patch(part.end, part.end, f",{block}}}")]
    mark = mark_of(body, part)
    start, end = part.mark
    return [Patch(start, end, ""), Patch(part.end, part.end, f',{block},"{chain.MARK}":{mark}}}')]


def mark_of(body: Body, part: ScannedPart) -> str:
    """The cache mark on a block, as the client wrote it."""
    return dump(chain.as_value(body.value(part)).get(chain.MARK))


def mark_patch(body: Body, part: ScannedPart, mark: str) -> Patch:
    """A cache mark on a block that has none."""
    if part.bare:
        words = f'[{{"type":"text","text":{body.raw(part)},"{chain.MARK}":{mark}}}]'
        return Patch(part.start, part.end, words)
    return Patch(part.end - 1, part.end - 1, f',"{chain.MARK}":{mark}')
