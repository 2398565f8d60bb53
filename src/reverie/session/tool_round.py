"""The tool calls of one answer: run, their results handed in, what a person said about them beside.

Calls that a rule of the user's holds are answered with the rule and do not run. Of the others,
those that may run together do, and each fails alone. What the user says when asked about a
call is no part of its result: it joins behind the results, as the user's own words. A model
that makes the same failing call in round after round is told so, and then the turn ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from reverie.concurrency import alone
from reverie.errors import InvalidMessage
from reverie.session.hooks import HookVerdict
from reverie.session.stops import FailedCall, cut_words
from reverie.session.turn import ToolEnded, ToolStarted
from reverie.transcript.blocks import Json, parse
from reverie.transcript.records import UserMessage
from reverie.wire.reply import ToolCall, tool_result, user

if TYPE_CHECKING:
    from reverie.session.loop import TurnUnderWay

MAX_TOLD = 50_000  # characters of an answer that a hook is told


async def run_calls(turn: TurnUnderWay) -> None:
    """All calls of a reply; each fails alone."""
    calls = turn.reply.tool_calls if turn.reply else ()
    held, beside = turn.rules.judge(calls) if turn.rules and calls else ({}, ())
    for call in calls:
        if call.id in held:
            _ended(turn, call, tool_result(call.id, held[call.id], is_error=True))
    for batch in turn.tools.registry.batches([c for c in calls if c.id not in held]):
        async with anyio.create_task_group() as group:
            for call in batch:
                group.start_soon(_one_tool, turn, call)
    if calls and turn.reply:
        await turn.talk.add_messages(*(turn.results[c.id] for c in calls))
        await turn.add_words()
        await turn.attach_verdicts()
        await turn.talk.append(*beside)
        turn.so_far = ""
        cut = cut_words(turn.reply.blocks) if turn.reply.stop_reason == "max_tokens" else ""
        if cut:
            await turn.tell(cut)


async def stop_repeating(turn: TurnUnderWay) -> None:
    """A model that makes the same failing call again and again is told so, then stopped."""
    calls = turn.reply.tool_calls if turn.reply else ()
    if not calls:
        return
    ended = [ToolEnded(c, turn.results[c.id]) for c in calls]
    failed = [FailedCall(e.call.name, e.call.raw, e.text) for e in ended if e.is_error]
    told = turn.failures.take(failed, len(calls))
    if turn.failures.hopeless:
        names = ", ".join(sorted({f.name[:80] for f in failed}))
        count = turn.failures.count
        turn.outcome, turn.reason = "limit", f"the same call failed {count} times in a row: {names}"
    elif told:
        await turn.tell(told)


async def _one_tool(turn: TurnUnderWay, call: ToolCall) -> None:
    given = _input_of(call)
    verdict = await turn.hooks.run("PreToolUse", tool_name=call.name, tool_input=given)
    if verdict.blocked:
        denied = f"A hook of the user's denied this call. {verdict.reason}".rstrip()
        result = tool_result(call.id, denied, is_error=True)
    else:
        turn.on_event(ToolStarted(call))
        result, fault = await alone(turn.tools.run(call), user("no result"))
        if fault:
            result = tool_result(call.id, f"The tool failed: {fault}", is_error=True)
    result, words = _apart(result)
    if words is not None:
        turn.words[call.id] = words
    ended = _ended(turn, call, result)
    turn.verdicts.append(verdict)
    if not verdict.blocked:
        answer = ended.text[:MAX_TOLD]
        after = await turn.hooks.run(
            "PostToolUse", tool_name=call.name, tool_input=given, tool_response=answer
        )
        turn.verdicts.append(_as_context(after))


def _ended(turn: TurnUnderWay, call: ToolCall, result: UserMessage) -> ToolEnded:
    ended = ToolEnded(call, result)
    turn.results[call.id] = ended.result
    turn.on_event(ended)
    return ended


def _apart(result: UserMessage) -> tuple[UserMessage, UserMessage | None]:
    """A call's result, and what the user said about the call."""
    results = tuple(b for b in result.blocks if b.type == "tool_result")
    words = tuple(b for b in result.blocks if b.type != "tool_result")
    return UserMessage(results, "tool"), UserMessage(words) if words else None


def _as_context(verdict: HookVerdict) -> HookVerdict:
    """A block after the fact is told to the model; the call has run."""
    if not verdict.blocked or not verdict.reason:
        return verdict
    return HookVerdict(context=(*verdict.context, verdict.reason))


def _input_of(call: ToolCall) -> Json:
    try:
        return parse(call.raw)
    except InvalidMessage:
        return call.raw
