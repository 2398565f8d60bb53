"""What a pull and a push do, decided purely: from what is here, what was known, what is there.

Three maps of key to SHA-256 are enough: `here` is the folder, `known` what the server held when
we last agreed, `there` what it holds now. Each key falls into one case, and each case has one
outcome. The server wins a key that both sides changed, and the local bytes go to a backup first;
with merging on, both sides' words are merged and pushed instead. A file that was deleted here
comes back and is told, unless deletions travel.

Nothing is read or written here; `client` does what this says.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from reverie.team.values import BATCH_BYTES, BATCH_ENTRIES, Draft, RemoteState


@dataclass(frozen=True, slots=True)
class SyncMode:
    """What the two sides agreed on."""

    merging: bool = False
    deletions: bool = False


@dataclass(frozen=True, slots=True)
class SyncPlan:
    """What is to be done, key by key; a key stands in one of these at most but for `lost`."""

    take: tuple[str, ...] = ()
    """The server's text becomes ours."""
    lost: tuple[str, ...] = ()
    """Of these our bytes go to a backup first: both sides changed them."""
    merge: tuple[str, ...] = ()
    """Both changed them, and both sides' words are to be kept."""
    push: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()
    """Deleted there, and left alone here."""
    delete: tuple[str, ...] = ()
    """Deleted here, to be deleted there."""
    returned: tuple[str, ...] = ()
    """Deleted here, and taken again since deletions do not travel."""
    agreed: tuple[str, ...] = ()
    """The same on both sides, whatever was known."""

    @property
    def is_done(self) -> bool:
        return not (self.take or self.merge or self.push or self.remove or self.delete)


@dataclass(slots=True)
class _Cases:
    take: list[str] = field(default_factory=list[str])
    lost: list[str] = field(default_factory=list[str])
    merge: list[str] = field(default_factory=list[str])
    push: list[str] = field(default_factory=list[str])
    remove: list[str] = field(default_factory=list[str])
    delete: list[str] = field(default_factory=list[str])
    returned: list[str] = field(default_factory=list[str])
    agreed: list[str] = field(default_factory=list[str])

    def done(self) -> SyncPlan:
        return SyncPlan(
            tuple(self.take),
            tuple(self.lost),
            tuple(self.merge),
            tuple(self.push),
            tuple(self.remove),
            tuple(self.delete),
            tuple(self.returned),
            tuple(self.agreed),
        )


def plan(
    here: Mapping[str, str],
    known: Mapping[str, str],
    remote: RemoteState,
    mode: SyncMode | None = None,
    quiet: Collection[str] = (),
) -> SyncPlan:
    """What a sync does; keys that are `quiet` are left as they are on both sides."""
    rules = mode or SyncMode()
    cases = _Cases()
    for key in sorted({*here, *known, *remote.checksums, *remote.tombstones} - set(quiet)):
        _sort(key, here.get(key), known.get(key), remote, rules, cases)
    return cases.done()


def _sort(
    key: str,
    ours: str | None,
    base: str | None,
    remote: RemoteState,
    rules: SyncMode,
    cases: _Cases,
) -> None:
    theirs = remote.checksums.get(key)
    if ours == theirs:
        cases.agreed.append(key)
    elif theirs is None:
        _gone_there(key, ours, base, remote, rules, cases)
    elif ours is None:
        _gone_here(key, base, theirs, rules, cases)
    elif theirs == base:
        cases.push.append(key)
    elif ours == base:
        cases.take.append(key)
    elif rules.merging:
        cases.merge.append(key)
    else:
        cases.take.append(key)
        cases.lost.append(key)


def _gone_there(
    key: str,
    ours: str | None,
    base: str | None,
    remote: RemoteState,
    rules: SyncMode,
    cases: _Cases,
) -> None:
    """The server has no text for it, and we have."""
    was_deleted = rules.deletions and key in remote.tombstones
    if was_deleted and ours == base:
        cases.remove.append(key)
    elif was_deleted and base is None and remote.tombstones[key] == ours:
        cases.remove.append(key)  # a folder that never knew the server holds just what was deleted
    else:
        cases.push.append(key)


def _gone_here(key: str, base: str | None, theirs: str, rules: SyncMode, cases: _Cases) -> None:
    """The server has a text for it, and we have none."""
    if base == theirs and rules.deletions:
        cases.delete.append(key)
        return
    cases.take.append(key)
    if base is not None:
        cases.returned.append(key)


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
