"""A project, a session's folder and a toolbox on them; and ways to look from outside."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reverie.observer import SystemClock
from reverie.settings import DEFAULTS, Settings
from reverie.store import Folder
from reverie.toolbox import (
    Asker,
    PermissionPolicy,
    PermissionRoots,
    PermissionRule,
    ReadLog,
    Registry,
    StoredResults,
    Toolbox,
    ToolContext,
    UnconfinedFiles,
    Verdict,
    standard,
)
from reverie.transcript import EMPTY, UserMessage, View
from reverie.wire import ToolCall
from reverie.world import Notice

SESSION = "11111111-2222-4333-8444-555555555555"


@dataclass
class Place:
    """Folders of one test, and the context for tools in them."""

    base: Path
    settings: Settings = DEFAULTS
    notices: list[Notice] = field(default_factory=list)
    view: View = EMPTY

    def __post_init__(self) -> None:
        self.base = self.base.resolve()
        for folder in (self.root, self.memory, self.outside, self.user):
            folder.mkdir(parents=True, exist_ok=True)
        self.folder = Folder(self.project)

    @property
    def root(self) -> Path:
        return self.base / "project"

    @property
    def user(self) -> Path:
        return self.base / "user"

    @property
    def home(self) -> Path:
        return self.user / ".reverie"

    @property
    def project(self) -> Path:
        return self.home / "projects" / "-project"

    @property
    def memory(self) -> Path:
        return self.project / "memory"

    @property
    def outside(self) -> Path:
        return self.base / "outside"

    @property
    def results(self) -> Path:
        return self.project / SESSION / "tool-results"

    def context(self, **more: Any) -> ToolContext:
        given: dict[str, Any] = {
            "root": self.root,
            "cwd": self.root,
            "files": UnconfinedFiles(self.root, str(self.user)),
            "clock": SystemClock(),
            "reads": ReadLog(),
            "settings": self.settings,
            "say": self.notices.append,
            "environ": dict(os.environ),
            "stored": StoredResults(self.folder, SESSION, lambda: self.view),
        }
        return ToolContext(**{**given, **more})

    def ground(self) -> PermissionRoots:
        return PermissionRoots(
            self.root,
            self.user,
            self.home,
            readable=(self.project,),
            writable=(self.memory,),
        )

    def policy(
        self,
        mode: Verdict = "allow",
        rules: tuple[PermissionRule, ...] = (),
        asker: Asker | None = None,
    ) -> PermissionPolicy:
        return PermissionPolicy(self.ground(), mode=mode, rules=rules, asker=asker)

    def box(
        self, policy: PermissionPolicy | None = None, registry: Registry | None = None, **more: Any
    ) -> Toolbox:
        return Toolbox(registry or standard(), policy or self.policy(), self.context(**more))


_numbers = iter(range(1, 10**9))


def call(name: str, /, **value: Any) -> ToolCall:
    return raw(name, json.dumps(value))


def raw(name: str, text: str) -> ToolCall:
    return ToolCall(f"toolu_{next(_numbers):04d}", name, text)


@dataclass(frozen=True)
class Result:
    text: str
    is_error: bool
    content: Any


def result(message: UserMessage) -> Result:
    block = message.blocks[0]  # behind it may stand what the user said
    content = block.value.get("content")
    text = content if isinstance(content, str) else json.dumps(content)
    return Result(text, bool(block.value.get("is_error")), content)


async def use(box: Any, name: str, /, **value: Any) -> Result:
    return result(await box.run(call(name, **value)))


def snapshot(*roots: Path) -> Mapping[str, object]:
    """Everything about a tree that a write, a touch or a chmod would change."""
    seen: dict[str, object] = {}
    for root in roots:
        paths = [root, *sorted(root.rglob("*"))]
        for path in paths:
            info = path.lstat()
            body = ""
            if stat.S_ISREG(info.st_mode):
                body = hashlib.sha256(path.read_bytes()).hexdigest()
            elif stat.S_ISLNK(info.st_mode):
                body = os.readlink(path)
            seen[str(path)] = (info.st_mode, info.st_uid, info.st_size, info.st_mtime_ns, body)
    return seen


def processes_with(text: str) -> list[str]:
    """Command lines of live processes that hold a text, this one's aside."""
    found: list[str] = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try:
                line = Path(f"/proc/{name}/cmdline").read_bytes().decode("utf-8", "replace")
                state = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if text in line and state != "Z":
                found.append(line.replace("\0", " "))
    return found


@dataclass
class Ears:
    """Sockets that would hear anything that is sent."""

    tcp: socket.socket
    udp: socket.socket
    unix: socket.socket
    path: Path

    @property
    def port(self) -> int:
        return int(self.tcp.getsockname()[1])

    @property
    def udp_port(self) -> int:
        return int(self.udp.getsockname()[1])

    def heard(self) -> list[str]:
        found: list[str] = []
        for name, ear in (("tcp", self.tcp), ("unix", self.unix)):
            try:
                ear.accept()[0].close()
                found.append(name)
            except BlockingIOError:
                pass
        try:
            self.udp.recv(10)
            found.append("udp")
        except BlockingIOError:
            pass
        return found


@contextmanager
def listening(folder: Path) -> Iterator[Ears]:
    with (
        socket.socket() as tcp,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
        socket.socket(socket.AF_UNIX) as unix,
    ):
        tcp.bind(("127.0.0.1", 0))
        udp.bind(("127.0.0.1", 0))
        path = folder / "ear"
        unix.bind(str(path))
        for ear in (tcp, unix):
            ear.listen(100)
        for ear in (tcp, udp, unix):
            ear.setblocking(False)
        yield Ears(tcp, udp, unix, path)
