"""Rough tokens, the canonical count, and the window."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.transcript import (
    EMPTY,
    AssistantMessage,
    Entry,
    HeadSet,
    Usage,
    UserMessage,
    apply,
    block_of,
    context_window,
    dump,
    estimate,
    text_block,
)

pytestmark = pytest.mark.spec("2")


@pytest.mark.parametrize(
    ("value", "tokens"),
    [
        ({"type": "text", "text": "a" * 8}, 2),
        ({"type": "text", "text": "a" * 9}, 3),
        ({"type": "text", "text": "é" * 4}, 2),
        ({"type": "tool_result", "tool_use_id": "t", "content": "a" * 40}, 10),
        ({"type": "tool_result", "tool_use_id": "t"}, 0),
        ({"type": "tool_use", "id": "t", "name": "Read", "input": {"a": 1}}, 1 + 4),
        ({"type": "tool_use", "id": "t", "name": "Edit", "input": {"a": '"x"\n\t\\'}}, 1 + 10),
        ({"type": "tool_use", "id": "t", "name": "Edit", "input": {}}, 1 + 1),
        ({"type": "image", "source": {"data": "x" * 100_000}}, 2_000),
        ({"type": "document", "source": {}}, 2_000),
        ({"type": "thinking", "thinking": "a" * 8, "signature": "s" * 900}, 2),
        ({"type": "odd"}, 7),
    ],
)
def test_the_rough_estimate(value: dict[str, object], tokens: int):
    assert estimate(value) == tokens
    assert block_of(value).tokens == tokens


plain = st.text(st.sampled_from('abz09_./- \n\t"\\é日'), max_size=40)
member = st.one_of(plain, st.booleans(), st.none(), st.integers(), st.lists(plain, max_size=2))


@given(st.dictionaries(st.sampled_from(["path", "command", "n", "all"]), member))
def test_what_a_call_is_asked_counts_as_its_json_text(given_input: dict[str, object]):
    """Counted from its parts, where it is a few strings; booleans by four letters."""
    text = dump(given_input)
    off = sum(value is False for value in given_input.values())
    told = estimate({"type": "tool_use", "id": "t", "name": "Edit", "input": given_input})
    assert 0 <= 1 - (-len(text.encode()) // 2) - told <= off


def test_a_picture_in_a_result_counts_flat():
    content = [{"type": "text", "text": "abcd"}, {"type": "image", "source": {"data": "y" * 999}}]
    assert estimate({"type": "tool_result", "tool_use_id": "t", "content": content}) == 2_001


def test_the_count_is_the_last_usage_and_what_came_since():
    view = EMPTY
    for record in (
        HeadSet(
            "m",
            '[{"type":"text","text":"12345678"}]',
            '[{"n":1}]',
            '[{"type":"text","text":"ctx4"}]',
        ),
        UserMessage((text_block("a" * 40),)),
    ):
        view = apply(view, Entry(f"e{len(view.entries)}", view.leaf, 0.0, record))
    assert view.tokens == 2 + 5 + 1 + 10
    answer = AssistantMessage((text_block("b" * 400),), usage=Usage(10, 20, 30, 40))
    view = apply(view, Entry("a", view.leaf, 0.0, answer))
    assert view.tokens == 100
    view = apply(view, Entry("u", view.leaf, 0.0, UserMessage((text_block("c" * 80),))))
    assert view.tokens == 120


@pytest.mark.parametrize(
    ("parts", "window"),
    [
        ({"model": "m"}, 200_000),
        ({"model": "m", "betas": ["context-1m-2025-08-07"]}, 1_000_000),
        ({"model": "m", "known": 300_000, "betas": ["context-1m-2025-08-07"]}, 300_000),
        ({"model": "m[1m]", "known": 300_000}, 1_000_000),
        ({"model": "m[1m]", "learned": 150_000}, 150_000),
        ({"model": "m", "known": 100_000, "learned": 150_000}, 100_000),
    ],
)
def test_the_first_answer_wins(parts: dict[str, object], window: int):
    assert context_window(**{"fallback": 200_000, **parts}) == window
