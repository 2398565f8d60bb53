"""Why an answer ended is read, over the wire in three formats, in the main loop and in a fork."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from reverie.errors import Incomplete, PromptTooLong, ProviderError, Refused
from reverie.session import CALL_CUT_OFF, CUT_OFF, EMPTY, PAUSES, Session, TurnResult, run_turn
from reverie.simulator import Engine, SimulatedAnswer, call, script, serving
from reverie.transcript import AssistantMessage, Object, Task, TurnEnded, blocks_of, text_of
from reverie.world import ForkSpec, Notice
from tests.loop.stage import SimpleTools, echo, opened
from tests.providers.sessions import built
from tests.session.compacts import a_summary

pytestmark = pytest.mark.spec("13.stops")
WIRES = [
    ("anthropic", "claude-opus-5-5"),
    ("openai-chat", "gpt-5"),
    ("openai-responses", "gpt-5"),
]
Staging = Callable[..., AbstractAsyncContextManager["Stage"]]
SPEC = ForkSpec("summary", "Sum up.", Task("summary"), rounds=6)


def stopped(text: str, reason: str) -> SimulatedAnswer:
    return SimulatedAnswer(blocks_of(text) if text else (), reason)


def cut_call() -> SimulatedAnswer:
    blocks = (*blocks_of("Writing."), call("Write", {"text": "a" * 50}, "toolu_cut_0000000001"))
    return SimulatedAnswer(blocks, "max_tokens")


@dataclass
class Stage:
    """An open session over a real socket, what was sent, and what people were told."""

    session: Session
    made: Any
    bodies: list[Object] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)

    async def turn(self, said: str = "Do it.") -> TurnResult:
        return await run_turn(self.session, self.made, SimpleTools(echo=echo), said)

    def said(self, at: int) -> list[str]:
        """The texts of a request's messages, the oldest first."""
        return [text_of(m.get("content")) for m in self.bodies[at]["messages"]]  # type: ignore[union-attr,misc]

    @property
    def ended(self) -> list[str]:
        records = [e.record for e in self.session.view.entries]
        return [r.outcome for r in records if isinstance(r, TurnEnded)]


@asynccontextmanager
async def staged(
    tmp: Path, wire: tuple[str, str], *answers: Any, otherwise: Any = "(no more)", folder: str = ""
) -> AsyncIterator[Stage]:
    bodies: list[Object] = []
    plays = script(*answers, otherwise=otherwise)

    def answer(body: Object) -> Any:
        bodies.append(body)
        return plays(body)

    notices: list[Notice] = []
    with serving(Engine(answer)) as url:
        async with (
            aclosing(built(wire[0], url, wire[1])) as made,
            opened(tmp / folder, made, notices) as session,
        ):
            yield Stage(session, made, bodies, notices)


@pytest.fixture(params=WIRES, ids=[wire for wire, _ in WIRES])
def over(request: pytest.FixtureRequest, tmp_path: Path) -> Staging:
    """A stage over each of the three formats."""
    return partial(staged, tmp_path, request.param)


@pytest.fixture
def one(tmp_path: Path) -> Staging:
    """A stage over the one format that has what is asked for."""
    return partial(staged, tmp_path, WIRES[0])


async def test_an_answer_that_was_cut_off_goes_on_and_is_one_answer(over: Staging) -> None:
    answers = (stopped("One, two, ", "max_tokens"), stopped("three, ", "max_tokens"), "four.")
    async with over(*answers) as stage:
        result = await stage.turn()
        assert (result.outcome, result.text) == ("completed", "One, two, three, four.")
        assert stage.said(1)[-2:] == ["One, two, ", CUT_OFF]
        assert len(stage.bodies) == 3


async def test_what_stays_cut_off_is_told_as_such(over: Staging) -> None:
    cut = stopped("More. ", "max_tokens")
    async with over(otherwise=cut) as stage:
        result = await stage.turn()
        assert (result.outcome, result.stop_reason) == ("truncated", "max_tokens")
        assert "cut off" in result.reason
        assert len(stage.bodies) == 3
        assert stage.ended == ["truncated"]


async def test_a_call_that_was_cut_off_is_asked_for_in_smaller_pieces(over: Staging) -> None:
    async with over(cut_call(), "Done.") as stage:
        result = await stage.turn()
        assert result.outcome == "completed"
        assert stage.said(1)[-1] == CALL_CUT_OFF.format(name="Write")
        assert "A call of Write was cut off" in stage.said(1)[-2]


async def test_a_refusal_is_told_and_its_calls_are_not_made(over: Staging) -> None:
    refused = SimulatedAnswer(
        (*blocks_of("I cannot."), call("echo", {"text": "x"}, "toolu_00000000000000001")), "refusal"
    )
    async with over(refused) as stage:
        result = await stage.turn()
        assert (result.outcome, result.stop_reason) == ("refused", "refusal")
        assert len(stage.bodies) == 1
        assert stage.ended == ["refused"]
        assert not stage.session.view.open_calls


async def test_an_empty_answer_is_asked_for_once_more(over: Staging) -> None:
    async with over(stopped("", "end_turn"), "Here.") as stage:
        result = await stage.turn()
        assert (result.outcome, result.text) == ("completed", "Here.")
        assert stage.said(1)[-1].endswith(EMPTY)
    async with over(otherwise=stopped("", "end_turn"), folder="again") as stage:
        result = await stage.turn()
        assert (result.outcome, len(stage.bodies)) == ("empty", 2)
        assert stage.ended == ["empty"]


async def test_an_unknown_stop_reason_is_said_and_ends_the_turn(over: Staging) -> None:
    async with over(stopped("So.", "solar_flare")) as stage:
        result = await stage.turn()
        assert (result.outcome, result.text, result.stop_reason) == (
            "completed",
            "So.",
            "solar_flare",
        )
        assert any("solar_flare" in n.text for n in stage.notices)
        records = [e.record for e in stage.session.view.entries]
        kept = [r.stop_reason for r in records if isinstance(r, AssistantMessage)]
        assert kept == ["solar_flare"]


async def test_a_pause_is_sent_again_as_it_is(one: Staging) -> None:
    answers = (stopped("Searching. ", "pause_turn"), "Found.")
    async with one(*answers) as stage:
        result = await stage.turn()
        assert (result.outcome, result.text) == ("completed", "Searching. Found.")
        before, after = (b["messages"] for b in stage.bodies)
        assert isinstance(before, list)
        assert isinstance(after, list)
        assert after[:-1] == before
        assert isinstance(after[-1], dict)
        assert after[-1]["role"] == "assistant"


async def test_a_provider_that_pauses_for_ever_is_left(one: Staging) -> None:
    paused = stopped("Still. ", "pause_turn")
    async with one(otherwise=paused) as stage:
        result = await stage.turn()
        assert (result.outcome, len(stage.bodies)) == ("truncated", PAUSES + 1)


async def test_a_full_window_takes_the_path_of_a_prompt_that_is_too_long(one: Staging) -> None:
    full = stopped("Half an ", "model_context_window_exceeded")
    answers = ("Hello.", full, a_summary(said="They asked for it."), "answer.")
    async with one(*answers) as stage:
        await stage.turn("A long story. " * 20_000)
        result = await stage.turn()
        assert (result.outcome, result.text) == ("completed", "Half an answer.")
        assert stage.session.view.boundary
        assert stage.said(-1)[-1].endswith(CUT_OFF)


async def test_a_window_too_small_for_any_answer_is_said(one: Staging) -> None:
    full = stopped("Half an ", "model_context_window_exceeded")
    async with one(otherwise=full) as stage:
        with pytest.raises(PromptTooLong, match="no longer fits"):
            await stage.turn()  # so short a conversation cannot be made shorter


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (stopped("More. ", "max_tokens"), Incomplete),
        (stopped("", "end_turn"), Incomplete),
        (stopped("I cannot.", "refusal"), Refused),
    ],
)
async def test_a_fork_that_got_no_whole_answer_fails(
    over: Staging, answer: SimulatedAnswer, error: type[ProviderError]
) -> None:
    async with over("Hello.", otherwise=answer) as stage:
        await stage.turn()
        with pytest.raises(error):
            await stage.session.run_fork(SPEC)


async def test_a_fork_goes_on_where_it_was_cut_off(over: Staging) -> None:
    answers = ("Hello.", stopped("One, ", "max_tokens"), stopped("", "end_turn"), "two.")
    async with over(*answers) as stage:
        await stage.turn()
        result = await stage.session.run_fork(SPEC)
        assert result.text == "One, two."
        assert stage.said(2)[-1] == CUT_OFF
        assert stage.said(3)[-1].endswith(EMPTY)


async def test_a_fork_is_sent_again_after_a_pause_and_not_for_ever(one: Staging) -> None:
    answers = ("Hello.", stopped("Searching. ", "pause_turn"), "Found.")
    paused = stopped("Still. ", "pause_turn")
    async with one(*answers, otherwise=paused) as stage:
        await stage.turn()
        assert (await stage.session.run_fork(SPEC)).text == "Searching. Found."
        asked, again = (body["messages"] for body in stage.bodies[1:3])
        assert isinstance(asked, list)
        assert isinstance(again, list)
        assert again[:-1] == asked
        with pytest.raises(Incomplete):
            await stage.session.run_fork(SPEC)
        assert len(stage.bodies) <= 3 + PAUSES + 1


async def test_an_unknown_stop_reason_ends_a_fork_and_is_said(over: Staging) -> None:
    async with over("Hello.", stopped("So.", "solar_flare")) as stage:
        await stage.turn()
        assert (await stage.session.run_fork(SPEC)).text == "So."
        assert any("solar_flare" in notice.text for notice in stage.notices)


async def test_a_full_window_in_a_fork_is_no_answer(one: Staging) -> None:
    full = stopped("Half an ", "model_context_window_exceeded")
    async with one("Hello.", otherwise=full) as stage:
        await stage.turn()
        with pytest.raises(ProviderError):
            await stage.session.run_fork(SPEC)
