"""The memory of a sub-agent's type: a folder of its own, in one of three scopes.

    with open_agent_memory("reviewer", "project", project) as memory:
        system = f"{system}

{memory.section}"

It is a memory like a project's: secrets and forgotten words are refused, every version is kept,
and the files are the agent's to write with its normal tools. Its whole index stands in the
agent's prompt; it is neither recalled nor extracted into. Versions lie under home, so that a
repository gets the memory and not its past. Writes stay inside: a folder that a link leads to
is refused, since a repository could have brought the link.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from reverie.errors import PathRefused, ReverieError
from reverie.settings.catalog import Settings
from reverie.store.files import Folder
from reverie.store.memory_store import MemoryStore
from reverie.store.project import Project, agent_memory
from reverie.toolbox.memory_tools import MemoryFileAccess
from reverie.topics import prompt
from reverie.topics.paths import Scope
from reverie.world import Notice, Say, say_nothing

IGNORED = {"local": b"*\n", "project": b".reverie-*\n"}
"""What git leaves out: all of local memory, and of the committed one our locks."""


@dataclass(frozen=True, slots=True)
class AgentMemory:
    """An agent's memory, open, and the part of its system prompt about it."""

    agent: str
    scope: Scope
    memories: MemoryStore
    section: str

    def files(self, cwd: Path, user: str = "", session: str = "") -> MemoryFileAccess:
        """Files for the agent's tools: what it writes into its memory is memory's own write."""
        return MemoryFileAccess(
            cwd, user, memories=self.memories, session=session, agent=f"agent:{self.agent}"
        )

    @property
    def folder(self) -> Path:
        return self.memories.root

    def close(self) -> None:
        self.memories.close()

    def __enter__(self) -> AgentMemory:
        return self

    def __exit__(self, *ended: object) -> None:
        self.close()


def open_agent_memory(
    agent: str,
    scope: Scope,
    project: Project,
    *,
    now: Callable[[], float],
    say: Say = say_nothing,
) -> AgentMemory | None:
    """The memory of an agent's type; None where memory is off or cannot be had, which is said."""
    if project.settings.memory_off():
        return None
    try:
        folder, history = agent_memory(project, agent, scope)
        _must_be_real(folder, scope, project)
        memories = MemoryStore(
            folder, history, project.home, now=now, say=say, settings=project.settings
        )
        if scope in IGNORED:
            _keep_out_of_git(folder.parent, IGNORED[scope])
    except ReverieError as error:
        text = f"the agent {agent[:80]} has no long-term memory here: {error}"
        say(Notice("memory", text, "warning"))
        return None
    return AgentMemory(agent, scope, memories, section(memories, scope, project.settings))


def section(memories: MemoryStore, scope: Scope, settings: Settings) -> str:
    """What the agent is told of its memory, with the whole index."""
    index = memories.folder.index().data.decode("utf-8", "replace")
    return prompt.section(
        prompt.PromptOptions(
            str(memories.root),
            extra=settings.memory_extra_guidelines or "",
            scope=scope,
            index=index,
            lines=settings.index_lines,
            width=settings.index_line_characters,
        )
    )


def _must_be_real(folder: Path, scope: Scope, project: Project) -> None:
    """Refuse a folder below the repository that a link leads out of it."""
    if scope == "user" or not folder.is_relative_to(project.root):
        return
    wanted = Path(os.path.realpath(project.root)) / folder.relative_to(project.root)
    if Path(os.path.realpath(folder)) != wanted:
        raise PathRefused(
            "A link stands in the way of this agent's memory",
            where=str(folder),
            do="Take the link away; memory is never kept outside the repository by one",
        )


def _keep_out_of_git(above: Path, ignored: bytes) -> None:
    with Folder(above) as files:
        if not os.path.lexists(above / ".gitignore"):
            files.write(".gitignore", ignored)
