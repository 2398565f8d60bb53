"""Commands that run on in the background, each with an id, until they are killed.

What a command says is kept in order and handed out once, the newest part bounded: what
nobody reads in time is dropped from the front, and that is said. All end with the
toolbox; none outlives this process.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import anyio
from anyio.abc import TaskGroup

from reverie.concurrency import alone
from reverie.tools import process
from reverie.tools.tool import ToolContext, ToolFailed

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
                none = process.Exit(-1)
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
