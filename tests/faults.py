"""Failures on purpose: the Nth system call fails, falls short, or is the process's last.

The calls of `os` and `fcntl` that a store makes are counted while a function runs, and one of
them is made to go wrong. Nothing of the code under test is replaced.

    outcome = run_with_error(lambda: folder.write("a.md", b"x"), 7, errno.ENOSPC)
    death = run_with_kill(work, 7, when="partial")     # work(ack); death.acked is what it told

A loop over n that ends when `hit` is None has been through every call site: `every_error` and
`every_kill` are that loop.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import gc
import itertools
import os
import shutil
import signal
import tempfile
import traceback
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from tests.tally import counted

WRITES = (
    "os.open",
    "os.write",
    "os.pwrite",
    "os.ftruncate",
    "os.fsync",
    "os.fdatasync",
    "os.rename",
    "os.replace",
    "os.link",
    "os.unlink",
    "os.rmdir",
    "os.mkdir",
    "os.utime",
    "os.close",
)
READS = ("os.dup", "os.fstat", "os.lstat", "os.listdir", "os.scandir", "os.read", "os.pread")
CALLS = (*WRITES, *READS, "fcntl.flock")
ERRORS = (
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EIO,
    errno.EROFS,
    errno.EMFILE,
    errno.EACCES,
)

When = Literal["before", "after", "partial"]
Ack = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Plan:
    """Which call goes wrong and how: with `code`, by writing half, or by ending the process.

    `sticky` lets every later call of the same name fail too, as a full disk does. With `short`
    and a code, half is written and the next write fails.
    """

    at: int
    code: int | None = None
    short: bool = False
    sticky: bool = False
    kill: When | None = None
    calls: tuple[str, ...] = CALLS


@dataclass(slots=True)
class Seen:
    """What the shim saw: the calls made, in order, and the one that went wrong."""

    calls: list[tuple[str, object]] = field(default_factory=list)
    hit: str | None = None

    def names(self) -> list[str]:
        return [name for name, _ in self.calls]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended; `hit` names the call that failed, None if the run made fewer calls."""

    value: Any
    error: Exception | None
    hit: str | None
    calls: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Death:
    """What a killed process had acknowledged; `hit` is False if it came to its end alive."""

    acked: list[str]
    hit: bool


class ChildFailed(AssertionError):
    """The function raised in the child; the message is its traceback."""


@contextlib.contextmanager
def shim(plan: Plan) -> Generator[Seen]:
    """Count calls, and let one go wrong, until the block ends."""
    seen = Seen()
    real: list[tuple[ModuleType, str, Any]] = []
    for call in plan.calls:
        module, name = (os if call.startswith("os.") else fcntl), call.partition(".")[2]
        if hasattr(module, name):
            real.append((module, name, getattr(module, name)))
    for module, name, function in real:
        setattr(module, name, _watched(f"{module.__name__}.{name}", function, plan, seen))
    try:
        yield seen
    finally:
        for module, name, function in real:
            setattr(module, name, function)


def tried(fn: Callable[[], Any]) -> tuple[Any, Exception | None]:
    """What a function gives, or what it raises."""
    try:
        return fn(), None
    except Exception as error:  # noqa: BLE001
        return None, error


def run_with_error(
    fn: Callable[[], Any],
    n: int,
    code: int | None,
    *,
    short: bool = False,
    sticky: bool = False,
    calls: Sequence[str] = CALLS,
) -> Outcome:
    """Run `fn` with its nth call failing; whatever it raises is handed back, not raised."""
    with shim(Plan(n, code, short, sticky, None, tuple(calls))) as seen:
        value, failure = tried(fn)
    return Outcome(value, failure, seen.hit, tuple(seen.names()))


def run_with_kill(
    fn: Callable[[Ack], object],
    n: int,
    *,
    when: When = "before",
    calls: Sequence[str] = WRITES,
) -> Death:
    """Run `fn(ack)` in a child that dies by SIGKILL at its nth call.

    `before` and `after` are about the call; `partial` writes half and dies, or dies before a
    call that is no write. What was acknowledged is known here however the child ended.
    """
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        os.close(reader)
        _live(fn, Plan(n, kill=when, calls=tuple(calls)), writer)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        told = pipe.read().decode()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status not in (0, -signal.SIGKILL):
        raise ChildFailed(f"exit {status}\n{told}")
    return Death(told.split("\n")[:-1], status != 0)


def every_error(
    attempt: Callable[[], Callable[[], Any]],
    check: Callable[[Outcome], None],
    *,
    codes: Sequence[int] = ERRORS,
    calls: Sequence[str] = CALLS,
    drawn: bool = False,
) -> int:
    """Go through every call of a piece of work with every kind of failure; give the points.

    `attempt` sets a fresh stage and gives the work; `check` looks at what is left; `drawn` says
    that the work is another one with another seed.
    """
    kinds: list[tuple[int | None, bool, bool]] = [(None, True, False), (errno.ENOSPC, True, False)]
    kinds += [(code, False, sticky) for code in codes for sticky in (False, True)]
    points = 0
    for code, short, sticky in kinds:
        watched = ["os.write"] if short else calls
        for n in itertools.count(1):
            outcome = run_with_error(attempt(), n, code, short=short, sticky=sticky, calls=watched)
            if outcome.hit is None:
                if outcome.error is not None:
                    raise outcome.error
                break
            check(outcome)
            points += 1
    counted("fault points", points, drawn=drawn)
    return points


def every_kill(
    attempt: Callable[[], Callable[[Ack], object]],
    check: Callable[[Death], None],
    *,
    whens: Sequence[When] = ("before", "after", "partial"),
    calls: Sequence[str] = WRITES,
    stride: int = 1,
    drawn: bool = False,
) -> int:
    """Kill a piece of work at every call, or every `stride`th; give the points."""
    points = 0
    for when in whens:
        watched = ["os.write"] if when == "partial" else calls
        for n in itertools.count(1, 1 if when == "partial" else stride):
            death = run_with_kill(attempt(), n, when=when, calls=watched)
            check(death)
            if not death.hit:
                break
            points += 1
    counted("kills", points, drawn=drawn)
    return points


def copies(first: Path) -> Callable[[], Path]:
    """Copies of one and the same beginning; each takes the place of the one before."""
    numbers = itertools.count()

    def fresh() -> Path:
        number = next(numbers)
        shutil.rmtree(first.with_name(f"copy-{number - 1}"), ignore_errors=True)
        return Path(shutil.copytree(first, first.with_name(f"copy-{number}")))

    return fresh


def in_copies(
    fresh: Callable[[], Path],
    work: Callable[..., object],
    check: Callable[[Path, Any], None],
) -> tuple[Callable[[], Any], Callable[[Any], None]]:
    """What `every_error` and `every_kill` ask for, of work on a folder made anew each time."""
    here = [Path()]

    def attempt() -> Callable[..., object]:
        here[0] = fresh()
        return partial(work, here[0])

    return attempt, lambda found: check(here[0], found)


@contextlib.contextmanager
def quick_folder() -> Iterator[Path]:
    """A folder in memory where there is one: a killed process loses nothing there either."""
    memory = Path("/dev/shm")
    usable = memory.is_dir() and os.access(memory, os.W_OK)
    path = Path(tempfile.mkdtemp(prefix="faults-", dir=memory if usable else None))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def open_files() -> int | None:
    """How many descriptors this process has open, where that can be told."""
    try:
        return len(os.listdir("/proc/self/fd"))
    except OSError:
        return None


def _watched(name: str, real: Any, plan: Plan, seen: Seen) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        seen.calls.append((name, args[0] if args else None))
        if seen.hit is None and len(seen.calls) == plan.at:
            seen.hit = name
            return _go_wrong(name, real, args, kwargs, plan)
        if seen.hit == name and (plan.sticky or plan.short):
            return _go_wrong(name, real, args, kwargs, plan, again=True)
        return real(*args, **kwargs)

    return call


def _go_wrong(
    name: str, real: Any, args: Any, kwargs: Any, plan: Plan, *, again: bool = False
) -> Any:
    if plan.kill is not None:
        if plan.kill == "after":
            with contextlib.suppress(OSError):
                real(*args, **kwargs)
        elif plan.kill == "partial" and name == "os.write":
            real(args[0], bytes(args[1])[: max(1, len(args[1]) // 2)])
        os.kill(os.getpid(), signal.SIGKILL)
    if plan.short and not again:
        return real(args[0], bytes(args[1])[: max(1, len(args[1]) // 2)])
    if plan.code is None:
        return real(*args, **kwargs)
    if name == "os.close":
        real(*args, **kwargs)
    raise OSError(plan.code, os.strerror(plan.code))


def _live(fn: Callable[[Ack], object], plan: Plan, writer: int) -> None:
    """The child's whole life; it never returns into the test."""
    gc.disable()  # it would touch every object of the test run, and copy the pages they lie in
    write, status = os.write, 3
    try:
        with shim(plan):
            fn(lambda text: _tell(write, writer, text))
        status = 0
    except BaseException:  # noqa: BLE001
        write(writer, traceback.format_exc().encode()[-8000:])
    finally:
        os._exit(status)


def _tell(write: Callable[[int, bytes], int], writer: int, text: str) -> None:
    left = text.encode() + b"\n"
    while left:
        left = left[write(writer, left) :]
