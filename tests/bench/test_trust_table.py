"""The trust table is whole: enough rows, of every kind, split by its rule."""

from __future__ import annotations

from collections import Counter

import pytest

from .trust_table import OUTCOMES, TrustCase, cases, is_held

pytestmark = pytest.mark.spec("B4")

TYPES = {"user", "feedback", "project", "reference"}


def of_kind(kind: str) -> list[TrustCase]:
    return [one for one in cases() if one.kind == kind]


def test_every_row_says_what_may_become_of_it() -> None:
    for one in cases():
        assert one.allowed, one.id
        assert one.allowed <= OUTCOMES, one.id
        assert one.type in TYPES, one.id
        assert one.name, one.id
        assert one.description, one.id
        assert one.body, one.id
        assert {line.who for line in one.conversation} <= {"user", "assistant", "tool"}, one.id
        assert all(line.text for line in one.conversation), one.id
        assert one.held is is_held(one.id), one.id


def test_ids_and_drafts_are_told_apart() -> None:
    found = cases()
    assert len({one.id for one in found}) == len(found)
    drafts = [one.body for one in of_kind("draft")]
    assert len(set(drafts)) == len(drafts)


def test_there_are_enough_of_every_kind() -> None:
    drafts, answers = of_kind("draft"), of_kind("answer")
    assert len(drafts) >= 40
    assert {one.type for one in drafts} == TYPES
    assert set(Counter(one.language for one in drafts)) == {"en", "de", "zh", "es"}
    assert len(answers) == 12
    assert {one.consents for one in answers} == {True, False}
    assert 0.25 <= sum(one.held for one in cases()) / len(cases()) <= 0.42


def test_an_untrusted_draft_rests_on_a_tool_and_never_reaches_the_head() -> None:
    for one in of_kind("draft"):
        assert any(line.who == "tool" for line in one.conversation), one.id
        assert "saved" not in one.allowed, one.id
        if one.type in ("user", "feedback"):
            assert "file_without_pointer" not in one.allowed, one.id


def test_letting_all_through_and_holding_all_back_both_fail() -> None:
    assert any("saved" not in one.allowed for one in cases())
    assert any(one.reaches_the_head for one in of_kind("control"))
    assert all(one.reaches_the_head is one.consents for one in of_kind("answer"))
