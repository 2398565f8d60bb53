"""One round of a sync: pull what is new there, push what is new here, until both agree.

The order is what makes it safe to stop anywhere: bytes that would be lost are kept first, then
what the server has lands as one step, then what was agreed is written down, then our changes go
up batch by batch, each followed by a note of what the server has taken. Whoever stops in between
does the same again and ends in the same state: what was sent already is seen to be there.

Somebody else's write in between starts the round over, five times at most. Several processes of
one memory take turns.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from reverie.errors import ReverieError
from reverie.memory.format.entry import TEAM
from reverie.memory.merge import merge
from reverie.store.files import Changed
from reverie.store.lock import not_locked, release, wait_turn
from reverie.store.memories import Memories
from reverie.store.plain import digest
from reverie.team import folder
from reverie.team.client import Stale
from reverie.team.folder import Agreed, LocalFiles
from reverie.team.sync import SyncMode, SyncPlan, batches, plan
from reverie.team.values import BATCH_BYTES, Draft, KeptVersion, RemoteState, why_no_key

LOCK = "team-sync.lock"
TRIES = 5
PATIENCE = 60.0


class Shared(Protocol):
    """The other side: a server, or a git remote."""

    url: str
    repo: str

    def state(self, known: str = "") -> RemoteState | None: ...
    def hashes(self, known: str = "") -> RemoteState | None: ...
    def put(self, drafts: Sequence[Draft], expected: str) -> str: ...
    def log(self, most: int = 100) -> list[KeptVersion]: ...


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


def sync(
    memories: Memories,
    remote: Shared,
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
                report.unlisted = folder.unlisted(memories, report.pushed)
                return report
            except (Stale, Changed):
                if attempt == TRIES:
                    raise
    return report


@dataclass(frozen=True, slots=True)
class BothSides:
    """Here, there, what was agreed on before, and what a sync would do about it."""

    agreed: Agreed
    here: LocalFiles
    there: RemoteState
    found: SyncPlan
    quiet: Sequence[str]
    """Left as they are on both sides."""


def compare(memories: Memories, remote: Shared, mode: SyncMode) -> BothSides:
    """Where both sides stand; nothing is changed on either."""
    agreed = folder.load(memories, remote.url, remote.repo)
    here = folder.read_files(memories)
    there = remote.hashes(agreed.tag) or RemoteState(agreed.tag, agreed.known)
    strays = _strays(there)
    here = LocalFiles(here.data, {**strays, **here.blocked})
    sums = here.sums
    _decline(memories, sums, there, agreed)
    declined = agreed.declined.items()
    quiet = [key for key, pair in declined if pair == _pair(key, sums, there) and key not in strays]
    found = plan(sums, agreed.known, there, mode, [*quiet, *strays])
    return BothSides(agreed, here, there, found, quiet)


def _strays(there: RemoteState) -> dict[str, str]:
    """What lies there under names that no team shares, and why: it is not taken."""
    return {key: why for key in there.checksums if (why := why_no_key(key))}


def _once(
    memories: Memories,
    remote: Shared,
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
        quiet = [*both.quiet, *_strays(there)]  # it is read anew: others may lie there by now
        found = plan(here.sums, agreed.known, there, mode, quiet)
    merged = _merged(memories, here, there, agreed, found)
    _pull(memories, here, there, found, merged, agreed, report, now)
    folder.save(memories, agreed)
    report.blocked.update(here.blocked)
    if not pull_only:
        _push(memories, remote, _drafts(here, there, found, merged), agreed, report)


def _merged(
    memories: Memories, here: LocalFiles, there: RemoteState, agreed: Agreed, found: SyncPlan
) -> dict[str, bytes]:
    """Both sides' words of what both changed."""
    made: dict[str, bytes] = {}
    for key in found.merge:
        base = _content(memories, agreed.known.get(key, ""))
        ours = here.data[key].decode("utf-8", "surrogateescape")
        text = merge(key, base, ours, there.contents[key]).text
        made[key] = text.encode("utf-8", "surrogateescape")
    return made


def _content(memories: Memories, name: str) -> str:
    try:
        return memories.history.content(name).decode() if name else ""
    except (ReverieError, UnicodeDecodeError):
        return ""


def _pull(
    memories: Memories,
    here: LocalFiles,
    there: RemoteState,
    found: SyncPlan,
    merged: Mapping[str, bytes],
    agreed: Agreed,
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
    agreed.known.update((key, there.checksums[key]) for key in _strays(there))  # a status names it
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
) -> list[Draft]:
    """What is to go up: what only we changed, what was merged, what was deleted here."""
    data = {**{key: here.data[key] for key in found.push}, **merged}
    drafts: list[Draft] = []
    for key in sorted(data):
        theirs, ours = there.checksums.get(key, ""), digest(data[key])
        if key in here.blocked or theirs == ours:
            continue
        if key in merged and folder.why_not(key, data[key]):
            continue
        drafts.append(Draft(key, data[key].decode(), ours))
    return drafts + [Draft(key, None, "") for key in found.delete]


def _push(
    memories: Memories,
    remote: Shared,
    drafts: list[Draft],
    agreed: Agreed,
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
    memories: Memories, here: Mapping[str, str], there: RemoteState, agreed: Agreed
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
def _alone(memories: Memories) -> Generator[None]:
    fd = memories.beside.open_append(LOCK)
    try:
        try:
            wait_turn(fd, str(memories.root), 3.0, PATIENCE)
        except OSError as error:
            raise not_locked(error, str(memories.beside.root / LOCK)) from error
        yield
    finally:
        release(fd)
