"""A memory folder with a few memories, and a dreamer on it whose model is scripted."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reverie.session import Budget, DreamContext, SessionLibrary, guards_at
from reverie.settings import DEFAULTS, Settings
from reverie.store import Folder, MemoryStore, Project
from reverie.testing import FixedFlags, ManualClock, MemoryDisk, ScriptedModel, call, reply
from reverie.topics import Origin, Trust, new
from reverie.transcript import DreamTask
from reverie.wire import Reply, Request
from reverie.world import Notice, World

NOW = 1_790_000_000.0
BY_USER = Origin("save", Trust.USER, agent="user")
MEMORIES = {
    "release.md": ("Release date", "project", "The release is planned for 14 November 2026.\n"),
    "tests.md": ("Run the tests", "feedback", "Run `make check` before every commit.\n"),
    "tests_again.md": (
        "Run the tests",
        "feedback",
        "Run `make check` before every commit, always.\n",
    ),
}


def memory(key: str, name: str, kind: str, body: str) -> bytes:
    return new(key, name=name, description=f"about {name.lower()}", type=kind, body=body).data


@dataclass
class Stage:
    """One project under a home of its own."""

    base: Path
    memories: MemoryStore
    library: SessionLibrary
    clock: ManualClock
    said: list[Notice] = field(default_factory=list[Notice])
    settings: Settings = DEFAULTS

    @classmethod
    def of(cls, base: Path, given: Mapping[str, tuple[str, str, str]] = MEMORIES) -> Stage:
        home, root = base / "home", base / "project"
        root.mkdir(parents=True, exist_ok=True)
        clock = ManualClock(NOW)
        memories = MemoryStore.of(
            Project.at(root, home=home, environ={}, settings=DEFAULTS), now=clock.now
        )
        stage = cls(
            base, memories, SessionLibrary.of(Project.at(root, home=home, environ={})), clock
        )
        for key, (name, kind, body) in given.items():
            if not memories.folder.files.exists(key):
                memories.save(key, memory(key, name, kind, body), BY_USER)
        return stage

    @property
    def folder(self) -> Path:
        return self.memories.folder.root

    @property
    def home(self) -> Path:
        return self.base / "home"

    def dreamer(self, answers: Any, *, budget: bool = False) -> DreamContext:
        model = answers if isinstance(answers, ScriptedModel) else ScriptedModel(answers)
        flags = FixedFlags()
        root = self.base / "project"
        world = World(self.clock, MemoryDisk(), flags, self.settings, model, say=self.said.append)
        guards = guards_at(root, self.library.path, self.memories, world)
        purse = Budget(Folder(self.home), self.settings, self.clock) if budget else None
        return DreamContext(
            self.memories,
            self.library,
            root,
            model,
            guards,
            self.clock,
            self.settings,
            flags,
            purse,
            self.said.append,
        )

    def files(self) -> dict[str, bytes]:
        """The memory folder as a reader sees it."""
        return {
            str(path.relative_to(self.folder)): path.read_bytes()
            for path in sorted(self.folder.rglob("*.md"))
        }

    def close(self) -> None:
        self.memories.close()
        self.library.close()


def copy_of(request: Request) -> str:
    """The folder that a dream was given."""
    assert isinstance(request.task, DreamTask)
    return request.task.folder


def played(name: str) -> ScriptedModel:
    """A dream as somebody played it who read each request in the model's place: a fixture."""
    fixture = Path(__file__).parents[2] / "fixtures" / name
    left: list[Any] = json.loads(fixture.read_text("utf-8"))["rounds"]
    count = 0

    def answer(request: Request) -> Reply:
        nonlocal count
        step = left.pop(0)
        calls: list[Any] = []
        for one in step.get("calls", ()):
            count += 1
            given = {"file_path": f"{copy_of(request)}/{one['file']}"}
            given |= {_GIVEN[key]: one[key] for key in _GIVEN if key in one}
            calls.append(call(one["tool"], f"c{count}", **given))
        return reply(*calls) if calls else reply(step["text"])

    return ScriptedModel(answer)


_GIVEN = {"content": "content", "old": "old_string", "new": "new_string"}
Step = Callable[[str], Iterable[Any]]


def rounds(*steps: Step | str) -> ScriptedModel:
    """A model that makes the calls of one step a round; each step is told the copy's folder."""
    left = list(steps)

    def answer(request: Request) -> Reply:
        step = left.pop(0) if left else "done"
        if isinstance(step, str):
            return reply(step)
        return reply(*step(copy_of(request)))

    return ScriptedModel(answer)


def reads(folder: str, *keys: str) -> list[Any]:
    return [
        call("Read", f"r{n}-{k}", file_path=os.path.join(folder, k)) for n, k in enumerate(keys)
    ]


def writes(folder: str, **texts: str) -> list[Any]:
    return [
        call("Write", f"w-{key}", file_path=os.path.join(folder, f"{key}.md"), content=text)
        for key, text in texts.items()
    ]
