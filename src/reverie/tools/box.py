"""The toolbox: runs the calls of a model, each to a result, whatever happens.

    async with Toolbox(registry, policy, context) as box:
        results = await box.run_all(reply.tool_calls)

A call that cannot be read, is unknown, is not permitted, fails or takes too long gets an
error result with a sentence saying so; only cancellation passes through. Neighbouring
read-only calls run together, a writing call alone, in the order they were made. Being
asked takes none of a call's time. Leaving the toolbox ends all background commands.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from types import TracebackType

import anyio

from reverie.alone import alone
from reverie.errors import InvalidMessage, ReverieError
from reverie.tools import schema
from reverie.tools.background import BackgroundShells
from reverie.tools.permissions import Judgement, PermissionPolicy
from reverie.tools.tool import Input, Output, Registry, Tool, ToolContext
from reverie.transcript.records import UserMessage
from reverie.wire.given import tool_result
from reverie.world import ToolCall

GRACE = 15.0
"""Seconds more than the limit for a tool that ends by itself: to hand in what it has."""


class Toolbox:
    """Tools, who may use them, and what they work on."""

    def __init__(self, registry: Registry, policy: PermissionPolicy, context: ToolContext) -> None:
        self.registry = registry
        self.policy = policy
        self.context = context
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Toolbox:
        group = await self._stack.enter_async_context(anyio.create_task_group())
        shells = BackgroundShells(group)
        self._stack.callback(shells.stop)
        self.context = replace(self.context, shells=shells)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        del kind, error, trace  # goes on as it is, in no group
        self.context = replace(self.context, shells=None)
        await self._stack.aclose()

    async def run(self, call: ToolCall) -> UserMessage:
        """One call, to its result."""
        output = await self._output(call)
        return tool_result(call.id, output.content, is_error=output.is_error)

    async def run_all(self, calls: Sequence[ToolCall]) -> list[UserMessage]:
        """All calls of a reply; results in the order of the calls."""
        results: dict[str, UserMessage] = {}

        async def one(call: ToolCall) -> None:
            results[call.id] = await self.run(call)

        for batch in self.registry.batches(calls):
            async with anyio.create_task_group() as group:
                for call in batch:
                    group.start_soon(one, call)
        return [results[call.id] for call in calls]

    async def _output(self, call: ToolCall) -> Output:
        try:
            tool, value = read_call(call, self.registry)
            judged = await self.policy.check(tool, value, self.context.files)
        except ReverieError as error:
            return Output(str(error), is_error=True)
        value, context = self._granted(tool, value, judged)
        return await bounded(tool, value, replace(context, call=call.id))

    def _granted(self, tool: Tool, value: Input, judged: Judgement) -> tuple[Input, ToolContext]:
        """The call on the real path that permission was given for, and on no other."""
        if judged.path is None:
            return value, self.context
        files = self.context.files.granted()
        return {**value, tool.path: str(judged.path)}, replace(self.context, files=files)


def read_call(call: ToolCall, registry: Registry) -> tuple[Tool, Input]:
    """The tool a call names and its checked input, or InvalidMessage."""
    tool = registry.get(call.name)
    if tool is None:
        names = ", ".join(registry.names)
        raise InvalidMessage(f"There is no tool named {call.name[:80]!r}", do=f"There are: {names}")
    try:
        value = schema.read(call.input)
    except InvalidMessage as error:
        raise InvalidMessage(f"The call to {tool.name} cannot be read: {error}") from error
    wrong = schema.problems(value, tool.schema)
    if wrong:
        raise InvalidMessage(f"The input of {tool.name} is wrong: {'; '.join(wrong[:8])}")
    return tool, value


async def bounded(tool: Tool, value: Input, context: ToolContext) -> Output:
    """A tool's answer within its time, or a sentence saying what went wrong."""
    seconds = context.settings.tool_seconds
    none = Output("")
    with anyio.move_on_after(seconds + GRACE if tool.times_itself else seconds):
        output, error = await alone(tool.run(value, context), none)
        if error:
            return Output(f"{tool.name} failed: {error}", is_error=True)
        return output
    return Output(f"{tool.name} took longer than {seconds:g} s and was ended", is_error=True)
