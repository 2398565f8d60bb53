"""The files that put a fleet on machines: parsed, and what they start is a command there is."""

from __future__ import annotations

import configparser
import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from reverie.apps.cli import build

pytestmark = [pytest.mark.spec("9.fleet-deploy")]


def unit(path: Path) -> configparser.ConfigParser:
    found = configparser.ConfigParser(strict=True, interpolation=None)
    found.optionxform = str  # type: ignore[assignment, method-assign]
    found.read_string(path.read_text())
    return found


def parses(words: list[str]) -> bool:
    """Whether a command takes these words; nothing is run."""
    result = CliRunner().invoke(build(), [*words, "--help"])
    return result.exit_code == 0 and "Usage" in result.stdout


@pytest.mark.parametrize("name", ["run", "work"])
def test_a_service_starts_a_command_there_is(root: Path, name: str) -> None:
    found = unit(root / "deploy" / "systemd" / f"reverie-fleet-{name}.service")
    assert set(found.sections()) == {"Unit", "Service", "Install"}
    words = found["Service"]["ExecStart"].split()
    assert words[:2] == ["/usr/bin/env", "reverie"]
    assert words[2:4] == ["fleet", name]
    assert parses(words[2:])


def test_the_timer_is_of_a_service_there_is(root: Path) -> None:
    folder = root / "deploy" / "systemd"
    found = unit(folder / "reverie-fleet-run.timer")
    assert found["Timer"]["Persistent"] == "true"
    assert re.fullmatch(r"\*-\*-\* \d\d:\d\d:\d\d", found["Timer"]["OnCalendar"])
    assert (folder / "reverie-fleet-run.service").is_file()


def test_the_container_starts_a_command_there_is(root: Path) -> None:
    text = (root / "deploy" / "container" / "Containerfile").read_text()
    start = json.loads(re.search(r"^ENTRYPOINT (.+)$", text, re.MULTILINE)[1])  # type: ignore[index]
    words = json.loads(re.search(r"^CMD (.+)$", text, re.MULTILINE)[1])  # type: ignore[index]
    assert start == ["reverie", "fleet"]
    assert parses([*start[1:], *words])
    for given in re.findall(r"^COPY (?!--from)(.+) \S+$", text, re.MULTILINE):
        assert all((root / one).exists() for one in given.split())
    extras = re.search(r"\.\[([\w,-]+)\]", text)[1].split(",")  # type: ignore[index]
    project = (root / "pyproject.toml").read_text()
    assert all(re.search(rf"^{one} = \[", project, re.MULTILINE) for one in extras)


def test_the_compose_file_names_what_there_is(root: Path) -> None:
    yaml: Any = pytest.importorskip("yaml", reason="needs yaml: not installed")
    path = root / "deploy" / "container" / "compose.yaml"
    found = yaml.safe_load(path.read_text())
    assert set(found["services"]) == {"database", "init", "plan", "work"}
    for name in ("init", "work"):
        assert parses(["fleet", *found["services"][name]["command"]])
    for one in found["services"].values():
        for other in one.get("depends_on", {}):
            assert other in found["services"]
        for volume in one.get("volumes", ()):
            head = volume.split(":")[0]
            assert head in found["volumes"] or head.startswith("$")
    built = found["services"]["work"]["build"]
    assert (path.parent / built["context"] / built["dockerfile"]).resolve().is_file()
