"""Child processes that are bounded in time and output and leave nothing behind.

Every command runs under a keeper (`supervisor.py`) that ends the whole tree of it: when the
command is over, when the time is up, when the caller is cancelled, and when this process
is killed. Output goes to a sink chunk by chunk and is never gathered here. No shell is
involved unless the caller names one.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import field
from pathlib import Path
from typing import Literal, TypeAlias

import anyio
from anyio.abc import ByteReceiveStream, Process

from reverie import programs
from reverie.errors import NotFound
from reverie.light import dataclass
from reverie.programs import DEVNULL, PIPE, STDOUT
from reverie.toolbox import supervisor
from reverie.toolbox.tool import ToolFailed

PATIENCE = 10.0
"""Seconds a keeper has to end its tree; then it is killed itself."""
KILLED = "everything it had started" if sys.platform == "linux" else "its process group"
"""What a keeper ends with a command."""

Sink: TypeAlias = "Callable[[bytes], Awaitable[bool]]"
"""Takes a piece of output; False = enough, end the command."""


@dataclass(frozen=True, slots=True)
class Command:
    """What to run, and in which surroundings."""

    argv: Sequence[str]
    cwd: Path | int  # a folder, or a folder's descriptor
    environ: Mapping[str, str]
    stdin: int | bytes = b""  # a descriptor to read from, or bytes; none = the null device
    pass_fds: tuple[int, ...] = ()
    forks: bool = True  # False for a program known to start no other


@dataclass(frozen=True, slots=True)
class ProcessExit:
    """How it ended: by itself, out of time, or having said enough."""

    code: int
    cause: Literal["itself", "time", "output"] = "itself"
    seconds: float = field(default=0.0, compare=False)  # that it was really waited for

    @property
    def waited(self) -> str:
        """The time as it is told."""
        return f"{round(self.seconds, 1):g} s"


@asynccontextmanager
async def start_process(command: Command, *, apart: bool = False) -> AsyncGenerator[Process]:
    """A command under way; leaving ends it and all it started.

    What it says on standard error comes with its output, or with `apart` by itself.
    """
    if isinstance(command.cwd, Path) and not command.cwd.is_dir():
        raise NotFound("the working folder is gone", where=str(command.cwd))
    theirs, ours = os.pipe()
    try:
        process = await _spawn(command, theirs, PIPE if apart else STDOUT)
    except OSError as error:
        os.close(ours)
        raise ToolFailed(f"a process could not be started: {error.strerror}") from error
    except BaseException:
        os.close(ours)
        raise
    finally:
        os.close(theirs)
    try:
        yield process
    finally:
        with anyio.CancelScope(shield=True):
            os.close(ours)
            await _over(process)


async def _spawn(command: Command, lifeline: int, errors: int) -> Process:
    kind = "tree" if command.forks else "leaf"
    folder = f"fd:{command.cwd}" if isinstance(command.cwd, int) else str(command.cwd)
    head = programs.script(supervisor.__file__, str(lifeline), kind, folder)
    given = command.stdin
    more = (*command.pass_fds, command.cwd) if isinstance(command.cwd, int) else command.pass_fds
    spawned: list[Process] = []
    # a cancelled start would kill the keeper, and what it had just begun would stay
    with anyio.CancelScope(shield=True):
        spawned.append(
            await programs.start_async(
                [*head, *command.argv],
                command.environ,
                os.sep,
                stdin=given if isinstance(given, int) else PIPE if given else DEVNULL,
                stdout=PIPE,
                stderr=errors,
                pass_fds=(lifeline, *more),
            )
        )
    return spawned[0]


async def _over(process: Process) -> None:
    with anyio.move_on_after(PATIENCE):
        await process.wait()
    if process.returncode is None:
        with contextlib.suppress(OSError):
            process.kill()
    await process.aclose()


async def run(
    command: Command, sink: Sink, seconds: float, errors: Sink | None = None
) -> ProcessExit:
    """Run a command to its end, or to one of its limits; `errors` takes standard error apart."""
    began = anyio.current_time()
    async with start_process(command, apart=errors is not None) as process:
        with anyio.move_on_after(seconds):
            async with anyio.create_task_group() as group:
                if isinstance(command.stdin, bytes) and command.stdin:
                    group.start_soon(_feed, process, command.stdin)
                if not await _drain_output(process, sink, errors or sink):
                    group.cancel_scope.cancel()
                    return ProcessExit(-1, "output")
                code = await process.wait()
                group.cancel_scope.cancel()
                return ProcessExit(code)
        return ProcessExit(-1, "time", anyio.current_time() - began)


async def _feed(process: Process, data: bytes) -> None:
    if process.stdin is not None:
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await process.stdin.send(data)
            await process.stdin.aclose()


async def _drain_output(process: Process, sink: Sink, errors: Sink) -> bool:
    """Read all it says; False as soon as one sink has enough."""
    full = anyio.Event()

    async def drain(stream: ByteReceiveStream | None, into: Sink) -> None:
        if stream is None:
            return
        async for piece in stream:
            if not await into(piece):
                full.set()
                group.cancel_scope.cancel()
                return

    async with anyio.create_task_group() as group:
        group.start_soon(drain, process.stderr, errors)
        await drain(process.stdout, sink)
    return not full.is_set()


class OutputBuffer:
    """A sink that keeps the first bytes and then has enough."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.data = bytearray()

    async def __call__(self, piece: bytes) -> bool:
        self.data += piece[: self.limit - len(self.data)]
        return len(self.data) < self.limit

    @property
    def text(self) -> str:
        return readable(bytes(self.data))


def readable(data: bytes) -> str:
    """Output as text that any request can carry."""
    return data.decode("utf-8", "replace").replace("\0", "\N{REPLACEMENT CHARACTER}")
