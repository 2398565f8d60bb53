"""What a session is opened with, and what becomes of it: its head, and the parts it is made of.

The head is what a caller wants a request to carry besides the conversation. A resumed session
sends the head that was recorded; only a model asked for anew and tools that no longer exist
change it, and both are announced.

Settings are read here once, unless they are given. A new or resumed transcript is locked last,
when all else is known; whoever is given the parts gives the lock back. Nothing is recorded here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from uuid import uuid4

from reverie import layers
from reverie.clock import SystemClock
from reverie.layers.collapse import FOLDED, SEALED
from reverie.layers.microcompaction import managed_options
from reverie.session.budget import Budget
from reverie.session.compaction.summariser import NamedSummariser, summariser_for
from reverie.session.conversation import ConversationParts, Layers, NoLog
from reverie.session.library import BegunSession, Library, NoDisk
from reverie.settings import Flags, Settings, environment, load
from reverie.store import home as places
from reverie.store.files import Folder
from reverie.store.lists import learned_window
from reverie.store.project import Project
from reverie.tools.runner import MakeGuard, NoTools
from reverie.transcript.blocks import dump, elements
from reverie.transcript.records import HeadSet
from reverie.transcript.view import View
from reverie.world import (
    BOUND_THEMSELVES,
    Around,
    Clock,
    Model,
    Notice,
    Say,
    Summariser,
    WayBack,
    World,
    say_nothing,
)

if TYPE_CHECKING:
    from reverie.store.memories import Memories

Content = str | Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Head:
    """What a caller wants a request to carry besides the conversation."""

    model: str = ""
    system: Content = ""
    tools: Sequence[Mapping[str, Any]] = ()
    context: Content = ""
    options: Mapping[str, Any] | None = None

    def record(self, reason: str = "") -> HeadSet:
        return HeadSet(
            self.model,
            _array(self.system),
            dump(list(self.tools)),
            _array(self.context),
            dump(dict(self.options or {})),
            reason,
        )


def _array(content: Content) -> str:
    if isinstance(content, str):
        return dump([{"type": "text", "text": content}] if content else [])
    return dump(list(content))


def resumed_head(recorded: HeadSet, wanted: Head) -> HeadSet | None:
    """A resumed session sends what was recorded, but for a model that was asked for anew
    and for tools that no longer exist."""
    reasons: list[str] = []
    head = recorded
    if wanted.model and wanted.model != recorded.model:
        head, reasons = replace(head, model=wanted.model), ["model"]
    if wanted.tools:
        asked = wanted.record()
        if not _tool_names(recorded.tools) <= _tool_names(asked.tools):
            head = replace(head, tools=asked.tools)
            reasons.append("tools")
    return replace(head, reason=", ".join(reasons)) if reasons else None


def _tool_names(array: str) -> set[str]:
    return {str(v.get("name")) for _, v in elements(array) if isinstance(v, dict)}


@dataclass(frozen=True, slots=True)
class SessionParts:
    """What a session is made of."""

    begun: BegunSession
    library: Library
    conversation: ConversationParts
    root: Path  # of the project
    cwd: Path
    memories: Memories | None = None
    selector: Model | None = None
    summariser: NamedSummariser | None = None  # the model of the setting `summary_model`
    interactive: bool = True
    holds_window: bool = False


@dataclass(frozen=True, slots=True)
class SessionWish:
    """What a session is opened with, and what stands for what was left out."""

    project: str | Path = "."
    _: KW_ONLY

    # the request
    model: str | Model = ""
    system: Content = ""
    tools: Sequence[Mapping[str, Any]] = ()
    context: Content = ""
    options: Mapping[str, Any] | None = None

    # which session
    resume: str = ""
    on_held: Literal["refuse", "fork"] = "refuse"
    private: bool = False

    # where, and in which world
    root: Path | None = None  # of the project, where it is not the one around the folder
    home: str | Path | None = None
    environ: Mapping[str, str] | None = None
    settings: Settings | None = None
    clock: Clock | None = None
    say: Say = say_nothing
    new_id: Callable[[], str] = lambda: str(uuid4())

    # what it may use
    when_added: Layers = layers.WHEN_ADDED
    before_a_request: Layers = layers.BEFORE_A_REQUEST
    way_back: WayBack = field(default_factory=WayBack)
    tool_limits: Mapping[str, int | None] | None = None
    repeatable: frozenset[str] = frozenset()
    guards: MakeGuard = NoTools
    around: Around | None = None
    memories: Memories | None = None
    selector: Model | None = None
    summariser: Model | None = None
    interactive: bool = True
    holds_window: bool = False  # no request is given out that is known to be too long
    known: Mapping[str, str] = field(init=False)

    def __post_init__(self) -> None:
        known = environment() if self.environ is None else self.environ
        object.__setattr__(self, "known", known)

    @property
    def name(self) -> str:
        return self.model if isinstance(self.model, str) else self.model.name

    def head(self, world: World) -> Head:
        """What a request is to carry; the provider's own clearing too, where that is wanted."""
        names = (str(tool.get("name", "")) for tool in self.tools)
        options = managed_options(world, names, self.options or {})
        return Head(self.name, self.system, self.tools, self.context, options)

    def parts(self) -> SessionParts:
        """The session's parts, its transcript open and locked."""
        cwd = Path(os.path.abspath(self.project))
        root = self.root or places.canonical_root(cwd)
        home = Path(self.home) if self.home is not None else places.home(self.known)
        settings = self.settings or self._loaded(home, root)
        library = Library.of(Project(home, root, cwd, self.known, settings), claim=not self.private)
        world = World(
            self.clock or SystemClock(),
            NoDisk(),
            Flags(self.known, home=home, root=root, settings=settings),
            settings,
            None if isinstance(self.model, str) else self.model,
            say=self.say,
            around=self.around,
            model_name=self.name,
            betas=tuple((self.options or {}).get("betas", ())),
            learned_window=learned_window(home, self.name),
            tool_limits={**BOUND_THEMSELVES, **(self.tool_limits or {})},
            way_back=self.way_back,
            repeatable=self.repeatable,
        )
        named, summariser = self._summarisers(world)
        budget = None if self.private else Budget(Folder(home), settings, world.clock)
        begun = library.begin(self.resume, self.on_held, self.private)
        kept = replace(settings, context_policy=self._policy(begun.transcript.view, world))
        conversation = ConversationParts(
            begun.log,
            begun.disk,
            begun.transcript.view,
            replace(world, disk=begun.disk, summariser=summariser, settings=kept),
            when_added=self.when_added,
            before_a_request=self.before_a_request,
            new_id=self.new_id,
            budget=budget,
            guards=self.guards,
            agent_log=_no_log if self.private else partial(library.agent_log, begun.id),
            home=None if self.private else home,
        )
        memories = None if self.private else self.memories
        return SessionParts(
            begun,
            library,
            conversation,
            root,
            cwd,
            memories,
            self.selector,
            named,
            self.interactive,
            self.holds_window,
        )

    def _policy(self, view: View, world: World) -> str:
        """How this context is kept small: as the session began, or as the settings say. What a
        model cannot read back is not sealed."""
        if view.started is not None:
            sealed = any(item.reason in (SEALED, FOLDED) for item in view.items)
            return view.started.policy or ("collapse" if sealed else "classic")
        reads_back = world.way_back.tool in (tool.get("name") for tool in self.tools)
        return world.settings.context_policy if reads_back else "classic"

    def _loaded(self, home: Path, root: Path) -> Settings:
        loaded = load(self.known, home=home, root=root)
        for problem in loaded.problems:
            self.say(Notice("settings", str(problem), "warning"))
        return loaded.settings

    def _summarisers(self, world: World) -> tuple[NamedSummariser | None, Summariser | None]:
        """Who writes summaries, where it is not the session's own model: one that was handed
        in, which is the caller's to close, or the one that a setting names."""
        model = self.summariser
        if model is None:
            named = summariser_for(world.settings, self.known, world.window, world.clock)
            return named, named

        async def given() -> Model:
            return model

        return None, given


def _no_log(agent: str) -> NoLog:
    del agent
    return NoLog()
