"""When the lines of a memory were written, as far as that is known.

The history knows it of what it saw being written. What it only found lying there, after an import,
a copy or an edit by another program, was written when the head says (`metadata.modified` or
`created`), else when the file says, else when git last saw it change. A time that several files
share is that of a checkout or a copy and tells nothing, unless it is in whole seconds and most
files have another: so a time looks that was kept or set. What was taken back is as old as it was.
What a dream moved is as old as where it stood before, and where that is not known, of no known
time.

No clock, no disk: versions, bytes and times are handed in. 0 is a time that nobody knows.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

from reverie.text.dates import absolute
from reverie.text.format import matching
from reverie.topics import frontmatter
from reverie.topics.merge import lines_of
from reverie.topics.versions import FOUND, MOVES, Version, save_time

TOGETHER = 2.0
"""Seconds within which several files were not written one by one."""
AHEAD = 86_400.0
"""Seconds that a time may lie ahead of the clock and still be believed."""
_HEAD = (
    *(("metadata", "modified"), ("modified",), ("updated",)),
    *(("metadata", "created"), ("created",), ("date",)),
)


def head_time(data: bytes, now: float) -> float:
    """The time that a file's head gives; 0 where it gives none, or one that is still to come."""
    front = frontmatter.parse_frontmatter(data)
    for names in _HEAD:
        found = _moment(front.get(*names))
        if 0 < found <= now + AHEAD:
            return found
    return 0.0


def _moment(text: str) -> float:
    text = text.strip()
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        day = next(iter(absolute(text)), None)
        return (
            datetime(day[2].year, day[2].month, day[2].day, 12, tzinfo=UTC).timestamp()
            if day
            else 0.0
        )
    if len(text) <= 10:
        moment = moment.replace(hour=12)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def files_sharing_time(stamps: Mapping[str, float]) -> frozenset[str]:
    """The files whose time another one shares: copied or checked out together."""
    order = sorted(stamps, key=lambda key: stamps[key])
    values = [stamps[key] for key in order]
    found: set[str] = set()
    for key, at in stamps.items():
        low = bisect_left(values, at - TOGETHER)
        high = bisect_left(values, at + TOGETHER)
        if high - low > 1:
            found.add(key)
    return frozenset(found)


def files_copied(stamps: Mapping[str, float]) -> frozenset[str]:
    """Return the files whose time is that of a checkout or a copy of many."""
    values = sorted(stamps.values())
    found: set[str] = set()
    for key in files_sharing_time(stamps):
        at = stamps[key]
        near = bisect_left(values, at + TOGETHER) - bisect_left(values, at - TOGETHER)
        if at % 1 or 2 * near >= len(values):
            found.add(key)
    return frozenset(found)


def file_time(
    data: bytes, versions: Sequence[Version], stamp: float, now: float, *, sure: bool
) -> float:
    """When a file was last written to; `sure` tells whether its own time can be believed."""
    known = save_time(versions)
    if known:
        return known
    head = head_time(data, now)
    if not versions or versions[-1].origin.kind in FOUND:
        return head or (stamp if sure and stamp <= now + AHEAD else 0.0)
    return head or (stamp if stamp <= versions[-1].at else 0.0)


def line_times(
    data: bytes,
    versions: Sequence[Version],
    content: Callable[[str], bytes],
    stamp: float,
    now: float,
    *,
    sure: bool,
) -> tuple[float, ...]:
    """When each line of a file was written."""
    rows = lines_of(data.decode("utf-8", "surrogateescape"))
    if not versions:
        return (file_time(data, versions, stamp, now, sure=sure),) * len(rows)
    old: list[str] = []
    times: list[float] = []
    seen: dict[str, float] = {}
    for number, version in enumerate(versions):
        held = content(version.after) if version.after else b""
        lines = lines_of(held.decode("utf-8", "surrogateescape"))
        later = versions[number + 1] if number + 1 < len(versions) else None
        own = stamp if later is None else later.was / 1e9
        wrote = _wrote(version, held, own, now, sure=sure or later is not None)
        made = [_line(line, version, seen, wrote) for line in lines]
        for a, b, size in matching(old, lines):
            made[b : b + size] = times[a : a + size]
        old, times = lines, made
        for line, at in zip(lines, made, strict=True):
            seen.setdefault(line, at)
    return tuple(times) if old == rows else (0.0,) * len(rows)


def _wrote(version: Version, held: bytes, own: float, now: float, *, sure: bool) -> float:
    """When what a step added was written."""
    if version.origin.kind not in FOUND:
        return version.at
    return head_time(held, now) or (own if sure and 0 < own <= now + AHEAD else 0.0)


def _line(line: str, version: Version, seen: Mapping[str, float], wrote: float) -> float:
    if version.undoes or version.origin.kind in MOVES:
        return seen.get(line, 0.0)
    return wrote
