"""`reverie off` and `reverie on`: one project, every door, and nothing lost."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from reverie.apps.hook import main as hook
from tests.cli.conftest import Run

pytestmark = pytest.mark.spec("18.off")
LOCAL = ".reverie/settings.local.json"


def recalled(project: Path) -> str:
    """What the plugin's hook adds to a prompt."""
    told = {"hook_event_name": "SessionStart", "cwd": str(project), "session_id": "s"}
    out = io.StringIO()
    assert hook(io.BytesIO(json.dumps(told).encode()), out) == 0
    return out.getvalue()


def test_off_is_off_at_every_door_and_on_brings_everything_back(run: Run, project: Path) -> None:
    assert run("memory", "add", "Prices are in cents.").code == 0
    assert "cents" in recalled(project)
    told = run("off", "--json").json()
    assert (told["on"], told["root"]) == (False, str(project))
    assert recalled(project) == ""
    assert json.loads((project / LOCAL).read_text()) == {"simple": True}
    assert "off here" in run("doctor").out.replace("\n", " ")
    assert "cents" in run("memory", "list").out  # what is stored stays
    assert run("off").code == 0
    assert "Reverie is on" in run("on").out
    assert not (project / ".reverie").exists()
    assert "cents" in recalled(project)


def test_other_local_settings_stay(run: Run, project: Path) -> None:
    (project / ".reverie").mkdir()
    (project / LOCAL).write_text('{"agentDepth": 0}')
    refused = run("off")
    assert refused.code == 1
    assert "Nothing was switched" in refused.err
    assert "`reverie trust`" in refused.err
    assert run("trust", "--yes").code == 0
    assert run("off").code == 0
    assert json.loads((project / LOCAL).read_text()) == {"agentDepth": 0, "simple": True}
    assert run("on", "--json").json()["on"]
    assert json.loads((project / LOCAL).read_text()) == {"agentDepth": 0}


def test_what_is_stronger_is_named(
    run: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REVERIE_SIMPLE", "1")
    done = run("on")
    assert "Reverie is off" in done.out
    assert "REVERIE_SIMPLE says so" in done.err
    assert not (project / ".reverie").exists()
