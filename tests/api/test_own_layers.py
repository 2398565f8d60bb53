"""Layers of a caller's own: what they see, what they may ask for, and that they fail alone."""

from __future__ import annotations

from typing import Any

import pytest

import reverie
from reverie import layers
from reverie.layers import BEFORE_A_REQUEST, COMPACTION, before_a_request
from reverie.wire import Format
from tests.api.lists import FORMS, MODELS, answered, call, calls_of, results_of
from tests.api.rounds import rounds

pytestmark = pytest.mark.spec("18.own-layers")


async def hide_screenshots(view: layers.View, world: layers.World) -> list[layers.Record]:
    return [
        layers.clear(c.id)
        for c in view.calls.values()
        if c.name == "screenshot" and c.age > 3 and not c.action
    ]


def fitter_for(form: Format, *own: Any, **more: Any) -> reverie.Fitter:
    kit = reverie.tools()
    return reverie.Fitter(
        model=MODELS[form], tools=kit, layers=own, marks=False, window=400_000, **more
    )


@pytest.mark.parametrize("form", FORMS)
def test_clearing_leaves_a_reference_that_gives_the_whole(form: Format):
    messages = rounds(12, form, lines=30, names="screenshot build")
    fitter = fitter_for(form, *layers.COLLAPSE, hide_screenshots)
    sent = fitter.fit(messages)
    shown, whole = results_of(list(sent), form), results_of(messages, form)
    cleared = {name for name in whole if shown[name] != whole[name]}
    assert len(cleared) == 4  # of six, those with more than three answers behind them
    assert set(calls_of(list(sent), form)) == set(shown)
    for name in cleared:
        words, _, ref = shown[name].partition(" with ")
        assert words == "[Cleared. read_back"
        page = answered(sent.handle(call("read_back", form, reference=ref[:8])), form)
        assert whole[name].splitlines()[0] in page
    assert sum(one.startswith("cleared") for one in sent.changes) == 4


@pytest.mark.parametrize("form", FORMS)
def test_storing_keeps_both_ends_and_a_text_takes_the_place_of_messages(form: Format):
    async def tidy(view: layers.View, world: layers.World) -> list[layers.Record]:
        old = [c for c in view.calls.values() if c.age > 5 and not c.action]
        if len(view.messages) > 20:
            return [layers.replace(view.messages[0].id, view.messages[3].id, "It began so.")]
        return [layers.store(c.id, why="it is old") for c in old]

    sent = fitter_for(form, tidy).fit(rounds(11, form, lines=40))
    assert any("it is old" in one for one in sent.changes)
    assert "It began so." in str(sent[0])
    assert set(calls_of(list(sent), form)) == set(results_of(list(sent), form))


@pytest.mark.parametrize("form", FORMS)
def test_a_text_joins_the_newest_message(form: Format):
    async def remind(view: layers.View, world: layers.World) -> list[layers.Record]:
        last = view.messages[-1]
        return [layers.attach("Be brief.")] if last.text.startswith("Look") else []

    messages = rounds(0, form)
    fitter = fitter_for(form, remind)
    first = fitter.fit(messages)
    if form == "messages":  # roles alternate
        said = [part["text"] for part in first[0]["content"]]
        assert said == [messages[0]["content"], "Be brief."]
        assert len(first) == 1
    else:
        assert first[0] is messages[0]
        assert "Be brief." in str(first[1])


def test_one_that_raises_or_returns_something_else_fails_alone():
    async def broken(view: layers.View, world: layers.World) -> list[layers.Record]:
        raise ValueError("no")

    async def wrong(view: layers.View, world: layers.World) -> Any:
        return ["clear it"]

    notices: list[str] = []
    say: Any = lambda n: notices.append(n.text)  # noqa: E731
    fitter = fitter_for("chat", broken, wrong, hide_screenshots, on_notice=say)
    sent = fitter.fit(rounds(12, lines=30, names="screenshot build"))
    assert sum(one.startswith("cleared") for one in sent.changes) == 4
    assert notices == [
        "the layer failed: ValueError: no",
        "the layer failed: TypeError: a layer returns what reverie.layers makes, not str",
    ]


def test_a_wish_that_no_longer_fits_comes_to_nothing():
    async def stale(view: layers.View, world: layers.World) -> list[layers.Record]:
        gone = [layers.clear("nobody"), layers.store("nobody"), layers.replace("a", "b", "x")]
        return [*gone, *(layers.clear(c.id) for c in view.calls.values() if c.action)]

    messages = rounds(4, lines=30)
    assert list(fitter_for("chat", stale).fit(messages)) == messages


def test_without_a_way_back_the_loss_is_told_once():
    notices: list[str] = []
    say: Any = lambda n: notices.append(n.text)  # noqa: E731
    fitter = reverie.Fitter(model="gpt-5", layers=[hide_screenshots], on_notice=say)
    messages = rounds(12, lines=30, names="screenshot build")
    fitter.fit(messages)
    sent: Any = fitter.fit(messages)
    assert sent[2]["content"] == "[Old tool result content cleared]"
    assert len(notices) == 1
    assert notices[0].startswith("your own layers let results go")


def test_a_layer_sees_plain_values():
    seen: list[Any] = []

    async def look(view: layers.View, world: layers.World) -> list[layers.Record]:
        seen.append((dict(view.calls), view.messages, view.tokens, world.window))
        return []

    fitter_for("chat", look).fit(rounds(2, lines=1))
    calls, messages, tokens, window = seen[-1]
    first, second = calls.values()
    assert (first.name, first.arguments, first.age, second.age) == ("build", {"n": 0}, 1, 0)
    assert first.result == "part_0.py: line of round 0\n"
    assert [m.role for m in messages] == ["user", "assistant", "user", "assistant", "user"]
    assert tokens > 0
    assert window == 400_000


def test_a_session_runs_them_in_place_of_the_ready_list_and_compacts_behind():
    assert before_a_request(None) is BEFORE_A_REQUEST
    names = [name for name, _ in before_a_request([*layers.COLLAPSE, hide_screenshots])]
    assert names[:3] == ["tool_results", "collapse", "hide_screenshots"]
    assert before_a_request([])[-len(COMPACTION) :] == COMPACTION
