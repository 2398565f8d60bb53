"""What an agent may read and write, whatever its prompt says: tool by place by who."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reverie.agent import AgentOptions, open_agent
from reverie.agent.subagents.registry import EXPLORE, GENERAL
from reverie.agent.subagents.spawn import AgentSpec, spawn_agent
from reverie.agent.subagents.teammate_process import Teammate
from reverie.session import guards_at
from reverie.session.dream import schedule
from reverie.store import MemoryStore
from reverie.testing import ScriptedModel, world
from reverie.toolbox import Guard, Verdict
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


# --- agents that a person leads: what no rule allows is asked, and nobody answers here

OUTSIDE = {"outside", "link"}
"""Places that only the mode "allow" opens: the person said yes to everything beforehand."""
LED: dict[str, tuple[set[str], set[str]]] = {
    "main": ({"project", "own memory"}, {"own memory"}),
    "sub-agent": ({"project", "own memory"}, set()),
    "reading sub-agent": ({"project", "own memory"}, set()),
    "teammate": ({"project"}, set()),
}
"""Where each may read and write without being asked for."""
RUNS_COMMANDS = {"main", "sub-agent", "teammate"}


@pytest.mark.spec("10.limits")
@pytest.mark.parametrize("mode", ["ask", "allow"])
@pytest.mark.parametrize("who", LED)
async def test_an_agent_reaches_only_what_its_permissions_name(
    tmp_path: Path, who: str, mode: Verdict
) -> None:
    place, model = Place(tmp_path), ScriptedModel(["done"])
    environ = {"HOME": str(place.user), "PATH": os.environ["PATH"]}
    options = AgentOptions(place.root, home=place.home, agents=True, mode=mode, environ=environ)
    async with open_agent(options, model, say=place.notices.append) as lead:
        assert lead.crew is not None
        assert lead.memories is not None
        places = {name: place.base / path for name, path in PLACES.items()}
        places["own memory"] = lead.memories.root / "note.md"
        if who == "main":
            await check_reach(lead.toolbox, who, mode, places)
            return
        ground = lead.crew.ground
        if who == "teammate":
            told = {"name": "mate", "mode": mode, "session": ground.session, "secret": "00"}
            where = {"project": str(place.root), "home": str(place.home), "peers": {}}
            ground = Teammate({**told, **where}).ground
        wanted = AgentSpec("a1", "mate", EXPLORE if "reading" in who else GENERAL)
        async with spawn_agent(ground, wanted, model) as agent:
            await check_reach(agent.tools, who, mode, places)


async def check_reach(box: Any, who: str, mode: str, places: dict[str, Path]) -> None:
    reads, writes = LED[who]
    if mode == "allow":
        reads = reads | OUTSIDE
        writes = writes | OUTSIDE | {"project"} if who in RUNS_COMMANDS else writes
    others = {"Remember": who == "main", "Bash": mode == "allow" and who in RUNS_COMMANDS}
    for tool in TOOLS[:-1] if who == "main" else TOOLS:
        for name, path in places.items():
            for one in places.values():
                one.parent.mkdir(parents=True, exist_ok=True)
                if one != places["link"]:
                    one.write_text("needle\n")
            if not places["link"].is_symlink():
                places["link"].symlink_to(places["outside"])
            if tool in ("Write", "Edit"):
                await use(box, "Read", file_path=str(path))
            done = await use(box, tool, **given(tool, path))
            told = (who, mode, tool, name, done)
            if tool in ("Read", "Grep"):
                assert ("needle" in done.text) is (name in reads), told
            elif tool in ("Write", "Edit"):
                assert (path.read_text() == "planted\n") is (name in writes), told
                assert done.is_error is (name not in writes), told
            elif tool == "Forget":
                assert all(one.exists() or one == places["own memory"] for one in places.values())
                assert places["own memory"].exists() or who == "main", told
            elif tool not in ("Glob", "List"):
                assert done.is_error is not others.get(tool, False), told
