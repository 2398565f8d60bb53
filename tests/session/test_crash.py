"""Kill -9 and every I/O error at every write of a session: nothing acknowledged is lost.

These tests show what survives the death of the process. That what `prepare` returned
survives a power loss too rests on fsync, whose place in the protocol is tested in
`tests/store`; no block-level test is claimed.
"""

from __future__ import annotations

import errno
import json
from pathlib import Path

import anyio
import pytest

from reverie.testing import call, reply
from reverie.wire import Request, tool_result, user
from tests.faults import Ack
from tests.transcript.test_fold import pairs_up

from .crashes import failed_anywhere, killed_anywhere
from .doors import LARGE, opened

pytestmark = [pytest.mark.spec("1"), pytest.mark.spec("3")]


async def work(home: Path, project: Path, ack: Ack) -> None:
    """Two rounds with a stored result, each step acknowledged when it has returned."""
    async with opened(home, project) as s:
        ack(f"session {s.id}")
        await s.add(user("word-0"))
        ack("said word-0")
        await s.prepare()
        ack("sent")
        await s.observe(reply("word-1", call("Bash", "t1"), call("Bash", "t2")))
        ack("said word-1")
        await s.add(tool_result("t1", LARGE))
        ack("stored t1")
        await s.add(tool_result("t2", "word-2"))
        ack("said word-2")
        await s.prepare()
        ack("sent")
        await s.observe(reply("word-3"))
        ack("said word-3")
        await s.end_turn()


def check(home: Path, project: Path, acked: list[str]) -> None:
    """What was acknowledged is there, and the session goes on with a valid request."""
    session = next((a.split()[1] for a in acked if a.startswith("session")), "")
    if not session:
        return
    body, view = anyio.run(resume, home, project, session)
    for word in (a.split()[1] for a in acked if a.startswith("said")):
        assert word in body
    if "stored t1" in acked:
        decision = view.decisions.get("t1")
        assert decision is not None
        if decision.action == "stored":
            file = next((home / "projects").glob(f"*/{session}/{decision.path}"))
            assert file.read_text() == LARGE
            assert str(file) in body
        else:
            assert json.dumps(LARGE)[1:2_000] in body
    sent = [e for e in view.entries if type(e.record).__name__ == "Sent"]
    assert len(sent) >= acked.count("sent")


async def resume(home: Path, project: Path, session: str):
    async with opened(home, project, resume=session, prefix="resumed") as s:
        await s.add("on we go")
        request: Request = await s.prepare()
        pairs_up(request)
        await s.observe(reply("gladly"))
        return request.body(), s.view


def test_killed_anywhere(scale):
    points = killed_anywhere(work, check, stride=scale.pick(11, 1))
    assert points >= scale.pick(20, 250)


def test_every_error_at_every_write(scale):
    codes = scale.pick((errno.ENOSPC, errno.EIO), tuple(_codes()))
    writes = ("os.write", "os.fsync", "os.fdatasync", "os.rename", "os.replace", "os.ftruncate")
    points = failed_anywhere(work, check, codes=codes, calls=writes)
    assert points >= scale.pick(60, 200)


def _codes() -> tuple[int, ...]:
    return (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EMFILE, errno.EACCES)


def test_the_work_is_right_when_nothing_fails(tmp_path: Path):
    acked: list[str] = []
    (tmp_path / "work").mkdir()
    anyio.run(work, tmp_path / "home", tmp_path / "work", acked.append)
    check(tmp_path / "home", tmp_path / "work", acked)
    assert len(acked) == 8
