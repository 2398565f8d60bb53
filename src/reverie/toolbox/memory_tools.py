"""Remember and Forget, and guarded writes to memory.

Remember and Forget: memory acted on at once, guarded and with a history.

They save a topic file with its pointer, or take both away, in one step under the folder's
lock. Secrets and forgotten words are refused; what is removed can be undone. They work on
this project's memory alone.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from anyio import to_thread

from reverie.errors import ReverieError
from reverie.light import dataclass
from reverie.store.memory_store import MemoryStore
from reverie.store.paths import beneath
from reverie.toolbox.file_access import UnconfinedFiles
from reverie.toolbox.tool import Input, Tool, ToolContext, ToolFailed, ToolOutput
from reverie.topics.entry import TYPES
from reverie.topics.trust import Trust
from reverie.topics.versions import Origin


def memory_tools(memories: MemoryStore) -> tuple[Tool, Tool]:
    """The two tools over one project's memory."""

    def origin(kind: str, tool: str, context: ToolContext) -> Origin:
        session = context.stored.session if context.stored else ""
        return Origin(
            kind, Trust.AGENT, agent="main", session=session, messages=(context.call,), tool=tool
        )

    async def remember(value: Input, context: ToolContext) -> ToolOutput:
        made = await to_thread.run_sync(
            lambda: memories.remember(
                str(value["text"]),
                origin("save", "Remember", context),
                name=str(value.get("name") or ""),
                description=str(value.get("description") or ""),
                type=str(value.get("type") or ""),
            )
        )
        return ToolOutput(f"{made.outcome}: {made.key}")

    async def forget(value: Input, context: ToolContext) -> ToolOutput:
        found = memories.find(str(value["name"]))
        await to_thread.run_sync(
            lambda: memories.remove(found.key, origin("remove", "Forget", context))
        )
        return ToolOutput(
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


# --- The main agent's files: its writes into the memory folder are memory's own writes.
#
# An agent saves with its normal tools. What lands in the memory folder passes the same guards
# (secrets, forgotten words) and leaves the same history as any other write there; everything else
# is written as before.


@dataclass(frozen=True, slots=True)
class MemoryFileAccess(UnconfinedFiles):
    """`tool.Files` of an agent with a memory; a frozen field more than `UnconfinedFiles`."""

    memories: MemoryStore | None = None
    session: str = ""
    agent: str = "main"

    def granted(self) -> MemoryFileAccess:
        return replace(self, settled=True)

    def write(self, path: Path, data: bytes, expect: str | None) -> None:
        if self.memories is None or not beneath(self.memories.root, path):
            # not super(): a slotted dataclass is made anew, and the old class is what it names
            return UnconfinedFiles.write(self, path, data, expect)
        key = path.relative_to(self.memories.root).as_posix()
        origin = Origin("save", Trust.AGENT, agent=self.agent, session=self.session, tool="Write")
        try:
            with self.memories.folder.locked(), self.memories.history.by(origin):
                self.memories.folder.write(key, data, expect=expect, exclusive=expect is None)
        except ReverieError as error:
            raise ToolFailed(error.what, where=error.where, do=error.do) from error
        return None
