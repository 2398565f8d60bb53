"""Anthropic's memory tool on our store, beside the SDK's own on plain files: one suite for both."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import anthropic
import pytest
from anthropic.lib.tools import ToolError
from anthropic.tools import BetaAsyncLocalFilesystemMemoryTool, BetaLocalFilesystemMemoryTool
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import reverie
from reverie.adapters import AsyncMemoryTool, MemoryTool
from reverie.simulator import Engine, call, script, serving

pytestmark = pytest.mark.spec("18.memory-tool")

Command = dict[str, Any]


def view(path: str, lines: list[int] | None = None) -> Command:
    return {"command": "view", "path": path, "view_range": lines}


def create(path: str, text: str) -> Command:
    return {"command": "create", "path": path, "file_text": text}


def replace(path: str, old: str, new: str) -> Command:
    return {"command": "str_replace", "path": path, "old_str": old, "new_str": new}


def insert(path: str, line: int, text: str) -> Command:
    return {"command": "insert", "path": path, "insert_line": line, "insert_text": text}


def delete(path: str) -> Command:
    return {"command": "delete", "path": path}


def rename(old: str, new: str) -> Command:
    return {"command": "rename", "old_path": old, "new_path": new}


FIVE = "one\ntwo\nthree\nfour\nfive\n"
COURSES: dict[str, list[Command]] = {
    "an empty root": [view("/memories")],
    "written and read": [
        create("/memories/a.md", FIVE),
        view("/memories/a.md"),
        view("/memories"),
        create("/memories/a.md", "other"),
        view("/memories/a.md"),
    ],
    "any name": [
        create("/memories/notes.txt", "plain"),
        create("/memories/notes", "no ending"),
        create("/memories/notes.xml", "<a/>"),
        view("/memories/notes.txt"),
        view("/memories/notes"),
        view("/memories"),
    ],
    "any text": [
        create("/memories/a.md", ""),
        view("/memories/a.md"),
        create("/memories/b.md", "no end"),
        view("/memories/b.md"),
        create("/memories/c.md", "\n\n  indented\r\nwith CR\r\n\n\n"),
        view("/memories/c.md"),
        create("/memories/d.md", "---\nname: mine\ntype: user\n---\nbody\n"),
        view("/memories/d.md"),
        create("/memories/e.md", "Grüße, 记忆 🌙"),
        view("/memories/e.md"),
    ],
    "ranges": [
        create("/memories/a.md", FIVE),
        *[
            view("/memories/a.md", r)
            for r in ([1, 2], [2, -1], [0, 2], [4, 99], [9, 10], [3, 2], [1], [-3, 2], [2, 0])
        ],
    ],
    "replaced": [
        create("/memories/a.md", "red\ngreen\nblue\nred\n"),
        replace("/memories/a.md", "green", "yellow"),
        replace("/memories/a.md", "red", "black"),
        replace("/memories/a.md", "pink", "black"),
        replace("/memories/a.md", "yellow\n", ""),
        replace("/memories/none.md", "a", "b"),
        replace("/memories", "a", "b"),
        view("/memories/a.md"),
    ],
    "replaced where matches overlap": [
        create("/memories/a.md", "aaa\naa"),
        replace("/memories/a.md", "aa", "b"),
        replace("/memories/a.md", "aaa\na", "b"),
        view("/memories/a.md"),
    ],
    "inserted": [
        create("/memories/a.md", "one\ntwo"),
        insert("/memories/a.md", 0, "zero\n"),
        insert("/memories/a.md", 3, "three\n\n"),
        insert("/memories/a.md", 9, "nine"),
        insert("/memories/a.md", -1, "minus"),
        insert("/memories/none.md", 0, "a"),
        insert("/memories", 0, "a"),
        view("/memories/a.md"),
    ],
    "into an empty file": [
        create("/memories/a.md", ""),
        insert("/memories/a.md", 0, "first"),
        view("/memories/a.md"),
    ],
    "deleted": [
        create("/memories/a.md", "a"),
        delete("/memories/a.md"),
        delete("/memories/a.md"),
        view("/memories/a.md"),
        delete("/memories"),
        create("/memories/a.md", "again"),
        view("/memories/a.md"),
    ],
    "folders": [
        create("/memories/plan/a.md", "a"),
        create("/memories/plan/deep/b.txt", "b"),
        create("/memories/plan/deep/er/c.md", "c"),
        create("/memories/z.md", "z"),
        view("/memories"),
        view("/memories/plan"),
        view("/memories/plan/deep"),
        create("/memories/plan", "a file where a folder is"),
        rename("/memories/plan", "/memories/old"),
        view("/memories"),
        view("/memories/old/deep/b.txt"),
        delete("/memories/old/deep"),
        view("/memories/old"),
        delete("/memories/old"),
        view("/memories/old"),
    ],
    "renamed": [
        create("/memories/a.md", "a"),
        create("/memories/b.txt", "b"),
        rename("/memories/a.md", "/memories/b.txt"),
        rename("/memories/a.md", "/memories/sub/c.txt"),
        rename("/memories/a.md", "/memories/d.md"),
        rename("/memories", "/memories/e"),
        view("/memories/sub/c.txt"),
        view("/memories"),
    ],
    "paths": [
        view("/etc/passwd"),
        view("memories/a.md"),
        view("/memories/../../etc/passwd"),
        create("/memories/../a.md", "a"),
        create("/memories/x/../a.md", "a"),
        view("/memories/./a.md"),
        view("/memories/a.md"),
        delete("/memories/../memories"),
        rename("/memories/a.md", "/memories/../b.md"),
    ],
}  # fmt: skip


def settled(text: str) -> str:
    """Without the size of folders, which is the file system's own, and machine paths."""
    return re.sub(r"(?m)^[\d.]+[BKMG]\t(\S+/|\S+memories|\S+(?<=/)\w+)$", r"-\t\1", text)


async def outcome(tool: Any, command: Command) -> str:
    try:
        found = tool.call(command)
        return settled(await found if inspect.isawaitable(found) else found)
    except ToolError as error:
        return f"ToolError: {error}"


@pytest.fixture
def memory(home: Path, tmp_path: Path) -> reverie.Memory:
    folder = tmp_path / "shop"
    folder.mkdir()
    return reverie.Memory(folder, home=home)


@pytest.mark.parametrize("course", COURSES)
@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_it_behaves_as_the_sdks_own(
    memory: reverie.Memory, tmp_path: Path, course: str, kind: str
) -> None:
    theirs: Any
    ours: Any
    if kind == "sync":
        theirs, ours = BetaLocalFilesystemMemoryTool(str(tmp_path / "theirs")), MemoryTool(memory)
    else:
        theirs = BetaAsyncLocalFilesystemMemoryTool(str(tmp_path / "theirs"))
        ours = AsyncMemoryTool(memory)
    for number, command in enumerate(COURSES[course]):
        told = (number, command, await outcome(ours, command))
        assert told == (number, command, await outcome(theirs, command))
    assert ours.to_dict() == theirs.to_dict()


@given(text=st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=300))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_comes_back_to_the_byte(memory: reverie.Memory, text: str) -> None:
    tool = MemoryTool(memory)
    tool.clear_all_memory()
    tool.call(create("/memories/a.md", text))
    shown = tool.call(view("/memories/a.md"))
    assert isinstance(shown, str)
    rows = shown.split("\n", 1)[1].split("\n")
    assert "\n".join(row[7:] for row in rows) == text


def test_every_change_is_a_version_that_can_be_taken_back(memory: reverie.Memory) -> None:
    tool = MemoryTool(memory)
    tool.call(create("/memories/staging.md", "Staging runs in Frankfurt\n"))
    tool.call(replace("/memories/staging.md", "Frankfurt", "Dublin"))
    tool.call(delete("/memories/staging.md"))
    found = memory.history("staging.md")
    assert [(one.origin.action, one.origin.tool, one.origin.trust) for one in found] == [
        ("save", "memory", "agent"),
        ("edit", "memory", "agent"),
        ("remove", "memory", "agent"),
    ]
    memory.undo(found[-1].id)
    assert memory.get("staging.md").text == "Staging runs in Dublin"
    memory.undo(found[1].id)
    assert "Frankfurt" in str(tool.call(view("/memories/staging.md")))


def test_what_claude_wrote_is_found_by_everybody_and_has_a_type(memory: reverie.Memory) -> None:
    tool = MemoryTool(memory)
    tool.call(create("/memories/style.txt", "The user prefers tabs to spaces, for accessibility"))
    hit = memory.search("tabs or spaces?")[0]
    assert (hit.file, hit.type) == ("style.txt.file.md", "user")
    assert "tabs to spaces" in memory.context()
    memory.add("Staging runs in Frankfurt", name="Staging")
    assert "project_staging.md" in str(tool.call(view("/memories")))
    assert "Staging runs in Frankfurt" in str(tool.call(view("/memories/project_staging.md")))


def test_a_description_that_came_from_the_text_follows_it(memory: reverie.Memory) -> None:
    tool = MemoryTool(memory)
    tool.call(create("/memories/a.md", "Staging runs in Frankfurt"))
    tool.call(replace("/memories/a.md", "Frankfurt", "Dublin"))
    assert "Frankfurt" not in memory.context()
    assert "Dublin" in memory.context()


@pytest.mark.parametrize(
    "command",
    [
        create("/memories/k.md", "The key is ghp_0123456789abcdefghijABCDEFGHIJ012345"),
        create("/memories/MEMORY.md", "- an index of my own"),
        create("/memories/a%2e%2e.md", "a"),
        create("/memories/x.file.md", "a"),
        create("/memories/a\0b.md", "a"),
        delete("/memories/MEMORY.md"),
        rename("/memories/MEMORY.md", "/memories/b.md"),
    ],
)
def test_what_is_refused_changes_nothing(memory: reverie.Memory, command: Command) -> None:
    memory.add("Staging runs in Frankfurt", name="Staging")
    before = len(memory.history())
    with pytest.raises(ToolError) as refused:
        MemoryTool(memory).call(command)
    assert "ghp_" not in str(refused.value)
    assert len(memory.history()) == before


def test_a_link_out_of_the_folder_is_not_followed(memory: reverie.Memory, tmp_path: Path) -> None:
    memory.add("Staging runs in Frankfurt", name="Staging")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a.md").write_text("not ours")
    (memory.folder / "link").symlink_to(tmp_path / "outside")
    tool = MemoryTool(memory)
    for command in (
        view("/memories/link/a.md"),
        view("/memories/link"),
        create("/memories/link/b.md", "b"),
        delete("/memories/link"),
    ):
        with pytest.raises(ToolError):
            tool.call(command)
    assert [p.name for p in (tmp_path / "outside").iterdir()] == ["a.md"]


@pytest.mark.integration
def test_the_sdks_runner_uses_it(memory: reverie.Memory) -> None:
    sim = Engine(
        answerer=script(
            [call("memory", '{"command":"view","path":"/memories"}')],
            [call("memory", '{"command":"create","path":"/memories/a.md","file_text":"Tabs."}')],
            "done",
        )
    )
    with serving(sim) as url:
        client = anthropic.Anthropic(base_url=url, api_key="k", max_retries=0)
        runner = client.beta.messages.tool_runner(
            model="claude-opus-5-5",
            max_tokens=1000,
            messages=[{"role": "user", "content": "Remember: tabs."}],
            tools=[MemoryTool(memory)],
            thread=False,
        )
        last = runner.until_done()
        client.close()
    assert last.content[0].text == "done"  # type: ignore[union-attr]
    assert memory.get("a.md").text == "Tabs."


@pytest.mark.integration
def test_the_example_of_the_docs_runs(
    tmp_path: Path, home: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (root / "docs" / "mcp.md").read_text()
    found = re.search(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert found is not None
    assert len(found[1].splitlines()) <= 15
    text = '{"command":"create","path":"/memories/a.md","file_text":"We deploy on Thursdays."}'
    sim = Engine(answerer=script([call("memory", text)], "done"))
    monkeypatch.setenv("REVERIE_HOME", str(home))
    monkeypatch.chdir(tmp_path)
    with serving(sim) as url:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
        # the simulator keeps no threads, which the runner would use by itself
        code = found[1].replace("max_tokens=4096,", "max_tokens=4096, thread=False,")
        names: dict[str, Any] = {}
        exec(compile(code, "docs/mcp.md", "exec"), names)
        names["client"].close()
    assert reverie.Memory(tmp_path, home=home).get("a.md").text == "We deploy on Thursdays."
