"""Remember and Forget: memory acted on at once, guarded and with a history.

They save a topic file with its pointer, or take both away, in one step under the folder's
lock. Secrets and forgotten words are refused; what is removed can be undone. They work on
this project's memory alone.
"""

from __future__ import annotations

from anyio import to_thread

from reverie.memory.format.entry import TYPES
from reverie.memory.trust import Trust
from reverie.memory.versions import Origin
from reverie.store.memories import Memories
from reverie.tools.tool import Input, Output, Tool, ToolContext


def memory_tools(memories: Memories) -> tuple[Tool, Tool]:
    """The two tools over one project's memory."""

    def origin(kind: str, tool: str, context: ToolContext) -> Origin:
        session = context.stored.session if context.stored else ""
        return Origin(
            kind, Trust.AGENT, agent="main", session=session, messages=(context.call,), tool=tool
        )

    async def remember(value: Input, context: ToolContext) -> Output:
        made = await to_thread.run_sync(
            lambda: memories.remember(
                str(value["text"]),
                origin("save", "Remember", context),
                name=str(value.get("name") or ""),
                description=str(value.get("description") or ""),
                type=str(value.get("type") or ""),
            )
        )
        return Output(f"{made.outcome}: {made.key}")

    async def forget(value: Input, context: ToolContext) -> Output:
        found = memories.find(str(value["name"]))
        await to_thread.run_sync(
            lambda: memories.remove(found.key, origin("remove", "Forget", context))
        )
        return Output(
            f"removed: {found.key}, with its pointer; `reverie memory undo` brings it back"
        )

    return (
        Tool(
            "Remember",
            "Saves a memory for later sessions, with its line in the index. One subject a call; "
            "calendar dates; never credentials.",
            {
                "type": "object",
                "properties": {
                    "text": {"type": "string", "description": "What to remember, in full"},
                    "name": {"type": "string", "description": "A short title"},
                    "description": {
                        "type": "string",
                        "description": "One line that states the fact itself",
                    },
                    "type": {"type": "string", "enum": list(TYPES)},
                },
                "required": ["text"],
                "additionalProperties": False,
            },
            remember,
        ),
        Tool(
            "Forget",
            "Removes a memory and its pointer, by its title or file name. It can be undone.",
            {
                "type": "object",
                "properties": {"name": {"type": "string", "description": "Title or file name"}},
                "required": ["name"],
                "additionalProperties": False,
            },
            forget,
        ),
    )
