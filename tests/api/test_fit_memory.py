"""A Fitter with a memory: what joins the list, what is learned; and one with a summarizer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import reverie
from reverie import models
from reverie.errors import InvalidInput, ProviderError, StoreError
from reverie.testing import ScriptedModel
from reverie.wire import Format
from tests.api.lists import FORMS, MODELS, calls_of, results_of
from tests.api.rounds import one_round, rounds

pytestmark = pytest.mark.spec("18.fitter-memory")


def words(message: Any) -> str:
    content = message.get("content")
    return content if isinstance(content, str) else "".join(p["text"] for p in content)


@pytest.mark.parametrize("form", FORMS)
def test_index_and_recall_join_the_newest_message_and_stay_there(home: Path, form: Format):
    memory = reverie.Memory("shop")
    memory.add("The zebra build fails on node 18, because openssl moved", name="zebra build")
    memory.add("Parcels go out on Mondays, since the carrier asks for it", name="parcels")
    fitter = reverie.Fitter(model=MODELS[form], memory=memory, marks=False)
    messages = rounds(0, form)
    first = fitter.fit(messages)
    joined = form == "messages"  # roles alternate: it is in the same message
    assert joined or first[0] is messages[0]
    assert len(first) == 2 - joined
    assert "openssl moved" in words(first[-1])
    assert "zebra_build.md" in words(first[-1])
    assert "<system-reminder>" in words(first[-1])
    messages += one_round(0, "build", "failed", form)
    second = fitter.fit(messages)
    assert list(second[: len(first)]) == list(first)
    assert len(second) == len(messages) + 1 - joined  # a result asks for nothing
    messages.append({"role": "assistant", "content": "It failed."})
    messages.append({"role": "user", "content": "When do parcels go out to the carrier?"})
    third = fitter.fit(messages)
    assert list(third[: len(second)]) == list(second)
    assert "on Mondays" in words(third[-1])
    assert "openssl" not in words(third[-1])  # shown before
    assert list(fitter.fit(messages)) == list(third)
    messages.append({"role": "assistant", "content": "On Mondays."})
    messages.append({"role": "user", "content": "Why does the zebra build fail on node 18?"})
    fourth: list[Any] = fitter.fit(messages)
    assert fourth[-1] is messages[-1]  # what fits was shown


def test_nothing_joins_where_nothing_fits(home: Path):
    messages = rounds(0)
    fitter = reverie.Fitter(model="gpt-5", memory=reverie.Memory("empty"))
    assert list(fitter.fit(messages)) == messages


def test_a_memory_that_cannot_be_read_joins_nothing_and_says_so(home: Path):
    notices: list[str] = []
    memory = reverie.Memory("shop")
    memory.close()
    say: Any = lambda n: notices.append(n.text)  # noqa: E731
    fitter = reverie.Fitter(model="gpt-5", memory=memory, on_notice=say)
    assert list(fitter.fit(rounds(0))) == rounds(0)
    assert len(notices) == 1
    assert "closed" in notices[0]


def test_learning_is_a_verb_and_keeps_what_was_said_in_this_memory(home: Path):
    memory = reverie.Memory("shop", user="ada")
    fitter = reverie.Fitter(model="gpt-5", memory=memory)
    messages: list[Any] = [
        {"role": "user", "content": "Always run the linter before you commit. Otherwise CI fails."}
    ]
    sent = fitter.fit(messages)
    assert memory.list() == []
    over = [*sent, {"role": "assistant", "content": "I will."}]
    assert [one.outcome for one in fitter.learn(over)] == ["saved"]
    assert "linter" in memory.list()[0].text
    assert reverie.Memory("shop", user="bob").list() == []
    with pytest.raises(InvalidInput, match="no memory"):
        reverie.Fitter(model="gpt-5").learn(messages)


def test_a_closed_fitter_raises(home: Path):
    with reverie.Fitter(model="gpt-5", memory=reverie.Memory("shop")) as fitter:
        fitter.fit(rounds(0))
    fitter.close()
    for use in (fitter.fit, fitter.learn):
        with pytest.raises(StoreError, match="closed"):
            use(rounds(0))


# A summarizer


@pytest.mark.parametrize("form", FORMS)
def test_a_summary_takes_the_place_where_the_window_is_full_and_stays(form: Format):
    fitter = reverie.Fitter(
        model=MODELS[form], window=60_000, summarizer=models.embedded(), marks=False
    )
    before: list[Any] = []
    messages: list[Any] = []
    for count in range(1, 16):
        messages = rounds(count, form, lines=1_200)
        sent = fitter.fit(messages)
        assert sent.tokens <= 54_000
        assert set(calls_of(list(sent), form)) == set(results_of(list(sent), form))
        if "compaction" in "".join(sent.changes) and before[:1] == sent[:1]:
            assert list(sent[: len(before)]) == before  # the prefix holds behind a summary
        before = list(sent)
    assert "zebra" in words(before[0])
    assert "ReadBack" not in words(before[0])
    assert list(fitter.fit(messages)) == before


def test_a_summarizer_is_asked_once_for_one_place():
    model = ScriptedModel([ProviderError("no such key")] * 99)
    notices: list[str] = []
    say: Any = lambda n: notices.append(n.text)  # noqa: E731
    fitter = reverie.Fitter(model="gpt-5", window=60_000, summarizer=model, on_notice=say)
    messages = rounds(8, lines=1_200)
    first = fitter.fit(messages)
    asked = len(model.requests)
    assert asked
    assert first.tokens <= 54_000  # old results went instead
    assert any("no summary was made" in text for text in notices)
    assert list(fitter.fit(messages)) == list(first)
    assert len(model.requests) == asked


def test_a_summary_outlives_the_process_with_a_store(tmp_path: Path):
    one = reverie.Fitter(model="gpt-5", window=60_000, summarizer=models.embedded(), store=tmp_path)
    over = [*one.fit(rounds(12, lines=1_200)), {"role": "user", "content": "go on"}]
    model = ScriptedModel([])
    two = reverie.Fitter(model="gpt-5", window=60_000, summarizer=model, store=tmp_path)
    assert list(two.fit(over))[: len(over) - 1] == over[:-1]
    assert not model.requests
