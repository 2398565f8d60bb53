"""What is told to a session: the caller's words and results, foreign lists, another head.

Calls are known by names of ours where a provider used one twice or left it empty; results may come
under either name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from reverie.api.beginning import described, flat
from reverie.session.opening import Head
from reverie.transcript.blocks import Block, dump, text_block, text_of
from reverie.transcript.records import (
    AssistantMessage,
    HeadSet,
    Record,
    ResultDecided,
    UserMessage,
)
from reverie.transcript.view import View
from reverie.wire.adopting import Adopted, adopt
from reverie.wire.native import ITEMS
from reverie.wire.reading import format_of, heard, value_of
from reverie.wire.reply import Addable, as_user
from reverie.wire.request import NO_HEAD

if TYPE_CHECKING:
    from reverie.api.toolset import Toolset
    from reverie.session.session import Session

_NAMED = {"tool_use": "id", "tool_result": "tool_use_id"}
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")
BEFORE = "[The conversation begins with the assistant's words.]"


def told(view: View, said: Sequence[Addable]) -> UserMessage:
    """What was handed in as one message, its results under the names that we know calls by."""
    message = as_user(said)
    theirs = dict(_theirs(view))
    blocks = tuple(_renamed(block, view, theirs) for block in message.blocks)
    return replace(message, blocks=blocks)


def begins(view: View, message: UserMessage) -> bool:
    """Whether a message begins a turn while the one before it was never ended."""
    if any(block.type == "tool_result" for block in message.blocks) or view.open_calls:
        return False
    return is_open(view)


def is_open(view: View) -> bool:
    """Whether the model has answered since the last turn ended."""
    for at in range(len(view.entries) - 1, -1, -1):
        kind = type(view.entries[at].record).__name__
        if kind in ("AssistantMessage", "TurnEnded"):
            return kind == "AssistantMessage"
    return False


def _theirs(view: View) -> Iterator[tuple[str, str]]:
    """The provider's names for calls that wait, with ours."""
    for call in view.open_calls:
        known = view.calls.get(call)
        entry = view.entries.find(known.message) if known is not None else None
        if entry is None or not isinstance(entry.record, AssistantMessage):
            continue
        for block in entry.record.blocks:
            ids = block.value.get("ids") if block.type == ITEMS else None
            if isinstance(ids, dict) and call in ids:
                yield str(ids[call]), call


def _renamed(block: Block, view: View, theirs: Mapping[str, str]) -> Block:
    if block.type != "tool_result" or block.call in view.open_calls or block.call not in theirs:
        return block
    return block.with_member("tool_use_id", dump(theirs[block.call]))


# --- lists of others


async def adopted(session: Session, messages: Sequence[object]) -> None:
    """Take in what was said elsewhere; its results stay as they were sent."""
    values = [value_of(message) for message in messages]
    form, _ = format_of(values, (), session.world.model_name)
    parts = list(adopt([heard(value, form) for value in values], form).parts)
    while parts and parts[-1].part == "interrupted":
        parts.pop()  # its calls may still be answered here
    names: dict[str, str] = {}
    records: list[Record] = []
    for part in parts:
        if part.part == "assistant":
            if not records and not session.view.items.length:
                records.append(UserMessage((text_block(BEFORE),), "adopted"))
            records.append(AssistantMessage(_safe(part.blocks, names, session.view)))
        elif part.blocks:
            records += _said(part, names, session.view)
    await session.append(*records)


def _said(part: Adopted, names: dict[str, str], view: View) -> Iterator[Record]:
    """What a user or a tool said; what belongs to nobody here is kept as words."""
    if part.part == "aside":
        words = [text for block in part.blocks if (text := text_of(block.value)).strip()]
        if words:
            yield UserMessage(tuple(map(text_block, words)), "adopted")
        return
    blocks = _safe(part.blocks, names, view)
    results = [block.call for block in blocks if block.type == "tool_result"]
    yield UserMessage(blocks, "tool" if results else "user")
    for call in results:
        yield ResultDecided(call, "kept", "it was sent before")


def _safe(blocks: Sequence[Block], names: dict[str, str], view: View) -> tuple[Block, ...]:
    """Blocks whose calls have names that every provider takes and no call here has."""
    made: list[Block] = []
    for block in blocks:
        if block.type not in _NAMED:
            made.append(block)
            continue
        name = names.get(block.call) or _UNSAFE.sub("-", block.call)[:60] or "call"
        while block.call not in names and (name in view.calls or name in names.values()):
            name = f"{name[:60]}-2"
        names[block.call] = name
        made.append(block.with_member(_NAMED[block.type], dump(name)))
    return tuple(made)


# --- the head


def head(
    view: View,
    system: str | Sequence[Mapping[str, Any]] | None,
    tools: Sequence[object] | Toolset | None,
    options: Mapping[str, Any] | None,
    reason: str,
) -> HeadSet:
    """The head as it is, with what is said anew."""
    found = view.head or NO_HEAD
    if system is not None:
        found = replace(found, system=Head(system=system).record().system)
    if tools is not None:
        found = replace(found, tools=dump([described(tool) for tool in flat(tools)]))
    if options is not None:
        found = replace(found, options=dump(dict(options)))
    return replace(found, reason=reason)
