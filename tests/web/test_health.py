"""Health and the team: figures of the commands, a difference before anything is mended, undo."""

from __future__ import annotations

import json
import os
import re
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reverie.apps.team import app
from reverie.apps.web import FigureProcesses, share
from reverie.http_server import serving
from reverie.store import Project, RuleStore
from reverie.team import TeamClient, TeamStore, open_database
from reverie.text import number
from reverie.topics import Origin, Trust
from tests.cli.conftest import Run
from tests.team.conftest import Mate
from tests.web.conftest import HOSTILE, Page, opened
from tests.web.test_screens import value_in, words

pytestmark = pytest.mark.spec("18.web")
MINE = Origin("save", Trust.USER, agent="user")
STALE = "---\nname: Freeze\ndescription: When\ntype: project\n---\n\nYesterday the freeze began.\n"
DOUBLED = STALE + "The freeze ends on a Monday.\n" * 2


# --- health


def test_health_says_what_the_commands_say(page: Page, run: Run) -> None:
    shown = words(page.settled("/health").text)
    stats = run("stats", "--json").json()
    check = run("memory", "check", "--json").json()
    doctor = run("doctor", "--json").json()
    assert f"Memory score {check['score']} of 100" in shown
    assert f"Cache hits {share(stats['hit_rate'])} {stats['sessions']} session" in shown
    assert f"Faulty {share(stats['memory'][-1]['pollution'])}" in shown
    for name, cost in stats["cost"].items():
        assert f"{stats['requests'][name]} {number(cost)}" in shown, name
    for one in check["findings"]:
        assert one["kind"].replace("_", " ") in shown
    for one in doctor["checks"]:
        if one["name"] not in ("space", "locks"):  # what changes between two looks
            assert one["name"] in shown
            assert " ".join(one["what"].split()) in shown, one
        if one["state"] == "note" and one["do"]:
            assert f"To mend it: {one['do']}" in shown


def test_a_page_of_health_waits_for_nothing(page: Page) -> None:
    with page.desk.commands._turn:
        shown = words(page.visitor.get("/health").text)
    assert "It is being worked out" in shown
    assert "All is well." in shown
    page.desk.settle(60)


def test_health_is_worked_out_once_while_it_is_fresh(page: Page) -> None:
    for _ in range(3):
        page.settled("/health")
    asked = [line[0] for line in page.desk.commands.asked]  # type: ignore[attr-defined]
    assert sorted(asked) == ["doctor", "stats"]


def test_rules_are_shown_with_what_they_did(page: Page, run: Run) -> None:
    run("memory", "add", "--name", "Pushing", "Never run `git push --force` here.")
    (rule, *_) = run("memory", "rules", "--json").json()["rules"]
    shown = words(page.settled("/health").text)
    assert f"Pushing {rule['level']}" in shown
    assert "never needed yet" in shown
    with page.desk.memory_there() as memories:
        store = RuleStore(memories, page.desk.place.root)
        for days, event in ((3, "matched"), (3, "held"), (0, "matched"), (0, "broken")):
            store.count([(rule["file"], event)], time.time() - days * 86_400)
    page.desk.figures.outdated("rules")
    text = page.settled("/health").text
    assert "calls against it 2, held 1, broken all the same 1" in words(text)
    assert "2 calls against it on the last 14 days" in text


def test_a_switch_acts_as_the_command_does_and_back(page: Page, run: Run) -> None:
    page.desk.start = lambda name, work: None  # type: ignore[method-assign]

    def state() -> Any:
        rows = run("flags", "--json").json()["flags"]
        return next((row["value"], row["source"]) for row in rows if row["name"] == "dream")

    answer = page.visitor.post("/health/switch", {"name": "dream", "on": "0"})
    assert "Switched off" in page.visitor.get(answer.headers["location"]).text
    assert state() == (False, "flags")
    assert "Dreams that tidy the memory off Switch on" in words(page.visitor.get("/health").text)
    page.visitor.post("/health/switch", {"name": "dream", "on": "1"})
    assert state() == (True, "flags")
    assert page.visitor.post("/health/switch", {"name": "team_memory", "on": "1"}).status == 400


def test_the_limit_of_a_day_is_set_as_the_command_sets_it_and_undone(
    page: Page, run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page.desk.start = lambda name, work: None  # type: ignore[method-assign]
    (home / "settings.json").write_text('{"hooks": {"x": []}, "retentionDays": 7}')

    def limit() -> Any:
        row = run("config", "get", "backgroundTokensPerDay", "--json").json()
        return row["value"], row["source"]

    answer = page.visitor.post("/health/limit", {"tokens": "1,500,000"})
    assert limit() == (1_500_000, "user")
    done = page.visitor.get(answer.headers["location"]).text
    assert "of 1,500,000" in words(done)
    assert value_in(done, "tokens") == ""  # an undo back to the default
    page.visitor.post("/health/limit", {"tokens": ""})
    assert limit() == (2_000_000, "default")
    kept = json.loads((home / "settings.json").read_text())
    assert kept == {"hooks": {"x": []}, "retentionDays": 7}
    refused = page.visitor.post("/health/limit", {"tokens": "lots"})
    assert (refused.status, "must be a number" in words(refused.text)) == (400, True)
    monkeypatch.setenv("REVERIE_BACKGROUND_TOKENS_PER_DAY", "5")
    shown = words(page.visitor.get("/health").text)
    assert "The limit comes from REVERIE_BACKGROUND_TOKENS_PER_DAY." in shown


def test_mending_shows_a_difference_first_and_can_be_undone(page: Page, run: Run) -> None:
    with page.desk.changing() as memories:
        memories.save("project_freeze.md", DOUBLED.encode(), MINE)
        page.desk.memories.check(memories)
    assert "stale date" in words(page.settled("/health").text)
    before = page.visitor.get("/health/mend").text
    told = run("memory", "check", "--fix", "--dry-run", "--json").json()
    assert value_in(before, "plan") == told["plan"]
    assert {one["file"] for one in told["files"]} == set(
        re.findall(r"class=\"file\"><span>([^<]*)", before)
    )
    assert "The freeze ends on a Monday." in before
    done = page.visitor.post("/health/mend", {"plan": told["plan"]})
    assert done.status == 303
    after = page.visitor.get(done.headers["location"]).text
    assert "Mended." in after
    with page.desk.memory_there() as memories:
        assert memories.folder.read("project_freeze.md").text.count("on a Monday") == 1
    page.visitor.post("/memories/undo", {"version": value_in(after, "version")})
    with page.desk.memory_there() as memories:
        assert memories.folder.read("project_freeze.md").text == DOUBLED


def test_what_changed_since_it_was_shown_is_not_mended(page: Page) -> None:
    with page.desk.changing() as memories:
        memories.save("project_freeze.md", DOUBLED.encode(), MINE)
    plan = value_in(page.visitor.get("/health/mend").text, "plan")
    with page.desk.changing() as memories:
        memories.save("project_freeze.md", DOUBLED.replace("freeze", "thaw").encode(), MINE)
    answer = page.visitor.post("/health/mend", {"plan": plan})
    assert answer.status == 409
    assert "has changed since it was shown" in words(answer.text)
    with page.desk.memory_there() as memories:
        assert memories.folder.read("project_freeze.md").text.count("on a Monday") == 2


def test_a_finding_leads_to_its_line(page: Page) -> None:
    with page.desk.changing() as memories:
        memories.save("project_freeze.md", STALE.encode(), MINE)
        page.desk.memories.check(memories)
    shown = page.settled("/health").text
    found = re.search(r'href="(/memories/project_freeze.md\?view=source)#(L\d+)"', shown)
    assert found
    assert f'<li id="{found[2]}"><span>Yesterday the freeze' in page.visitor.get(found[1]).text


def test_a_fleet_is_shown_where_one_was_planned(page: Page, run: Run) -> None:
    from reverie.fleet import open_local

    assert "No plan was made here" in words(page.settled("/health").text)
    assert not (page.desk.place.home / "fleet").exists()
    open_local(page.desk.place.home).close()
    page.desk.figures.outdated("fleet")
    assert "no jobs; 0 workers" in words(page.settled("/health").text)
    assert run("fleet", "status", "--json").json()["jobs"] == []


def test_a_command_runs_behind_everything_else_and_ends_with_the_page() -> None:
    commands = FigureProcesses(os.environ)
    line = [sys.executable, "-c", "import signal; signal.pause()"]
    thread = threading.Thread(target=commands.started, args=(line,))
    thread.start()
    while not commands._running:
        thread.join(0.01)
    while os.getpriority(os.PRIO_PROCESS, commands._running[0].pid) < 10:
        thread.join(0.01)
    commands.stop()
    thread.join(60)
    assert not thread.is_alive()
    assert commands.run(["stats"]) == ""


def test_a_figure_that_cannot_be_worked_out_says_why(page: Page) -> None:
    page.desk.commands.started = lambda line: json.dumps(  # type: ignore[method-assign]
        {"error": {"what": f"No disk for {line[4]}", "do": "Find one"}}
    )
    shown = words(page.settled("/health").text)
    assert "No disk for stats. Find one" in shown
    assert "No disk for doctor. Find one" in shown


# --- the team


class Sharing(Mate):
    """A teammate with a memory and a token of their own, who shares what they write at once."""

    def write(self, key: str, text: str) -> None:
        super().write(key, text)
        self.sync()


def test_a_figure_that_is_outdated_while_it_is_worked_out_is_worked_out_anew(page: Page) -> None:
    """Else what stood before a sync would be shown as of after it."""
    figures, stands = page.desk.figures, ["before"]

    def seen() -> str:
        found = stands[0]
        if found == "before":
            stands[0] = "after"
            figures.outdated("it")
        return found

    figures.make("it", seen)
    assert figures.last("it").value == "after"


@pytest.fixture
def shared(
    home: Path, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Page, Sharing]]:
    """A page of somebody in a team, and a teammate called Ines."""
    database = open_database(str(tmp_path / "team.sqlite3"))
    store = TeamStore(database, now=time.time)
    tokens = {
        name: store.create_token(org="a", repo="acme/reader", author=name, writes=True)[0]
        for name in ("ines", "tomas")
    }
    with serving(app(store)) as url:
        monkeypatch.setenv("REVERIE_TEAM_URL", url)
        monkeypatch.setenv("REVERIE_TEAM_TOKEN", tokens["tomas"])
        monkeypatch.setenv("REVERIE_TEAM_REPOSITORY", "acme/reader")
        ines = Sharing(tmp_path / "ines", TeamClient(url, tokens["ines"], "acme/reader"), time.time)
        for page in opened(Project.at(project)):
            page.desk.figures.fresh = 0.0
            yield page, ines
        ines.memories.close()
    database.close()


def memory(text: str) -> str:
    return f"---\nname: Deploy\ndescription: How\ntype: project\n---\n\n{text}\n"


def test_the_team_page_says_what_the_commands_say(shared: tuple[Page, Sharing], run: Run) -> None:
    page, ines = shared
    ines.write("deploy.md", memory(f"Deploys run on Fridays. {HOSTILE}"))
    text = page.settled("/team").text
    shown = words(text)
    status = run("team", "status", "--json").json()
    assert status["to_pull"] == ["deploy.md"]
    assert "acme/reader" in shown
    assert "1 to pull, 0 to push, 0 conflicts" in shown
    (entry,) = run("team", "log", "--json").json()
    assert f"deploy.md ines wrote it {entry['version']}" in shown
    (differs,) = run("team", "diff", "--json").json()
    assert (differs["what"], differs["author"]) == ("pull", "ines")
    assert "deploy.md a sync takes it last written by ines" in shown
    assert "<script>document" not in text
    assert "1 to pull, 0 to push" in words(page.settled("/health").text)


def test_a_teammates_change_is_taken_and_undone_for_oneself(shared: tuple[Page, Sharing]) -> None:
    page, ines = shared
    ines.write("deploy.md", memory("Deploys run on Fridays."))
    assert page.visitor.post("/team/sync").status == 303
    shown = page.settled("/team").text
    assert "1 pulled, 0 pushed" in words(shown)
    assert "1 file by ines" in words(shown)
    there = page.desk.place.folder() / "memory" / "team" / "deploy.md"
    assert "Fridays" in there.read_text()
    done = page.visitor.post("/team/undo", {"version": value_in(shown, "version")})
    assert done.status == 303
    assert not there.exists()
    again = words(page.settled("/team").text)
    assert "undone" in again
    assert "taken back here, until a teammate changes it again" in again
    page.visitor.post("/team/sync")
    page.desk.settle(60)
    assert not there.exists()
    ines.sync()
    assert ines.path("deploy.md").exists()


def test_a_conflict_is_shown_with_both_texts(shared: tuple[Page, Sharing]) -> None:
    page, ines = shared
    ines.write("deploy.md", memory("Deploys run on Fridays."))
    page.visitor.post("/team/sync")
    page.desk.settle(60)
    there = page.desk.place.folder() / "memory" / "team" / "deploy.md"
    there.write_text(memory("Deploys run on Mondays."))
    ines.write("deploy.md", memory("Deploys run on Tuesdays."))
    text = page.settled("/team").text
    assert "1 conflict" in words(text)
    assert "changed on both sides" in words(text)
    assert "<del>Mondays</del>" in text
    assert "<ins>Tuesdays</ins>" in text
    page.visitor.post("/team/sync")
    assert "yours is kept in" in words(page.settled("/team").text)


def test_a_server_that_is_away_is_said_and_the_rest_stands(
    shared: tuple[Page, Sharing], monkeypatch: pytest.MonkeyPatch
) -> None:
    page, _ = shared
    monkeypatch.setenv("REVERIE_TEAM_TOKEN", "wrong")
    shown = words(page.settled("/team").text)
    assert "The other side cannot be asked." in shown
    assert "Nothing was pulled yet." in shown
    assert json.loads(page.desk.base.fact("figure team page"))["error"]


def test_without_a_team_the_page_says_how_to_have_one(page: Page) -> None:
    shown = words(page.settled("/team").text)
    assert "Team memory is off: no server is set." in shown
    assert "not set up" in words(page.settled("/health").text)


def test_many_large_differences_fit_on_a_page(shared: tuple[Page, Sharing]) -> None:
    page, ines = shared
    for n in range(12):
        lines = "".join(f"- {n} {hash((n, k)):x} {hash((k, n, n)):x}\n" for k in range(300))
        (ines.memories.folder.make_folder("team"))
        (ines.memories.root / "team" / f"large{n}.md").write_text(memory(lines))
    ines.sync()
    waiting = page.settled("/team")
    assert waiting.packed <= 24_000
    assert "more, not shown here" in waiting.text
    page.visitor.post("/team/sync")
    pulled = page.settled("/team")
    assert "12 pulled" in words(pulled.text)
    assert pulled.packed <= 24_000
