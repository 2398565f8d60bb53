"""What the supply, the wheel and the table of threats tell, and when they refuse."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from scripts import prove, supply
from scripts.prove import Threat

pytestmark = pytest.mark.spec("project.supply")
CLEAN = {"name": "anyio", "version": "1", "vulns": []}
WEAK = {"name": "click", "version": "1", "vulns": [{"id": "X-1", "fix_versions": ["2"]}]}


# --- packages


def test_the_page_fits_the_locks_and_another_version_is_told() -> None:
    page = supply.PAGE.read_text("utf-8")
    assert supply.problems(page) == []
    version = supply.locked()["anyio"].version
    changed = page.replace(f"| anyio | {version} |", "| anyio | 0.1 |")
    assert supply.problems(changed) == ["docs/supply.md has anyio 0.1, which the lock has not"]
    lacking = "".join(row for row in page.splitlines(True) if not row.startswith("| rich "))
    assert supply.problems(lacking) == ["docs/supply.md lacks rich"]


def test_the_sbom_names_every_package_once_with_hashes_and_no_address() -> None:
    made = supply.sbom()
    refs = [one["bom-ref"] for one in made["components"]]
    assert len(refs) == len(set(refs)) > 50
    assert all(one["hashes"] and one["licenses"] for one in made["components"])
    core = {one["name"] for one in made["components"] if one["scope"] == "required"}
    assert {"anyio", "click", "google-re2", "markdown-it-py", "rich"} <= core
    assert "langchain" not in core
    for row in made["dependencies"]:
        assert set(row["dependsOn"]) <= set(refs)
    assert "://" not in json.dumps(made)


@pytest.mark.parametrize(
    ("out", "status", "said"),
    [
        (json.dumps({"dependencies": [CLEAN]}), 0, "1 packages looked up, 0 weaknesses"),
        (json.dumps({"dependencies": [CLEAN, WEAK]}), 1, "click 1: X-1, fixed in 2"),
        (json.dumps({"dependencies": [CLEAN, {"name": "q", "skip_reason": "x"}]}), 3, "q"),
        ("", 3, "nothing was proven (connection refused)"),
        ("[]", 3, "nothing was proven"),
    ],
)
def test_an_audit_that_reached_nothing_is_no_clean_one(
    out: str, status: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert supply.told(out, "trace\nconnection refused\n") == status
    assert said in capsys.readouterr().out


@pytest.mark.integration
@pytest.mark.timeout(400)
def test_the_wheel_holds_on_every_python_that_is_there(root: Path) -> None:
    """Python 3.11 always; the others where they and their packages are."""
    ran = subprocess.run(
        [sys.executable, "-m", "scripts.release", "wheel"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    print(ran.stdout, ran.stderr)
    assert ran.returncode == 0
    assert "Python 3.11: holds" in ran.stdout
    assert "FAILS" not in ran.stdout


# --- the table of threats


def row(tests: tuple[str, ...] = ("tests/a.py::test_x",)) -> Threat:
    return Threat("T.1", "A name", "built", tests, "refused")


def page_of(threat: Threat, result: str) -> str:
    return prove.threats_page(f"top\n{prove.BEGIN}{prove.END}end\n", [threat], {"T.1": result})


def test_a_result_counts_for_the_tests_that_ran() -> None:
    page = page_of(row(), "holds (3)")
    assert prove.page_problems(page, [row()]) == []
    assert page.startswith("top\n")
    assert page.endswith("end\n")
    other = row(("tests/a.py::test_y",))
    assert prove.page_problems(page, [other]) == [
        "T.1: not run",
        "docs/threats.md differs from tests/manifest.toml",
    ]


@pytest.mark.parametrize(
    ("ended", "said", "good"),
    [
        ({"passed": 3}, "holds (3)", True),
        ({"passed": 1, "failed": 1}, "FAILS (1 of 2)", False),
        ({}, "FAILS (0 of 0)", False),
        (
            {"passed": 2, "skipped: needs rg: x": 1},
            "holds (2); not proven here: needs rg: x",
            True,
        ),
    ],
)
def test_a_failure_is_told_and_a_missing_program_is_no_success(
    ended: dict[str, int], said: str, good: bool
) -> None:
    assert prove.told(Counter(ended)) == said
    assert (prove.page_problems(page_of(row(), said), [row()]) == []) is good
