"""A dream on disk: the folder as it began, the copy it works on, and how far it is.

`<transcripts>/dreams/<id>.jsonl` is its transcript, `<transcripts>/dreams/<id>/` holds `base/`,
`work/` and `dream.json`, which is replaced whole at every step, so that any door can show it. A
file named `kill` there asks it to stop. Files of the team are never part of it.
Its changes, merged with what others wrote meanwhile, enter the folder as one step.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from reverie.consolidation.branch import merge_work
from reverie.consolidation.changes import changes
from reverie.errors import NotFound, PathRefused, StoreError
from reverie.light import dataclass
from reverie.store import transaction
from reverie.store.files import Folder
from reverie.store.home import session_id
from reverie.store.memory_folder import MAX_KEPT, MemoryFolder
from reverie.store.memory_store import MemoryStore
from reverie.store.transaction import JobFence
from reverie.topics import index as indexes
from reverie.topics.entry import INDEX, TEAM, TopicFile, is_topic
from reverie.topics.trust import Trust
from reverie.topics.versions import Origin, from_origin

FOLDER = "dreams"
STATUS = "dream.json"
KILL = "kill"
Standing: TypeAlias = Literal[
    "running", "completed", "failed", "killed", "waiting", "dropped", "undone"
]
Phase: TypeAlias = Literal["starting", "updating"]


@dataclass(frozen=True, slots=True)
class Dream:
    """What is known of one dream."""

    id: str
    status: Standing = "running"
    phase: Phase = "starting"
    trigger: Literal["auto", "manual"] = "auto"
    model: str = ""
    pid: int = 0
    began: float = 0.0
    ended: float = 0.0
    rounds: tuple[str, ...] = ()  # the last texts
    tools: int = 0
    touched: tuple[str, ...] = ()  # files it wrote in its copy
    changed: tuple[str, ...] = ()  # files that landed, or would
    conflicts: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()  # why nothing of it landed
    left_out: tuple[str, ...] = ()  # changes that did not land, each with its reason
    drawn: tuple[dict[str, str], ...] = ()  # from which file something went into which
    tombstones: tuple[dict[str, str], ...] = ()  # facts that went, why, and what replaces them
    reason: str = ""
    summary: str = ""
    requests: int = 0
    weighted: float = 0.0  # price-weighted tokens

    @property
    def over(self) -> bool:
        return self.status != "running"


def snapshot(folder: MemoryFolder) -> dict[str, bytes]:
    """Every Markdown file of a memory folder but the team's, whole."""
    found: dict[str, bytes] = {}
    for key in folder.all_keys():
        if not key.lower().endswith(".md") or key.startswith(f"{TEAM}/"):
            continue
        try:
            data = folder.bytes_of(key, MAX_KEPT + 1)
        except (NotFound, StoreError):
            continue
        if len(data) <= MAX_KEPT:
            found[key] = data
    return found


class DreamBranch:
    """One dream's folder, open."""

    def __init__(self, dreams: Path, dream: str, *, create: bool = False) -> None:
        self.id = session_id(dream)
        self.path = dreams / self.id
        if not create and not self.path.is_dir():
            raise NotFound(
                "There is no such dream", where=dream[:80], do="List the dreams to see their ids"
            )
        self.files = Folder(self.path)
        self._own_index = False  # whether the index itself was written

    def close(self) -> None:
        self.files.close()

    def __enter__(self) -> DreamBranch:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def work(self) -> Path:
        return self.path / "work"

    # The copy

    def begin(self, base: Mapping[str, bytes], times: Mapping[str, float]) -> None:
        """Copy the folder; a file keeps its time, by which relative dates are understood."""
        for part in ("base", "work"):
            self.files.sub(part).close()
            for key, data in base.items():
                at = times.get(key)
                modified = 0 if at is None else round(at * 1e9)
                self.files.write(f"{part}/{key}", data, durable=False, modified=modified)

    def state(self, part: Literal["base", "work"]) -> dict[str, bytes]:
        """The files of one side."""
        keys = self.files.list(part)
        return {
            key.removeprefix(f"{part}/"): self.files.read(key, MAX_KEPT)
            for key in keys
            if key.lower().endswith(".md")
        }

    def put(self, texts: Mapping[str, str]) -> tuple[str, ...]:
        """Write files of the copy whole, or empty them where there is no text; their lines in the
        index follow. Return what is wrong with those that cannot be written."""
        faults = tuple(one for key, text in texts.items() if (one := self._put(key, text)))
        self._own_index = self._own_index or INDEX in texts
        base, work = self.state("base"), self.state("work")
        was = work.get(INDEX, b"")
        index = was if self._own_index else base.get(INDEX, b"")
        for key in sorted({*base, *work}):
            if is_topic(key) and not key.startswith(f"{TEAM}/") and base.get(key) != work.get(key):
                index = _with_pointer(index, TopicFile(key, work.get(key, b"")), base.get(key))
        if index != was:
            self.files.write(f"work/{INDEX}", index, durable=False)
        return faults

    def _put(self, key: str, text: str) -> str:
        if not (is_topic(key) or key == INDEX) or key.startswith(f"{TEAM}/"):
            return f"{key}: this is no memory file"
        data = f"{text.strip()}\n".encode("utf-8", "replace") if text.strip() else b""
        try:
            self.files.write(f"work/{key}", data, durable=False)
        except (PathRefused, StoreError) as error:
            return f"{key}: {error.what}"
        return ""

    def settle(self, work: Mapping[str, bytes]) -> None:
        """Leave in the copy what may land, and nothing else; a file that goes is empty."""
        known = self.state("work")
        for key in {*known, *work}:
            data = work.get(key, b"")
            if known.get(key) != data:
                self.files.write(f"work/{key}", data, durable=False)

    def strangers(self) -> tuple[str, ...]:
        """What the dream left that is no plain Markdown file."""
        found = self.files.survey("work")
        others = [key for key in found.keys if not key.lower().endswith(".md")]
        return (*(one.key for one in found.refused), *others)

    # How far it is

    def read(self) -> Dream:
        try:
            value: Any = json.loads(self.files.read(STATUS, 2**20))
        except (NotFound, ValueError):
            value = {}
        known = {one.name for one in fields(Dream)}
        found = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
        given: dict[str, Any] = {"id": self.id}
        for name in known.intersection(found) - {"id"}:
            member: Any = found[name]
            given[name] = tuple(cast("list[str]", member)) if isinstance(member, list) else member
        return Dream(**given)

    def write(self, dream: Dream) -> None:
        self.files.write(STATUS, json.dumps(asdict(dream), ensure_ascii=False).encode())

    def change(self, **changes: Any) -> Dream:
        dream = replace(self.read(), **changes)
        self.write(dream)
        return dream

    def kill(self) -> None:
        """Ask the process that dreams it to stop."""
        self.files.write(KILL, b"")

    @property
    def killed(self) -> bool:
        return os.path.lexists(self.path / KILL)

    def drop_copies(self) -> None:
        """The copies go, where the disk lets them; what is known of the dream stays."""
        with suppress(OSError):
            _remove(self.path / "work")
            _remove(self.path / "base")


def _with_pointer(index: bytes, now: TopicFile, before: bytes | None) -> bytes:
    """An index whose line follows a file that changed; one that had no line gets none."""
    if not now.data:
        return indexes.without(index, now.key)
    was = None if before is None else TopicFile(now.key, before)
    if was is not None:
        same = (now.name, now.description) == (was.name, was.description)
        if same or indexes.find_pointer(index, now.key) is None:
            return index
    return indexes.put(index, now.key, now.name or now.key, now.description)


def _remove(folder: Path) -> None:
    for above, names, files in os.walk(folder, topdown=False):
        for name in files:
            os.unlink(os.path.join(above, name))
        for name in names:
            path = os.path.join(above, name)
            (os.unlink if os.path.islink(path) else os.rmdir)(path)
    if folder.is_dir() and not folder.is_symlink():
        folder.rmdir()


def dreams(folder: Path) -> list[Dream]:
    """All dreams of a project, the newest first."""
    found: list[Dream] = []
    for name in _folder_names(folder):
        try:
            with DreamBranch(folder, name) as branch:
                found.append(branch.read())
        except (NotFound, StoreError):
            continue
    return sorted(found, key=lambda dream: -dream.began)


def _folder_names(folder: Path) -> Iterable[str]:
    try:
        return sorted(entry.name for entry in os.scandir(folder) if entry.is_dir())
    except OSError:
        return ()


# --- landing


@dataclass(frozen=True, slots=True)
class DreamChanges:
    """What a dream changed in the folder."""

    changed: tuple[str, ...]
    conflicts: tuple[str, ...] = ()


def sources_of(dream: Dream) -> dict[str, set[str]]:
    """For each file, those from which something went into it."""
    found: dict[str, set[str]] = {}
    for one in dream.drawn:
        found.setdefault(one.get("to", ""), set()).add(one.get("from", ""))
    return found


def applied_files(memories: MemoryStore, dream: str) -> tuple[str, ...]:
    """The files that a dream changed in the memory, by its history."""
    steps = from_origin(memories.history.log(), "session", dream)
    return tuple(sorted({step.key for step in steps}))


def dreams_folder(memories: MemoryStore) -> Path:
    return memories.beside.root.parent / FOLDER


def land(
    memories: MemoryStore,
    branch: DreamBranch,
    base: Mapping[str, bytes],
    work: Mapping[str, bytes],
    drawn: Mapping[str, Collection[str]] | None = None,
    most: Trust = Trust.AGENT,
    fence: JobFence | None = None,
) -> DreamChanges:
    """Merge a dream's work into the folder as it is now, and write it. Each change is as trusted
    as the least of what it was made from: its own files, and what was `drawn` on for each."""
    with memories.folder.locked():
        transaction.finish(memories)
        memories.look()
        here = snapshot(memories.folder)
        found = merge_work(base, work, here)
        trusts: dict[str, Trust] = {}
        for group in changes(base, work):
            sources = {*group, *(one for key in group for one in (drawn or {}).get(key, ()))}
            known = [key for key in sources if key in here]
            level = transaction.least_trusted(memories, known, most if known else Trust.AGENT)
            trusts |= dict.fromkeys(group, level)
        origin = _origin(branch.id, Trust.AGENT)
        stamps = _stamps(memories, here)
        transaction.land(memories, found.changes, here, origin, trusts, fence)
        _keep_times(memories, found.changes, changes(base, work), drawn or {}, stamps)
        return DreamChanges(tuple(sorted(found.changes)), found.conflicts)


def _stamps(memories: MemoryStore, keys: Iterable[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for key in keys:
        with suppress(NotFound, StoreError):
            found[key] = memories.folder.stat(key).modified
    return found


def _keep_times(
    memories: MemoryStore,
    landed: Mapping[str, bytes | None],
    groups: Iterable[Collection[str]],
    drawn: Mapping[str, Collection[str]],
    stamps: Mapping[str, int],
) -> None:
    """What was tidied is no younger for it: as old as the newest of what it was made from."""
    for group in groups:
        for key in group:
            sources = {*group, *drawn.get(key, ())} if key not in stamps else {key, *group}
            newest = max((stamps[one] for one in sources if one in stamps), default=0)
            if newest and landed.get(key) is not None:
                with suppress(OSError):
                    path = memories.folder.root / key
                    os.utime(path, ns=(newest, newest), follow_symlinks=False)


def _origin(dream: str, trust: Trust) -> Origin:
    return Origin("dream", trust, agent=f"dream {dream[:8]}", session=dream, tool="dream")
