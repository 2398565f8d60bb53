"""The guard for background agents, watched from outside."""

from __future__ import annotations

import itertools
import os
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from reverie.errors import WriteFailed
from reverie.store import digest
from reverie.toolbox import (
    DENIED,
    READING,
    SHELL,
    WALL,
    WRITING,
    Command,
    Denied,
    Guard,
    GuardLimits,
    Guards,
    OutputBuffer,
    ReadLog,
    Sandbox,
    SandboxMounts,
    ToolFailed,
    ToolRunner,
    arguments,
    box_of,
    run,
    standard,
    version,
)
from reverie.toolbox import landlock as wall
from reverie.transcript import MAIN, dump
from reverie.world import ForkSpec
from tests.conftest import Scale
from tests.tools.bypasses import commands
from tests.tools.kit import Ears, Place, call, listening, processes_with, result, snapshot, use

pytestmark = pytest.mark.spec("7")

ALL = READING | WRITING | {SHELL}
SANDBOX = Sandbox()
RAN = "RAN42"
NO_WALL = 77
NO_SANDBOX = Sandbox("no-such-bubblewrap")


def guard(place: Place, sandbox: Sandbox = SANDBOX, tools: frozenset[str] = ALL) -> Guard:
    limits = GuardLimits(tools, (place.root, place.project), (str(place.memory),), (place.home,))
    return Guard(standard(), place.context(), limits, sandbox, "extract_memories")


@dataclass
class Field:
    """A project full of traps, and everything about it that must stay as it is."""

    place: Place
    ears: Ears

    @property
    def mark(self) -> Path:
        return self.place.root / "mark.sh"

    def filled(self, line: str) -> str:
        return (
            line.replace("<mark>", str(self.mark))
            .replace("<out>", str(self.place.outside / "w"))
            .replace("<dir>", str(self.place.outside))
            .replace("<in>", str(self.place.root / "in.txt"))
            .replace("<lock>", str(self.place.memory / ".consolidate-lock"))
            .replace("<port>", str(self.ears.port))
            .replace("<udp>", str(self.ears.udp_port))
            .replace("<ear>", str(self.ears.path))
        )

    def watched(self) -> dict[str, object]:
        place = self.place
        return dict(snapshot(place.outside, place.root, place.user))

    def heard(self) -> list[str]:
        return self.ears.heard()


@contextmanager
def field(place: Place) -> Iterator[Field]:
    (place.root / "in.txt").write_text("one\ntwo\nthree\n")
    (place.root / "-exec").write_text("x")
    (place.root / ".env").write_text("KEY=secret-env")
    (place.memory / "MEMORY.md").write_text("- [A](a.md) — a\n")
    (place.memory / "a.md").write_text("alpha\n")
    (place.memory / ".consolidate-lock").write_text("")
    (place.user / ".ssh").mkdir()
    (place.user / ".ssh" / "id_rsa").write_text("secret-ssh")
    (place.home / "projects" / "-other").mkdir()
    (place.home / "projects" / "-other" / "s.jsonl").write_text("secret-other")
    (place.home / "credentials").write_text("secret-home")
    (place.outside / "outside.txt").write_text("secret-outside")
    with listening(place.outside) as ears:
        found = Field(place, ears)
        found.mark.write_text(
            f"#!/bin/sh\necho RAN$((6*7))\necho x > {place.outside}/ran\n"
            f"echo x > /dev/tcp/127.0.0.1/{ears.port}\n"
        )
        found.mark.chmod(0o755)
        git(place.root, "init", "-q")
        git(place.root, "add", "in.txt")
        git(place.root, "commit", "-qm", "one")
        for name, value in {
            "core.fsmonitor": str(found.mark),
            "alias.pwn": f"!{found.mark}",
            "diff.external": str(found.mark),
            "core.pager": str(found.mark),
        }.items():
            git(place.root, "config", name, value)
        (place.root / "in.txt").write_text("one\ntwo\nthree\nfour\n")
        yield found


def git(folder: Path, *argv: str) -> None:
    subprocess.run(["git", *argv], cwd=folder, check=True, capture_output=True)


def test_there_are_enough_ways_to_try() -> None:
    assert len(commands()) >= 158 + 100
    assert len(set(commands())) == len(commands())


@pytest.mark.needs("bwrap", "git")
async def test_no_command_gets_through_the_guard(place: Place) -> None:
    """Nothing is written, run or sent, and each denial is logged."""
    with field(place) as ground:
        agent = guard(place)
        before = ground.watched()
        for line in commands():
            denied = len(agent.denials)
            found = await use(agent, "Bash", command=ground.filled(line))
            assert RAN not in found.text, line
            assert found.is_error or len(agent.denials) == denied, line
            if len(agent.denials) > denied:
                assert "Go on without it" in found.text
        assert ground.watched() == before
        assert ground.heard() == []
        assert not processes_with(str(place.base))
        assert len(agent.denials) >= len(commands()) - 8
        assert len(place.notices) == len(agent.denials)


@pytest.mark.needs("bwrap", "git")
@pytest.mark.parametrize("landlock", [True, False], ids=["both walls", "first wall alone"])
async def test_the_kernel_holds_without_the_list(place: Place, landlock: bool) -> None:
    """The same commands straight to bash inside the sandbox, with every program there is."""
    with field(place) as ground:
        before = ground.watched()
        roots = (place.root, place.project)
        box = SandboxMounts(roots, cwd=place.root, shell="bash", landlock=landlock)
        assert await tried(ground, box) > 250
        assert ground.watched() == before
        assert ground.heard() == []
        assert not processes_with(str(place.base))


async def tried(ground: Field, box: SandboxMounts) -> int:
    """Many commands in one sandbox, each in a shell of its own; how many."""
    waits = ("kill -9 -1", "sleep 9999", "watch")  # have a test of their own
    lines = [
        c
        for c in map(ground.filled, commands())
        if "\0" not in c and len(c) < 5_000 and not any(w in c for w in waits)
    ]
    for start in range(0, len(lines), 50):
        sink = OutputBuffer(1_000_000)
        script = behind_a_wall(ground, lines[start : start + 50])
        ended = await SANDBOX.run(script, box, sink, 60)
        assert ended.cause == "itself", sink.text[-500:]
        assert ended.code != NO_WALL
    return len(lines)


def behind_a_wall(ground: Field, lines: list[str]) -> str:
    """The commands, none of which is tried where a first harmless write goes through."""
    canary = shlex.quote(str(ground.place.root / "canary"))
    first = f"if true 2>/dev/null > {canary}; then exit {NO_WALL}; fi"
    each = [f"/bin/bash -c {shlex.quote(c)} </dev/null" for c in lines]
    return "\n".join([first, *each])


async def test_the_watchers_see(place: Place) -> None:
    """What is shown by silence elsewhere makes a noise where nothing stands in the way."""
    with field(place) as ground:
        for line, ears in {
            "sort -o <out> <in>": [],
            "touch -d 2001-01-01 <lock>": [],
            "chmod 777 <in>": [],
            "find in.txt -exec bash <mark> ;": ["tcp"],
            "echo x > /dev/tcp/127.0.0.1/<port>": ["tcp"],
            "echo x > /dev/udp/127.0.0.1/<udp>": ["udp"],
        }.items():
            before = ground.watched()
            argv = ["bash", "-c", ground.filled(line).replace(" ;", r" \;")]
            sink = OutputBuffer(10_000)
            await run(Command(argv, place.root, dict(os.environ)), sink, 30)
            assert ground.heard() == ears, (line, sink.text)
            assert (ground.watched() != before) is (not ears or "mark" in line)
            assert (RAN in sink.text) is ("mark" in line)


@pytest.mark.needs("bwrap")
async def test_what_outlives_or_kills_inside_the_sandbox(place: Place) -> None:
    with field(place) as ground:
        before = ground.watched()
        for line in (
            "kill -9 -1",
            "sleep 99 & setsid sleep 99 & nohup sleep 99 &",
            "sleep 99",
        ):
            box = SandboxMounts((place.root,), cwd=place.root, shell="bash", landlock=False)
            await SANDBOX.run(f": {place.base}; {line}", box, OutputBuffer(1_000), 1.0)
            assert not processes_with(str(place.base))
        assert ground.watched() == before


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux: Landlock is its own")
async def test_the_second_wall_alone_holds_writes_programs_and_tcp(place: Place) -> None:
    """Landlock without namespaces: all but times and modes, which it does not cover."""
    if version() < 4:
        pytest.skip("needs landlock: this kernel has none, or too old a one")
    with field(place) as ground:
        (place.root / ".git" / "config").write_text("")
        before = ground.watched()
        box = SandboxMounts((place.root,), cwd=place.root, shell="bash")
        rules = arguments("", box)
        asked = rules[rules.index(WALL, rules.index("--")) + 1]
        uncovered = ("touch", "chmod", "chown", "chattr", "utime", "kill", "watch", "sleep", "udp")
        uncovered += ("date", "hostname", "sysctl", "core_pattern", "mount", "dmesg", "logger")
        lines = [
            c
            for c in map(ground.filled, commands())
            if "\0" not in c and len(c) < 5_000 and not any(u in c for u in uncovered)
        ]
        script = behind_a_wall(ground, lines)
        argv = [sys.executable, "-I", "-S", wall.__file__, asked, "/bin/bash", "-c", script]
        sink = OutputBuffer(2_000_000)
        ended = await run(Command(argv, place.root, {"PATH": "/usr/bin:/bin"}), sink, 60)
        assert ended.cause == "itself", sink.text[-500:]
        assert ended.code != NO_WALL
        assert len(lines) > 200
        assert ground.watched() == before
        assert "tcp" not in ground.heard()


@pytest.mark.needs("bwrap")
async def test_the_shell_reads(place: Place) -> None:
    with field(place):
        agent = guard(place)
        assert "in.txt" in (await use(agent, "Bash", command="ls -la")).text
        assert (await use(agent, "Bash", command="grep -n two in.txt | head -1")).text == "2:two"
        assert (await use(agent, "Bash", command="cat in.txt | wc -l")).text.strip() == "4"
        both = await use(agent, "Bash", command=f"ls *.txt && cat {place.memory}/a.md 2>/dev/null")
        assert both.text == "in.txt\nalpha"
        assert (
            "MEMORY.md"
            in (await use(agent, "Bash", command=f"find {place.memory} -name '*.md'")).text
        )
        assert "[exit code 1]" in (await use(agent, "Bash", command="grep zzz in.txt")).text
        assert not agent.denials


@pytest.mark.needs("bwrap")
@pytest.mark.parametrize(
    "line",
    [
        "cat <user>/.ssh/id_rsa",
        "cat .env",
        "cat <home>/credentials",
        "cat <home>/projects/-other/s.jsonl",
        "cat <outside>/outside.txt",
        "cat ../outside/outside.txt",
        "cat link/outside.txt",
        "grep -r secret- / <base> .",
        "find <base> -name 's*'",
        "ls -laR <user>",
        "cat /etc/passwd /etc/shadow",
        "cat /proc/1/environ /proc/self/environ",
        "head -c 100 sub/.env.local",
        "cat .git/config",
    ],
)
async def test_the_shell_sees_no_secret_and_no_other_project(place: Place, line: str) -> None:
    with field(place):
        (place.root / "link").symlink_to(place.outside)
        (place.root / "sub").mkdir()
        (place.root / "sub" / ".env.local").write_text("secret-sub")
        for name in ("user", "home", "outside", "base"):
            line = line.replace(f"<{name}>", str(getattr(place, name)))
        found = await use(guard(place), "Bash", command=line)
        assert "secret-" not in found.text.replace(line, "")
        assert "root:" not in found.text
        assert "fsmonitor" not in found.text
        assert "HOME" not in found.text


@pytest.mark.needs("bwrap", "python3")
async def test_a_socket_in_the_project_leads_nowhere(place: Place) -> None:
    with listening(place.root) as ears:
        (place.root / ".env").symlink_to("ear")
        box = replace(box_of(guard(place).files), shell="bash", landlock=False)
        assert ears.path in box.masked_files
        line = f"import socket;s=socket.socket(socket.AF_UNIX);s.connect('{ears.path}')"
        sink = OutputBuffer(10_000)
        ended = await SANDBOX.run(f'/usr/bin/python3 -c "{line}"; ls', box, sink, 30)
        assert ended.code == 0
        assert "Error" in sink.text
        assert ears.heard() == []


async def test_a_project_too_large_to_look_through_has_no_shell(place: Place) -> None:
    files = guard(place).files
    (place.root / "deep").mkdir()
    for number in range(30):
        (place.root / "deep" / str(number)).touch()
    assert box_of(files).masked_files == ()
    with pytest.raises(ToolFailed, match="too many files"):
        box_of(files, 20)


@pytest.mark.needs("bwrap")
async def test_the_shell_is_bounded(place: Place) -> None:
    (place.root / "big").write_text("x" * 1_000_000)
    agent = guard(place)
    found = await use(agent, "Bash", command="cat big big big")
    assert len(found.text) < 210_000
    slow = await use(agent, "Bash", command="tail -f big", timeout=1)
    assert slow.is_error
    assert not processes_with(str(place.base))
    later = await use(agent, "Bash", command="ls", run_in_background=True)
    assert "background" in later.text


@pytest.mark.spec("18")
async def test_without_a_sandbox_there_is_no_shell(place: Place) -> None:
    agent = guard(place, NO_SANDBOX)
    found = await use(agent, "Bash", command="ls")
    assert found.is_error
    assert "there is no shell here: no-such-bubblewrap is not installed" in found.text
    assert agent.denials[0].tool == "Bash"
    (place.root / "a").write_text("hi")
    assert "hi" in (await use(agent, "Read", file_path="a")).text


@pytest.mark.spec("18")
async def test_a_sandbox_that_does_not_work_is_none(place: Place, tmp_path: Path) -> None:
    """Programs that only look like bubblewrap: one fails, one runs the command bare."""
    fails = tmp_path / "fails"
    fails.write_text("#!/bin/sh\necho no namespaces >&2; exit 1\n")
    bare = tmp_path / "bare"
    bare.write_text(
        '#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done\nfor a; do l=$a; done\n'
        'cd "$(ls -td ${TMPDIR:-/tmp}/reverie-* | head -1)" && exec sh -c "$l"\n'
    )
    for program in (fails, bare):
        program.chmod(0o755)
        reason = await Sandbox(str(program)).why_not()
        assert reason
        agent = guard(place, Sandbox(str(program)))
        assert (await use(agent, "Bash", command="ls")).is_error
    assert "let a file be written" in await Sandbox(str(bare)).why_not()


# --- typed tools


DENIED_TOOLS = [
    "Task", "Agent", "WebFetch", "WebSearch", "NotebookEdit", "mcp__fs__write", "BashOutput",
    "KillShell", "SendMessage", "bash", "BASH", "Bash ", "read", "", "Edit\0", "TodoWrite",
]  # fmt: skip


@pytest.mark.parametrize("name", DENIED_TOOLS)
async def test_other_tools_are_denied_at_call_time(place: Place, name: str) -> None:
    agent = guard(place)
    found = await use(agent, name, command="ls", id="x")
    assert (found.text, found.is_error) == (DENIED, True)
    assert agent.denials[0].tool == name
    assert place.notices[0].layer == "guard"


async def test_only_what_the_spec_names(place: Place) -> None:
    before = dump(standard().definitions())
    agent = guard(place, tools=frozenset({"Edit", "mcp__fs__write"}))
    for name in sorted(ALL - {"Edit"}):
        assert (await use(agent, name)).text == DENIED
    assert (await use(agent, "mcp__fs__write")).text == DENIED
    assert "is missing" in (await use(agent, "Edit")).text
    assert dump(agent.registry.definitions()) == before


WRITES = [
    "<outside>/w.md", "<root>/w.md", "./w.md", "w.txt", ".w.md", "link/w.md", "file-link.md",
    "dangling.md", "../outside/w.md", "<memory>/../w.md",
    "<memory>/../../-other/w.md", "<memory>/../../../settings.json", "<memory>-evil/w.md",
    "<memory>x/w.md", "<memory>", "<memory>/", "<memory>/.", "<memory>/..", "<memory>/link/w.md",
    "<memory>/file-link.md", "<memory>/dangling.md", "<memory>/loop/w.md", "<memory>/pipe.md",
    "<memory>/.consolidate-lock", "<memory>/.hidden.md", "<memory>/sub/.git/config",
    "<memory>/a\0.md", "<memory>/a\n.md", "<memory>/a\u200b.md", "<memory>/a\u202e.md",
    "<memory>/\uff0e\uff0e/w.md", "<memory>/\u2025/w.md", "<memory>/a\u2215b.md",
    "<memory>/%2e%2e/w.md", "<memory>/..%2fw.md", "<memory>/..\\w.md", "<memory>/a.md:stream",
    "<memory>/CON", "<memory>/nul.md", "<memory>/a.md.", "<memory>/a.md ", "<memory>/ a.md",
    "<memory>/A.MD", "<memory>/memory.md", "<memory>/\u212a.md", "<memory>/MEMORY.md/x.md",
    "<memory>/" + "d/" * 12 + "w.md", "<memory>/" + "x" * 300 + ".md", "<memory>/" + "y" * 5_000,
    "~/w.md", "~", "/", "//etc/w.md", "/etc/w.md", "/dev/null", "/dev/shm/w.md", "/proc/self/mem",
    "/proc/self/cwd/w.md", "<memory>/../memory/../../-other/w.md", "file://<memory>/w.md", "",
    ".", "..", "<user>/.ssh/authorized_keys", "<root>/.git/hooks/pre-commit",
    "<home>/settings.json",
    "<project>/s.jsonl", "<project>/s/tool-results/t.txt", "C:\\w.md", "\\\\host\\w.md",
    "<root>/in-link/../w.md", "<memory>/twolinks/w.md",
]  # fmt: skip


@pytest.mark.parametrize("how", ["Write", "Edit"])
async def test_writes_stay_in_their_folder(place: Place, how: str) -> None:
    with field(place) as ground:
        traps(place)
        agent = guard(place)
        await use(agent, "Read", file_path=str(place.memory / "a.md"))
        before = ground.watched()
        for path in WRITES:
            target = placed(place, path)
            value: dict[str, Any] = {"file_path": target, "content": "evil"}
            if how == "Edit":
                agent.note_read(target, "0" * 64)
                value = {"file_path": target, "old_string": "a", "new_string": "evil"}
            found = await use(agent, how, **value)
            assert found.is_error, path
        after = ground.watched()
        for seen in (before, after):
            del seen[str(place.memory)]  # a temporary file may have come and gone in it
        assert after == before
        assert agent.written == ()
        assert len(agent.denials) >= len(WRITES) - 6


def placed(place: Place, path: str) -> str:
    for name in ("root", "outside", "user", "home", "memory", "project"):
        path = path.replace(f"<{name}>", str(getattr(place, name)))
    return path


def traps(place: Place) -> None:
    (place.memory / "K.md").write_text("k")
    (place.memory / "link").symlink_to(place.outside)
    (place.memory / "file-link.md").symlink_to(place.outside / "outside.txt")
    (place.memory / "dangling.md").symlink_to(place.outside / "made.md")
    (place.memory / "loop").symlink_to("loop")
    (place.memory / "twolinks").symlink_to("link")
    (place.root / "in-link").symlink_to(place.memory)
    os.mkfifo(place.memory / "pipe.md")
    (place.home / "projects" / "-project" / "memory-evil").mkdir()


READS = [
    "<outside>/outside.txt", "../outside/outside.txt", "link/outside.txt", "file-link",
    "<user>/.ssh/id_rsa", "~/.ssh/id_rsa", ".env", "./.env", "sub/../.env", "sub/.env.local",
    "<root>/.ENV", "id_rsa.bak", ".git/config", "<home>/credentials", "<home>/settings.json",
    "<home>/projects/-other/s.jsonl", "<project>/../-other/s.jsonl", "<memory>/link/outside.txt",
    "<memory>/file-link.md", "<memory>/../../-other/s.jsonl", "/etc/passwd", "/proc/self/environ",
    "/proc/self/root/etc/passwd", "/proc/1/cwd", "/dev/zero", "/", "..", "<root>-evil/x",
    "<memory>/pipe.md", "a\0b", "", "<home>", "<user>", "\uff0e\uff0e/outside/outside.txt",
    "/proc/self/fd/0", "<root>/../outside", "file:///etc/passwd", "<project>/../../credentials",
]  # fmt: skip


@pytest.mark.parametrize(
    ("tool", "key"), [("Read", "file_path"), ("Grep", "path"), ("Glob", "path"), ("List", "path")]
)
async def test_reads_stay_in_their_folders(place: Place, tool: str, key: str) -> None:
    with field(place) as ground:
        traps(place)
        (place.root / "link").symlink_to(place.outside)
        (place.root / "file-link").symlink_to(place.outside / "outside.txt")
        (place.root / "sub").mkdir()
        (place.root / "sub" / ".env.local").write_text("secret-sub")
        (place.root / "id_rsa.bak").write_text("secret-bak")
        before = ground.watched()
        agent = guard(place)
        more = {"Grep": {"pattern": "secret-", "output_mode": "content"}, "Glob": {"pattern": "**"}}
        for path in READS:
            if path == "" and tool != "Read":
                continue  # the project itself
            found = await use(agent, tool, **{key: placed(place, path)}, **more.get(tool, {}))
            assert found.is_error, (tool, path, found.text)
            assert "secret-" not in found.text
        assert ground.watched() == before


async def test_searches_from_above_leave_secrets_and_other_projects_out(place: Place) -> None:
    """The project is the person's home: what is below it is not all to be read."""
    with field(place):
        limits = GuardLimits(ALL, (place.base, place.project), (str(place.memory),), (place.home,))
        for path in (os.environ["PATH"], "/none"):
            context = place.context(environ={"PATH": path}, cwd=place.base)
            agent = Guard(standard(), context, limits, NO_SANDBOX)
            found = await use(agent, "Grep", pattern="secret-", output_mode="content")
            assert found.text.endswith("outside.txt:1:secret-outside")
            assert len(found.text.splitlines()) == 1
        every = (await use(agent, "Glob", pattern="**")).text
        assert "MEMORY.md" not in every  # below home, and not asked for by its own folder
        for hidden in (".env", "id_rsa", "-other", "credentials"):
            assert hidden not in every
        assert "MEMORY.md" in (await use(agent, "List", path=str(place.memory))).text
        assert ".env" not in (await use(agent, "List", path=str(place.root))).text


@pytest.mark.parametrize(
    "value",
    [
        {"pattern": "--pre=<mark>"},
        {"pattern": "-f", "path": "<in>"},
        {"pattern": "one", "glob": "--pre=<mark>"},
        {"pattern": "one", "glob": "!*", "path": "."},
        {"pattern": "one", "path": "--pre=<mark>"},
        {"pattern": "one", "path": "-", "glob": "-"},
        {"pattern": "$(<mark>)"},
        {"pattern": "`<mark>`", "output_mode": "count"},
        {"pattern": "one; <mark>"},
        {"pattern": "one\n<mark>"},
        {"pattern": "secret-", "glob": ".env"},
        {"pattern": "secret-", "glob": "**/.env", "output_mode": "content"},
        {"pattern": "secret-", "glob": "{.env,x}", "output_mode": "content"},
        {"pattern": "secret-", "glob": ".E*", "output_mode": "content"},
    ],
)
async def test_grep_runs_nothing_and_finds_no_secret(place: Place, value: dict[str, str]) -> None:
    with field(place) as ground:
        before = ground.watched()
        for path in (os.environ["PATH"], "/none"):
            limits = GuardLimits(ALL, (place.root,), (), ())
            agent = Guard(standard(), place.context(environ={"PATH": path}), limits, NO_SANDBOX)
            asked = {k: ground.filled(v) for k, v in value.items()}
            found = await use(agent, "Grep", **asked)
            assert "secret-env" not in found.text
            assert RAN not in found.text
        assert ground.watched() == before
        assert ground.heard() == []


async def test_writing_in_the_folder_works(place: Place) -> None:
    with field(place):
        agent = guard(place)
        new = str(place.memory / "sub" / "new.md")
        assert not (await use(agent, "Write", file_path=new, content="hello")).is_error
        old = str(place.memory / "a.md")
        assert (
            "not read yet"
            in (await use(agent, "Edit", file_path=old, old_string="alpha", new_string="beta")).text
        )
        await use(agent, "Read", file_path=old)
        by_project = f"../user/.reverie/{old.partition('/.reverie/')[2]}"
        done = await use(agent, "Edit", file_path=by_project, old_string="alpha", new_string="beta")
        assert not done.is_error, done.text
        assert (place.memory / "a.md").read_text() == "beta\n"
        assert agent.written == (new, old)
        assert not agent.denials
        (place.memory / "a.md").write_text("mine\n")
        late = await use(agent, "Edit", file_path=old, old_string="mine", new_string="x")
        assert "changed since" in late.text
        assert (place.memory / "a.md").read_text() == "mine\n"


async def test_one_file_alone_may_be_written(place: Place) -> None:
    notes = place.project / "s" / "session-memory" / "summary.md"
    notes.parent.mkdir(parents=True)
    for exists in (False, True):
        limits = GuardLimits(frozenset({"Edit", "Write"}), (place.root,), (str(notes),))
        agent = Guard(standard(), place.context(), limits, NO_SANDBOX)
        if exists:
            agent.note_read(notes, digest(notes.read_bytes()))
        else:
            assert not (await use(agent, "Write", file_path=str(notes), content="# A\n")).is_error
        done = await use(agent, "Edit", file_path=str(notes), old_string="A", new_string="A")
        assert "the same" in done.text
        for name in (
            "other.md",
            "summary.md.bak",
            "summary.md/x.md",
            "../summary.md",
            "SUMMARY.md",
        ):
            path = str(notes.parent / name)
            assert (await use(agent, "Write", file_path=path, content="x")).is_error
        assert [p.name for p in notes.parent.iterdir()] == ["summary.md"]


async def test_a_hard_link_inside_does_not_change_the_outside_file(place: Place) -> None:
    with field(place):
        os.link(place.outside / "outside.txt", place.memory / "hard.md")
        agent = guard(place)
        path = str(place.memory / "hard.md")
        await use(agent, "Read", file_path=path)
        await use(agent, "Edit", file_path=path, old_string="outside", new_string="changed")
        assert (place.outside / "outside.txt").read_text() == "secret-outside"


async def test_no_race_leads_out(place: Place, scale: Scale) -> None:
    """A folder is swapped for a link to outside all the while."""
    with field(place) as ground:
        inner = place.memory / "d"
        inner.mkdir()
        grave = place.base / "grave"
        grave.mkdir()
        before = snapshot(place.outside)
        over = threading.Event()

        def swap() -> None:
            for number in itertools.count():
                if over.is_set():
                    return
                with suppress(OSError):
                    os.rename(inner, grave / str(number))
                with suppress(OSError):
                    os.symlink(place.outside, inner)
                with suppress(OSError):
                    os.unlink(inner)
                with suppress(OSError):
                    os.mkdir(inner)

        swapper = threading.Thread(target=swap)
        swapper.start()
        agent = guard(place)
        written = 0
        try:
            for number in range(scale.pick(300, 20_000)):
                path = str(inner / f"f{number % 50}.md")
                found = await use(agent, "Write", file_path=path, content="x")
                written += not found.is_error
                stolen = await use(agent, "Read", file_path=str(inner / "outside.txt"))
                assert "secret-outside" not in stolen.text
        finally:
            over.set()
            swapper.join()
        assert snapshot(place.outside) == before
        assert ground.heard() == []


async def test_a_link_put_in_the_way_between_look_and_use_is_refused(place: Place) -> None:
    with field(place) as ground:
        inner = place.memory / "d"
        inner.mkdir()
        (inner / "outside.txt").write_text("mine")
        files = guard(place).files
        found, target = files.find(str(inner / "outside.txt")), files.target(str(inner / "new.md"))
        inner.rename(place.memory / "aside")
        inner.symlink_to(place.outside)
        before = ground.watched()
        with pytest.raises(Denied, match="link"):
            files.open(found)
        with pytest.raises(Denied, match="link"):
            files.write(target, b"x", None)
        assert ground.watched() == before
        # nor does a folder that takes the place of the one the agent began with
        place.memory.rename(place.project / "moved")
        place.memory.symlink_to(place.outside)
        with pytest.raises(WriteFailed):
            files.write(place.memory / "late.md", b"x", None)
        assert not (place.project / "moved" / "late.md").exists()
        assert not (place.outside / "late.md").exists()


async def test_guards_are_made_from_a_forks_spec(place: Place) -> None:
    log = ReadLog()
    log.note("/x", "1")
    guards = Guards(
        standard(),
        lambda: place.context(reads=log),
        (place.root, place.project),
        (place.home,),
        NO_SANDBOX,
    )
    spec = ForkSpec("extract_memories", "go", MAIN, 5, ("Read", "Write"), (str(place.memory),))
    agent = guards(spec)
    runner: ToolRunner = agent
    assert result(await runner.run(call("Grep", pattern="x"))).text == DENIED
    assert not (
        await use(agent, "Write", file_path=str(place.memory / "n.md"), content="")
    ).is_error
    assert log.recent() == ["/x"]  # the parent's own log is as it was
    assert agent.reads["/x"] == "1"
    unwritable = guards(ForkSpec("recall", "go", MAIN, 1, ("Read", "Write")))
    assert (await use(unwritable, "Write", file_path="x", content="")).text == DENIED
    agent.close()
