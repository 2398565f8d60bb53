"""A layer of one's own: the view it gets, the records it may ask for, how it joins the others.

What it sees is small and made of plain values: `view.calls` and `view.messages`, each with an
`age` in answers of the model's. What it asks for names calls and messages by id, and is worked
out against the conversation: the words that stand in a result's place, the thinking that goes
with an edit. A wish that no longer fits (an unknown call, one that waits for its result, a result
cleared before) comes to nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from itertools import dropwhile
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, cast

from reverie.light import dataclass
from reverie.transcript import records
from reverie.transcript import view as views
from reverie.transcript.blocks import Block, dump, text_block, text_of
from reverie.transcript.mentions import reference
from reverie.transcript.messages import Item
from reverie.world import Layer as InnerLayer
from reverie.world import World

__all__ = ["Layer", "Record", "View", "World", "attach", "clear", "pairs", "replace", "store"]

CLEARED = "[Old tool result content cleared]"
_HOUSE = "reverie.layers."


# What a layer sees


@dataclass(frozen=True, slots=True)
class CallSeen:
    """A tool call: how many answers of the model's came since, and its result as it is sent."""

    id: str
    name: str
    arguments: Mapping[str, Any]
    message: str
    age: int
    result: str | None  # None while it is missing
    action: str = ""  # stored or cleared, where something was decided of its result


@dataclass(frozen=True, slots=True)
class MessageSeen:
    """A message as it is sent."""

    id: str
    role: Literal["user", "assistant"]
    text: str
    tokens: int
    age: int


class LayerView:
    """A conversation as a layer of one's own sees it."""

    __slots__ = ("_view",)

    def __init__(self, view: views.View) -> None:
        self._view = view

    @property
    def calls(self) -> Mapping[str, CallSeen]:
        """The calls still in the context, by id, in their order."""
        seen = {c.id: c for c in self._calls()}
        return MappingProxyType(seen)

    def _calls(self) -> Iterator[CallSeen]:
        given = {b.call: b for b in self._blocks("tool_use")}
        results = {b.call: text_of(b.value.get("content")) for b in self._blocks("tool_result")}
        ages = self._ages()
        for ident, block in given.items():
            known = self._view.calls.get(ident)
            decided = self._view.decisions.get(ident)
            asked = block.value.get("input")
            yield CallSeen(
                ident,
                block.get("name"),
                cast("dict[str, Any]", asked) if isinstance(asked, dict) else {},
                known.message if known else "",
                ages.get(known.message, 0) if known else 0,
                results.get(ident),
                decided.action if decided and decided.action != "kept" else "",
            )

    @property
    def messages(self) -> tuple[MessageSeen, ...]:
        """The messages in the context, the oldest first."""
        ages = self._ages()
        return tuple(
            MessageSeen(
                item.id,
                item.role,
                "\n".join(filter(None, (piece.block.text for piece in item.pieces))),
                sum(piece.block.tokens for piece in item.pieces),
                ages[item.id],
            )
            for item in self._view.items
        )

    @property
    def tokens(self) -> int:
        """Tokens of the whole context: what was last reported, and an estimate since."""
        return self._view.tokens

    def _blocks(self, kind: str) -> Iterator[Block]:
        pieces = (piece for item in self._view.items for piece in item.pieces)
        return (piece.block for piece in pieces if piece.block.type == kind)

    def _ages(self) -> dict[str, int]:
        ages: dict[str, int] = {}
        answers = 0
        for item in reversed(self._view.items[:]):
            ages[item.id] = answers
            answers += item.role == "assistant"
        return ages


View = LayerView


# What it may ask for


@dataclass(frozen=True, slots=True)
class ClearRequest:
    """A result's content shall go."""

    call: str
    why: str


@dataclass(frozen=True, slots=True)
class StoreRequest:
    """A result shall be stored, and its two ends stay."""

    call: str
    why: str


@dataclass(frozen=True, slots=True)
class ReplaceRequest:
    """Messages shall be one text."""

    first: str
    last: str
    text: str
    why: str


@dataclass(frozen=True, slots=True)
class AttachRequest:
    """A text shall join the newest message."""

    text: str


Record: TypeAlias = ClearRequest | StoreRequest | ReplaceRequest | AttachRequest
OwnLayer: TypeAlias = Callable[[LayerView, World], Awaitable[Sequence[Record]]]
Layer = OwnLayer


def clear(call: str, *, why: str = "") -> Record:
    """Let a result's content go; its reference stays where the model can read back."""
    return ClearRequest(call, why)


def store(call: str, *, why: str = "") -> Record:
    """Keep a result outside the context; its two ends and a reference stay."""
    return StoreRequest(call, why)


def replace(first: str, last: str, text: str, *, why: str = "") -> Record:
    """Put one text in the place of the messages from `first` to `last`, widened to whole rounds."""
    return ReplaceRequest(first, last, text, why)


def attach(text: str) -> Record:
    """Let a text join the newest message that was not sent yet."""
    return AttachRequest(text)


# How it joins the others


def pairs(chosen: Sequence[OwnLayer]) -> tuple[tuple[str, InnerLayer], ...]:
    """Layers by name, as a conversation takes them; those of the house stay as they are."""
    return tuple((_name(one), _wrap_layer(one)) for one in chosen)


def before_a_request(chosen: Sequence[OwnLayer] | None) -> tuple[tuple[str, InnerLayer], ...]:
    """What `prepare` runs: the ready list, or a caller's own and compaction behind it, since
    something has to give where the window is full."""
    from reverie.layers.order import BEFORE_A_REQUEST, COMPACTION

    return BEFORE_A_REQUEST if chosen is None else (*pairs(chosen), *COMPACTION)


def _name(layer: OwnLayer) -> str:
    module = str(getattr(layer, "__module__", ""))
    if module.startswith(_HOUSE):
        return module.removeprefix(_HOUSE).partition(".")[0]
    return str(getattr(layer, "__name__", type(layer).__name__))


def _wrap_layer(layer: OwnLayer) -> InnerLayer:
    if str(getattr(layer, "__module__", "")).startswith(_HOUSE):
        return cast("InnerLayer", layer)

    async def run(view: views.View, world: World) -> Sequence[records.Record]:
        wishes = await layer(LayerView(view), world)
        out: list[records.Record] = []
        for wish in wishes:
            out += await _build_records(wish, view, world, bound=not out)
        return out

    return run


async def _build_records(
    wish: Record, view: views.View, world: World, *, bound: bool
) -> Sequence[records.Record]:
    """A wish as records; `bound`: no edit before it has taken the thinking along."""
    match wish:
        case ClearRequest(call, why):
            return _clear_result(call, why, view, world, bound=bound)
        case StoreRequest(call, why):
            return await _store_result(call, why, view, world)
        case ReplaceRequest(first, last, text, why):
            stand = records.Stand("user", (text_block(text),))
            behind = dropwhile(lambda item: item.id != first, view.items)
            strips = world.unbound(behind)
            return [records.Replaced(first, last, (stand,), "layer", strips=strips, why=why)]
        case AttachRequest(text):
            return [records.Attached((text_block(text),), "layer")]
    raise TypeError(f"a layer returns what reverie.layers makes, not {type(wish).__name__}")


def _holding(call: str, view: views.View) -> Item | None:
    return next((item for item in view.items if call in item.results), None)


def _clear_result(
    call: str, why: str, view: views.View, world: World, *, bound: bool
) -> Sequence[records.Record]:
    before = view.decisions.get(call)
    if _holding(call, view) is None or (before and before.action == "cleared"):
        return ()
    kept = (before.path, before.size, before.sha256) if before else ("", 0, "")
    tool = world.way_back.tool
    told = f"[Cleared. {tool} with {reference(call)} gives it whole.]" if tool else CLEARED
    behind = dropwhile(lambda item: call not in item.results, view.items)
    strips = world.unbound(behind) if bound else ()
    return [records.ResultDecided(call, "cleared", why, dump(told), *kept, strips)]


async def _store_result(
    call: str, why: str, view: views.View, world: World
) -> Sequence[records.Record]:
    from reverie.layers.tool_results import store_result

    item, before = _holding(call, view), view.decisions.get(call)
    if item is None or (before and before.action != "kept"):
        return ()
    block = next(p.block for p in item.pieces if p.block.call == call)
    known = view.calls.get(call)
    return await store_result(block, known.name if known else "", world, why)
