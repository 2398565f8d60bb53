"""One turn: its order, its tools, its limits, and what joins on the way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from reverie.errors import InvalidMessage, PromptTooLong, ProviderError
from reverie.session import (
    BEGIN,
    ROUND,
    Inbox,
    ToolEnded,
    ToolStarted,
    TurnEvent,
    TurnLimits,
    TurnUsage,
    run_turn,
)
from reverie.simulator import InjectedFault, SimulatedModel
from reverie.testing import ManualClock
from reverie.transcript import AssistantMessage, TurnEnded, UserMessage
from reverie.wire import Delta, Reply
from reverie.world import Notice
from tests.loop.stage import NOON, Given, SimpleTools, calls, echo, opened, simulated

pytestmark = pytest.mark.spec("13.loop")
ECHO = SimpleTools(echo=echo)


def test_the_order_stands_in_one_place() -> None:
    assert [name for name, _ in (*BEGIN, *ROUND)] == [
        "submit",
        "message",
        "limits",
        "date",
        "prepare",
        "answer",
        "tools",
        "failures",
        "boundary",
        "end",
    ]


async def test_a_turn_goes_on_until_no_tool_is_called(tmp_path: Path) -> None:
    model = simulated(calls(("echo", {"text": "a"})), calls(("echo", {"text": "b"})), "done")
    seen: list[TurnEvent] = []
    async with opened(tmp_path, model) as session:
        result = await run_turn(session, model, ECHO, "go", on_event=seen.append)
        ended = [e.record for e in session.view.entries if isinstance(e.record, TurnEnded)]
    assert (result.outcome, result.text, result.rounds) == ("completed", "done", 3)
    assert ended == [TurnEnded("completed")]
    kinds = [type(e) for e in seen if not isinstance(e, Delta)]
    assert kinds == [Reply, ToolStarted, ToolEnded, Reply, ToolStarted, ToolEnded, Reply]
    assert result.usage.output > 0
    assert result.weighted == pytest.approx(model.bill.cost)


async def test_calls_of_a_round_run_side_by_side_and_answer_in_order(tmp_path: Path) -> None:
    """Each of three tools waits until all three have begun; the last ends first."""
    begun: list[str] = []
    all_begun = anyio.Event()
    turns = {name: anyio.Event() for name in "abc"}

    async def meet(given: Given) -> str:
        name = given["name"]
        begun.append(name)
        if len(begun) == 3:
            all_begun.set()
        await all_begun.wait()
        if name != "c":
            await turns[name].wait()
        if name != "a":
            turns["b" if name == "c" else "a"].set()
        return f"{name} is done"

    tools = SimpleTools(meet=meet)
    model = simulated(calls(*(("meet", {"name": n}) for n in "abc")), "done")
    seen: list[TurnEvent] = []
    async with opened(tmp_path, model) as session:
        with anyio.fail_after(20):
            await run_turn(session, model, tools, "go", on_event=seen.append)
        assert session.last_request is not None
        said: Any = json.loads(session.last_request.body())["messages"][-1]
    over = [e.text for e in seen if isinstance(e, ToolEnded)]
    assert over == ["c is done", "b is done", "a is done"]
    assert [c["content"] for c in said["content"]] == over[::-1]


async def test_a_tool_fails_alone(tmp_path: Path) -> None:
    async def broken(given: Given) -> str:
        raise RuntimeError("out of paper")

    tools = SimpleTools(echo=echo, broken=broken)
    model = simulated(calls(("broken", {}), ("echo", {"text": "x"})), "done")
    seen: list[TurnEvent] = []
    async with opened(tmp_path, model) as session:
        result = await run_turn(session, model, tools, "go", on_event=seen.append)
    assert result.outcome == "completed"
    told = {e.call.name: (e.is_error, e.text) for e in seen if isinstance(e, ToolEnded)}
    assert told["broken"] == (True, "The tool failed: RuntimeError: out of paper")
    assert told["echo"] == (False, "echo x")


async def test_what_is_said_meanwhile_joins_at_the_tool_boundary(tmp_path: Path) -> None:
    inbox = Inbox()

    async def interrupt(given: Given) -> str:
        inbox.put("and be quick")
        return "ok"

    model = simulated(calls(("interrupt", {})), "done")
    async with opened(tmp_path, model) as session:
        tools = SimpleTools(interrupt=interrupt)
        await run_turn(session, model, tools, "go", inbox=inbox)
        said = [e.record for e in session.view.entries if isinstance(e.record, UserMessage)]
    assert [m.origin for m in said] == ["user", "tool", "user"]
    assert '"text":"and be quick"' in model.engine.log[-1].body
    assert inbox.take() == ()


async def test_what_is_said_during_the_last_answer_is_left_for_the_next_turn(
    tmp_path: Path,
) -> None:
    inbox = Inbox()
    model = simulated("done")
    async with opened(tmp_path, model) as session:

        def watch(event: TurnEvent) -> None:
            if isinstance(event, Delta):
                inbox.put("one more thing")

        await run_turn(session, model, ECHO, "go", inbox=inbox, on_event=watch)
    assert inbox.take() == ("one more thing",)


async def test_a_turn_has_so_many_rounds_and_says_so(tmp_path: Path) -> None:
    model = SimulatedModel()
    model.engine.answerer = lambda _: calls(("echo", {"text": "again"}))
    async with opened(tmp_path, model) as session:
        result = await run_turn(session, model, ECHO, "go", limits=TurnLimits(rounds=4))
        last = session.view.entries[-1].record
        assert session.view.open_calls == ()
    assert (result.outcome, result.rounds) == ("limit", 4)
    assert "4 rounds" in result.reason
    assert last == TurnEnded("limit")
    assert len(model.engine.log) == 4


@pytest.mark.spec("B18.max-cost")
async def test_max_cost_stops_before_the_request_that_would_exceed_it(tmp_path: Path) -> None:
    """Whatever the cap, what is spent never passes it by more than one answer's output."""
    for most in (0.0, 100.0, 400.0, 900.0, 3_000.0):
        model = SimulatedModel()
        model.engine.answerer = lambda _: calls(("echo", {"text": "word " * 40}))
        async with opened(tmp_path / str(most), model) as session:
            spend = TurnUsage()
            limits = TurnLimits(rounds=50, cost=most)
            result = await run_turn(session, model, ECHO, "go", limits=limits, spend=spend)
        assert result.outcome == "limit"
        assert "price-weighted tokens" in result.reason
        assert spend.weighted == pytest.approx(model.bill.cost)
        largest = max((entry.output for entry in model.engine.log), default=0) * 5
        assert spend.weighted <= most + largest
        if most == 0.0:
            assert model.engine.log == []
        else:
            assert result.rounds == len(model.engine.log)


@pytest.mark.spec("B18.max-cost")
async def test_a_cap_counts_over_turns(tmp_path: Path) -> None:
    model = simulated("one", "two", "three")
    spend = TurnUsage()
    async with opened(tmp_path, model) as session:
        await run_turn(session, model, ECHO, "go", spend=spend)
        limits = TurnLimits(cost=spend.weighted + 1)
        result = await run_turn(session, model, ECHO, "more", spend=spend, limits=limits)
    assert result.outcome == "limit"
    assert len(model.engine.log) == 1


async def test_a_prompt_too_long_is_a_clear_error_and_the_session_goes_on(tmp_path: Path) -> None:
    model = SimulatedModel(name="small", window=300)
    model.engine.answerer = lambda _: "fine"
    async with opened(tmp_path, model) as session:
        with pytest.raises(PromptTooLong, match="no longer fits") as caught:
            await run_turn(session, model, ECHO, "word " * 2_000)
        assert caught.value.allowed == 300
        assert "/undo" in caught.value.do
        assert isinstance(session.view.entries[-1].record, TurnEnded)
        id_, before = session.id, len(session.view.entries)
        said = next(e for e in session.view.entries if isinstance(e.record, UserMessage))
    async with opened(tmp_path, model, resume=id_) as session:
        assert len(session.view.entries) == before
        await session.rewind(said.id)


async def test_a_provider_that_fails_leaves_no_partial_reply(tmp_path: Path) -> None:
    model = simulated(InjectedFault("cut"), "whole")
    async with opened(tmp_path, model) as session:
        with pytest.raises(ProviderError):
            await run_turn(session, model, ECHO, "go")
        assert not [e for e in session.view.entries if isinstance(e.record, AssistantMessage)]
        result = await run_turn(session, model, ECHO, "again")
    assert result.text == "whole"


async def test_an_empty_prompt_is_refused_and_nothing_is_recorded(tmp_path: Path) -> None:
    model = simulated("never")
    async with opened(tmp_path, model) as session:
        before = len(session.view.entries)
        for empty in ("", "   \n", []):
            with pytest.raises(InvalidMessage):
                await run_turn(session, model, ECHO, empty)
        assert len(session.view.entries) == before
    assert model.engine.log == []


async def test_a_private_session_runs_a_turn_and_leaves_nothing(tmp_path: Path) -> None:
    model = simulated(calls(("echo", {"text": "x" * 60_000})), "done")
    heard: list[Notice] = []
    async with opened(tmp_path, model, heard, private=True) as session:
        result = await run_turn(session, model, ECHO, "go")
    assert result.text == "done"
    assert not list((tmp_path / "home").rglob("*.jsonl"))
    assert "stays in the context" in heard[0].text


async def test_a_resumed_session_sends_the_same_bytes(tmp_path: Path) -> None:
    """Two turns in one go, and the same with a stop between them."""
    bodies: list[list[str]] = []
    for stop in (False, True):
        answers = (calls(("echo", {"text": "a" * 60_000})), "one", "two")
        model = simulated(*answers)
        clock = ManualClock(NOON)
        count = iter(range(1_000))
        ids = {"new_id": lambda count=count: f"id-{next(count)}", "clock": clock}
        async with opened(tmp_path / "same", model, **ids) as session:
            await run_turn(session, model, ECHO, "go")
            first = session.id
            if not stop:
                await run_turn(session, model, ECHO, "more")
        if stop:
            async with opened(tmp_path / "same", model, resume=first, **ids) as session:
                await run_turn(session, model, ECHO, "more")
        bodies.append([entry.body.replace(first, "SESSION") for entry in model.engine.log])
    assert len(bodies[0]) == 3
    assert bodies[0] == bodies[1]
