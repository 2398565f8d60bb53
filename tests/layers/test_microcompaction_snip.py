"""History snip: a range leaves the projection, whole rounds at a time, and a marker stays."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.errors import InvalidInput, NotFound
from reverie.layers import SNIPPED, snip_range
from reverie.settings import DEFAULTS
from reverie.testing import FixedFlags, call, world
from reverie.transcript import (
    AssistantMessage,
    HeadSet,
    UserMessage,
    block_of,
    decode,
    encode,
    fold_entries,
    reference,
    text_block,
)
from reverie.wire import render
from tests.layers.running import Running, Simulated, result
from tests.transcript.histories import build, histories
from tests.transcript.test_fold import pairs_up

pytestmark = [pytest.mark.spec("4"), pytest.mark.spec("B12")]
HERE = world()


async def going() -> Running:
    """Three turns of one call each."""
    session = Running(DEFAULTS)
    for n in range(3):
        await session.rounds([f"output {n}"], f"words {n}")
    return session


def ids(session: Running) -> list[str]:
    return [i.id for i in session.view.items]


async def test_the_range_goes_and_a_marker_stays():
    session = await going()
    names = ids(session)
    record = snip_range(session.view, names[4], names[7], session.world)
    session.append(record)
    text = "\n".join(p.block.text for m in render(session.view).messages() for p in m.pieces)
    assert "words 1" not in text
    assert "output 1" not in text
    assert "[4 messages snipped here." in text
    assert reference("toolu_2") in text
    assert "words 0" in text
    assert "output 2" in text
    assert session.view.moved == (SNIPPED,)
    pairs_up(render(session.view))
    again = fold_entries(decode(encode(e)) for e in session.view.entries)
    assert render(again).body() == render(session.view).body()


@pytest.mark.parametrize(("first", "last"), [(5, 5), (6, 6), (5, 6), (6, 5)])
async def test_a_range_that_cuts_a_pair_takes_the_whole_round(first: int, last: int):
    session = await going()
    names = ids(session)
    record = snip_range(session.view, names[first], names[last], session.world)
    assert (record.first, record.last) == (names[5], names[6])
    session.append(record)
    pairs_up(render(session.view))


async def test_what_waits_for_a_result_is_left_alone():
    session = await going()
    await session.add(text_block("more"))
    session.append(AssistantMessage((call("Bash", "open"),)))
    with pytest.raises(InvalidInput):
        snip_range(session.view, session.view.leaf, session.view.leaf, session.world)
    names = ids(session)
    session.append(snip_range(session.view, names[0], names[-1], session.world))
    assert session.view.open_calls == ("open",)
    session.append(UserMessage((result("open", "late"),), "tool"))
    pairs_up(render(session.view))


async def test_a_result_for_a_call_that_was_snipped_changes_nothing():
    session = await going()
    names = ids(session)
    session.append(snip_range(session.view, names[1], names[2], session.world))
    before = render(session.view).body()
    session.append(UserMessage((result("toolu_1", "late"),), "tool"))
    assert render(session.view).body() == before


async def test_unknown_messages_and_a_switch_that_is_off():
    session = await going()
    with pytest.raises(NotFound):
        snip_range(session.view, "nobody", ids(session)[0], session.world)
    off = world(flags=FixedFlags({"history_snip": False}))
    with pytest.raises(InvalidInput, match="switched off"):
        snip_range(session.view, ids(session)[0], ids(session)[0], off)


async def test_snipped_twice_and_around_an_older_one():
    session = await going()
    names = ids(session)
    session.append(snip_range(session.view, names[5], names[6], session.world))
    session.append(snip_range(session.view, names[5], names[6], session.world))
    session.append(snip_range(session.view, names[3], names[8], session.world))
    pairs_up(render(session.view))
    markers = [i for i in session.view.items if i.reason == SNIPPED]
    assert len(markers) == 1


async def test_bound_thinking_behind_it_goes_too():
    session = Simulated(DEFAULTS)
    session.begin(HeadSet("", '[{"type":"text","text":"system"}]'))
    await session.add(text_block("go"))
    for n in range(4):
        thought = block_of({"type": "thinking", "thinking": f"hm {n}", "signature": f"s{n}"})
        await session.answer((thought, call("Bash", f"t{n}")))
        await session.add(result(f"t{n}", "output"), origin="tool")
    names = [i.id for i in session.view.items]
    session.append(snip_range(session.view, names[3], names[4], session.world))
    await session.answer((text_block("done"),))  # refused, if any bound thinking were left
    thinking = [p for m in render(session.view).messages() for p in m.pieces if p.block.thinking]
    assert [p.block.get("signature") for p in thinking] == ["s0"]


@given(histories, st.integers(0, 40), st.integers(0, 40))
def test_whatever_is_snipped_no_pair_is_cut(steps, first, last):
    built = build([*steps, ("send",)])
    items = [i.id for i in built.view.items]
    if not items:
        return
    try:
        record = snip_range(built.view, items[first % len(items)], items[last % len(items)], HERE)
    except InvalidInput:
        return
    built.append(record)
    pairs_up(render(built.view))
    assert any(i.reason == SNIPPED for i in built.view.items)
