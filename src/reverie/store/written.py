"""When the memories of a folder were written: files, and lines where that makes a difference."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from reverie.errors import NotFound, StoreError
from reverie.memory.format.entry import TopicFile, shown
from reverie.memory.times import file_time, line_times, shared
from reverie.memory.versions import Version
from reverie.store.history import History
from reverie.store.memories import Memories
from reverie.store.memory import MemoryFolder
from reverie.text.dates import relative

_HEAD_BYTES = 16_384
_ANY_DAY = 86_400.0 * 10_000


@dataclass(frozen=True, slots=True)
class WrittenTimes:
    """Times in seconds, 0 where nobody knows; `lines` only for files that tell a date by the day
    they were written on."""

    files: Mapping[str, float] = field(default_factory=dict[str, float])
    lines: Mapping[str, tuple[float, ...]] = field(default_factory=dict[str, tuple[float, ...]])


def written_times(memories: Memories, files: Mapping[str, bytes], now: float) -> WrittenTimes:
    """What the history, the heads and the files' own times tell of some files."""
    stamps: dict[str, float] = {}
    for key in files:
        try:
            stamps[key] = memories.folder.stat(key).modified / 1e9
        except (NotFound, StoreError):
            continue
    unsure = shared(stamps)
    steps: dict[str, list[Version]] = {}
    for version in memories.history.log():
        steps.setdefault(version.key, []).append(version)
    times: dict[str, float] = {}
    lines: dict[str, tuple[float, ...]] = {}
    for key, data in files.items():
        own, stamp = steps.get(key, []), stamps.get(key, 0.0)
        sure = key not in unsure and bool(stamp)
        times[key] = file_time(data, own, stamp, now, sure=sure)
        if own and relative(shown(data), _ANY_DAY):
            try:
                known = memories.history.content
                lines[key] = line_times(data, own, known, stamp, now, sure=sure)
            except (NotFound, StoreError):
                lines[key] = (0.0,) * (data.count(b"\n") + 1)
    return WrittenTimes(times, lines)


class FileTimes:
    """When single files were written, asked one by one; what they all need is looked at once.
    Without a history, what the heads and the files' own times tell. `alone` says whether a time is
    that of one file, for whoever knows that without a look at all of them."""

    def __init__(
        self,
        folder: MemoryFolder,
        now: float,
        history: History | None = None,
        alone: Callable[[float], bool] | None = None,
    ) -> None:
        self._folder = folder
        self._now = now
        self._history = history
        self._alone = alone
        self._unsure: frozenset[str] | None = None

    def at(self, key: str) -> float:
        """When a file was last written to; 0 where nobody knows."""
        try:
            return self.of(self._folder.read(key, _HEAD_BYTES))
        except (NotFound, StoreError):
            return 0.0

    def of(self, one: TopicFile) -> float:
        """The same for a file that was read, at least its head."""
        versions: list[Version] = []
        if self._history is not None:
            with suppress(NotFound, StoreError):
                versions = self._history.log(one.key)
        known = file_time(one.data, versions, 0.0, self._now, sure=False)
        if known:
            return known
        own = self._alone(one.modified) if self._alone else self._is_own(one.key)
        return file_time(one.data, versions, one.modified, self._now, sure=own)

    def _is_own(self, key: str) -> bool:
        """Whether a file's time is its own, and not that of a checkout or a copy of many."""
        if self._unsure is None:
            stamps: dict[str, float] = {}
            for one in self._folder.all_keys():
                with suppress(NotFound, StoreError):
                    stamps[one] = self._folder.stat(one).modified / 1e9
            self._unsure = shared(stamps)
        return key not in self._unsure
