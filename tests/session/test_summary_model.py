"""Summaries by another model: asked beside the conversation, within its own window, and never
the reason that a conversation is lost."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from reverie.errors import AuthFailed, BudgetExceeded
from reverie.session import NamedSummariser, Session, summariser_for
from reverie.settings import DEFAULTS
from reverie.simulator import Engine, ModelSpec, SimulatedModel, error, serving
from reverie.testing import ScriptedModel
from reverie.transcript import Failed, ForkEnded, fold_entries
from reverie.wire import Request, render, user
from reverie.world import Capabilities, complete

from .compacts import ASKED, NOTES, Stage, Talk, a_summary, boundaries

pytestmark = pytest.mark.spec("6")
WISH = "Never touch src/vendor.py. Build all parts."
LIMIT = {"max_tokens": 2_000, "thinking": {"type": "adaptive"}}


@pytest.fixture
def stage(home: Path, tmp_path: Path) -> Stage:
    return Stage(home, tmp_path / "work")


def named(stage: Stage, name: str, **environ: str) -> dict[str, Any]:
    """A session whose setting names a model for summaries."""
    known = {"HOME": str(stage.home.parent), NOTES: "0", "REVERIE_SUMMARY_MODEL": name}
    return {"environ": {**known, **environ}}


def another(window: int = 50_000, **parts: Any) -> tuple[SimulatedModel, Talk]:
    """Another model, with an engine of its own."""
    talk = Talk(**parts)
    return SimulatedModel(Engine(talk), name="claude-haiku-4-5", window=window, minimum=1), talk


async def filled(stage: Stage, s: Session, rounds: int = 40) -> None:
    await s.add(user(WISH))
    await stage.rounds(s, rounds)


def costs(s: Session) -> list[ForkEnded]:
    return [e.record for e in s.view.entries if isinstance(e.record, ForkEnded)]


def texts(request: Request) -> str:
    return "\n".join(p.block.text for m in request.messages() for p in m.pieces)


def spent(stage: Stage, s: Session) -> dict[str, int]:
    """Calls of the day, by source."""
    assert s.budget is not None
    day = datetime.fromtimestamp(stage.clock.now(), UTC).strftime("%Y-%m-%d")
    return {source: found.calls for source, found in s.budget.by_source(day).items()}


# --- another model writes


async def test_the_model_that_was_chosen_writes_by_a_side_query_that_is_counted(stage: Stage):
    model, talk = another()
    async with stage.open(summariser=model, options=LIMIT) as s:
        await filled(stage, s)
        assert (talk.asked, stage.talk.asked) == (1, 0)
        boundary = boundaries(s)[0].boundary
        assert boundary is not None
        assert boundary.calls == 1
        assert WISH in texts(render(s.view))
        body = talk.bodies[0]
        assert body["model"] == "claude-haiku-4-5"
        assert "thinking" not in body
        assert '"thinking"' not in json.dumps(body["messages"])
        assert [(c.source, c.agent, c.outcome) for c in costs(s)] == [("compact", "", "completed")]
        assert spent(stage, s) == {"compact": 1}
        assert fold_entries(s.view.entries).tokens == s.view.tokens
    assert stage.refused() == []
    assert [n.level for n in stage.notices if n.layer == "compaction"] == ["info"]


async def test_a_model_without_tools_is_sent_no_tool_definitions(stage: Stage):
    words = ScriptedModel(
        lambda _: a_summary(said="short"), name="words", capabilities=Capabilities(tools=False)
    )
    async with stage.open(summariser=words) as s:
        await filled(stage, s)
        assert s.view.head is not None
        assert s.view.head.tools != "[]"
    assert {one.head.tools for one in words.requests} == {"[]"}


async def test_a_part_is_written_by_it_too(stage: Stage):
    model, talk = another(summaries=lambda _: a_summary(said="short"))
    async with stage.open(summariser=model) as s:
        await filled(stage, s, 3)
        await s.observe(await complete(ScriptedModel(["Done."]), await s.prepare()))
        await s.add(user("And the rest."))
        pivot = s.view.leaf
        await stage.rounds(s, 3)
        await s.observe(await complete(ScriptedModel(["Done."]), await s.prepare()))
        await s.summarize(from_=pivot)
        assert (talk.asked, stage.talk.asked) == (1, 0)
        await s.summarize("Mind the names.")
        assert (talk.asked, stage.talk.asked) == (2, 0)
        assert "Mind the names." in json.dumps(talk.bodies[-1])


async def test_the_sessions_own_model_by_its_name_is_a_fork_that_reads_the_cache(stage: Stage):
    async with stage.open(summariser=stage.model) as s:
        await filled(stage, s)
        assert stage.talk.asked == 1
        assert costs(s)[0].agent != ""
        assert costs(s)[0].usage.read > 0


async def test_no_more_is_sent_than_its_own_window_takes(stage: Stage):
    model, talk = another(window=6_000)
    async with stage.open(summariser=model) as s:
        await s.add(user(WISH))
        await stage.rounds(s, 10)
        await s.add(user("Mind the second wish too."))
        await stage.rounds(s, 30)
        text = boundaries(s)[0].by[0].blocks[0].text
        assert "oldest rounds did not fit" in text
        assert WISH in text
        assert "Mind the second wish too." in text
        assert "600 tokens" in json.dumps(talk.bodies[0])
    assert talk.asked == 1
    assert [logged.error for logged in model.engine.log if logged.error] == []


async def test_one_that_takes_less_than_it_says_is_sent_less(stage: Stage):
    model, talk = another(window=6_000)
    claims = replace(model.capabilities, window=18_000)
    claiming = _Claiming(model.engine, name=model.name)
    claiming.claims = claims
    async with stage.open(summariser=claiming) as s:
        await filled(stage, s)
        assert "oldest rounds did not fit" in boundaries(s)[0].by[0].blocks[0].text
        assert (talk.asked, stage.talk.asked) == (1, 0)
    refused = [logged.error for logged in model.engine.log if logged.error]
    assert refused
    assert all("too long" in e for e in refused)


class _Claiming(SimulatedModel):
    """A model whose window is smaller than it is said to be."""

    claims: Capabilities

    @property
    def capabilities(self) -> Capabilities:
        return self.claims


async def test_a_providers_own_summary_reaches_another_model_in_words(stage: Stage):
    model, talk = another(summaries=lambda _: a_summary(said="short"))
    async with stage.open(summariser=model) as s:
        await filled(stage, s, 6)
        await s.observe(await complete(ScriptedModel(["Done."]), await s.prepare()))
        await s.summarize(by_provider=True)
        await s.add(user("Go on."))
        await stage.rounds(s, 3)
        await s.observe(await complete(ScriptedModel(["Done."]), await s.prepare()))
        await s.summarize()
        assert talk.asked == 1
        assert '"type": "compaction"' not in json.dumps(talk.bodies[0])
    assert stage.refused() == []
    assert [logged.error for logged in model.engine.log if logged.error] == []


# --- by the setting


async def test_a_setting_names_it_and_its_server_tells_the_window(stage: Stage):
    talk = Talk()
    engine = Engine(talk, clock=stage.clock.now)
    engine.models.add(ModelSpec("small-writer", window=12_000, minimum=1))
    with serving(engine) as url:
        keys = {"ANTHROPIC_API_KEY": "sk-test", "ANTHROPIC_BASE_URL": url}
        async with stage.open(**named(stage, "anthropic:small-writer", **keys)) as s:
            await filled(stage, s, 3)
            assert not engine.log  # nothing is built before it is needed
            await stage.rounds(s, 37)
            assert len(boundaries(s)) == 1
            assert WISH in texts(render(s.view))
            assert spent(stage, s) == {"compact": 1}
            assert s.world.summariser is not None
            writer: Any = await s.world.summariser()
            assert not writer.connection.client.is_closed()
        assert writer.connection.client.is_closed()
    assert (talk.asked, stage.talk.asked) == (1, 0)
    assert [n for n in stage.notices if n.level != "info"] == []


async def test_one_of_another_maker_is_sent_less_until_it_takes_it(stage: Stage):
    talk = Talk()
    engine = Engine(talk, clock=stage.clock.now)
    engine.models.add(ModelSpec("small-writer", maker="openai", window=12_000))
    with serving(engine) as url:
        keys = {"OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": f"{url}/v1"}
        async with stage.open(**named(stage, "openai-chat:small-writer", **keys)) as s:
            await filled(stage, s)
            assert "oldest rounds did not fit" in boundaries(s)[0].by[0].blocks[0].text
    assert (talk.asked, stage.talk.asked) == (1, 0)
    assert [logged.status for logged in engine.log] == [400, 200]


async def test_the_embedded_model_writes_without_a_call(stage: Stage):
    async with stage.open(**named(stage, "embedded")) as s:
        await filled(stage, s)
        assert stage.talk.asked == 0
        assert len(boundaries(s)) == 1
        text = boundaries(s)[0].by[0].blocks[0].text
        assert WISH in text
        assert "did not fit" not in text
        assert spent(stage, s) == {}
    assert stage.refused() == []


async def test_the_embedded_model_writes_where_the_days_budget_is_used_up(stage: Stage):
    none = replace(DEFAULTS, background_calls_per_day=0, summary_model="embedded")
    async with stage.open(settings=none) as s:
        await filled(stage, s)
        assert len(boundaries(s)) == 1


async def test_it_is_made_once_when_it_is_first_asked_and_closed(stage: Stage):
    made: list[str] = []

    class Counted(ScriptedModel):
        async def aclose(self) -> None:
            made.append("closed")

    def make() -> ScriptedModel:
        made.append("made")
        return Counted(["x"])

    model = NamedSummariser(make)
    await model.aclose()
    assert made == []
    assert await model() is await model()
    await model.aclose()
    assert made == ["made", "closed"]
    assert summariser_for(DEFAULTS, {}, 1) is None
    keyless = summariser_for(replace(DEFAULTS, summary_model="claude-haiku-4-5"), {}, 1)
    assert keyless is not None
    for _ in range(2):
        with pytest.raises(AuthFailed, match="no key"):
            await keyless()
    await keyless.aclose()


# --- where it writes nothing


async def test_one_that_cannot_be_built_is_named_and_the_sessions_own_writes(stage: Stage):
    async with stage.open(**named(stage, "claude-haiku-4-5")) as s:
        await filled(stage, s)
        assert len(boundaries(s)) == 1
        assert stage.talk.asked == 1
        assert s.view.compaction_failures == 0
        warned = [n.text for n in stage.notices if n.level == "warning"]
        assert len(warned) == 1
        assert "summaryModel" in warned[0]
        assert "no key for Anthropic" in warned[0]


FAULTS: dict[str, Any] = {
    "is down": error(500),
    "knows nobody": error(401),
    "refuses": "I cannot help with that.",
    "says more than it got": a_summary(said="very long " * 9_000),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_one_that_fails_gives_way_to_the_sessions_own(stage: Stage, fault: str):
    model, talk = another(summaries=lambda _: FAULTS[fault])
    async with stage.open(summariser=model) as s:
        await filled(stage, s)
        boundary = boundaries(s)[0].boundary
        assert boundary is not None
        assert boundary.calls == talk.asked + 1
        assert costs(s)[-1].agent != ""
        assert s.view.compaction_failures == 0
        assert not any(isinstance(e.record, Failed) for e in s.view.entries)
    assert any("summaryModel" in n.text for n in stage.notices if n.level == "warning")


async def test_one_whose_window_no_round_fits_is_not_asked(stage: Stage):
    model, talk = another(window=600)
    async with stage.open(summariser=model) as s:
        await filled(stage, s)
        assert (talk.asked, stage.talk.asked) == (0, 1)
    assert any("not even the newest round fits" in n.text for n in stage.notices)
    assert model.engine.log == []


async def test_where_both_fail_the_breaker_counts_and_nothing_is_lost(stage: Stage):
    stage.talk.summaries = lambda _: error(500)
    model, talk = another(summaries=lambda _: error(500))
    async with stage.open(summariser=model) as s:
        await s.add(user(WISH))
        await stage.rounds(s, 41, size=38)
        assert s.view.compaction_failures == 3
        assert talk.asked == stage.talk.asked == 3
        assert not boundaries(s)
        assert WISH in texts(render(s.view))
        await s.prepare()
        await s.observe(await complete(ScriptedModel(["Done."]), render(s.view)))
        talk.summaries = lambda _: a_summary()
        await s.summarize()
        assert s.view.compaction_failures == 0


async def test_the_days_budget_holds_for_it_too(stage: Stage):
    model, talk = another()
    none = replace(DEFAULTS, background_calls_per_day=0)
    async with stage.open(summariser=model, settings=none) as s:
        await filled(stage, s, 5)
        await s.observe(await complete(ScriptedModel(["Done."]), await s.prepare()))
        with pytest.raises(BudgetExceeded):
            await s.summarize()
        assert talk.asked == stage.talk.asked == 0
        assert ASKED not in texts(render(s.view))
        assert not boundaries(s)
