"""The tools by which a model has agents: Agent starts one, SendMessage writes to one.

Neither asks for permission: what an agent does is judged call by call, like the lead's own calls.
They stand behind all other tools, so that a session without them sends the same bytes as before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, cast

from reverie.agent.mail.abroad import BRIDGE, SOCKET
from reverie.agent.mail.letters import LEAD, Letter, LetterKind
from reverie.agent.subagents.crew import Crew, Wanted
from reverie.agent.subagents.roster import AgentMode
from reverie.errors import NotAvailable
from reverie.tools.tool import Input, Output, Tool, ToolContext

AGENT = "Agent"
SEND = "SendMessage"
_KINDS = ["message", "shutdown_request", "shutdown_response", "plan_approval_response"]
_AGENT_SCHEMA = {
    "type": "object",
    "properties": {
        "prompt": {
            "type": "string",
            "description": "The whole task: the agent knows nothing else, but for a fork",
        },
        "description": {"type": "string", "description": "The task in three to five words"},
        "type": {"type": "string", "description": "general (default), explore, or one listed"},
        "mode": {
            "type": "string",
            "enum": ["foreground", "background", "fork", "teammate"],
            "description": "foreground (default): wait for the result. background: go on, the "
            "result comes as a message. fork: background, and it knows this conversation. "
            "teammate: its own process, stays until it is shut down",
        },
        "name": {"type": "string", "description": "A short name to write to it by"},
        "worktree": {
            "type": "boolean",
            "description": "Work in a git worktree of its own, for changes that you merge",
        },
        "plan": {
            "type": "boolean",
            "description": "A teammate that changes nothing until you approve its plan",
        },
    },
    "required": ["prompt", "description"],
    "additionalProperties": False,
}
_SEND_SCHEMA = {
    "type": "object",
    "properties": {
        "to": {
            "type": "string",
            "description": "An agent's name, lead, * for all, uds:SOCKET or bridge:ID",
        },
        "message": {"type": "string"},
        "summary": {"type": "string", "description": "The message in five to ten words"},
        "type": {"type": "string", "enum": _KINDS, "description": "message if left out"},
        "approve": {"type": "boolean", "description": "Yes or no, in a response"},
    },
    "required": ["to", "message"],
    "additionalProperties": False,
}


class WayOut(Protocol):
    """Where letters to other sessions go."""

    async def send(self, letter: Letter) -> str:
        """Deliver to `uds:…` or `bridge:…`; what became of it."""
        ...


def agent_tool(crew: Callable[[], Crew]) -> Tool:
    """Agent, for the lead of a crew."""

    async def action(value: Input, context: ToolContext) -> Output:
        del context
        lead = crew()
        mode = cast("AgentMode", value.get("mode", "foreground"))
        if not lead.session.interactive and mode == "background":
            mode = "foreground"  # nobody is there when it would be over
        wanted = Wanted(
            str(value["prompt"]),
            " ".join(str(value["description"]).split())[:120],
            str(value.get("type") or "general"),
            str(value.get("name") or ""),
            mode,
            bool(value.get("worktree")),
            bool(value.get("plan")),
        )
        return Output(await lead.start(wanted))

    return Tool(
        AGENT,
        "Gives a task to another agent, which works with a context of its own and returns only its "
        "result: for searches that read much, for a second look, for work beside yours. Several "
        "calls in one answer run at the same time. Agents cannot have agents.",
        _AGENT_SCHEMA,
        action,
        read_only=True,
        waits=True,
    )


def send_tool(
    sender: str,
    send: Callable[[Letter], tuple[str, ...]],
    abroad: WayOut | None,
    now: Callable[[], float],
    stands: Callable[[str], str] = str,
) -> Tool:
    """SendMessage, for one agent: nobody can send in another's name."""

    async def action(value: Input, context: ToolContext) -> Output:
        del context
        letter = Letter(
            sender,
            str(value["to"]).strip(),
            str(value["message"]),
            " ".join(str(value.get("summary", "")).split())[:200],
            cast("LetterKind", value.get("type", "message")),
            value.get("approve"),
            at=now(),
        )
        if letter.to.startswith((SOCKET, BRIDGE)):
            if abroad is None:
                raise NotAvailable("only a lead writes to other sessions", where=letter.to[:80])
            return Output(await abroad.send(letter))
        names = send(letter)
        told = ", ".join(map(stands, names))
        return Output(f"Sent to {told}" if names else "There is nobody to send to")

    return Tool(
        SEND,
        "Sends a message to another agent of this session. It is read at that agent's next tool "
        "round; an answer comes to you the same way.",
        _SEND_SCHEMA,
        action,
        read_only=True,
    )


def crew_send_tool(crew: Crew, name: str, abroad: WayOut | None = None) -> Tool:
    """SendMessage of an agent in the lead's process, or of the lead itself."""
    out = abroad if name == LEAD else None
    return send_tool(name, crew.send, out, crew.ground.clock.now, crew.stands)
