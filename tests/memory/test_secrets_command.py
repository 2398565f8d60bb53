"""`reverie team scan`: what it lists, how it ends, and what it never shows."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from reverie.apps.cli import scan
from reverie.memory import LARGEST
from tests.memory.test_secrets_generator import positives, upstream

pytestmark = pytest.mark.spec("11.secrets")


@pytest.fixture(scope="module")
def secret(shared: Path) -> str:
    (rule,) = (rule for rule in upstream(shared) if rule.id == "github-pat")
    return next(positives(rule, 1, "command"))


def run(*args: str | Path) -> tuple[int, str, str]:
    done = CliRunner().invoke(scan, [str(arg) for arg in args])
    return done.exit_code, done.stdout, done.stderr


def test_a_hit_is_listed_by_file_line_and_rule(tmp_path: Path, secret: str) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "b.md").write_text(f"one\r\ntwo {secret}.\r\n")
    (tmp_path / "a.md").write_text("nothing\n")
    code, out, _ = run(tmp_path, "--json")
    assert code == 1
    assert json.loads(out) == [{"file": "deep/b.md", "line": 2, "rule": "github-pat"}]
    code, out, err = run(tmp_path)
    assert (code, out) == (1, "deep/b.md:2: github-pat\n")
    assert "2 files searched, 1 secret found" in err
    assert secret not in out + err
    assert run(tmp_path / "deep" / "b.md", "--json")[1] == (
        json.dumps([{"file": "b.md", "line": 2, "rule": "github-pat"}], indent=2) + "\n"
    )


def test_a_clean_folder_ends_well(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_bytes(b"nothing\xff\n")
    assert run(tmp_path, "--json") == (0, "[]\n", "")


def test_row_56_a_name_that_is_a_secret_is_not_shown(tmp_path: Path, secret: str) -> None:
    (tmp_path / f"{secret}.md").write_text("nothing\n")
    code, out, err = run(tmp_path, "--json")
    assert code == 1
    assert json.loads(out) == [{"file": "[name withheld, file 1]", "line": 0, "rule": "github-pat"}]
    assert secret not in out + err + "".join(run(tmp_path)[1:])


def test_row_58_a_file_that_cannot_be_searched_counts_and_others_are(
    tmp_path: Path, secret: str
) -> None:
    with open(tmp_path / "a.md", "wb") as file:
        file.truncate(LARGEST + 1)
    (tmp_path / f"{secret}.md").touch()
    os.truncate(tmp_path / f"{secret}.md", LARGEST + 1)
    (tmp_path / "z.md").write_text(secret)
    code, out, err = run(tmp_path, "--json")
    rows = json.loads(out)
    assert code == 1
    assert {"file": "a.md", "line": 0, "rule": "scan-failed"} in rows
    assert {"file": "z.md", "line": 1, "rule": "github-pat"} in rows
    assert len(rows) == 3
    assert secret not in out + err


def test_links_and_pipes_are_left_alone(tmp_path: Path, secret: str) -> None:
    outside = tmp_path / "outside.md"
    outside.write_text(secret)
    folder = tmp_path / "memory"
    folder.mkdir()
    (folder / "link.md").symlink_to(outside)
    os.mkfifo(folder / "pipe.md")
    assert run(folder, "--json")[:2] == (0, "[]\n")


def test_nothing_there_is_an_error(tmp_path: Path) -> None:
    done = CliRunner().invoke(scan, [str(tmp_path / "gone")])
    assert type(done.exception).__name__ == "NotFound"
