"""Sessions and agents for code without an event loop of its own.

    with reverie.blocking(reverie.Agent.open(".", model="embedded")) as agent:
        print(agent.run("read notes.txt").text)

One proxy serves every class: each coroutine is run in the one event loop of a thread beside this
one and waited for, an async generator is gone through step by step, and what is neither is as it
was. The types of the proxy are Protocols generated from the classes (`python -m scripts.faces`).
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, TypeVar, overload

if TYPE_CHECKING:
    from anyio.from_thread import BlockingPortal

    from reverie.agent.agent import Agent
    from reverie.agent.blocking_types import BlockingAgent, BlockingSession
    from reverie.session.report import Report
    from reverie.session.session import Session

T = TypeVar("T")


@overload
def blocking(
    opening: AbstractAsyncContextManager[Session],
) -> AbstractContextManager[BlockingSession]: ...


@overload
def blocking(
    opening: AbstractAsyncContextManager[Agent],
) -> AbstractContextManager[BlockingAgent]: ...


def blocking(opening: AbstractAsyncContextManager[Any]) -> AbstractContextManager[Any]:
    """What an `open(...)` gives, for a `with` statement."""
    return _open_bridge(opening)


@contextmanager
def _open_bridge(opening: AbstractAsyncContextManager[Any]) -> Generator[Any]:
    from anyio.from_thread import start_blocking_portal

    with (
        start_blocking_portal("asyncio") as portal,
        portal.wrap_async_context_manager(opening) as owner,
    ):
        yield BlockingFacade(owner, portal)


class BlockingFacade:
    """An object whose coroutines are waited for."""

    __slots__ = ("_owner", "_portal")

    def __init__(self, owner: object, portal: BlockingPortal) -> None:
        self._owner = owner
        self._portal = portal

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"{type(self._owner).__name__} has no attribute {name!r}")
        found = getattr(self._owner, name)
        if inspect.isasyncgenfunction(found):
            return _blocking_iterator(found, self._portal)
        if inspect.iscoroutinefunction(found):
            return _blocking_call(found, self._portal)
        return self._bridge_value(found)

    def _bridge_value(self, value: object) -> object:
        """What belongs to the same loop is bridged too."""
        if type(value).__module__ == type(self._owner).__module__:
            return value
        from reverie.session.session import Session

        return BlockingFacade(value, self._portal) if isinstance(value, Session) else value

    def __dir__(self) -> list[str]:
        return [name for name in dir(self._owner) if not name.startswith("_")]

    def __repr__(self) -> str:
        return f"blocking({self._owner!r})"

    def __report__(self, since: float) -> Report:
        """What `reverie.report` tells of it."""
        owner: Any = self._owner
        return owner.__report__(since)


def _blocking_call(method: Callable[..., Awaitable[T]], portal: BlockingPortal) -> Callable[..., T]:
    from reverie.concurrency import BackgroundCall

    @wraps(method)
    def call(*given: object, **named: object) -> T:
        return BackgroundCall(portal, partial(method, *given, **named)).result()

    return call


def _blocking_iterator(
    method: Callable[..., AsyncGenerator[T]], portal: BlockingPortal
) -> Callable[..., Generator[T]]:
    from reverie.concurrency import BackgroundCall

    @wraps(method)
    def call(*given: object, **named: object) -> Generator[T]:
        steps = method(*given, **named)
        try:
            while True:
                try:
                    yield BackgroundCall(portal, steps.__anext__).result()
                except StopAsyncIteration:
                    return
        finally:
            BackgroundCall(portal, steps.aclose).result()

    return call
