"""Waiting for work that needs an event loop, from code that has none, or is inside one."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

T = TypeVar("T")


def run(work: Callable[[], Awaitable[T]]) -> T:
    """Wait for work that needs an event loop, whether or not one runs here already."""
    done: list[T] = []
    failed: list[BaseException] = []

    def inside() -> None:
        try:
            done.append(anyio.run(work))
        except BaseException as error:  # noqa: BLE001 - it goes on in the caller's thread
            failed.append(error)

    thread = threading.Thread(target=inside, name="reverie-work")
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return done[0]
