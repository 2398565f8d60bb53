"""Run work apart, to its end, or on the other side of an event loop.

`alone` and `isolate_sync` are the one place where any failure is caught: a layer or a job fails
alone. `in_thread` and `to_the_end` carry work to its end, whatever becomes of whoever waits for it:
a cancellation, by a scope or by the event loop itself (`task.cancel()`, `asyncio.wait_for`), is
kept until the work is done and raised then. So what a thread writes and what follows from it in
memory are one step: both have happened, or neither. Nothing here is retried, and nothing but the
standard library is loaded before it is due.
"""

from __future__ import annotations

import importlib
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from reverie.errors import InvalidInput, ReverieError, StoreError

if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import Future

    from anyio.from_thread import BlockingPortal

T = TypeVar("T")


# --- one failure, alone


async def alone(work: Awaitable[T], otherwise: T) -> tuple[T, str]:
    """Return what the work gives, or `otherwise` and what went wrong in a sentence.
    Cancellation is no failure and passes."""
    try:
        return await work, ""
    except Exception as error:  # noqa: BLE001 - the one place that may
        return otherwise, _sentence(error)


def isolate_sync(work: Callable[[], T], otherwise: T) -> tuple[T, str]:
    """Return the same for work that nobody awaits: one of many, and the others go on."""
    try:
        return work(), ""
    except Exception as error:  # noqa: BLE001 - the one place that may
        return otherwise, _sentence(error)


def _sentence(error: Exception) -> str:
    return str(error) if isinstance(error, ReverieError) else f"{type(error).__name__}: {error}"


# --- work that is carried to its end


def _nothing(result: object) -> None:
    del result


async def in_thread(work: Callable[[], T], then: Callable[[T], None] = _nothing) -> T:
    """Return what `work` gives, run beside the event loop. `then` is told of it in the loop,
    before a cancellation that came meanwhile is raised."""
    loop = _asyncio_loop()
    if loop is None:  # pragma: no cover - trio is not among what the tests install
        from anyio import to_thread

        result = await to_thread.run_sync(work)
        then(result)
        return result
    return await _wait_uncancelled(loop.run_in_executor(None, work), then)


async def to_the_end(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Return what `work` gives, run as a task of its own."""
    loop = _asyncio_loop()
    if loop is not None:
        return await _wait_uncancelled(loop.create_task(work()), _nothing)
    from anyio import CancelScope  # pragma: no cover - as above

    given: list[T] = []  # pragma: no cover
    with CancelScope(shield=True):  # pragma: no cover
        given.append(await work())
    return given[0]  # pragma: no cover


def _asyncio_loop() -> asyncio.AbstractEventLoop | None:
    import asyncio

    try:
        return asyncio.get_running_loop()
    except RuntimeError:  # pragma: no cover - as above
        return None


async def _wait_uncancelled(under_way: asyncio.Future[T], then: Callable[[T], None]) -> T:
    import asyncio

    from anyio import CancelScope

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


# --- from code without an event loop


class BackgroundCall(Generic[T]):
    """Work that runs in the session's loop while this thread does something else.

    An interrupt in the waiting thread cancels the work, waits until it has ended well, and then
    goes on as an interrupt.
    """

    def __init__(self, portal: BlockingPortal, work: Callable[[], Awaitable[T]]) -> None:
        import threading

        self._over = threading.Event()
        self._future = portal.start_task_soon(self._watched, work)

    async def _watched(self, work: Callable[[], Awaitable[T]]) -> T:
        try:
            return await work()
        finally:
            self._over.set()

    def cancel(self) -> None:
        """Ask it to end; it may still have to tidy up."""
        self._future.cancel()

    def when_over(self, tell: Callable[[], None]) -> None:
        self._future.add_done_callback(lambda _: tell())

    def wait(self) -> None:
        """Wait until it has ended, in whatever way."""
        self._over.wait()

    def result(self) -> T:
        """Return what it gives, or raise what it raised. An interrupt cancels it first."""
        try:
            return self._future.result()
        except BaseException:
            self.cancel()
            self.wait()
            raise


class LoopThread:
    """An event loop in a thread of its own: what holds it up holds up nobody else."""

    def __init__(self, name: str, *, daemon: bool = False) -> None:
        import asyncio

        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self._run, name=name, daemon=daemon).start()

    def _run(self) -> None:
        import asyncio

        try:
            self.loop.run_forever()
            self.loop.run_until_complete(asyncio.sleep(0))  # what was handed in just now starts
            for task in (left := asyncio.all_tasks(self.loop)):
                task.cancel()
            self.loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        finally:
            self.loop.close()

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Run work there; what it gives is for any thread to wait for."""
        import asyncio

        try:
            return asyncio.run_coroutine_threadsafe(work, self.loop)
        except RuntimeError:  # the loop has ended
            work.close()
            raise

    async def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for work there from another event loop; cancelled, it is cancelled too."""
        import asyncio

        return await asyncio.wrap_future(self.start(work))

    def stop(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)


def run(work: Callable[[], Awaitable[T]]) -> T:
    """Wait for work that needs an event loop, whether or not one runs here already."""
    import threading

    import anyio

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


# --- the async face of what waits for a disk


class AsyncFacade:
    """An object whose methods are coroutines; what is no method is as it was.

    One proxy serves every class. Its types are a Protocol that is generated from the class
    (`python -m scripts.faces --write`); a test compares the two. A call that is cancelled is waited
    for, since what it began may be half on the disk.
    """

    __slots__ = ("_owner",)

    def __init__(self, owner: object) -> None:
        self._owner = owner

    def __getattr__(self, name: str) -> Any:
        import inspect

        if name.startswith("_") or name == "aio":
            raise AttributeError(f"{type(self._owner).__name__}.aio has no attribute {name!r}")
        found = getattr(self._owner, name)
        return _in_a_thread(found) if inspect.ismethod(found) else found

    def __dir__(self) -> list[str]:
        return [name for name in dir(self._owner) if not name.startswith("_") and name != "aio"]

    def __repr__(self) -> str:
        return f"{self._owner!r}.aio"

    async def __aenter__(self) -> AsyncFacade:
        return self

    async def __aexit__(self, *ended: object) -> None:
        await self.close()


def _in_a_thread(method: Callable[..., T]) -> Callable[..., Awaitable[T]]:
    from functools import partial, wraps

    @wraps(method)
    async def call(*given: object, **named: object) -> T:
        from anyio import to_thread

        return await to_thread.run_sync(partial(method, *given, **named))

    return call


# --- whether something that was opened may still be used


class OpenState:
    """Where something was opened, and whether it was closed since: same process, same loop."""

    __slots__ = ("_kind", "_loop", "_name", "_process", "closed")

    def __init__(self, kind: str, name: str) -> None:
        from anyio.lowlevel import current_token

        self._kind = kind
        self._name = name
        self._loop = current_token()
        self._process = os.getpid()
        self.closed = False

    @property
    def is_here(self) -> bool:
        """Whether this is the process that opened it."""
        return self._process == os.getpid()

    def check(self) -> None:
        """Raise where it cannot be used, in words for whoever tried."""
        if self.closed:
            raise StoreError(
                f"this {self._kind} was closed", where=self._name, do="Open it again with resume="
            )
        if not self.is_here:
            raise StoreError(
                f"this {self._kind} was opened in another process",
                where=self._name,
                do="Open one in this process, after the fork",
            )
        self.check_loop()

    def check_loop(self) -> None:
        """Raise in another event loop than the one that opened it."""
        from anyio.lowlevel import current_token

        if current_token() != self._loop:
            raise InvalidInput(
                f"this {self._kind} was opened in another event loop",
                where=self._name,
                do="Use it in the loop that opened it, or through reverie.blocking",
            )


# --- numpy, where it is installed, and one thread for what is reckoned with it.
#
# The products of recall are small: of several threads all but one mostly wait, and their waiting
# costs several times the work. The caller's own arithmetic keeps as many threads as it had.


_ALONE = threading.Lock()


def numpy() -> Any:
    """numpy, or None: it comes with local models and is never needed."""
    return _import_optional("numpy")


@contextmanager
def one_thread() -> Generator[None]:
    """One thread for the products within.

    One piece of work at a time: two that overlap would each restore what the other had set.
    """
    libraries = _libraries()
    if libraries is None:
        yield
        return
    with _ALONE, libraries.limit(limits=1, user_api="blas"):
        yield


@lru_cache(maxsize=1)
def _libraries() -> Any:
    """The libraries of arithmetic in this process, whose threads can be counted."""
    _import_optional("numpy")  # only what is loaded by now is counted
    counted = _import_optional("threadpoolctl")
    return counted and counted.ThreadpoolController()


def _import_optional(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None
