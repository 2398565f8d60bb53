"""A shell that can read a few folders and do nothing else, by bubblewrap and Landlock.

First wall: namespaces. The file system has the system's programs and the given folders,
all read-only, no /proc, no device but the null one; no network, no environment, own
process numbers, no capabilities; it dies with its keeper. Second wall: `wall.py`, inside
the first: Landlock lets nothing be written and only the named programs run, and limits
hold for time, memory and file size.

Whether it works here is tried once, really. Where it does not, there is no shell: it
never falls back to running a command with less around it.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import anyio

from reverie.errors import NotAvailable
from reverie.light import dataclass
from reverie.tools import wall
from reverie.tools.places import resolve
from reverie.tools.process import Command, Exit, Gathered, run
from reverie.tools.programs import find_program

PROGRAMS = ("ls", "find", "grep", "cat", "stat", "wc", "head", "tail")
SYSTEM = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
WALL = "/.reverie/wall.py"
CPU = 20
MEMORY = 1 << 30
PROCESSES = 128
_PATH = "/usr/bin:/bin"
WHERE = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin:/run/wrappers/bin:/run/current-system/sw/bin"
"""Where the sandbox's own program is looked for, whatever PATH says."""


@dataclass(frozen=True, slots=True)
class SandboxBox:
    """What a command may see: folders to read, and paths in them it may not."""

    readable: tuple[Path, ...]
    masked_folders: tuple[Path, ...] = ()
    masked_files: tuple[Path, ...] = ()
    cwd: Path = Path("/")
    programs: tuple[str, ...] = PROGRAMS
    shell: str = "sh"
    landlock: bool = True


class Sandbox:
    """The kernel's sandbox of this machine, if it has one."""

    def __init__(self, program: str = "bwrap") -> None:
        self._program = program
        self._reason: str | None = None
        self._trying = anyio.Lock()

    async def why_not(self) -> str:
        """Why there is no shell here; nothing where there is one. Tried once."""
        async with self._trying:
            if self._reason is None:
                self._reason = await self._try()
        return self._reason

    async def _try(self) -> str:
        if sys.platform != "linux":
            return "this system has no kernel sandbox"
        if not self._found(()):
            return f"{self._program} is not installed"
        with tempfile.TemporaryDirectory(prefix="reverie-") as made:
            return await self._try_in(resolve(Path(made)))

    async def _try_in(self, folder: Path) -> str:
        """Read a file, try to write one, and look from outside whether it is there."""
        (folder / "known").write_text("known")
        sink = Gathered(4_096)
        box = SandboxBox((folder,), cwd=folder)
        ended = await self._run("echo x 2>/dev/null > written; cat known", box, sink, 20.0)
        if (folder / "written").exists():
            return f"{self._program} let a file be written"
        if ended == Exit(0) and sink.text.endswith("known"):
            return ""
        return f"{self._program} does not work here: {sink.text.strip()[:300]}"

    async def run(self, script: str, box: SandboxBox, sink: Gathered, seconds: float) -> Exit:
        """Run a shell script in the sandbox, or NotAvailable."""
        reason = await self.why_not()
        if reason:
            raise NotAvailable(f"there is no shell here: {reason}")
        return await self._run(script, box, sink, seconds)

    async def _run(self, script: str, box: SandboxBox, sink: Gathered, seconds: float) -> Exit:
        argv = [self._found(box.readable), *arguments(script, box)]
        if not argv[0]:
            raise NotAvailable(f"there is no {self._program} outside what it would confine")
        return await run(Command(argv, Path("/"), {}), sink, seconds)

    def _found(self, inside: Sequence[Path]) -> str:
        return find_program(self._program, WHERE, inside)


def arguments(script: str, box: SandboxBox) -> list[str]:
    """What bubblewrap is told."""
    python = os.path.realpath(sys.executable)
    options = ["--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    options += ["--clearenv", "--setenv", "PATH", _PATH, "--setenv", "LC_ALL", "C.UTF-8"]
    options += ["--hostname", "sandbox", *_system(), *_bound(box)]
    options += ["--dev-bind", "/dev/null", "/dev/null"]
    options += ["--ro-bind", os.path.realpath(wall.__file__), WALL]
    options += ["--remount-ro", "/", "--chdir", str(box.cwd), "--"]
    shell = _program(box.shell) or "/bin/sh"
    walled = [python, "-I", "-S", WALL, json.dumps(_rules(box, shell))]
    return [*options, *walled, shell, "-c", script]


def _system() -> list[str]:
    """The system's programs and libraries, and the Python that sets the second wall."""
    options = ["--ro-bind", "/usr", "/usr"]
    for folder in SYSTEM:
        if os.path.islink(folder):
            options += ["--symlink", os.readlink(folder), folder]
        elif os.path.isdir(folder):
            options += ["--ro-bind", folder, folder]
    if os.path.exists("/etc/ld.so.cache"):
        options += ["--ro-bind", "/etc/ld.so.cache", "/etc/ld.so.cache"]
    for prefix in {os.path.realpath(sys.base_prefix), os.path.realpath(sys.base_exec_prefix)}:
        if not prefix.startswith("/usr/") and prefix != "/usr":
            options += ["--ro-bind", prefix, prefix]
    return options


def _bound(box: SandboxBox) -> list[str]:
    """Folders that may be read, outer ones first, and what is masked in them."""
    rows = [(path, ["--ro-bind", str(path), str(path)]) for path in box.readable]
    rows += [(path, ["--tmpfs", str(path)]) for path in box.masked_folders]
    rows += [(path, ["--ro-bind", "/dev/null", str(path)]) for path in box.masked_files]
    ordered = sorted(rows, key=lambda row: len(row[0].parts))
    closed = [o for path in box.masked_folders for o in ("--remount-ro", str(path))]
    return [option for _, options in ordered for option in options] + closed


def _rules(box: SandboxBox, shell: str) -> dict[str, object]:
    programs = [p for name in box.programs if (p := _program(name))]
    return {
        "read": ["/usr", *SYSTEM, "/etc/ld.so.cache", *map(str, box.readable)],
        "run": [shell, *programs, *_loaders()],
        "use": ["/dev/null"],
        "cpu": CPU,
        "memory": MEMORY,
        "processes": PROCESSES,
        "landlock": box.landlock,
    }


def _program(name: str) -> str:
    return find_program(name, _PATH, ())


def _loaders() -> Sequence[str]:
    """The dynamic loaders, which the kernel runs before a program."""
    found = [
        os.path.join(folder, name)
        for folder in ("/lib64", "/lib")
        if os.path.isdir(folder)
        for name in os.listdir(folder)
        if name.startswith(("ld-linux", "ld-musl", "ld.so", "ld64"))
    ]
    return [os.path.realpath(path) for path in found]
