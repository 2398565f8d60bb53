"""A session as an agent of one type: `reverie chat --agent NAME`.

It has its type's prompt and tools, and in place of the project's memory that of its type, whose
whole index stands in its prompt. There is no recall and no extraction: what it keeps, it writes.
"""

from __future__ import annotations

from reverie.agent.leading import types_here
from reverie.agent.memory import AgentMemory, open_agent_memory
from reverie.agent.subagents.types import AgentType
from reverie.light import dataclass
from reverie.store.project import Project
from reverie.tools import Registry
from reverie.world import Clock, Say


@dataclass(frozen=True, slots=True)
class Role:
    """What a session is, where it is an agent of some type."""

    tools: Registry
    type: AgentType | None = None
    system: str = ""
    memory: AgentMemory | None = None


def role_of(name: str, place: Project, tools: Registry, model: str, clock: Clock, say: Say) -> Role:
    """The role of that name; NotFound where there is no such type."""
    if not name:
        return Role(tools)
    found = types_here(place, tools, model, say).get(name)
    allowed = Registry([tool for tool in tools if found.allows(tool.name)])
    if found.memory is None:
        return Role(allowed, found, found.prompt)
    memory = open_agent_memory(found.name, found.memory, place, now=clock.now, say=say)
    section = "" if memory is None else f"\n{memory.section}"
    return Role(allowed, found, f"{found.prompt}{section}", memory)
