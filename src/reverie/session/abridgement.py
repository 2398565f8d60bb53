"""A conversation in few words, for a model that is asked outside it.

The user's words are whole, the agent's are clipped, a call is one line. Results of tools are left
out: they are most of a conversation, and nothing that is saved may rest on them. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from reverie.session.extraction.trigger import UserText, just_before, user_words
from reverie.text.format import cut_line
from reverie.text.safety import neutralize_markup
from reverie.transcript.blocks import Block
from reverie.transcript.messages import Item
from reverie.transcript.view import View

MAX_BYTES = 60_000
"""Bytes of an abridged conversation; the newest are kept."""
MAX_AGENT = 600
"""Characters of one message of the agent's."""
MAX_BEGIN = 200
"""Characters of those that are its beginning: the end holds the question that a yes answers."""
MAX_CALL = 160
MAX_SUMMARY = 6_000
USER, AGENT, CALL, SUMMARY = "[user]", "[agent]", "[agent calls]", "[summary of earlier messages]"
LEFT_OUT = "[earlier messages are left out]"
Row = tuple[str, str]


def abridge(view: View, items: Iterable[Item]) -> str:
    """Return what was said in these messages, and in the agent's last one before them."""
    given = tuple(items)
    said = {one.source: one for one in user_words(view, given)}
    rows = [row for item in (*just_before(view, given), *given) for row in _rows(item, said)]
    kept = _newest(rows)
    if len(kept) < len(rows):  # what the agent did goes before what the user said
        kept = _newest([row for row in rows if row[0] == USER])
        kept.insert(0, (LEFT_OUT, ""))
    return "\n\n".join(f"{who}\n{neutralize_markup(text)}".rstrip() for who, text in kept)


def _rows(item: Item, said: dict[str, UserText]) -> Iterator[Row]:
    texts = [p.block.get("text") for p in item.pieces if p.block.type == "text"]
    words = next((said[one] for one in (item.id, *item.covers) if one in said), None)
    if words is not None:
        yield USER, words.text
    elif item.kind == "replaced":
        yield SUMMARY, _clip("\n".join(texts), MAX_SUMMARY, MAX_SUMMARY // 2)
    elif item.role == "assistant":
        if text := "\n".join(texts).strip():
            yield AGENT, _clip(text, MAX_AGENT, MAX_BEGIN)
        calls = [_call(p.block) for p in item.pieces if p.block.type == "tool_use"]
        if calls:
            yield CALL, "\n".join(calls)


def _call(block: Block) -> str:
    given = block.value.get("input")
    values = given.values() if isinstance(given, dict) else (given,)
    told = "; ".join(str(one) for one in values if isinstance(one, str | int) and one != "")
    return cut_line(f"{block.get('name')}: {told}", MAX_CALL)


def _clip(text: str, most: int, begin: int) -> str:
    """A text of at most `most` characters: its beginning and its end."""
    return text if len(text) <= most else f"{text[:begin]} … {text[begin - most + 3 :]}"


def _newest(rows: list[Row]) -> list[Row]:
    """The last rows that fit; of the first of them as much as does."""
    kept: list[Row] = []
    left = MAX_BYTES
    for who, text in reversed(rows):
        size = len(text.encode("utf-8", "replace"))
        if size > left:
            if not kept:
                kept.append((who, _clip(text, left // 4, left // 8)))
            break
        kept.append((who, text))
        left -= size
    return kept[::-1]
