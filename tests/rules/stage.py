"""A project with memories, and turns whose calls are held against them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from reverie.session import ProjectRules, TurnResult, TurnRules, run_turn
from reverie.settings import DEFAULTS
from reverie.store import MemoryStore, Project
from reverie.topics import Origin, Trust
from reverie.world import Notice
from tests.loop.stage import NOON, Given, SimpleTools

USER = Origin("save", Trust.USER, agent="user", tool="cli", in_person=True)
AGENT = Origin("save", Trust.AGENT, agent="extract_memories")
PUSH = "---\nname: push\ndescription: Never push to main\ntype: feedback\napplies_to:\n  command: git push\n  has: main\n{more}---\n\nNever push to main: it deploys.\n"  # noqa: E501


def project_of(tmp: Path) -> Path:
    project = tmp / "project"
    project.mkdir(exist_ok=True, parents=True)
    return project


@contextmanager
def memories_in(tmp: Path) -> Iterator[MemoryStore]:
    environ = {"HOME": str(tmp)}
    project = project_of(tmp)
    with MemoryStore.of(
        Project.at(project, home=tmp / "home", environ=environ, settings=DEFAULTS), now=lambda: NOON
    ) as found:
        yield found


def push_rule(
    memories: MemoryStore, level: str = "", origin: Origin = USER, key: str = "push.md"
) -> None:
    more = f"level: {level}\n" if level else ""
    memories.save(key, PUSH.format(more=more).encode(), origin, reviewed=True)


class Shell(SimpleTools):
    """A shell that runs nothing, and keeps what it was given."""

    def __init__(self) -> None:
        super().__init__(Bash=self._ran)
        self.lines: list[str] = []

    async def _ran(self, given: Given) -> str:
        self.lines.append(str(given.get("command")))
        return "done"


async def turn(
    session: Any,
    model: Any,
    tools: Any,
    memories: MemoryStore,
    said: str = "Ship it",
    notices: list[Notice] | None = None,
) -> TurnResult:
    heard = [] if notices is None else notices
    rules = ProjectRules(memories, session.root, session.root)
    watch = TurnRules(rules, heard.append, lambda: NOON, session.id)
    return await run_turn(session, model, tools, said, rules=watch)


def results(session: Any) -> list[str]:
    """The results that the model was given."""
    from reverie.transcript import text_of

    return [
        text_of(piece.block.value)
        for item in session.view.items
        for piece in item.pieces
        if piece.block.type == "tool_result"
    ]
