"""A session told what happened says what to send, and never says it differently."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import anyio
import pytest

from reverie.errors import Held, InvalidInput, InvalidMessage, NotFound, WriteFailed
from reverie.observer import ObservedConversation, put, take_away
from reverie.session import Session
from reverie.testing import ScriptedModel, call, reply
from reverie.transcript import (
    Attached,
    Entry,
    Failed,
    HeadSet,
    Record,
    ResultDecided,
    Sent,
    Unknown,
    Usage,
    View,
    text_block,
)
from reverie.wire import tool_result, user
from reverie.world import World

from .doors import LARGE, TOOLS, opened

pytestmark = [pytest.mark.spec("1"), pytest.mark.spec("3"), pytest.mark.spec("14")]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def decided(s: Session, call_id: str) -> str:
    found = s.view.decisions.get(call_id)
    return found.action if found else ""


async def two_rounds(s: Session) -> list[str]:
    """A turn with a large result; the bodies of its requests."""
    bodies: list[str] = []
    await s.add(user("look"))
    bodies.append((await s.prepare()).body())
    await s.observe(reply("Looking.", call("Bash", "t1", command="cat log")))
    await s.add(tool_result("t1", LARGE))
    bodies.append((await s.prepare()).body())
    await s.observe(reply("Done.", usage=Usage(10, 20, 30, 40)))
    await s.end_turn()
    return bodies


async def test_a_request_says_of_calls_without_a_result_that_they_were_interrupted(
    home: Path, project: Path
):
    async with opened(home, project) as s:
        await s.add(user("look"))
        await s.prepare()
        await s.observe(reply("Looking.", call("Bash", "t1", command="ls")))
        made = await s.prepare()
        assert made.last == s.view.leaf  # what it says of them is part of the transcript
    *_, asked, answered = json.loads(made.body())["messages"]
    assert [b["id"] for b in asked["content"] if b["type"] == "tool_use"] == ["t1"]
    (told,) = answered["content"]
    assert (told["tool_use_id"], told["is_error"]) == ("t1", True)


async def test_what_is_appended_is_given_back_as_it_stands_in_the_transcript(
    home: Path, project: Path
):
    async with opened(home, project) as s:
        found = await s.append(Failed("one", "broke"), Failed("two", "broke"))
        assert found == tuple(s.view.entries)[-2:]
        assert [entry.record.layer for entry in found if isinstance(entry.record, Failed)] == [
            "one",
            "two",
        ]
        assert await s.append() == ()


@pytest.mark.parametrize("parts", [{}, {"before_a_request": ()}], ids=["layers", "none"])
async def test_what_work_in_the_background_found_joins_before_the_next_request(
    home: Path, project: Path, parts: dict[str, Any]
):
    async with opened(home, project, **parts) as s:
        await s.add(user("look"))
        s.hand(Failed("job", "broke"))
        await s.prepare()
        kinds = [type(entry.record) for entry in s.view.entries]
    assert kinds.index(Failed) < kinds.index(Sent)


async def test_a_turn_from_end_to_end(home: Path, project: Path):
    async with opened(home, project) as s:
        bodies = await two_rounds(s)
        file = s.library.folder.root / f"{s.id}.jsonl"
        stored = s.library.folder.root / s.id / "tool-results" / "t1.txt"
    first, second = (json.loads(b) for b in bodies)
    assert first["model"] == "m1"
    assert first["max_tokens"] == 100
    assert [t["name"] for t in first["tools"]] == ["Read", "Bash"]
    assert first["messages"][0]["content"][0]["text"] == "# notes"
    sent = second["messages"][-1]["content"][0]["content"]
    assert str(stored) in sent
    assert stored.read_text() == LARGE
    assert json.dumps(LARGE)[1:-1] not in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600
    assert stored.stat().st_mode & 0o777 == 0o600
    assert stored.parent.stat().st_mode & 0o777 == 0o700
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [x["type"] for x in lines] == [
        *("started", "head", "user", "sent", "assistant", "user", "result"),
        *("sent", "assistant", "turn"),
    ]


async def test_resumed_equals_never_stopped(home: Path, project: Path):
    async with opened(home, project) as s:
        await two_rounds(s)
        await s.add(user("and now?"))
        await s.prepare()
        straight = (await s.prepare()).body()
        session = s.id
    async with opened(home, project, resume=session, prefix="again") as s:
        assert (await s.prepare()).body() == straight
    other = {"system": "Other words.", "context": "# other", "options": {}}
    async with opened(home, project, resume=session, prefix="third", **other) as s:
        assert (await s.prepare()).body() == straight


async def test_frozen_decisions_survive_changed_thresholds(home: Path, project: Path):
    async with opened(home, project) as s:
        await two_rounds(s)
        assert s.last_request is not None
        session, body = s.id, s.last_request.body(marked=False)
    (home / "flags.json").write_text('{"tool_result_thresholds": {"Bash": 1000000}}')
    async with opened(home, project, resume=session, prefix="b") as s:
        await s.add(user("more"))
        again = await s.prepare()
        assert again.body(marked=False).startswith(body[: body.rindex("]}")])
        await s.observe(reply(call("Bash", "t2", command="again")))
        await s.add(tool_result("t2", LARGE))
        assert decided(s, "t2") == "kept"
        assert decided(s, "t1") == "stored"


async def test_resume_announces_a_lost_tool_and_another_model(home: Path, project: Path):
    async with opened(home, project) as s:
        await two_rounds(s)
        session = s.id
    said: list[str] = []
    say = lambda n: said.append(n.text)  # noqa: E731
    parts = {"tools": TOOLS[:1], "model": "m2", "say": say}
    async with opened(home, project, resume=session, prefix="b", **parts) as s:
        assert s.view.moved == ("model, tools",)
        await s.add(user("go on"))
        body = json.loads((await s.prepare()).body())
    assert body["model"] == "m2"
    assert [t["name"] for t in body["tools"]] == ["Read"]
    assert said == ["resumed with another model, tools"]


async def test_an_interrupted_call_gets_a_result_that_says_so(home: Path, project: Path):
    async with opened(home, project) as s:
        await s.add(user("go"))
        await s.prepare()
        await s.observe(reply(call("Bash", "t1"), call("Bash", "t2")))
        await s.add(tool_result("t2", "two"))
        await s.add(user("stop, do this instead"))
        body = json.loads((await s.prepare()).body())
        blocks = body["messages"][-1]["content"]
        assert [b.get("tool_use_id") for b in blocks] == ["t2", "t1", None]
        assert "interrupted" in blocks[1]["content"]
        with pytest.raises(InvalidMessage, match="no call that waits"):
            await s.add(tool_result("t1", "late"))


@pytest.mark.parametrize(
    "bad",
    [(), ("  ",), ({"role": "assistant", "content": "x"},), ({"role": "user", "content": 5},),
     ({"type": "tool_result", "tool_use_id": "nobody", "content": "x"},),
     ({"type": "text", "text": float("nan")},), ({"type": "text", "text": object()},)],
)  # fmt: skip
async def test_bad_messages_are_refused_before_anything_is_written(home, project, bad):
    async with opened(home, project) as s:
        entries = len(s.view.entries)
        with pytest.raises(InvalidInput):
            await s.add(*bad)
        assert len(s.view.entries) == entries


async def test_a_call_left_open_is_closed_in_the_request_itself(home: Path, project: Path):
    async with opened(home, project) as s:
        await s.add(user("go"))
        await s.prepare()
        await s.observe(reply(call("Bash", "t1")))
        body = json.loads((await s.prepare()).body())
        assert [b["tool_use_id"] for b in body["messages"][-1]["content"]] == ["t1"]


async def test_a_result_counts_once_also_within_one_message(home: Path, project: Path):
    async with opened(home, project) as s:
        await s.add(user("go"))
        await s.prepare()
        await s.observe(reply(call("Bash", "t1")))
        entries = len(s.view.entries)
        with pytest.raises(InvalidMessage, match="no call that waits"):
            await s.add(tool_result("t1", "one"), tool_result("t1", "two"))
        assert len(s.view.entries) == entries


async def test_nothing_to_send_is_an_error(home: Path, project: Path):
    async with opened(home, project) as s:
        entries = len(s.view.entries)
        with pytest.raises(InvalidMessage, match="nothing to send"):
            await s.prepare()
        assert len(s.view.entries) == entries, "a request that never was is recorded as sent"
        await s.add(user("hi"))
        await s.prepare()
        await s.observe(reply("hello"))
        with pytest.raises(InvalidMessage, match="nothing to send"):
            await s.prepare()


async def test_replies_in_every_form(home: Path, project: Path):
    raw = (
        '{"id":"msg_1","type":"message","role":"assistant","model":"m1","content":'
        '[{"type":"new_kind","n":1e3,"z":1,"a":2.50}],"stop_reason":"end_turn",'
        '"usage":{"input_tokens":3,"cache_read_input_tokens":4,"output_tokens":5,'
        '"cache_creation_input_tokens":6,"cache_creation":{"ephemeral_1h_input_tokens":2}}}'
    )
    async with opened(home, project) as s:
        await s.add("hi")
        await s.prepare()
        found = await s.observe(raw)
        assert found.usage == Usage(3, 4, 6, 5, 2)
        assert s.view.tokens == 18
        await s.add({"role": "user", "content": "again"})
        assert '{"type":"new_kind","n":1e3,"z":1,"a":2.50}' in (await s.prepare()).body()
        await s.observe(json.loads(raw))
        await s.add("third")
        with pytest.raises(InvalidInput):
            await s.observe({"content": "text"})
        with pytest.raises(InvalidInput):
            await s.observe(cast("Any", 7))


async def test_a_call_id_used_twice_is_refused(home: Path, project: Path):
    async with opened(home, project) as s:
        await s.add("hi")
        await s.prepare()
        with pytest.raises(InvalidMessage, match="again"):
            await s.observe(reply(call("Bash", "same"), call("Bash", "same")))


async def test_handed_records_wait_for_the_answer(home: Path, project: Path):
    reminder = Attached((text_block("remember this"),), "recall")
    async with opened(home, project) as s:
        await s.add("hi")
        await s.prepare()
        s.hand(reminder)
        await s.flush()
        assert not any(isinstance(e.record, Attached) for e in s.view.entries)
        await s.observe(reply(call("Bash", "t1")))
        assert isinstance(s.view.entries[len(s.view.entries) - 1].record, Attached)
        await s.add(tool_result("t1", "ok"))
        blocks = json.loads((await s.prepare()).body())["messages"][-1]["content"]
        assert [b["type"] for b in blocks] == ["tool_result", "text"]


async def test_a_layer_that_fails_is_recorded_and_the_session_goes_on(home, project):
    async def broken(view, world):
        raise RuntimeError("boom")

    async with opened(home, project) as s:
        s._before_a_request = (("broken", broken), *s._before_a_request)
        await s.add("hi")
        request = await s.prepare()
        assert request.count == 1
        failures = [e.record for e in s.view.entries if isinstance(e.record, Failed)]
        assert failures[0].error == "RuntimeError: boom"


class Watching:
    """Keeps what a watcher is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str, str]] = []

    def saw(self, of: ObservedConversation, entries: Sequence[Entry]) -> None:
        self.told += [("saw", of.session, type(entry.record).__name__) for entry in entries]

    def closed(self, of: ObservedConversation, at: float) -> None:
        self.told.append(("closed", of.session, of.project))

    def ran(
        self, kind: str, name: str, session: str, times: tuple[float, float], error: str
    ) -> None:
        self.told.append((kind, session, f"{name}: {error}"))


async def test_a_watcher_is_told_of_records_of_a_layer_that_failed_and_of_the_end(
    home: Path, project: Path
):
    async def broken(view: View, world: World) -> Sequence[Record]:
        raise RuntimeError("boom")

    watcher = Watching()
    put(watcher)
    try:
        async with opened(home, project, before_a_request=(("broken", broken),)) as s:
            ident = s.id
            await s.add("hi")
            await s.prepare()
    finally:
        take_away(watcher)
    told = [one for one in watcher.told if one[2] not in ("Started", "HeadSet")]
    assert told == [
        ("saw", ident, "UserMessage"),
        ("layer", ident, "broken: RuntimeError: boom"),
        ("saw", ident, "Failed"),
        ("saw", ident, "Sent"),
        ("closed", ident, str(project)),
    ]


async def test_rewind_keeps_what_came_after_in_the_file(home: Path, project: Path):
    async with opened(home, project) as s:
        await two_rounds(s)
        first = next(e.id for e in s.view.entries if type(e.record).__name__ == "UserMessage")
        before = len(s.view.entries)
        await s.rewind(first)
        await s.add("another way")
        body = json.loads((await s.prepare()).body())
        assert len(body["messages"]) == 1
        assert [b["text"] for b in body["messages"][0]["content"]] == [
            "# notes",
            "look",
            "another way",
        ]
        assert len(s.view.entries) > before
        with pytest.raises(NotFound):
            await s.rewind("nothing")


async def test_private_records_nothing(home: Path, project: Path):
    async with opened(home, project, private=True) as s:
        await two_rounds(s)
    assert home.name not in os.listdir(home.parent)


async def test_a_garbage_line_is_skipped_and_said(home: Path, project: Path):
    async with opened(home, project) as s:
        await two_rounds(s)
        session, file = s.id, s.library.folder.root / f"{s.id}.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    lines.insert(3, b"\x00\xff garbage\n")
    lines.insert(5, lines[4])
    file.write_bytes(b"".join(lines) + b'{"v":1,"id":"torn","ty')
    said: list[str] = []
    async with opened(
        home, project, resume=session, prefix="b", say=lambda n: said.append(n.text)
    ) as s:
        await s.add("still there?")
        body = json.loads((await s.prepare()).body())
    assert len(body["messages"]) == 5
    assert any("line 4" in text for text in said)
    assert len(said) >= 2


async def test_a_lost_head_is_rendered_anew_and_announced(home: Path, project: Path):
    async with opened(home, project) as s:
        await two_rounds(s)
        session, blobs = s.id, s.library.folder.root / s.id / "blobs"
    for blob in blobs.iterdir():
        blob.write_text("damaged")
    async with opened(home, project, resume=session, prefix="b") as s:
        assert any(isinstance(e.record, Unknown) for e in s.view.entries)
        assert isinstance(s.view.entries[len(s.view.entries) - 1].record, HeadSet)
        await s.add("go on")
        assert json.loads((await s.prepare()).body())["system"][0]["text"] == "You help."


HOLD = """
import sys, anyio
from pathlib import Path
from tests.session.doors import opened
async def main():
    async with opened(Path(sys.argv[1]), Path(sys.argv[2])) as s:
        await s.add("mine")
        print(s.id, flush=True)
        sys.stdin.read()
anyio.run(main)
"""


async def test_two_processes_one_writes_the_other_is_told(home, project, root):
    other = subprocess.Popen(  # noqa: ASYNC220 - it must outlive the loop's own turns
        [sys.executable, "-c", HOLD, str(home), str(project)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root,
    )  # fmt: skip
    try:
        assert other.stdout is not None
        session = other.stdout.readline().strip()
        with pytest.raises(Held, match=f"process {other.pid}"):
            async with opened(home, project, resume=session):
                pass
        async with opened(home, project, prefix="x") as mine:
            assert mine.library.read(session).view.items[1].pieces[0].block.get("text") == "mine"
        async with opened(home, project, resume=session, on_held="fork", prefix="y") as copy:
            assert copy.id != session
            await copy.add("and mine")
            body = json.loads((await copy.prepare()).body())
            assert [b["text"] for b in body["messages"][0]["content"]] == [
                "# notes",
                "mine",
                "and mine",
            ]
            copied = copy.id
        async with opened(home, project, resume=copied, prefix="z") as again:
            assert again.view.session == copied
    finally:
        other.communicate("", timeout=20)
    assert other.returncode == 0


async def test_a_write_that_fails_is_not_acknowledged(home: Path, project: Path):
    async with opened(home, project) as s:
        await s.add("first")
        view = s.view

        class Full:
            def append(self, texts):
                raise WriteFailed("no space left", where="disk")

            def sync(self): ...
            def close(self): ...

        real, s._log = s._log, Full()
        with pytest.raises(WriteFailed):
            await s.add("second")
        assert s.view is view
        s._log = real
        await s.add("third")
        assert [
            b["text"] for b in json.loads((await s.prepare()).body())["messages"][0]["content"]
        ] == [
            "# notes",
            "first",
            "third",
        ]


async def test_cancelling_an_append_never_splits_file_and_view(home: Path, project: Path):
    async with opened(home, project) as s:
        with anyio.move_on_after(0):
            await s.add("words")
        on_disk = s.library.read(s.id)
        assert len(on_disk.entries) == len(s.view.entries)


async def test_sent_is_on_disk_before_the_request_leaves(home: Path, project: Path):
    async with opened(home, project) as s:
        await s.add("hi")
        request = await s.prepare()
        last = s.library.read(s.id).entries[-1].record
        assert isinstance(last, Sent)
        assert last.parts == request.parts()
        assert last.marks == request.marks


async def test_results_may_come_one_by_one(home: Path, project: Path):
    model = ScriptedModel([reply(call("Bash", "a"), call("Bash", "b"), call("Bash", "c"))])
    async with opened(home, project, model=model) as s:
        await s.add("go")
        await s.observe(await anext_reply(model, await s.prepare()))
        for ident in "cab":
            await s.add(tool_result(ident, ident * 70_000))
        assert {decided(s, i) for i in "abc"} == {"stored"}
        records = [e.record for e in s.view.entries if isinstance(e.record, ResultDecided)]
        assert [d.call for d in records] == ["c", "a", "b"]
        blocks = json.loads((await s.prepare()).body())["messages"][-1]["content"]
        assert [b["tool_use_id"] for b in blocks] == ["c", "a", "b"]


async def anext_reply(model, request):
    from reverie.world import complete

    return await complete(model, request)
