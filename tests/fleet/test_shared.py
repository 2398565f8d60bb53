"""A memory of the team's server, dreamt on a private copy and landed under its tag."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from reverie.embedded import EmbeddedModel
from reverie.fleet import (
    TEAM,
    PlanRequest,
    RunTotals,
    WorkerContext,
    nightly,
    open_local,
    plan_jobs,
    run_local,
)
from reverie.store import Project
from reverie.team import EntryChange, TeamStore, open_database, sha256_of

pytest.importorskip("starlette", reason="needs starlette: the extra `server` is not installed")
pytestmark = [pytest.mark.spec("9.fleet-shared")]
REPO, HERE = "acme/reader", ("default", "acme/reader")
RULE = "Run `make check` before every commit."


def text(name: str, body: str) -> str:
    return f"---\nname: {name}\ndescription: about {name}\ntype: feedback\n---\n\n{body}\n"


class TeamSite:
    """A team server, and a host with a token for it."""

    def __init__(self, base: Path, store: TeamStore, url: str, token: str) -> None:
        self.store, self.home = store, base / "home"
        environ = {
            "REVERIE_HOME": str(self.home),
            "REVERIE_TEAM_URL": url,
            "REVERIE_TEAM_TOKEN": token,
            "REVERIE_TEAM_DELETIONS": "1",
        }
        self.place = Project.at(base, environ=environ)
        self.ledger = open_local(self.home)
        self.token = store.create_token(org="default", repo=REPO, author="ines")[1]

    def put(self, **texts: str | None) -> None:
        drafts = [
            EntryChange(f"{key}.md", found, sha256_of(found) if found else "")
            for key, found in texts.items()
        ]
        self.store.put(HERE, drafts, self.store.tag(HERE), self.token)

    def texts(self) -> dict[str, str]:
        return dict(self.store.contents(HERE).contents)

    async def run(self, night: str) -> RunTotals:
        job = nightly("dream", f"{TEAM}{REPO}", night, tenant="default", host="", due=False)
        self.ledger.add([job])
        return await run_local(WorkerContext(self.ledger, self.place, EmbeddedModel()), 1)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[TeamSite]:
    from reverie.apps.team import app
    from reverie.http_server import serving

    database = open_database(str(tmp_path / "team.sqlite3"))
    store = TeamStore(database, now=time.time, tombstones=True)
    token = store.create_token(org="default", repo=REPO, author="fleet")[0]
    with serving(app(store)) as url:
        made = TeamSite(tmp_path, store, url, token)
        yield made
        made.ledger.close()
    database.close()


async def test_what_a_dream_changes_lands_on_the_server_and_a_second_one_changes_nothing(
    site: TeamSite,
) -> None:
    site.put(tests=text("Tests", RULE), again=text("Tests", RULE))
    assert await site.run("one") == RunTotals(done=1)
    after = site.texts()
    assert sum(RULE in found for found in after.values()) == 1  # the twin was merged into one
    tag = site.store.tag(HERE)
    assert await site.run("two") == RunTotals(done=1)
    assert site.store.tag(HERE) == tag
    assert site.texts() == after


async def test_who_wrote_meanwhile_is_not_overwritten(site: TeamSite) -> None:
    """Between the pull and the landing: the server refuses, and the next try has their words."""
    from reverie.fleet import dream_shared
    from reverie.memory import TaskRun

    site.put(tests=text("Tests", RULE), again=text("Tests again", RULE))

    def meanwhile(dream: object) -> None:
        if getattr(dream, "status", "") == "completed" and "other.md" not in site.texts():
            site.put(other=text("Other", "The port is 9000."))

    run = TaskRun(EmbeddedModel())
    outcome = await dream_shared(site.place, run, REPO, meanwhile)
    assert (outcome.result, outcome.code) == ("failed", "changed-meanwhile")
    assert set(site.texts()) == {"tests.md", "again.md", "other.md"}  # nothing of the dream's
    outcome = await dream_shared(site.place, run, REPO)
    assert outcome.result == "done"
    assert "The port is 9000." in "".join(site.texts().values())


async def test_a_repository_that_nobody_wrote_to_is_passed_over(site: TeamSite) -> None:
    assert await site.run("one") == RunTotals(skipped=1)


def test_a_plan_names_the_repository(site: TeamSite) -> None:
    asked = PlanRequest(("dream",), "n", team=(REPO,))
    (job,) = plan_jobs(site.place, asked, time.time).jobs
    assert (job.root, job.host) == (f"{TEAM}{REPO}", "")
