"""Tools an agent has on top: search, agents, messages.

SearchMemory and SearchSessions: the past of this project, searched by words.

They give passages with their source, best first, bounded in number and size: a small memory
whole, of a long text the part that has the words. What is found was written by others and stands
in a frame that it cannot close. They only read, and only this project's memory and sessions; of
the session that asks only what is sealed, for the rest is in its context.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, cast

from anyio import to_thread

from reverie.agent.mail.messages import LEAD, AgentMessage, LetterKind
from reverie.agent.mail.remote import BRIDGE, SOCKET
from reverie.agent.subagents.pool import AgentPool, AgentRequest
from reverie.agent.subagents.registry import AgentMode
from reverie.errors import NotAvailable
from reverie.recall.passages import PASSAGE, around
from reverie.session.recall.excerpts import describe_age
from reverie.session.recall.project_index import FileTimes, MemoryIndex
from reverie.store.fs import read_plain
from reverie.store.memory_store import MemoryStore
from reverie.store.recall.index import RecallHit
from reverie.text.safety import frame, neutralize_markup
from reverie.toolbox.tool import Action, Input, Tool, ToolContext, ToolOutput
from reverie.topics.entry import TopicFile
from reverie.topics.manifest import iso_time

SHOWN = 5
MAX = 20
MAX_LOOKED = 100
"""Turns looked at where some of the asking session's own may not be shown."""
SMALL = 2_000
"""Bytes of a memory that is shown whole."""


def recall_tools(
    memories: MemoryStore,
    found: Callable[[], MemoryIndex],
    sealed: Callable[[], frozenset[str]] = frozenset,
) -> tuple[Tool, Tool]:
    """The two tools over one project's index, which is asked for when it is needed. `sealed` are
    the messages of the asking session that are out of its context."""

    async def memory(value: Input, context: ToolContext) -> ToolOutput:
        index, now, query = found(), context.clock.now(), str(value["query"])
        hits = await to_thread.run_sync(
            lambda: index.search(query, now, k=_count(value)),
            abandon_on_cancel=True,
        )
        times = FileTimes(memories.folder, now, memories.history, index.alone)
        rows = await to_thread.run_sync(
            lambda: [_memory(index, hit, describe_age(times.at(hit.file), now)) for hit in hits]
        )
        whole = await to_thread.run_sync(lambda: [_small(index, hit) for hit in hits])
        parts = (around(hit.passage, query) for hit in hits)
        texts = [text or part for text, part in zip(whole, parts, strict=True)]
        more = "" if all(whole) else "Read a file for all of it."
        return _output(rows, hits, texts, context, more)

    async def sessions(value: Input, context: ToolContext) -> ToolOutput:
        index, now = found(), context.clock.now()
        own = context.stored.session if context.stored else ""
        gone, query, count = sealed(), str(value["query"]), _count(value)
        without = frozenset[str]() if gone else frozenset({own})
        every = await to_thread.run_sync(
            lambda: index.search(
                query, now, k=MAX_LOOKED if gone else count, kinds=("transcript",), without=without
            ),
            abandon_on_cancel=True,
        )
        hits = [hit for hit in every if hit.file != own or hit.message in gone][:count]
        rows = [_session(hit) for hit in hits]
        return _output(rows, hits, [around(hit.passage, query) for hit in hits], context, "")

    return (
        _tool(
            "SearchMemory",
            "Searches this project's long-term memory by words and gives the passages that fit "
            "best, each with its file and age.",
            memory,
        ),
        _tool(
            "SearchSessions",
            "Searches the earlier sessions of this project, and what has left the context of this "
            "one: what the user said, what was answered, what tools were called with and gave. "
            "Gives passages, each with session, message and time. "
            "Use it where memory has nothing, with narrow words: an error text, a path, a name.",
            sessions,
        ),
    )


def _tool(name: str, description: str, action: Action) -> Tool:
    schema = {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "What to look for, in any words"},
            "limit": {
                "type": "integer",
                "minimum": 1,
                "maximum": MAX,
                "description": f"How many passages to give at most; {SHOWN} if left out",
            },
        },
        "required": ["query"],
        "additionalProperties": False,
    }
    return Tool(name, description, schema, action, read_only=True)


def _count(value: Input) -> int:
    return min(int(value.get("limit") or SHOWN), MAX)


def _memory(index: MemoryIndex, hit: RecallHit, age: str) -> str:
    kind = f"[{hit.type}] " if hit.type else ""
    about = f": {_line(hit.description)}" if hit.description else ""
    where = f"{index.folder / hit.file}:{hit.line or 1}"
    return f"{kind}{_line(where)}, {age}{about}"


def _session(hit: RecallHit) -> str:
    who = f", {hit.name}" if hit.name else ""
    return f"session {hit.session or hit.file}, message {hit.message}, {iso_time(hit.saved)}{who}"


def _line(text: str) -> str:
    return " ".join(neutralize_markup(text).split())[:PASSAGE]


def _small(index: MemoryIndex, hit: RecallHit) -> str:
    """A small memory's body; "" where it is large or cannot be read."""
    try:
        data = read_plain(index.folder / hit.file, SMALL)
    except (OSError, ValueError):
        return ""
    if data is None or len(data) > SMALL:
        return ""
    return TopicFile(hit.file, data).body.strip()


def _output(
    rows: Sequence[str],
    hits: Sequence[RecallHit],
    texts: Sequence[str],
    context: ToolContext,
    more: str,
) -> ToolOutput:
    if not rows:
        return ToolOutput("Nothing found")
    session = context.stored.session if context.stored else ""
    out: list[str] = []
    for row, hit, text in zip(rows, hits, texts, strict=True):
        out.append(f"{row}\n{frame(text, session=session, source=hit.file)}" if text else row)
    return ToolOutput("\n\n".join([*out, more] if more else out))


# --- The tools by which a model has agents: Agent starts one, SendMessage writes to one.
#
# Neither asks for permission: what an agent does is judged call by call, like the lead's own
# calls. They stand behind all other tools, so that a session without them sends the same bytes as
# before.


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


class MessageRoute(Protocol):
    """Where letters to other sessions go."""

    async def send(self, letter: AgentMessage) -> str:
        """Deliver to `uds:…` or `bridge:…`; what became of it."""
        ...


def agent_tool(crew: Callable[[], AgentPool]) -> Tool:
    """Agent, for the lead of a crew."""

    async def action(value: Input, context: ToolContext) -> ToolOutput:
        del context
        lead = crew()
        mode = cast("AgentMode", value.get("mode", "foreground"))
        if not lead.session.interactive and mode == "background":
            mode = "foreground"  # nobody is there when it would be over
        wanted = AgentRequest(
            str(value["prompt"]),
            " ".join(str(value["description"]).split())[:120],
            str(value.get("type") or "general"),
            str(value.get("name") or ""),
            mode,
            bool(value.get("worktree")),
            bool(value.get("plan")),
        )
        return ToolOutput(await lead.start(wanted))

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
    send: Callable[[AgentMessage], tuple[str, ...]],
    abroad: MessageRoute | None,
    now: Callable[[], float],
    stands: Callable[[str], str] = str,
) -> Tool:
    """SendMessage, for one agent: nobody can send in another's name."""

    async def action(value: Input, context: ToolContext) -> ToolOutput:
        del context
        letter = AgentMessage(
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
            return ToolOutput(await abroad.send(letter))
        names = send(letter)
        told = ", ".join(map(stands, names))
        return ToolOutput(f"Sent to {told}" if names else "There is nobody to send to")

    return Tool(
        SEND,
        "Sends a message to another agent of this session. It is read at that agent's next tool "
        "round; an answer comes to you the same way.",
        _SEND_SCHEMA,
        action,
        read_only=True,
    )


def crew_send_tool(crew: AgentPool, name: str, abroad: MessageRoute | None = None) -> Tool:
    """SendMessage of an agent in the lead's process, or of the lead itself."""
    out = abroad if name == LEAD else None
    return send_tool(name, crew.send, out, crew.ground.clock.now, crew.stands)
