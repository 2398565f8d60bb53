"""A read-only shell by bubblewrap.

A shell that can read a few folders and do nothing else, by bubblewrap and Landlock.

First wall: namespaces. The file system has the system's programs and the given folders,
all read-only, no /proc, no device but the null one; no network, no environment, own
process numbers, no capabilities; it dies with its keeper. Second wall: `landlock.py`, inside
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
from reverie.store.paths import beneath
from reverie.store.sensitive_paths import GIT, is_secret
from reverie.text.shell import PlainCommand, plain_commands
from reverie.toolbox import landlock as wall
from reverie.toolbox.file_access import ConfinedFiles, resolve
from reverie.toolbox.grep_process import SKIPPED
from reverie.toolbox.process import Command, OutputBuffer, ProcessExit, run
from reverie.toolbox.shell import find_program
from reverie.toolbox.tool import Denied, ToolFailed

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
class SandboxMounts:
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
        if not self._find_program(()):
            return f"{self._program} is not installed"
        with tempfile.TemporaryDirectory(prefix="reverie-") as made:
            return await self._try_in(resolve(Path(made)))

    async def _try_in(self, folder: Path) -> str:
        """Read a file, try to write one, and look from outside whether it is there."""
        (folder / "known").write_text("known")
        sink = OutputBuffer(4_096)
        box = SandboxMounts((folder,), cwd=folder)
        ended = await self._run("echo x 2>/dev/null > written; cat known", box, sink, 20.0)
        if (folder / "written").exists():
            return f"{self._program} let a file be written"
        if ended == ProcessExit(0) and sink.text.endswith("known"):
            return ""
        return f"{self._program} does not work here: {sink.text.strip()[:300]}"

    async def run(
        self, script: str, box: SandboxMounts, sink: OutputBuffer, seconds: float
    ) -> ProcessExit:
        """Run a shell script in the sandbox, or NotAvailable."""
        reason = await self.why_not()
        if reason:
            raise NotAvailable(f"there is no shell here: {reason}")
        return await self._run(script, box, sink, seconds)

    async def _run(
        self, script: str, box: SandboxMounts, sink: OutputBuffer, seconds: float
    ) -> ProcessExit:
        argv = [self._find_program(box.readable), *arguments(script, box)]
        if not argv[0]:
            raise NotAvailable(f"there is no {self._program} outside what it would confine")
        return await run(Command(argv, Path("/"), {}), sink, seconds)

    def _find_program(self, inside: Sequence[Path]) -> str:
        return find_program(self._program, WHERE, inside)


def arguments(script: str, box: SandboxMounts) -> list[str]:
    """What bubblewrap is told."""
    python = os.path.realpath(sys.executable)
    options = ["--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    options += ["--clearenv", "--setenv", "PATH", _PATH, "--setenv", "LC_ALL", "C.UTF-8"]
    options += ["--hostname", "sandbox", *_system(), *_bind_options(box)]
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


def _bind_options(box: SandboxMounts) -> list[str]:
    """Folders that may be read, outer ones first, and what is masked in them."""
    rows = [(path, ["--ro-bind", str(path), str(path)]) for path in box.readable]
    rows += [(path, ["--tmpfs", str(path)]) for path in box.masked_folders]
    rows += [(path, ["--ro-bind", "/dev/null", str(path)]) for path in box.masked_files]
    ordered = sorted(rows, key=lambda row: len(row[0].parts))
    closed = [o for path in box.masked_folders for o in ("--remount-ro", str(path))]
    return [option for _, options in ordered for option in options] + closed


def _rules(box: SandboxMounts, shell: str) -> dict[str, object]:
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


# --- Command lines for the sandboxed shell: eight programs that read, plainly written.
#
# This is good manners and says early what is not there; the walls are in `sandbox`. A line is read
# strictly (`plain_commands`), each program must be one of the eight by its bare name, and it is
# written out anew, every word quoted, before a shell sees it.


LOOKED_AT = 100_000
LOOKED_AT_BELOW = 20_000
"""Names looked at in a folder of others' code; one with more is masked whole."""
_ACTS = frozenset(
    {"-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fprintf", "-fls"}
)


def script_of(line: str) -> str:
    """A line that reads and does nothing else, written out for a shell; or Denied."""
    commands, why = plain_commands(line)
    if why:
        raise Denied(f"the command is not plain: {why}")
    return " ".join(f"{_check_command(one)} {one.then}".strip() for one in commands)


def _check_command(one: PlainCommand) -> str:
    name = one.words[0].text
    if one.words[0].globs or name not in PROGRAMS:
        names = ", ".join(PROGRAMS)
        raise Denied(f"{name[:80]} is not one of the programs there are: {names}")
    for word in one.words[1:]:
        if name == "find" and word.text in _ACTS:
            raise Denied(f"find {word.text} does more than read")
        if word.globs and word.text.startswith("-"):
            raise Denied("an option is not written plainly")
    return str(one)


def box_of(files: ConfinedFiles, most: int = LOOKED_AT) -> SandboxMounts:
    """What the shell may see: what the typed tools may read, secrets masked."""
    folders = [p for p in files.refused if any(beneath(r, p) for r in files.readable)]
    found = _MaskList(folders)
    for root in files.readable:
        most = found.look(str(root), most)
    cwd = files.cwd if files.allows(files.cwd) else files.readable[0]
    readable = tuple(p for p in files.readable if p.exists())
    inside = [p for p in found.files if not any(beneath(f, p) for f in folders)]
    return SandboxMounts(readable, tuple(sorted(set(folders))), tuple(sorted(set(inside))), cwd)


class _MaskList:
    """What has to be masked, found by a walk."""

    def __init__(self, folders: list[Path]) -> None:
        self.folders = folders
        self.files: list[Path] = []

    def look(self, folder: str, left: int) -> int:
        """Look through a folder; gives how many names may still be looked at."""
        try:
            with os.scandir(folder) as found:
                entries = list(found)
        except OSError:
            return left
        left -= len(entries)
        if left < 0:
            raise ToolFailed("the project has too many files for a shell to be safe", do="Use Grep")
        for entry in entries:
            if not entry.is_symlink():  # leads to what is there under its own name, or to nothing
                left = self._entry(entry, left)
        return left

    def _entry(self, entry: os.DirEntry[str], left: int) -> int:
        path = Path(entry.path)
        if not entry.is_dir(follow_symlinks=False):
            # a socket would lead to another program
            if not entry.is_file(follow_symlinks=False) or is_secret(path) or entry.name == GIT:
                self.files.append(path)
        elif entry.name == GIT or is_secret(path):
            self.folders.append(path)
        elif entry.name in SKIPPED:
            self._others(path)
        else:
            return self.look(entry.path, left)
        return left

    def _others(self, folder: Path) -> None:
        """A folder of others' code: looked through as far as that is quick, else masked whole."""
        inner = _MaskList([])
        try:
            inner.look(str(folder), LOOKED_AT_BELOW)
        except ToolFailed:
            self.folders.append(folder)
        else:
            self.files += inner.files
            self.folders += inner.folders
