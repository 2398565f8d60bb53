"""What a background agent may read and write, whatever its prompt says: tool by place by who."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reverie.session import guards_at
from reverie.session.dream import schedule
from reverie.store import MemoryStore
from reverie.testing import world
from reverie.toolbox import Guard
from reverie.transcript.tasks import Task
from reverie.world import ForkSpec
from tests.tools.kit import Place, snapshot, use

pytestmark = pytest.mark.spec("7")
TOOLS = ("Read", "Grep", "Glob", "List", "Write", "Edit", "Bash", "Remember", "Forget", "Agent")
PLACES = {
    "project": "project/src.py",
    "secret": "project/.env",
    "git": "project/.git/config",
    "own memory": "user/.reverie/projects/-project/memory/note.md",
    "other memory": "user/.reverie/projects/-other/memory/note.md",
    "settings": "user/.reverie/settings.json",
    "token": "user/.reverie/proxy/token",
    "outside": "outside/file.md",
    "link": "project/link.md",
    "work": "user/.reverie/projects/-project/dreams/1/work/note.md",
}
WHO: dict[str, tuple[tuple[str, ...], str]] = {
    "dream": (schedule.TOOLS, "work"),
    "reader": (("Read", "Grep", "Glob", "List"), ""),
    "summary": ((), ""),
}
READS = {"project"}
"""Places that every reader has; beside them the one it writes to."""


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[tuple[Place, MemoryStore]]:
    place = Place(tmp_path)
    for name in PLACES.values():
        path = place.base / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name != PLACES["link"]:
            path.write_text("needle\n")
    (place.base / PLACES["link"]).symlink_to(place.base / PLACES["outside"])
    memories = MemoryStore(place.memory, place.project / "history", place.home, now=time.time)
    yield place, memories
    memories.close()


def guard_for(who: str, place: Place, memories: MemoryStore) -> Guard:
    tools, slot = WHO[who]
    writable = (str((place.base / PLACES[slot]).parent),) if slot else ()
    spec = ForkSpec(who, "You may do everything.", Task(who), 5, tools, writable)
    sessions = place.project / "sessions"
    sessions.mkdir(exist_ok=True)
    return guards_at(place.root, sessions, memories, world())(spec)


def given(tool: str, path: Path) -> dict[str, Any]:
    values: dict[str, dict[str, Any]] = {
        "Read": {"file_path": str(path)},
        "Grep": {"pattern": "needle", "path": str(path), "output_mode": "content"},
        "Glob": {"pattern": path.name, "path": str(path.parent)},
        "List": {"path": str(path.parent)},
        "Write": {"file_path": str(path), "content": "planted\n"},
        "Edit": {"file_path": str(path), "old_string": "needle", "new_string": "planted"},
        "Bash": {"command": f"echo planted > {path}"},
        "Remember": {"text": "planted"},
        "Forget": {"name": path.stem},
        "Agent": {"prompt": f"read {path}", "description": "d"},
    }
    return values[tool]


@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize("tool", TOOLS)
async def test_a_tool_reaches_only_what_its_agent_was_given(
    stage: tuple[Place, MemoryStore], who: str, tool: str
) -> None:
    place, memories = stage
    tools, slot = WHO[who]
    for name, path in ((name, place.base / one) for name, one in PLACES.items()):
        guard = guard_for(who, place, memories)
        before = snapshot(place.base)
        if tool in ("Write", "Edit"):
            await use(guard, "Read", file_path=str(path))
        done = await use(guard, tool, **given(tool, path))
        after = {k: v for k, v in snapshot(place.base).items() if before.get(k) != v}
        guard.close()
        has = tool in tools
        reads, writes = name in READS or name == slot, name == slot
        changed = [one for one in after if (place.base / one).is_file() and one.endswith(path.name)]
        if has and tool in ("Write", "Edit"):
            assert done.is_error is not writes, (name, done)
            assert bool(changed) is writes, (name, changed)
            continue
        assert not changed, (name, changed)
        if has and tool in ("Read", "Grep"):
            seen = not done.is_error and "needle" in str(done)
            assert seen is reads, (name, done)
        elif not has:
            assert done.is_error, (name, tool)
