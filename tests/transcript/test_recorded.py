"""Real recorded sessions import, fold and render to what a provider accepts."""

from __future__ import annotations

import gzip
import importlib.util
import json
import statistics
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

from reverie.errors import ImportFailed
from reverie.transcript import (
    EMPTY,
    AssistantMessage,
    RecordedSession,
    Replaced,
    UserMessage,
    View,
    apply,
    blobs,
    decode,
    encode,
    fold_entries,
    is_ours,
    read,
)
from reverie.wire import render

from .test_fold import pairs_up

pytestmark = [pytest.mark.spec("1.import"), pytest.mark.spec("2")]


@dataclass(frozen=True, slots=True)
class Session:
    name: str
    lines: list[str]
    recorded: RecordedSession


@pytest.fixture(scope="module")
def sessions(shared: Path) -> list[Session]:
    out: list[Session] = []
    for path in sorted((shared / "data" / "sessions_dev").glob("*.jsonl.gz")):
        lines = gzip.decompress(path.read_bytes()).decode().splitlines()
        out.append(Session(path.name, lines, read(lines, path.name)))
    return out


@pytest.fixture(scope="module")
def cachesim(shared: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "cachesim", shared / "bench" / "context" / "cachesim.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def on_chain(view: View) -> set[str]:
    """Entries that the conversation holds, replaced ranges included."""
    held = {p.source for m in view.closed for p in m.pieces}
    held |= {i.id for i in view.items} | {e for i in view.items for e in i.covers}
    return held


def test_all_sessions_are_there(sessions: list[Session]):
    assert len(sessions) == 41
    assert sum(s.recorded.program == "claude-code" for s in sessions) == 40


def test_rows_are_on_the_chain_and_the_rest_is_named(sessions: list[Session]):
    rows = held = 0
    unexplained: list[str] = []
    for session in sessions:
        found = session.recorded
        view = fold_entries(found.entries)
        chain = on_chain(view)
        for number, line in enumerate(session.lines, 1):
            row = json.loads(line)
            if row["type"] not in ("user", "assistant", "message"):
                continue
            rows += 1
            if found.places.get(number) in chain:
                held += 1
            elif number not in found.left_out and number not in found.places:
                unexplained.append(f"{session.name}:{number}")
    assert unexplained == []
    assert held / rows >= 0.97, (held, rows)


def test_every_request_is_valid(sessions: list[Session], cachesim: ModuleType, scale):
    every = scale.pick(25, 1)
    for session in sessions:
        view = EMPTY
        for n, entry in enumerate(session.recorded.entries):
            view = apply(view, entry)
            user = isinstance(entry.record, UserMessage) and not view.open_calls
            if user and n % every == 0:
                request = render(view)
                pairs_up(request)
                cachesim.check(json.loads(request.body())["messages"])
        cachesim.check(json.loads(render(view).body())["messages"])


def test_compactions_are_replaced_ranges(sessions: list[Session]):
    replaced = [e for s in sessions for e in s.recorded.entries if isinstance(e.record, Replaced)]
    assert len(replaced) == 17 + 2
    for session in sessions:
        if any(isinstance(e.record, Replaced) for e in session.recorded.entries):
            view = fold_entries(session.recorded.entries)
            assert any(i.kind == "replaced" for i in view.items)


def test_imported_entries_survive_the_disk(sessions: list[Session], scale):
    for session in sessions[:: scale.pick(6, 1)]:
        entries = session.recorded.entries
        back = [decode(encode(e), blobs(e.record).get) for e in entries]
        assert back == list(entries)
        assert render(fold_entries(back)).body() == render(fold_entries(entries)).body()


def test_the_canonical_count_meets_the_next_usage(sessions: list[Session]):
    """Median ≤ .3 %, 95th percentile ≤ 3 %; a compaction between the two is left out."""
    errors: list[float] = []
    for session in sessions:
        view, replaced = EMPTY, False
        for entry in session.recorded.entries:
            record = entry.record
            if isinstance(record, Replaced):
                replaced = True
            if isinstance(record, AssistantMessage) and record.usage is not None:
                if view.usage is not None and not replaced:
                    errors.append(abs(view.tokens - record.usage.input) / record.usage.input)
                replaced = False
            view = apply(view, entry)
    errors.sort()
    assert len(errors) > 3_000
    assert statistics.median(errors) <= 0.003
    assert errors[int(len(errors) * 0.95)] <= 0.03


# --- what a file may hold


def row(kind: str, uuid: str, parent: str | None, content: object, **more: object) -> str:
    message = {"role": kind, "content": content, "id": more.pop("mid", uuid)}
    known = {"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": "s", "cwd": "/p"}
    return json.dumps({**known, "message": message, **more})


def test_split_rows_and_parallel_results_become_one_round():
    use = [{"type": "tool_use", "id": f"t{n}", "name": "Read", "input": {}} for n in (1, 2)]
    lines = [
        row("user", "u1", None, "go"),
        row("assistant", "a1", "u1", [{"type": "text", "text": "ok"}], mid="m"),
        row("assistant", "a2", "a1", [use[0]], mid="m"),
        row("user", "r1", "a2", [{"type": "tool_result", "tool_use_id": "t1", "content": "1"}]),
        row("assistant", "a3", "a2", [use[1]], mid="m"),
        row("user", "r2", "a3", [{"type": "tool_result", "tool_use_id": "t2", "content": "2"}]),
        row("assistant", "b1", "r2", [{"type": "text", "text": "done"}], mid="m2"),
    ]
    found = read(lines)
    request = render(fold_entries(found.entries))
    assert [m.role for m in request.messages()] == ["user", "assistant", "user", "assistant"]
    assert [p.block.type for p in request.at(1).pieces] == ["text", "tool_use", "tool_use"]
    assert [p.block.get("content") for p in request.at(2).pieces] == ["1", "2"]
    assert set(found.places) == set(range(1, 8))


def test_a_missing_parent_is_the_row_before_and_a_dangling_call_is_closed():
    lines = [
        row("user", "u1", "gone", "go"),
        row("assistant", "a1", "lost", [{"type": "tool_use", "id": "t", "name": "X", "input": {}}]),
        row("user", "u2", "also-lost", "never mind"),
    ]
    request = render(fold_entries(read(lines).entries))
    pairs_up(request)
    assert [m.role for m in request.messages()] == ["user", "assistant", "user"]
    assert request.at(2).pieces[-1].block.get("text") == "never mind"


def test_a_branch_that_was_left_is_off_the_chain_and_kept():
    lines = [
        row("user", "u1", None, "go"),
        row("assistant", "a1", "u1", [{"type": "text", "text": "first"}]),
        row("user", "u2", "a1", "wrong turn"),
        row("user", "u3", "a1", "right turn"),
    ]
    found = read(lines)
    texts = [
        p.block.get("text")
        for m in render(fold_entries(found.entries)).messages()
        for p in m.pieces
    ]
    assert texts == ["go", "first", "right turn"]
    assert len(found.entries) == 4


def test_garbage_rows_are_named_never_fatal():
    lines = ["not json", "[1]", row("user", "u1", None, "go"), "", '{"type":"later"}', "\x00"]
    found = read(lines)
    assert len(found.entries) == 1
    assert len(found.faults) == 3


@pytest.mark.parametrize("lines", [[], ["x"], ['{"type":"other"}']])
def test_a_file_that_is_no_session_is_refused(lines: list[str]):
    with pytest.raises(ImportFailed):
        read(lines, "file.jsonl")


def test_ours_is_told_by_its_first_line():
    assert is_ours('{"v":1,"id":"a","sum":"00"}')
    assert not is_ours('{"type":"user"}')
    assert not is_ours("nothing")
