"""The command line in this process, and as a process of its own."""

from __future__ import annotations

import json
import os
import select
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest
from click.testing import CliRunner

from reverie.apps.cli import build
from reverie.session import RequestHead, SessionLibrary, open_session
from reverie.settings import DEFAULTS
from reverie.store import MemoryStore, Project, canonical_root, find_project_folder
from reverie.transcript import Attached, Candidate, Failed, Recalled, Record, text_block
from reverie.wire import tool_result, user

Run = Callable[..., "Done"]


@dataclass(frozen=True, slots=True)
class Done:
    """A command line that has ended."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        assert self.code == 0, self.err
        return json.loads(self.out)

    @property
    def error(self) -> dict[str, Any]:
        return json.loads(self.out)["error"]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder outside git that is the current one."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def welcomed(project: Path, home: Path) -> Path:
    """The same with a note in it, and a home that has seen the first-run notice."""
    (project / "notes.txt").write_text("the code word is heron\n")
    home.mkdir(mode=0o700)
    (home / ".reverie-welcomed").touch()
    return project


def memory_in(home: Path, project: Path) -> Path:
    """Where a project's memory lies."""
    return find_project_folder(home, canonical_root(project)) / "memory"


def remembered(home: Path, root: Path, sessions: int) -> None:
    """Give a project a memory and some sessions."""
    with MemoryStore.of(Project.at(root, home=home, environ={}, settings=DEFAULTS), now=time.time):
        pass
    memory = memory_in(home, root)
    (memory / "a.md").write_text(
        "---\nname: A\ndescription: about a\ntype: project\n---\n\nThe a.\n"
    )
    (memory / "MEMORY.md").write_text("- [A](a.md) — about a\n")
    for n in range(sessions):
        (memory.parent / f"00000000-0000-4000-8000-00000000000{n}.jsonl").write_text("")


@pytest.fixture
def run(home: Path, project: Path) -> Run:
    """`run("sessions", "list")`, in this process."""

    def runs(*args: str | Path, input: str | None = None, code: int | None = None) -> Done:  # noqa: A002
        result = CliRunner().invoke(build(), [str(arg) for arg in args], input=input)
        found = result.exception
        assert found is None or isinstance(found, SystemExit), found
        done = Done(result.exit_code, result.stdout, result.stderr)
        assert code is None or done.code == code, done
        return done

    return runs


@pytest.fixture
def process(home: Path, project: Path) -> Run:
    """The same as a real process."""

    def runs(*args: str | Path, env: Mapping[str, str] | None = None, **more: Any) -> Done:
        line = [sys.executable, "-m", "reverie.apps.cli", *map(str, args)]
        given = {**os.environ, **(env or {})}
        if "input" not in more:
            more.setdefault("stdin", subprocess.DEVNULL)
        done = subprocess.run(
            line, env=given, capture_output=True, text=True, timeout=60, check=False, **more
        )
        return Done(done.returncode, done.stdout, done.stderr)

    return runs


@pytest.fixture
def terminal(home: Path, project: Path) -> Callable[..., str]:
    """What a process writes to a terminal."""

    def shows(*args: str | Path, env: Mapping[str, str] | None = None) -> str:
        ours, theirs = os.openpty()
        line = [sys.executable, "-m", "reverie.apps.cli", *map(str, args)]
        given = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "160", **(env or {})}
        child = subprocess.Popen(line, env=given, stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        seen = b""
        try:
            while select.select([ours], [], [], 60)[0]:
                try:
                    piece = os.read(ours, 65536)
                except OSError:  # the other side is closed
                    break
                if not piece:
                    break
                seen += piece
        finally:
            os.close(ours)
            child.wait(60)
        return seen.decode("utf-8", "replace")

    return shows


@pytest.fixture
def recorded(shared: Path) -> Callable[[str], Path]:
    """A recorded session by the beginning of its name."""

    def finds(name: str) -> Path:
        return next((shared / "data" / "sessions_dev").glob(f"{name}*"))

    return finds


def assert_private(folder: Path) -> None:
    """Every file 0600, every folder 0700."""
    for path in (folder, *folder.rglob("*")):
        mode = os.lstat(path).st_mode
        wanted = 0o700 if stat.S_ISDIR(mode) else 0o600
        assert stat.S_IMODE(mode) == wanted, f"{path}: {stat.S_IMODE(mode):o}"


# --- sessions

ESCAPES = "\x1b]52;c;cHduZWQ=\x07\x1b[31mred\x9b0m \u202eevil"


def reply(text: str, *calls: dict[str, Any]) -> dict[str, Any]:
    return {
        "content": [{"type": "text", "text": text}, *calls],
        "model": "test-model",
        "usage": {"input_tokens": 100, "output_tokens": 5},
    }


def one_turn(
    project: Path,
    said: str,
    answer: str | dict[str, Any],
    between: Callable[[str], Sequence[Record]] = lambda _: (),
    **options: Any,
) -> str:
    """A session of one turn, and what was recorded before its answer; gives its id."""

    async def talk() -> str:
        async with open_session(project, **{"model": "m", **options}) as session:
            await session.add(user(said))
            await session.append(*between(session.view.leaf))
            await session.prepare()
            await session.observe(reply(answer) if isinstance(answer, str) else answer)
            await session.end_turn()
            return session.id

    return anyio.run(talk)


def injecting(
    file: str, text: str, considered: int, *others: Candidate
) -> Callable[[str], Sequence[Record]]:
    """What a recall records that injected one memory."""
    name = 'reverie-note id="0123456789abcdef"'
    note = text_block(f'<{name} source="{file}">\n{text}\n</{name}>')
    found = (Candidate(file, 4.2, "injected", "words 4.20", 99), *others)
    return lambda leaf: (Attached((note,), "recall"), Recalled(leaf, considered, found))


@pytest.fixture
def made(project: Path, home: Path) -> str:
    """A session with a stored result, a failure, a changed head and a rewind."""
    return anyio.run(_made, project)


async def _made(project: Path) -> str:
    call = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls"}}
    async with open_session(project, model="test-model", system="Be brief.") as session:
        await session.add(user(f"List the files {ESCAPES}"))
        await session.prepare()
        await session.observe(reply("I look", call))
        await session.add(tool_result("toolu_1", f"{ESCAPES}\n" + "file\n" * 20_000))
        await session.prepare()
        await session.observe(reply("Many files."))
        await session.end_turn()
        here = session.view.leaf
        await session.append(Failed("notes", f"the disk is {ESCAPES}full"))
        await session.add(user("Never mind"))
        await session.prepare()
        await session.observe(reply("As you wish."))
        await session.rewind(here)
        await session.append(RequestHead("other-model", "Be brief.").record("model"))
        await session.add(user("Count them"))
        await session.prepare()
        return session.id


def library(place: Path | str = ".") -> SessionLibrary:
    found = SessionLibrary.find(Project.at(Path(place)))
    assert found is not None
    return found


def claude_row(session: str, said: str = "hello") -> str:
    row = {
        "type": "user",
        "uuid": f"u-{session}",
        "sessionId": session,
        "cwd": "/somewhere",
        "timestamp": "2026-01-02T03:04:05Z",
        "message": {"role": "user", "content": said},
    }
    return json.dumps(row) + "\n"


@pytest.fixture(name="user")
def user_of_claude_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder with settings of Claude Code in it, and nothing of ours."""
    folder = tmp_path / "user"
    (folder / ".claude").mkdir(parents=True)
    (folder / ".claude" / "settings.json").write_text('{"model": "opus"}\n')
    monkeypatch.setenv("HOME", str(folder))
    return folder
