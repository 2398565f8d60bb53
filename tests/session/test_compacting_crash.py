"""Kill -9 and every I/O error at every write around a compaction: valid, at most one behind."""

from __future__ import annotations

import errno
from pathlib import Path

import anyio
import pytest

from reverie.testing import ScriptedModel
from reverie.wire import user
from reverie.world import complete
from tests.faults import Ack
from tests.transcript.test_fold import pairs_up

from .compacts import Stage, boundaries
from .crashes import failed_anywhere, killed_anywhere

pytestmark = [pytest.mark.spec("6"), pytest.mark.spec("B10")]
WISH = "Never touch src/vendor.py. Build all parts."


async def work(home: Path, project: Path, ack: Ack) -> None:
    """A few rounds, an automatic compaction, another round, then one that is asked for."""
    stage = Stage(home, project, window=20_000)
    async with stage.open() as s:
        ack(f"session {s.id}")
        await s.add(user(WISH))
        ack("said")
        await stage.round(s)
        await s.add(user("The log says: " + "nothing new here, " * 3_700))
        await stage.round(s)
        await stage.round(s)
        ack(f"compacted {len(boundaries(s))}")
        await s.observe(await complete(ScriptedModel(["Done. " * 100]), await s.prepare()))
        await s.end_turn()
        await s.summarize("mind the tests")
        ack(f"compacted {len(boundaries(s))}")


def check(home: Path, project: Path, acked: list[str]) -> None:
    session = next((a.split()[1] for a in acked if a.startswith("session")), "")
    if not session or "said" not in acked:
        return
    least = max([int(a.split()[1]) for a in acked if a.startswith("compacted")], default=0)
    anyio.run(resume, home, project, session, least)


async def resume(home: Path, project: Path, session: str, least: int) -> None:
    """The session goes on: what was acknowledged is there, and a real provider takes it."""
    stage = Stage(home, project, window=20_000)
    async with stage.open(resume=session, prefix="resumed") as s:
        assert least <= len(boundaries(s)) <= 2
        await s.add(user("On we go."))
        request = await s.prepare()
        pairs_up(request)
        assert WISH in request.body()
        await complete(stage.model, request)
    assert stage.refused() == []


@pytest.mark.timeout(1_200)
def test_killed_anywhere(scale):
    points = killed_anywhere(work, check, stride=scale.pick(47, 1))
    assert points >= scale.pick(10, 250)


@pytest.mark.proof
@pytest.mark.timeout(1_200)
def test_every_error_at_every_write():
    writes = ("os.write", "os.fsync", "os.fdatasync")
    points = failed_anywhere(work, check, codes=(errno.ENOSPC, errno.EIO), calls=writes)
    assert points >= 60


def test_the_work_is_right_when_nothing_fails(tmp_path: Path):
    acked: list[str] = []
    (tmp_path / "work").mkdir()
    anyio.run(work, tmp_path / "home", tmp_path / "work", acked.append)
    check(tmp_path / "home", tmp_path / "work", acked)
    assert [a for a in acked if a.startswith("compacted")] == ["compacted 1", "compacted 2"]
