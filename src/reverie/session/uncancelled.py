"""Work that is carried to its end, whatever becomes of whoever waits for it.

A cancellation, by a scope or by the event loop itself (`task.cancel()`, `asyncio.wait_for`), is
kept until the work is done and raised then. So what a thread writes and what follows from it in
memory are one step: both have happened, or neither. Nothing here is retried.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from anyio import CancelScope, to_thread

if TYPE_CHECKING:
    import asyncio  # whoever runs an event loop has it; loading this module alone does not

T = TypeVar("T")


def _nothing(result: object) -> None:
    del result


async def in_thread(work: Callable[[], T], then: Callable[[T], None] = _nothing) -> T:
    """What `work` gives, run beside the event loop. `then` is told of it in the loop, before a
    cancellation that came meanwhile is raised."""
    loop = _asyncio_loop()
    if loop is None:  # pragma: no cover - trio is not among what the tests install
        result = await to_thread.run_sync(work)
        then(result)
        return result
    return await _outlasted(loop.run_in_executor(None, work), then)


async def to_the_end(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """What `work` gives, run as a task of its own."""
    loop = _asyncio_loop()
    if loop is not None:
        return await _outlasted(loop.create_task(work()), _nothing)
    given: list[T] = []  # pragma: no cover - as above
    with CancelScope(shield=True):  # pragma: no cover
        given.append(await work())
    return given[0]  # pragma: no cover


def _asyncio_loop() -> asyncio.AbstractEventLoop | None:
    import asyncio

    try:
        return asyncio.get_running_loop()
    except RuntimeError:  # pragma: no cover - as above
        return None


async def _outlasted(under_way: asyncio.Future[T], then: Callable[[T], None]) -> T:
    import asyncio

    cancelled: asyncio.CancelledError | None = None
    with CancelScope(shield=True):
        while not under_way.done():
            try:
                await asyncio.wait([under_way])
            except asyncio.CancelledError as error:
                cancelled = error
    try:
        result = under_way.result()
        then(result)
    except Exception as error:
        if cancelled is not None:
            raise cancelled from error
        raise
    if cancelled is not None:
        raise cancelled
    return result
