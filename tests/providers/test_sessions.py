"""Whole sessions against the simulated provider, over a real socket."""

from __future__ import annotations

import itertools
import json
import sys
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from reverie.errors import AuthFailed, Overloaded, PromptTooLong, ProviderError, UnknownModel
from reverie.providers import AnthropicModel
from reverie.simulator import (
    Engine,
    FaultPlan,
    ModelSpec,
    call,
    cut,
    error,
    garbled,
    serving,
    thinking_block,
)
from reverie.testing import ManualClock
from reverie.transcript import EMPTY, Block, Entry, Object, UserMessage, apply, blocks_of
from reverie.wire import Request, render
from reverie.world import complete
from tests.providers.sessions import Live, built, head

PROVIDERS = [
    ("anthropic", "claude-opus-5-5"),
    ("openai-chat", "gpt-5"),
    ("openai-responses", "gpt-5"),
]
each = pytest.mark.parametrize(("provider", "model"), PROVIDERS)


def calling(provider: str) -> Engine:
    """A model that thinks, says a word and calls a tool, every time."""
    numbers = itertools.count()

    def answer(body: Object) -> list[Block]:
        n = next(numbers)
        thinks = [thinking_block(f"Step {n} is next.")] if provider == "anthropic" else []
        return [
            *thinks,
            *blocks_of(f"Reading {n}."),
            call("Read", f'{{"n": {n}.0, "at": 1e3}}', f"toolu_{n:016d}"),
        ]

    return Engine(answer, clock=ManualClock().now)


def optimum(engine: Engine, marked: bool) -> float:
    """Every prefix written once at its lifetime, and read on each later request."""
    prices = engine.profile
    whole = [entry.charge.total for entry in engine.log]
    write = prices.write["5m"] if marked else 1.0
    cost = whole[0] * write
    for before, after in itertools.pairwise(whole):
        cost += before * prices.read + (after - before) * write
    return cost + sum(e.output for e in engine.log) * prices.output


@pytest.mark.spec("14")
@each
async def test_sixty_rounds_cost_the_optimum_and_resume_warm(
    provider: str, model: str, root: Path
) -> None:
    engine = calling(provider)
    marked = provider == "anthropic"
    with serving(engine) as url:
        async with aclosing(built(provider, url, model)) as made:
            live = Live(made)
            await live.run(60, 2_000 if marked else 10_000)
        spent = sum(entry.cost for entry in engine.log)
        best = optimum(engine, marked)
        program = [sys.executable, "-m", "tests.providers.sessions"]
        done = await anyio.run_process(program, input=live.job(provider, url).encode(), cwd=root)
    assert len(engine.log) == 61
    assert all(entry.status == 200 for entry in engine.log)
    assert abs(spent / best - 1) < 0.01, (spent, best)
    if marked:
        assert engine.log[0].charge.written_5m > 1000
        assert sum(entry.charge.written_1h for entry in engine.log[1:]) == 0
    before, last = engine.log[-2].charge, engine.log[-1].charge
    assert last.read >= before.total - (0 if marked else 128)
    assert json.loads(done.stdout)["read"] == last.read


@pytest.mark.spec("14")
@each
async def test_usage_is_what_the_provider_billed(provider: str, model: str) -> None:
    engine = calling(provider)
    with serving(engine) as url:
        async with aclosing(built(provider, url, model)) as made:
            live = Live(made)
            await live.run(3, 8_000)
    for entry, reply in zip(engine.log, live.replies, strict=True):
        usage = reply.usage
        assert usage is not None
        assert usage.input == entry.charge.total
        assert usage.read == entry.charge.read
        assert usage.output == entry.output
        if provider == "anthropic":
            assert usage.written_1h == entry.charge.written_1h
            assert usage.written == entry.charge.written
    assert live.replies[-1].tool_calls[0].raw == '{"n": 2.0, "at": 1e3}'


@pytest.mark.spec("B13")
async def test_the_provider_is_asked_why_a_prefix_broke() -> None:
    engine = calling("no thinking")
    with serving(engine) as url:
        async with aclosing(built("anthropic", url, "claude-opus-5-5")) as model:
            live = Live(model)
            await live.run(2, 8_000)
            live.add(replace(head(model.name), system='[{"type":"text","text":"New rules."}]'))
            reply = await live.round()
    assert json.loads(live.replies[1].diagnostics) is None
    assert json.loads(reply.diagnostics)["cache_miss_reason"]["type"] == "system_changed"


@pytest.mark.spec("2")
async def test_the_window_comes_from_the_models_endpoint() -> None:
    engine = calling("anthropic")
    engine.models.add(ModelSpec("claude-opus-4-8", window=123_000, output=4_000))
    with serving(engine) as url:
        async with aclosing(built("anthropic", url, "claude-opus-4-8")) as model:
            assert model.capabilities.window == 200_000
            known = await model.look_up()
            assert await model.look_up() == known == model.capabilities
            assert isinstance(model, AnthropicModel)
            assert await model.count_tokens(asking(model.name)) > 1_000
    assert (known.window, known.max_output) == (123_000, 4_000)


def asking(model: str) -> Request:
    view = EMPTY
    for n, record in enumerate((head(model), UserMessage(blocks_of("Hello")))):
        view = apply(view, Entry(f"e{n}", view.leaf, float(n), record))
    return render(view)


async def once(engine: Engine, provider: str, model: str) -> tuple[ManualClock, object]:
    """One request against an engine: the waits it took, and its reply or its error."""
    clock = ManualClock()
    with serving(engine) as url:
        async with aclosing(built(provider, url, model, clock)) as made:
            try:
                return clock, await complete(made, asking(model))
            except ProviderError as problem:
                return clock, problem


@pytest.mark.spec("B10")
@each
async def test_a_prompt_too_long_says_by_how_much(provider: str, model: str) -> None:
    engine = calling(provider)
    maker = "anthropic" if provider == "anthropic" else "openai"
    engine.models.add(ModelSpec(model, maker, window=2_000, output=100))
    clock, found = await once(engine, provider, model)
    assert isinstance(found, PromptTooLong)
    assert found.allowed == 2_000
    assert found.needed is not None
    assert found.needed > 2_000
    assert clock.slept == []


@pytest.mark.spec("2")
@each
async def test_a_model_nobody_knows(provider: str, model: str) -> None:
    clock, found = await once(calling(provider), provider, model + "-never")
    assert isinstance(found, UnknownModel)
    assert clock.slept == []


@pytest.mark.spec("2")
@each
async def test_a_key_that_is_not_accepted(provider: str, model: str) -> None:
    engine = calling(provider)
    engine.keys = {"another"}
    clock, found = await once(engine, provider, model)
    assert isinstance(found, AuthFailed)
    assert "another" not in str(found)
    assert clock.slept == []


STORM = (error(429, retry_after=3), error(529), error(500), cut(300), garbled(1))


@pytest.mark.spec("2")
@each
async def test_a_storm_passes(provider: str, model: str) -> None:
    engine = calling(provider)
    engine.faults = FaultPlan(STORM)
    clock, found = await once(engine, provider, model)
    assert not isinstance(found, ProviderError), found
    assert clock.slept == [3.0, 0.5, 1.0, 2.0, 4.0]


@pytest.mark.spec("2")
@each
async def test_a_storm_without_end_does_not_last(provider: str, model: str) -> None:
    engine = calling(provider)
    engine.faults = FaultPlan([error(529, retry_after=86_400)] * 50)
    clock, found = await once(engine, provider, model)
    assert isinstance(found, Overloaded)
    assert clock.slept == [48.0] * 5
