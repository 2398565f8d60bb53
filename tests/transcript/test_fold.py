"""The properties every layer leans on."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from hashlib import sha256

import pytest
from hypothesis import given

from reverie.transcript import (
    BLOBS,
    Block,
    Entry,
    HeadSet,
    ResultDecided,
    Started,
    Unknown,
    UserMessage,
    View,
    apply,
    blob_name,
    blobs,
    block_of,
    branch,
    decode,
    encode,
    fold_entries,
    text_block,
)
from reverie.wire import Request, chain_at, render

from .histories import Builder, build, histories

pytestmark = [pytest.mark.spec("1"), pytest.mark.spec("14")]


def pairs_up(request: Request) -> None:
    """What the provider refuses: orphans, duplicates, empty messages, a wrong order."""
    wanted: list[str] = []
    seen: set[str] = set()
    for message in request.messages():
        assert message.pieces
        blocks = [p.block for p in message.pieces]
        results = [b.get("tool_use_id") for b in blocks if b.type == "tool_result"]
        calls = [b.get("id") for b in blocks if b.type == "tool_use"]
        assert sorted(results) == sorted(wanted)
        assert all(b.type == "tool_result" for b in blocks[: len(results)])
        assert not seen.intersection(calls)
        assert len(set(calls)) == len(calls)
        if message.role == "user":
            assert not calls
        seen.update(calls)
        wanted = calls
    assert not wanted


@given(histories)
def test_apply_is_refold(steps):
    built = build(steps)
    again = fold_entries(built.entries)
    assert same(built.view, again)


def same(a: View, b: View) -> bool:
    names = [f.name for f in fields(View) if f.name != "base"]
    return all(getattr(a, n) == getattr(b, n) for n in names) and a.tail() == b.tail()


def test_an_entry_under_a_known_id_changes_nothing_wherever_it_says_it_stands() -> None:
    built = build([("round", 1, 1), ("round", 0, 2)])
    again = Entry(built.entries[0].id, built.view.leaf, 9.0, UserMessage((text_block("other"),)))
    for known in (again, replace(again, parent=built.entries[0].parent), *built.entries):
        assert apply(built.view, known) is built.view
    assert same(fold_entries([*built.entries, *built.entries, again]), built.view)


@given(histories)
def test_the_counts_are_those_of_the_items(steps):
    view = build(steps).view
    tokens = [i.tokens for i in view.items]
    assert view.standing == sum(tokens[: view.live])
    assert view.live_tokens == sum(tokens[view.live :])
    assert view.live_block == sum(len(i.pieces) for i in view.items[: view.live])
    answers = [n for n in range(view.live, len(tokens)) if view.items[n].role == "assistant"]
    assert view.answers <= len(answers)
    since = answers[len(answers) - view.answers :]
    assert view.reread == sum(sum(tokens[view.live : n]) for n in since)


@given(histories)
def test_a_request_extends_the_last_one_unless_a_record_moved_it(steps):
    built = build([*steps, ("send",)])
    for (before, _), (after, moved) in zip(built.requests, built.requests[1:], strict=False):
        assert moved or after.extends(before), after.difference(before)


@given(histories)
def test_a_moved_prefix_is_said_only_when_something_moved(steps):
    """Announcing a move at every request would pass the property above and mean nothing."""
    quiet = {"user", "assistant", "results", "send", "attach", "round"}
    built = build([s for s in steps if s[0] in quiet] + [("send",)])
    assert all(not moved for _, moved in built.requests)


@given(histories)
def test_no_request_has_an_orphan(steps):
    built = build([*steps, ("send",)])
    for request, _ in built.requests:
        pairs_up(request)


@given(histories)
def test_marks(steps):
    built = build([*steps, ("send",)])
    for request, _ in built.requests:
        marks = request.marks
        assert 0 < len(marks) <= 4
        lifetimes = [m.ttl for m in marks]
        assert lifetimes == sorted(lifetimes)  # "1h" sorts before "5m"
        flat = [p.block for m in request.messages() for p in m.pieces]
        places = [m.block for m in marks if m.part == "messages"]
        assert places == sorted(set(places))
        assert all(flat[at].markable for at in places)
        body = json.loads(request.body())
        assert json.dumps(body).count('"cache_control"') == len(marks)


@given(histories)
def test_the_entry_an_answered_request_wrote_is_within_reach(steps):
    built = build([*steps, ("send",)])
    for at in set(built.answered):
        entry = [m.block for m in built.requests[at][0].marks if m.part == "messages"][-1]
        for request, moved in built.requests[at + 1 :]:
            if moved:
                break
            places = [m.block for m in request.marks if m.part == "messages"]
            assert any(0 <= place - entry < 20 for place in places)
            if built.requests.index((request, moved)) in built.answered:
                break


@given(histories)
def test_resumed_is_never_stopped(steps):
    """Cut the transcript anywhere, fold what is on disk, go on: the same bytes."""
    built = build([*steps, ("send",)])
    blobs_on_disk = {k: v for e in built.entries for k, v in blobs(e.record).items()}
    lines = [encode(e) for e in built.entries]
    resumed = fold_entries(decode(line, blobs_on_disk.get) for line in lines)
    assert render(resumed).body() == render(built.view).body()
    half = len(lines) // 2
    view = fold_entries(decode(line, blobs_on_disk.get) for line in lines[:half])
    for line in lines[half:]:
        view = apply(view, decode(line, blobs_on_disk.get))
    assert render(view).body() == render(built.view).body()


@given(histories)
def test_codec_round_trip(steps):
    for entry in build(steps).entries:
        line = encode(entry)
        assert "\n" not in line
        back = decode(line, blobs(entry.record).get)
        if isinstance(entry.record, Unknown):
            assert isinstance(back.record, Unknown)
        else:
            assert back == entry
        assert encode(back) == line


@given(histories)
def test_a_fork_sends_its_parents_bytes(steps):
    built = build([*steps, ("user", 1), ("send",), ("assistant", 2, 3)])
    parent = render(built.view)
    child = branch(built.view, Entry("f0", "", 1.0, Started("s1", "/p", "/p", "1", "notes", "a1")))
    said = UserMessage((text_block("write the notes"),))
    child = apply(child, Entry("f1", "", 2.0, said))
    request = render(child, "session_memory")
    assert request.extends(parent)
    assert request.marks == (built.view.in_flight or built.view.marks)
    assert chain_at(request, parent.blocks) == chain_at(parent, parent.blocks)
    pairs_up(request)
    assert render(built.view).body() == parent.body()
    again = fold_entries(list(child.entries), built_base(child))
    assert render(again).body() == render(child).body()


def built_base(child: View) -> View:
    assert child.base is not None
    return child.base


@given(histories)
def test_an_older_view_never_changes(steps):
    built = Builder()
    kept: list[tuple[View, str]] = []
    for name, *args in steps:
        built.do(name, *args)
        kept.append((built.view, render(built.view).body()))
    for view, body in kept:
        assert render(view).body() == body


def test_thirty_new_blocks_do_not_put_the_cached_prefix_out_of_reach():
    """The provider looks back over 20 blocks only: the last answered mark stays marked, also where
    the request that carried it on was not answered and is sent again."""
    steps = [("user", 1), ("send",), ("assistant", 30, 1), ("results", 0, 1), ("send",), ("send",)]
    (before, _), (after, _), (again, _) = build(steps).requests
    assert after.blocks - before.blocks > 40
    for request in (after, again):
        assert before.marks[-1].block in [m.block for m in request.marks]


def test_blocks_go_back_as_they_came():
    built = build([("user", 0), ("send",), ("assistant", 1, 1), ("results", 0, 1), ("send",)])
    body = built.requests[-1][0].body(marked=False)
    assert (
        '{"type":"mystery","zeta":1e3,"alpha":[1.0,-0,{"b":2,"a":1E+2}],"text":"\\u00e9"}' in body
    )
    assert '"input":{"n":1.50}' in body


def test_a_lost_blob_makes_the_head_unknown_not_wrong():
    head = HeadSet("m", '[{"type":"text","text":"s"}]')
    line = encode(Entry("h", "", 0.0, head))
    lost = decode(line, lambda _: None).record
    assert isinstance(lost, Unknown)
    assert "missing or damaged" in lost.fault
    damaged = decode(line, lambda _: "changed").record
    assert isinstance(damaged, Unknown)
    assert set(blobs(head)) == {blob_name(getattr(head, part)) for part in BLOBS}


def decision(words: str) -> ResultDecided:
    hashed = sha256(words.encode()).hexdigest()
    return ResultDecided("t1", "stored", content='"a preview"', sha256=hashed)


def result(call: str, words: str) -> Block:
    return block_of({"type": "tool_result", "tool_use_id": call, "content": words})


def last_raw(built: Builder) -> str:
    last = built.view.items.last
    assert last is not None
    return last.pieces[0].block.raw


def test_a_decision_about_another_result_of_its_call_is_dropped():
    """A result may come twice, the second time with other words: they are what is sent."""
    built = Builder()
    built.do_user(1)
    built.do_assistant(1, 2)
    built.append(decision("the first words"))
    built.append(UserMessage((result("t1", "other words"),)))
    assert "other words" in last_raw(built)
    assert built.view.decisions.get("t1") is None


def test_a_decision_about_these_words_is_kept():
    built = Builder()
    built.do_user(1)
    built.do_assistant(1, 2)
    built.append(decision("other words"))
    built.append(UserMessage((result("t1", "other words"),)))
    assert '"a preview"' in last_raw(built)


def test_a_request_of_an_abandoned_branch_sends_nothing_of_this_one():
    """A request that left before a rewind carried nothing of what was said behind it."""
    built = Builder()
    built.do_round(0, 1)
    first = built.view.leaf
    built.do_user(2)
    left, sent = built.view.leaf, built.view.sent
    assert sent is not None
    built.append(UserMessage((text_block("said again"),)), first)
    before = built.view
    built.append(replace(sent, last=left))
    assert built.view.sent_items == before.sent_items
    assert built.view.items.last in built.view.unsent()
