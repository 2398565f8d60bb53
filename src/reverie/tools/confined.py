"""Files for background agents: a few folders to read, fewer to write, nothing else.

A path is normalised and resolved, and the real path is compared name by name with the
folders: the innermost that holds it decides. Files that hold keys or passwords (`private`)
and git's own are refused wherever they lie. What is opened is reached without following a
link; what is written goes through a `Folder` that was opened before the agent began, so that
no link or rename on the way leads out. Every refusal is told to whoever made this.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from reverie.errors import PathRefused
from reverie.light import dataclass
from reverie.store.files import Folder
from reverie.store.keys import beneath, shown
from reverie.store.private import GIT, SECRETS, is_gits, is_secret
from reverie.tools.places import absolute, open_real, resolve
from reverie.tools.tool import Denied


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
            real = resolve(self._by_name(path) or absolute(path, self.cwd))
        except PathRefused as error:
            raise self._deny(path, error.what) from error
        return self._readable(real, path)

    def _by_name(self, path: str) -> Path | None:
        """A bare name of a file that lies in a folder that may be written."""
        places = self._bare(path)
        return next((one for one in places if self._slot(one)[0] and self._is_there(one)), None)

    def _bare(self, path: str) -> list[Path]:
        """Where a bare name of a note may be meant, beside the working folder."""
        named = path == os.path.basename(path) and path.endswith(".md")
        return [slot.folder.root / path for slot in self.slots if named]

    def _is_there(self, place: Path) -> bool:
        return place.is_file()

    def _readable(self, real: Path, named: str) -> Path:
        if is_secret(real) or is_secret(Path(named)):
            raise self._deny(named, "it may hold keys or passwords")
        if is_gits(real):
            raise self._deny(named, "it belongs to git's own files")
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
            for candidate in (named, resolve(named.parent) / named.name, *self._bare(path)):
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
        return is_secret(path) or is_gits(path) or not self.allows(path)

    def hidden_below(self, folder: Path) -> tuple[str, ...]:
        inner = (p for p in self.refused if beneath(folder, p) and p != folder)
        return (GIT, *SECRETS, *(f"/{escaped(p.relative_to(folder))}" for p in inner))

    def _deny(self, path: str, why: str) -> Denied:
        self._denied(shown(path), why)
        return Denied(f"not permitted here: {why}", where=shown(path))

    def close(self) -> None:
        for slot in self.slots:
            slot.folder.close()


def escaped(path: Path) -> str:
    """A path as a glob that means just itself."""
    return "".join(f"\\{c}" if c in "*?[]{}\\!" else c for c in str(path))
