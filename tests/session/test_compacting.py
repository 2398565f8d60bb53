"""Compaction through the simulator: thresholds, faults of the summariser, the breaker, parts.

The simulated provider binds thinking to what precedes it, counts the window and caches; a
request that no real one would take is refused by it.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reverie.errors import InvalidInput, NotAvailable, NotFound, PromptTooLong
from reverie.layers import CompactionFailed
from reverie.session import Session, TurnLimits, run_turn
from reverie.settings import DEFAULTS
from reverie.simulator import call, error, last_text
from reverie.testing import ScriptedModel, tool_definition
from reverie.transcript import Failed, ForkEnded, HeadSet, Item, fold_entries
from reverie.wire import Request, render, tool_result, user
from reverie.world import Capabilities, complete
from tests.loop.stage import SimpleTools
from tests.transcript.test_fold import pairs_up

from .compacts import ASKED, Stage, a_summary, boundaries

pytestmark = [pytest.mark.spec("6"), pytest.mark.spec("B10")]
WISH = "Never touch src/vendor.py. Build all parts."


@pytest.fixture
def stage(home: Path, tmp_path: Path) -> Stage:
    return Stage(home, tmp_path / "work")


def forks(s: Session) -> list[ForkEnded]:
    return [e.record for e in s.view.entries if isinstance(e.record, ForkEnded)]


def texts(request: Request) -> str:
    return "\n".join(p.block.text for m in request.messages() for p in m.pieces)


def raws(items: list[Item]) -> list[str]:
    return [p.block.raw for i in items for p in i.pieces]


# --- automatic


async def test_over_the_threshold_a_summary_takes_the_place_of_the_conversation(stage: Stage):
    async with stage.open() as s:
        await s.add(user(WISH))
        before: list[Request] = []
        while not boundaries(s):
            assert len(before) < 60
            await stage.round(s)
            assert s.last_request is not None
            before.append(s.last_request)
        record = boundaries(s)[0]
        request = before[-1]
        boundary = record.boundary
        assert boundary is not None
        assert boundary.trigger == "auto"
        assert boundary.tokens_before > s.world.settings.compact_threshold(stage.window)
        assert boundary.tokens_after < boundary.tokens_before - stage.window // 5
        assert boundary.calls == 1
        assert "secret drafting" not in texts(request)
        assert "Go on with it" in texts(request)
        assert WISH in texts(request)
        await stage.rounds(s, 3)
        assert fold_entries(s.view.entries).tokens == s.view.tokens
    assert stage.refused() == []
    assert "compacted" in stage.heard()[0]
    assert "100%" in stage.heard()[0]


async def test_the_summariser_is_a_fork_that_reads_its_parents_cache(stage: Stage):
    async with stage.open() as s:
        await s.add(user(WISH))
        await stage.rounds(s, 40)
        ended = forks(s)
        assert len(ended) == len(boundaries(s)) == 1
        fork, parents = ended[0].usage, sent_before(stage)
        assert fork.read >= 0.99 * parents
        assert fork.written == 0


def sent_before(stage: Stage) -> int:
    """What the request before the summariser's had, in tokens."""
    log = stage.engine.log
    at = next(n for n, logged in enumerate(log) if ASKED in str(logged.body))
    return log[at - 1].charge.total


async def test_a_second_summary_keeps_what_the_first_kept_of_the_users_words(stage: Stage):
    async with stage.open() as s:
        await s.add(user(WISH))
        await stage.rounds(s, 110)
        assert len(boundaries(s)) >= 3
        assert WISH in boundaries(s)[-1].by[0].blocks[0].text


async def test_what_the_user_said_last_stays_and_is_not_summarised(stage: Stage):
    async with stage.open() as s:
        await s.add(user(WISH))
        await stage.rounds(s, 33)
        await s.observe(await complete(ScriptedModel(["Done."]), await s.prepare()))
        assert not boundaries(s)
        long = "And now this. " * 300
        await s.add(user(long))
        request = await s.prepare()
        assert len(boundaries(s)) == 1
        last = request.at(request.count - 1)
        assert [p.block.text for p in last.pieces][-1] == long
        assert "which stays as it is behind it" in str(stage.talk.bodies[0])
        kept = boundaries(s)[0].boundary
        assert kept is not None
        assert kept.kept[2] == s.view.items[len(s.view.items) - 1].id
        await s.observe(await complete(stage.model, request))
    assert stage.refused() == []


@pytest.mark.parametrize("why", ["switched off", "collapse"])
async def test_nothing_automatic_where_it_is_off(stage: Stage, why: str):
    settings = replace(DEFAULTS, auto_compact_enabled=False)
    if why == "collapse":
        settings = replace(DEFAULTS, context_policy="collapse")
    reads_back = [tool_definition("ReadBack"), tool_definition("Bash")]
    async with stage.open(settings=settings, tools=reads_back) as s:
        await s.add(user(WISH))
        for _ in range(35):
            request = await s.prepare()
            await s.observe(await complete(ScriptedModel([_calls()]), request))
            await s.add(tool_result(s.view.open_calls[0], "x " * 1_000))
        assert not boundaries(s)
        assert stage.talk.asked == 0


_count = iter(range(10**9))


def _calls() -> list[Any]:
    return [call("Bash", "{}", f"toolu_x{next(_count)}").value]


# --- faults of the summariser


FAULTS: dict[str, Any] = {
    "refuses": "I cannot help with that.",
    "says nothing": " ",
    "is cut off": a_summary().partition("</summary>")[0],
    "forgets a section": a_summary(without="Pending tasks"),
    "calls a tool": [call("Bash", {"command": "ls"}, "toolu_s")],
    "says more than it got": a_summary(said="very long " * 9_000),
    "fails": error(500),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_summariser_that_does_not_is_asked_twice_and_stopped_after_three(
    stage: Stage, fault: str
):
    stage.talk.summaries = lambda _: FAULTS[fault]
    async with stage.open(options={"max_tokens": 30_000}) as s:
        await s.add(user(WISH))
        await stage.rounds(s, 41, size=38)
        failed = [e.record for e in s.view.entries if isinstance(e.record, Failed)]
        assert len(failed) == 3
        assert stage.talk.asked <= 6
        assert not boundaries(s)
        assert s.view.compaction_failures == 3
        assert WISH in texts(render(s.view))
        stopped = [t for t in stage.heard() if "stops for this session" in t]
        assert len(stopped) == 1
        assert "/compact" in stopped[0]
        session = s.id
        stage.talk.summaries = lambda _: a_summary()
    stage.notices.clear()
    async with stage.open(resume=session, prefix="again") as s:
        assert any("stops for this session" in text for text in stage.heard())
        await stage.rounds(s, 1)
        assert not boundaries(s)
        await s.prepare()
        await s.observe(await complete(ScriptedModel(["Done."]), render(s.view)))
        done = await s.summarize()
        assert done.tokens_after < done.tokens_before
        assert s.view.compaction_failures == 0


async def test_what_was_wrong_with_an_answer_is_told_and_the_next_one_is_taken(stage: Stage):
    answers = [a_summary(without="Current work"), a_summary(said="better")]
    stage.talk.summaries = lambda n: answers[n - 1]
    async with stage.open() as s:
        await s.add(user(WISH))
        await stage.rounds(s, 40)
        assert len(boundaries(s)) == 1
        boundary = boundaries(s)[0].boundary
        assert boundary is not None
        assert boundary.calls == 2
        assert "sections are missing: Current work" in str(stage.talk.bodies[1])


async def test_too_little_freed_is_a_failure(stage: Stage):
    stage.talk.summaries = lambda _: a_summary(said="words of a model " * 370)
    async with stage.open(options={"max_tokens": 30_000}) as s:
        await s.add(user(WISH))
        await stage.rounds(s, 38)
        assert not boundaries(s)
        assert s.view.compaction_failures >= 1
        assert any("must free 4,000" in text for text in stage.heard())


# --- too long for the summariser


async def test_the_oldest_rounds_go_where_the_summary_itself_is_too_long(stage: Stage):
    async with stage.open() as s:
        await s.add(user(WISH))
        await stage.rounds(s, 30)
        await s.add(user("Mind the second wish too."))
        await stage.rounds(s, 2)
        await s.observe(await complete(ScriptedModel(["Done."]), await s.prepare()))
        stage.model.engine.models.add(
            replace(stage.engine.models.find(stage.model.name), window=9_000)
        )
        done = await s.summarize()
        assert done.calls >= 2
        text = boundaries(s)[0].by[0].blocks[0].text
        assert "oldest rounds did not fit" in text
        assert WISH in text
        sent = stage.talk.bodies[-1]
        assert "earlier rounds are left out here" in str(sent)
        assert "'thinking'" not in str(sent["messages"])
        assert [f.agent for f in forks(s)].count("") == done.calls - 1
    assert all("too long" in e for e in stage.refused())


async def test_a_gap_that_is_not_named_costs_a_fifth_of_the_rounds(home: Path, tmp_path: Path):
    refusals: list[int] = []

    def answer(request: Request) -> Any:
        if ASKED in texts(request):
            refusals.append(request.count)
            return PromptTooLong("the request is too long")
        return _calls()

    model = ScriptedModel(answer, capabilities=Capabilities(marks=4, window=20_000))
    stage = Stage(home, tmp_path / "work")
    async with stage.open(model=model) as s:
        await s.add(user(WISH))
        for _ in range(20):
            await s.observe(await complete(model, await s.prepare()))
            await s.add(tool_result(s.view.open_calls[0], "ok " * 100))
        await s.observe(await complete(ScriptedModel(["Done."]), await s.prepare()))
        with pytest.raises(CompactionFailed, match="after 3 shorter tries"):
            await s.summarize()
        assert not boundaries(s)
        assert s.view.compaction_failures == 0
    first, *rest = refusals
    assert len(rest) == 3
    assert [first - n for n in rest] == pytest.approx([8, 17, 26], abs=3)


async def test_pictures_become_a_word_once_the_cache_is_cold(stage: Stage):
    source = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
    picture = {"type": "image", "source": source}
    async with stage.open() as s:
        for n in range(4):
            await s.add({"role": "user", "content": [picture]})
            script = ScriptedModel([f"picture {n}"])
            await s.observe(await complete(script, await s.prepare()))
        stage.clock.time += 600
        done = await s.summarize("Say what the pictures show.")
        assert done.tokens_after < done.tokens_before
        sent = stage.talk.bodies[-1]
        assert "[image]" in str(sent)
        assert "iVBORw" not in str(sent)
        assert "Say what the pictures show." in str(sent)
        request = await s_turn(s)
        assert "image" not in {p.block.type for m in request.messages() for p in m.pieces}


async def s_turn(s: Session) -> Request:
    await s.add(user("And?"))
    return await s.prepare()


# --- the provider says it is too long


async def test_a_refused_round_is_compacted_and_sent_once_more(home: Path, tmp_path: Path):
    stage = Stage(home, tmp_path / "work", window=9_000, claims=20_000)
    async with stage.open() as s:
        await s.add(user(WISH))
        with pytest.raises(PromptTooLong):
            await stage.rounds(s, 25)
        request = await s.prepare()
        with pytest.raises(PromptTooLong) as refused:
            await complete(stage.model, request)
        instead = await s.shorten_request(refused.value)
        assert len(boundaries(s)) == 1
        pairs_up(instead)
        with pytest.raises(PromptTooLong, match="no longer fits"):
            await s.shorten_request(refused.value)
        assert len(boundaries(s)) == 1
        await s.observe(await complete(stage.model, instead))
        assert s.world.window == 9_000
    async with stage.open(prefix="later") as s:
        assert s.world.window == 9_000
    assert all("too long" in e for e in stage.refused())


async def test_the_loop_goes_on_behind_a_refused_round(home: Path, tmp_path: Path):
    stage = Stage(home, tmp_path / "work", window=9_000, claims=20_000)

    async def bash(given: dict[str, Any]) -> str:
        return f"{given['command']}: " + "nothing to do. " * 120

    async with stage.open() as s:
        tools = SimpleTools(Bash=bash)
        done = await run_turn(s, stage.model, tools, WISH, limits=TurnLimits(rounds=40))
        assert done.outcome == "limit"
        assert done.rounds == 40
        assert len(boundaries(s)) >= 2
        assert WISH in texts(_now(s))
        refused = [e for e in stage.refused() if "too long" in e]
        assert len(refused) == len(stage.refused()) <= 3


async def test_the_reactive_path_stays_where_automatic_compaction_is_off(stage: Stage):
    settings = replace(DEFAULTS, auto_compact_enabled=False)
    async with stage.open(settings=settings) as s:
        await s.add(user(WISH))
        await stage.rounds(s, 20)
        await s.prepare()
        instead = await s.shorten_request(PromptTooLong("Prompt is too long"))
        assert len(boundaries(s)) == 1
        await s.observe(await complete(stage.model, instead))
    assert stage.refused() == []


# --- parts


async def grown(stage: Stage, s: Session) -> list[str]:
    """Four turns of three rounds; the ids of the user's messages."""
    said: list[str] = []
    for n in range(4):
        await s.add(user(f"Wish number {n}: build it."))
        said.append(s.view.leaf)
        await stage.rounds(s, 3)
        stage.talk.summaries = lambda _: a_summary(said="short")
        request = await s.prepare()
        await s.observe(await complete(ScriptedModel(["Done."]), request))
    return said


async def test_from_keeps_the_prefix_and_its_cache(stage: Stage):
    async with stage.open() as s:
        said = await grown(stage, s)
        at = next(n for n, i in enumerate(s.view.items) if i.id == said[2])
        kept = raws(list(s.view.items)[:at])
        head = s.view.head
        done = await s.summarize("mind the gap", from_=said[2])
        assert raws(list(s.view.items)[:at]) == kept
        assert len(s.view.items) == at + 1
        assert done.tokens_after < done.tokens_before
        assert s.view.head is head
        assert "Wish number 2" in last_text(stage.talk.bodies[0])
        request = await s_turn(s)
        assert raws(list(s.view.items)[:at]) == kept
        reply = await complete(stage.model, request)
        assert reply.usage is not None
        tokens = sum(i.tokens for i in list(s.view.items)[: at - 3])
        assert reply.usage.read >= tokens
        await s.observe(reply)
    assert stage.refused() == []


async def test_up_to_keeps_what_follows_but_for_bound_thinking(stage: Stage):
    async with stage.open() as s:
        said = await grown(stage, s)
        at = next(n for n, i in enumerate(s.view.items) if i.id == said[2])
        kept = [r for r in raws(list(s.view.items)[at:]) if '"thinking"' not in r[:20]]
        thinking = [r for r in raws(list(s.view.items)[at:]) if '"thinking"' in r[:20]]
        assert thinking
        await s.summarize(up_to=said[2])
        stands = [n for n, i in enumerate(s.view.items) if i.kind == "replaced"]
        assert raws(list(s.view.items)[stands[-1] + 1 :]) == kept
        request = await s_turn(s)
        await s.observe(await complete(stage.model, request))
    assert stage.refused() == []


@pytest.mark.parametrize("side", ["from_", "up_to"])
async def test_a_pivot_inside_a_pair_is_widened_and_one_that_is_none_refused(
    stage: Stage, side: str
):
    async with stage.open() as s:
        await grown(stage, s)
        results = [i.id for i in s.view.items if i.results]
        await s.summarize(**{side: results[4]})
        request = await s_turn(s)
        pairs_up(request)
        await s.observe(await complete(stage.model, request))
        for call_id in s.view.open_calls:
            await s.add(tool_result(call_id, "ok"))
        await s.observe(await complete(ScriptedModel(["Done."]), await s.prepare()))
        with pytest.raises(NotFound, match="no such message"):
            await s.summarize(**{side: "nowhere"})
        assert s.view.compaction_failures == 0
    assert stage.refused() == []


async def test_every_pivot_gives_a_request_the_provider_takes(stage: Stage, scale: Any):
    async with stage.open() as s:
        await grown(stage, s)
        pivots = [i.id for i in s.view.items if i.kind != "head"][:: scale.pick(3, 1)]
        leaf = s.view.leaf
        for pivot in pivots:
            for side in ("from_", "up_to"):
                await s.rewind(leaf)
                with suppress(InvalidInput, CompactionFailed):  # nothing there, or too little
                    await s.summarize(**{side: pivot})
                request = await s_turn(s)
                pairs_up(request)
                await complete(stage.model, request)
                await s.settled()
    assert stage.refused() == []


async def test_a_part_of_a_summary_takes_the_whole_summary(stage: Stage):
    async with stage.open() as s:
        said = await grown(stage, s)
        await s.summarize(up_to=said[2])
        await s.summarize(from_=said[0])
        assert [i.kind for i in s.view.items] == ["head", "replaced"]
        with pytest.raises(InvalidInput, match="nothing before"):
            await s.summarize(up_to=said[1])


async def test_what_cannot_be_compacted_says_so(stage: Stage):
    async with stage.open() as s:
        with pytest.raises(InvalidInput, match="nothing to compact"):
            await s.summarize()
        await s.add(user("Hello."))
        with pytest.raises(InvalidInput, match="nothing to compact"):
            await s.summarize()
        await s.prepare()
        with pytest.raises(InvalidInput, match="on its way"):
            await s.summarize()
        await s.observe(await complete(ScriptedModel([_calls()]), _now(s)))
        with pytest.raises(InvalidInput, match="wait for their results"):
            await s.summarize()
        await s.add(tool_result(s.view.open_calls[0], "ok"))
        with pytest.raises(InvalidInput, match="goes alone"):
            await s.summarize(from_="a", up_to="b")
        with pytest.raises(InvalidInput, match="Nothing to gain: the conversation has"):
            await s.summarize(must_gain=True)
        assert not any(isinstance(e.record, ForkEnded | Failed) for e in s.view.entries)
        assert not boundaries(s)
        assert WISH not in texts(_now(s))


def _now(s: Session) -> Request:
    return render(s.view)


async def test_the_head_is_left_as_it_is_without_a_door(stage: Stage):
    async with stage.open() as s:
        await grown(stage, s)
        await s.summarize()
        heads = [e for e in s.view.entries if isinstance(e.record, HeadSet)]
        assert len(heads) == 1


# --- the provider's own


async def test_behind_the_providers_own_block_thinking_stays_valid(stage: Stage):
    async with stage.open() as s:
        said = await grown(stage, s)
        at = next(n for n, i in enumerate(s.view.items) if i.id == said[2])
        kept = raws(list(s.view.items)[at:])
        assert any('"thinking"' in raw[:20] for raw in kept)
        done = await s.summarize("Mind the names.", up_to=said[2], by_provider=True)
        assert done.calls == 1
        request = await s_turn(s)
        first = request.at(0)
        assert (first.role, first.pieces[0].block.type) == ("assistant", "compaction")
        assert kept == raws([i for i in s.view.items if i.kind == "message"])[: len(kept)]
        assert "# notes" in texts(request)
        await s.observe(await complete(stage.model, request))
        await s.add(tool_result(s.view.open_calls[0], "ok"))
        await stage.rounds(s, 2)
        await s.observe(await complete(ScriptedModel(["Done."]), await s.prepare()))
        await s.summarize()
        assert "compaction" not in {p.block.type for i in s.view.items for p in i.pieces}
        await complete(stage.model, await s_turn(s))
    assert stage.refused() == []


async def test_the_whole_by_the_provider_and_where_it_cannot_be(stage: Stage):
    async with stage.open() as s:
        said = await grown(stage, s)
        with pytest.raises(InvalidInput, match="takes no end"):
            await s.summarize(from_=said[1], by_provider=True)
        await s.summarize(by_provider=True)
        await complete(stage.model, await s_turn(s))
    assert stage.refused() == []
    plain = ScriptedModel(["Done."])
    async with stage.open(model=plain, prefix="plain") as s:
        await s.add(user("Hello."))
        await s.observe(await complete(plain, await s.prepare()))
        with pytest.raises(NotAvailable, match="no compaction of its own"):
            await s.summarize(by_provider=True)


async def test_a_secret_is_taken_out_of_a_summary_and_told(stage: Stage):
    secret = "gsk" + "_" + "aB3dE5gH7j" * 5
    stage.talk.summaries = lambda _: a_summary(said=f"Deploys use {secret}, from Kim.")
    async with stage.open() as s:
        await s.add(user(WISH))
        await stage.rounds(s, 6)
        await s.summarize()
        text = texts(await s.prepare())
    assert "Deploys use [secret removed: groq-key], from Kim." in text
    assert secret not in text
    told = "\n".join(notice.text for notice in stage.notices)
    assert "groq-key" in told
    assert secret[6:12] not in told
