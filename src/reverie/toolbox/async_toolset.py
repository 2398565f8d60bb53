"""The types of `Toolset.aio`, made from `Toolset` by `python -m scripts.faces --write`.

Every method is the one of the same name, as a coroutine; nothing here runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from reverie.toolbox.toolset import Toolset


class AsyncToolset(Protocol):
    """`Toolset` for tasks."""

    async def anthropic(self) -> list[Any]:
        """For `tools=` of the Messages API."""
        ...

    async def openai(self) -> list[Any]:
        """For `tools=` of chat completions."""
        ...

    async def responses(self) -> list[Any]:
        """For `tools=` of responses."""
        ...

    @property
    def names(self) -> tuple[str, ...]:
        """What the tools are called, in the order they are offered."""
        ...

    async def handle(self, call: object) -> Any:
        """The result of a call in the form it came in: a tool message (chat completions), a
        `tool_result` block (Messages), an output item (responses), or for a `ToolCall` of
        ours what `session.add` takes. None where the call is not for a tool of this set."""
        ...

    async def renamed(self, names: Mapping[str, str]) -> Toolset:
        """The same tools under other names; `names` says which."""
        ...
