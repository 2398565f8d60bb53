"""Where reading a cached prefix costs nothing, nothing is edited until the window is full."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reverie.apps.replay import ReplayPolicy, play
from reverie.providers import KINDS
from reverie.settings import DEFAULTS, Settings
from reverie.world import Prices

from .courses import course, session

pytestmark = [pytest.mark.spec("B11.free"), pytest.mark.anyio]
LOCAL = KINDS["local"]


def policy(settings: Settings = DEFAULTS, prices: Prices = LOCAL) -> ReplayPolicy:
    return ReplayPolicy.of("collapse", settings, prices=prices)


async def test_a_long_session_with_pauses_is_sent_as_it_is() -> None:
    found = course(*session(30, size=16_000, gap=400))
    ours = await play(found, policy())
    assert (ours.count("announced"), ours.shown) == (0, ours.results)
    paid = await play(found, policy(prices=Prices()))
    assert paid.count("announced") > 0 < paid.results - paid.shown


async def test_the_price_that_the_settings_name_counts() -> None:
    found = course(*session(60, size=8_000, gap=400))
    free = replace(DEFAULTS, price_read=0.0)
    assert (await play(found, policy(free, Prices()))).count("announced") == 0


@pytest.mark.parametrize("window", [40_000, 64_000])
async def test_a_full_window_forces_it(window: int) -> None:
    found = course(*session(60, size=4_000))
    small = replace(DEFAULTS, context_window=window)
    ours = await play(found, policy(small))
    assert ours.count("announced") > 0
    assert ours.over(window) == 0
    eager = await play(found, policy(small, Prices()))
    assert ours.count("announced") < eager.count("announced")
    assert ours.far.lost == ours.near.lost == 0
