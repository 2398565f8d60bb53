"""The types of `Fitter.aio`, made from `Fitter` by `python -m scripts.faces --write`.

Every method is the one of the same name, as a coroutine; nothing here runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from reverie.context.renderer import Fitted
from reverie.memory.values import Saved
from reverie.toolbox.toolset import Toolset
from reverie.world import Model

T = TypeVar("T")


class AsyncFitter(Protocol):
    """`Fitter` for tasks."""

    async def fit(self, messages: Sequence[T]) -> Fitted[T]:
        """The list to send in place of this one."""
        ...

    async def learn(
        self,
        messages: Sequence[object],
        *,
        model: Model | None = None,
    ) -> list[Saved]:
        """What a turn's end does in a session: keep what is worth keeping, in this memory."""
        ...

    @property
    def tools(self) -> Toolset:
        """The tool that reads back what left the newest list."""
        ...

    async def handle(self, call: object) -> Any:
        """The result of a call that reads back, in the form it came in; else None."""
        ...

    async def close(self) -> None:
        """End it: from now on it fits no more. May be called again."""
        ...

    async def __aenter__(self) -> AsyncFitter: ...

    async def __aexit__(self, *ended: object) -> None: ...
