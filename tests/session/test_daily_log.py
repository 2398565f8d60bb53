"""Daily-log mode: the agent appends, midnight is told, the index is only read, nobody extracts."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from reverie.observer import SystemClock
from reverie.session import LoggingFiles, append, local_date, log_tools, refusal
from reverie.settings import Settings
from reverie.store import MemoryFolder, MemoryStore, Project, canonical_root
from reverie.testing import ManualClock, call, reply
from reverie.toolbox import ReadLog, ToolContext, run_within_time, standard
from reverie.topics import Origin, Trust

from .extracts import Script, Stage, calls, results, said_last, turn

pytestmark = [pytest.mark.spec("7.daily-log")]
DAY = "logs/2026/03/2026-03-05.md"
ON = {"REVERIE_FLAG_DAILY_LOG": "1"}
BY = Origin("save", Trust.AGENT, agent="main")


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


@pytest.fixture
def memories(tmp_path: Path) -> Any:
    root = canonical_root(tmp_path)
    with MemoryStore.of(
        Project.at(root, home=tmp_path / "home", environ={}, settings=Settings()), now=lambda: 5.0
    ) as found:
        yield found


@pytest.mark.parametrize(
    ("key", "before", "after", "fine"),
    [
        (DAY, None, b"- 10:00 a\n", True),
        (DAY, b"- 10:00 a\n", b"- 10:00 a\n- 10:01 b\n", True),
        (DAY, b"- 10:00 a\n", b"- 10:00 b\n", False),
        (DAY, b"- 10:00 a\n", b"", False),
        (DAY, b"- 10:00 a\n", b"- 09:00 x\n- 10:00 a\n", False),
        ("logs/today.md", None, b"x", False),
        ("logs/2026/03/2026-04-05.md", None, b"x", False),
        ("logs/2026/3/2026-03-05.md", None, b"x", False),
        ("LOGS/2026/03/2026-03-05.md", None, b"x", False),
        ("MEMORY.md", None, b"- [a](a.md)\n", False),
        ("memory.md", b"x", b"xy", False),
        ("team/MEMORY.md", None, b"x", False),
        ("topic.md", b"a", b"b", True),
    ],
)
def test_what_may_be_written(key: str, before: bytes | None, after: bytes, fine: bool) -> None:
    assert (refusal(key, before, after) == "") is fine


async def use(memories: MemoryStore, name: str, daily: bool = True, **value: Any) -> Any:
    root = Path(memories.folder.root)
    files = LoggingFiles(root, memories=memories, session="s1", daily=lambda: daily)
    reads = ReadLog()
    context = ToolContext(root, root, files, SystemClock(), reads=reads)
    for one in ("Read", name):
        tool = standard().get(one)
        assert tool is not None
        given = {"file_path": value["file_path"]} if one == "Read" else value
        output = await run_within_time(tool, given, context)
    return output


async def test_the_agents_tools_append_and_change_nothing(memories: MemoryStore) -> None:
    root = Path(memories.folder.root)
    path = str(root / DAY)
    assert not (await use(memories, "Write", file_path=path, content="- 10:00 a\n")).is_error
    grown = await use(memories, "Write", file_path=path, content="- 10:00 a\n- 10:05 b\n")
    assert not grown.is_error
    edit: dict[str, Any] = {"file_path": path, "old_string": "10:00 a", "new_string": "10:00 z"}
    refused = await use(memories, "Edit", **edit)
    assert refused.is_error
    assert "only grows" in str(refused.content)
    after: dict[str, Any] = {
        "file_path": path,
        "old_string": "10:05 b\n",
        "new_string": "10:05 b\n- 11:00 c\n",
    }
    assert not (await use(memories, "Edit", **after)).is_error
    assert (root / DAY).read_text() == "- 10:00 a\n- 10:05 b\n- 11:00 c\n"
    assert [v.origin.tool for v in memories.history.log(DAY)] == ["Write"] * 3


async def test_the_index_is_only_read_until_the_switch_is_thrown(memories: MemoryStore) -> None:
    path = str(Path(memories.folder.root) / "MEMORY.md")
    refused = await use(memories, "Write", file_path=path, content="- [a](a.md) — a\n")
    assert refused.is_error
    done = await use(memories, "Write", daily=False, file_path=path, content="- [a](a.md) — a\n")
    assert not done.is_error


async def test_files_elsewhere_are_none_of_its_business(
    memories: MemoryStore, tmp_path: Path
) -> None:
    path = str(tmp_path / "MEMORY.md")
    assert not (await use(memories, "Write", file_path=path, content="x")).is_error


async def test_remember_and_forget_become_bullets_with_the_time(memories: MemoryStore) -> None:
    clock = ManualClock(1_772_700_000.0)
    root = Path(memories.folder.root)
    context = ToolContext(root, root, LoggingFiles(root), clock, call="c1")
    remember, forget = log_tools(memories)
    text = "Deploys are\non Tuesday."
    await run_within_time(remember, {"text": text, "type": "project"}, context)
    clock.time += 3_600
    await run_within_time(forget, {"name": "old rule"}, context)
    key = f"logs/{local_date(clock.time)[:4]}/{local_date(clock.time)[5:7]}"
    (log,) = (root / key).iterdir()
    lines = log.read_text().splitlines()
    assert re.fullmatch(r"- \d\d:\d\d Deploys are on Tuesday\.", lines[0])
    assert re.fullmatch(r"- \d\d:\d\d To forget: old rule", lines[1])
    assert not (root / "MEMORY.md").exists()
    assert memories.folder.keys() == ()
    assert {v.origin.tool for v in memories.history.log()} == {"Remember", "Forget"}


def test_midnight_opens_a_new_file_and_a_torn_line_is_ended(memories: MemoryStore) -> None:
    noon = datetime.fromisoformat("2026-03-05T12:00:00").timestamp()
    append(memories, "one", noon, BY)
    root = Path(memories.folder.root)
    (root / DAY).write_bytes((root / DAY).read_bytes().rstrip(b"\n"))
    append(memories, "two", noon + 60, BY)
    append(memories, "three", noon + 12 * 3600, BY)
    assert (root / DAY).read_text() == "- 12:00 one\n- 12:01 two\n"
    assert (root / "logs/2026/03/2026-03-06.md").read_text() == "- 00:00 three\n"


async def test_the_prompt_has_the_pattern_and_no_date_and_nobody_extracts(stage: Stage) -> None:
    script = Script(calls([]))
    async with stage.agent(script, environ=ON) as agent:
        await turn(agent, "From now on always use pnpm.")
        stage.clock.time += 86_400
        await turn(agent, "And now?")
    assert not script.forks
    head = script.told[0].head.system
    assert "logs/YYYY/MM/YYYY-MM-DD.md" in head
    assert not re.search(r"\d{4}-\d{2}-\d{2}", head)
    assert script.told[-1].head.system == head
    assert "The date has changed" in said_last(script.told[-1])
    assert local_date(stage.clock.time) in said_last(script.told[-1])


async def test_an_agent_that_keeps_a_log_is_held_to_it(stage: Stage) -> None:
    script = Script(calls([]))
    async with stage.agent(script, environ=ON) as agent:
        assert agent.memories is not None
        root = Path(agent.memories.folder.root)
        index = {"file_path": str(root / "MEMORY.md"), "content": "- [a](a.md) — a\n"}
        script.main = [
            reply(call("Remember", "m1", text="Deploys are on Tuesday.")),
            reply(call("Write", "m2", **index)),
            "Done.",
        ]
        await turn(agent, "Remember that deploys are on Tuesday.")
        assert not (root / "MEMORY.md").exists()
        (log,) = (path for path in (root / "logs").rglob("*.md"))
        assert log.read_text().endswith(" Deploys are on Tuesday.\n")
    (refused,) = results(script.told[-1])
    assert refused["is_error"]


def test_logs_are_no_memories(memories: MemoryStore) -> None:
    append(memories, "one", 0.0, BY)
    assert memories.folder.keys() == ()
    with MemoryFolder(memories.folder.root) as folder:
        assert folder.scan() == ()
