"""Lists of callers, read and adopted: nothing is dropped, whatever a list holds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import reverie
from reverie.errors import PromptTooLong
from reverie.wire import (
    Format,
    adopt,
    content_blocks,
    edit_message,
    format_of,
    parse_call,
    parse_message,
    value_of,
)
from tests.api.lists import FORMS, calls_of, results_of

pytestmark = pytest.mark.spec("18.wire")
IDS = st.sampled_from(["a", "b", "", "call-3"])
TEXT = st.sampled_from(["", " ", "words", "more words\nand a line", "x" * 30_000])


def message(form: Format) -> st.SearchStrategy[dict[str, Any]]:
    """A message in a form, good or bad."""
    said = st.builds(
        lambda role, text: {"role": role, "content": text},
        st.sampled_from(["user", "assistant", "system", "narrator"]),
        TEXT,
    )
    if form == "chat":
        function = st.builds(
            lambda i, a: {"id": i, "type": "function", "function": {"name": "f", "arguments": a}},
            IDS,
            st.sampled_from(["{}", "{", '{"path":"x"}', ""]),
        )
        calling = st.builds(
            lambda calls, text: {"role": "assistant", "content": text, "tool_calls": calls},
            st.lists(function, min_size=1, max_size=3),
            TEXT,
        )
        result = st.builds(
            lambda i, t: {"role": "tool", "tool_call_id": i, "content": t}, IDS, TEXT
        )
        return st.one_of(said, calling, result)
    if form == "responses":
        calling = st.builds(
            lambda i: {"type": "function_call", "call_id": i, "name": "f", "arguments": "{}"}, IDS
        )
        result = st.builds(
            lambda i, t: {"type": "function_call_output", "call_id": i, "output": t}, IDS, TEXT
        )
        other = st.sampled_from(
            [
                {"type": "reasoning", "id": "r", "summary": []},
                {"type": "web_search_call", "id": "w"},
                {"type": "item_reference", "id": "z"},
            ]
        )
        return st.one_of(said, calling, result, other)
    use = st.builds(lambda i: {"type": "tool_use", "id": i, "name": "f", "input": {}}, IDS)
    text = st.builds(lambda t: {"type": "text", "text": t}, TEXT)
    answer = st.builds(
        lambda i, t: {"type": "tool_result", "tool_use_id": i, "content": t}, IDS, TEXT
    )
    thought = st.just({"type": "thinking", "thinking": "hm", "signature": "s"})
    odd = st.just({"type": "hologram", "n": 1})
    assistant = st.lists(st.one_of(use, text, thought, odd), min_size=1, max_size=4)
    user = st.lists(st.one_of(answer, text, odd), min_size=1, max_size=4)
    return st.one_of(
        said,
        assistant.map(lambda c: {"role": "assistant", "content": c}),
        user.map(lambda c: {"role": "user", "content": c}),
    )


@pytest.mark.parametrize("form", FORMS)
@given(data=st.data())
def test_every_message_has_its_place_and_settled_parts_stay(form: Format, data: Any):
    messages = data.draw(st.lists(message(form), max_size=12))
    said = [parse_message(m, form) for m in messages]
    whole = adopt(said, form)
    places = [n for part in whole.parts for n in range(part.first, part.end)]
    assert places == list(range(len(messages)))
    names = [b.call for p in whole.parts for b in p.blocks if p.part == "assistant" and b.call]
    assert len(names) == len(set(names))
    for count in range(len(messages)):
        shorter = adopt(said[:count], form)
        assert shorter.parts[: shorter.settled()] == whole.parts[: shorter.settled()]


@pytest.mark.parametrize("form", FORMS)
@given(data=st.data())
def test_a_kept_fitter_and_a_fresh_fit_agree_on_any_list(form: Format, data: Any):
    messages = data.draw(st.lists(message(form), max_size=12))
    kit = reverie.tools()
    tools = {"chat": kit.openai, "responses": kit.responses, "messages": kit.anthropic}[form]()
    fitter = reverie.Fitter(model="claude-opus-4-8", tools=tools, window=20_000, marks=False)
    for count in range(1, len(messages) + 1):
        shorter = messages[:count]
        try:
            kept = fitter.fit(shorter)
        except PromptTooLong:
            continue
        fresh = reverie.fit(
            shorter, model="claude-opus-4-8", tools=tools, window=20_000, marks=False
        )
        assert list(kept) == list(fresh)
        assert kept.tokens <= 18_000


@pytest.mark.parametrize("form", FORMS)
def test_a_form_is_told_by_what_only_it_has(form: Format):
    telling: dict[Format, list[dict[str, Any]]] = {
        "messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]}],
        "chat": [{"role": "system", "content": "x"}],
        "responses": [{"type": "function_call", "call_id": "a", "name": "f", "arguments": ""}],
    }
    plain = {"role": "user", "content": "hello"}
    assert format_of([plain, *telling[form]]) == (form, True)
    tools: dict[Format, dict[str, Any]] = {
        "messages": {"name": "f", "input_schema": {}},
        "chat": {"type": "function", "function": {"name": "f"}},
        "responses": {"type": "function", "name": "f"},
    }
    assert format_of([plain], [tools[form]]) == (form, False)
    assert format_of([plain], model="claude-x")[0] == "messages"


@pytest.mark.parametrize("form", FORMS)
def test_read_and_written_again_a_result_is_the_same(form: Format):
    results: dict[Format, dict[str, Any]] = {
        "messages": {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "a", "content": "text", "x": 1}],
        },
        "chat": {"role": "tool", "tool_call_id": "a", "content": "text", "x": 1},
        "responses": {"type": "function_call_output", "call_id": "a", "output": "text", "x": 1},
    }
    said = parse_message(results[form], form)
    assert edit_message(results[form], form, {0: said.blocks[0]}, ()) == results[form]
    assert results_of([results[form]], form) == {"a": "text"}
    assert calls_of([results[form]], form) == []


def test_contents_of_any_kind_are_blocks():
    parts: Any = [{"type": "input_text", "text": "a"}, {"type": "new"}, 3, {"type": "file", "n": 1}]
    assert content_blocks(parts) == [
        {"type": "text", "text": "a"},
        {"type": "new"},
        {"type": "document", "source": {"n": 1}},
    ]
    assert content_blocks(None) == []


def test_a_value_is_a_copy():
    given_value: Any = {"content": [{"a": [1]}]}
    made = value_of(given_value)
    made["content"][0]["a"].append(2)
    assert given_value == {"content": [{"a": [1]}]}


def test_a_call_of_each_form_is_known():
    assert parse_call({"type": "tool_use", "id": "a", "name": "f", "input": {}})[0] == "messages"
    assert parse_call({"type": "function_call", "call_id": "a", "name": "f"})[0] == "responses"
    assert parse_call({"id": "a", "function": {"name": "f"}})[:3] == ("chat", "a", "f")
