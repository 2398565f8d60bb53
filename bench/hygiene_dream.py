"""An embedded dream on a real folder, with the real guarded tools, round by round."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from reverie.clock import SystemClock
from reverie.embedded import dream
from reverie.memory import is_index
from reverie.settings import DEFAULTS
from reverie.tools import AnyFiles, Guard, GuardLimits, ReadLog, Sandbox, ToolContext, standard
from reverie.transcript import (
    EMPTY,
    AssistantMessage,
    Block,
    DreamTask,
    Entry,
    HeadSet,
    KnownMemory,
    Record,
    UserMessage,
    View,
    apply,
    dump,
    text_block,
)
from reverie.wire import Request, ToolCall, render
from reverie.world import Notice

TOOLS = ("Read", "Grep", "Glob", "List", "Edit", "Write")
MAX_ROUNDS = 100


@dataclass
class Dreaming:
    """One dream under way on `folder`."""

    folder: Path
    task: DreamTask
    tools: tuple[str, ...] = TOOLS
    view: View = EMPTY
    number: int = 0
    rounds: list[list[ToolCall]] = field(default_factory=list[list[ToolCall]])
    notices: list[Notice] = field(default_factory=list[Notice])
    text: str = ""

    def put(self, record: Record) -> None:
        self.number += 1
        entry = Entry(f"n{self.number}", self.view.leaf, float(self.number), record)
        self.view = apply(self.view, entry)

    def guard(self) -> Guard:
        root = Path(self.task.root or self.folder)
        context = ToolContext(
            root=root,
            cwd=root,
            files=AnyFiles(root, str(root)),
            clock=SystemClock(),
            reads=ReadLog(),
            settings=DEFAULTS,
            say=self.notices.append,
            environ=dict(os.environ),
            stored=None,
        )
        limits = GuardLimits(frozenset(self.tools), (root, self.folder), (str(self.folder),))
        return Guard(standard(), context, limits, Sandbox("none"), "dream")

    def request(self) -> Request:
        return render(self.view, "dream", self.task)

    async def run(self) -> str:
        defined = [d for d in standard().definitions() if d["name"] in self.tools]
        self.put(HeadSet("embedded", '[{"type":"text","text":"x"}]', dump(defined)))
        self.put(UserMessage((text_block("Dream."),), "instruction"))
        guard = self.guard()
        try:
            for _ in range(MAX_ROUNDS):
                blocks = tuple(dream.answer(self.request()))
                self.put(AssistantMessage(blocks))
                calls = [_call(one) for one in blocks if one.type == "tool_use"]
                if not calls:
                    self.text = "\n".join(one.text for one in blocks)
                    return self.text
                self.rounds.append(calls)
                results = [await guard.run(one) for one in calls]
                found = tuple(block for one in results for block in one.blocks)
                self.put(UserMessage(found, "tool"))
        finally:
            guard.close()
        raise AssertionError("the dream does not end")


def _call(block: Block) -> ToolCall:
    return ToolCall(block.get("id"), block.get("name"), dump(block.value["input"]))


def written(folder: Path, files: Mapping[str, bytes]) -> None:
    for key, data in files.items():
        path = folder / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def state(folder: Path) -> dict[str, bytes]:
    """The folder as a landing takes it: a file left empty is gone."""
    paths = sorted(path for path in folder.rglob("*.md") if path.is_file())
    found = {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
    return {key: data for key, data in found.items() if data.strip() or is_index(key)}


def task_of(
    folder: Path, times: Mapping[str, float], now: float, root: Path | None = None
) -> DreamTask:
    known = tuple(KnownMemory(key, saved=at) for key, at in sorted(times.items()))
    return DreamTask(folder=str(folder), root=str(root) if root else "", now=now, memories=known)
