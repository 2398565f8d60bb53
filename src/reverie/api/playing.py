"""A list of messages, played as the conversation it records, without a loop or a disk.

Before each message of the assistant's a request was made: the layers run there, as they
would have in a session, and at the end of the list once more. So what becomes of a
message follows from the list alone, in any process, and a list that grew is played on
from where the shorter one was settled. The clock stands still. Nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, TypeAlias, TypeVar

from reverie.concurrency import alone
from reverie.light import dataclass
from reverie.settings import Settings, SettingValue
from reverie.transcript.blocks import dump, text_block, text_of
from reverie.transcript.fold import apply
from reverie.transcript.names import reference
from reverie.transcript.records import (
    AssistantMessage,
    Attached,
    Entry,
    Failed,
    Record,
    ResultDecided,
    UserMessage,
)
from reverie.transcript.view import EMPTY, View
from reverie.wire.adopting import Adopted
from reverie.world import Layer, Notice, World

T = TypeVar("T")
Summarize: TypeAlias = Callable[[View], Sequence[Record]]
CLEARED = "[Old tool result content cleared]"
FREED = 0.6  # of what is allowed, once results have to go: the next time is far off
SMALL = 400  # characters that are not worth a stub
_EMPTY: Mapping[str, int] = {}


class StillClock:
    """It is always the same moment: a decision may not depend on when one asks."""

    def now(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        """No time passes."""


class ListIsStore:
    """A disk that keeps nothing: the caller's own list holds every result whole."""

    async def write(self, key: str, data: bytes) -> str:
        del key, data
        return ""

    async def read(self, key: str, limit: int | None = None) -> bytes:
        del key, limit
        return b""


class AllOn:
    """Every switch on, and no thresholds of one's own."""

    def get(self, name: str) -> SettingValue | Mapping[str, int]:
        return _EMPTY if name in ("tool_result_thresholds", "session_memory_config") else True


@dataclass(frozen=True, slots=True)
class Rules:
    """What a list is fitted by."""

    world: World
    layers: tuple[tuple[str, Layer], ...]
    head: int  # tokens of the tools
    reads_back: bool  # the model can read back
    forces: bool  # whether results may go where the window leaves no other way
    joined: Mapping[str, str] = field(default_factory=dict[str, str])  # memory, by part
    summarize: Summarize | None = None  # asked where the window is full

    @property
    def settings(self) -> Settings:
        return self.world.scaled

    @property
    def allowed(self) -> int:
        """Tokens that a request may have, with room left for the answer."""
        return self.settings.effective_window(self.world.window)


@dataclass(frozen=True, slots=True)
class PlayedList:
    """A list as far as it was played."""

    view: View = EMPTY
    aside: int = 0  # tokens of what is no part of the view
    parts: int = 0  # how many were taken
    asked: View | None = None  # as the last request left it

    def tokens(self, rules: Rules) -> int:
        return rules.head + self.aside + self.view.estimated


def now(work: Coroutine[Any, Any, T]) -> T:
    """The outcome of a coroutine that waits for nothing."""
    try:
        work.send(None)
    except StopIteration as done:
        return done.value
    work.close()
    raise RuntimeError("a layer waited for something while a list was fitted")


def play(played: PlayedList, parts: Sequence[Adopted], rules: Rules) -> PlayedList:
    """The parts behind those already played."""
    for part in parts:
        played = _taken(played, part, rules)
    return played


def _taken(played: PlayedList, part: Adopted, rules: Rules) -> PlayedList:
    count = played.parts + 1
    if part.part == "aside":
        return replace(played, aside=played.aside + part.tokens, parts=count)
    if part.part == "assistant":
        asked = decided(played, rules).view
        view = _with(asked, part.id, AssistantMessage(part.blocks))
        return replace(played, view=view, parts=count, asked=asked)
    tool = all(b.type == "tool_result" for b in part.blocks)
    origin = "interrupted" if part.part == "interrupted" else "tool" if tool else "user"
    view = _with(played.view, part.id, UserMessage(part.blocks, origin))
    memory = rules.joined.get(part.id)
    if memory:
        view = _appended(view, [Attached((text_block(memory),), "memory")])
    return replace(played, view=view, parts=count)


def _with(view: View, ident: str, record: Record) -> View:
    return apply(view, Entry(ident, view.leaf, 0.0, record))


def _appended(view: View, records: Sequence[Record]) -> View:
    for record in records:
        view = _with(view, f"d{len(view.entries)}", record)
    return view


def decided(played: PlayedList, rules: Rules) -> PlayedList:
    """The list as a request would carry it now."""
    view = played.view
    none: Sequence[Record] = ()
    for name, layer in rules.layers:
        records, error = now(alone(layer(view, rules.world), none))
        view = _appended(view, records)
        if error:
            view = _appended(view, [Failed(name, error)])
            rules.world.say(Notice(name, f"the layer failed: {error}", "error"))
    played = replace(played, view=view)
    if rules.forces and rules.summarize and played.tokens(rules) > rules.allowed:
        played = replace(played, view=_appended(view, rules.summarize(view)))
    if rules.forces and played.tokens(rules) > rules.allowed:
        return _forced(played, rules)
    return played


# --- where the window leaves no other way


def _forced(played: PlayedList, rules: Rules) -> PlayedList:
    """Old results go, the oldest first, until there is room again; new ones, which no
    request has carried yet, go last and leave their beginning."""
    view = played.view
    excess = played.tokens(rules) - int(rules.allowed * FREED)
    bound = True
    for call, text, is_new in _results(view):
        if excess <= 0 or (is_new and played_fits(view, played, rules)):
            break
        stub = _stub(call, text, rules, is_new=is_new)
        if len(text) - len(stub) < SMALL:
            continue
        strips = rules.world.unbound(view.items) if bound else ()
        bound = False  # all thinking behind the first edit has gone with it
        before = view.estimated
        why = "the window was full"
        view = _appended(view, [ResultDecided(call, "cleared", why, dump(stub), strips=strips)])
        excess -= before - view.estimated
    return replace(played, view=view)


def played_fits(view: View, played: PlayedList, rules: Rules) -> bool:
    return replace(played, view=view).tokens(rules) <= rules.allowed


def _results(view: View) -> list[tuple[str, str, bool]]:
    """Results in the view: the call, the text as it stands, whether it is new."""
    return [
        (piece.block.call, text_of(piece.block.value.get("content")), at >= view.sent_items)
        for at, item in enumerate(view.items)
        if item.kind == "message" and item.results
        for piece in item.pieces
        if piece.block.type == "tool_result"
    ]


def _stub(call: str, text: str, rules: Rules, *, is_new: bool) -> str:
    settings = rules.settings
    head = text[: settings.result_preview_bytes] if is_new else ""
    if rules.reads_back:
        tool = rules.world.way_back.tool
        told = f"[{len(text):,} characters left out. {tool} with {reference(call)} gives all.]"
    else:
        told = "[The rest is left out: the model's window is full]" if is_new else CLEARED
    return f"{head}\n{told}" if head else told
