"""The bridge for code without an event loop: the same session, call by call."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

import reverie
from reverie.errors import InvalidMessage
from reverie.session import RequestHead, Session, open_session, run_turn
from reverie.transcript import TurnEnded
from reverie.wire import Request
from reverie.world import Capabilities, Event
from tests.loop.stage import TOOL, SimpleTools, calls, echo, simulated

pytestmark = pytest.mark.spec("18.library")


class Turns(Session):
    """A session that takes whole turns, so that the bridge has one to wait for."""

    async def run_turn(self, model: Any, tools: Any, said: str) -> Any:
        return await run_turn(self, model, tools, said)


@asynccontextmanager
async def taking_turns(tmp: Path, model: Any, **options: Any) -> AsyncGenerator[Session]:
    home = tmp / "home"
    async with open_session(
        tmp, model=model, home=home, system="You help.", tools=[TOOL], **options
    ) as session:
        session.__class__ = Turns
        yield session


def opened(tmp: Path, model: Any, **options: Any) -> Any:
    opening: Any = taking_turns(tmp, model, **options)
    return reverie.blocking(opening)


def test_every_call_reaches_the_one_session(tmp_path: Path) -> None:
    model = simulated(calls(("echo", {"text": "a"})), "one", "two")
    before = threading.active_count()
    with opened(tmp_path, model) as s:
        result = s.run_turn(model, SimpleTools(echo=echo), "go")
        assert (result.text, result.rounds, s.view.turns) == ("one", 2, 1)
        back = s.view.leaf
        s.run_turn(model, SimpleTools(echo=echo), "more")
        s.rewind(back)
        s.append(RequestHead(model.name, "Another.").record("asked for"))
        s.add("again")
        request = s.prepare()
        s.observe({"content": [{"type": "text", "text": "three"}]})
        s.end_turn()
        first = s.id
        assert "more" not in request.body()
        assert "Another." in request.body()
    with opened(tmp_path, model, resume=first) as s:
        assert s.view.turns == 3
    assert threading.active_count() <= before + 1


def test_what_is_raised_comes_out_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(InvalidMessage), opened(tmp_path, simulated()) as s:
        s.prepare()
    with pytest.raises(ZeroDivisionError), opened(tmp_path, simulated()) as s:
        s.add(str(1 // 0))


def test_an_interrupt_cancels_the_work_and_the_session_stays_good(tmp_path: Path) -> None:
    inner = simulated("fine")

    class Interrupting:
        """A model that never answers: it interrupts the thread that waits for it."""

        name = inner.name
        capabilities = Capabilities()
        closed = False

        async def stream(self, request: Request) -> AsyncIterator[Event]:
            try:
                os.kill(os.getpid(), signal.SIGINT)
                await anyio.sleep_forever()
                async for event in inner.stream(request):
                    yield event
            finally:
                self.closed = True

    model = Interrupting()
    with opened(tmp_path, inner) as s:
        with pytest.raises(KeyboardInterrupt):
            s.run_turn(model, SimpleTools(), "go")
        assert model.closed
        assert s.view.entries[-1].record == TurnEnded("cancelled")
        assert s.run_turn(inner, SimpleTools(), "again").text == "fine"
