"""Calls run to results, inputs checked by schema.

The toolbox: runs the calls of a model, each to a result, whatever happens.

    async with Toolbox(registry, policy, context) as box:
        results = await box.run_all(reply.tool_calls)

A call that cannot be read, is unknown, is not permitted, fails or takes too long gets an
error result with a sentence saying so; only cancellation passes through. Neighbouring
read-only calls run together, a writing call alone, in the order they were made. Being
asked takes none of a call's time. Leaving the toolbox ends all background commands.

An input is checked against its tool's JSON schema (`json_schema`) before anybody is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from types import TracebackType

import anyio

from reverie.concurrency import alone
from reverie.errors import InvalidMessage, ReverieError
from reverie.toolbox.json_schema import problems
from reverie.toolbox.permissions import PermissionDecision, PermissionPolicy
from reverie.toolbox.shell import BackgroundShells
from reverie.toolbox.tool import (
    Denied,
    Input,
    ProposedEdit,
    Registry,
    Tool,
    ToolContext,
    ToolFailed,
    ToolOutput,
)
from reverie.transcript.blocks import parse, text_block
from reverie.transcript.records import UserMessage
from reverie.wire.reply import ToolCall, tool_result


def read(text: str) -> Input:
    """The input of a call from the text the model wrote."""
    value = parse(text.strip() or "{}", "the input")
    if not isinstance(value, dict):
        raise InvalidMessage("the input is not a JSON object")
    return dict(value)


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
        """One call, to its result; behind it what the user said when asked about it."""
        output = await self._output(call)
        result = tool_result(call.id, output.content, is_error=output.is_error)
        if not output.words:
            return result
        return replace(result, blocks=(*result.blocks, text_block(output.words)))

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

    async def _output(self, call: ToolCall) -> ToolOutput:
        try:
            tool, value = read_call(call, self.registry)
            foresee = partial(self._foreseen, tool, value)
            judged = await self.policy.check(tool, value, self.context.files, foresee)
        except Denied as error:
            return ToolOutput(str(error), is_error=True, words=error.words)
        except ReverieError as error:
            return ToolOutput(str(error), is_error=True)
        value, context = self._granted_call(tool, value, judged)
        output = await run_within_time(tool, value, replace(context, call=call.id))
        return replace(output, words=judged.words) if judged.words else output

    async def _foreseen(
        self, tool: Tool, value: Input, judged: PermissionDecision
    ) -> ProposedEdit | None:
        """What the call would make of its file, where that can be looked at unasked; ToolFailed
        where it would fail: nobody is asked for what cannot be done."""
        path = judged.path
        if tool.preview is None or path is None:
            return None
        if not self.policy.may_read(path) and self.context.reads.digest(path) is None:
            return None
        none: ProposedEdit | None = None
        change, error = await alone(tool.preview(*self._granted_call(tool, value, judged)), none)
        if error:
            raise ToolFailed(f"{tool.name} failed: {error}")
        return change

    def _granted_call(
        self, tool: Tool, value: Input, judged: PermissionDecision
    ) -> tuple[Input, ToolContext]:
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
        value = read(call.raw)
    except InvalidMessage as error:
        raise InvalidMessage(f"The call to {tool.name} cannot be read: {error}") from error
    wrong = tool.check(value) if tool.check is not None else problems(value, tool.schema)
    if wrong:
        raise InvalidMessage(f"The input of {tool.name} is wrong: {'; '.join(wrong[:8])}")
    return tool, value


async def run_within_time(tool: Tool, value: Input, context: ToolContext) -> ToolOutput:
    """A tool's answer within its time, or a sentence saying what went wrong."""
    seconds = context.settings.tool_seconds
    none = ToolOutput("")
    most = seconds + GRACE if tool.times_itself else seconds
    with anyio.move_on_after(float("inf") if tool.waits else most):
        output, error = await alone(tool.run(value, context), none)
        if error:
            return ToolOutput(f"{tool.name} failed: {error}", is_error=True)
        return output
    said = f"{tool.name} took longer than {most:g} s and is waited for no more"
    return ToolOutput(said, is_error=True)
