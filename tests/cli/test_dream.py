"""`reverie dream`: run, status, diff, accept, drop, kill, undo, --all; and `reverie stats`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from reverie.store import canonical_root

from .conftest import Run, memory_in, remembered

pytestmark = [pytest.mark.spec("9"), pytest.mark.spec("B6")]

TWINS = ("Run make check before every commit", "run make check before every commit!")


@pytest.fixture
def twins(run: Run) -> None:
    """Two memories that say the same."""
    for text in TWINS:
        run("memory", "add", text, "--type", "feedback", code=0)


def files(run: Run) -> list[str]:
    return sorted(row["file"] for row in run("memory", "list", "--json").json()["memories"])


@pytest.mark.usefixtures("twins")
def test_a_dream_merges_twins_and_undo_brings_them_back(run: Run) -> None:
    before = files(run)
    done = run("dream", "run", "--json").json()
    assert done["status"] == "completed"
    assert len(files(run)) == 1
    assert run("dream", "status", "--json").json()["next"].startswith("the next is due in 24")
    undone = run("dream", "undo", "--json").json()
    assert undone["undone"] == done["id"]
    assert files(run) == before


@pytest.mark.usefixtures("twins")
def test_a_second_dream_changes_nothing(run: Run) -> None:
    run("dream", "--json", code=0)
    again = run("dream", "--json").json()
    assert (again["status"], again["changed"]) == ("completed", [])


@pytest.mark.usefixtures("twins")
def test_a_dry_run_is_shown_accepted_or_dropped(run: Run) -> None:
    before = files(run)
    tried = run("dream", "--dry-run", code=0)
    assert "diff" in tried.out
    assert files(run) == before
    assert any(row.startswith("-") for row in run("dream", "diff", code=0).out.splitlines())
    run("dream", "drop", code=0)
    assert run("dream", "accept").code == 2
    run("dream", "--dry-run", code=0)
    accepted = run("dream", "accept", "--json").json()
    assert accepted["changed"]
    assert len(files(run)) == 1
    assert run("dream", "status", "--json").json()["dreams"][0]["status"] == "completed"


def test_without_a_memory_there_is_nothing_to_do(run: Run, home: Path) -> None:
    shown = run("dream", "status", "--json").json()
    assert shown == {"next": "there is no memory yet", "dreams": []}
    assert not home.exists()
    assert run("dream", "undo").code == 2


@pytest.mark.usefixtures("twins")
def test_one_that_runs_is_seen_and_killed_from_another_process(
    run: Run, home: Path, project: Path
) -> None:
    """The dream is another process, whose model never answers."""
    script = Path(__file__).with_name("sleeping_dream.py")
    line = [sys.executable, str(script), str(home), str(canonical_root(project))]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "dreaming\n"
        shown = run("dream", "status", "--json").json()
        assert shown["next"] == f"one is running now, in process {process.pid}"
        refused = run("dream", "run")
        assert refused.code != 0
        assert f"process {process.pid}" in refused.err
        killed = run("dream", "kill", "--json").json()
        assert killed["ended"]
        assert process.stdout.readline() == "killed\n"
    assert run("dream", "status", "--json").json()["dreams"][0]["status"] == "killed"
    assert not (memory_in(home, project) / ".consolidate-lock").exists()


def test_all_dreams_where_it_is_due(run: Run, home: Path, tmp_path: Path) -> None:
    for name, sessions in (("due", 5), ("new", 2)):
        (tmp_path / name).mkdir()
        remembered(home, canonical_root(tmp_path / name), sessions)
    rows = {os.path.basename(row["project"]): row for row in run("dream", "--all", "--json").json()}
    assert rows["due"]["status"] == "completed"
    assert rows["new"] == {
        "project": str(tmp_path / "new"),
        "status": "passed over",
        "reason": "2 of 5 sessions since the last dream",
    }
    again = run("dream", "--all", "--json").json()
    assert {row["status"] for row in again} == {"passed over"}


@pytest.mark.usefixtures("twins")
@pytest.mark.spec("B7")
def test_stats_tell_the_memory_and_its_trend(run: Run, home: Path, project: Path) -> None:
    shown = run("stats", "--json").json()
    assert shown["sessions"] == 0
    assert shown["memory"][-1]["memories"] == 2
    assert shown["memory"][-1]["pollution"] > 0
    kept = memory_in(home, project).parent / "hygiene.jsonl"
    kept.write_text('["2026-01-02", 40, 9, 0.5]\nnot json\n' + kept.read_text())
    run("dream", code=0)
    trend = run("stats", "--json").json()["memory"]
    assert [row["score"] for row in trend] == [40, 100]
    assert "memory score 100 of 100" in run("stats", code=0).out
    assert all(json.loads(row) for row in kept.read_text().splitlines())


@pytest.mark.spec("9.switch")
@pytest.mark.usefixtures("twins")
def test_with_the_flag_off_no_dream_runs(run: Run, home: Path) -> None:
    run("flags", "set", "dream", "off")
    for words in (("dream",), ("dream", "run", "--dry-run")):
        assert "`reverie flags set dream on`" in run(*words, code=6).err
    assert not list(home.glob("projects/*/dreams/*"))
    run("flags", "set", "dream", "on")
    run("dream", code=0)
