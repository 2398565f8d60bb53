"""What a session with agents has on top: its crew, and what its model is told of it.

The types that are not built in are listed once, and again only where they changed or the list has
left the context. Behind a compaction the agents that there are come back, as they stand then.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial

import anyio

from reverie.agent.mail.messages import LEAD, AgentMessage
from reverie.agent.mail.remote import Bridge, RemoteMail
from reverie.agent.subagents.pool import AgentPool
from reverie.agent.subagents.registry import AgentType, AgentTypes, find_types
from reverie.agent.subagents.spawn import LEADS_OWN, AgentContext
from reverie.agent.tools import agent_tool, crew_send_tool, send_tool
from reverie.errors import NotAvailable
from reverie.session.attachments import attachment_texts, build_attachment
from reverie.session.rules import ProjectRules
from reverie.session.session import Session
from reverie.settings.catalog import Settings
from reverie.store.project import Project
from reverie.toolbox.tool import Registry, Tool
from reverie.toolbox.toolbox import Toolbox
from reverie.transcript.records import Attached
from reverie.transcript.view import View
from reverie.world import Model, Notice, Say

TYPES = "agent-types"
AGENTS = "agents"
MAX_LISTED = 20


def lead_tools(crew: Callable[[], AgentPool]) -> tuple[Tool, Tool]:
    """Agent and SendMessage, for the session that leads."""

    class Lead:
        """The lead's crew and the way out, once they are there."""

        def deliver(self, letter: AgentMessage) -> tuple[str, ...]:
            return crew().send(letter)

        async def send(self, letter: AgentMessage) -> str:
            abroad = crew().abroad
            if abroad is None:
                raise NotAvailable("no other session is reached from here", where=letter.to[:80])
            return await abroad.send(letter)

        def now(self) -> float:
            return crew().ground.clock.now()

        def stands(self, name: str) -> str:
            return crew().stands(name)

    lead = Lead()
    return agent_tool(crew), send_tool(LEAD, lead.deliver, lead, lead.now, lead.stands)


def types_here(place: Project, tools: Registry, model: str, say: Say) -> AgentTypes:
    """The types of agents in a place."""
    names = [name for name in tools.names if name not in LEADS_OWN]
    return find_types(place.home, place.worktree, names, model, say)


@asynccontextmanager
async def crew_of(
    session: Session,
    model: Model,
    box: Toolbox,
    place: Project,
    types: AgentTypes,
    held: ProjectRules | None = None,
) -> AsyncGenerator[AgentPool]:
    """The crew of a session; leaving ends every agent in it."""
    world = session.world
    policy = box.policy
    ground = AgentContext(
        session.id,
        place,
        None if session.budget is None else session.library,
        box.registry,
        policy.ground,
        policy.rules,
        policy.mode,
        world.clock,
        world.flags,
        world.say,
        session.budget,
        held,
    )
    crew = AgentPool(session, model, lambda: box, ground, lambda: types, crew_send_tool)
    crew.abroad = RemoteMail(session.id, place.home, crew.deliver)
    warned = partial(_warn, world.say)
    try:
        crew.abroad.bridge = await _bridge(session.id, ground.settings, warned)
        if not session.interactive or ground.library is None:
            yield crew  # it can write to others; nobody writes to what is over soon
            return
        async with crew.abroad.listening(warned):
            yield crew
    finally:
        await crew.aclose()
        if crew.abroad.bridge is not None:
            with anyio.CancelScope(shield=True):
                await crew.abroad.bridge.aclose()


async def _bridge(session: str, settings: Settings, warned: Callable[[str], None]) -> Bridge | None:
    """The bridge that the settings name; where it cannot be had, that is said."""
    if not settings.bridge_url:
        return None
    from reverie.agent.mail.remote import NatsBridge

    try:
        return await NatsBridge.connected(settings.bridge_url, settings.bridge_name or session)
    except NotAvailable as error:
        warned(str(error))
        return None


def _warn(say: Say, text: str) -> None:
    say(Notice("mail", text, "warning"))


class AgentStatusSource:
    """What the model has to know of agents and no longer or not yet does, as a source of
    attachments."""

    def __init__(self, crew: Callable[[], AgentPool | None]) -> None:
        self._crew = crew

    def at_turn(self, view: View) -> Sequence[Attached]:
        crew = self._crew()
        return (
            ()
            if crew is None
            else (*_types_listed(crew.types().own, view), *_agents_listed(crew, view))
        )

    def at_round(self) -> Sequence[Attached]:
        return ()


def _types_listed(own: Sequence[AgentType], view: View) -> tuple[Attached, ...]:
    if not own:
        return ()
    known = {line for text in attachment_texts(view, TYPES) for line in text.splitlines()}
    fresh = [one.line for one in own if one.line not in known]
    if not fresh:
        return ()
    return (
        build_attachment(TYPES, "\n".join(("Types of agents beside general and explore:", *fresh))),
    )


def _agents_listed(crew: AgentPool, view: View) -> tuple[Attached, ...]:
    """Behind a compaction, once: who works, and who has."""
    if not view.boundary or not crew.members:
        return ()
    if any(True for _ in attachment_texts(view, AGENTS)):
        return ()
    lines = crew.listed().splitlines()[-MAX_LISTED:]
    return (build_attachment(AGENTS, "\n".join(("Agents of this session:", *lines))),)
