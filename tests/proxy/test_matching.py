"""How a request is known again: by what it says, whatever moves in it, and by nobody else's key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from reverie.interception import (
    MOST,
    SIZE,
    Caller,
    Decisions,
    InterceptedRequest,
    MirrorPosition,
    OutgoingPlan,
    RequestTails,
    ResultLimits,
    ScanCache,
    as_value,
    chain_seed,
    content,
    content_digest,
    credential,
    digest,
    extend_chain,
    normal,
    of_text,
    plan,
    position_line,
    reminder_line,
    result_line,
    rule_line,
    scan_body,
    session_line,
)
from reverie.transcript import dump
from tests.proxy.clients import assistant, gave, text, user

pytestmark = [pytest.mark.spec("1.matching")]
MARK = {"cache_control": {"type": "ephemeral"}}


# --- what a block says


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (text("a"), {**text("a"), **MARK}),
        (text("a"), {"type": "input_text", "text": "a"}),
        ({"type": "output_text", "text": "a", "annotations": []}, {"text": "a", "type": "text"}),
        ({"type": "x", "b": 1, "a": 2}, {"a": 2, "b": 1, "type": "x"}),
        ({**gave("t", "a"), "is_error": False}, gave("t", [text("a")])),
        (gave("t", None), {"type": "tool_result", "tool_use_id": "t"}),
    ],
)
def test_blocks_that_say_the_same_have_one_digest(one: Any, other: Any) -> None:
    assert digest(one) == digest(other)
    assert len(digest(one)) == SIZE


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (text("a"), text("b")),
        (text("a"), {"type": "thinking", "text": "a"}),
        (gave("t", "a"), {**gave("t", "a"), "is_error": True}),
        (gave("t", "a"), gave("u", "a")),
        ({"type": "x", "of": [1, {"text": "a"}]}, {"type": "x", "of": [1, {"text": "b"}]}),
    ],
)
def test_blocks_that_say_something_else_have_another(one: Any, other: Any) -> None:
    assert digest(one) != digest(other)


def test_marks_are_left_out_however_deep_they_stand() -> None:
    nested = {"type": "x", "of": [{"type": "text", "text": "a", **MARK}, [{"k": 1, **MARK}]]}
    assert dump(normal(nested)) == '{"of":[{"type":"text","text":"a"},[{"k":1}]],"type":"x"}'


def test_the_content_of_a_result_is_known_by_what_it_holds() -> None:
    assert content("a") == [text("a")]
    assert content(None) == []
    assert content([{**text("a"), **MARK}]) == content("a")
    assert content_digest("a") == content_digest([{"type": "input_text", "text": "a"}])
    assert content_digest("a") != content_digest("b")
    assert len(bytes.fromhex(content_digest("a"))) == SIZE


def test_a_chain_has_every_block_its_role_and_whose_it_is() -> None:
    begin, block = chain_seed("key"), digest(text("a"))
    other = digest(text("b"))
    chains = {
        extend_chain(begin, "user", block),
        extend_chain(begin, "assistant", block),
        extend_chain(begin, "user", other),
        extend_chain(chain_seed("another"), "user", block),
        extend_chain(extend_chain(begin, "user", block), "user", other),
        extend_chain(extend_chain(begin, "user", other), "user", block),
    }
    assert len(chains) == 6
    assert chain_seed("key") == begin != of_text("key")


def test_who_asks_is_told_by_either_header() -> None:
    assert credential({"x-api-key": "a", "authorization": "b"}) == "a"
    assert credential({"authorization": "b"}) == "b"
    assert credential({}) == ""
    assert as_value([1]) == {}
    assert as_value({"a": 1}) == {"a": 1}


# --- what was decided


def decided(*lines: Any) -> Decisions:
    found = Decisions()
    for line in lines:
        found.take(line)
    return found


def test_the_first_decision_about_a_thing_stands() -> None:
    found = decided(
        result_line("t", "c", "k", "one"),
        result_line("t", "c", "k", "two"),
        rule_line("t", "c", "k", "rule"),
        reminder_line("th", "ch", "first"),
        reminder_line("th", "ch", "second"),
        {"kind": "of a later version"},
    )
    assert found.results == {("t", "c", "k"): "one"}
    assert found.rules == {("t", "c", "k"): "rule"}
    assert found.reminder("th", "ch", "") == "first"


def test_where_a_shadow_is_and_whose_a_chain_is_the_newest_says() -> None:
    place, later = MirrorPosition("s", "e1"), MirrorPosition("s", "e2")
    found = decided(
        position_line("one", "ch", place, spoken=True),
        position_line("two", "ch", later, spoken=False),
        position_line("one", "ch", later, spoken=False),
        session_line("one", "s", "/p"),
        session_line("one", "s2", "/q"),
    )
    assert found.positions == {"one": {"ch": later}, "two": {"ch": later}}
    assert found.owners == {"ch": "one"}
    assert found.sessions == {"one": ("s2", "/q")}


def test_a_reminder_is_ones_own_or_the_parents() -> None:
    found = decided(reminder_line("parent", "ch", "theirs"))
    assert found.reminder("me", "ch", "parent") == "theirs"
    assert found.reminder("me", "ch", "") is None
    assert found.reminder("me", "other", "parent") is None
    found.take(reminder_line("me", "ch", ""))
    assert found.reminder("me", "ch", "parent") == ""


def test_a_parent_is_of_the_same_project_and_told_by_the_deepest_chain() -> None:
    place = MirrorPosition("s", "e")
    found = decided(
        position_line("deep", "c2", place, spoken=True),
        position_line("flat", "c1", place, spoken=True),
        session_line("deep", "s", "/p"),
    )
    assert found.parent("me", iter(["c3", "c2", "c1"]), "/p") == "deep"
    assert found.parent("me", iter(["c2"]), "/q") == "me"
    assert found.parent("me", iter(["c1"]), "/q") == "flat"
    assert found.parent("me", iter(["c9"]), "/p") == "me"


def test_a_parents_reminder_stays_off_fresh_words() -> None:
    """A fork shows what its parent was reminded of before, and gets its own for what is new."""
    fork = asked(["said before", "answered", "said before"], session="fork")
    first, answered, fresh = (part.chain.hex() for part in fork.body.parts)
    found = decided(
        position_line("parent", answered, MirrorPosition("s", "e"), spoken=True),
        reminder_line("parent", first, "an old reminder"),
        reminder_line("parent", fresh, "a reminder of the parent's"),
    )
    made = plan(fork, found, ResultLimits(8_000))
    assert made.decided == ((0, "", "an old reminder"),)
    assert made.inherited == ((first, "an old reminder"),)


# --- whether a request goes on from the last


def asked(texts: Sequence[str], session: str = "s", kind: Any = "main") -> InterceptedRequest:
    messages = [(user, assistant)[n % 2](one) for n, one in enumerate(texts)]
    body = scan_body(
        dump({"model": "m", "messages": messages}), "messages", b"seed", "t", ScanCache()
    )
    return InterceptedRequest(body, Caller(b"seed", session), kind)


def made(*decided: tuple[int, str, str]) -> OutgoingPlan:
    return OutgoingPlan(tuple(decided), 0, 0, 0, (), (), (), None, ())


def test_a_request_follows_the_last_one_that_it_holds() -> None:
    ends = RequestTails()
    assert ends.followed(asked(["a"]), made()).known == 0
    assert ends.goes_on(asked(["a", "b", "c"]))
    assert not ends.goes_on(asked(["x", "b", "c"]))
    assert ends.followed(asked(["a", "b", "c"]), made()).known == 1
    found = ends.followed(asked(["a", "b", "c", "d", "e"]), made())
    assert (found.known, found.broken, found.left) == (3, False, False)


def test_what_was_decided_otherwise_is_a_break_of_ours() -> None:
    ends = RequestTails()
    ends.followed(asked(["a", "b", "c"]), made((2, "", "reminder")))
    same = ends.followed(asked(["a", "b", "c", "d", "e"]), made((2, "", "reminder"), (4, "", "x")))
    assert (same.known, same.broken) == (3, False)
    other = ends.followed(asked(["a", "b", "c", "d", "e", "f", "g"]), made((2, "", "changed")))
    assert (other.known, other.broken) == (5, True)


def test_what_is_decided_behind_the_last_end_is_no_break() -> None:
    ends = RequestTails()
    ends.followed(asked(["a"]), made())
    found = ends.followed(asked(["a", "b"]), made((1, "", "new")))
    assert (found.known, found.broken) == (1, False)


def test_what_the_client_left_is_told_and_a_compaction_is_no_history() -> None:
    ends = RequestTails()
    ends.followed(asked(["a"]), made())
    left = ends.followed(asked(["other"]), made())
    assert (left.known, left.left, left.broken) == (0, True, False)
    assert not ends.followed(asked(["fresh"], session=""), made()).left
    ends.followed(asked(["a", "b", "sum up"], kind="compaction"), made())
    assert ends.followed(asked(["a", "b", "sum up", "d", "e"]), made()).known == 1


def test_only_the_newest_ends_are_remembered() -> None:
    assert MOST > 1_000
    ends = RequestTails(2)
    for one in ("a", "b", "c"):
        ends.followed(asked([one]), made())
    assert [ends.goes_on(asked([one, "x", "y"])) for one in "abc"] == [False, True, True]
