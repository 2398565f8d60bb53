"""Bash and background commands, their output.

Bash, BashOutput and KillShell: commands in the project's folder.

Each command gets a fresh shell of its own, no terminal and nothing on its standard input.
When it ends or its time is up everything it started is killed, daemons too (see `keeper`
for what holds); what should go on is started with run_in_background. All output is kept:
see `spool` for how much of it in memory.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup
from anyio.lowlevel import checkpoint

from reverie.concurrency import alone
from reverie.errors import NotAvailable, StoreError
from reverie.layers.tool_results import FOLDER, file_name
from reverie.store.fs import write_whole
from reverie.store.paths import beneath
from reverie.toolbox import process
from reverie.toolbox.process import KILLED, Command, ProcessExit, readable, run
from reverie.toolbox.tool import Input, StoredResults, Tool, ToolContext, ToolFailed, ToolOutput

QUIET = {"GIT_TERMINAL_PROMPT": "0", "GIT_PAGER": "cat", "PAGER": "cat", "TERM": "dumb"}


def shell_of(context: ToolContext) -> str:
    path, projects = context.environ.get("PATH"), (context.root, context.cwd)
    found = find_program("bash", path, projects) or find_program("sh", path, projects)
    if not found:
        raise NotAvailable("there is no bash or sh on PATH outside the project")
    return found


def environ_of(context: ToolContext) -> dict[str, str]:
    """What a command finds in its environment: ours without keys, and nothing that asks."""
    return {**without_keys(context.environ), **QUIET}


def command_of(argv: list[str], context: ToolContext) -> Command:
    return Command(argv, Path(context.cwd), environ_of(context))


async def bash(value: Input, context: ToolContext) -> ToolOutput:
    line = str(value["command"])
    if not line.strip() or "\0" in line:
        raise ToolFailed("the command is empty or has a NUL character")
    argv = [shell_of(context), "-c", line]
    if value.get("run_in_background"):
        return await _in_background(argv, context)
    most = context.settings.tool_seconds
    seconds = min(float(value.get("timeout") or most), most)
    spool = Spool(context.stored, context.call)
    try:
        ended = await run(command_of(argv, context), spool, seconds)
    finally:
        spool.close()
    return _output(spool.text, ended)


def _output(text: str, ended: ProcessExit) -> ToolOutput:
    body = text.rstrip("\n")
    if ended.cause == "time":
        note = f"[ended after {ended.waited}, with {KILLED}]"
    elif ended.cause == "output":
        note = f"[ended: it said more than {MAX_SPOOLED:,} bytes]"
    elif ended.code:
        note = f"[exit code {ended.code}]"
    else:
        return ToolOutput(body or "(no output)")
    return ToolOutput(f"{body}\n{note}" if body else note, is_error=True)


async def _in_background(argv: list[str], context: ToolContext) -> ToolOutput:
    if context.shells is None:
        raise ToolFailed("there are no background commands here")
    if not context.cwd.is_dir():
        raise ToolFailed("the working folder is gone", where=str(context.cwd))
    name = await context.shells.start(argv, replace(context, environ=environ_of(context)))
    return ToolOutput(f"Started as {name}. BashOutput reads what it says, KillShell ends it.")


async def bash_output(value: Input, context: ToolContext) -> ToolOutput:
    if context.shells is None:
        raise ToolFailed("there are no background commands here")
    await checkpoint()  # what was just said may come in
    return ToolOutput(context.shells.read(str(value["id"])))


async def kill_shell(value: Input, context: ToolContext) -> ToolOutput:
    if context.shells is None:
        raise ToolFailed("there are no background commands here")
    return ToolOutput(await context.shells.kill(str(value["id"])))


_ID = {
    "type": "object",
    "properties": {"id": {"type": "string", "description": "The id that Bash gave"}},
    "required": ["id"],
    "additionalProperties": False,
}


_KEYS = re.compile(
    r"(ANTHROPIC|OPENAI|CLAUDE_CODE|AZURE_OPENAI)_.*"
    r"|(.*_)?(API_?KEY|ACCESS_KEY|SECRET_KEY|PRIVATE_KEY|SECRET|TOKEN|PASSWORD|CREDENTIALS)(_.*)?",
    re.IGNORECASE,
)


def find_program(name: str, path: str | None, projects: Iterable[Path]) -> str:
    """The real place of a program on `path`, outside every project; "" where there is none.

    A name with a folder in it stands for itself, under the same rule.
    """
    inside = [Path(os.path.realpath(one)) for one in projects]
    folders = [""] if "/" in name else (path or os.defpath).split(os.pathsep)
    for folder in folders:
        found = os.path.join(folder, name)
        if not os.path.isabs(found):
            continue
        real = os.path.realpath(found)
        places = (Path(os.path.realpath(os.path.dirname(found))), Path(real))
        if any(beneath(project, place) for project in inside for place in places):
            continue
        if os.path.isfile(real) and os.access(real, os.X_OK):
            return real
    return ""


def without_keys(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that a command may have: none that holds a provider's key or a token."""
    return {k: v for k, v in environ.items() if not _KEYS.fullmatch(k)}


MEMORY = 10 * 1024 * 1024
MAX_SPOOLED = 512 * 1024 * 1024
EDGE = 20_000


class Spool:
    """A sink for one command. Close it when the command is over."""

    def __init__(self, stored: StoredResults | None, call: str, *, memory: int = MEMORY) -> None:
        self._stored = stored
        self._call = call
        self._memory = memory
        self._held = bytearray()
        self._tail = b""
        self._fd: int | None = None
        self._why = ""
        self.size = 0
        self.path = ""

    async def __call__(self, piece: bytes) -> bool:
        self.size += len(piece)
        if self._fd is None and not self._why:
            self._held += piece
            if len(self._held) > self._memory:
                await to_thread.run_sync(self._open)
        elif self._fd is not None:
            await to_thread.run_sync(self._append, piece)
        if self.size > self._memory:
            self._tail = (self._tail + piece)[-EDGE:]
        return self.size < MAX_SPOOLED

    def _open(self) -> None:
        whole = bytes(self._held)
        self._held = self._held[:EDGE]
        if self._stored is None:
            self._why = "a private session stores nothing"
            return
        key = f"{self._stored.session}/{FOLDER}/{file_name(self._call)}-whole.txt"
        try:
            self._fd = self._stored.folder.open_append(key)
            os.ftruncate(self._fd, 0)
        except (StoreError, OSError) as error:
            self._give_up(str(error))
            return
        self.path = str(self._stored.folder.path(key))
        self._append(whole)

    def _append(self, piece: bytes) -> None:
        if self._fd is None:
            return
        try:
            write_whole(self._fd, piece)
        except OSError as error:
            self._give_up(f"{self.path} could not be written: {error.strerror}")

    def _give_up(self, why: str) -> None:
        self._why = why
        self.close()

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    @property
    def text(self) -> str:
        """All of it where it is small; else beginning and end, and where the whole is."""
        if self.size <= self._memory:
            return readable(bytes(self._held))
        head, tail = readable(bytes(self._held[:EDGE])), readable(self._tail)
        return f"[The output has {self.size:,} bytes; {self._where()}]\n{head}\n[…]\n{tail}"

    def _where(self) -> str:
        if self._why:
            return f"its middle was not kept: {self._why}"
        return f"it is stored whole in {self.path}, and ReadBack reads it. Beginning and end:"


BASH = Tool(
    "Bash",
    "Runs a shell command in the working folder, each time in a new shell, for at most 2 minutes. "
    "Output and errors come back together, with the exit code where it is not 0. When it ends, so "
    "does all it started; run_in_background starts what should go on. No terminal, no input.",
    {
        "type": "object",
        "properties": {
            "command": {"type": "string", "description": "The command line"},
            "timeout": {
                "type": "number",
                "minimum": 1,
                "description": "Seconds after which it is ended",
            },
            "run_in_background": {
                "type": "boolean",
                "description": "Return at once with an id; read with BashOutput",
            },
        },
        "required": ["command"],
        "additionalProperties": False,
    },
    bash,
    command="command",
    times_itself=True,
)
BASH_OUTPUT = Tool(
    "BashOutput",
    "Gives what a background command has said since it was last asked, and whether it still runs.",
    _ID,
    bash_output,
    read_only=True,
)
KILL_SHELL = Tool(
    "KillShell",
    "Ends a background command and everything it started.",
    _ID,
    kill_shell,
    read_only=True,
)


# --- Commands that run on in the background, each with an id, until they are killed.
#
# What a command says is kept in order and handed out once, the newest part bounded: what nobody
# reads in time is dropped from the front, and that is said. All end with the toolbox; none
# outlives this process.


UNREAD = 1024 * 1024
MAX = 16


@dataclass
class _Shell:
    id: str
    command: str
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    over: anyio.Event = field(default_factory=anyio.Event)
    unread: bytearray = field(default_factory=bytearray)
    dropped: int = 0
    state: str = "running"

    async def __call__(self, piece: bytes) -> bool:
        self.unread += piece
        extra = len(self.unread) - UNREAD
        if extra > 0:
            del self.unread[:extra]
            self.dropped += extra
        return True


class BackgroundShells:
    """The background commands of one toolbox."""

    def __init__(self, group: TaskGroup) -> None:
        self._group = group
        self._shells: dict[str, _Shell] = {}

    @property
    def running(self) -> tuple[str, ...]:
        return tuple(s.id for s in self._shells.values() if s.state == "running")

    async def start(self, argv: Sequence[str], context: ToolContext) -> str:
        """Start a command; gives its id."""
        if len(self.running) >= MAX:
            raise ToolFailed(
                f"{MAX} commands already run in the background", do="End one with KillShell"
            )
        shell = _Shell(f"shell_{len(self._shells) + 1}", argv[-1])
        command = process.Command(argv, Path(context.cwd), context.environ)
        self._shells[shell.id] = shell
        self._group.start_soon(self._run, shell, command)
        return shell.id

    async def _run(self, shell: _Shell, command: process.Command) -> None:
        try:
            with shell.scope:
                none = process.ProcessExit(-1)
                ended, error = await alone(process.run(command, shell, float("inf")), none)
                shell.state = f"failed: {error}" if error else f"ended with exit code {ended.code}"
        finally:
            if shell.state == "running":
                shell.state = "killed"
            shell.over.set()

    def read(self, id: str) -> str:  # noqa: A002 - the name the model uses
        """What a command said since it was last asked, and how it is."""
        shell = self._get(id)
        text = process.readable(bytes(shell.unread))
        note = f"[{shell.dropped:,} bytes before this were not read in time]\n"
        lost = note if shell.dropped else ""
        shell.unread.clear()
        shell.dropped = 0
        return f"[{shell.id}: {shell.state}]\n{lost}{text or '(nothing new)'}"

    async def kill(self, id: str) -> str:  # noqa: A002
        """End a command and all it started."""
        shell = self._get(id)
        shell.scope.cancel()
        await shell.over.wait()
        return f"{shell.id} {shell.state}"

    def _get(self, name: str) -> _Shell:
        shell = self._shells.get(name)
        if shell is None:
            known = ", ".join(self._shells) or "none"
            raise ToolFailed(f"there is no background command {name[:80]!r}; there are: {known}")
        return shell

    def stop(self) -> None:
        for shell in self._shells.values():
            shell.scope.cancel()
