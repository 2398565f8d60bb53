"""Pushing by itself: as long as a session lives, what changes below `team/` is shared.

A push comes when nothing was written for two seconds, however many events there were; it compares
the whole folder, so that an event that was lost costs nothing, and what a pull of ours wrote is
seen to be there already. A server that is away is tried again, less and less often. What stays
wrong until somebody changes something is said once and not tried again until a file changes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from reverie.errors import ReverieError
from reverie.providers.extras import extra
from reverie.team.client import Offline
from reverie.world import Notice, Say

if TYPE_CHECKING:
    from reverie.team.round import SyncReport

QUIET_SECONDS = 2.0
LONGEST_SECONDS = 60.0
"""A folder that never comes to rest is pushed this often."""
FIRST_WAIT = 15.0
LONGEST_WAIT = 600.0

Push = Callable[[], Awaitable["SyncReport"]]
Sleep = Callable[[float], Awaitable[None]]


async def changes(folder: Path, stop: anyio.Event) -> AsyncIterator[None]:
    """One item each time that a folder has come to rest after being written to."""
    with extra("team", "memories cannot be shared as you work"):
        from watchfiles import awatch  # pyright: ignore[reportUnknownVariableType]
    step = int(QUIET_SECONDS * 1000)
    longest = int(LONGEST_SECONDS * 1000)
    async for _ in awatch(
        folder,
        step=step,
        debounce=longest,
        stop_event=stop,
        watch_filter=_is_ours,
        ignore_permission_denied=True,
        recursive=True,
    ):
        yield


async def keep_pushing(
    events: AsyncIterator[None],
    push: Push,
    say: Say,
    *,
    told: set[str] | None = None,
    sleep: Sleep = anyio.sleep,
) -> None:
    """Push once for each event; after a failure that may pass, also without one. `told` are the
    files of which it was said that they are not shared: it is said once."""
    known: set[str] = set() if told is None else told
    async for _ in events:
        wait = FIRST_WAIT
        while True:
            try:
                report = await push()
            except Offline as error:
                if wait == FIRST_WAIT:
                    say(Notice("team", f"shared memory waits: {error}", "warning"))
                await sleep(max(wait, error.after))
                wait = min(wait * 2, LONGEST_WAIT)
                continue
            except ReverieError as error:
                say(Notice("team", f"shared memory is not synced: {error}", "warning"))
                break
            _tell(report, say)
            tell_blocked(report, say, known)
            break


def _tell(report: SyncReport, say: Say) -> None:
    done = [
        f"{len(keys)} {name}"
        for name, keys in (("pulled", report.pulled), ("pushed", report.pushed))
        if keys
    ]
    if report.conflicts:
        done.append(f"{len(report.conflicts)} changed on both sides: {report.conflicts[0]}")
    if done:
        say(Notice("team", f"shared memory: {', '.join(done)}", "info"))


def tell_blocked(report: SyncReport, say: Say, told: set[str]) -> None:
    """Say of which files why they are not shared, unless that was told."""
    for key, why in sorted(report.blocked.items()):
        if key not in told and not key.startswith("."):  # a disk's own files; a status has them
            told.add(key)
            say(Notice("team", f"{key} is not shared, since {why}", "warning"))


def _is_ours(change: object, path: str) -> bool:
    """Not our own temporary files and locks."""
    del change
    return not Path(path).name.startswith(".")
