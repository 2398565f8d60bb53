"""`reverie fleet` on one host: plan, run, status, list, cancel, retry, pause, limits, budget."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from reverie.fleet import JobEnd, at_work, home_id, open_local
from reverie.store import canonical_root, find_project_folder
from tests.processes import loaded
from tests.web.nights import GONE, half_a_night

from .conftest import Run, remembered

pytestmark = [pytest.mark.spec("9.fleet-command")]


@pytest.fixture
def root(home: Path, project: Path) -> Path:
    """A project with a memory, and sessions enough for a dream."""
    where = canonical_root(project)
    remembered(home, where, 5)
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
    with half_a_night(home):
        said = run("fleet", "status", code=0).out
        found = run("fleet", "status", "--json").json()
    assert "dead: RateLimited (1)" in said  # a code that nobody knows is its own word
    assert "waiting until later: another process holds the memory (1)" in said
    assert found["later"]["codes"] == {"held": 1}
    quiet = {one["worker"]: one["quiet"] for one in found["signs"]}
    assert quiet.pop(GONE) is None
    assert list(quiet.values()) == [0.0]
    assert [name for name, about in found["tenants"].items() if about["full"]] == ["globex"]
    (dead,) = run("fleet", "list", "--state", "dead", "--json").json()
    assert dead["reason"] == "The key is at its limit"
    assert "reason: The key is at its limit" in run("fleet", "show", dead["key"], code=0).out


def test_codes_are_words_for_people_and_codes_for_programs(run: Run, home: Path) -> None:
    with half_a_night(home):
        pass
    (skipped,) = run("fleet", "list", "--state", "skipped", "--json").json()
    assert skipped["code"] == "no-memory"
    assert "there is no memory" in run("fleet", "list", "--state", "skipped", code=0).out
    assert "code: no-memory (there is no memory)" in run("fleet", "show", skipped["key"]).out
    for row in run("fleet", "list", "--json").json():
        assert "words" not in row


def test_a_narrow_terminal_cuts_neither_the_key_nor_the_reason(
    home: Path, terminal: Callable[..., str]
) -> None:
    with half_a_night(home) as ledger:
        (learn,) = ledger.jobs(kind="learn")
    shown = terminal("fleet", "list", env={"COLUMNS": "80"})
    plain = re.sub(r"\x1b\[[\d;]*m", "", shown)
    columns = [line.split() for line in plain.splitlines() if line.strip()]
    last = next(n for n, row in enumerate(columns) if row[0].startswith("learn:"))
    assert "".join(row[0] for row in columns[last:]) == learn["key"]
    for word in ("another", "process", "holds", "memory", "cancelled"):
        assert any(word in row for row in columns), shown


# What a host is called


def test_a_host_that_is_called_otherwise_goes_on_where_it_was(
    run: Run, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A laptop in another network, a container that was started again: one night, one dream."""
    monkeypatch.setattr(socket, "gethostname", lambda: "laptop-at-home")
    assert run("fleet", "plan", "--all", "--night", "2026-11-17", "--json").json()["new"] == 1
    monkeypatch.setattr(socket, "gethostname", lambda: "laptop-at-work")
    again = run("fleet", "run", "--all", "--night", "2026-11-17", "--json").json()
    assert (again["done"], again["waiting"]) == (1, 0)
    assert len(run("fleet", "list", "--json").json()) == 1


@pytest.mark.integration
def test_a_plan_for_many_hosts_is_for_this_home_whatever_its_host_is_called(
    run: Run, root: Path, home: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("--all", "--night", "2026-11-17", "--database", postgres_url, "--json")
    run("fleet", "init", "--database", postgres_url, code=0)
    monkeypatch.setattr(socket, "gethostname", lambda: "laptop.at-home")
    assert run("fleet", "plan", *words).json()["new"] == 1
    monkeypatch.setattr(socket, "gethostname", lambda: "laptop.at-work")
    again = run("fleet", "plan", *words).json()
    assert again["new"] == 0
    assert again["why"] == ["1 job in the queue; start `reverie fleet work`"]
    (row,) = run("fleet", "list", "--database", postgres_url, "--json").json()
    assert row["host"] == home_id(home)
    assert row["host"].startswith("laptop-at-home-")
    assert run("fleet", "plan", "--shared", *words).json()["new"] == 1


# Why there is nothing to do


def told(run: Run, *words: str) -> str:
    """What a command says for people; a program hears the same in `why`."""
    why = run("fleet", *words, "--json").json()["why"]
    said = run("fleet", *words, code=0).out
    for sentence in why:
        assert sentence in said
    return " | ".join(why)


@pytest.mark.parametrize("words", [("run", "--all"), ("run",), ("plan",), ("plan", "--dry-run")])
def test_a_home_without_projects_says_so(run: Run, home: Path, words: tuple[str, ...]) -> None:
    said = told(run, *words)
    assert f"No project with a session is known in {home}" in said
    assert "`--root PATH`" in said


def test_a_run_says_that_all_was_dreamt_this_night(run: Run, root: Path) -> None:
    first = run("fleet", "run", "--all", "--night", "2026-11-17", "--json").json()
    assert (first["done"], first["why"]) == (1, [])
    for words in (("run", "--all"), ("plan", "--all")):
        said = told(run, *words, "--night", "2026-11-17")
        assert "Dreamt already for this night (2026-11-17, UTC): 1 memory; `reverie dream`" in said


@pytest.mark.parametrize("command", ["run", "plan"])
def test_a_memory_that_is_not_due_is_told_with_its_reason(
    run: Run, root: Path, home: Path, command: str
) -> None:
    for path in list(find_project_folder(home, root).glob("*.jsonl"))[:3]:
        path.unlink()
    said = told(run, command)
    assert "1 memory passed over: 2 of 5 sessions since the last dream" in said
    assert "`--all` dreams also where it is not due" in said


def test_nothing_to_learn_is_told_with_how_far_back_it_was_looked(run: Run, root: Path) -> None:
    said = told(run, "run", "--kind", "learn", "--days", "3")
    assert "1 project: no session was written to in the last 3 days" in said
    assert "`--days N`" in said


def test_a_paused_tenant_and_a_job_that_waits_are_named_with_the_way_out(
    run: Run, root: Path, home: Path
) -> None:
    run("fleet", "pause", "acme", code=0)
    said = told(run, "run", "--tenant", "acme")
    assert "1 job of acme, which is paused; `reverie fleet pause acme --resume`" in said
    ledger = open_local(home)
    ledger.pause("acme", False)
    taken = ledger.claim("w")
    assert taken is not None
    ledger.end(taken, JobEnd("queued", "budget", 3_600.0, counted=False))
    ledger.close()
    said = told(run, "run", "--tenant", "acme")
    assert "1 job: no room in the budget until tomorrow (UTC); not before 2" in said
    assert "`reverie fleet budget acme` shows it, `--tokens N` raises it" in said


def test_a_job_in_another_process_and_one_that_is_dead_are_named(
    run: Run, root: Path, home: Path
) -> None:
    run("fleet", "plan", "--json")
    assert "1 job in the queue; start `reverie fleet run`" in told(run, "plan")
    ledger = open_local(home)
    with at_work(home) as name:
        taken = ledger.claim(name)
        assert taken is not None
        assert "1 job in work by another process" in told(run, "run")
        ledger.end(taken, JobEnd("dead", "StoreError"))
    ledger.close()
    said = told(run, "run")
    assert "Worked already, once for a night" in said
    assert "1 job (1 dead); `reverie fleet retry KEY`" in said


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
    status = "build().main(['fleet', 'status', '--json'], standalone_mode=False)"
    names = loaded(f"from reverie.apps.cli.app import build\n{status}")
    assert not names & {"procrastinate", "psycopg", "asyncpg"}
