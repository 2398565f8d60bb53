"""Layer 2: old results are cleared when it is free, or by the provider itself."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest

from reverie.layers import CLEARED, by_cache_edit, by_time
from reverie.testing import FixedFlags, ManualClock, ScriptedModel, call
from reverie.transcript import (
    EMPTY,
    AssistantMessage,
    Attached,
    HeadSet,
    Mark,
    ResultDecided,
    Ttl,
    UserMessage,
    View,
    block_of,
    text_block,
)
from reverie.wire import render
from reverie.world import Capabilities, World
from tests.classic import DEFAULTS, world
from tests.layers.running import folded, result, sent
from tests.transcript.test_fold import pairs_up

pytestmark = pytest.mark.spec("4")
HOUR = 3_600


def going(results: int, tool: str = "Bash", *, thinking: bool = False) -> View:
    view = folded(UserMessage((text_block("go"),)))
    for n in range(results):
        blocks = [block_of({"type": "thinking", "thinking": "hm", "signature": str(n)})]
        answer = AssistantMessage((*(blocks if thinking else []), call(tool, f"t{n}")))
        told = UserMessage((result(f"t{n}", f"output {n}"),), "tool")
        view = folded(answer, told, view=sent(view))
    done, more = AssistantMessage((text_block("done"),)), UserMessage((text_block("and now?"),))
    return folded(done, more, view=sent(view))


def at(seconds: float, **parts: object) -> World:
    return world(clock=ManualClock(1_000.0 + seconds), **parts)


async def cleared(view: View, where: World) -> list[str]:
    return [r.call for r in await by_time(view, where) if isinstance(r, ResultDecided)]


@pytest.mark.parametrize(
    ("ttls", "marks", "minutes"),
    [(("5m",), 4, 5), (("1h", "5m"), 4, 60), (("5m",), 0, 60), ((), 4, 60)],
)
async def test_only_once_the_marks_really_sent_have_run_out(
    ttls: tuple[Ttl, ...], marks: int, minutes: int
):
    """A provider that takes no marks was sent none: then it is the longest time."""
    model = ScriptedModel([], capabilities=Capabilities(marks=marks))
    view = replace(going(8), marks=tuple(Mark("messages", 0, ttl) for ttl in ttls))
    assert not await cleared(view, at(minutes * 60, model=model))
    assert len(await cleared(view, at(minutes * 60 + 1, model=model))) == 3


async def test_the_longest_time_is_a_setting():
    model = ScriptedModel([], capabilities=Capabilities(marks=4))
    soon = replace(DEFAULTS, microcompact_idle_minutes=1)
    assert len(await cleared(going(8), at(61, model=model, settings=soon))) == 3


async def test_the_newest_five_stay_and_the_bytes_are_frozen():
    view = going(8)
    view = folded(*await by_time(view, at(2 * HOUR)), view=view)
    text = render(view).body()
    assert text.count(CLEARED) == 3
    assert '"output 2"' not in text
    assert '"output 3"' in text
    assert view.moved == ("cleared",) * 3
    pairs_up(render(view))
    assert not await by_time(view, at(9 * HOUR))


async def test_at_least_one_is_kept():
    settings = replace(DEFAULTS, microcompact_kept=1)
    assert len(await cleared(going(4), at(2 * HOUR, settings=settings))) == 3


@pytest.mark.parametrize("tool", ["mcp__x__y", "Agent", "ReadBack"])
async def test_other_tools_are_never_cleared(tool: str):
    assert not await cleared(going(9, tool), at(2 * HOUR))


async def test_what_is_unsent_is_never_cleared():
    new = UserMessage((result("new", "fresh"),))
    view = folded(AssistantMessage((call("Bash", "new"),)), new, view=going(8))
    tight = replace(DEFAULTS, microcompact_kept=1)
    assert "new" not in await cleared(view, at(2 * HOUR, settings=tight))


async def test_a_stored_result_keeps_its_file():
    stored = ResultDecided("t0", "stored", "", '"preview"', "tool-results/t0.txt", 9, "ab")
    view = folded(stored, view=going(8))
    found = [r for r in await by_time(view, at(2 * HOUR)) if isinstance(r, ResultDecided)]
    assert (found[0].path, found[0].size, found[0].sha256) == ("tool-results/t0.txt", 9, "ab")


async def test_switched_off_or_out_of_the_way():
    off = at(2 * HOUR, flags=FixedFlags({"time_microcompact": False}))
    assert not await cleared(going(8), off)
    collapsed = replace(DEFAULTS, context_policy="collapse")
    assert not await cleared(going(8), at(2 * HOUR, settings=collapsed))
    managed = HeadSet("m", options='{"context_management":{"edits":[]}}')
    assert not await cleared(folded(managed, view=going(8)), at(2 * HOUR))


async def test_thinking_bound_to_what_is_cleared_goes_with_it():
    model = ScriptedModel([], capabilities=Capabilities(thinking_binding=True))
    view = going(8, thinking=True)
    view = folded(*await by_time(view, at(2 * HOUR, model=model)), view=view)
    kept = [p.source for m in render(view).messages() for p in m.pieces if p.block.thinking]
    assert len(kept) == 1  # before the first cleared result nothing moved
    free = ScriptedModel([], capabilities=Capabilities())
    records = await by_time(going(8, thinking=True), at(2 * HOUR, model=free))
    assert not any(r.strips for r in records if isinstance(r, ResultDecided))


# --- cache edits


CAN = ScriptedModel([], capabilities=Capabilities(cache_edits=True))


@pytest.mark.parametrize(("results", "deleted"), [(20, 0), (21, 16)])
async def test_past_twenty_all_but_five_are_named(results: int, deleted: int):
    records = await by_cache_edit(going(results), at(0, model=CAN))
    named = [r.blocks[0].value["delete"] for r in records if isinstance(r, Attached)]
    assert sum(len(n) for n in named if isinstance(n, list)) == deleted


async def test_an_edit_is_sent_again_at_the_same_place_and_moves_nothing():
    view = going(21)
    assert view.sent is not None
    view = folded(*await by_cache_edit(view, at(0, model=CAN)), view=view)
    assert view.moved == ()
    first = render(view)
    ok, more = AssistantMessage((text_block("ok"),)), UserMessage((text_block("more"),))
    view = folded(ok, more, view=sent(view))
    assert render(view).extends(first)
    assert not await by_cache_edit(view, at(0, model=CAN))


async def test_edits_go_on_naming_only_what_is_new():
    """Over many rounds every result is named once, in order, and the newest never."""
    view, named = going(3), list[str]()
    for n in range(3, 120):
        for record in await by_cache_edit(view, at(0, model=CAN)):
            view = folded(record, view=view)
            assert isinstance(record, Attached)
            named += [str(c) for c in cast("list[str]", record.blocks[0].value["delete"])]
        told = UserMessage((result(f"t{n}", "x"),), "tool")
        view = folded(AssistantMessage((call("Bash", f"t{n}"),)), told, view=sent(view))
    assert named == [f"t{n}" for n in range(len(named))]
    assert 90 < len(named) < 115


async def test_only_where_the_provider_can_and_never_in_a_fork():
    cannot = ScriptedModel([], capabilities=Capabilities())
    assert not await by_cache_edit(going(30), at(0, model=cannot))
    assert not await by_cache_edit(replace(going(30), base=EMPTY), at(0, model=CAN))


# --- forks, and calls that still wait


async def test_a_fork_keeps_its_parents_bytes():
    assert not await by_time(replace(going(8), base=EMPTY), at(2 * HOUR))


async def test_bound_thinking_of_a_call_that_waits_is_not_made_invalid():
    model = ScriptedModel([], capabilities=Capabilities(thinking_binding=True))
    free = ScriptedModel([], capabilities=Capabilities())
    waits = AssistantMessage((call("Bash", "open"),))
    for thinking in (True, False):
        view = folded(waits, view=going(8, thinking=thinking))
        assert bool(await by_time(view, at(2 * HOUR, model=model))) is not thinking
        assert await by_time(view, at(2 * HOUR, model=free))
