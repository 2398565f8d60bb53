"""What a transcript holds is shown, or told: torn appends, later versions, lost parents, copies."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Literal

import pytest

from reverie.errors import LaterVersion, PromptTooLong
from reverie.session import Session, SessionLibrary
from reverie.settings import DEFAULTS
from reverie.store import seal
from reverie.testing import call, reply
from reverie.transcript import (
    AssistantMessage,
    Attached,
    Entry,
    Record,
    ResultDecided,
    UserMessage,
    View,
    block_of,
    fold_entries,
    text_block,
)
from reverie.wire import render, tool_result
from reverie.world import Notice

from .compacts import Stage, a_summary
from .doors import LARGE, opened

pytestmark = pytest.mark.spec("1.told")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def file_of(s: Session) -> Path:
    return s.library.path / f"{s.id}.jsonl"


def add_line(path: Path, text: str) -> None:
    with path.open("ab") as file:
        file.write(seal(text) + b"\n")


# --- a torn append


def result(call_id: str, content: str) -> UserMessage:
    return UserMessage(
        (block_of({"type": "tool_result", "tool_use_id": call_id, "content": content}),)
    )


@pytest.mark.spec("3.torn")
def test_a_decision_counts_only_for_the_result_it_was_made_for():
    """A decision without its message, as an older version could leave it; then a new result."""
    stored = ResultDecided("t1", "stored", "", '"the old"', "k", 3, sha256(b"old").hexdigest())
    records = [
        UserMessage((text_block("go"),)),
        AssistantMessage((call("Bash", "t1"),)),
        stored,
        result("t1", "the new"),
    ]
    view = fold_entries(
        [Entry(str(n), str(n - 1) if n else "", n, r) for n, r in enumerate(records)]
    )
    assert "the new" in render(view).body()
    assert "t1" not in view.decisions
    records[-1] = result("t1", "old")
    view = fold_entries(
        [Entry(str(n), str(n - 1) if n else "", n, r) for n, r in enumerate(records)]
    )
    assert "the old" in render(view).body()


@pytest.mark.spec("3.torn")
async def test_wherever_an_append_is_torn_the_next_result_is_shown_as_it_is(
    home: Path, project: Path, scale
):
    async with opened(home, project) as s:
        await s.add("go")
        await s.prepare()
        await s.observe(reply(call("Bash", "t1")))
        path, before = file_of(s), file_of(s).stat().st_size
        await s.add(tool_result("t1", LARGE))
        ident = s.id
    whole = path.read_bytes()
    ends = [n + 1 for n in range(before, len(whole)) if whole[n : n + 1] == b"\n"]
    cuts = {before, *ends, *(n - 1 for n in ends), *range(before, ends[-1], scale.pick(97, 7))}
    for cut in sorted(cuts):
        path.write_bytes(whole[:cut])
        async with opened(home, project, resume=ident, prefix=f"cut{cut}") as s:
            if s.view.open_calls:
                await s.add(tool_result("t1", "another result"))
                assert "another result" in (await s.prepare()).body()
            else:
                assert "is stored whole in" in (await s.prepare()).body()


async def test_a_result_added_anew_after_going_back_is_shown_as_it_is(home: Path, project: Path):
    async with opened(home, project) as s:
        await s.add("go")
        await s.prepare()
        await s.observe(reply(call("Bash", "t1")))
        called = s.view.leaf
        await s.add(tool_result("t1", LARGE))
        await s.rewind(called)
        await s.add(tool_result("t1", "another result"))
        assert "another result" in (await s.prepare()).body()


# --- nothing disappears without a word


async def kept(home: Path, project: Path) -> tuple[str, Path, SessionLibrary]:
    async with opened(home, project) as s:
        await s.add("first words")
        await s.prepare()
        await s.observe(reply("an answer"))
        return s.id, file_of(s), s.library


LATER = '{"v":2,"id":"n1","parent":"","at":"2026-01-01T00:00:00+00:00","type":"user","blocks":[]}'


async def test_a_transcript_with_records_of_a_later_version_is_read_and_not_written_to(
    home: Path, project: Path
):
    ident, path, library = await kept(home, project)
    add_line(path, LATER)
    before = path.read_bytes()
    found = library.read(ident)
    assert any("later version" in fault for fault in found.faults)
    assert "first words" in render(found.view).body()
    for _ in range(2):  # and its lock is given back
        with pytest.raises(LaterVersion, match="on_held"):
            async with opened(home, project, resume=ident):
                pass
    assert path.read_bytes() == before
    notices: list[Notice] = []
    async with opened(
        home, project, resume=ident, on_held="fork", prefix="copy", say=notices.append
    ) as s:
        copied = s.id
        await s.add("go on")
        assert "first words" in (await s.prepare()).body()
    assert any("later version" in one.text for one in notices)
    async with opened(home, project, resume=copied, prefix="again") as s:
        assert s.view.session == copied
    assert path.read_bytes() == before


@pytest.mark.spec("1.first-id")
async def test_unknown_records_lost_parents_and_ids_used_twice_are_told(home: Path, project: Path):
    ident, path, library = await kept(home, project)
    where = {"v": 1, "parent": "gone", "at": 0}
    add_line(path, json.dumps({**where, "id": "u1", "type": "of-tomorrow"}))
    said = {"type": "user", "blocks": [{"type": "text", "text": "orphan"}]}
    add_line(path, json.dumps({**where, "id": "u2", **said}))
    said = {"type": "user", "blocks": [{"type": "text", "text": "the later one"}]}
    add_line(path, json.dumps({**where, "id": "u2", **said}))
    notices: list[Notice] = []
    async with opened(home, project, resume=ident, prefix="x", say=notices.append) as s:
        body = (await s.prepare()).body()
    assert "orphan" in body
    assert "first words" in body
    assert "the later one" not in body
    told = "\n".join(one.text for one in notices)
    for words in ("no known kind", "is not there", "used before"):
        assert words in told
    faults = "\n".join(library.read(ident).faults)
    assert "no known kind" in faults


@pytest.mark.spec("1.cycles")
@pytest.mark.timeout(20)
def test_parents_that_go_round_end_somewhere():
    """A cycle cannot be written by us; a file may hold one."""
    said = [UserMessage((text_block(f"word-{n}"),)) for n in range(3)]
    entries = [
        Entry("a", "c", 0, said[0]),
        Entry("b", "a", 1, said[1]),
        Entry("c", "b", 2, said[2]),
    ]
    body = render(fold_entries(entries)).body()
    assert all(f"word-{n}" in body for n in range(3))
    itself = [Entry("a", "", 0, said[0]), Entry("b", "b", 1, said[1])]
    assert "word-0" in render(fold_entries(itself)).body()


async def test_a_damaged_blob_is_written_again_when_its_content_is_at_hand(
    home: Path, project: Path
):
    ident, path, library = await kept(home, project)
    blobs = sorted((path.parent / ident / "blobs").iterdir())
    texts = [blob.read_bytes() for blob in blobs]
    for blob in blobs:
        blob.write_bytes(b'["damaged"]')
    notices: list[Notice] = []
    async with opened(home, project, resume=ident, prefix="x", say=notices.append) as s:
        await s.add("go on")
        assert "You help." in (await s.prepare()).body()
    assert [blob.read_bytes() for blob in blobs] == texts
    assert any("missing or damaged" in one.text for one in notices)
    assert "You help." in render(library.read(ident).view).body()


# --- copies


@pytest.mark.spec("1.copy")
async def test_a_copy_owns_its_stored_results(home: Path, project: Path):
    async with opened(home, project) as s:
        await s.add("go")
        await s.prepare()
        await s.observe(reply(call("Bash", "t1")))
        await s.add(tool_result("t1", LARGE))
        request = render(s.view).body()
        async with opened(home, project, resume=s.id, on_held="fork", prefix="y") as copy:
            assert render(copy.view).body() == request
            decision = copy.view.decisions.get("t1")
            assert decision is not None
            ident = copy.id
    async with opened(home, project, resume=ident, prefix="z") as copy:
        copy.library.remove(s.id)
        assert await copy.world.disk.read(decision.path) == LARGE.encode()


async def test_a_copy_that_fails_gives_its_lock_back(home: Path, project: Path, monkeypatch):
    ident, path, _ = await kept(home, project)
    async with opened(home, project, resume=ident, prefix="x"):
        blob = next((path.parent / ident / "blobs").iterdir())
        blob.chmod(0)
        try:
            if not _readable(blob):
                with pytest.raises(Exception, match="could not be"):
                    async with opened(home, project, resume=ident, on_held="fork", prefix="y"):
                        pass
        finally:
            blob.chmod(0o600)


def _readable(path: Path) -> bool:
    try:
        path.read_bytes()
    except OSError:
        return False
    return True


# --- a request that was refused


class Restores:
    """A door that brings one text back."""

    async def before(self, trigger: Literal["auto", "manual"], instructions: str) -> str:
        return instructions

    async def after(self, view: View, trigger: Literal["auto", "manual"]) -> Sequence[Record]:
        return (Attached((text_block("the restored plan"),), "plan"),)


@pytest.mark.spec("6.refused")
async def test_what_is_restored_is_in_the_request_that_is_sent_instead(tmp_path: Path):
    stage = Stage(tmp_path / "home", tmp_path / "work")
    stage.talk.summaries = lambda _: a_summary(said="Work on.")
    settings = replace(DEFAULTS, auto_compact_enabled=False)
    async with stage.open(around=Restores(), settings=settings) as s:
        await s.add("build it all")
        await stage.rounds(s, 6)
        await s.add("and what do you say to this?")
        await s.prepare()
        instead = await s.shorten_request(PromptTooLong("too long"))
        assert "the restored plan" in instead.body()
        assert "and what do you say to this?" in instead.body()
        assert s.view.waiting == ()
        assert render(s.view).body() == render(fold_entries(s.view.entries)).body()
