"""Every program that Reverie starts, started here and nowhere else.

A program is a path, or a name that is looked up in the absolute folders of the environment it is
given, never in the working folder. Environment and folder are always named, standard input is
empty unless it is given, and a run has a time limit unless it waits for a person. Python of ours
imports nothing from the working folder (`python`, `script`).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from subprocess import DEVNULL, PIPE, STDOUT, CompletedProcess, Popen, TimeoutExpired
from typing import TYPE_CHECKING, Any, cast

__all__ = [
    "DEVNULL", "PIPE", "STDOUT", "CompletedProcess", "Popen", "TimeoutExpired",
    "detach", "python", "run", "script", "start", "start_async",
]  # fmt: skip

if TYPE_CHECKING:
    from anyio.abc import Process

Line = Sequence[str]
_DETACH = '"$@" </dev/null >/dev/null 2>&1 &'
_DETACH_SECONDS = 10.0


def python(module: str, *words: str) -> list[str]:
    """Return the command line of one of our modules."""
    return [sys.executable, "-P", "-m", module, *words]


def script(path: str, *words: str) -> list[str]:
    """Return the command line of one of our files that needs the standard library alone."""
    return [sys.executable, "-I", "-S", os.path.abspath(path), *words]


def start(
    line: Line, environ: Mapping[str, str], folder: str | Path, **options: Any
) -> Popen[bytes]:
    """Start a program; `options` are those of `Popen`."""
    made: Any = Popen(_resolved(line, environ), **_options(environ, folder, options))
    return cast("Popen[bytes]", made)


async def start_async(
    line: Line, environ: Mapping[str, str], folder: str | Path, **options: Any
) -> Process:
    """Start a program in a session of its own; the same as `start` for tasks."""
    import anyio

    given = _options(environ, folder, options)
    return await anyio.open_process(_resolved(line, environ), start_new_session=True, **given)


def run(
    line: Line,
    environ: Mapping[str, str],
    folder: str | Path,
    *,
    seconds: float | None,
    feed: bytes | None = None,
    **options: Any,
) -> CompletedProcess[bytes]:
    """Run a program to its end; `TimeoutExpired` where it takes longer, and it is killed."""
    given = {"stdin": DEVNULL if feed is None else PIPE, "stdout": PIPE, "stderr": PIPE, **options}
    with start(line, environ, folder, **given) as process:
        try:
            out, errors = process.communicate(feed, timeout=seconds)
        except BaseException:
            process.kill()
            raise
    return CompletedProcess(process.args, process.returncode, out, errors)


def detach(line: Line, environ: Mapping[str, str]) -> None:
    """Start a program in a session of its own, through a shell that ends at once: it is nobody's
    child, outlives whoever started it and leaves no zombie."""
    shell = ["/bin/sh", "-c", _DETACH, "sh", *_resolved(line, environ)]
    run(shell, environ, "/", seconds=_DETACH_SECONDS, start_new_session=True)


def _options(
    environ: Mapping[str, str], folder: str | Path, options: Mapping[str, Any]
) -> dict[str, Any]:
    return {"stdin": DEVNULL, **options, "env": dict(environ), "cwd": folder}


def _resolved(line: Line, environ: Mapping[str, str]) -> list[str]:
    name = line[0]
    if os.sep in name:
        return [*line]
    for place in environ.get("PATH", os.defpath).split(os.pathsep):
        found = os.path.join(place, name)
        if os.path.isabs(place) and os.path.isfile(found) and os.access(found, os.X_OK):
            return [found, *line[1:]]
    raise FileNotFoundError(2, "No such program on PATH", name)
