"""`reverie demo`: a real session with a scripted course, and numbers from the run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.spec("18.demo")


def demo(tmp: Path, *args: str, **environ: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "reverie.apps.cli", "demo", *args]
    env = {**os.environ, "TMPDIR": str(tmp), **environ}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=env)


def test_each_layer_fires_and_the_numbers_add_up(tmp_path: Path) -> None:
    ran = demo(tmp_path, "--json", "--keep")
    assert ran.returncode == 0, ran.stderr
    value = json.loads(ran.stdout)
    layer = value["layers"]["tool_results"]
    assert all(value["checks"].values())
    assert value["scripted"] is True
    assert layer["over_their_own_limit"] >= 1
    assert layer["over_their_message"] >= 1
    assert layer["count"] == layer["over_their_own_limit"] + layer["over_their_message"]
    assert layer["read_back"] == 2
    assert 0 < value["cost"] < value["naive_cost"]
    assert value["fork"]["hit_rate"] > 0.9
    stored = list(Path(value["folder"]).rglob("tool-results/*"))
    assert len(stored) == layer["count"]
    assert sum(len(p.read_text()) for p in stored) == layer["characters"]


def test_people_read_what_happened_and_nothing_is_left(tmp_path: Path) -> None:
    home = tmp_path / "real-home"
    ran = demo(tmp_path, REVERIE_HOME=str(home), REVERIE_RESULT_CHARACTERS="10")
    assert ran.returncode == 0, ran.stderr
    assert "scripted" in ran.stdout
    assert "tool-result storage" in ran.stdout
    assert "✗" not in ran.stdout
    assert list(tmp_path.iterdir()) == []


def test_two_runs_cost_the_same(tmp_path: Path) -> None:
    """Ids, folders and clocks differ; what is sent and what it costs hardly does."""
    values: list[Any] = [json.loads(demo(tmp_path, "--json").stdout) for _ in range(2)]
    assert values[0]["layers"] == values[1]["layers"]
    assert values[0]["cost"] == pytest.approx(values[1]["cost"], rel=0.01)
