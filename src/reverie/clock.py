"""Time, as a parameter: the system's clock as the Clock port sees it."""

from __future__ import annotations

import time

import anyio


class SystemClock:
    def now(self) -> float:
        return time.time()

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(seconds)
