"""A home and its id: what jobs are bound to that are for it alone."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import anyio
import pytest

from reverie.errors import StoreError
from reverie.fleet import ID, JobHandle, home_id, nightly
from reverie.memory import TaskOutcome
from tests.fleet.fleet import Fleet
from tests.fleet.stage import jobs_for, lander, make_memories, wrong

pytestmark = [pytest.mark.spec("9.fleet-homes")]


def test_a_home_keeps_its_id_whatever_its_host_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "Büro PC.local")
    one, other = home_id(tmp_path / "one"), home_id(tmp_path / "other")
    assert one != other  # two homes on one host
    assert one.startswith("B-ro-PC-local-")
    monkeypatch.setattr(socket, "gethostname", lambda: "4f2a9c01be77")
    assert home_id(tmp_path / "one") == one
    assert home_id(tmp_path / "third").startswith("4f2a9c01be77-")


def test_those_who_ask_first_at_once_get_one_id(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(home_id, [tmp_path] * 16))) == 1


@pytest.mark.parametrize("text", ["", "a b\n", "x" * 2_000, "tenant@host\n", "\0"])
def test_what_is_no_id_is_named_with_its_place(tmp_path: Path, text: str) -> None:
    home_id(tmp_path)
    (tmp_path / ID).write_text(text)
    with pytest.raises(StoreError) as refused:
        home_id(tmp_path)
    assert str(tmp_path / ID) in str(refused.value) or ID in str(refused.value)
    assert (tmp_path / ID).read_text() == text


@pytest.mark.integration
async def test_jobs_of_one_home_are_worked_there_and_by_no_other_on_the_same_host(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another home has no such memory; and the host may be called otherwise by now."""
    (root,) = make_memories(fleet.home, fleet.base, 1)
    mine = home_id(fleet.home)
    bound = nightly("dream", str(root), "night-0", tenant="default", host=mine, due=False)
    fleet.plan([bound, *jobs_for([Path("/anywhere")], 1)])
    seen: list[str] = []

    async def elsewhere(work: JobHandle) -> TaskOutcome:
        seen.append(work.job.root)
        worker.stop()
        return TaskOutcome("done")

    fleet.home, here = fleet.base / "other home", fleet.home
    worker = fleet.worker(dream=elsewhere)
    with anyio.fail_after(60):
        await worker.run()
    assert seen == ["/anywhere"]
    assert fleet.states()[bound.key] == "queued"
    fleet.home = here
    monkeypatch.setattr(socket, "gethostname", lambda: "otherwise")
    await fleet.work(dream=lander())
    assert fleet.states()[bound.key] == "done"
    assert wrong(fleet.home, [root], 1) == (0, 0)
