"""What a session with agents has on top: its crew, and what its model is told of it.

The types that are not built in are listed once, and again only where they changed or the list has
left the context. Behind a compaction the agents that there are come back, as they stand then.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager

from reverie.agent.mail.letters import LEAD, Letter
from reverie.agent.place import Place
from reverie.agent.subagents.crew import Crew
from reverie.agent.subagents.hiring import LEADS_OWN, Ground
from reverie.agent.subagents.tools import Abroad, agent_tool, crew_send_tool, send_tool
from reverie.agent.subagents.types import AgentType, AgentTypes, find_types
from reverie.session.attachments import announced, reminded
from reverie.session.session import Session
from reverie.tools import Registry, Tool, Toolbox
from reverie.transcript.records import Attached
from reverie.transcript.view import View
from reverie.world import Model, Say

TYPES = "agent-types"
AGENTS = "agents"
MAX_LISTED = 20


def lead_tools(crew: Callable[[], Crew], abroad: Callable[[], Abroad | None]) -> tuple[Tool, Tool]:
    """Agent and SendMessage, for the session that leads."""

    def send(letter: Letter) -> tuple[str, ...]:
        return crew().send(letter)

    class Late:
        async def send(self, letter: Letter) -> str:
            found = abroad()
            if found is None:
                from reverie.errors import NotAvailable

                raise NotAvailable("this session is not reached from others", where=letter.to[:80])
            return await found.send(letter)

    return agent_tool(crew), send_tool(LEAD, send, Late(), lambda: crew().ground.clock.now())


def types_here(place: Place, tools: Registry, model: str, say: Say) -> AgentTypes:
    """The types of agents in a place."""
    names = [name for name in tools.names if name not in LEADS_OWN]
    return find_types(place.home, place.top, names, model, say)


@asynccontextmanager
async def crew_of(
    session: Session, model: Model, box: Toolbox, place: Place, types: AgentTypes
) -> AsyncGenerator[Crew]:
    """The crew of a session; leaving ends every agent in it."""
    world = session.world
    policy = box.policy
    ground = Ground(
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
    )
    crew = Crew(session, model, lambda: box, ground, lambda: types, crew_send_tool)
    try:
        yield crew
    finally:
        await crew.aclose()


def told_of(
    types: Callable[[], AgentTypes], crew: Callable[[], Crew | None], view: View
) -> Sequence[Attached]:
    """What the model has to know of agents, and no longer or not yet does."""
    return (*_types_listed(types().own, view), *_agents_listed(crew(), view))


def _types_listed(own: Sequence[AgentType], view: View) -> tuple[Attached, ...]:
    if not own:
        return ()
    known = {line for text in announced(view, TYPES) for line in text.splitlines()}
    fresh = [one.line for one in own if one.line not in known]
    if not fresh:
        return ()
    return (reminded(TYPES, "\n".join(("Types of agents beside general and explore:", *fresh))),)


def _agents_listed(crew: Crew | None, view: View) -> tuple[Attached, ...]:
    """Behind a compaction, once: who works, and who has."""
    if crew is None or not view.boundary or not crew.members:
        return ()
    if any(True for _ in announced(view, AGENTS)):
        return ()
    lines = crew.listed().splitlines()[-MAX_LISTED:]
    return (reminded(AGENTS, "\n".join(("Agents of this session:", *lines))),)
