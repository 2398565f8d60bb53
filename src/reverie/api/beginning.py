"""From what a caller says to an open session: where, whose memory, which tools, who works for it.

Nothing is asked and nothing billed here. What was asked for and cannot be had is said at once, as a
warning that names the remedy; the session begins without it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from reverie import layers
from reverie.api.memory import Memory
from reverie.api.roles import REPEATABLE, Role, roles_of
from reverie.errors import InvalidInput
from reverie.layers.own import OwnLayer, pairs
from reverie.light import dataclass
from reverie.models import ClientModel, RulesModel, output_limit
from reverie.providers.capabilities import PLAIN, tabled
from reverie.session.conversation import Layers
from reverie.session.opening import Content, SessionWish
from reverie.session.session import Session
from reverie.settings import Settings
from reverie.store.project import Project
from reverie.tools.toolset import READ_BACK, Toolset, reading_back
from reverie.transcript.tokens import SUFFIX
from reverie.wire.reading import value_of
from reverie.world import Model, Notice, Say, WayBack, notice_listener

if TYPE_CHECKING:
    from reverie.api.session import SessionArguments
    from reverie.memory.instructions import InstructionFile
    from reverie.store.memories import Memories
    from reverie.tools.sealed import SealedCalls

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
class Begun:
    """An open session, and what its public face needs beside it."""

    session: Session
    worker: Model
    client: ClientModel | None
    memory: Memory | None
    memories: Memories | None
    via: str  # the tool that reads back; "" where there is none
    added: bool  # whether it was added here, so that the caller does not know it
    settings: Settings
    limit: int


async def begun(wanted: SessionArguments) -> Begun:
    """Open the session; what was opened for it is closed where that fails."""
    opening = _Opening.of(wanted)
    try:
        session = await Session.begun(opening.wish())
    except BaseException:
        if opening.memories is not None:
            opening.memories.close()
        raise
    worker = opening.worker
    client = worker if isinstance(worker, ClientModel) else None
    limit = output_limit(worker.capabilities, opening.settings)
    return Begun(
        session,
        worker,
        client,
        opening.memory,
        opening.memories,
        opening.via,
        opening.added,
        opening.settings,
        limit,
    )


@dataclass(frozen=True, slots=True)
class _Opening:
    """What was found out of the arguments."""

    wanted: SessionArguments
    say: Say
    ground: Project
    cwd: Path
    settings: Settings
    worker: Model
    memory: Memory | None
    memories: Memories | None
    tools: tuple[Mapping[str, Any], ...]
    roles: Mapping[str, Role]
    via: str
    added: bool

    @classmethod
    def of(cls, wanted: SessionArguments) -> _Opening:
        if wanted.policy not in POLICIES:
            do = "It is collapse, classic or off"
            raise InvalidInput("there is no such policy", where=str(wanted.policy)[:80], do=do)
        say = notice_listener(wanted.on_notice)
        ground = Project.at(
            wanted.project, home=wanted.home, user=wanted.user or "", settings=wanted.settings
        )
        for problem in ground.problems:
            say(Notice("settings", str(problem), "warning"))
        tools = tuple(described(tool) for tool in flat(wanted.tools))
        roles = roles_of(tools, wanted.roles)
        settings = _settings(ground.settings, wanted.policy)
        worker = _worker(wanted, ground, settings, say)
        memory = _memory(wanted)
        via = next((name for name, role in roles.items() if role == "read_back"), "")
        added = memory is not None and not via and not wanted.private
        if added:
            tools = (*tools, *Toolset([reading_back(None)]).anthropic())
            via = READ_BACK
        if not via and settings.context_policy == "collapse":
            say(Notice("session", NO_WAY_BACK, "warning"))
            settings = replace(settings, context_policy="classic")
        if not wanted.private:
            ground.claim()
        memories = _memories(memory, say, private=wanted.private)
        if memories is not None and isinstance(worker, RulesModel):
            say(Notice("session", BY_RULES, "warning"))
        cwd = ground.cwd
        return cls(
            wanted,
            say,
            ground,
            cwd,
            settings,
            worker,
            memory,
            memories,
            tools,
            roles,
            via,
            added,
        )

    def wish(self) -> SessionWish:
        wanted, ground = self.wanted, self.ground
        system, context = self._head()
        own = [name for name, role in (wanted.roles or {}).items() if role == "read"]
        reads = next((name for name, role in self.roles.items() if role == "read"), "")
        limits: dict[str, int | None] = dict.fromkeys([self.via] if self.via else own)
        when_added, before = _layers(wanted.layers, wanted.policy)
        return SessionWish(
            self.cwd,
            model=self.worker,
            system=system,
            tools=self.tools,
            context=context,
            options=wanted.options,
            resume=wanted.resume,
            private=wanted.private,
            root=ground.root,
            home=ground.home,
            environ=ground.environ,
            settings=self.settings,
            say=self.say,
            when_added=when_added,
            before_a_request=before,
            way_back=WayBack(self.via, reader=reads),
            tool_limits=limits,
            repeatable=frozenset(n for n, role in self.roles.items() if role in REPEATABLE),
            memories=self.memories,
            selector=self._selector(),
            holds_window=True,
        )

    def _selector(self) -> Model | None:
        """The model that selects memories, where a setting names one."""
        if self.memories is None:
            return None
        from reverie.session.recall.select import selector_for

        return selector_for(self.settings, self.ground.environ)

    def _head(self) -> tuple[Content, str]:
        """The system prompt with its section about memory, and what stands before the first
        message: instruction files, the index, memories that are sent whole."""
        system: Content = self.wanted.system
        if self.memories is None:
            return system, ""
        from reverie.session.context import gather, memory_section
        from reverie.session.recall.young import young_memories

        folder, settings = self.memories.folder, self.settings
        section = memory_section(settings, folder, by_itself=True, say=self.say)
        scanned = folder.scan()
        found = gather(
            self.cwd,
            settings,
            home=self.ground.home,
            environ=self.ground.environ,
            memory=folder,
            young=(*self._around(), *young_memories(self.memories, settings, scanned)),
            scanned=scanned,
            say=self.say,
        )
        if isinstance(system, str):
            return "\n\n".join(filter(None, (system.rstrip(), section))), found.text
        return [*system, {"type": "text", "text": section}], found.text

    def _around(self) -> Iterator[InstructionFile]:
        """The indexes of the memories around this one, and what of them is sent whole."""
        from reverie.session.context import index_files
        from reverie.session.open_memory import OpenMemory
        from reverie.session.recall.young import young_memories

        parts = self.memory.__project__.outwards()[1:] if self.memory is not None else ()
        for part in parts:
            if part.has_memory:
                with OpenMemory.of(part, say=self.say) as opened:
                    wider = opened.store
                    scanned = wider.folder.scan()
                    yield from index_files(wider.folder, scanned=scanned)
                    yield from young_memories(wider, self.settings, scanned)


# --- who works behind it


def _worker(wanted: SessionArguments, ground: Project, settings: Settings, say: Say) -> Model:
    """Who does what runs behind the conversation: the caller's client, its model, or rules."""
    model = wanted.model
    name = model if isinstance(model, str) else model.name
    if not name and wanted.resume:
        name = _recorded_name(wanted.resume, ground)
    if wanted.client is not None:
        return ClientModel.of(wanted.client, name, settings)
    if not isinstance(model, str):
        return model
    if name == "embedded":
        from reverie.embedded import EmbeddedModel

        return EmbeddedModel(settings)
    if not name:
        raise InvalidInput("no model is named", do='Say model="claude-opus-5-5", or another name')
    if tabled(name) is PLAIN and not name.endswith(SUFFIX):
        size = settings.fallback_window
        told = f"the model {name!r} is not known: {size:,} tokens are assumed as its window"
        do = 'Say settings={"context_window": ...} where it is another'
        say(Notice("session", f"{told}. {do}", "warning"))
    return RulesModel(name, settings)


def _recorded_name(session: str, ground: Project) -> str:
    """The model that a recorded session was held with."""
    from reverie.session.library import Library

    library = Library.find(ground)
    if library is None:
        return ""
    try:
        head = library.read(session).view.head
    finally:
        library.close()
    return head.model if head is not None else ""


# --- memory


def _memory(wanted: SessionArguments) -> Memory | None:
    """The memory that is meant, with its address; nothing is opened."""
    if isinstance(wanted.memory, Memory):
        return wanted.memory
    if not wanted.memory:
        return None
    return Memory(
        wanted.project,
        user=wanted.user or "",
        home=wanted.home,
        settings=wanted.settings,
        on_notice=wanted.on_notice,
    )


def _memories(memory: Memory | None, say: Say, *, private: bool) -> Memories | None:
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


# --- tools, layers, settings


def flat(tools: Sequence[object] | Toolset) -> list[object]:
    """Tools one by one; a `Toolset` stands for those in it."""
    if isinstance(tools, Toolset):
        return list(tools.anthropic())
    return [one for tool in tools for one in (flat(tool) if isinstance(tool, Toolset) else [tool])]


def described(tool: object) -> dict[str, Any]:
    """A tool as a session keeps it, whichever API it was described for."""
    value = value_of(tool)
    if value.get("type") != "function":
        return value
    about = cast("dict[str, Any]", value.get("function") or value)
    made: dict[str, Any] = {"name": about.get("name")}
    if about.get("description"):
        made["description"] = about["description"]
    made["input_schema"] = about.get("parameters") or {"type": "object", "properties": {}}
    return {**made, "strict": True} if about.get("strict") is True else made


def _layers(given: Sequence[OwnLayer] | None, policy: str) -> tuple[Layers, Layers]:
    """What runs when something is added, and before a request."""
    if given is not None:
        return (), pairs(given)
    if policy == "off":
        return (), ()
    return layers.WHEN_ADDED, layers.BEFORE_A_REQUEST


def _settings(settings: Settings, policy: str) -> Settings:
    if policy in ("collapse", "classic"):
        return replace(settings, context_policy=policy)
    return settings


def toolset(begun: Begun) -> Toolset:
    """The tools that a session answers itself."""
    session = begun.session
    if not begun.via or session.budget is None:  # a private session has nothing stored
        return Toolset()
    from reverie.tools.sealed import SealedCalls

    sealed = SealedCalls(lambda: session.view, session.library.folder, session.id)
    return Toolset([reading_back(_Transcript(sealed), begun.via, begun.settings)])


@dataclass(frozen=True, slots=True)
class _Transcript:
    """What left a session's context, found again in its transcript."""

    sealed: SealedCalls

    def find(self, wanted: str) -> Any:
        from reverie.api.originals import Original

        found = self.sealed.look(wanted)
        if found is None:
            return None
        title = f"{found.title}: {found.warning}" if found.warning else found.title
        return Original(title, found.text)
