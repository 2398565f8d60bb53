"""Anthropic's memory tool (`memory_20250818`) on a memory of ours: what Claude writes to
`/memories` is kept with its history, searched by recall and refused where it holds a secret.

    runner = client.beta.messages.tool_runner(
        model="claude-opus-5-5", max_tokens=4096, messages=messages,
        tools=[MemoryTool(reverie.Memory("."))],
    )

`AsyncMemoryTool` is the same for async clients; its commands run in worker threads. Both are thin:
what the commands do stands in `reverie.memory.files`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError
from anyio import to_thread

from reverie.memory.files import CommandRefused, MemoryFiles

if TYPE_CHECKING:
    from anthropic.types.beta import (
        BetaCacheControlEphemeralParam,
        BetaMemoryTool20250818CreateCommand,
        BetaMemoryTool20250818DeleteCommand,
        BetaMemoryTool20250818InsertCommand,
        BetaMemoryTool20250818RenameCommand,
        BetaMemoryTool20250818StrReplaceCommand,
        BetaMemoryTool20250818ViewCommand,
    )

    from reverie.memory.memory import Memory

__all__ = ["AsyncMemoryTool", "MemoryTool"]


def _run_command(command: Callable[..., str], *given: Any) -> str:
    try:
        return command(*given)
    except CommandRefused as error:
        raise ToolError(error.what) from None


class MemoryTool(BetaAbstractMemoryTool):
    """The tool for `anthropic.Anthropic`."""

    def __init__(
        self, memory: Memory, *, cache_control: BetaCacheControlEphemeralParam | None = None
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._files = MemoryFiles(memory)

    def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        return _run_command(self._files.view, command.path, command.view_range)

    def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        return _run_command(self._files.create, command.path, command.file_text)

    def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        return _run_command(self._files.str_replace, command.path, command.old_str, command.new_str)

    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        return _run_command(
            self._files.insert, command.path, command.insert_line, command.insert_text
        )

    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        return _run_command(self._files.delete, command.path)

    def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        return _run_command(self._files.rename, command.old_path, command.new_path)

    def clear_all_memory(self) -> str:
        """Take all memories out; their versions stay."""
        return _run_command(self._files.clear)


class AsyncMemoryTool(BetaAsyncAbstractMemoryTool):
    """The tool for `anthropic.AsyncAnthropic`."""

    def __init__(
        self, memory: Memory, *, cache_control: BetaCacheControlEphemeralParam | None = None
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._tool = MemoryTool(memory)

    async def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        return await to_thread.run_sync(self._tool.view, command)

    async def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        return await to_thread.run_sync(self._tool.create, command)

    async def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        return await to_thread.run_sync(self._tool.str_replace, command)

    async def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        return await to_thread.run_sync(self._tool.insert, command)

    async def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        return await to_thread.run_sync(self._tool.delete, command)

    async def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        return await to_thread.run_sync(self._tool.rename, command)

    async def clear_all_memory(self) -> str:
        """Take all memories out; their versions stay."""
        return await to_thread.run_sync(self._tool.clear_all_memory)
