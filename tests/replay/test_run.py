"""A session under a policy: its bill, its breaks, and what stays at hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reverie.apps.replay import (
    FACTS,
    POLICIES,
    BoundThinking,
    MessageText,
    RecordedCourse,
    ReplayPolicy,
    ReplayStage,
    identifiers,
    is_paired,
    measure_session,
    movement,
    plain_marks,
    play,
    plays,
)
from reverie.settings import DEFAULTS
from reverie.transcript import (
    AssistantMessage,
    Block,
    HeadSet,
    Replaced,
    Stand,
    UserMessage,
    View,
    block_of,
    text_block,
    user_words,
)
from reverie.wire import Request, render
from tests.layers.running import folded, sent
from tests.proxy.clients import gave, text

from .courses import Bench, course, recorded, row, session, thought, use

pytestmark = pytest.mark.spec("B14")
HEAD_TOKENS = 6_695 + 6 * 978
# fmt: off
KEYS = [
    "session", "policy", "tail", "cost", "naive_cost", "recovery", "refind", "summaries", "peak",
    "breaks", "facts", "facts_here", "near", "far", "shown_whole",
]
# fmt: on


async def test_the_bill_of_two_rounds_by_hand():
    words, answer = "x" * 4_000, "y" * 40
    found = course(
        row("user", words, 0),
        row("assistant", [text(answer)], 10),
        row("user", "z" * 400, 20),
        row("assistant", [text(answer)], 30),
    )
    played = await play(found, ReplayPolicy.of("naive"))
    first, second = played.rounds
    assert (first.tokens, first.read, first.written) == (HEAD_TOKENS + 1000, 0, HEAD_TOKENS + 1000)
    assert first.cost == pytest.approx(1.25 * first.tokens + 5 * 10)
    assert (second.read, second.written, second.plain) == (HEAD_TOKENS + 1000, 110, 0)
    assert second.cost == pytest.approx(0.1 * second.read + 1.25 * 110 + 5 * 10)
    assert played.bill.total == pytest.approx(first.cost + second.cost)
    assert played.peak == second.tokens


async def test_a_pause_longer_than_the_lifetime_is_paid_for():
    quick = await play(course(*session(3, gap=10)), ReplayPolicy.of("naive"))
    slow = await play(course(*session(3, gap=400)), ReplayPolicy.of("naive"))
    assert quick.rounds[1].read > 0
    assert slow.rounds[1].read == 0
    assert slow.bill.total > quick.bill.total


async def test_classic_pays_no_more_for_a_short_session_than_naive():
    for gap in (10, 400):
        found = course(*session(3, gap=gap))
        ours = await play(found, ReplayPolicy.of("classic", through="proxy"))
        naive = await play(found, ReplayPolicy.of("naive"))
        assert ours.bill.total <= naive.bill.total


async def test_what_is_sealed_and_the_head_before_it_are_kept_for_an_hour():
    played = await play(
        course(*session(60, size=4_000, gap=400)), ReplayPolicy.of("collapse", tail=4_000)
    )
    sealed = next(n for n, r in enumerate(played.rounds) if r.moved)
    assert all(r.read >= HEAD_TOKENS for r in played.rounds[sealed + 1 :])


async def test_nothing_but_the_course_and_the_policy_decides():
    found = course(*session(40, far=True))
    for name in POLICIES:
        assert await play(found, ReplayPolicy.of(name)) == await play(found, ReplayPolicy.of(name))


# --- what stays at hand


async def test_collapse_keeps_facts_and_loses_nothing():
    found = course(*session(60, size=4_000, far=True))
    played = await play(found, ReplayPolicy.of("collapse", tail=4_000))
    naive = await play(found, ReplayPolicy.of("naive"))
    assert played.bill.total < naive.bill.total * 0.6
    assert (played.facts, played.facts_here) == (1, 1)
    assert played.near.lost == played.far.lost == 0
    assert played.far.total == naive.far.here == 1
    assert played.count("announced") > 0
    assert played.count("unannounced") == played.faults == 0
    assert played.peak < naive.peak


async def test_what_is_read_back_is_paid_for_once_and_then_at_hand():
    """A stored result's name, asked for by two steps in a row."""
    big = "\n".join(f"src/deep/module_{n:05d}.py" for n in range(9_000))
    found = course(
        row("user", "go", 0),
        row("assistant", [use("t1")], 1),
        row("user", [gave("t1", big)], 2),
        row("assistant", [use("t2", path="src/deep/module_04444.py")], 3),
        row("user", [gave("t2", "x")], 4),
        row("assistant", [use("t3", path="src/deep/module_04444.py")], 5),
        row("user", [gave("t3", "x")], 6),
        row("assistant", [text("done")], 7),
    )
    played = await play(found, ReplayPolicy.of("classic"))
    assert (played.near.by_reference, played.near.here) == (1, 1)
    size = played.rounds[1].tokens
    assert played.bill.recovery == pytest.approx(size * 0.1 + 600 * 1.25 + 400)
    assert (played.results, played.shown) == (3, 2)


async def test_a_cleared_result_can_only_be_had_by_running_again():
    lines = session(9)
    last = 9 * 10 + 5 + 2 * 3_600
    lines += [
        row("user", "on", last),
        row("assistant", [use("t", path="src/module_000.py")], last + 1),
        row("user", [gave("t", "x")], last + 2),
        row("assistant", [text("done")], last + 3),
    ]
    played = await play(course(*lines), ReplayPolicy.of("classic"))
    assert (played.near.rerun, played.count("announced")) == (1, 1)
    moved = next(r for r in played.rounds if r.moved)
    assert moved.why == "cleared"
    off = ReplayPolicy.of("classic", replace(DEFAULTS, microcompact_kept=1_000))
    assert (await play(course(*lines), off)).near.rerun == 0


async def test_what_is_gone_without_a_trace_is_lost():
    """Words that the user said about a name live in sealed lines; a lost one is counted."""
    found = course(*session(3, far=True))
    stage_less = replace(found, needs={3: found.needs[max(found.needs)]})
    need = stage_less.needs[3][0]
    gone = replace(stage_less, needs={3: (replace(need, name="nowhere_to_be_found", given=0),)})
    played = await play(gone, ReplayPolicy.of("naive"))
    assert played.near.lost == 1
    size = played.rounds[1].tokens
    user = found.steps[0].blocks[0].tokens
    assert played.bill.refind == pytest.approx(size * 0.1 + user * 1.25 + 400)


# --- faults


def asked(view: View) -> tuple[View, Request]:
    return sent(view), render(view)


def talk() -> tuple[View, Request]:
    head = HeadSet("m", '[{"type":"text","text":"Be brief."}]')
    return asked(folded(head, UserMessage((text_block("one"),))))


def test_a_changed_prefix_is_a_break_unless_it_was_announced():
    _, one = talk()
    _, other = asked(folded(HeadSet("m"), UserMessage((text_block("other"),))))
    assert movement(None, one, ()) == ""
    assert movement(one, one, ()) == ""
    assert movement(one, other, ()) == "unannounced"
    assert movement(one, other, ("collapse",)) == "announced"


def test_a_call_cut_from_its_result_is_a_fault():
    none = frozenset[str]()
    say, call = MessageText(("",), none, none), MessageText(("",), none, frozenset({"a"}))
    back = MessageText(("",), none, none, frozenset({"a"}))
    assert is_paired([say, call, back, say])
    assert not is_paired([say, call, say])
    assert not is_paired([say, back])
    assert not is_paired([say, call])


def test_thinking_behind_an_edited_past_is_refused_until_it_is_gone():
    bindings = BoundThinking()
    view, request = talk()
    thinking = block_of(thought("so"))
    said: tuple[Block, ...] = (thinking, text_block("two"))
    assert not bindings.refuses(request)
    bindings.answered(said)
    answer, more = AssistantMessage(said), UserMessage((text_block("three"),))
    view, request = asked(folded(answer, more, view=view))
    assert not bindings.refuses(request)
    bindings.answered((text_block("four"),))
    edit = Replaced("e1", "e1", (Stand("user", (text_block("another past"),)),), "snip")
    _, moved = asked(folded(edit, view=view))
    assert bindings.refuses(moved)
    assert bindings.refuses(moved)
    whole = replace(edit, last=view.entries[3].id)  # up to what was thought
    assert not bindings.refuses(asked(folded(whole, view=view))[1])


async def test_our_layers_strip_what_they_would_make_invalid():
    found = course(*session(60, size=4_000))
    policy = ReplayPolicy.of("collapse", tail=8_000)
    bound = await play(found, policy, thinking=True)
    assert bound.refused == 0
    assert bound.stripped > 0
    assert bound.count("unannounced") == 0


async def test_a_layer_that_does_not_know_is_refused():
    """The same without the knowledge that thinking is bound: the count is not idle."""
    found = course(*session(60, size=4_000))
    stage = ReplayStage(found.head, ReplayPolicy.of("collapse", tail=8_000), binds=False)
    bindings, refused = BoundThinking(), 0
    for step in found.steps:
        stage.clock.time += step.gap
        if step.role != "assistant":
            await stage.add(step.blocks)
            continue
        refused += bindings.refuses(await stage.prepare())
        bindings.answered(step.blocks)
        stage.observe(step.blocks)
    assert refused > 0


async def test_a_session_over_the_window_says_so():
    small = replace(DEFAULTS, context_window=20_000)
    found = course(*session(20, size=4_000))
    told = (await measure_session(found, ReplayPolicy.of("naive", small))).figures
    assert 0 < told.over_window < told.requests
    assert "would have failed" in " ".join(told.told())
    fits = (await measure_session(found, ReplayPolicy.of("collapse", small, tail=8_000))).figures
    assert (fits.over_window, fits.told()) == (0, [])


# --- the figures


async def test_the_figures_have_their_keys_and_every_step_is_ticked():
    found = course(*session(3))
    ticks: list[int] = []
    policy = ReplayPolicy.of("collapse", tail=9_000)
    done = await measure_session(found, policy, also=POLICIES, tick=lambda: ticks.append(1))
    value = done.figures.value()
    assert list(value)[: len(KEYS)] == KEYS
    assert (value["session"], value["policy"], value["tail"]) == ("s-1", "collapse", 9_000)
    assert value["near"] == {"here": 0, "by_reference": 0, "rerun": 0, "lost": 0}
    assert value["shown_whole"] == 1.0
    assert len(ticks) == plays(policy, POLICIES, found) == 6 * len(found.steps)
    assert list(done.played) == ["naive", "collapse", "store", "classic"]


async def test_naive_is_what_naive_costs():
    done = (await measure_session(course(*session(3)), ReplayPolicy.of("naive"))).figures
    assert done.cost == done.naive_cost
    assert done.score == 1.0


async def test_thinking_is_billed_apart():
    done = (await measure_session(course(*session(3)), ReplayPolicy.of("classic"))).figures
    assert done.thinking.blocks == 3
    assert done.thinking.cost > done.cost
    assert done.thinking.naive_cost > done.naive_cost


def test_a_plain_client_marks_the_head_and_three_user_messages():
    view, request = talk()
    assert [(m.part, m.block, m.ttl) for m in plain_marks(request)] == [
        ("system", 0, "5m"),
        ("messages", 0, "5m"),
    ]
    for _ in range(5):
        answer, more = AssistantMessage((text_block("a"),)), UserMessage((text_block("u"),))
        view = folded(answer, more, view=view)
    assert [m.block for m in plain_marks(render(view))] == [0, 6, 8, 10]


# --- against the shared bench


def same_blocks(ours: RecordedCourse, trace: dict[str, Any]) -> bool:
    """Not where words beside results, or pictures, are kept here and left out there."""
    mine = [sum(not b.thinking for b in step.blocks) for step in ours.steps]
    return mine == [len(step["blocks"]) for step in trace["steps"]]


def unmarked(ours: RecordedCourse) -> RecordedCourse:
    """Without the mark of calls that failed, by which results stand otherwise: it is left out
    there."""

    def plain(block: Block) -> Block:
        if "is_error" not in block.value:
            return block
        return block_of({name: value for name, value in block.value.items() if name != "is_error"})

    steps = [replace(step, blocks=tuple(map(plain, step.blocks))) for step in ours.steps]
    return replace(ours, steps=tuple(steps))


def by_programs(ours: RecordedCourse) -> set[str]:
    """Names that no person gave, but a program's report in their place."""
    texts = [
        block.get("text")
        for step in ours.steps
        for block in step.blocks
        if step.role != "assistant" and block.type == "text"
    ]
    given = set(identifiers("\n".join(map(user_words, texts))))
    return {name for text in texts for name in identifiers(text)[:FACTS]} - given


async def test_costs_and_needs_are_those_of_the_shared_bench(shared: Path, scale):
    """The bench runs our layers through its own cache and replay: the same within 1 %, or 2 where
    it leaves out what is kept here: words, or thinking, by which a short tail is sealed earlier."""
    bench = Bench(shared)
    folder = shared / "data" / "sessions_dev"
    some = ["24a274a3*", "9f26971d*", "189d8afc*"]
    names = scale.pick(some, ["[0-9a-f]*"])
    for path in sorted(p for name in names for p in folder.glob(name)):
        ours, trace = unmarked(recorded(path)), bench.trace(path)
        ours = replace(ours, program="reverie")  # the bench adds nothing to the head
        for tail in scale.pick([40_000], [10_000, 40_000]):
            figures = (await measure_session(ours, ReplayPolicy.of("collapse", tail=tail))).figures
            naive, theirs = bench.naive(trace), bench.collapse(trace, tail)
            assert figures.naive_cost == pytest.approx(naive["cost"], rel=0.01), path.name
            near = 0.01 if same_blocks(ours, trace) and tail == 40_000 else 0.02
            assert figures.cost == pytest.approx(theirs["cost"], rel=near), path.name
            assert figures.summaries == theirs["summaries"] == 0
            assert figures.facts >= theirs["facts"]
            assert figures.facts - figures.facts_here <= len(by_programs(ours)), path.name
            if not same_blocks(ours, trace):
                continue
            assert figures.recovery == pytest.approx(theirs["recovery"], rel=0.02, abs=200)
            assert figures.refind == pytest.approx(theirs["refind"], rel=0.02, abs=200)
            met = [list(figures.value()[name].values()) for name in ("near", "far")]  # type: ignore[union-attr]
            assert met == [theirs["near"], theirs["far"]], path.name
            assert figures.shown_whole == pytest.approx(theirs["shown"], abs=0.002)


async def test_no_recorded_session_breaks_or_is_refused(shared: Path, scale):
    """Recorded thinking bound: no request refused, no prefix moved without a word."""
    folder = shared / "data" / "sessions_dev"
    for path in sorted(folder.glob(scale.pick("9f26971d*", "*.jsonl.gz"))):
        for name in ("classic", "collapse"):
            done = (await measure_session(recorded(path), ReplayPolicy.of(name))).figures
            assert (done.breaks, done.pairing_faults, done.thinking.refused) == (0, 0, 0), path.name
            assert done.near.lost == done.far.lost == 0


async def test_a_models_folds_are_billed_and_parts_are_read_back():
    small = replace(DEFAULTS, collapse_tail=2_000, collapse_kept=200, collapse_log=600)
    going = course(*session(40, size=3_000, far=True))
    plain = await play(going, ReplayPolicy.of("collapse", small))
    asked = await play(going, ReplayPolicy.of("collapse", replace(small, summary_model="m")))
    assert plain.bill.folds == 0
    assert asked.bill.folds > 0
    assert asked.bill.total == pytest.approx(plain.bill.total + asked.bill.folds)
    assert plain.far.lost == 0  # the first round is in a folded part, whose reference gives it
    assert plain.bill.refind == 0
