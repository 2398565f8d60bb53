"""Collapse: sealed lines, a live tail, user words as said, everything readable back."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.layers import FOLDED, per_message, per_result, price_collapse, seal
from reverie.layers.collapse.folds import fold
from reverie.settings import DEFAULTS
from reverie.testing import FixedFlags, ScriptedModel, call, world
from reverie.transcript import (
    REFERENCE,
    AssistantMessage,
    Replaced,
    ResultDecided,
    Stand,
    UserMessage,
    blobs,
    block_of,
    decode,
    encode,
    fold_entries,
    reference,
    text_block,
)
from reverie.wire import Request, render
from reverie.world import Capabilities, World
from tests.layers.running import Running, folded, result, round_lines

pytestmark = [pytest.mark.spec("B11"), pytest.mark.spec("B12")]
SETTINGS = replace(DEFAULTS, context_policy="collapse", collapse_tail=6_000)


class Going(Running):
    """A session of turns that are all alike, under these layers alone."""

    layers = (per_message, seal)

    def __init__(self, settings=SETTINGS, binding: bool = False, **parts: object) -> None:
        super().__init__(settings)
        capabilities = Capabilities(marks=4, thinking_binding=binding)
        self.world: World = world(
            clock=self.clock,
            settings=settings,
            model=ScriptedModel([], capabilities=capabilities),
            **parts,
        )

    async def turn(self, words: str, rounds: int, size: int = 1_500) -> None:
        self.append(UserMessage((text_block(words),)))
        for _ in range(rounds):
            await self.send()
            self.calls += 1
            ident = f"toolu_{self.calls}"
            thinking = {"type": "thinking", "thinking": "hm", "signature": ident}
            use = call("Bash", ident, command=f"cat src/part_{self.calls}/file_name.py")
            self.append(AssistantMessage((block_of(thinking), use)))
            text = f"def function_{self.calls}_body(): pass\n" * (size // 35)
            await self.add(result(ident, text), origin="tool")
            self.clock.time += 10
        await self.send()
        self.append(AssistantMessage((text_block("All done."),)))


async def test_off_unless_chosen_and_switched_on():
    classic = replace(SETTINGS, context_policy="classic")
    for settings, flags in ((classic, {}), (SETTINGS, {"context_collapse": False})):
        going = Going(settings, flags=FixedFlags(flags))
        await going.turn("go", 20)
        assert not going.seals()


async def test_the_users_words_stay_and_every_call_can_be_named():
    going = Going()
    for n in range(5):
        await going.turn(f"Never touch guarded_{n}/secret-plan.md\nand keep X-Trace-{n}", 12)
    body = json.dumps(json.loads(going.requests[-1][0].body()), ensure_ascii=False)
    text = going.text()
    for n in range(5):
        assert f"Never touch guarded_{n}/secret-plan.md" in text
        assert f"and keep X-Trace-{n}" in text
    live = set(re.findall(r'"id": "(toolu_\d+)"', body))
    for n in range(1, going.calls + 1):
        assert f"toolu_{n}" in live or reference(f"toolu_{n}") in text
    assert len(going.seals()) > 3


async def test_a_seal_extends_what_was_sealed_before():
    """Sealed bytes do not change, but where old lines fold, which is announced as such."""
    going = Going(replace(SETTINGS, collapse_log=600))
    for n in range(6):
        await going.turn(f"turn {n}", 15)
    sealed: list[str] = []
    for request, moved in going.requests:
        now = [p.block.raw for p in request.at(0).pieces if p.source != "e0"]
        now = now if going_sealed(request) else []
        if FOLDED not in moved:
            assert now[: len(sealed)] == sealed
        sealed = now
    assert any(FOLDED in moved for _, moved in going.requests)


def going_sealed(request: Request) -> bool:
    return bool(REFERENCE.search(request.at(0).pieces[0].block.text))


async def test_requests_extend_unless_a_seal_is_announced():
    going = Going()
    for n in range(3):
        await going.turn(f"turn {n}", 15)
    going.extends_unless_announced()
    assert sum(bool(moved) for _, moved in going.requests) < len(going.requests) / 3


async def test_the_context_stays_small_for_ever():
    going = Going()
    for n in range(40):
        await going.turn(f"turn {n}", 10)
    sizes = [sum(m.tokens for m in r.messages()) for r, _ in going.requests]
    assert max(sizes) < 14_000
    assert max(sizes[-100:]) < 1.5 * max(sizes[100:200])


async def test_the_figures_are_recorded_with_the_edit():
    going = Going(replace(SETTINGS, collapse_tail=40_000, collapse_kept=500))
    await going.turn("go", 40)
    figures = [
        re.search(r"reading cost ([\d,]+), sealing costs ([\d,]+)", s.why) for s in going.seals()
    ]
    pairs = [[int(n.replace(",", "")) for n in found.groups()] for found in figures if found]
    assert pairs
    assert all(held >= cost for held, cost in pairs)
    going.clock.time += 301
    await going.turn("again", 1)
    assert going.seals()[-1].why.startswith("the cache was cold")
    tight = Going(replace(SETTINGS, collapse_tail=2_000, price_read=1e-6))
    await tight.turn("go", 10)
    assert "of 2,000 tokens" in tight.seals()[0].why


async def test_a_seal_that_does_not_pay_is_not_made():
    dear = Going(replace(SETTINGS, collapse_tail=10**6, price_write_short=1e6))
    await dear.turn("go", 60)
    assert not dear.seals()


async def test_bound_thinking_is_stripped_in_the_same_record():
    going = Going(binding=True)
    for n in range(4):
        await going.turn(f"turn {n}", 12)
    for request, moved in going.requests:
        if moved:
            thinking = [p for m in request.messages() for p in m.pieces if p.block.thinking]
            assert not thinking
    assert any(s.strips for s in going.seals())


async def test_bound_thinking_keeps_a_round_in_hand_until_the_limit():
    going = Going(replace(SETTINGS, collapse_tail=10**6), binding=True)
    await going.turn("one long turn", 60)
    assert not going.seals()
    await going.turn("the next", 1)
    assert going.seals()


async def test_large_results_are_out_on_arrival_with_their_names():
    going = Going()
    text = "\n".join(f"value_{n:04d} = compute_{n:04d}(x)" for n in range(400))
    going.append(UserMessage((text_block("go"),)))
    await going.send()
    going.append(AssistantMessage((call("Read", "big"),)))
    view = folded(UserMessage((result("big", text),)), view=going.view)
    (decision,) = [r for r in await per_result(view, going.world) if isinstance(r, ResultDecided)]
    sent = json.loads(decision.content)
    assert decision.action == "stored"
    assert reference("big") in sent
    assert sent.count("compute_") > 15
    assert len(sent) < 2_000


@given(st.lists(st.tuples(st.integers(1, 14), st.integers(0, 4_000)), min_size=1, max_size=6))
async def test_resumed_anywhere_it_sends_the_same_bytes(turns: list[tuple[int, int]]):
    going = Going(replace(SETTINGS, collapse_tail=3_000, collapse_log=400))
    for n, (rounds, size) in enumerate(turns):
        await going.turn(f"turn {n}", rounds, size)
    lines = [encode(e) for e in going.view.entries]
    stored = {k: v for e in going.view.entries for k, v in blobs(e.record).items()}
    again = fold_entries(decode(line, stored.get) for line in lines)
    assert render(again).body() == render(going.view).body()


async def test_a_name_is_given_once_in_a_seal():
    going = Going(replace(SETTINGS, collapse_tail=2_000, collapse_kept=100))
    going.append(UserMessage((text_block("go"),)))
    for n in range(12):
        await going.send()
        use = call("Edit", f"t{n}", file_path="/srv/deep/folder/only_file.py", replace_all=True)
        going.append(AssistantMessage((use,)))
        text = f"edited /srv/deep/folder/only_file.py and symbol_name_{n}\n" * 20
        await going.add(result(f"t{n}", text), origin="tool")
    await going.send()
    for sealed in going.seals():
        lines = sealed.by[0].blocks[-1].text
        assert lines.count("deep/folder/only_file.py") == 1
        assert lines.count("…/only_file.py") == lines.count("> Edit") - 1
        assert "True" not in lines
    assert "symbol_name_3" in going.requests[-1][0].body()


@pytest.mark.parametrize("count", [15, 150, 2_000])
def test_lines_name_a_part_of_a_result(count: int):
    text = " ".join(f"symbol_name_{n:04}" for n in range(count))
    names = round_lines("Read", {}, text)[1]
    assert 110 < len(names.strip()) <= 150


def test_times_line_numbers_and_parts_of_paths_are_no_names():
    text = (
        "2026-01-28T10:15:02 started 2026-01-28\nsrc/deep/cache_store.py-235- def evict_oldest\n"
        "\x1b[32mcache_store.py\x1b[0m 1234/5678\n"
    )
    (_, names) = round_lines("Grep", {"pattern": "evict"}, text)[1:]
    assert names.split() == ["src/deep/cache_store.py", "evict_oldest"]


async def test_a_stored_result_is_named_by_its_preview():
    going = Going(replace(SETTINGS, collapse_tail=2_000, collapse_kept=100))
    text = "\n".join(f"value_{n:04d} = compute_{n:04d}(x)" for n in range(400))
    going.append(UserMessage((text_block("go"),)))
    for n in range(6):
        await going.send()
        going.append(AssistantMessage((call("Read", f"t{n}"),)))
        await going.add(result(f"t{n}", text), origin="tool")
    await going.send()
    lines = going.seals()[0].by[0].blocks[-1].text
    assert 20 < lines.count("value_") + lines.count("compute_") < 40
    assert "Names in it" not in lines
    assert "persisted" not in lines


async def test_the_price_is_of_reading_old_rounds_against_writing_the_kept_end():
    going = Going(replace(SETTINGS, collapse_tail=10**6, collapse_kept=1_000))
    await going.turn("go", 3, 4_000)
    price = price_collapse(going.view, going.world, going.world.settings)
    items = list(going.view.items)
    before = [sum(i.tokens for i in items[:n]) for n in range(len(items))]
    read = [size - 1_000 for n, size in enumerate(before) if items[n].role == "assistant"]
    assert sum(read) > 0
    assert price.held == pytest.approx(0.1 * sum(read))
    assert price.cost == pytest.approx(1.25 * 1_000)
    assert price.tail == sum(i.tokens for i in items)


async def test_a_snipped_range_is_never_sealed_or_folded_back_in():
    going = Going(replace(SETTINGS, collapse_tail=2_000, collapse_log=200))
    await going.turn("keep these words", 2, 100)
    await going.turn("a secret that is snipped", 2, 100)
    items = list(going.view.items)
    secret = next(i for i in items if any("secret" in p.block.text for p in i.pieces))
    marker = (Stand("user", (text_block("[snipped]"),)),)
    going.append(Replaced(secret.id, items[-1].id, marker, "snip", seals=False))
    for n in range(8):
        await going.turn(f"turn {n}", 8)
    text = going.text()
    assert "secret" not in text
    assert "[snipped]" in text
    assert "<user>keep these words</user>" in text
    assert any(s.reason == FOLDED for s in going.seals())


def test_a_fold_that_saves_nothing_is_not_made() -> None:
    """Neither one that is larger nor one of the same size; one that saves a token is."""
    said = UserMessage((text_block("Where is the port set? " * 60),))
    view = folded(said, AssistantMessage((text_block("In settings.py, line 4. " * 60),)))
    items = list(view.items)
    size = sum(item.tokens for item in items)

    def tokens(length: int) -> int:
        made = fold(view, items, None, SETTINGS, "x" * length)
        return 0 if made is None else made.by[0].blocks[0].tokens

    least, most = 0, 100_000
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (middle, most) if tokens(middle) else (least, middle)
    assert tokens(least) == size - 1
    assert not tokens(most)
