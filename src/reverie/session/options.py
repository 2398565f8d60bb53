"""What a session is opened with, and what becomes of it.

One value carries what somebody wants, from a caller's arguments to the open transcript: `resolve`
finds the rest out of what a caller says, `begin` opens. Nothing is asked, nothing billed and
nothing recorded here. What was asked for and cannot be had is said at once, as a warning that names
the remedy; the session begins without it.

The head is what a request carries besides the conversation. A resumed session sends the head that
was recorded; only a model asked for anew and tools that no longer exist change it, and both are
announced.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, cast
from uuid import uuid4

import reverie
from reverie.errors import InvalidInput
from reverie.layers.collapse.lines import FOLDED, SEALED
from reverie.layers.custom import OwnLayer, pairs
from reverie.layers.microcompaction import managed_options
from reverie.layers.order import BEFORE_A_REQUEST, WHEN_ADDED
from reverie.models import BackgroundModel, ClientModel
from reverie.observer import SystemClock
from reverie.providers.capabilities import PLAIN, table_capabilities
from reverie.session.budget import Budget
from reverie.session.compaction import NamedSummariser, summariser_for
from reverie.session.conversation import Layers
from reverie.session.library import NoDisk, OpenTranscript, SessionLibrary
from reverie.settings.catalog import Settings
from reverie.store.files import Folder
from reverie.store.lists import learned_window
from reverie.store.project import Project
from reverie.toolbox.tool import MakeGuard, NoTools
from reverie.toolbox.toolset import (
    READ_BACK,
    REPEATABLE,
    Toolset,
    describe_tool,
    flat,
    reading_back,
    roles_of,
)
from reverie.transcript.blocks import dump, elements
from reverie.transcript.messages import SUFFIX
from reverie.transcript.records import HeadSet
from reverie.transcript.view import View
from reverie.world import (
    BOUND_THEMSELVES,
    Clock,
    CompactionHooks,
    Model,
    Notice,
    ReadBackHint,
    Say,
    Summariser,
    World,
    notice_listener,
    say_nothing,
)

if TYPE_CHECKING:
    from reverie import Memory
    from reverie.store.memory_store import MemoryStore

Content = str | Sequence[Mapping[str, Any]]
POLICIES = ("", "collapse", "classic", "off")
BY_RULES = (
    "no client was given, so notes, summaries and memory are made by fixed rules on this machine, "
    "free. Give client= (your SDK client, or an async function) to have the model do it"
)
NO_WAY_BACK = (
    "collapse needs a tool to read back with, so the classic policy is used. Say memory=True, or "
    "offer reverie.tools() among tools="
)


@dataclass(frozen=True, slots=True)
class RequestHead:
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


def resumed_head(recorded: HeadSet, wanted: RequestHead) -> HeadSet | None:
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
class SessionOptions:
    """What a session is opened with, and what stands for what was left out."""

    project: str | os.PathLike[str] = "."
    """The folder whose sessions and memory it belongs to, or a name."""
    _: KW_ONLY
    model: str | Model = ""
    """A name, or a model; a name alone tells window and prices and never bills."""
    client: Any = None
    """An SDK's client, or a function of one request: does background work, and `ask`."""
    memory: bool | Memory | None = None
    """True is the whole memory of this project and user."""
    system: str | Sequence[Mapping[str, Any]] = ""
    """The system prompt."""
    tools: Sequence[object] | Toolset = ()
    """Tools, described for any of the three APIs."""
    roles: Mapping[str, str] | None = None
    """What tools are for, by name; else it is guessed."""
    policy: str = ""
    """`collapse`, `classic` or `off`; else what the settings say."""
    layers: Sequence[OwnLayer] | None = None
    """A policy of the caller's own."""
    options: Mapping[str, Any] | None = None
    """Options of each request: `max_tokens`, `thinking`, ..."""
    resume: str = ""
    """The id of a session to go on with."""
    user: str = ""
    """A part of the project, for one user."""
    private: bool = False
    """Whether nothing is recorded."""
    home: str | os.PathLike[str] | None = None
    """Where files lie, in place of `REVERIE_HOME` and `~/.reverie`."""
    settings: Settings | Mapping[str, object] | None = None
    """All settings, or some by their names on top of those found."""
    on_notice: Callable[[Notice], object] | None = None
    """Is handed each notice; without it they are logged."""

    # What `resolve` finds out of the above, and whoever opens one for itself says

    place: Project | None = None
    """The project itself; else it is found by `project`, `user`, `home` and `settings`."""
    environ: Mapping[str, str] | None = None
    """The environment, in place of the process's own."""
    on_held: Literal["refuse", "fork"] = "refuse"
    """What to do with a session that another process holds."""
    context: Content = ""
    """What stands before the first message."""
    say: Say = say_nothing
    """Where notices go."""
    clock: Clock | None = None
    """The time, in place of the system's."""
    new_id: Callable[[], str] = lambda: str(uuid4())
    """Makes the ids of entries and agents."""
    when_added: Layers = WHEN_ADDED
    """The layers that run when something is added."""
    before_a_request: Layers = BEFORE_A_REQUEST
    """The layers that run before a request."""
    way_back: ReadBackHint = field(default_factory=ReadBackHint)
    """How the model reads back what left the context."""
    tool_limits: Mapping[str, int | None] | None = None
    """Characters of a tool's result, where they differ from the setting."""
    repeatable: frozenset[str] = frozenset()
    """Tools whose results can be had again."""
    guards: MakeGuard = NoTools
    """What background agents may do."""
    around: CompactionHooks | None = None
    """Runs around a compaction."""
    memories: MemoryStore | None = None
    """The memory, open."""
    selector: Model | None = None
    """The model that selects memories, where it is another."""
    summariser: Model | None = None
    """The model that writes summaries, where it is another; the caller closes it."""
    interactive: bool = True
    """Whether a person is there."""
    holds_window: bool = False
    """Whether no request is given out that is known to be too long."""
    ends_turns: bool = False
    """Whether the user's words end the turn before, and closing the last one."""
    reads_back: bool = False
    """Whether the tool that reads back was added here, so that the caller does not know it."""

    @property
    def model_name(self) -> str:
        return self.model if isinstance(self.model, str) else self.model.name

    def head(self, world: World) -> RequestHead:
        """What a request is to carry; the provider's own clearing too, where that is wanted."""
        tools = cast("Sequence[Mapping[str, Any]]", self.tools)
        names = (str(tool.get("name", "")) for tool in tools)
        options = managed_options(world, names, self.options or {})
        return RequestHead(self.model_name, self.system, tools, self.context, options)

    def find_project(self) -> Project:
        """Find the project, and say what is wrong with its settings."""
        if self.place is not None:
            return self.place
        found = Project.at(
            self.project,
            home=self.home,
            user=self.user or "",
            environ=self.environ,
            settings=self.settings,
        )
        for problem in found.problems:
            self.say(Notice("settings", str(problem), "warning"))
        return found

    # --- from what a caller says

    def resolve(self) -> SessionOptions:
        """Find out what a caller left out: where, whose memory, which tools, who works for it."""
        if self.policy not in POLICIES:
            do = "It is collapse, classic or off"
            raise InvalidInput("there is no such policy", where=str(self.policy)[:80], do=do)
        say = notice_listener(self.on_notice)
        project = replace(self, say=say).find_project()
        tools = tuple(describe_tool(tool) for tool in flat(self.tools))
        roles = roles_of(tools, self.roles)
        settings = project.settings
        if self.policy in ("collapse", "classic"):
            settings = replace(settings, context_policy=self.policy)
        worker = _worker(self, project, settings, say)
        memory = self._memory()
        via = next((name for name, role in roles.items() if role == "read_back"), "")
        added = memory is not None and not via and not self.private
        if added:
            tools = (*tools, *Toolset([reading_back(None)]).anthropic())
            via = READ_BACK
        if not via and settings.context_policy == "collapse":
            say(Notice("session", NO_WAY_BACK, "warning"))
            settings = replace(settings, context_policy="classic")
        if not self.private:
            project.claim()
        memories = _memories(memory, say, private=self.private)
        if memories is not None and isinstance(worker, BackgroundModel):
            say(Notice("session", BY_RULES, "warning"))
        project = replace(project, settings=settings)
        system, context, selector = self.system, "", None
        if memories is not None:
            from reverie.session.context import remembering_head
            from reverie.session.recall.selection import selector_for

            wider = memory.__project__.outwards()[1:] if memory is not None else ()
            system, context = remembering_head(system, project, memories, wider, say)
            selector = selector_for(settings, project.environ)
        own = [name for name, role in (self.roles or {}).items() if role == "read"]
        reads = next((name for name, role in roles.items() if role == "read"), "")
        when_added, before_a_request = _layers(self.layers, self.policy)
        return replace(
            self,
            model=worker,
            memory=memory,
            system=system,
            tools=tools,
            place=project,
            context=context,
            say=say,
            when_added=when_added,
            before_a_request=before_a_request,
            way_back=ReadBackHint(via, reader=reads),
            tool_limits=dict.fromkeys([via] if via else own),
            repeatable=frozenset(n for n, role in roles.items() if role in REPEATABLE),
            memories=memories,
            selector=selector,
            holds_window=True,
            ends_turns=True,
            reads_back=added,
        )

    def _memory(self) -> Memory | None:
        """The memory that is meant, with its address; nothing is opened."""
        if not isinstance(self.memory, bool):
            return self.memory
        if not self.memory:
            return None
        return reverie.Memory(
            self.project,
            user=self.user or "",
            home=self.home,
            settings=self.settings,
            on_notice=self.on_notice,
        )

    # --- to an open transcript

    def begin(self) -> Begun:
        """Open and lock the transcript, last, when all else is known."""
        project = self.find_project()
        home, settings = project.home, project.settings
        library = SessionLibrary.of(project, claim=not self.private)
        world = World(
            self.clock or SystemClock(),
            NoDisk(),
            project.flags,
            settings,
            None if isinstance(self.model, str) else self.model,
            say=self.say,
            around=self.around,
            model_name=self.model_name,
            betas=tuple((self.options or {}).get("betas", ())),
            learned_window=learned_window(home, self.model_name),
            tool_limits={**BOUND_THEMSELVES, **(self.tool_limits or {})},
            way_back=self.way_back,
            repeatable=self.repeatable,
        )
        named, summariser = self._summarisers(world, project)
        budget = None if self.private else Budget(Folder(home), settings, world.clock)
        begun = library.begin(self.resume, self.on_held, self.private)
        kept = replace(settings, context_policy=self._context_policy(begun.transcript.view, world))
        world = replace(world, disk=begun.disk, summariser=summariser, settings=kept)
        return Begun(self, project, world, library, begun, budget, named)

    def _context_policy(self, view: View, world: World) -> str:
        """How this context is kept small: as the session began, or as the settings say. What a
        model cannot read back is not sealed."""
        if view.started is not None:
            sealed = any(item.reason in (SEALED, FOLDED) for item in view.items)
            return view.started.policy or ("collapse" if sealed else "classic")
        tools = cast("Sequence[Mapping[str, Any]]", self.tools)
        reads_back = world.way_back.tool in (tool.get("name") for tool in tools)
        return world.settings.context_policy if reads_back else "classic"

    def _summarisers(
        self, world: World, project: Project
    ) -> tuple[NamedSummariser | None, Summariser | None]:
        """Who writes summaries, where it is not the session's own model: one that was handed
        in, which is the caller's to close, or the one that a setting names."""
        model = self.summariser
        if model is None:
            named = summariser_for(world.settings, project.environ, world.window, world.clock)
            return named, named

        async def given() -> Model:
            return model

        return None, given


@dataclass(frozen=True, slots=True)
class Begun:
    """A session that is about to begin: its transcript open and locked, nothing recorded."""

    options: SessionOptions
    project: Project
    world: World
    library: SessionLibrary
    transcript: OpenTranscript
    budget: Budget | None
    summariser: NamedSummariser | None  # the model of the setting `summary_model`


# --- who works behind it


def _worker(options: SessionOptions, project: Project, settings: Settings, say: Say) -> Model:
    """Who does what runs behind the conversation: the caller's client, its model, or rules."""
    model = options.model
    name = options.model_name
    if not name and options.resume:
        name = _recorded_name(options.resume, project)
    if options.client is not None:
        return ClientModel.of(options.client, name, settings)
    if not isinstance(model, str):
        return model
    if name == "embedded":
        from reverie.embedded.model import EmbeddedModel

        return EmbeddedModel(settings)
    if not name:
        raise InvalidInput("no model is named", do='Say model="claude-opus-5-5", or another name')
    if table_capabilities(name) is PLAIN and not name.endswith(SUFFIX):
        size = settings.fallback_window
        told = f"the model {name!r} is not known: {size:,} tokens are assumed as its window"
        do = 'Say settings={"context_window": ...} where it is another'
        say(Notice("session", f"{told}. {do}", "warning"))
    return BackgroundModel(name, settings)


def _recorded_name(session: str, project: Project) -> str:
    """The model that a recorded session was held with."""
    library = SessionLibrary.find(project)
    if library is None:
        return ""
    try:
        head = library.read(session).view.head
    finally:
        library.close()
    return head.model if head is not None else ""


# --- memory


def _memories(memory: Memory | None, say: Say, *, private: bool) -> MemoryStore | None:
    """The memory, open; None where it is off or cannot be had, which is said."""
    if memory is None:
        return None
    from reverie.session.open_memory import session_memory

    project = memory.__project__
    off = "a private session leaves nothing behind" if private else project.settings.memory_off()
    if off:
        say(Notice("memory", f"there is no long-term memory in this session: {off}", "warning"))
        return None
    return session_memory(project, time.time, say)


# --- layers


def _layers(given: Sequence[OwnLayer] | None, policy: str) -> tuple[Layers, Layers]:
    """What runs when something is added, and before a request."""
    if given is not None:
        return (), pairs(given)
    if policy == "off":
        return (), ()
    return WHEN_ADDED, BEFORE_A_REQUEST
