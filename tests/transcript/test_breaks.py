"""Cache breaks: silent where nothing broke, and by name where something did."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.settings import Settings
from reverie.transcript.blocks import block_of, text_block
from reverie.transcript.breaks import (
    Break,
    Watch,
    compared,
    diagnosed,
    first_byte,
    watch_entries,
)
from reverie.transcript.codec import blobs, decode, encode
from reverie.transcript.messages import Item, Piece, message
from reverie.transcript.records import (
    AssistantMessage,
    Entry,
    HeadSet,
    Mark,
    Replaced,
    ResultDecided,
    Rewound,
    Sent,
    Stand,
    Started,
    Usage,
    UserMessage,
)
from reverie.transcript.request import Request, chain_at, render
from reverie.transcript.trail import Trail
from reverie.transcript.view import View, apply, branch

from .histories import Builder, build, histories

pytestmark = [pytest.mark.spec("14"), pytest.mark.spec("B13")]

SECONDS = {"5m": 300.0, "1h": 3600.0}
PER_TOKEN = 500  # the builders' blocks are a few tokens; breaks begin at two thousand


@dataclass
class Cache:
    """A prompt cache that keeps what it promises: prefixes at marks, for their lifetimes."""

    held: dict[bytes | str, tuple[float, float]] = field(default_factory=dict)

    def answer(self, request: Request, at: float) -> Usage:
        places = [(m, self.key(request, m), self.size(request, m)) for m in request.marks]
        total = self.head(request) + sum(m.tokens for m in request.messages()) * PER_TOKEN
        read = max((size for size, key in self.prefixes(request) if self.alive(key, at)), default=0)
        written = max([0, *(size for _, _, size in places if size > read)])
        long = max([0, *(size for m, _, size in places if size > read and m.ttl == "1h")])
        for mark, key, _ in places:
            self.held[key] = (at, SECONDS[mark.ttl])
        new, new_long = max(0, written - read), max(0, long - read)
        return Usage(total - read - new, read, new, 5, new_long)

    def alive(self, key: bytes | str, at: float) -> bool:
        since, lifetime = self.held.get(key, (at, -1.0))
        return at - since <= lifetime

    def prefixes(self, request: Request) -> Iterator[tuple[int, bytes | str]]:
        for mark in request.marks:
            first = max(0, mark.block - 19) if mark.part == "messages" else mark.block
            for at in range(first, mark.block + 1):
                one = replace(mark, block=at)
                yield self.size(request, one), self.key(request, one)

    def head(self, request: Request) -> int:
        return (len(request.head.tools) + len(request.head.system)) * PER_TOKEN // 4

    def key(self, request: Request, mark: Mark) -> bytes | str:
        head = repr(replace(request.head, context="[]", reason=""))
        if mark.part != "messages":
            return head
        return head.encode() + chain_at(request, mark.block + 1)

    def size(self, request: Request, mark: Mark) -> int:
        blocks = [p.block.tokens for m in request.messages() for p in m.pieces]
        count = mark.block + 1 if mark.part == "messages" else 0
        return self.head(request) + sum(blocks[:count]) * PER_TOKEN


def billed(entries: list[Entry]) -> list[Entry]:
    """The same transcript with the usage that the cache above would have reported."""
    cache, out = Cache(), []
    usage: Usage | None = None
    view = View()
    for entry in entries:
        record = entry.record
        if isinstance(record, Sent):
            usage = cache.answer(rendered(view, record), entry.at)
        elif isinstance(record, AssistantMessage):
            record = replace(record, usage=usage)
            usage = None
        out.append(replace(entry, record=record))
        view = apply(view, out[-1])
    return out


def rendered(view: View, record: Sent) -> Request:
    request = Request(view.head or HeadSet(""), view.closed, view.tail(), record.marks)
    assert request.parts() == record.parts
    return request


# --- one conversation, told by hand


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
        item = Item(f"e{n}", role, (Piece(text_block(text), f"e{n}", 0),))
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
) -> Break | None:
    """The verdict on a second request that read so much, when the first cached 40,000."""
    watch = Watch(settings or Settings()).sent(before or request(), 0.0)
    watch, nothing = watch.answered(first or Usage(100, 10_000, 30_000, 50, 8_000))
    assert nothing is None
    return watch.sent(after, idle, moved).answered(Usage(100, read, 0, 5), diagnostics)[1]


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
    found = second(after, 0)
    assert found is not None
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
    found = second(after, 0, before=sent_of(request()))
    assert found is not None
    assert (found.cause, found.part) == ("changed", part)
    assert found.change is not None
    assert found.change.place is None
    assert f"{part} changed" in found.explanation


def test_digests_alone_do_not_pretend_to_know_the_messages():
    before, after = sent_of(request()), sent_of(request(HEAD, "other", *TEXTS))
    assert compared(before, before) == (None, True)
    found = second(after, 0, before=before)
    assert found is not None
    assert (found.cause, found.part) == ("unknown", "")
    assert "cannot be compared" in found.explanation
    said = second(
        after, 0, before=before, diagnostics='{"cache_miss_reason":{"type":"messages_changed"}}'
    )
    assert said is not None
    assert (said.cause, said.part) == ("changed", "messages")
    shorter = second(sent_of(request(HEAD, *TEXTS[:2])), 0, before=before)
    assert shorter is not None
    assert shorter.part == "messages"


def test_options_outside_the_prefix_are_not_blamed():
    after = changed(options=HEAD.options.replace('"max_tokens":9', '"max_tokens":10'))
    found = second(after, 0)
    assert found is not None
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
        found = second(more, read, before=before, idle=idle)
        assert found is not None
        assert (found.cause, found.expired) == (cause, lifetime)
        assert (f"the {lifetime} lifetime ran out" in found.explanation) == bool(lifetime)


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
    found = second(changed(model="m2"), 0, idle=4_000.0)
    assert found is not None
    assert found.cause == "changed"
    assert "the model changed" in found.explanation
    assert "the 1h lifetime ran out (66 min without a request)" in found.explanation


@pytest.mark.parametrize(
    "reason", ["compaction", "cleared", "stored", "rewound", "tools changed by /mcp", "head: x"]
)
def test_an_announced_change_is_silent_and_sets_the_baseline(reason: str):
    assert second(changed(model="m2"), 0, moved=(reason,)) is None
    watch, _ = Watch().sent(request(), 0.0).answered(Usage(0, 0, 40_000))
    watch, found = watch.sent(changed(model="m2"), 1.0, (reason,)).answered(Usage(0, 0, 12_000))
    assert found is None
    _, found = watch.sent(changed(model="m2"), 2.0).answered(Usage(0, 12_000, 0))
    assert found is None
    _, found = watch.sent(changed(model="m2"), 2.0).answered(Usage(12_000))
    assert found is not None
    assert found.expected == 12_000


def test_a_head_without_a_reason_is_no_announcement():
    found = second(changed(model="m2"), 0, moved=("head",))
    assert found is not None
    assert found.part == "model"


def test_one_change_is_one_break():
    watch, _ = Watch().sent(request(), 0.0).answered(Usage(0, 0, 40_000))
    watch, found = watch.sent(changed(model="m2"), 1.0).answered(Usage(0, 0, 40_000))
    assert found is not None
    watch, found = watch.sent(changed(model="m2"), 2.0).answered(Usage(0, 40_000, 0))
    assert found is None


def test_an_announcement_outlives_a_request_without_an_answer():
    watch, _ = Watch().sent(request(), 0.0).answered(Usage(0, 0, 40_000))
    watch = watch.sent(changed(model="m2"), 1.0, ("compaction",))  # never answered
    assert watch.sent(changed(model="m2"), 2.0).answered(Usage(0, 0, 9_000))[1] is None


def test_edits_the_provider_applied_are_announced_once():
    applied = '[{"type":"clear_tool_uses_20250919","cleared_input_tokens":20000}]'
    watch, _ = Watch().sent(request(), 0.0).answered(Usage(0, 0, 40_000))
    watch, found = watch.sent(request(), 1.0).answered(Usage(0, 5_000, 15_000), "null", applied)
    assert found is None
    watch, found = watch.sent(request(), 2.0).answered(Usage(0, 5_000, 15_000), "null", applied)
    assert found is not None  # the same edits again explain nothing
    assert found.expected == 20_000


def test_an_answer_without_usage_keeps_what_is_known():
    watch, _ = Watch().sent(request(), 0.0).answered(Usage(0, 0, 40_000))
    watch, found = watch.sent(request(HEAD, *TEXTS, "a"), 290.0).answered(None)
    assert found is None
    more = request(HEAD, *TEXTS, "a", "b")
    _, found = watch.sent(more, 580.0).answered(Usage(40_000))
    assert found is not None
    assert (found.cause, found.expected, found.idle) == ("provider", 40_000, 290.0)
    watch, _ = watch.sent(more, 581.0, ("compaction",)).answered(None)
    assert watch.sent(more, 582.0).answered(Usage(40_000))[1] is None


def test_an_answer_nobody_asked_for_changes_nothing():
    watch = Watch()
    assert watch.answered(Usage(1, 2, 3, 4)) == (watch, None)


def test_a_fork_is_watched_from_its_parent_on():
    """A fork's first request reads its parent's prefix, or that is a break."""
    parent, _ = Watch().sent(request(), 0.0).answered(Usage(0, 0, 40_000))
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
    found = diagnosed(text)
    assert found is not None
    assert (found.reason, found.part, found.tokens) == (reason, part, tokens)
    joined = second(changed(model="m2"), 0, diagnostics=text)
    assert joined is not None
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
    assert diagnosed(text) is None


@given(st.text(), st.text())
def test_a_word_of_the_provider_never_raises(a: str, b: str):
    diagnosed(a)
    diagnosed(json.dumps({"cache_miss_reason": {"type": a, b: b}}))


@given(st.binary(), st.binary(), st.binary())
def test_first_byte(common: bytes, a: bytes, b: bytes):
    at = first_byte(common + a, common + b)
    one, two = common + a, common + b
    assert at >= len(common)
    assert one[:at] == two[:at]
    assert one[at : at + 1] != two[at : at + 1] or at == min(len(one), len(two))


# --- recorded transcripts


@given(histories)
def test_silent_on_every_history_whose_changes_are_announced(steps):
    """Replacements, cleared results and rewinds among them: all say that they move."""
    steps = [s for s in steps if s[0] != "head"]
    built = build([("head", 0), *steps, ("send",), ("assistant", 0, 1)])
    assert watch_entries(billed(built.entries)) == []


@given(histories)
def test_a_head_changed_without_a_word_is_named(steps):
    """Whatever the history: each break names a part that did change, and the reads fell."""
    built = build([*steps, ("send",), ("assistant", 0, 1)])
    for found in watch_entries(billed(built.entries)):
        assert found.cause == "changed"
        assert found.part in ("model", "options", "tools", "system", "messages")
        assert found.change is not None
        assert found.change.place is not None
        assert found.lost >= 2_000


@given(histories)
def test_a_transcript_read_back_tells_the_same(steps):
    entries = billed(build([*steps, ("send",), ("assistant", 0, 1)]).entries)
    disk = {k: v for e in entries for k, v in blobs(e.record).items()}
    again = [decode(encode(e), disk.get) for e in entries]
    assert watch_entries(again) == watch_entries(entries)
    assert watch_entries([*again, *again]) == watch_entries(entries)


@given(histories, st.integers(0, 40))
def test_an_old_message_edited_behind_our_back_is_found(steps, number: int):
    """Sent once as it was, and once edited: the first differing block is the edited one."""
    quiet = ("user", "assistant", "results", "round", "attach")
    built = build([("user", 1), *(s for s in steps if s[0] in quiet), ("user", 2), ("send",)])
    before, _ = built.requests[-1]
    flat = [(m.role, p.block) for m in before.messages() for p in m.pieces]
    at = number % len(flat)
    after = edited(before, at)
    found, certain = compared(before, after)
    assert certain
    assert found is not None
    assert found.place is not None
    assert (found.part, found.place.block) == ("messages", at)
    assert compared(sent_of(before), after)[0] is not None
    assert compared(before, before) == (None, True)
    assert compared(sent_of(before), before) == (None, True)


def edited(request: Request, at: int) -> Request:
    out: list = []
    for one in request.messages():
        pieces = [
            replace(p, block=p.block.with_member("edited", "true")) if one.start + n == at else p
            for n, p in enumerate(one.pieces)
        ]
        item = Item("x", one.role, tuple(pieces))
        out.append(message([item], out[-1] if out else None))
    return replace(request, closed=Trail(out), tail=())


def talk(rounds: int) -> Builder:
    """A session of so many tool rounds, with a head, thirty seconds apart."""
    built = Builder()
    built.append(HEAD)
    built.do_user(1)
    for n in range(rounds):
        built.do_send()
        built.do_assistant(1 + n % 3, 2 * n + 2)
        built.do_results(0, 2)
    return built


def timed(entries: list[Entry], pause_before: int = -1, pause: float = 0.0) -> list[Entry]:
    times = [30.0 * n + (pause if n >= pause_before >= 0 else 0.0) for n in range(len(entries))]
    return [replace(e, at=t) for e, t in zip(entries, times, strict=True)]


def test_sixty_rounds_are_silent():
    entries = billed(timed(talk(60).entries))
    usages = [e.record.usage for e in entries if isinstance(e.record, AssistantMessage)]
    known = [u for u in usages if u]
    assert len(known) == 60
    assert all(b.read == a.read + a.written for a, b in pairwise(known))
    assert watch_entries(entries) == []


def ends(built: Builder) -> list[Entry]:
    built.do_send()
    built.do_assistant(0, 1)
    built.do_user(3)
    built.do_send()
    built.do_assistant(0, 1)
    return billed(timed(built.entries))


@pytest.mark.parametrize(
    ("head", "part"),
    [
        (replace(HEAD, model="m2"), "model"),
        (replace(HEAD, options='{"betas":[]}'), "options"),
        (replace(HEAD, tools="[]"), "tools"),
        (replace(HEAD, system=HEAD.system.replace("help", "hinder")), "system"),
        (replace(HEAD, context='[{"type":"text","text":"today"}]'), "messages"),
    ],
)
def test_a_recorded_head_change(head: HeadSet, part: str):
    built = talk(8)
    built.append(head)
    (found,) = watch_entries(ends(built))
    assert (found.cause, found.part) == ("changed", part)
    assert found.change is not None
    assert found.change.place is not None
    assert isinstance(built.view.entries[int(found.entry[1:])].record, AssistantMessage)
    said = talk(8)
    said.append(replace(head, reason="the user asked for it"))
    assert watch_entries(ends(said)) == []


def test_recorded_moves_are_silent():
    for record in (
        ResultDecided("t2", "cleared", "old", '"[cleared]"'),
        Replaced("e1", "e9", (Stand("user", (text_block("a summary"),)),), "compaction"),
    ):
        built = talk(8)
        built.append(record)
        assert built.view.moved
        assert watch_entries(ends(built)) == []
    built = talk(8)
    built.append(Rewound("back"), parent="e1")
    assert built.view.moved
    assert watch_entries(ends(built)) == []


@pytest.mark.parametrize(("pause", "lifetime"), [(400.0, "5m"), (4_000.0, "1h")])
def test_a_recorded_pause(pause: float, lifetime: str):
    entries = talk(8).entries
    at = [n for n, e in enumerate(entries) if isinstance(e.record, Sent)][5]
    (found,) = watch_entries(billed(timed(entries, at, pause)))
    assert (found.cause, found.expired) == ("expired", lifetime)
    assert found.at == pause + 30.0 * at


def test_a_request_other_than_the_transcript_says_is_judged_by_its_digests():
    """What was sent is what the record's digests say, not what would be rendered."""
    entries = billed(timed(talk(8).entries))
    at = [n for n, e in enumerate(entries) if isinstance(e.record, Sent)][5]
    record = entries[at].record
    assert isinstance(record, Sent)
    entries[at] = replace(
        entries[at], record=replace(record, parts=replace(record.parts, tools="other"))
    )
    answer = entries[at + 1].record
    assert isinstance(answer, AssistantMessage)
    entries[at + 1] = replace(entries[at + 1], record=replace(answer, usage=Usage(90_000)))
    (found,) = watch_entries(entries)
    assert (found.cause, found.part) == ("changed", "tools")
    assert found.entry == entries[at + 1].id


def test_side_requests_have_a_baseline_of_their_own():
    entries = billed(timed(talk(8).entries))
    main = [e for e in entries if isinstance(e.record, Sent)][-1]
    assert isinstance(main.record, Sent)
    side = replace(main.record, source="recall", parts=replace(main.record.parts, model="small"))
    extra = Entry("side", "", main.at + 1, side)
    answer = Entry(
        "answer", entries[-1].id, main.at + 2, AssistantMessage((text_block("x"),), usage=Usage(9))
    )
    user = Entry("more", "answer", main.at + 3, UserMessage((text_block("go on"),)))
    assert watch_entries([*entries, extra, answer, user]) == []


def test_a_recorded_fork_reads_its_parent():
    built = talk(8)
    parent = watch_of(billed(timed(built.entries)))
    assert parent.left is not None
    started = Entry("f0", "", 600.0, Started("s1", "/p", "/p", "1", "notes", "a1"))
    child = branch(built.view, started)
    assert child.base is not None
    said = Entry("f1", "", 601.0, UserMessage((text_block("write the notes"),)))
    request = render(apply(child, said), "notes")
    sent = Entry("f2", "f1", 602.0, Sent("notes", "f1", request.parts(), request.marks))
    for read, breaks in ((parent.left.tokens, 0), (0, 1)):
        answer = AssistantMessage((text_block("done"),), usage=Usage(50, read))
        entries = [started, said, sent, Entry("f3", "f1", 603.0, answer)]
        assert len(watch_entries(entries, parent, child.base)) == breaks


def watch_of(entries: list[Entry]) -> Watch:
    watch, view = Watch(), View()
    for entry in entries:
        if isinstance(entry.record, Sent):
            watch = watch.sent(rendered(view, entry.record), entry.at, view.moved)
        elif isinstance(entry.record, AssistantMessage):
            watch, found = watch.answered(entry.record.usage)
            assert found is None
        view = apply(view, entry)
    return watch


def test_odd_blocks_have_names_too():
    strange = block_of({"zeta": 1})
    one = message([Item("e0", "user", (Piece(strange, "e0", 0),))], None)
    found, _ = compared(Request(HEAD, Trail([one]), ()), request())
    assert found is not None
    assert found.name == "user message 0, block 0 (no type)"
