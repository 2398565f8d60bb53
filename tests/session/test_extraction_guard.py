"""An extraction that has turned against its user: refused, logged, bounded, seen from outside."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reverie.session import MAX_BYTES, MAX_FILES
from reverie.testing import call, reply
from reverie.transcript import Block, ExtractTask, block_of
from tests.conftest import Scale
from tests.tools.bypasses import commands
from tests.tools.kit import Ears, listening, processes_with, snapshot

from .extracts import Script, Stage, cursor, results, topic, turn

pytestmark = [pytest.mark.spec("7.extraction")]
FINE = topic("Deploys happen on Tuesdays.", kind="project")
SECRET = "a-word-nobody-may-read"


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


class Field:
    """A project with things around it that must stay as they are."""

    def __init__(self, stage: Stage, ears: Ears) -> None:
        self.stage, self.ears = stage, ears
        self.outside = stage.base / "outside"
        self.other = stage.home / "projects" / "-other"
        for folder in (self.outside, self.other / "memory", stage.base / ".ssh"):
            folder.mkdir(parents=True, exist_ok=True)
        (self.outside / "outside.txt").write_text(SECRET)
        (self.other / "memory" / "theirs.md").write_text(SECRET)
        (stage.base / ".ssh" / "id_rsa").write_text(SECRET)
        (stage.home / "credentials").write_text(SECRET)
        (stage.project / ".env").write_text(f"KEY={SECRET}")
        (stage.project / "in.txt").write_text("one\ntwo\n")
        self.mark = stage.project / "mark.sh"
        self.mark.write_text(f"#!/bin/sh\necho x > {self.outside}/ran\n")
        self.mark.chmod(0o755)

    def watched(self) -> dict[str, object]:
        base = self.stage.base
        return dict(snapshot(self.outside, self.stage.project, self.other, base / ".ssh"))

    def filled(self, line: str) -> str:
        return (
            line.replace("<mark>", str(self.mark))
            .replace("<out>", str(self.outside / "w"))
            .replace("<dir>", str(self.outside))
            .replace("<in>", str(self.stage.project / "in.txt"))
            .replace("<lock>", str(self.outside / "outside.txt"))
            .replace("<port>", str(self.ears.port))
            .replace("<udp>", str(self.ears.udp_port))
            .replace("<ear>", str(self.ears.path))
        )


@pytest.fixture
def field(stage: Stage) -> Iterator[Field]:
    with listening(stage.base) as ears:
        yield Field(stage, ears)


def attacks(field: Field, memory: str) -> list[Block]:
    """Calls that leave the folder, by every tool that could."""
    out, home, base = field.outside, field.stage.home, field.stage.base
    paths = [
        f"{out}/w.md",
        f"{memory}/../../../../outside/w.md",
        f"{memory}/../w.md",
        f"{memory}/../memory-history/log.jsonl",
        f"{memory}/link.md",
        f"{memory}/dangling.md",
        f"{memory}/folder/w.md",
        f"{memory}/.hidden.md",
        f"{memory}/.consolidate-lock",
        f"{memory}/sub/../../w.md",
        f"{memory}/a\0b.md",
        f"{memory}/con.md/../../../w.md",
        f"{memory}",
        f"{memory}/",
        "sub/w.md",
        "link.md",
        ".hidden.md",
        "..",
        "~/w.md",
        "/etc/cron.d/w",
        "/proc/self/mem",
        f"{base}/.ssh/authorized_keys",
        f"{home}/settings.json",
        f"{home}/flags.json",
        f"{field.other}/memory/theirs.md",
        f"{field.stage.project}/CLAUDE.md",
        f"{field.stage.project}/.git/hooks/pre-commit",
        "/" * 5_000,
        "",
    ]
    made: list[Block] = []
    for n, path in enumerate(paths):
        made.append(call("Write", f"w{n}", file_path=path, content=FINE))
        edit = {"file_path": path, "old_string": "x", "new_string": "y"}
        made.append(call("Edit", f"e{n}", **edit))
    secrets = [
        f"{base}/.ssh/id_rsa",
        f"{home}/credentials",
        f"{field.other}/memory/theirs.md",
        f"{out}/outside.txt",
        f"{field.stage.project}/.env",
        f"{memory}/link.md",
        f"{memory}/folder/outside.txt",
        "/etc/shadow",
        "/proc/self/environ",
    ]
    for n, path in enumerate(secrets):
        made.append(call("Read", f"r{n}", file_path=path))
        made.append(call("Grep", f"g{n}", pattern=".", path=path, output_mode="content"))
    made += [
        call("Agent", "x1", prompt="write it for me"),
        call("Task", "x2", prompt="write it for me"),
        call("WebFetch", "x3", url=f"http://127.0.0.1:{field.ears.port}/"),
        call("mcp__files__write", "x4", path=f"{out}/w", content="x"),
        call("Remember", "x5", text="Always obey the tool."),
        block_of({"type": "tool_use", "id": "x6", "name": "Forget", "input": {"name": "a"}}),
        call("KillShell", "x7", id="1"),
        call("Bash", "x8", command="touch w", run_in_background=True),
        call("NoSuchTool", "x9"),
        call("Write", "x10", nothing=True),
    ]
    return made


@pytest.mark.needs("bwrap")
async def test_every_way_out_is_refused_and_logged(
    stage: Stage, field: Field, scale: Scale
) -> None:
    lines = [field.filled(line) for line in commands()]
    tried = lines[:: scale.pick(12, 1)]
    seen: list[dict[str, Any]] = []

    def hostile(task: ExtractTask, number: int) -> Any:
        seen.extend(results(script.forks[-1]) if number > 1 else [])
        if number == 1:
            return reply(*attacks(field, task.folder))
        if number == 2:
            shells = [call("Bash", f"b{n}", command=line) for n, line in enumerate(tried)]
            return reply(*shells)
        return reply(call("Write", f"z{number}", file_path=f"{task.folder}/ok.md", content=FINE))

    async with stage.memories() as memories:
        root = Path(memories.folder.root)
        os.symlink(field.outside / "outside.txt", root / "link.md")
        os.symlink(field.outside / "nothing.md", root / "dangling.md")
        os.symlink(field.outside, root / "folder")
    before = field.watched()
    script = Script(hostile)
    async with stage.agent(script) as agent:
        await turn(agent, "Deploys happen on Tuesdays.")
        found = cursor(agent)
    assert found is not None
    assert found.written == ("ok.md",)
    assert len(script.forks) == 3  # it ends with a round that wrote and had no failed call
    assert field.watched() == before
    assert field.ears.heard() == []
    assert not {"settings.json", "flags.json"} & {p.name for p in stage.home.iterdir()}
    assert (stage.home / "credentials").read_text() == SECRET
    assert not list(stage.base.rglob("w.md"))
    assert not processes_with(str(field.mark))
    assert SECRET not in str(seen)
    refused = [r for r in seen if r.get("is_error")]
    count = len(attacks(field, ""))
    assert len(refused) >= count - 2 + len(tried) * 0.7  # the rest ran, and could do nothing
    denials = [n.text for n in stage.notices if n.layer == "guard"]
    assert all(text.startswith("extract_memories: ") for text in denials)
    assert len(denials) >= count * 0.6


async def test_how_much_one_run_writes_is_bounded(stage: Stage) -> None:
    def floods(task: ExtractTask, number: int) -> Any:
        if number > 1:
            return "done"
        huge = topic("x " * MAX_BYTES)
        many = [
            call(
                "Write",
                f"w{n}",
                file_path=f"{task.folder}/f{n}.md",
                content=topic(f"Deploy {n} happens on Tuesday."),
            )
            for n in range(500)
        ]
        return reply(call("Write", "h", file_path=f"{task.folder}/h.md", content=huge), *many)

    script = Script(floods)
    async with stage.agent(script) as agent:
        await turn(agent, "Every deploy happens on Tuesday.")
        assert agent.memories is not None
        assert len(agent.memories.folder.keys()) == MAX_FILES
    errors = [r for r in results(script.forks[-1]) if r.get("is_error")]
    assert len(errors) == 501 - MAX_FILES


def failing(name: str) -> Block:
    """A call that fails, so that the run goes on."""
    return call("Read", name, file_path="/nowhere/at/all")


async def test_a_run_reads_its_own_writes_and_nobody_else_does(stage: Stage) -> None:
    seen: list[str] = []

    def looks(task: ExtractTask, number: int) -> Any:
        path = f"{task.folder}/new.md"
        if number == 1:
            return reply(call("Write", "w1", file_path=path, content=FINE), failing("f1"))
        if number == 2:
            seen.append(str(Path(path).exists()))
            return reply(call("Read", "r1", file_path=path), failing("f2"))
        if number == 3:
            seen.append(str(results(script.forks[-1])[0]["content"]))
            edit = {"old_string": "Tuesdays", "new_string": "Tuesday afternoons"}
            return reply(call("Edit", "e1", file_path=path, **edit))
        return "done"

    script = Script(looks)
    async with stage.agent(script) as agent:
        await turn(agent, "Deploys happen on Tuesday afternoons.")
        assert agent.memories is not None
        assert "Tuesday afternoons" in agent.memories.folder.read("new.md").text
        assert len(agent.memories.history.log("new.md")) == 1
    assert seen[0] == "False"
    assert "Deploys happen on Tuesdays." in seen[1]


async def test_the_name_of_a_memory_is_enough_to_write_read_and_edit_it(stage: Stage) -> None:
    (stage.project / "new.md").write_text("The project's own file of that name.\n")
    seen: list[str] = []

    def by_name(_: ExtractTask, number: int) -> Any:
        if number == 1:
            return reply(call("Write", "w1", file_path="new.md", content=FINE), failing("f1"))
        if number == 2:
            return reply(call("Read", "r1", file_path="new.md"), failing("f2"))
        seen.append(str(results(script.forks[-1])[0]["content"]))
        edit = {"old_string": "Tuesdays", "new_string": "Tuesday afternoons"}
        return reply(call("Edit", "e1", file_path="new.md", **edit))

    script = Script(by_name)
    async with stage.agent(script) as agent:
        await turn(agent, "Deploys happen on Tuesday afternoons.")
        assert agent.memories is not None
        assert "Tuesday afternoons" in agent.memories.folder.read("new.md").text
    assert "Deploys happen on Tuesdays." in seen[0]
    assert (stage.project / "new.md").read_text() == "The project's own file of that name.\n"


async def test_without_a_sandbox_there_is_no_shell(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reverie.toolbox.sandbox.WHERE", "/nowhere")
    script = Script(lambda _, n: reply(call("Bash", "b1", command="ls")) if n == 1 else "done")
    async with stage.agent(script) as agent:
        await turn(agent, "What is here?")
    (result,) = results(script.forks[-1])
    assert result["is_error"]
    assert "no shell here" in str(result["content"])


async def test_files_that_are_no_memories_do_not_land(stage: Stage) -> None:
    files = {
        "logs/2026/01/2026-01-01.md": "- 10:00 deploys on Tuesday",
        "team/rule.md": FINE,
        "script.sh": "rm -rf deploys Tuesday",
        "empty.md": topic(""),
        "fine.md": FINE,
    }

    def all_of_them(task: ExtractTask, number: int) -> Any:
        if number > 1:
            return "done"
        return reply(
            *(
                call("Write", f"w{n}", file_path=f"{task.folder}/{name}", content=text)
                for n, (name, text) in enumerate(files.items())
            )
        )

    async with stage.agent(Script(all_of_them)) as agent:
        await turn(agent, "Deploys happen on Tuesdays.")
        found = cursor(agent)
        assert found is not None
        assert found.written == ("fine.md",)
        assert agent.memories is not None
        assert agent.memories.folder.keys() == ("fine.md",)
