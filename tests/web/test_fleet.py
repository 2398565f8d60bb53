"""The fleet's page: what `reverie fleet` says, what is wrong first, and what a job can be told."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reverie.fleet import FleetLedger, Job, JobEnd, open_local
from reverie.store import Project
from reverie.text import number
from tests.cli.conftest import Run
from tests.web.conftest import HOSTILE, Page, opened
from tests.web.nights import GONE, half_a_night, job, taken
from tests.web.test_screens import parsed, words

pytestmark = pytest.mark.spec("18.web-fleet")
MENU = 'href="/fleet" data-go="f"'


@pytest.fixture
def page(home: Path, project: Path) -> Iterator[Page]:
    """A page of a project of which there is nothing to see yet."""
    yield from opened(Project.at(project))


@pytest.fixture
def ledger(page: Page) -> Iterator[FleetLedger]:
    """The ledger of this host, as half a night left it."""
    with half_a_night(page.desk.place.home) as found:
        yield found


def key_of(run: Run, state: str) -> str:
    return run("fleet", "list", "--state", state, "--json").json()[0]["key"]


def state_of(run: Run, key: str) -> str:
    return run("fleet", "show", key, "--json").json()["state"]


def section(text: str, title: str) -> str:
    """The words of one card."""
    found = re.search(rf">{title}</h2>.*?</section>", text, re.DOTALL)
    assert found, title
    return words(found[0])


# --- what it says


def test_without_a_plan_it_says_what_to_run_and_makes_nothing(page: Page) -> None:
    answer = page.settled("/fleet")
    shown = words(answer.text)
    assert "No plan was made here" in shown
    assert "reverie fleet run works every memory of this host that is due" in shown
    assert MENU not in answer.text
    refused = page.visitor.post("/fleet/retry", {"tenant": "default", "key": "dream:x:y"})
    assert (refused.status, "No plan was made here" in refused.text) == (404, True)
    assert page.visitor.post("/fleet/pause", {"tenant": "default"}).status == 404
    assert not (page.desk.place.home / "fleet").exists()


def test_a_ledger_without_a_job_says_how_to_plan(page: Page) -> None:
    open_local(page.desk.place.home).close()
    answer = page.settled("/fleet")
    assert "No job was planned yet." in words(answer.text)
    assert "reverie fleet run plans what is due on this host" in words(answer.text)
    assert MENU in answer.text
    assert MENU in page.visitor.get("/sessions").text
    assert 'href="/fleet"' in page.settled("/health").text.partition("<main")[2]


def test_it_waits_for_nothing(page: Page, ledger: FleetLedger) -> None:
    with page.desk.commands._one:  # type: ignore[attr-defined]
        assert "The fleet is being asked." in words(page.visitor.get("/fleet").text)
    page.desk.settle(60)
    assert "The fleet is being asked." not in words(page.visitor.get("/fleet").text)


def test_it_says_what_the_commands_say(page: Page, ledger: FleetLedger, run: Run) -> None:
    text = page.settled("/fleet").text
    status = run("fleet", "status", "--json").json()
    for state in ("queued", "running", "done", "skipped", "dead", "cancelled"):
        count = sum(row["jobs"] for row in status["recent"] if row["state"] == state)
        assert f"{state.title()} {count}" in words(text), state
    running = section(text, "Running")
    for row in status["running"]:
        assert row["key"] in running
    assert "consolidate 5 rounds 2 files 21 k cost" in running
    for one in status["signs"]:
        assert one["worker"] in section(text, "Workers")
    money = section(text, "Money")
    for name, about in status["tenants"].items():
        assert f"{name} " in money
        if about["tokens"] is not None:
            used = f"{number(about['spent']['tokens'])} of {number(about['tokens'])}"
            assert used in money
    assert "every key 1 k 450 k 90 k" in section(text, "Limits of a key")
    for row in run("fleet", "list", "--json").json():
        assert row["key"] in section(text, "Jobs")


def test_what_is_wrong_stands_first_with_its_reason(page: Page, ledger: FleetLedger) -> None:
    text = page.settled("/fleet").text
    assert "1 job dead, 1 job held back, 1 tenant paused, 1 budget used up, 1 worker gone." in (
        words(text)
    )
    wrong = section(text, "What is wrong")
    assert "paused acme None of its jobs begins." in wrong
    assert "budget globex : 1,000 of 1,000 price-weighted tokens, 3 of 10 calls today" in wrong
    assert f"gone {GONE} It had 1 job" in wrong
    assert "RateLimited The key is at its limit 1 try" in wrong
    assert "another process holds the memory" in wrong
    titles = re.findall(r"<h2 id=[^>]*>([^<]*)</h2>", text)
    assert titles[:3] == ["What is wrong", "Running", "By tenant and kind"]


def test_a_night_in_which_nothing_is_wrong_says_so(page: Page) -> None:
    ledger = open_local(page.desk.place.home)
    ledger.add([job("billing")])
    ledger.end(taken(ledger), JobEnd("done", "completed"))
    ledger.close()
    shown = words(page.settled("/fleet").text)
    assert "Nothing is wrong. 1 done." in shown
    assert "What is wrong" not in shown


def test_earlier_nights_are_not_counted_with_the_last(page: Page, ledger: FleetLedger) -> None:
    week = 7 * 86_400
    ledger.database.write(
        "UPDATE fleet_jobs SET created = created - ?, started = started - ? WHERE state = 'done'",
        (week, week),
    )
    assert "Done 0 2 with earlier nights" in words(page.settled("/fleet").text)


def test_jobs_are_shown_by_state_kind_and_tenant(page: Page, ledger: FleetLedger, run: Run) -> None:
    held = section(page.settled("/fleet?state=dead").text, "Jobs")
    (dead,) = run("fleet", "list", "--state", "dead", "--json").json()
    assert dead["key"] in held
    assert held.count(":2026-11-17") == 1
    acme = section(page.settled("/fleet?state=queued&kind=hygiene&tenant=acme").text, "Jobs")
    assert acme.count("hygiene:") == 3
    assert "No job fits" in words(page.settled("/fleet?kind=sync").text)
    for odd in ("state=%3Cscript%3E", "kind=--database", "tenant=a+b", "tenant=--x%0a"):
        assert page.settled(f"/fleet?{odd}").text.count('aria-current="true" href="/fleet#jobs"')


def test_a_fleet_that_cannot_be_asked_says_why(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    environ = {**page.desk.place.environ, "REVERIE_FLEET_DATABASE": "mysql://x"}
    object.__setattr__(page.desk.place, "environ", environ)
    monkeypatch.setenv("REVERIE_FLEET_DATABASE", "mysql://x")
    shown = words(page.settled("/fleet").text)
    assert "The fleet cannot be asked. A fleet past one host needs PostgreSQL." in shown


# --- what it does


def test_a_job_is_retried_and_cancelled_and_each_taken_back(
    page: Page, ledger: FleetLedger, run: Run
) -> None:
    key = key_of(run, "dead")
    form = {"tenant": "default", "key": key, "in_state": "dead"}
    done = page.visitor.post("/fleet/retry", form)
    assert done.status == 303
    assert "state=dead" in done.headers["location"]
    text = page.visitor.get(done.headers["location"]).text
    assert "It is queued again" in words(text)
    assert "Dead 0" in words(text)
    assert state_of(run, key) == "queued"
    back = re.search(r'action="(/fleet/\w+)">(.*?)<button[^>]*data-key="u"', text, re.DOTALL)
    assert back
    fields = dict(re.findall(r'name="(\w+)" value="([^"]*)"', back[2]))
    assert (back[1], fields["key"]) == ("/fleet/cancel", key)
    again = page.visitor.post(back[1], fields)
    assert state_of(run, key) == "cancelled"
    assert 'action="/fleet/retry"' in page.visitor.get(again.headers["location"]).text


def test_a_running_job_is_asked_to_stop(page: Page, ledger: FleetLedger, run: Run) -> None:
    key = key_of(run, "running")
    done = page.visitor.post("/fleet/cancel", {"tenant": "default", "key": key})
    text = page.visitor.get(done.headers["location"]).text
    assert "It was asked to stop; its memory is free once it has." in words(text)
    assert "asked to stop" in section(text, "Running")
    assert run("fleet", "show", key, "--json").json()["cancel"] is True
    over = page.visitor.post("/fleet/cancel", {"tenant": "default", "key": key_of(run, "done")})
    assert "Nothing was changed" in words(page.visitor.get(over.headers["location"]).text)


def test_a_job_that_is_held_back_begins_now(page: Page, ledger: FleetLedger) -> None:
    (row,) = [one for one in ledger.jobs(state="queued") if one["code"] == "held"]
    assert "Begin now" in section(page.settled("/fleet").text, "What is wrong")
    page.visitor.post("/fleet/retry", {"tenant": "default", "key": row["key"]})
    assert ledger.job("default", row["key"])["after"] == 0
    assert "held back" not in words(page.visitor.get("/fleet").text)


def test_a_tenant_is_resumed_and_paused(page: Page, ledger: FleetLedger) -> None:
    done = page.visitor.post("/fleet/resume", {"tenant": "acme"})
    text = page.visitor.get(done.headers["location"]).text
    assert "Resumed: its jobs begin again." in words(text)
    assert ledger.tenants()["acme"]["paused"] is False
    assert "tenant paused" not in words(text)
    page.visitor.post("/fleet/pause", {"tenant": "acme"})
    assert ledger.tenants()["acme"]["paused"] is True
    assert page.visitor.post("/fleet/pause", {"tenant": "a b"}).status == 400
    assert "a b" not in ledger.tenants()


def test_a_key_is_never_an_option_and_an_unknown_one_is_named(
    page: Page, ledger: FleetLedger
) -> None:
    for key in ("--database=postgresql://evil.test/x", "--help", "-n", "nothing"):
        answer = page.visitor.post("/fleet/retry", {"tenant": "default", "key": key})
        assert (answer.status, "There is no such job" in answer.text) == (404, True), key
    for key in ("", "x" * 400, "a\0b"):
        answer = page.visitor.post("/fleet/cancel", {"tenant": "default", "key": key})
        assert answer.status == 404, key


def test_a_form_of_another_site_changes_nothing(page: Page, ledger: FleetLedger) -> None:
    for action in ("pause", "resume", "retry", "cancel"):
        form = {"tenant": "acme", "key": "x"}
        evil = page.visitor.post(f"/fleet/{action}", form, origin="http://evil.test")
        assert evil.status == 403, action
    assert ledger.tenants()["acme"]["paused"] is True


def test_keys_and_reasons_of_others_are_inert(page: Page, ledger: FleetLedger, run: Run) -> None:
    key = f"--{HOSTILE}"[:250]
    ledger.add([Job("default", key, "dream", f"/srv/{HOSTILE}", "2026-11-17")])
    ledger.end(taken(ledger), JobEnd("dead", HOSTILE))
    ledger.add([Job("default", f"{key}2", HOSTILE, HOSTILE)])
    taken(ledger, HOSTILE)
    for place in ("/fleet", "/fleet?state=dead"):
        text = page.settled(place).text
        for tag, attributes in parsed(text):
            assert tag not in ("img", "iframe", "object", "embed", "base"), place
            for name, value in attributes:
                assert not name.startswith(("on", "hx-on", "style")), (tag, name)
                if name in ("href", "src", "action", "hx-get"):
                    assert value is not None
                    assert re.match("/[^/]|#", value), value
        assert len(re.findall(r"<script", text)) == 3
        assert "\u202e" not in re.sub(r'value="[^"]*"', "", text)
    # the button still means this very job
    found = [html.unescape(one) for one in re.findall(r'name="key" value="([^"]*)"', text)]
    assert key in found
    page.visitor.post("/fleet/retry", {"tenant": "default", "key": key})
    assert ledger.job("default", key)["state"] == "queued"


def test_ten_thousand_jobs_are_a_small_page(page: Page, ledger: FleetLedger) -> None:
    kinds = ("dream", "hygiene", "sync")
    ledger.add([job(f"r{n:05}", kinds[n % 3], f"tenant{n % 50}") for n in range(10_000)])
    for state in ("dead", "queued", "running"):
        ledger.database.write(
            "UPDATE fleet_jobs SET state = ?, code = 'held', worker = key, started = created,"
            " after = CASE WHEN ? = 'queued' THEN created + 9999 ELSE 0 END WHERE (tenant, key) IN"
            " (SELECT tenant, key FROM fleet_jobs WHERE started = 0 AND state = 'queued' LIMIT 90)",
            (state, state),
        )
    answer = page.settled("/fleet")
    assert answer.packed <= 24_000
    assert section(answer.text, "Jobs").count("2026-11-17") == 50
    assert section(answer.text, "Running").count("2026-11-17") == 10
    assert "10 of 92" in section(answer.text, "Running")
    assert "10 of 91 dead" in section(answer.text, "What is wrong")
    kept: Any = page.desk.figures.last("fleet").value
    assert len(kept["later"]["jobs"]) == len(kept["dead"]["jobs"]) == 10


# --- many hosts


@pytest.mark.integration
def test_a_fleet_of_many_hosts_is_seen_and_told(
    page: Page, postgres_url: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    from reverie.fleet import enqueue, init, open_fleet

    environ = {**page.desk.place.environ, "REVERIE_FLEET_DATABASE": postgres_url}
    object.__setattr__(page.desk.place, "environ", environ)
    monkeypatch.setenv("REVERIE_FLEET_DATABASE", postgres_url)
    assert "are not in this database. Run `reverie fleet init` once" in (
        words(page.settled("/fleet").text)
    )
    init(postgres_url)
    page.desk.figures.outdated("fleet")
    text = page.settled("/fleet").text
    assert "reverie fleet plan --shared queues what is due" in words(text)
    ledger = open_fleet(postgres_url)
    try:
        ledger.check()
        ledger.add([job("billing"), job("web"), job("search", tenant="acme")])
        enqueue(ledger)
        works, dies, _ = ledger.jobs()
        for row, name in ((works, "host-a:7:1"), (dies, "host-b:9:2")):
            assert ledger.begin(row["tenant"], row["key"], name)
        ledger.database.write(
            "WITH one AS (INSERT INTO procrastinate_workers (last_heartbeat)"
            " VALUES (now() - interval '20 minutes') RETURNING id)"
            " UPDATE procrastinate_jobs SET status = 'doing', worker_id = (SELECT id FROM one)"
            " WHERE args->>'key' = ?",
            (works["key"],),
        )
        page.desk.figures.outdated("fleet")
        text = page.settled("/fleet").text
        assert "host-a:7:1 1 20 min ago" in section(text, "Workers")
        assert "gone host-b:9:2 It had 1 job; other workers take them up" in (
            section(text, "What is wrong")
        )
        ledger.database.write("UPDATE fleet_jobs SET state = 'dead' WHERE key = ?", (dies["key"],))
        ledger.database.write(
            "DELETE FROM procrastinate_jobs WHERE args->>'key' = ?", (dies["key"],)
        )
        form = {"tenant": dies["tenant"], "key": dies["key"]}
        done = page.visitor.post("/fleet/retry", form)
        assert "It is queued again" in words(page.visitor.get(done.headers["location"]).text)
        again = "SELECT COUNT(*) FROM procrastinate_jobs WHERE args->>'key' = ?"
        handed = ledger.database.run(lambda within: within.rows(again, (dies["key"],)))
        assert handed == [(1,)]  # the engine has it too
    finally:
        ledger.close()
