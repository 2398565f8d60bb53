"""Pull and push, decided purely and carried out.

What a pull and a push do, decided purely: from what is here, what was known, what is there.

Three maps of key to SHA-256 are enough: `here` is the folder, `known` what the server held when
we last agreed, `there` what it holds now. Each key falls into one case, and each case has one
outcome. The server wins a key that both sides changed, and the local bytes go to a backup first;
with merging on, both sides' words are merged and pushed instead, and of the index always: it is a
list, to which everybody adds. A file that was deleted here comes back and is told, unless
deletions travel.

`plan` reads and writes nothing; `sync_memory` carries its plan out.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from reverie.errors import ReverieError
from reverie.store.files import Changed
from reverie.store.fs import digest
from reverie.store.lock import not_locked, release, wait_turn
from reverie.store.memory_store import MemoryStore
from reverie.store.paths import fold_key
from reverie.team import folder
from reverie.team.client import Stale
from reverie.team.folder import LocalFiles, SyncBase
from reverie.team.protocol import (
    BATCH_BYTES,
    BATCH_ENTRIES,
    EntryChange,
    EntryVersion,
    RemoteState,
    why_no_key,
)
from reverie.topics.entry import INDEX, TEAM
from reverie.topics.merge import merge_file


@dataclass(frozen=True, slots=True)
class SyncMode:
    """What the two sides agreed on."""

    merging: bool = False
    deletions: bool = False


@dataclass(slots=True)
class SyncPlan:
    """What is to be done, key by key; a key stands in one of these at most but for `lost`."""

    take: list[str] = field(default_factory=list[str])
    """The server's text becomes ours."""
    lost: list[str] = field(default_factory=list[str])
    """Of these our bytes go to a backup first: both sides changed them."""
    merge: list[str] = field(default_factory=list[str])
    """Both changed them, and both sides' words are to be kept."""
    push: list[str] = field(default_factory=list[str])
    remove: list[str] = field(default_factory=list[str])
    """Deleted there, and left alone here."""
    delete: list[str] = field(default_factory=list[str])
    """Deleted here, to be deleted there."""
    returned: list[str] = field(default_factory=list[str])
    """Deleted here, and taken again since deletions do not travel."""
    agreed: list[str] = field(default_factory=list[str])
    """The same on both sides, whatever was known."""

    @property
    def is_done(self) -> bool:
        return not (self.take or self.merge or self.push or self.remove or self.delete)


def plan(
    here: Mapping[str, str],
    known: Mapping[str, str],
    remote: RemoteState,
    mode: SyncMode | None = None,
    quiet: Collection[str] = (),
) -> SyncPlan:
    """What a sync does; keys that are `quiet` are left as they are on both sides."""
    rules = mode or SyncMode()
    found = SyncPlan()
    for key in sorted({*here, *known, *remote.checksums, *remote.tombstones} - set(quiet)):
        _sort(key, here.get(key), known.get(key), remote, rules, found)
    return found


def _sort(
    key: str,
    ours: str | None,
    base: str | None,
    remote: RemoteState,
    rules: SyncMode,
    found: SyncPlan,
) -> None:
    theirs = remote.checksums.get(key)
    if ours == theirs:
        found.agreed.append(key)
    elif theirs is None:
        _gone_there(key, ours, base, remote, rules, found)
    elif ours is None:
        _gone_here(key, base, theirs, rules, found)
    elif theirs == base:
        found.push.append(key)
    elif ours == base:
        found.take.append(key)
    elif rules.merging or key == INDEX:
        found.merge.append(key)
    else:
        found.take.append(key)
        found.lost.append(key)


def _gone_there(
    key: str,
    ours: str | None,
    base: str | None,
    remote: RemoteState,
    rules: SyncMode,
    found: SyncPlan,
) -> None:
    """The server has no text for it, and we have."""
    was_deleted = rules.deletions and key in remote.tombstones
    if was_deleted and ours == base:
        found.remove.append(key)
    elif was_deleted and base is None and remote.tombstones[key] == ours:
        found.remove.append(key)  # a folder that never knew the server holds just what was deleted
    else:
        found.push.append(key)


def _gone_here(key: str, base: str | None, theirs: str, rules: SyncMode, found: SyncPlan) -> None:
    """The server has a text for it, and we have none."""
    if base == theirs and rules.deletions:
        found.delete.append(key)
        return
    found.take.append(key)
    if base is not None:
        found.returned.append(key)


def batches(drafts: Sequence[EntryChange]) -> Iterator[list[EntryChange]]:
    """Drafts in their order, in batches within the limits; none of them is larger than a batch."""
    batch: list[EntryChange] = []
    size = 0
    for one in drafts:
        if batch and (size + one.size > BATCH_BYTES or len(batch) == BATCH_ENTRIES):
            yield batch
            batch, size = [], 0
        batch.append(one)
        size += one.size
    if batch:
        yield batch


# --- One round of a sync: pull what is new there, push what is new here, until both agree.
#
# The order is what makes it safe to stop anywhere: bytes that would be lost are kept first, then
# what the server has lands as one step, then what was agreed is written down, then our changes go
# up batch by batch, each followed by a note of what the server has taken. Whoever stops in between
# does the same again and ends in the same state: what was sent already is seen to be there.
#
# Somebody else's write in between starts the round over, five times at most. Several processes of
# one memory take turns.


LOCK = "team-sync.lock"
TRIES = 5
PATIENCE = 60.0


class RemoteSide(Protocol):
    """The other side: a server, or a git remote."""

    url: str
    repo: str

    def state(self, known: str = "") -> RemoteState | None: ...
    def hashes(self, known: str = "") -> RemoteState | None: ...
    def put(self, drafts: Sequence[EntryChange], expected: str) -> str: ...
    def log(self, most: int = 100) -> list[EntryVersion]: ...


@dataclass(slots=True)
class SyncReport:
    """What a sync did, key by key."""

    pulled: list[str] = field(default_factory=list[str])
    pushed: list[str] = field(default_factory=list[str])
    blocked: dict[str, str] = field(default_factory=dict[str, str])
    conflicts: list[str] = field(default_factory=list[str])
    lost: dict[str, str] = field(default_factory=dict[str, str])
    """Of each conflict that the server won, where our bytes are kept."""
    kept: dict[str, str] = field(default_factory=dict[str, str])
    """Of each conflict, which bytes those are."""
    returned: list[str] = field(default_factory=list[str])
    removed: list[str] = field(default_factory=list[str])
    unlisted: list[str] = field(default_factory=list[str])
    """Pushed, and no line of the team's index names them."""
    group: str = ""
    """The step in the memory's history that a pull made."""

    def value(self) -> dict[str, object]:
        return {
            "pulled": self.pulled,
            "pushed": self.pushed,
            "blocked": self.blocked,
            "conflicts": self.conflicts,
            "lost": self.lost,
            "returned": self.returned,
            "removed": self.removed,
            "unlisted": self.unlisted,
            "group": self.group,
        }


def sync_memory(
    memories: MemoryStore,
    remote: RemoteSide,
    *,
    now: Callable[[], float],
    mode: SyncMode | None = None,
    pull_only: bool = False,
) -> SyncReport:
    """Pull, then push, until both sides agree; `Stale` where others always were faster."""
    report = SyncReport()
    with _alone(memories):
        for attempt in range(TRIES + 1):
            try:
                _once(memories, remote, mode or SyncMode(), report, now(), pull_only=pull_only)
                report.unlisted = folder.unlisted_keys(memories, report.pushed)
                return report
            except (Stale, Changed):
                if attempt == TRIES:
                    raise
    return report


@dataclass(frozen=True, slots=True)
class SyncState:
    """Here, there, what was agreed on before, and what a sync would do about it."""

    agreed: SyncBase
    here: LocalFiles
    there: RemoteState
    found: SyncPlan
    quiet: Sequence[str]
    """Left as they are on both sides."""


def compare(memories: MemoryStore, remote: RemoteSide, mode: SyncMode) -> SyncState:
    """Where both sides stand; nothing is changed on either."""
    agreed = folder.load(memories, remote.url, remote.repo)
    here = folder.read_files(memories)
    known = RemoteState(agreed.tag, agreed.known, refused=agreed.refused)
    there = remote.hashes(agreed.tag) or known
    strays = _strays(there, here, agreed)
    here = LocalFiles(here.data, {**strays, **here.blocked})
    sums = here.sums
    _decline(memories, sums, there, agreed)
    declined = agreed.declined.items()
    quiet = [key for key, pair in declined if pair == _pair(key, sums, there) and key not in strays]
    found = plan(sums, agreed.known, there, mode, [*quiet, *strays])
    return SyncState(agreed, here, there, found, quiet)


def _strays(there: RemoteState, here: LocalFiles, agreed: SyncBase) -> dict[str, str]:
    """What is left as it is on both sides because of its name, and why."""
    found = {key: why for key in there.checksums if (why := why_no_key(key))} | {**there.refused}
    first: dict[str, str] = {}
    every = sorted({*there.checksums, *here.data} - found.keys())
    for key in sorted(every, key=lambda key: (key not in agreed.known, key not in there.checksums)):
        other = first.setdefault(fold_key(key), key)
        if other != key:
            found[key] = f"some systems take its name for that of {other}"
    return found


def _once(
    memories: MemoryStore,
    remote: RemoteSide,
    mode: SyncMode,
    report: SyncReport,
    now: float,
    *,
    pull_only: bool,
) -> None:
    both = compare(memories, remote, mode)
    agreed, here, there, found = both.agreed, both.here, both.there, both.found
    if found.take or found.merge:
        there = remote.state() or there
        strays = _strays(there, here, agreed)  # it is read anew: others may lie there by now
        quiet = [*both.quiet, *strays]
        found = plan(here.sums, agreed.known, there, mode, quiet)
    merged = _merge_files(memories, here, there, agreed, found)
    _pull(memories, here, there, found, merged, agreed, report, now)
    folder.save(memories, agreed)
    report.blocked.update(here.blocked)
    if not pull_only:
        _push(memories, remote, _drafts(here, there, found, merged), agreed, report)


def _merge_files(
    memories: MemoryStore, here: LocalFiles, there: RemoteState, agreed: SyncBase, found: SyncPlan
) -> dict[str, bytes]:
    """Both sides' words of what both changed."""
    made: dict[str, bytes] = {}
    for key in found.merge:
        base = _content(memories, agreed.known.get(key, ""))
        ours = here.data[key].decode("utf-8", "surrogateescape")
        text = merge_file(key, base, ours, there.contents[key]).text
        made[key] = text.encode("utf-8", "surrogateescape")
    return made


def _content(memories: MemoryStore, name: str) -> str:
    try:
        return memories.history.content(name).decode() if name else ""
    except (ReverieError, UnicodeDecodeError):
        return ""


def _pull(
    memories: MemoryStore,
    here: LocalFiles,
    there: RemoteState,
    found: SyncPlan,
    merged: Mapping[str, bytes],
    agreed: SyncBase,
    report: SyncReport,
    now: float,
) -> None:
    """Land what is new there, and note what is agreed on."""
    for key in found.lost:
        name = digest(here.data[key])
        if report.kept.get(key) != name:  # a try before this one may have kept an older text
            report.lost[key] = folder.keep_lost(memories, key, here.data[key], now)
            report.kept[key] = name
        if key not in report.conflicts:
            report.conflicts.append(key)
    for key in found.merge:
        if key not in report.conflicts:
            report.conflicts.append(key)
    changes: dict[str, bytes | None] = {
        **{key: there.contents[key].encode() for key in found.take},
        **{key: data for key, data in merged.items() if data != here.data[key]},
        **dict.fromkeys(found.remove),
    }
    group, refused = folder.land(memories, changes, here, f"by {_authors(there, changes)}"[:200])
    report.group = group or report.group
    report.blocked.update(refused)
    report.pulled += [key for key in (*found.take, *merged) if key not in refused]
    report.removed += found.remove
    report.returned += found.returned
    for key in (*found.take, *found.merge, *found.agreed):
        if key in there.checksums and key not in refused:
            agreed.known[key] = there.checksums[key]
        elif key not in there.checksums:
            agreed.known.pop(key, None)
    for key in found.remove:
        agreed.known.pop(key, None)
    strays = _strays(there, here, agreed)
    theirs = {*there.checksums, *there.refused}
    agreed.refused = {key: why for key, why in strays.items() if key in theirs}
    agreed.tag = there.tag


def _authors(there: RemoteState, keys: Iterable[str]) -> str:
    """Who wrote these, as far as the other side knows."""
    known = sorted({there.authors.get(key) or "somebody unknown" for key in keys})
    return ", ".join(known)


def _drafts(
    here: LocalFiles,
    there: RemoteState,
    found: SyncPlan,
    merged: Mapping[str, bytes],
) -> list[EntryChange]:
    """What is to go up: what only we changed, what was merged, what was deleted here."""
    data = {**{key: here.data[key] for key in found.push}, **merged}
    drafts: list[EntryChange] = []
    for key in sorted(data):
        theirs, ours = there.checksums.get(key, ""), digest(data[key])
        if key in here.blocked or theirs == ours:
            continue
        if key in merged and folder.why_not(key, data[key]):
            continue
        drafts.append(EntryChange(key, data[key].decode(), ours))
    return drafts + [EntryChange(key, None, "") for key in found.delete]


def _push(
    memories: MemoryStore,
    remote: RemoteSide,
    drafts: list[EntryChange],
    agreed: SyncBase,
    report: SyncReport,
) -> None:
    for batch in batches([one for one in drafts if one.size <= BATCH_BYTES]):
        agreed.tag = remote.put(batch, agreed.tag)
        for one in batch:
            if one.content is None:
                agreed.known.pop(one.key, None)
            else:
                agreed.known[one.key] = one.sha256
            agreed.declined.pop(one.key, None)
            report.pushed.append(one.key)
        folder.save(memories, agreed)


def _pair(key: str, here: Mapping[str, str], there: RemoteState) -> list[str]:
    return [there.checksums.get(key, ""), here.get(key, "")]


def _decline(
    memories: MemoryStore, here: Mapping[str, str], there: RemoteState, agreed: SyncBase
) -> None:
    """What a teammate wrote and a person here took back stays as it is here, and is not pushed:
    whoever undoes for himself does not undo for all."""
    for key, known in agreed.known.items():
        if there.checksums.get(key) != known or here.get(key) == known:
            continue
        log = memories.history.log(f"{TEAM}/{key}")
        undone = {one.id: one for one in log if one.origin.kind == "pull"}
        if log and any(name in undone for name in log[-1].undoes):
            agreed.declined[key] = _pair(key, here, there)


@contextlib.contextmanager
def _alone(memories: MemoryStore) -> Generator[None]:
    fd = memories.beside.open_append(LOCK)
    try:
        try:
            wait_turn(fd, str(memories.root), 3.0, PATIENCE)
        except OSError as error:
            raise not_locked(error, str(memories.beside.root / LOCK)) from error
        yield
    finally:
        release(fd)
