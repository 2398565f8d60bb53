"""The power goes at any moment of a session: what the disk may then hold still is the session.

Every write, sync, rename and removal of a life is recorded. After each of them the disk states
that POSIX allows are made by chance: what was not synced is dropped, torn or out of order; a file
whose name was not synced is gone, or there under its old contents. A state must open, show what
was sent, and hold what the request named.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest

from reverie.session import SessionLibrary
from reverie.store import Project, canonical_root
from reverie.testing import call, reply
from reverie.transcript import Sent
from reverie.wire import render, tool_result
from tests.conftest import Scale
from tests.faults import quick_folder
from tests.tally import counted

from .doors import LARGE, opened

pytestmark = [
    pytest.mark.spec("3.power"),
    pytest.mark.spec("3.power-turn"),
    pytest.mark.spec("3.power-close"),
    pytest.mark.spec("3.power-blobs"),
]


@dataclass
class Contents:
    """One file's bytes: those on the disk for certain, and what was added since."""

    synced: bytes = b""
    added: list[bytes] = field(default_factory=list)

    @property
    def now(self) -> bytes:
        return self.synced + b"".join(self.added)

    def after_a_cut(self, chance: random.Random) -> bytes:
        """Each part that was not synced is there, torn, or zeros where it should be."""
        out = self.synced
        for part in self.added:
            kind = chance.randrange(4)
            if kind == 0:
                return out
            if kind == 1:
                return out + part[: chance.randrange(len(part) + 1)]
            out += part if kind == 2 else bytes(len(part))
        return out


@dataclass
class Disk:
    """What a device below the recorded calls would know: contents, and names by folder."""

    names: dict[str, Contents] = field(default_factory=dict)  # as a process sees them
    sure: dict[str, Contents] = field(default_factory=dict)  # as the disk has them for certain

    def state(self, chance: random.Random) -> dict[str, bytes]:
        """One state after a power cut: each name as it was, or as it was last synced."""
        out: dict[str, bytes] = {}
        for path in {*self.names, *self.sure}:
            found = (self.names if chance.random() < 0.5 else self.sure).get(path)
            if found is not None:
                out[path] = found.after_a_cut(chance)
        return out


def copied(disk: Disk) -> Disk:
    twins: dict[int, Contents] = {}

    def twin(one: Contents) -> Contents:
        return twins.setdefault(id(one), Contents(one.synced, list(one.added)))

    names = {path: twin(one) for path, one in disk.names.items()}
    return Disk(names, {path: twin(one) for path, one in disk.sure.items()})


class Recorder:
    """Watches the calls of `os` that change files below a folder."""

    def __init__(self, root: Path) -> None:
        self.root = str(root)
        self.disk = Disk()
        self.states: list[tuple[Disk, tuple[str, ...]]] = []
        self.acked: list[str] = []
        self._paths: dict[int, str] = {}

    def path(self, name: Any, at: int | None) -> str:
        base = "" if at is None else os.readlink(f"/proc/self/fd/{at}")
        return os.path.join(base, os.fspath(name))

    def note(self) -> None:
        self.states.append((copied(self.disk), tuple(self.acked)))

    def wrote(self, fd: int, data: bytes) -> None:
        path = os.readlink(f"/proc/self/fd/{fd}")
        if path.startswith(self.root):
            self.disk.names.setdefault(path, Contents()).added.append(bytes(data))
            self.note()

    def synced(self, fd: int) -> None:
        path = os.readlink(f"/proc/self/fd/{fd}")
        if os.path.isdir(path):
            inside = [p for p in {*self.disk.names, *self.disk.sure} if os.path.dirname(p) == path]
            for one in inside:
                if one in self.disk.names:
                    self.disk.sure[one] = self.disk.names[one]
                else:
                    self.disk.sure.pop(one, None)
        elif path in self.disk.names:
            found = self.disk.names[path]
            found.synced, found.added = found.now, []
        self.note()

    def renamed(self, old: str, new: str) -> None:
        if old in self.disk.names:
            self.disk.names[new] = self.disk.names.pop(old)
            self.note()

    def removed(self, path: str) -> None:
        self.disk.names.pop(path, None)
        self.note()


@contextmanager
def recorded(root: Path) -> Generator[Recorder]:
    """Record what is done below a folder; the calls themselves are made."""
    seen = Recorder(root)
    names = ("write", "fsync", "fdatasync", "rename", "unlink")
    real = {name: getattr(os, name) for name in names}

    def write(fd: int, data: Any) -> int:
        count = real["write"](fd, data)
        seen.wrote(fd, bytes(data)[:count])
        return count

    def sync(name: str) -> Any:
        def call_it(fd: int) -> None:
            real[name](fd)
            seen.synced(fd)

        return call_it

    def rename(old: Any, new: Any, *, src_dir_fd: Any = None, dst_dir_fd: Any = None) -> None:
        paths = seen.path(old, src_dir_fd), seen.path(new, dst_dir_fd)
        real["rename"](old, new, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
        seen.renamed(*paths)

    def unlink(name: Any, *, dir_fd: Any = None) -> None:
        path = seen.path(name, dir_fd)
        real["unlink"](name, dir_fd=dir_fd)
        seen.removed(path)

    changed = {"write": write, "fsync": sync("fsync"), "fdatasync": sync("fdatasync")}
    for name, function in {**changed, "rename": rename, "unlink": unlink}.items():
        setattr(os, name, function)
    try:
        yield seen
    finally:
        for name, function in real.items():
            setattr(os, name, function)


async def life(base: Path, seen: Recorder) -> str:
    """Two turns with a stored result; what must survive is noted when it has returned."""
    ack = seen.acked.append
    async with opened(base / "home", base / "work") as s:
        await s.add("word-0")
        await s.prepare()
        ack("word-0")
        ack("sent")
        await s.observe(reply("word-1", call("Bash", "t1")))
        await s.add(tool_result("t1", LARGE))
        request = await s.prepare()
        assert "is stored whole in" in request.body()
        ack("word-1")
        ack("stored")
        ack("sent")
        await s.observe(reply("word-2"))
        await s.end_turn()
        ack("word-2")
        await s.add("word-3")
        ident = s.id
    ack("word-3")
    seen.note()
    return ident


def laid_out(base: Path, state: dict[str, bytes]) -> None:
    home = base / "home"
    shutil.rmtree(home, ignore_errors=True)
    for path, data in state.items():
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)


def check(base: Path, ident: str, acked: tuple[str, ...]) -> None:
    if not list((base / "home").rglob(f"{ident}.jsonl")):
        assert not acked
        return
    environ = {"HOME": str(base)}
    root = canonical_root(base / "work")
    library = SessionLibrary.of(Project.at(root, home=base / "home", environ=environ))
    found = library.read(ident)
    assert not any("missing or damaged" in fault for fault in found.faults)
    view, body = found.view, render(found.view).body()
    assert "You help." in body or not acked
    for word in acked:
        if word not in ("stored", "sent"):
            assert word in body
    requests = [one for one in found.entries if isinstance(one.record, Sent)]
    assert len(requests) >= acked.count("sent"), "a request left that the transcript does not know"
    if "stored" in acked:
        decision = view.decisions.get("t1")
        path = "tool-results/t1.txt" if decision is None else decision.path
        assert (library.path / ident / path).read_bytes() == LARGE.encode()
    library.close()


def test_whatever_a_power_cut_leaves_holds_what_was_sent(scale: Scale) -> None:
    chance = random.Random(scale.seed)
    trees: set[tuple[Any, ...]] = set()
    with quick_folder() as base:
        (base / "work").mkdir()
        with recorded(base / "home") as seen:
            ident = anyio.run(life, base, seen)
        assert len(seen.states) > 30
        for disk, acked in seen.states:
            for _ in range(scale.pick(8, 250)):
                state = disk.state(chance)
                tree = (*sorted(state.items()), acked)
                if tree not in trees:
                    trees.add(tree)
                    laid_out(base, state)
                    check(base, ident, acked)
    counted("power-cut states", len(trees), drawn=False)
    assert len(trees) >= scale.pick(100, 1_000)
