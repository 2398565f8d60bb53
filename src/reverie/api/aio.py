"""The async face of what waits for a disk: the same methods, each through a worker thread.

One proxy serves every class. Its types are a Protocol that is generated from the class
(`python -m scripts.faces --write`); a test compares the two. A call that is cancelled is waited
for, since what it began may be half on the disk.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from functools import partial, wraps
from typing import Any, TypeVar

T = TypeVar("T")


class Aio:
    """An object whose methods are coroutines; what is no method is as it was."""

    __slots__ = ("_owner",)

    def __init__(self, owner: object) -> None:
        self._owner = owner

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "aio":
            raise AttributeError(f"{type(self._owner).__name__}.aio has no attribute {name!r}")
        found = getattr(self._owner, name)
        return _in_a_thread(found) if inspect.ismethod(found) else found

    def __dir__(self) -> list[str]:
        return [name for name in dir(self._owner) if not name.startswith("_") and name != "aio"]

    def __repr__(self) -> str:
        return f"{self._owner!r}.aio"

    async def __aenter__(self) -> Aio:
        return self

    async def __aexit__(self, *ended: object) -> None:
        await self.close()


def _in_a_thread(method: Callable[..., T]) -> Callable[..., Awaitable[T]]:
    @wraps(method)
    async def call(*given: object, **named: object) -> T:
        from anyio import to_thread

        return await to_thread.run_sync(partial(method, *given, **named))

    return call
