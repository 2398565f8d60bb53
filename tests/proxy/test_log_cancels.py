"""A client's request that is cancelled at any point where the proxy waits: what was sent before
goes out unchanged when the client asks again, and after the proxy was started anew."""

from __future__ import annotations

from pathlib import Path
from random import Random

import anyio
import pytest

from tests.cancels import Hit, cancelled_at
from tests.conftest import Scale
from tests.faults import quick_folder
from tests.proxy.clients import BIG, Client, assistant, engine, extends

pytestmark = [pytest.mark.spec("1.courses")]


async def course(home: Path, at: int, hops: int) -> Hit:
    """Two rounds, a third that is cancelled and asked again, and all again by another proxy."""
    made = engine(home)
    client = Client(made).says("Read it, please")
    await client.asks()
    client.says("Now the long one")
    await client.round(BIG)
    first = client.sent[-1]
    client.messages.append(assistant("I have read it."))
    client.says("And the next, in other words")
    hit = await cancelled_at(client.asks, at, hops)
    if client.messages[-1]["role"] == "assistant":  # it came through before the cancel
        client.messages.pop()
    await client.asks()
    assert all(extends(one, first) for one in client.sent[-1:])
    opened = made.shadows._open  # pyright: ignore[reportPrivateUsage]
    assert {one.uses for one in opened.values()} <= {0}, "a shadow is held for ever"
    last = client.sent[-1]
    await made.aclose()
    again = Client(engine(home))
    again.messages, again.calls = client.messages[:-1], client.calls
    await again.asks()
    assert extends(again.sent[-1], last), "another proxy sends it differently"
    assert extends(last, again.sent[-1]), "another proxy sends less"
    await again.engine.aclose()
    return hit


def test_a_request_that_is_cancelled_changes_nothing_that_was_sent(scale: Scale) -> None:
    chance = Random(f"proxy cancels:{scale.seed}")
    tried = 0
    for hops in sorted({0, *(int(chance.lognormvariate(3, 2)) for _ in range(scale.pick(0, 8)))}):
        for at in range(chance.randint(1, scale.pick(6, 1)), 500, scale.pick(25, 1)):
            with quick_folder() as home:
                if anyio.run(course, home, at, hops) != "in time":
                    break
            tried += 1
    assert tried
