"""`reverie memory check`: faults with evidence and a score; repairs as one step of the history."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from reverie.apps.cli import output
from reverie.settings import DEFAULTS
from reverie.store import MemoryStore, Project, canonical_root, find_project_folder
from reverie.topics import Origin, Trust, new

from .conftest import Run

pytestmark = [pytest.mark.spec("B7")]

OLD = "Uploads are limited to 25 megabytes for guests."
SECRET = "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3z5A"
DOUBLED = "\nPavel keeps the key.\nPavel keeps the key.\n"
DAY = 86_400


@pytest.fixture
def folder(home: Path, project: Path, run: Run) -> Path:
    run("memory", "add", "The printer is on floor 3 next to the stairs.", code=0)
    return find_project_folder(home, canonical_root(project)) / "memory"


def put(folder: Path, key: str, body: str, days: float = 0.0, name: str = "") -> Path:
    name = name or key[:-3]
    data = new(key, name=name, description=f"on {name}", type="project", body=body).data
    path = folder / key
    path.write_bytes(data)
    at = 1_780_000_000 + days * DAY + 5 * sum(map(ord, key))  # no two at one moment
    os.utime(path, (at, at))
    with (folder / "MEMORY.md").open("a") as index:
        index.write(f"- [{key[:-3]}]({key})\n")
    return path


def kinds(value: Any) -> list[str]:
    return sorted({one["kind"] for one in value["findings"]})


def test_looking_makes_nothing(run: Run, home: Path) -> None:
    assert run("memory", "check", "--json").json()["score"] == 100
    assert "score 100 of 100: 0 memories" in run("memory", "check", code=0).out
    assert not home.exists()


def test_faults_are_shown_with_place_evidence_and_score(run: Run, folder: Path) -> None:
    put(folder, "uploads.md", f"{OLD} The proxy in Oslo cuts off longer ones.")
    put(folder, "limits.md", f"{OLD.replace('25', '40')} Customers may send 900.", days=3)
    put(folder, "junk.md", "TBD")
    value = run("memory", "check", "--json").json()
    assert kinds(value) == ["contradiction", "junk"]
    assert value["counts"] == {"contradiction": 1, "junk": 1}
    assert value["score"] < 100
    found = value["findings"][-1]
    assert (found["file"], found["line"], found["with"]) == ("uploads.md", 7, "limits.md")
    shown = run("memory", "check", code=0)
    assert "uploads.md:7" in shown.out
    assert f"score {value['score']} of 100" in shown.out
    assert "--fix" not in shown.err  # nothing of this is for a rule to decide
    with (folder / "MEMORY.md").open("a") as index:
        index.write("- [x](x.md)\n")
    assert "reverie memory check --fix" in run("memory", "check", code=0).err


def test_what_rules_cannot_decide_is_in_review_with_both_texts(run: Run, folder: Path) -> None:
    put(folder, "uploads.md", OLD)
    put(folder, "limits.md", OLD.replace("25", "40"), days=3)
    (found,) = run("memory", "review", "list", "--json").json()["undecided"]
    assert (found["kind"], found["text"]) == ("contradiction", OLD)
    assert (found["with_text"], found["with_line"]) == (OLD.replace("25", "40"), 7)
    shown = run("memory", "review", "list", code=0).out
    assert f"uploads.md:7: {OLD}" in shown
    assert f"limits.md:7: {OLD.replace('25', '40')}" in shown
    assert found in run("memory", "check", "--json").json()["findings"]


def test_fix_mends_in_one_step_that_can_be_undone(run: Run, folder: Path) -> None:
    put(folder, "uploads.md", f"{OLD} The proxy in Oslo cuts off longer ones.")
    put(folder, "limits.md", f"{OLD.replace('25', '40')} Customers may send 900.", days=3)
    put(folder, "ledger.md", "Rosa Delgado moved the ledger yesterday." + DOUBLED)
    with (folder / "MEMORY.md").open("a") as index:
        index.write("- [x](x.md)\n")
    run("memory", "list", code=0)
    before = {path.name: path.read_bytes() for path in folder.glob("*.md")}
    value = run("memory", "check", "--fix", "--json").json()
    assert value["fixed"]["files"] == ["MEMORY.md", "ledger.md"]
    assert value["fixed"]["edits"] == {"duplicate_of": 1, "pointer": 1}
    assert kinds(value) == ["contradiction", "stale_date"]
    text = (folder / "ledger.md").read_text()
    assert "moved the ledger yesterday." in text
    assert text.count("Pavel keeps the key") == 1
    assert b"25 megabytes" in (folder / "uploads.md").read_bytes()
    log = run("memory", "log", "ledger.md", "--json").json()["versions"]
    assert "duplicate_of ledger.md" in log[0]["origin"]["note"]
    assert "Nothing to fix" in run("memory", "check", "--fix", code=0).out
    run("memory", "undo", code=0)
    assert {path.name: path.read_bytes() for path in folder.glob("*.md")} == before


def test_a_merged_duplicate_comes_back_with_undo(run: Run, folder: Path) -> None:
    body = f"{OLD} The proxy in Oslo cuts off longer ones with status 413."
    put(folder, "uploads.md", body)
    twin = put(folder, "twin.md", body.replace("The proxy", "Proxy"), days=2, name="uploads")
    data = twin.read_bytes()
    done = run("memory", "check", "--fix", code=0)
    assert "1 removed" in done.out
    assert not twin.exists()
    assert b"\nProxy in Oslo" in (folder / "uploads.md").read_bytes()
    assert b"twin.md" not in (folder / "MEMORY.md").read_bytes()
    run("memory", "undo", code=0)
    assert twin.read_bytes() == data


def test_what_is_merged_is_as_trusted_as_its_least_trusted_part(
    run: Run, folder: Path, home: Path, project: Path
) -> None:
    body = f"{OLD} The proxy in Oslo cuts off longer ones with status 413."
    texts = {"uploads.md": body, "twin.md": body.replace("The proxy", "Proxy")}
    with MemoryStore.of(
        Project.at(project, home=home, environ={}, settings=DEFAULTS), now=time.time
    ) as memories:
        for (key, text), trust in zip(texts.items(), (Trust.USER, Trust.UNTRUSTED), strict=True):
            data = new(key, name="x", description="on uploads", type="project", body=text).data
            memories.save(key, data, Origin("save", trust), reviewed=True)
            written = 1_780_000_000 + (key == "twin.md")
            os.utime(folder / key, (written, written))
        assert memories.trust("uploads.md") is Trust.USER
    assert run("memory", "check", "--fix", "--json").json()["fixed"]["removed"] == ["twin.md"]
    with MemoryStore.of(
        Project.at(project, home=home, environ={}, settings=DEFAULTS), now=time.time
    ) as memories:
        assert memories.trust("uploads.md") is Trust.UNTRUSTED


def test_a_long_check_shows_that_it_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    class Screen(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(output, "PATIENCE", 0.0)
    for screen, shown in ((Screen(), True), (io.StringIO(), False)):
        monkeypatch.setattr(sys, "stderr", screen)
        with output.waiting("checking the memory"):
            for one in threading.enumerate():
                if isinstance(one, threading.Timer):
                    one.join()
        assert ("checking the memory" in screen.getvalue()) is shown


def test_a_file_with_a_secret_is_named_and_left(run: Run, folder: Path) -> None:
    path = put(folder, "token.md", f"Rosa made it yesterday: {SECRET} is for the CI.")
    put(folder, "ledger.md", "Rosa Delgado moved the ledger yesterday." + DOUBLED)
    data = path.read_bytes()
    done = run("memory", "check", "--fix", "--json")
    assert SECRET not in done.out + done.err
    assert kinds(done.json()) == ["secret", "stale_date"]
    assert done.json()["fixed"]["files"] == ["ledger.md"]
    assert path.read_bytes() == data


def test_stale_references_are_asked_of_the_repository(run: Run, project: Path, home: Path) -> None:
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    (project / "src").mkdir()
    (project / "src" / "new.py").write_text("x = 1\n")
    subprocess.run(["git", "-C", str(project), "add", "."], check=True)
    text = "The parser in `src/old.py` is fragile, `src/new.py` is not and serves most callers."
    run("memory", "add", text, code=0)
    value = run("memory", "check", "--json").json()
    found = [one for one in value["findings"] if one["kind"] == "stale_reference"]
    assert [one["evidence"] for one in found] == ["path src/old.py is gone"]


def test_what_is_shown_cannot_speak_to_a_terminal(run: Run, folder: Path) -> None:
    put(folder, "x.md", "TBD \x1b[31m\u202e")
    shown = run("memory", "check", code=0).out
    assert "\x1b" not in shown
    assert "\u202e" not in shown


def test_what_a_fix_would_change_is_shown_and_nothing_changed(run: Run, folder: Path) -> None:
    path = put(folder, "freeze.md", f"Yesterday the freeze began.{DOUBLED}")
    before = path.read_bytes()
    value = run("memory", "check", "--fix", "--dry-run", "--json", code=0).json()
    (one,) = [one for one in value["files"] if one["file"] == "freeze.md"]
    assert [one[when].count("Pavel keeps the key") for when in ("before", "after")] == [2, 1]
    shown = run("memory", "check", "--fix", "--dry-run", code=0).out
    assert "-Pavel keeps the key." in shown
    assert path.read_bytes() == before
    assert run("memory", "check", "--dry-run").code == 2
    run("memory", "check", "--fix", code=0)
    assert path.read_text() == one["after"]
    assert run("memory", "check", "--fix", "--dry-run", code=0).out == "Nothing to fix.\n"
