"""Cache breaks of recorded transcripts, billed by a small cache that keeps its promises."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.transcript import (
    AssistantMessage,
    Entry,
    HeadSet,
    Item,
    Mark,
    Sent,
    Started,
    Trail,
    Usage,
    UserMessage,
    View,
    apply,
    blobs,
    branch,
    decode,
    encode,
    message,
    text_block,
)
from reverie.wire import (
    CacheBreakDetector,
    Request,
    chain_at,
    compare_requests,
    render,
    watch_entries,
)

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


HEAD = HeadSet(
    "m1",
    '[{"type":"text","text":"You help."},{"type":"text","text":"Be kind."}]',
    '[{"name":"Read","input_schema":{}},{"name":"Bash","input_schema":{}}]',
    "[]",
    '{"max_tokens":9,"betas":["one-2025","two-2025"]}',
)


def sent_of(one: Request) -> Sent:
    return Sent("main", "e2", one.parts(), one.marks)


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
    found, certain = compare_requests(before, after)
    assert certain
    assert found is not None
    assert found.place is not None
    assert (found.part, found.place.block) == ("messages", at)
    assert compare_requests(sent_of(before), after)[0] is not None
    assert compare_requests(before, before) == (None, True)
    assert compare_requests(sent_of(before), before) == (None, True)


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
    """A session of so many tool rounds, with a head."""
    built = Builder()
    built.append(HEAD)
    built.do_user(1)
    for n in range(rounds):
        built.do_send()
        built.do_assistant(1 + n % 3, 2 * n + 2)
        built.do_results(0, 2)
    return built


def timed(entries: list[Entry]) -> list[Entry]:
    """The same, thirty seconds apart."""
    return [replace(e, at=30.0 * n) for n, e in enumerate(entries)]


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
    assert (found.entry, found.at) == (entries[at + 1].id, entries[at].at)


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


def watch_of(entries: list[Entry]) -> CacheBreakDetector:
    watch, view = CacheBreakDetector(), View()
    for entry in entries:
        if isinstance(entry.record, Sent):
            watch = watch.sent(rendered(view, entry.record), entry.at, view.moved)
        elif isinstance(entry.record, AssistantMessage):
            watch, found = watch.answered(entry.record.usage)
            assert found is None
        view = apply(view, entry)
    return watch
