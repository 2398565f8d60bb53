"""What every program of ours is started with."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from reverie import programs

pytestmark = pytest.mark.spec("project.programs")


def tool(folder: Path, name: str, says: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / name
    made.write_text(f"#!/bin/sh\necho {says}\n")
    made.chmod(0o755)
    return made


@pytest.mark.parametrize("before", ["", ".", "relative", "::"])
def test_a_name_is_never_found_in_the_working_folder(tmp_path: Path, before: str) -> None:
    """A PATH with an empty or relative entry names the working folder to the system."""
    tool(tmp_path / "project", "git", "hostile")
    tool(tmp_path / "project" / "relative", "git", "hostile")
    tool(tmp_path / "bin", "git", "ours")
    environ = {"PATH": f"{before}:{tmp_path / 'bin'}"}
    done = programs.run(["git"], environ, tmp_path / "project", seconds=60)
    assert done.stdout == b"ours\n"
    with pytest.raises(FileNotFoundError):
        programs.run(["git"], {"PATH": before or "."}, tmp_path / "project", seconds=60)


def test_python_of_ours_imports_nothing_of_the_working_folder(tmp_path: Path) -> None:
    for name in ("json", "types", "token", "site"):
        (tmp_path / f"{name}.py").write_text("open('ran', 'w').close()\n")
    line = programs.python("json.tool", "--help")
    programs.run(line, dict(os.environ), tmp_path, seconds=60)
    assert not (tmp_path / "ran").exists()


def test_environment_and_input_are_only_what_was_given(tmp_path: Path) -> None:
    line = ["/bin/sh", "-c", "env; cat"]
    said = programs.run(line, {"ONE": "1"}, tmp_path, seconds=60).stdout.decode()
    assert "ONE=1" in said
    assert "REVERIE_HOME" not in said
    assert programs.run(line, {}, tmp_path, seconds=60, feed=b"x").stdout.endswith(b"x")


def test_a_run_that_takes_too_long_is_killed(tmp_path: Path) -> None:
    line = ["/bin/sh", "-c", "echo $$ > pid; exec sleep 600"]
    with pytest.raises(programs.TimeoutExpired):
        programs.run(line, {"PATH": "/usr/bin:/bin"}, tmp_path, seconds=1)
    pid = (tmp_path / "pid").read_text().strip()
    gone = subprocess.run(["/bin/kill", "-0", pid], check=False, capture_output=True)
    assert gone.returncode
