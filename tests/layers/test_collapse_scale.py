"""Collapse where there is much: large results, many at once, thousands of rounds."""

from __future__ import annotations

import pytest

from reverie.layers import FOLDED
from reverie.testing import call
from reverie.transcript import HeadSet, ResultDecided, text_block
from reverie.wire import watch_entries
from tests.conftest import Scale
from tests.layers.running import Simulated, result, small_tail

pytestmark = [pytest.mark.spec("B11"), pytest.mark.spec("B12")]
HEAD = HeadSet("", '[{"type":"text","text":"' + "Work with care. " * 400 + '"}]')
LINE = "src/billing/ledger_{n}.py:{n}: return resolve_tenant_quota_{n}(shard_id)\n"


def lines(size: int, salt: int = 0) -> str:
    text = "".join(LINE.format(n=n + salt) for n in range(size // 60 + 1))
    return text[:size]


def begun(**numbers: int) -> Simulated:
    going = Simulated(small_tail(numbers.pop("collapse_tail", 40_000), **numbers))
    going.begin(HEAD)
    return going


def no_break(going: Simulated) -> None:
    """No answer read less than was cached, but where an edit had announced itself."""
    going.extends_unless_announced()
    assert not list(watch_entries(going.view.entries))


async def test_a_result_of_900_kb():
    going = begun()
    await going.rounds(["ok"] * 5 + [lines(900_000)] + ["ok"] * 20)
    no_break(going)
    stored = [d for _, d in going.view.decisions.items() if d.action == "stored"]
    assert [len(going.disk.files[d.path]) for d in stored] == [900_000]
    assert going.view.tokens < 20_000


async def test_eight_parallel_results_of_60_kb():
    going = begun()
    await going.add(text_block("look at all of them"))
    idents = [f"toolu_p{n}" for n in range(8)]
    await going.answer([call("Grep", ident, pattern=ident) for ident in idents])
    await going.add(*(result(i, lines(60_000, n)) for n, i in enumerate(idents)), origin="tool")
    await going.answer((text_block("Seen."),))
    await going.rounds([lines(2_000, n) for n in range(30)], "go on")
    no_break(going)
    decided = [d for i in idents if (d := going.view.decisions.get(i))]
    assert {d.action for d in decided} == {"stored"}
    assert len(decided) == 8


async def test_eight_large_results_that_may_not_be_stored():
    """ReadBack bounds its own output and is never stored; sealing still keeps the window."""
    going = begun()
    for turn in range(4):
        await going.add(text_block(f"turn {turn}"))
        idents = [f"toolu_{turn}_{n}" for n in range(8)]
        await going.answer([call("ReadBack", i, reference="r:abc123") for i in idents])
        await going.add(*(result(i, lines(32_000)) for i in idents), origin="tool")
        await going.answer((text_block("Seen."),))
    no_break(going)
    kept = [d for _, d in going.view.decisions.items() if isinstance(d, ResultDecided)]
    assert {d.action for d in kept} == {"kept"}


async def test_thousands_of_rounds(scale: Scale):
    going = begun(collapse_tail=10_000)
    rounds, turns = scale.pick((20, 12), (100, 20))
    for turn in range(turns):
        texts = [lines(200 + 977 * (n % 7), n) for n in range(rounds)]
        await going.rounds(texts, f"Turn {turn}: never touch guarded_{turn}/plan.md")
        going.clock.time += 30
    no_break(going)
    assert len(going.requests) == turns * (rounds + 1)
    sizes = [sum(m.tokens for m in r.messages()) for r, _ in going.requests]
    references = 10 * turns * rounds  # every call stays within reach by one, and by little more
    assert max(sizes) < 14_000 + references
    text = going.text()
    assert all(f"Turn {turn}: never touch guarded_{turn}/plan.md" in text for turn in range(turns))
    assert any(s.reason == FOLDED for s in going.seals())


async def test_the_work_of_a_round_does_not_grow(scale: Scale):
    """The items that a view holds, and what a seal looks at, stay as many."""
    going = begun(collapse_tail=10_000)
    held: list[int] = []
    for turn in range(scale.pick(20, 60)):
        await going.rounds([lines(1_500, n) for n in range(10)], f"turn {turn}")
        held.append(len(going.view.items))
    half = len(held) // 2
    assert max(held[half:]) < 1.5 * max(held[:half])
