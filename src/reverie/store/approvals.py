"""Files outside a project that the user let it read: asked once, kept in home.

An approval is for one project and one real path, and says which file asked. What may hold keys,
and what lies in an agent's own folder, is never approved, and an old approval of it counts for
nothing. A record that cannot be read approves nothing and is never written over.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from reverie.errors import NotFound, PathRefused, ReverieError, StoreError
from reverie.light import dataclass
from reverie.store.files import Folder
from reverie.store.lock import PATIENCE, FileLock
from reverie.store.private import is_private

RECORD = ".reverie-includes.json"
LOCK = ".reverie-includes.lock"
_LARGEST = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Approval:
    """One file that one project may read, and the file that asked for it."""

    root: str
    path: str
    by: str = ""


@dataclass(frozen=True, slots=True)
class IncludeApprovals:
    """The record in one home."""

    home: Path

    def approve(self, root: Path, path: Path | str, by: str = "") -> Approval:
        """Keep the user's word that a project may read a file; PathRefused where it may never."""
        one = Approval(os.path.realpath(root), os.path.realpath(path), by)
        if self.is_barred(Path(one.path)):
            raise PathRefused(
                "This is never read for a project: it may hold keys, or is an agent's own",
                where=one.path,
            )
        with Folder(self.home) as home, FileLock(self.home / LOCK).hold(PATIENCE):
            kept = self._read(home)
            if not any((each.root, each.path) == (one.root, one.path) for each in kept):
                self._write(home, (*kept, one))
        return one

    def approved(self, root: Path, path: Path | str) -> bool:
        """Whether a project may read the file that is really at `path`."""
        wanted = (os.path.realpath(root), os.path.realpath(path))
        if self.is_barred(Path(wanted[1])):
            return False
        return any((one.root, one.path) == wanted for one in self.all())

    def all(self) -> tuple[Approval, ...]:
        """Every approval; none where the record is not there or cannot be read."""
        try:
            with Folder(self.home, create=False) as home:
                return self._read(home)
        except ReverieError:
            return ()

    def is_barred(self, real: Path) -> bool:
        """Whether no approval helps: keys, and the folders of agents, ours first."""
        return is_private(real, (Path(os.path.realpath(self.home)),))

    def _read(self, home: Folder) -> tuple[Approval, ...]:
        try:
            value = json.loads(home.read(RECORD, _LARGEST))
            rows = cast("list[Any]", cast("Mapping[str, Any]", value)["approved"])
            return tuple(Approval(str(r["root"]), str(r["path"]), str(r["by"])) for r in rows)
        except NotFound:
            return ()
        except (ValueError, KeyError, TypeError) as error:
            raise StoreError(
                "The record of approved files cannot be read",
                where=str(home.root / RECORD),
                do="Mend or remove it",
            ) from error

    def _write(self, home: Folder, approvals: tuple[Approval, ...]) -> None:
        rows = [{"root": one.root, "path": one.path, "by": one.by} for one in approvals]
        text = json.dumps({"approved": rows}, indent=2, ensure_ascii=True) + "\n"
        home.write(RECORD, text.encode())
