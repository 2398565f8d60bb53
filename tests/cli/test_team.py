"""`reverie team` as people use it: a server process, two homes, tokens, and what each is told."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.spec("11.command")
COMMAND = [sys.executable, "-m", "reverie.apps.cli"]


class Person:
    """One home, one clone."""

    def __init__(self, folder: Path, **environ: str) -> None:
        self.clone = folder / "clone"
        subprocess.run(["git", "init", "-q", str(self.clone)], check=True)
        config = self.clone / ".git" / "config"
        with config.open("a") as file:
            file.write('[remote "origin"]\n\turl = git@example.com:acme/reader.git\n')
        self.environ = {**os.environ, "REVERIE_HOME": str(folder / "home"), **environ}

    def run(self, *words: str) -> str:
        done = self._done(*words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def fail(self, *words: str) -> str:
        done = self._done(*words)
        assert done.returncode > 0
        return done.stderr

    def _done(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*COMMAND, *words],
            cwd=self.clone,
            env=self.environ,
            capture_output=True,
            text=True,
            check=False,
        )

    def shared(self) -> Path:
        (found,) = Path(self.environ["REVERIE_HOME"]).glob("projects/*/memory")
        (found / "team").mkdir(exist_ok=True)
        return found / "team"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[Person, str]]:
    keeper = Person(tmp_path / "keeper")
    with subprocess.Popen(
        [*COMMAND, "team", "serve", "--port", "0", "--json"],
        env=keeper.environ,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        yield keeper, json.loads(process.stdout.readline())["url"]
        process.terminate()
        assert process.wait(20) in (0, -signal.SIGTERM)


def test_a_team_of_two(server: tuple[Person, str], tmp_path: Path) -> None:
    keeper, url = server
    people: dict[str, Person] = {}
    for name in ("ines", "tomas"):
        made = json.loads(
            keeper.run(
                *("team", "token", "create", "--repo", "acme/reader"),
                *("--author", name, "--json"),
            )
        )
        people[name] = Person(
            tmp_path / name, REVERIE_TEAM_URL=url, REVERIE_TEAM_TOKEN=made["token"]
        )
    ines, tomas = people["ines"], people["tomas"]
    assert "both sides are alike" in ines.run("team", "status")
    (ines.shared() / "deploy.md").write_text("Deploys go out on Tuesdays.\n")
    assert json.loads(ines.run("team", "sync", "--json"))["pushed"] == ["deploy.md"]
    done = json.loads(tomas.run("team", "sync", "--json"))
    assert {name: done[name] for name in ("pulled", "pushed", "blocked", "conflicts")} == {
        "pulled": ["deploy.md"],
        "pushed": [],
        "blocked": {},
        "conflicts": [],
    }
    assert "ines wrote deploy.md (version 1)" in tomas.run("team", "log")
    tomas.run("memory", "undo")
    left = json.loads(tomas.run("team", "status", "--json"))
    assert (left["taken_back"], left["to_push"], left["to_pull"]) == (["deploy.md"], [], [])
    assert left["folder"] == str(tomas.shared())
    assert "team/releases.md saved" in tomas.run(
        *("memory", "add", "--team", "--name", "releases", "Releases are tagged on Fridays.")
    )
    said = tomas.run("team", "sync")
    assert "nothing pulled; 2 files pushed: MEMORY.md, releases.md" in said
    assert "no line of team/MEMORY.md" not in said
    (ines.shared() / "releases.md").write_text("Releases are tagged on Mondays.\n")
    said = ines.run("team", "sync")
    lost = Path(said.split("yours is kept in ")[1].splitlines()[0])
    assert lost.read_text() == "Releases are tagged on Mondays.\n"
    token = json.loads(keeper.run("team", "token", "list", "--json"))[0]
    assert "digest" not in token
    keeper.run("team", "token", "revoke", token["id"])
    told = ines.fail("team", "sync")
    assert "401" in told
    assert "Make a new token" in told
    assert "Nothing was refused." in tomas.run("team", "log", "--refused")
    kept = Path(keeper.environ["REVERIE_HOME"]) / "team" / "team.sqlite3"
    refused = keeper.run("team", "log", "--refused", "--database", str(kept))
    assert f"ines ({token['id']}): 1 time 401, without a valid token" in refused
    keeper.run("team", "backup", str(tmp_path / "backup.jsonl"))
    keeper.run(
        *("team", "restore", str(tmp_path / "backup.jsonl")),
        *("--database", str(tmp_path / "new.sqlite3")),
    )


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    alone = Person(tmp_path / "alone")
    assert "no server is set" in alone.fail("team", "sync")
    alone.environ["REVERIE_TEAM_URL"] = "http://127.0.0.1:9"
    assert "REVERIE_TEAM_TOKEN" in alone.fail("team", "sync")
    alone.environ["REVERIE_TEAM_TOKEN"] = "rvt_x"
    assert "does not answer" in alone.fail("team", "sync")
