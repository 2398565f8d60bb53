"""Cache breaks: silent where nothing broke, and by name where something did."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.settings import Settings
from reverie.text import first_byte
from reverie.transcript import (
    HeadSet,
    Item,
    Mark,
    Sent,
    SentBlock,
    Trail,
    Usage,
    block_of,
    message,
    text_block,
)
from reverie.wire import CacheBreak, CacheBreakDetector, Request, compare_requests, diagnose_break

pytestmark = [pytest.mark.spec("14"), pytest.mark.spec("B13")]

HEAD = HeadSet(
    "m1",
    '[{"type":"text","text":"You help."},{"type":"text","text":"Be kind."}]',
    '[{"name":"Read","input_schema":{}},{"name":"Bash","input_schema":{}}]',
    "[]",
    '{"max_tokens":9,"betas":["one-2025","two-2025"],"thinking":{"type":"adaptive"}}',
)
MARKS = (Mark("system", 1, "1h"), Mark("messages", 0, "5m"), Mark("messages", 2, "5m"))
TEXTS = ("fix the test", "I look at it", "thanks, go on")


def request(head: HeadSet = HEAD, *texts: str, marks: tuple[Mark, ...] = MARKS) -> Request:
    trail: list = []
    for n, text in enumerate(texts or TEXTS):
        role = "assistant" if n % 2 else "user"
        item = Item(f"e{n}", role, (SentBlock(text_block(text), f"e{n}", 0),))
        trail.append(message([item], trail[-1] if trail else None))
    return Request(head, Trail(trail), (), marks)


def sent_of(one: Request) -> Sent:
    return Sent("main", "e2", one.parts(), one.marks)


def second(
    after: Request | Sent,
    read: int,
    *,
    before: Request | Sent | None = None,
    idle: float = 10.0,
    moved: tuple[str, ...] = (),
    diagnostics: str = "null",
    first: Usage | None = None,
    settings: Settings | None = None,
) -> CacheBreak | None:
    """The verdict on a second request that read so much, when the first cached 40,000."""
    watch = CacheBreakDetector(settings or Settings()).sent(before or request(), 0.0)
    watch, nothing = watch.answered(first or Usage(100, 10_000, 30_000, 50, 8_000))
    assert nothing is None
    return watch.sent(after, idle, moved).answered(Usage(100, read, 0, 5), diagnostics)[1]


def broken(*given: Any, **more: Any) -> CacheBreak:
    found = second(*given, **more)
    assert found is not None
    return found


def test_a_full_read_is_silent():
    assert second(request(HEAD, *TEXTS, "more"), 40_000) is None
    assert second(request(HEAD, *TEXTS, "more"), 45_000) is None


@pytest.mark.parametrize(
    ("cached", "read", "broken"),
    [
        (10_000, 8_000, True),  # 2,000 and 20 %
        (10_000, 8_001, False),  # one token short of 2,000
        (40_000, 38_000, True),  # 2,000 and exactly 5 %
        (40_001, 38_001, False),  # 2,000 and a little less than 5 %
        (140_000, 133_000, True),
        (140_000, 133_001, False),
        (2_000, 0, True),
        (1_999, 0, False),
        (0, 0, False),
    ],
)
def test_thresholds_at_their_edges(cached: int, read: int, broken: bool):
    found = second(request(), read, first=Usage(1, 0, cached, 1))
    assert (found is not None) == broken
    if found:
        assert (found.expected, found.read, found.lost) == (cached, read, cached - read)


def test_thresholds_are_settings():
    strict = Settings(cache_break_share=0.5, cache_break_tokens=10)
    assert second(request(), 20_001, settings=strict) is None
    assert second(request(), 20_000, settings=strict) is not None
    assert second(request(), 40_000, settings=Settings(cache_break_tokens=0)) is None


def changed(**parts: str) -> Request:
    return request(replace(HEAD, **parts), *TEXTS, "more")


CHANGES = [
    (changed(model="m2"), "model", "the model", 0, 1),
    (
        changed(system=HEAD.system.replace("kind", "curt")),
        "system",
        "system block 1",
        1,
        len('{"type":"text","text":"Be '),
    ),
    (
        changed(tools=HEAD.tools.replace('"Bash","input_schema":{}', '"Bash","input_schema":[]')),
        "tools",
        "tool Bash",
        1,
        len('{"name":"Bash","input_schema":'),
    ),
    (changed(tools=HEAD.tools[:-1] + ',{"name":"New"}]'), "tools", "tool New", 2, 0),
    (changed(tools='[{"name":"Bash","input_schema":{}}]'), "tools", "tool Read", 0, 9),
    (
        changed(options=HEAD.options.replace("two-2025", "two-2026")),
        "options",
        "betas",
        0,
        len('["one-2025","two-202'),
    ),
    (changed(options='{"max_tokens":9}'), "options", "betas", 0, 0),
    (
        request(HEAD, "fix the tent", *TEXTS[1:], "more"),
        "messages",
        "user message 0, block 0 (text)",
        0,
        len('{"type":"text","text":"fix the te'),
    ),
    (request(HEAD, *TEXTS[:2]), "messages", "user message 2, block 0 (text)", 2, 0),
]


@pytest.mark.parametrize(("after", "part", "name", "block", "byte"), CHANGES)
def test_a_change_is_named_to_the_byte(after: Request, part: str, name: str, block: int, byte: int):
    found = broken(after, 0)
    assert found.cause == "changed"
    assert found.part == part
    assert found.change is not None
    assert found.change.name == name
    place = found.change.place
    assert place is not None
    assert (place.part, place.block, place.byte) == (part, block, byte)
    assert place.before != place.after
    assert f"{name} changed at byte {byte}" in found.explanation
    assert found.explanation.startswith("Only 0 of 40,000 cached tokens were read: ")
    assert found.explanation.endswith(".")


@pytest.mark.parametrize(("after", "part"), [(c[0], c[1]) for c in CHANGES])
def test_a_resumed_session_names_the_part(after: Request, part: str):
    """The request before is known by its digests alone."""
    found = broken(after, 0, before=sent_of(request()))
    assert (found.cause, found.part) == ("changed", part)
    assert found.change is not None
    assert found.change.place is None
    assert f"{part} changed" in found.explanation


def test_digests_alone_do_not_pretend_to_know_the_messages():
    before, after = sent_of(request()), sent_of(request(HEAD, "other", *TEXTS))
    assert compare_requests(before, before) == (None, True)
    found = broken(after, 0, before=before)
    assert (found.cause, found.part) == ("unknown", "")
    assert "cannot be compared" in found.explanation
    said = broken(
        after, 0, before=before, diagnostics='{"cache_miss_reason":{"type":"messages_changed"}}'
    )
    assert (said.cause, said.part) == ("changed", "messages")
    shorter = broken(sent_of(request(HEAD, *TEXTS[:2])), 0, before=before)
    assert shorter.part == "messages"


def test_options_outside_the_prefix_are_not_blamed():
    after = changed(options=HEAD.options.replace('"max_tokens":9', '"max_tokens":10'))
    found = broken(after, 0)
    assert found.cause == "provider"
    assert "nothing that was sent had changed" in found.explanation


@pytest.mark.parametrize(
    ("idle", "read", "cause", "lifetime"),
    [
        (300.0, 8_000, "provider", ""),  # exactly at the lifetime it is still alive
        (301.0, 8_000, "expired", "5m"),
        (301.0, 0, "provider", "5m"),  # what stands for an hour should have been read
        (3600.0, 8_000, "expired", "5m"),
        (3601.0, 0, "expired", "1h"),
        (-50.0, 0, "provider", ""),  # a clock that went back proves nothing
    ],
)
def test_a_lifetime_that_ran_out(idle: float, read: int, cause: str, lifetime: str):
    more = request(HEAD, *TEXTS, "more")
    for before in (request(), sent_of(request())):
        found = broken(more, read, before=before, idle=idle)
        assert (found.cause, found.expired) == (cause, lifetime)
        assert (f"the {lifetime} lifetime ran out" in found.explanation) == bool(lifetime)


@pytest.mark.parametrize(("read", "cause"), [(8_000, "expired"), (0, "provider")])
def test_what_stands_for_an_hour_is_remembered_over_rounds(read: int, cause: str):
    watch, _ = CacheBreakDetector().sent(request(), 0.0).answered(Usage(0, 0, 40_000, 0, 8_000))
    watch, _ = watch.sent(request(HEAD, *TEXTS, "a"), 9.0).answered(Usage(0, 40_000, 500))
    found = watch.sent(request(HEAD, *TEXTS, "a", "b"), 400.0).answered(Usage(9, read))[1]
    assert found is not None
    assert found.cause == cause


def test_lifetimes_are_settings_and_unmarked_requests_have_none():
    more = request(HEAD, *TEXTS, "more")
    longer = Settings(cache_short_minutes=10)
    for found in (
        second(more, 8_000, idle=400.0, settings=longer),
        second(more, 0, before=request(marks=()), idle=90_000.0),
    ):
        assert found is not None
        assert (found.cause, found.expired) == ("provider", "")


def test_a_change_after_a_pause_names_both():
    found = broken(changed(model="m2"), 0, idle=4_000.0)
    assert found.cause == "changed"
    assert "the model changed" in found.explanation
    assert "the 1h lifetime ran out (66 min without a request)" in found.explanation


@pytest.mark.parametrize(
    "reason", ["compaction", "cleared", "stored", "rewound", "tools changed by /mcp", "head: x"]
)
def test_an_announced_change_is_silent_and_sets_the_baseline(reason: str):
    assert second(changed(model="m2"), 0, moved=(reason,)) is None
    watch, _ = CacheBreakDetector().sent(request(), 0.0).answered(Usage(0, 0, 40_000))
    watch, found = watch.sent(changed(model="m2"), 1.0, (reason,)).answered(Usage(0, 0, 12_000))
    assert found is None
    _, found = watch.sent(changed(model="m2"), 2.0).answered(Usage(0, 12_000, 0))
    assert found is None
    _, found = watch.sent(changed(model="m2"), 2.0).answered(Usage(12_000))
    assert found is not None
    assert found.expected == 12_000


def test_a_head_without_a_reason_is_no_announcement():
    found = broken(changed(model="m2"), 0, moved=("head",))
    assert found.part == "model"


def test_one_change_is_one_break():
    watch, _ = CacheBreakDetector().sent(request(), 0.0).answered(Usage(0, 0, 40_000))
    watch, found = watch.sent(changed(model="m2"), 1.0).answered(Usage(0, 0, 40_000))
    assert found is not None
    watch, found = watch.sent(changed(model="m2"), 2.0).answered(Usage(0, 40_000, 0))
    assert found is None


def test_an_announcement_outlives_a_request_without_an_answer():
    watch, _ = CacheBreakDetector().sent(request(), 0.0).answered(Usage(0, 0, 40_000))
    watch = watch.sent(changed(model="m2"), 1.0, ("compaction",))  # never answered
    assert watch.sent(changed(model="m2"), 2.0).answered(Usage(0, 0, 9_000))[1] is None


def test_edits_the_provider_applied_are_announced_once():
    applied = '[{"type":"clear_tool_uses_20250919","cleared_input_tokens":20000}]'
    watch, _ = CacheBreakDetector().sent(request(), 0.0).answered(Usage(0, 0, 40_000))
    watch, found = watch.sent(request(), 1.0).answered(Usage(0, 5_000, 15_000), "null", applied)
    assert found is None
    watch, found = watch.sent(request(), 2.0).answered(Usage(0, 5_000, 15_000), "null", applied)
    assert found is not None  # the same edits again explain nothing
    assert found.expected == 20_000


def test_an_answer_without_usage_keeps_what_is_known():
    watch, _ = CacheBreakDetector().sent(request(), 0.0).answered(Usage(0, 0, 40_000))
    watch, found = watch.sent(request(HEAD, *TEXTS, "a"), 290.0).answered(None)
    assert found is None
    more = request(HEAD, *TEXTS, "a", "b")
    _, found = watch.sent(more, 580.0).answered(Usage(40_000))
    assert found is not None
    assert (found.cause, found.expected, found.idle) == ("provider", 40_000, 290.0)
    watch, _ = watch.sent(more, 581.0, ("compaction",)).answered(None)
    assert watch.sent(more, 582.0).answered(Usage(40_000))[1] is None


def test_an_answer_nobody_asked_for_changes_nothing():
    watch = CacheBreakDetector()
    assert watch.answered(Usage(1, 2, 3, 4)) == (watch, None)


def test_a_fork_is_watched_from_its_parent_on():
    """A fork's first request reads its parent's prefix, or that is a break."""
    parent, _ = CacheBreakDetector().sent(request(), 0.0).answered(Usage(0, 0, 40_000))
    child = request(HEAD, *TEXTS, "write the notes")
    assert parent.sent(child, 1.0).answered(Usage(50, 40_000))[1] is None
    found = parent.sent(replace(child, source="session_memory"), 1.0).answered(Usage(40_050))[1]
    assert found is not None
    assert found.source == "session_memory"


# --- the provider's word


@pytest.mark.parametrize(
    ("text", "reason", "part", "tokens"),
    [
        (
            '{"cache_miss_reason":{"type":"system_changed","cache_missed_input_tokens":39000}}',
            "system_changed",
            "system",
            39_000,
        ),
        ('{"cache_miss_reason":{"type":"unavailable"}}', "unavailable", "", None),
        (
            '{"type":"cache_miss","reason":"reasoning_effort_changed","cache_missed_tokens":7}',
            "reasoning_effort_changed",
            "options",
            7,
        ),
        ('{"type":"comparison_response_not_found"}', "comparison_response_not_found", "", None),
        ('{"cache_miss_reason":{"type":"new_words","x":1e3}}', "new_words", "", None),
    ],
)
def test_the_providers_diagnosis(text: str, reason: str, part: str, tokens: int | None):
    found = diagnose_break(text)
    assert found is not None
    assert (found.reason, found.part, found.tokens) == (reason, part, tokens)
    joined = broken(changed(model="m2"), 0, diagnostics=text)
    assert joined.diagnosis == found
    assert joined.part == "model"  # what was seen here comes first
    assert "the model changed at byte 1" in joined.explanation
    assert f"the provider says {reason}" in joined.explanation


@pytest.mark.parametrize(
    "text",
    [
        *("null", "", "{", "[]", "7", '{"cache_miss_reason":null}', '{"type":"cache_hit"}'),
        *("[" * 9999, '{"type":7}', '{"reason":[]}', '"\\ud800"'),
    ],
)
def test_no_diagnosis(text: str):
    assert diagnose_break(text) is None


@given(st.text(), st.text())
def test_a_word_of_the_provider_never_raises(a: str, b: str):
    diagnose_break(a)
    diagnose_break(json.dumps({"cache_miss_reason": {"type": a, b: b}}))


@given(st.binary(), st.binary(), st.binary())
def test_first_byte(common: bytes, a: bytes, b: bytes):
    at = first_byte(common + a, common + b)
    one, two = common + a, common + b
    assert at >= len(common)
    assert one[:at] == two[:at]
    assert one[at : at + 1] != two[at : at + 1] or at == min(len(one), len(two))


def test_odd_blocks_have_names_too():
    strange = block_of({"zeta": 1})
    one = message([Item("e0", "user", (SentBlock(strange, "e0", 0),))], None)
    found, _ = compare_requests(Request(HEAD, Trail([one]), ()), request())
    assert found is not None
    assert found.name == "user message 0, block 0 (no type)"
