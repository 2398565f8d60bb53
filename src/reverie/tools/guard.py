"""The guard: runs a background agent's calls, or denies them, at call time.

Typed tools only: reading, searching and listing in the project, the session's own files
and the memory folder; Edit and Write in the folders or files that were given; a shell of
eight reading programs inside the kernel's sandbox, and none where there is no sandbox.
All else is denied whatever the tool definitions say, which stay as they are, since they
are part of the cache key. Every denial is logged and said. It never raises for a call,
never asks a person, and shares no state with the main agent but what it was handed.

Its files are a few folders to read and fewer to write. A path is normalised and resolved, and
the real path is compared name by name with the folders: the innermost that holds it decides.
Files that hold keys or passwords are refused wherever they lie. What is opened is reached
without following a link; what is written goes through a `Folder` that was opened before the
agent began, so that no link or rename on the way leads out.
"""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path

from anyio import to_thread

from reverie.errors import InvalidMessage, PathRefused, ReverieError
from reverie.store.files import Folder
from reverie.store.keys import beneath, shown
from reverie.tools.box import bounded, read_call
from reverie.tools.places import absolute, open_real, resolve
from reverie.tools.process import Gathered
from reverie.tools.readonly import box_of, script_of
from reverie.tools.runner import DENIED
from reverie.tools.sandbox import Sandbox
from reverie.tools.tool import Denied, Input, Output, Registry, ToolContext
from reverie.transcript.records import UserMessage
from reverie.wire.given import tool_result
from reverie.world import ForkSpec, Notice, ToolCall

SECRET_FOLDERS = (
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".password-store",
)
SECRET_FILES = (
    ".env",
    ".env.*",
    ".envrc",
    "*.pem",
    "*.p12",
    "*.pfx",
    "*.kdbx",
    "*.keystore",
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".pgpass",
    ".htpasswd",
    ".git-credentials",
    ".vault-token",
    "credentials",
    "credentials.json",
    ".credentials.json",
)
SECRETS = (*SECRET_FOLDERS, *SECRET_FILES)


def is_secret(path: Path) -> bool:
    """Whether a file's name says that it holds keys or passwords."""
    names = [part.casefold() for part in path.parts]
    if names[-2:] == [".git", "config"]:
        return True
    if any(name in SECRET_FOLDERS for name in names):
        return True
    last = names[-1] if names else ""
    return any(fnmatch.fnmatchcase(last, pattern) for pattern in SECRET_FILES)


@dataclass(frozen=True, slots=True)
class Slot:
    """A folder that may be written to, held open; or one file in it alone."""

    folder: Folder
    only: str = ""

    @classmethod
    def of(cls, path: str) -> Slot:
        """A folder, or a file where the path is one or ends like one."""
        real = resolve(Path(os.path.abspath(path)))
        is_file = real.is_file() or (not real.is_dir() and bool(real.suffix))
        return cls(Folder(real.parent), real.name) if is_file else cls(Folder(real))

    @property
    def root(self) -> Path:
        return self.folder.root / self.only if self.only else self.folder.root

    def key(self, path: Path) -> str:
        """The key of a path in it; nothing where it is not in it."""
        if self.only:
            return self.only if path == self.root else ""
        return str(path.relative_to(self.root)) if beneath(self.root, path) else ""


class ConfinedFiles:
    """`tool.Files` between walls."""

    def __init__(
        self,
        cwd: Path,
        readable: Iterable[Path],
        writable: Iterable[Slot],
        refused: Iterable[Path] = (),
        denied: Callable[[str, str], None] = lambda _path, _why: None,
    ) -> None:
        self.cwd = cwd
        self.slots = tuple(writable)
        self.readable = (*map(resolve, readable), *(slot.root for slot in self.slots))
        self.refused = tuple(map(resolve, refused))
        self.written: list[str] = []
        self._denied = denied

    def granted(self) -> ConfinedFiles:
        return self  # a path is looked at each time it is used

    def find(self, path: str) -> Path:
        try:
            real = resolve(absolute(path, self.cwd))
        except PathRefused as error:
            raise self._deny(path, error.what) from error
        return self._readable(real, path)

    def _readable(self, real: Path, named: str) -> Path:
        if is_secret(real) or is_secret(Path(named)):
            raise self._deny(named, "it may hold keys or passwords")
        if not self.allows(real):
            raise self._deny(named, "it is outside the folders that may be read")
        return real

    def allows(self, real: Path) -> bool:
        """Whether the innermost folder that holds a path is one that may be read."""
        yes = max((len(p.parts) for p in self.readable if beneath(p, real)), default=0)
        no = max((len(p.parts) for p in self.refused if beneath(p, real)), default=0)
        return yes > no

    def open(self, path: Path) -> int:
        self._readable(path, str(path))
        try:
            return open_real(path)
        except PathRefused as error:
            raise self._deny(str(path), error.what) from error

    def target(self, path: str) -> Path:
        try:
            named = Path(os.path.normpath(absolute(path, self.cwd)))
            for candidate in (named, resolve(named.parent) / named.name):
                slot, key = self._slot(candidate)
                if slot is not None:
                    slot.folder.path(key)  # refuses names that are not safe everywhere
                    return slot.folder.root / key
        except PathRefused as error:
            raise self._deny(path, error.what) from error
        raise self._deny(path, "it is outside the folders that may be written")

    def _slot(self, path: Path) -> tuple[Slot | None, str]:
        for slot in self.slots:
            key = slot.key(path)
            if key and key != ".":
                if any(name.startswith(".") for name in key.split("/")):
                    raise PathRefused("hidden files are not written here")
                return slot, key
        return None, ""

    def write(self, path: Path, data: bytes, expect: str | None) -> None:
        slot, key = self._slot(path)
        if slot is None:
            raise self._deny(str(path), "it is outside the folders that may be written")
        try:
            slot.folder.write(key, data, expect=expect, exclusive=expect is None)
        except PathRefused as error:
            raise self._deny(str(path), error.what) from error
        self.written.append(str(path))

    def hidden(self, path: Path) -> bool:
        return is_secret(path) or not self.allows(path)

    def hidden_below(self, folder: Path) -> tuple[str, ...]:
        inner = (p for p in self.refused if beneath(folder, p) and p != folder)
        return (*SECRETS, *(f"/{escaped(p.relative_to(folder))}" for p in inner))

    def _deny(self, path: str, why: str) -> Denied:
        self._denied(shown(path), why)
        return Denied(f"not permitted here: {why}", where=shown(path))

    def close(self) -> None:
        for slot in self.slots:
            slot.folder.close()


def escaped(path: Path) -> str:
    """A path as a glob that means just itself."""
    return "".join(f"\\{c}" if c in "*?[]{}\\!" else c for c in str(path))


READING = frozenset({"Read", "Grep", "Glob", "List", "ReadBack"})
WRITING = frozenset({"Edit", "Write"})
SHELL = "Bash"
SECONDS = 30.0
OUTPUT = 200_000
_running: ContextVar[str] = ContextVar("reverie.guard", default="")


@dataclass(frozen=True, slots=True)
class Denial:
    """A call that was not carried out, or not wholly, and why."""

    tool: str
    reason: str
    subject: str = ""


@dataclass(frozen=True, slots=True)
class GuardLimits:
    """What one background agent may do."""

    tools: frozenset[str]
    readable: tuple[Path, ...]
    writable: tuple[str, ...] = ()
    refused: tuple[Path, ...] = ()


class Guard:
    """`runner.ToolRunner` for one background agent."""

    def __init__(
        self,
        registry: Registry,
        context: ToolContext,
        limits: GuardLimits,
        sandbox: Sandbox,
        name: str = "agent",
    ) -> None:
        self.registry = registry
        self.denials: list[Denial] = []
        self.name = name
        self._sandbox = sandbox
        self._tools = limits.tools & (READING | WRITING | {SHELL})
        slots = [Slot.of(path) for path in limits.writable]
        self.files = ConfinedFiles(
            context.cwd, limits.readable, slots, limits.refused, self._refused
        )
        self._context = replace(context, files=self.files, reads=context.reads.copy(), shells=None)

    @property
    def reads(self) -> dict[str, str]:
        return {
            path: self._context.reads.digest(path) or "" for path in self._context.reads.recent()
        }

    def note_read(self, path: Path | str, digest: str) -> None:
        """A file whose text the agent's prompt holds counts as read."""
        self._context.reads.note(path, digest)

    @property
    def written(self) -> tuple[str, ...]:
        """Files that were written, each once, in order."""
        return tuple(dict.fromkeys(self.files.written))

    async def run(self, call: ToolCall) -> UserMessage:
        """One call, to its result or its denial."""
        _running.set(call.name)
        try:
            output = await self._output(call)
        except Denied as error:
            output = Output(f"{error}. Go on without it.", is_error=True)
        except ReverieError as error:
            output = Output(str(error), is_error=True)
        return tool_result(call.id, output.content, is_error=output.is_error)

    async def _output(self, call: ToolCall) -> Output:
        if call.name not in self._tools or self.registry.get(call.name) is None:
            self._log(call.name, "the tool is not available to a background agent")
            return Output(DENIED, is_error=True)
        if call.name in WRITING and not self.files.slots:
            self._log(call.name, "there is no folder that may be written")
            return Output(DENIED, is_error=True)
        try:
            tool, value = read_call(call, self.registry)
        except InvalidMessage as error:
            return Output(str(error), is_error=True)
        if call.name == SHELL:
            return await self._shell(value)
        return await bounded(tool, value, replace(self._context, call=call.id))

    async def _shell(self, value: Input) -> Output:
        line = str(value["command"])
        try:
            if value.get("run_in_background"):
                raise Denied("nothing runs in the background here")
            script = script_of(line)
        except Denied as error:
            self._log(SHELL, error.what, line)
            raise
        reason = await self._sandbox.why_not()
        if reason:
            self._log(SHELL, f"there is no sandbox: {reason}", line)
            raise Denied(f"there is no shell here: {reason}", do="Use Read, Grep, Glob and List")
        box = await to_thread.run_sync(box_of, self.files)
        sink = Gathered(OUTPUT)
        most = min(SECONDS, self._context.settings.tool_seconds)
        ended = await self._sandbox.run(script, box, sink, min(most, value.get("timeout") or most))
        notes = {"time": f"[ended after {most:g} s]", "output": f"[cut at {OUTPUT:,} bytes]"}
        note = notes.get(ended.cause, f"[exit code {ended.code}]" if ended.code else "")
        text = "\n".join(part for part in (sink.text.rstrip("\n"), note) if part)
        return Output(text or "(no output)", is_error=bool(note))

    def _refused(self, path: str, why: str) -> None:
        self._log(_running.get(), why, path)

    def _log(self, tool: str, reason: str, subject: str = "") -> None:
        denial = Denial(tool[:80], reason, shown(subject) if subject else "")
        self.denials.append(denial)
        where = f" ({denial.subject})" if denial.subject else ""
        told = f"{self.name}: {shown(denial.tool)} was denied{where}: {reason}"
        self._context.say(Notice("guard", told, "warning"))

    def close(self) -> None:
        self.files.close()


@dataclass(frozen=True, slots=True)
class Guards:
    """Makes a guard for each fork from what its spec allows.

    `context` is asked for each time, so that a fork starts with what was read by then.
    """

    registry: Registry
    context: Callable[[], ToolContext]
    readable: tuple[Path, ...]  # the project, its transcripts, the memory folder
    refused: tuple[Path, ...]  # reverie's home, the person's own settings
    sandbox: Sandbox

    def __call__(self, spec: ForkSpec, also_readable: Iterable[Path] = ()) -> Guard:
        limits = GuardLimits(
            frozenset(spec.tools), (*self.readable, *also_readable), spec.writable, self.refused
        )
        return Guard(self.registry, self.context(), limits, self.sandbox, spec.source)
