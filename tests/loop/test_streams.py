"""What a turn does with the stream of an answer: left early, refused, or too long at first."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from reverie.errors import PromptTooLong, Refused
from reverie.session import TurnEvent, TurnState, run_turn
from reverie.simulator import SimulatedAnswer, SimulatedModel
from reverie.transcript import blocks_of
from reverie.wire import Request
from reverie.world import Event
from tests.loop.stage import SimpleTools, opened, simulated
from tests.session.compacts import a_summary

pytestmark = pytest.mark.spec("13.loop")
NONE = SimpleTools()


class Plain:
    """The answer of a model as an iterator that nothing but its reader closes, or cannot be."""

    def __init__(self, events: AsyncIterator[Event]) -> None:
        self._events = events

    def __aiter__(self) -> Plain:
        return self

    async def __anext__(self) -> Event:
        return await anext(self._events)


class Closable(Plain):
    closed = 0

    async def aclose(self) -> None:
        self.closed += 1


class Handing:
    """A model whose streams are of this kind."""

    def __init__(self, inner: SimulatedModel, kind: type[Plain]) -> None:
        self.name, self.capabilities = inner.name, inner.capabilities
        self._inner, self._kind = inner, kind
        self.streams: list[Plain] = []

    def stream(self, request: Request) -> AsyncIterator[Event]:
        self.streams.append(self._kind(self._inner.stream(request)))
        return self.streams[-1]


def stumble(event: TurnEvent) -> None:
    raise ZeroDivisionError


async def test_a_stream_that_is_left_early_is_closed_at_once(tmp_path: Path) -> None:
    inner = simulated("done", "again")
    model = Handing(inner, Closable)
    async with opened(tmp_path, inner) as session:
        with pytest.raises(ZeroDivisionError):
            await run_turn(session, model, NONE, "go", on_event=stumble)
        (stream,) = model.streams
        assert isinstance(stream, Closable)
        assert stream.closed == 1


async def test_a_stream_that_cannot_be_closed_is_read_like_any_other(tmp_path: Path) -> None:
    inner = simulated("done")
    async with opened(tmp_path, inner) as session:
        assert (await run_turn(session, Handing(inner, Plain), NONE, "go")).text == "done"


async def test_one_answer_is_handed_over_and_a_refusal_is_raised(tmp_path: Path) -> None:
    refusal = SimulatedAnswer(blocks_of("I cannot."), "refusal")
    model = simulated("whole", refusal)
    async with opened(tmp_path, model) as session:
        await session.add("go")
        assert (await TurnState(session, model, NONE).ask()).text == "whole"
        await session.add("more")
        with pytest.raises(Refused):
            await TurnState(session, model, NONE).ask()


class TooLongOnce:
    """A provider that counts otherwise than we do: it refuses one request as too long."""

    def __init__(self, inner: SimulatedModel) -> None:
        self.name, self.capabilities = inner.name, inner.capabilities
        self._inner, self.refusals = inner, 1

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        if self.refusals:
            self.refusals -= 1
            raise PromptTooLong("too long", where=self.name)
        async for event in self._inner.stream(request):
            yield event


async def test_a_prompt_too_long_is_made_shorter_and_its_answer_is_the_turns(
    tmp_path: Path,
) -> None:
    inner = simulated("Hello.", a_summary(said="They told a story."), "answer.")
    async with opened(tmp_path, inner) as session:
        await run_turn(session, inner, NONE, "A long story. " * 20_000)
        result = await run_turn(session, TooLongOnce(inner), NONE, "And then?")
        assert (result.outcome, result.text) == ("completed", "answer.")
        assert session.view.boundary
