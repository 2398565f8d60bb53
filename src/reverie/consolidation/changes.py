"""A dream's work taken apart into changes, so that one bad change does not refuse the rest.

A change is every file that belongs to it: a merge with what receives and what goes, files between
which a passage moved, a file and what links to it by a new name. Pointers belong to the files they
lead to. What has a fault is put back as it was, with all of its change, and judged again until
nothing is wrong; what is left is applied as one step.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from reverie.consolidation.branch import BranchFault, FolderFiles, changed_keys, judged_once
from reverie.consolidation.facts import facts_of
from reverie.consolidation.folder import CheckInput
from reverie.consolidation.reasons import RemovalReason, Tombstone
from reverie.topics import index as indexes
from reverie.topics.entry import INDEX, decode_text, index_of, is_index, is_topic

_TELLING = 12
"""Letters of a passage that two files do not share by chance."""
_LINK = re.compile(r"\]\(<?([^()\s<>#]+)")


@dataclass(frozen=True, slots=True)
class RejectedChange:
    """A change that is not applied: its files, and why."""

    files: tuple[str, ...]
    faults: tuple[BranchFault, ...]

    def __str__(self) -> str:
        more = f" (and {len(self.faults) - 1} more)" if len(self.faults) > 1 else ""
        first = next(map(str, self.faults), "")
        return f"{', '.join(self.files)}: {first}{more}"


@dataclass(frozen=True, slots=True)
class BranchVerdict:
    """What of a dream's work is applied, what is not, and which facts went for which reason."""

    work: Mapping[str, bytes]
    left: tuple[RejectedChange, ...] = ()
    tombstones: tuple[Tombstone, ...] = ()

    @property
    def faults(self) -> tuple[str, ...]:
        """Everything that is wrong with what is not applied."""
        return tuple(str(fault) for one in self.left for fault in one.faults)


def change_verdict(
    given: CheckInput,
    work: FolderFiles,
    reasons: Sequence[RemovalReason] = (),
    doubted: Collection[str] = (),
) -> BranchVerdict:
    """Return the part of the work on a folder that nothing is wrong with; `doubted` are the rules
    whose `applies_to` it may change."""
    base = given.files
    state = _BranchEditor(base, dict(work), changes(base, work, reasons))
    while True:
        found = judged_once(given, state.work, reasons, doubted)
        if not found.faults:
            return BranchVerdict(state.work, tuple(state.left), found.tombstones)
        if not state.take_back(found.faults):
            every = changed_keys(base, work)
            return BranchVerdict(dict(base), (RejectedChange(every, found.faults),))


def changes(
    base: FolderFiles, work: FolderFiles, reasons: Sequence[RemovalReason] = ()
) -> list[frozenset[str]]:
    """Return the files of each change, indexes left out: they follow their files."""
    keys = [key for key in changed_keys(base, work) if not is_index(key)]
    groups = {key: {key} for key in keys}
    reasoned = ((one.file, one.target) for one in reasons)
    for one, other in (*reasoned, *_moves(base, work, keys), *_relinked(base, work, keys)):
        a, b = groups.get(one), groups.get(other)
        if a is not None and b is not None and a is not b:
            groups |= dict.fromkeys(b, a)
            a |= b
    return sorted({frozenset(one) for one in groups.values()}, key=sorted)


def _moves(base: FolderFiles, work: FolderFiles, keys: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Files between which words moved: gone from one, new in the other."""
    before = {key: _plains(key, base.get(key)) for key in keys}
    after = {key: _plains(key, work.get(key)) for key in keys}
    came = {words: key for key in reversed(keys) for words in after[key] - before[key]}
    for key in keys:
        for words in before[key] - after[key]:
            if words in came and len(words) > _TELLING:
                yield key, came[words]


def _plains(key: str, data: bytes | None) -> frozenset[str]:
    return frozenset(one.plain for one in facts_of(decode_text(data or b""), key))


def _relinked(
    base: FolderFiles, work: FolderFiles, keys: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """A file whose links follow another that came or went belongs to it."""
    fresh = {key for key in keys if (key in base) != (key in work)}
    for key in keys:
        for target in (_links(key, base) ^ _links(key, work)) & fresh:
            yield key, target


def _links(key: str, state: FolderFiles) -> set[str]:
    """The files that a file links to, by their keys."""
    found = _LINK.findall(decode_text(state.get(key, b"")))
    return {posixpath.normpath(posixpath.join(posixpath.dirname(key), one)) for one in found}


@dataclass(slots=True)
class _BranchEditor:
    """The work while changes are taken out of it."""

    base: FolderFiles
    work: dict[str, bytes]
    groups: list[frozenset[str]]
    left: list[RejectedChange] = field(default_factory=list[RejectedChange])

    def take_back(self, faults: Sequence[BranchFault]) -> bool:
        """Put back what has a fault; False where nothing more can be."""
        wrong = {fault.file for fault in faults} | {fault.about for fault in faults if fault.about}
        bad = [one for one in self.groups if one & wrong]
        if any(fault.kind == "size" for fault in faults) and not bad:
            bad = sorted(self.groups, key=self._grows)[-1:]
        for group in bad:
            own = [f for f in faults if {f.file, f.about} & group] or list(faults)
            self.left.append(RejectedChange(tuple(sorted(group)), tuple(own)))
            self.groups.remove(group)
            for key in group:
                self._put_back(key)
        return bool(bad) or self._reset([fault for fault in faults if is_index(fault.file)])

    def _grows(self, group: Iterable[str]) -> int:
        return sum(len(self.work.get(k, b"")) - len(self.base.get(k, b"")) for k in group)

    def _put_back(self, key: str) -> None:
        """A file as it was, with its pointer as it was."""
        if key in self.base:
            self.work[key] = self.base[key]
        else:
            self.work.pop(key, None)
        if not is_topic(key):
            return
        index = index_of(key)
        name = key.removeprefix(index.removesuffix(INDEX))
        old, now = self.base.get(index, b""), self.work.get(index, b"")
        rows = _rows(old, name) if key in self.base else []
        if rows != _rows(now, name):
            data = indexes.without(now, name)
            for row in rows:
                data = (data.rstrip(b"\r\n") + b"\n" if data.strip() else b"") + row + b"\n"
            self.work[index] = data

    def _reset(self, faults: Sequence[BranchFault]) -> bool:
        """An index with a fault of its own: as it was, with pointers for what came and went."""
        done = False
        for key in {fault.file for fault in faults}:
            below, data, made = key.removesuffix(INDEX), self.base.get(key, b""), self.work.get(key)
            topics = [k for k in {*self.base, *self.work} if is_topic(k) and index_of(k) == key]
            for one in sorted(topics):
                name = one.removeprefix(below)
                if one not in self.work:
                    data = indexes.without(data, name)
                elif found := indexes.find_pointer(made or b"", name):
                    data = indexes.put(data, name, found.title, found.hook)
            if data != made:
                self.work[key] = data
                self.left.append(RejectedChange((key,), tuple(f for f in faults if f.file == key)))
                done = True
        return done


def _rows(data: bytes, name: str) -> list[bytes]:
    found = indexes.pointers_to(data, name)
    return [data[one.start : one.end].rstrip(b"\r\n") for one in found]
