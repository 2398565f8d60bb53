"""All that is outside, behind a few narrow Protocols.

A layer is handed a `World` and nothing else: the settings, and ports to the model, the
disk, the clock, and the one way to start a fork. `reverie.testing` has an in-memory twin
of each. This module holds types alone; it opens, reads and asks nothing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from math import inf
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from reverie.errors import ProviderError
from reverie.light import dataclass
from reverie.settings.catalog import DEFAULTS, Settings
from reverie.settings.schema import SettingValue
from reverie.transcript.messages import Item, context_window
from reverie.transcript.records import Record, Strip, Ttl, Usage
from reverie.transcript.tasks import Task
from reverie.transcript.view import View

if TYPE_CHECKING:
    from reverie.wire.reply import Delta, Reply
    from reverie.wire.request import Request


class Clock(Protocol):
    """Time as a parameter."""

    def now(self) -> float:
        """Seconds since the epoch."""
        ...

    async def sleep(self, seconds: float) -> None: ...


class Disk(Protocol):
    """The session's folder: whole files, written at once or not at all."""

    async def write(self, key: str, data: bytes) -> str:
        """Write a file so that it survives a crash; returns the path a person can open."""
        ...

    async def read(self, key: str, limit: int | None = None) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Prices:
    """What tokens cost in units of one input token, and how long a cache entry lives. The
    defaults hold where a provider tells nothing."""

    read: float = DEFAULTS.price_read
    write: float = DEFAULTS.price_write_short
    write_long: float = DEFAULTS.price_write_long
    output: float = DEFAULTS.price_output
    short: float = DEFAULTS.cache_short_minutes * 60  # seconds
    long: float = DEFAULTS.cache_long_minutes * 60

    def cost(self, usage: Usage) -> float:
        """Price tokens, in units of one input token. Every figure of cost comes from here."""
        short = usage.written - usage.written_1h
        writing = short * self.write + usage.written_1h * self.write_long
        return usage.uncached + usage.read * self.read + writing + usage.output * self.output


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a provider and model can do. The defaults are those of a plain one."""

    marks: int = 0  # cache marks a request may carry; 0 = the provider caches by itself
    lifetimes: tuple[Ttl, ...] = ()
    cache_edits: bool = False
    context_management: bool = False
    compaction: bool = False
    thinking_binding: bool = False
    diagnostics: bool = False
    free: bool = False  # nothing is billed: no budget is needed
    rules: bool = False  # typed tasks are answered by fixed rules: no tool has to be offered
    tools: bool = True  # False: it answers in words only, so no tool definition is sent
    images: bool = True
    window: int | None = None
    max_output: int | None = None
    min_cacheable: int = 1024
    thinking: tuple[str, ...] = ()  # in which ways it can be asked to think: adaptive, budget
    efforts: bool = False  # whether it can be told how hard to work
    prices: Prices = field(default_factory=Prices)


@dataclass(frozen=True, slots=True)
class RetryNotice:
    """The provider failed in a way that may pass; another try follows."""

    attempt: int
    wait: float
    reason: str


Event: TypeAlias = "Delta | RetryNotice | Reply"


class Model(Protocol):
    """A language model behind any provider."""

    @property
    def name(self) -> str:
        """As the provider calls it."""
        ...

    @property
    def capabilities(self) -> Capabilities:
        """What it can do and what it costs: window, cache marks, prices."""
        ...

    def stream(self, request: Request) -> AsyncIterator[Event]:
        """The answer as it comes; the last event is the whole `Reply`.

        Raises ProviderError (PromptTooLong among them) and never yields a partial reply.
        """
        ...


class WrappedModel:
    """The name and abilities of a model, for one that stands in front of it."""

    __slots__ = ()
    model: Model

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def capabilities(self) -> Capabilities:
        return self.model.capabilities


async def complete(model: Model, request: Request) -> Reply:
    """One answer, whole."""
    from reverie.wire.reply import Reply

    reply: Reply | None = None
    async for event in model.stream(request):
        if isinstance(event, Reply):
            reply = event
    if reply is None:
        raise ProviderError("the model's stream ended without an answer", where=model.name)
    return reply


@dataclass(frozen=True, slots=True)
class ForkSpec:
    """A fork to run: who asks, with which words, and how far it may go."""

    source: str
    instruction: str
    task: Task
    rounds: int = 1
    tools: tuple[str, ...] = ()  # names it may call; all others are denied at call time
    writable: tuple[str, ...] = ()  # folders or files its writes are confined to


@dataclass(frozen=True, slots=True)
class ForkResult:
    """What a fork did."""

    text: str
    usage: Usage
    rounds: int
    written: tuple[str, ...] = ()


class RunFork(Protocol):
    """The one way a layer starts a background agent on the session's own prefix."""

    async def __call__(self, spec: ForkSpec) -> ForkResult: ...


class SideQuery(Protocol):
    """A side query: one request outside the conversation, counted before it leaves."""

    async def __call__(self, request: Request, model: Model | None = None) -> Reply:
        """The answer of the session's own model, or of another."""
        ...


class CompactionHooks(Protocol):
    """What a door does around a compaction: the user's hooks, and what comes back after it."""

    async def before(self, trigger: Literal["auto", "manual"], instructions: str) -> str:
        """PreCompact hooks; returns the instructions, with what the hooks add."""
        ...

    async def after(self, view: View, trigger: Literal["auto", "manual"]) -> Sequence[Record]:
        """What is restored behind a boundary: head, files, skills, hooks' context."""
        ...


class FlagReader(Protocol):
    """Kill switches, read at the moment they matter."""

    def get(self, name: str) -> SettingValue | Mapping[str, int]: ...


@dataclass(frozen=True, slots=True)
class Notice:
    """Something a person should know; never sent to the model."""

    layer: str
    text: str
    level: Literal["info", "warning", "error"] = "info"


Say: TypeAlias = Callable[[Notice], None]
Wait: TypeAlias = Callable[[str, float], Awaitable[bool]]
Summariser: TypeAlias = Callable[[], Awaitable[Model]]


BOUND_THEMSELVES: Mapping[str, int | None] = MappingProxyType({"Read": None, "ReadBack": None})
"""Tools that read files back: storing their results would make them loop."""


@dataclass(frozen=True, slots=True)
class ReadBackHint:
    """How the model reads back what left the context: the words of stubs and lines."""

    tool: str = "ReadBack"  # takes a reference; empty where the model has no such tool
    files: bool = True  # a stored result is a file, and has a path beside its reference
    reader: str = ""  # a tool that reads files, where no tool takes a reference
    folder: str = ""  # where each reference is a file, for a tool that reads files

    def stored(self, path: str, reference: str) -> str:
        """Where a stored result is, and how to get at it."""
        if self.folder:
            return f"and is whole in {self.file(reference)}\n{self.tool} of that file gives it."
        where = f"is stored whole in {path}" if self.files else "is kept whole"
        if not self.tool:
            return f"and {where}{f'; {self.reader} reads it.' if self.reader else ''}"
        return (
            f"and {where}\n{self.tool} with {reference} gives the rest: "
            "offset reads on from a line, query finds lines."
        )

    def named(self) -> str:
        """What a reference in a line gives, and how."""
        if self.folder:
            return (
                f"What r:abc123 names is whole in {self.file('r:abc123')}; `{self.tool}` reads it."
            )
        return (
            f"`{self.tool}` with a reference such as r:abc123 gives that call with its result, or "
            "that message, whole."
        )

    def file(self, reference: str) -> str:
        """Where what a reference names lies."""
        return f"{self.folder}/{reference.removeprefix('r:')}.txt"

    def reads(self, tool: str, given: str) -> bool:
        """Whether a call reads back: what it returns is never stored away again."""
        return tool == self.tool and (not self.folder or self.folder in given)


def say_nothing(notice: Notice) -> None:
    """A `Say` for where nobody listens."""


def overridden(known: Prices, settings: Settings) -> Prices:
    """A model's prices, but where somebody set others than the defaults."""
    named = {
        "read": ("price_read", 1),
        "write": ("price_write_short", 1),
        "write_long": ("price_write_long", 1),
        "output": ("price_output", 1),
        "short": ("cache_short_minutes", 60),
        "long": ("cache_long_minutes", 60),
    }
    chosen = {
        price: getattr(settings, name) * unit
        for price, (name, unit) in named.items()
        if getattr(settings, name) != getattr(DEFAULTS, name)
    }
    return replace(known, **chosen) if chosen else known


@dataclass(frozen=True, slots=True)
class World:
    """Everything a layer may use."""

    clock: Clock
    disk: Disk
    flags: FlagReader
    settings: Settings = DEFAULTS
    model: Model | None = None
    fork: RunFork | None = None
    say: Say = say_nothing
    ask: SideQuery | None = None
    summariser: Summariser | None = None  # the model that writes summaries, where it is another
    around: CompactionHooks | None = None
    wait: Wait | None = None  # for background work of a name, at most so many seconds
    model_name: str = ""  # what requests name, also where the caller has a client of its own
    betas: tuple[str, ...] = ()
    learned_window: int | None = None  # a limit that a provider's error named
    # characters a tool's result may have, or None where the tool bounds its own output
    tool_limits: Mapping[str, int | None] = field(default_factory=lambda: BOUND_THEMSELVES)
    way_back: ReadBackHint = field(default_factory=ReadBackHint)
    repeatable: frozenset[str] = frozenset()  # tools of a caller's whose results can be had again
    whole_turns: bool = False  # thinking that a turn under way still needs is never taken out
    window: int = field(init=False)  # tokens the model takes
    scaled: Settings = field(init=False)  # the settings for that window
    prices: Prices = field(init=False)  # of the model, but where the settings name others

    def __post_init__(self) -> None:
        window = context_window(
            self.model_name or (self.model.name if self.model else ""),
            known=self.model.capabilities.window if self.model else None,
            betas=self.betas,
            fallback=self.settings.fallback_window,
            learned=self.learned_window,
        )
        known = self.model.capabilities.prices if self.model else Prices()
        prices, scaled = overridden(known, self.settings), self.settings.scaled(window)
        if not prices.read:  # nothing is gained before the window is full, and nothing grows cold
            prices = replace(prices, short=inf)
            most = scaled.result_characters // scaled.text_bytes_per_token
            tail = self.settings.compact_threshold(window)
            scaled = replace(scaled, collapse_tail=tail, collapse_offload=most)
        object.__setattr__(self, "window", window)  # worked out once: it is asked each round
        object.__setattr__(self, "scaled", scaled)
        object.__setattr__(self, "prices", prices)

    def tail_limit(self, view: View) -> int:
        """Tokens that the live tail may have; where reading costs nothing, as many as fit."""
        if self.prices.read:
            return self.scaled.collapse_tail
        return view.live_tokens + self.settings.compact_threshold(self.window) - view.tokens

    @property
    def binds(self) -> bool:
        """Whether the model's thinking is bound to what precedes it."""
        return self.model is not None and self.model.capabilities.thinking_binding

    def unbound(self, behind: Iterable[Item]) -> tuple[Strip, ...]:
        """The thinking in what stands behind an edit: bound to what was there, it would be
        refused, and goes in the same record."""
        if not self.binds:
            return ()
        pieces = (piece for item in behind for piece in item.pieces)
        return tuple(Strip(p.source, p.index) for p in pieces if p.block.thinking)

    @property
    def collapses(self) -> bool:
        """Whether the context is kept small by collapse (SPEC §4, B11)."""
        chosen = self.settings.context_policy == "collapse"
        return chosen and bool(self.flags.get("context_collapse"))


Layer: TypeAlias = Callable[[View, World], Awaitable[Sequence[Record]]]


# --- where notices go that nobody asked for: to the logger `reverie`, one child a layer

_MAX_WARNED = 1_000
_warned: set[str] = set()  # warnings that this process was told


def log_notice(notice: Notice) -> None:
    """Hand a notice to `logging`; where an application set no handler, nothing is printed."""
    import logging

    levels = {"info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
    logger = logging.getLogger(f"reverie.{notice.layer}")
    if logger.hasHandlers():
        logger.log(levels.get(notice.level, logging.INFO), "%s", notice.text)


def notice_listener(on_notice: Callable[[Notice], object] | None) -> Say:
    """Return where notices go: to the caller, else to `logging`, a warning once in a process."""
    if on_notice is None:
        return _log_once

    def tell(notice: Notice) -> None:
        on_notice(notice)

    return tell


def _log_once(notice: Notice) -> None:
    if notice.level == "warning":
        if notice.text in _warned:
            return
        if len(_warned) >= _MAX_WARNED:
            _warned.clear()
        _warned.add(notice.text)
    log_notice(notice)
