"""Processes that a test starts and that never outlive it."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Iterable, Sequence
from pathlib import Path
from typing import Any

PATIENCE = 10.0


@contextlib.contextmanager
def running(line: Sequence[str | Path], **how: Any) -> Generator[subprocess.Popen[str]]:
    """A process while the block lasts, its output a pipe. `with Popen` would wait for its end, for
    ever where the block failed before it asked for that."""
    with subprocess.Popen(list(map(str, line)), stdout=subprocess.PIPE, text=True, **how) as one:
        try:
            yield one
        finally:
            end(one)


def end(process: subprocess.Popen[Any]) -> None:
    """Ask a process to end, and make it where it does not; also one that was stopped."""
    if process.poll() is None:
        process.send_signal(signal.SIGCONT)
        process.terminate()
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with contextlib.suppress(OSError, ValueError):
                pipe.close()


def loaded(code: str) -> set[str]:
    """The modules that a new process has loaded once it has run this."""
    line = [sys.executable, "-c", f"{code}\nimport sys\nprint(*sys.modules)"]
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def at_once(work: Callable[..., object], each: Iterable[tuple[Any, ...]], how: str) -> None:
    """Do the same in several processes at once, each with what it is given; all come to an end."""
    context: Any = multiprocessing.get_context(how)
    jobs = [context.Process(target=work, args=given) for given in each]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join()
    assert [job.exitcode for job in jobs] == [0] * len(jobs)


def children() -> set[int]:
    """The processes that this one has started and that are still there."""
    found: set[int] = set()
    for task in Path(f"/proc/{os.getpid()}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found.update(map(int, task.read_text().split()))
    return found
