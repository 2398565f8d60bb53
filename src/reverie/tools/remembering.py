"""The main agent's files: its writes into the memory folder are memory's own writes.

An agent saves with its normal tools. What lands in the memory folder passes the same
guards (secrets, forgotten words) and leaves the same history as any other write there;
everything else is written as before.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from reverie.errors import ReverieError
from reverie.light import dataclass
from reverie.memory.trust import Trust
from reverie.memory.versions import Origin
from reverie.store.keys import beneath
from reverie.store.memories import Memories
from reverie.tools.places import AnyFiles
from reverie.tools.tool import ToolFailed


@dataclass(frozen=True, slots=True)
class RememberingFiles(AnyFiles):
    """`tool.Files` of an agent with a memory; a frozen field more than `AnyFiles`."""

    memories: Memories | None = None
    session: str = ""
    agent: str = "main"

    def granted(self) -> RememberingFiles:
        return replace(self, settled=True)

    def write(self, path: Path, data: bytes, expect: str | None) -> None:
        if self.memories is None or not beneath(self.memories.root, path):
            # not super(): a slotted dataclass is made anew, and the old class is what it names
            return AnyFiles.write(self, path, data, expect)
        key = path.relative_to(self.memories.root).as_posix()
        origin = Origin("save", Trust.AGENT, agent=self.agent, session=self.session, tool="Write")
        try:
            with self.memories.folder.locked(), self.memories.history.by(origin):
                self.memories.folder.write(key, data, expect=expect, exclusive=expect is None)
        except ReverieError as error:
            raise ToolFailed(error.what, where=error.where, do=error.do) from error
        return None
