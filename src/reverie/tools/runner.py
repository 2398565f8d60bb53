"""Who runs the tool calls of a background agent; where nobody was named, every call is denied."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

from reverie.tools.tool import Registry
from reverie.transcript.records import UserMessage
from reverie.wire.reply import ToolCall, tool_result
from reverie.world import ForkSpec

DENIED = "This tool is not available to you here. Go on without it."


class ToolRunner(Protocol):
    """Runs the tool calls of one background agent, inside its guard."""

    @property
    def registry(self) -> Registry:
        """Which calls may run side by side."""
        ...

    @property
    def written(self) -> tuple[str, ...]:
        """Files it wrote."""
        ...

    async def run(self, call: ToolCall) -> UserMessage: ...

    def close(self) -> None: ...


MakeGuard: TypeAlias = "Callable[[ForkSpec], ToolRunner]"
"""Makes the guard of a fork from what its spec allows."""


class NoTools:
    """Every call is denied, at call time: the tool definitions stay as they are."""

    registry = Registry()
    written = ()

    def __init__(self, spec: ForkSpec | None = None) -> None:
        self.spec = spec

    async def run(self, call: ToolCall) -> UserMessage:
        return tool_result(call.id, DENIED, is_error=True)

    def close(self) -> None:
        """Nothing is open."""
