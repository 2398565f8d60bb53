"""When the memories of a folder were written: files, and lines where that makes a difference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from reverie.errors import NotFound, StoreError
from reverie.memory.format.entry import shown
from reverie.memory.times import file_time, line_times, shared
from reverie.memory.versions import Version
from reverie.store.memories import Memories
from reverie.text.dates import relative

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
