"""Kill -9 and I/O errors at every write while notes are taken and stand in for a summary."""

from __future__ import annotations

import errno
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from reverie.layers import template
from reverie.session import Session
from reverie.settings import DEFAULTS
from reverie.store import digest
from reverie.testing import ScriptedModel, call, reply
from reverie.transcript import NotesTaken, NotesTask, Replaced
from reverie.wire import Request, user
from tests.faults import Ack
from tests.transcript.test_fold import pairs_up

from .crashes import failed_anywhere, killed_anywhere
from .doors import opened
from .test_notes import STATE, TOOLS, path_of

pytestmark = [pytest.mark.spec("5")]
SMALL = replace(
    DEFAULTS, context_policy="classic", context_window=10_000, notes_first_tokens=9_999
)  # threshold 8,350, first notes at 500 tokens


def answer(request: Request):
    task = request.task
    assert isinstance(task, NotesTask)
    count = task.notes.count("- note")
    new = f"{STATE}- note {count}\n"
    return reply(call("Edit", f"n{count}", file_path=task.path, old_string=STATE, new_string=new))


async def say(s: Session, words: str) -> None:
    await s.add(user(words))
    await s.prepare()
    await s.observe(reply("Understood."))
    await s.jobs.wait("session_memory", 10)
    await s.flush()


async def work(home: Path, project: Path, ack: Ack) -> None:
    """Two updates, then the context passes its threshold and the notes stand in."""
    parts = {"settings": SMALL, "model": ScriptedModel(answer), "tools": TOOLS}
    async with opened(home, project, **parts) as s:
        ack(f"session {s.id}")
        for n in range(2):
            await say(s, f"word-{n} " + "x" * 14_000)
            ack(f"said word-{n}")
            taken = [e.record for e in s.view.entries if isinstance(e.record, NotesTaken)]
            ack(f"taken {len(taken)}")
        await s.add(user("word-2 " + "y" * 6_000))
        ack("said word-2")
        await s.prepare()
        if s.view.boundary:
            ack("compacted")
        await s.observe(reply("word-3"))
        ack("said word-3")


def check(home: Path, project: Path, acked: list[str]) -> None:
    session = next((a.split()[1] for a in acked if a.startswith("session")), "")
    if session:
        anyio.run(resume, home, project, session, acked)


async def resume(home: Path, project: Path, session: str, acked: list[str]) -> None:
    """The notes are a whole version, never behind what the transcript says of them; and the
    session goes on."""
    model = ScriptedModel(answer)
    parts = {"settings": SMALL, "model": model, "tools": TOOLS, "prefix": "resumed"}
    async with opened(home, project, resume=session, **parts) as s:
        taken = [e.record for e in s.view.entries if isinstance(e.record, NotesTaken)]
        known = [int(a.split()[1]) for a in acked if a.startswith("taken")]
        assert len(taken) >= max(known, default=0)
        versions = [template()]
        for n in range(3):
            versions.append(versions[-1].replace(STATE, f"{STATE}- note {n}\n"))
        path = path_of(s)
        if path.exists():
            at = versions.index(path.read_text())
            assert at >= len(taken)
        else:
            assert not taken
        if taken:
            assert taken[-1].sha256 in map(digest, (v.encode() for v in versions))
        stands = [e.record for e in s.view.entries if isinstance(e.record, Replaced)]
        assert len(stands) <= 1
        assert stands or "compacted" not in acked
        await s.add(user("on we go"))
        request = await s.prepare()
        pairs_up(request)
        said = "\n".join(
            b.text for e in s.view.entries for b in getattr(e.record, "blocks", ()) or ()
        )
        for word in (a.split()[1] for a in acked if a.startswith("said")):
            assert word in said
        await s.observe(reply("gladly"))


def test_the_work_is_right_when_nothing_fails(tmp_path: Path):
    acked: list[str] = []
    (tmp_path / "work").mkdir()
    anyio.run(work, tmp_path / "home", tmp_path / "work", acked.append)
    check(tmp_path / "home", tmp_path / "work", acked)
    assert acked[1:] == [
        "said word-0",
        "taken 1",
        "said word-1",
        "taken 2",
        "said word-2",
        "compacted",
        "said word-3",
    ]


def test_killed_anywhere(scale):
    points = killed_anywhere(work, check, stride=scale.pick(71, 1))
    assert points >= scale.pick(7, 400)


def test_every_error_at_every_write(scale):
    codes = scale.pick((errno.ENOSPC,), (errno.ENOSPC, errno.EIO, errno.EROFS))
    points = failed_anywhere(work, check, codes=codes, calls=("os.rename",))
    assert points >= scale.pick(5, 15)
