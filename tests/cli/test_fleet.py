"""`reverie fleet` on one host: plan, run, status, list, cancel, retry, pause, limits, budget."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from reverie.fleet.local import open_local
from reverie.settings import DEFAULTS
from reverie.store.home import canonical_root, find_project_folder
from reverie.store.memories import Memories
from tests.web.nights import GONE, half_a_night

from .conftest import Run

pytestmark = [pytest.mark.spec("9.fleet-command")]


@pytest.fixture
def root(home: Path, project: Path) -> Path:
    """A project with a memory, and sessions enough for a dream."""
    where = canonical_root(project)
    with Memories.of(home, where, {}, DEFAULTS, now=time.time):
        pass
    folder = find_project_folder(home, where)
    (folder / "memory" / "a.md").write_text(
        "---\nname: A\ndescription: about a\ntype: project\n---\n\nThe a.\n"
    )
    (folder / "memory" / "MEMORY.md").write_text("- [A](a.md) — about a\n")
    for n in range(5):
        (folder / f"00000000-0000-4000-8000-00000000000{n}.jsonl").write_text("")
    return where


def test_a_run_ends_with_its_totals_and_a_second_one_has_nothing_to_do(
    run: Run, root: Path
) -> None:
    done = run("fleet", "run", "--json").json()
    assert (done["done"], done["failed"], done["skipped"], done["cost"]) == (1, 0, 0, 0)
    again = run("fleet", "run", "--json").json()
    assert (again["done"], again["failed"], again["skipped"]) == (0, 0, 0)
    (row,) = run("fleet", "list", "--json").json()
    assert (row["state"], row["code"], row["root"]) == ("done", "completed", str(root))
    shown = run("fleet", "show", row["key"], "--json").json()
    assert shown == row
    assert "completed" in run("fleet", "show", row["key"], code=0).out
    assert row["key"] in run("fleet", "list", code=0).out


def test_a_plan_is_shown_before_it_is_made(run: Run, root: Path) -> None:
    shown = run("fleet", "plan", "--dry-run", "--json").json()
    (job,) = shown["jobs"]
    assert (job["kind"], job["root"], shown["new"]) == ("dream", str(root), 0)
    assert run("fleet", "list", "--json").json() == []
    assert run("fleet", "plan", "--json").json()["new"] == 1
    assert run("fleet", "plan", "--json").json()["new"] == 0
    assert "1 job planned, 0 of them new" in run("fleet", "plan", code=0).out


def test_a_job_is_cancelled_and_retried(run: Run, root: Path) -> None:
    run("fleet", "plan", "--json")
    (row,) = run("fleet", "list", "--json").json()
    assert run("fleet", "cancel", row["key"], "--json").json()["state"] == "cancelled"
    assert run("fleet", "run", "--json").json()["done"] == 0
    assert run("fleet", "retry", row["key"], "--json").json()["state"] == "queued"
    assert run("fleet", "run", "--json").json()["done"] == 1
    run("fleet", "show", "dream:nothing:1", code=2)


def test_a_paused_tenant_waits(run: Run, root: Path) -> None:
    run("fleet", "pause", "acme", code=0)
    done = run("fleet", "run", "--tenant", "acme", "--json").json()
    assert (done["done"], done["waiting"]) == (0, 1)
    assert "acme is paused" in run("fleet", "status", code=0).out
    run("fleet", "pause", "acme", "--resume", code=0)
    assert run("fleet", "run", "--tenant", "acme", "--json").json()["done"] == 1


def test_limits_and_budgets_are_set_and_shown(run: Run) -> None:
    assert run("fleet", "limits", "--json").json() == {}
    run("fleet", "limits", "--requests", "50", "--input", "30000", code=0)
    run("fleet", "limits", "--output", "8000", code=0)
    found = run("fleet", "limits", "--json").json()
    assert found == {"*": {"requests": 50.0, "input": 30_000.0, "output": 8_000.0}}
    run("fleet", "budget", "acme", "--tokens", "2000000", code=0)
    shown = run("fleet", "budget", "acme", "--json").json()
    assert (shown["tokens"], shown["spent"]["tokens"]) == (2_000_000.0, 0.0)
    run("fleet", "budget", "acme", "--none", code=0)
    assert run("fleet", "budget", "acme", "--json").json()["tokens"] is None


def test_status_for_people_programs_and_prometheus(run: Run, root: Path) -> None:
    assert "No job was planned yet" in run("fleet", "status", code=0).out
    run("fleet", "run", "--json")
    found = run("fleet", "status", "--json").json()
    assert found["jobs"] == [
        {
            "tenant": "default",
            "kind": "dream",
            "state": "done",
            "jobs": 1,
            "cost": 0.0,
            "requests": found["jobs"][0]["requests"],
        }
    ]
    text = run("fleet", "status", "--metrics", code=0).out
    assert 'reverie_fleet_jobs{tenant="default",kind="dream",state="done"} 1' in text
    assert str(root) not in text
    for line in text.splitlines():  # the text form: a comment, or a name, labels and a number
        assert line.startswith(("# ", "reverie_fleet_"))
        assert line.startswith("# ") or float(line.rsplit(" ", 1)[1]) >= 0


def test_status_says_why_jobs_are_dead_or_wait_and_who_is_gone(run: Run, home: Path) -> None:
    ledger = open_local(home)
    half_a_night(ledger, home)
    ledger.close()
    said = run("fleet", "status", code=0).out
    assert "dead: RateLimited 1" in said
    assert "waiting until later: held 1" in said
    found = run("fleet", "status", "--json").json()
    assert {one["worker"]: one["quiet"] for one in found["signs"]}[GONE] is None
    assert [name for name, about in found["tenants"].items() if about["full"]] == ["globex"]
    (dead,) = run("fleet", "list", "--state", "dead", "--json").json()
    assert dead["reason"] == "The key is at its limit"
    assert "reason: The key is at its limit" in run("fleet", "show", dead["key"], code=0).out


def test_sessions_are_learned_from_and_replayed(run: Run, root: Path, home: Path) -> None:
    folder = find_project_folder(home, root)
    name = "00000000-0000-4000-8000-000000000009"
    rows = [
        {"type": "user", "uuid": "u1", "message": {"role": "user", "content": "Use pnpm."}},
        {
            "type": "assistant",
            "uuid": "a1",
            "parentUuid": "u1",
            "message": {"role": "assistant", "content": [{"type": "text", "text": "Yes."}]},
        },
    ]
    source = folder.parent / "past.jsonl"
    source.write_text("".join(json.dumps({**row, "sessionId": name}) + "\n" for row in rows))
    run("sessions", "import", source, code=0)
    done = run("fleet", "run", "--kind", "learn", "--kind", "replay", "--json").json()
    assert (done["done"], done["failed"]) == (2, 0)
    (figures,) = (home / "fleet" / "replays").iterdir()
    assert json.loads(figures.read_text())["requests"] >= 1
    again = run("fleet", "run", "--kind", "learn", "--kind", "replay", "--json").json()
    assert again["done"] == 0


def test_bad_words_are_named(run: Run) -> None:
    assert "no such job" in run("fleet", "run", "--kind", "sleep", code=2).err
    assert "no name for a tenant" in run("fleet", "run", "--tenant", "a b", code=2).err
    assert "needs PostgreSQL" in run("fleet", "plan", "--database", "mysql://x", code=2).err
    assert "No database is named" in run("fleet", "work", code=2).err


def test_the_extra_is_loaded_only_where_it_is_used(home: Path, project: Path) -> None:
    program = (
        "import sys; from reverie.apps.cli.app import build;"
        "build().main(['fleet', 'status', '--json'], standalone_mode=False)"
    )
    check = "print([n for n in ('procrastinate', 'psycopg', 'asyncpg') if n in sys.modules])"
    text = f"import atexit, sys\natexit.register(lambda: {check})\n{program}"
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, check=True, env=os.environ
    )
    assert done.stdout.splitlines()[-1] == "[]"
