"""A list played through the layers, with memory and summaries.

A list of messages, played as the conversation it records, without a loop or a disk.

Before each message of the assistant's a request was made: the layers run there, as they
would have in a session, and at the end of the list once more. So what becomes of a
message follows from the list alone, in any process, and a list that grew is played on
from where the shorter one was settled. The clock stands still. Nothing is written.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from reverie.concurrency import alone, run
from reverie.errors import InvalidInput, NotAvailable, ReverieError
from reverie.layers import collapse, tool_results
from reverie.layers.custom import OwnLayer, pairs
from reverie.light import dataclass
from reverie.providers.capabilities import PLAIN, table_capabilities
from reverie.settings.catalog import Settings
from reverie.settings.schema import SettingValue
from reverie.toolbox.toolset import Toolset
from reverie.transcript.blocks import dump, estimate, text_block, text_of
from reverie.transcript.fold import apply
from reverie.transcript.mentions import reference
from reverie.transcript.messages import SUFFIX, bare
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
from reverie.wire.forms import tool_name, tool_parameters
from reverie.wire.lists import AdoptedMessage, value_of
from reverie.wire.reply import Reply
from reverie.wire.request import Request
from reverie.world import (
    Capabilities,
    Event,
    Layer,
    Model,
    Notice,
    ReadBackHint,
    Say,
    World,
    complete,
)

if TYPE_CHECKING:
    from reverie.memory.memory import Memory

T = TypeVar("T")
Summarize: TypeAlias = Callable[[View], Sequence[Record]]
CLEARED = "[Old tool result content cleared]"
FREED = 0.6  # of what is allowed, once results have to go: the next time is far off
SMALL = 400  # characters that are not worth a stub
_EMPTY: Mapping[str, int] = {}


class FrozenClock:
    """It is always the same moment: a decision may not depend on when one asks."""

    def now(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        """No time passes."""


class ListDisk:
    """A disk that keeps nothing: the caller's own list holds every result whole."""

    async def write(self, key: str, data: bytes) -> str:
        del key, data
        return ""

    async def read(self, key: str, limit: int | None = None) -> bytes:
        del key, limit
        return b""


class EnabledFlags:
    """Every switch on, and no thresholds of one's own."""

    def get(self, name: str) -> SettingValue | Mapping[str, int]:
        return _EMPTY if name in ("tool_result_thresholds", "session_memory_config") else True


@dataclass(frozen=True, slots=True)
class FitOptions:
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
class ReplayedList:
    """A list as far as it was played."""

    view: View = EMPTY
    aside: int = 0  # tokens of what is no part of the view
    parts: int = 0  # how many were taken
    asked: View | None = None  # as the last request left it

    def tokens(self, rules: FitOptions) -> int:
        return rules.head + self.aside + self.view.estimated


def now(work: Coroutine[Any, Any, T]) -> T:
    """The outcome of a coroutine that waits for nothing."""
    try:
        work.send(None)
    except StopIteration as done:
        return done.value
    work.close()
    raise RuntimeError("a layer waited for something while a list was fitted")


def play(played: ReplayedList, parts: Sequence[AdoptedMessage], rules: FitOptions) -> ReplayedList:
    """The parts behind those already played."""
    for part in parts:
        played = _play_part(played, part, rules)
    return played


def _play_part(played: ReplayedList, part: AdoptedMessage, rules: FitOptions) -> ReplayedList:
    count = played.parts + 1
    if part.part == "aside":
        return replace(played, aside=played.aside + part.tokens, parts=count)
    if part.part == "assistant":
        asked = apply_layers(played, rules).view
        view = _with(asked, part.id, AssistantMessage(part.blocks))
        return replace(played, view=view, parts=count, asked=asked)
    tool = all(b.type == "tool_result" for b in part.blocks)
    origin = "interrupted" if part.part == "interrupted" else "tool" if tool else "user"
    view = _with(played.view, part.id, UserMessage(part.blocks, origin))
    memory = rules.joined.get(part.id)
    if memory:
        view = _append_records(view, [Attached((text_block(memory),), "memory")])
    return replace(played, view=view, parts=count)


def _with(view: View, ident: str, record: Record) -> View:
    return apply(view, Entry(ident, view.leaf, 0.0, record))


def _append_records(view: View, records: Sequence[Record]) -> View:
    for record in records:
        view = _with(view, f"d{len(view.entries)}", record)
    return view


def apply_layers(played: ReplayedList, rules: FitOptions) -> ReplayedList:
    """The list as a request would carry it now."""
    view = played.view
    none: Sequence[Record] = ()
    for name, layer in rules.layers:
        records, error = now(alone(layer(view, rules.world), none))
        view = _append_records(view, records)
        if error:
            view = _append_records(view, [Failed(name, error)])
            rules.world.say(Notice(name, f"the layer failed: {error}", "error"))
    played = replace(played, view=view)
    if rules.forces and rules.summarize and played.tokens(rules) > rules.allowed:
        played = replace(played, view=_append_records(view, rules.summarize(view)))
    if rules.forces and played.tokens(rules) > rules.allowed:
        return _drop_results(played, rules)
    return played


# --- where the window leaves no other way


def _drop_results(played: ReplayedList, rules: FitOptions) -> ReplayedList:
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
        view = _append_records(
            view, [ResultDecided(call, "cleared", why, dump(stub), strips=strips)]
        )
        excess -= before - view.estimated
    return replace(played, view=view)


def played_fits(view: View, played: ReplayedList, rules: FitOptions) -> bool:
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


def _stub(call: str, text: str, rules: FitOptions, *, is_new: bool) -> str:
    settings = rules.settings
    head = text[: settings.result_preview_bytes] if is_new else ""
    if rules.reads_back:
        tool = rules.world.way_back.tool
        told = f"[{len(text):,} characters left out. {tool} with {reference(call)} gives all.]"
    else:
        told = "[The rest is left out: the model's window is full]" if is_new else CLEARED
    return f"{head}\n{told}" if head else told


# --- Memory in a list: what joins the newest message of the user's.
#
# The first time it is the index and what fits, later what fits and was not shown yet. Each stands
# behind its message for good, so that the prompt cache holds; it is framed as memory and goes as a
# reminder, so no system prompt is needed. What is unsure stays out: silence beats a guess.


FIRST = 2_000
"""Tokens of the first reminder, with the index."""
LATER = 1_000
"""Tokens of each later one."""


class MemoryInjector:
    """What a conversation was told of a memory."""

    def __init__(self, memory: Memory, say: Say) -> None:
        self._memory = memory
        self._say = say
        self.texts: dict[str, str] = {}  # by part; "" where nothing fits

    def look(self, part: str, words: str) -> None:
        """Find what joins a message, once; a memory that cannot be read joins nothing."""
        if part in self.texts:
            return
        shown = "\n".join(self.texts.values())
        try:
            found = self._find_notes(words, shown)
        except ReverieError as error:
            self._say(Notice("recall", f"memory did not join the list: {error}", "warning"))
            found = ""
        self.texts[part] = f"<system-reminder>\n{found}\n</system-reminder>" if found else ""

    def _find_notes(self, words: str, shown: str) -> str:
        if not shown:
            return self._memory.context(words, tokens=FIRST)
        return self._memory.reminder(words, shown=shown, tokens=LATER)


# --- What a list is fitted by: a model's name, a policy and the tools, as a world and its rules.
#
# Nothing is read or asked: the name tells the window and whether thinking is bound, and the tools
# tell whether the model can read back.


COLLAPSE: tuple[tuple[str, Layer], ...] = (
    ("tool_results", tool_results.per_message),
    ("collapse", collapse.seal),
)


@dataclass(frozen=True, slots=True)
class NamedModel:
    """A model of which only the name is known. It is never asked."""

    name: str
    capabilities: Capabilities

    def stream(self, request: Request) -> AsyncIterator[Event]:
        del request
        raise NotAvailable("a list is fitted without a model", where=self.name)


def tool_values(tools: Sequence[object] | Toolset) -> list[dict[str, Any]]:
    if isinstance(tools, Toolset):
        return cast("list[dict[str, Any]]", tools.anthropic())
    return [v for t in tools for v in (tool_values(t) if isinstance(t, Toolset) else [value_of(t)])]


def way_back_of(tools: Sequence[Mapping[str, Any]], via: str, folder: str) -> ReadBackHint:
    """How the model reads back: by a tool of ours, which takes references, or by one of the
    caller's own that reads files, where there is a folder for them. Without either, not at all."""
    found = next((tool for tool in tools if tool_name(tool) == via), None)
    if found is None:
        return ReadBackHint("", files=False)
    is_ours = "reference" in tool_parameters(found)
    return ReadBackHint(via, files=False, folder="" if is_ours else folder)


def world_of(
    model: str,
    window: int | None,
    settings: Settings,
    policy: str,
    way_back: ReadBackHint,
    say: Say,
) -> World:
    known = table_capabilities(model)
    if window is not None:
        known = replace(known, window=window)
    elif known is PLAIN and not model.endswith(SUFFIX):
        size = settings.fallback_window
        told = f"the model {model!r} is not known: {size:,} tokens are assumed. Say window="
        say(Notice("fit", told, "warning"))
    chosen = "collapse" if policy == "collapse" else "classic"
    return World(
        clock=FrozenClock(),
        disk=ListDisk(),
        flags=EnabledFlags(),
        settings=replace(settings, context_policy=chosen),
        model=NamedModel(model, known),
        say=say,
        model_name=bare(model) if window is not None else model,
        tool_limits={} if way_back.folder else {way_back.tool: None},
        way_back=way_back,
        whole_turns=bool(way_back.folder),  # then the list is that of a client we do not know
    )


def rules_of(
    world: World,
    tools: Sequence[Mapping[str, Any]],
    policy: str,
    layers: Sequence[OwnLayer] | None,
) -> FitOptions:
    if policy not in ("collapse", "classic", "off"):
        do = "It is collapse, classic or off"
        raise InvalidInput("there is no such policy", where=str(policy), do=do)
    reads_back = bool(world.way_back.tool)
    chosen: tuple[tuple[str, Layer], ...] = ()
    if layers is not None:
        chosen = pairs(layers)
    elif policy == "collapse" and reads_back:
        chosen = COLLAPSE
    return FitOptions(
        world,
        chosen,
        head=sum(estimate(dict(t)) for t in tools),
        reads_back=reads_back,
        forces=policy != "off",
    )


# --- Summaries of a list, by a model that the caller hands in: asked where the window is full.
#
# It is the compaction of a session, with its audit and its keep-list. What was asked once is not
# asked again: a list that grew is played with the summary it got. Where none comes, old results
# go, as without a summarizer, and that is said.


class Summaries:
    """The summaries of one conversation, by the message each was asked behind."""

    def __init__(self, model: Model, world: World) -> None:
        self._model = model
        self._world = replace(world, summariser=self._summariser, ask=self._ask)
        self.known: dict[str, tuple[Record, ...]] = {}

    def of(self, view: View) -> Sequence[Record]:
        """The records that put a summary in place of what was said."""
        if view.leaf not in self.known:
            self.known[view.leaf] = run(lambda: self._summarize(view))
        return self.known[view.leaf]

    async def _summarize(self, view: View) -> tuple[Record, ...]:
        from reverie.layers import compaction

        none: tuple[Record, ...] = ()
        made, error = await alone(compaction.full(view, self._world), none)
        if error:
            text = f"no summary was made, so old results go instead: {error}"
            self._world.say(Notice("compaction", text, "warning"))
        return made

    async def _summariser(self) -> Model:
        return self._model

    async def _ask(self, request: Request, model: Model | None = None) -> Reply:
        return await complete(model or self._model, request)
