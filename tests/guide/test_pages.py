"""Every console line and every Python block of the guide runs, and shows what the page shows."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from reverie.apps.cli import build
from tests.docs.lines import claude_session
from tests.guide.pages import ROOT, Shell, blocks, elsewhere, guides, lines, run_block, same

pytestmark = pytest.mark.spec("18.guide")
PAGES = guides()
BLOCKS = [(page, n) for page in PAGES for n in range(len(blocks(page, "python")))]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clean home but for a session of Claude Code's, and a folder outside git."""
    recorded = tmp_path / ".claude" / "projects" / "-home-me-app"
    recorded.mkdir(parents=True)
    (recorded / "one.jsonl").write_text(claude_session())
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("REVERIE_HOME")
    monkeypatch.setenv("PWD", str(ROOT))
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize("page", [page for page in PAGES if lines(page)])
def test_the_console_lines_of_a_page_show_what_it_shows(
    page: str,
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    if any(elsewhere(line) == "installs" for line in lines(page)):
        monkeypatch.chdir(ROOT)
    shell = Shell(monkeypatch, capfd, place.parent)
    for line in lines(page):
        if elsewhere(line):
            continue
        code, out, err = shell.run(line)
        fails = line.shown.startswith("reverie:")
        assert bool(code) == fails, (line, code, out, err)
        if line.shown.strip():
            said = err[err.rfind("reverie: ") :]  # behind what is told at the first run
            assert any(same(line.shown, seen) for seen in (out, out + err, said)), (line, out, err)


@pytest.mark.parametrize(("page", "number"), BLOCKS)
def test_a_python_block_of_a_page_runs(
    page: str, number: int, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / "notes.txt").write_text("The code word is heron.\n")
    run_block(blocks(page, "python")[number], f"{page}, block {number}", monkeypatch)


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_does_not_run_here_is_there(page: str) -> None:
    """Targets of make, extras of pip, and the options of servers."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    for line in lines(page):
        kind = elsewhere(line)
        if kind == "installs" and line.program == "make":
            assert re.search(rf"^{line.words[1]}:", makefile, re.MULTILINE), line
            for name in re.findall(r"EXTRAS=(\S+)", line.typed):
                assert name == "all" or name in extras, line
        if kind == "installs" and line.program == "pip":
            for names in re.findall(r"\[([\w,-]+)\]", line.typed):
                assert set(names.split(",")) <= set(extras), line
        if kind == "server":
            command = [word for word in line.words[1:3] if re.fullmatch(r"[a-z]+", word)]
            about = CliRunner().invoke(build(), [*command, "--help"])
            assert about.exit_code == 0, line
            for option in re.findall(r"\s(--[\w-]+)", line.typed.partition("  #")[0]):
                assert option in about.output, (line, option)
