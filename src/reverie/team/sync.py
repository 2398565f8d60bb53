"""What a pull and a push do, decided purely: from what is here, what was known, what is there.

Three maps of key to SHA-256 are enough: `here` is the folder, `known` what the server held when
we last agreed, `there` what it holds now. Each key falls into one case, and each case has one
outcome. The server wins a key that both sides changed, and the local bytes go to a backup first;
with merging on, both sides' words are merged and pushed instead, and of the index always: it is a
list, to which everybody adds. A file that was deleted here comes back and is told, unless
deletions travel.

Nothing is read or written here; `client` does what this says.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from reverie.memory.format.entry import INDEX
from reverie.team.values import BATCH_BYTES, BATCH_ENTRIES, Draft, RemoteState


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


def batches(drafts: Sequence[Draft]) -> Iterator[list[Draft]]:
    """Drafts in their order, in batches within the limits; none of them is larger than a batch."""
    batch: list[Draft] = []
    size = 0
    for one in drafts:
        if batch and (size + one.size > BATCH_BYTES or len(batch) == BATCH_ENTRIES):
            yield batch
            batch, size = [], 0
        batch.append(one)
        size += one.size
    if batch:
        yield batch
