"""How much work one step of an event loop does, by the CPU time of its thread: other processes
and other threads do not count, so that a busy machine changes nothing."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

MOST = 0.050
"""Seconds of CPU that a request may take of an event loop at a time."""

ALONE = ("reverie-mirror", "simulator")
"""Threads whose loops serve one conversation, or stand in for a provider elsewhere."""


@contextmanager
def watched_steps() -> Generator[list[tuple[float, str]]]:
    """The steps of every event loop that took longer than `MOST`, with what they ran."""
    slow: list[tuple[float, str]] = []
    run = asyncio.Handle._run

    def timed(handle: Any) -> None:
        begun = time.thread_time()
        run(handle)
        took = time.thread_time() - begun
        name = threading.current_thread().name
        if took > MOST and name not in ALONE:
            slow.append((round(took, 3), f"{name}: {handle!r}"[:300]))

    asyncio.Handle._run = timed  # type: ignore[method-assign]
    try:
        yield slow
    finally:
        asyncio.Handle._run = run  # type: ignore[method-assign]
