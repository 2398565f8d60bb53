"""Every console line of the pages runs on a clean home, in the order in which it stands."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from glob import glob
from pathlib import Path

import click
import pytest

from tests.docs.lines import ROOT, Line, blocks, is_server, lines, own_pages, parsed, run, stage

pytestmark = pytest.mark.spec("project.docs-run")
PAGES = [page for page in own_pages() if lines(page)]
NOTHING_THERE = 2
ENDS_WITH = {
    "dream diff": NOTHING_THERE,
    "dream accept": NOTHING_THERE,
    "dream kill": NOTHING_THERE,
    "dream undo": NOTHING_THERE,
    "fleet show": NOTHING_THERE,
    "fleet cancel": NOTHING_THERE,
    "fleet retry": NOTHING_THERE,
    "memory learn old.jsonl.gz 3f2a --model": 7,  # no key is there
}
"""Commands that are about something which a clean home does not have, and how they say so."""
ELSEWHERE = re.compile(r"\w+://|ollama:")
"""A server that is not here: such a line is read, and not run."""
FOREIGN = ("claude", "systemctl")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a remote, and a home in which somebody has worked."""
    home, project = tmp_path / ".reverie", tmp_path / "project"
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("REVERIE_HOME", str(home))
    monkeypatch.setenv("EDITOR", "true")
    monkeypatch.setenv("SHELL", "/bin/bash")
    for words in (["init", "-q", "--bare", "remote.git"], ["init", "-q", "project"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    remote = ["git", "remote", "add", "origin", str(tmp_path / "remote.git")]
    subprocess.run(remote, cwd=project, check=True)
    monkeypatch.chdir(project)
    stage(home, project)
    (tmp_path / "rules.md").write_text("Be brief.\n")
    for name in ("-home-me-app", "-home-user-app"):
        folder = tmp_path / ".claude" / "projects" / name
        folder.mkdir(parents=True)
        (folder / "one.jsonl").write_bytes((project / "session.jsonl").read_bytes())
    return project


@pytest.mark.parametrize("page", PAGES)
def test_the_lines_of_a_page_run(page: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for line in lines(page):
        words = _set(line, monkeypatch)
        if words and words[0] == "reverie":
            _tried(line, words)
        elif words:
            _looked_at(line, words)


def _set(line: Line, patch: pytest.MonkeyPatch) -> list[str]:
    """Variables into the environment; what is left are the words of a command."""
    words = line.words
    exported = words[0] == "export"
    words = words[1:] if exported else words
    while words and (found := re.fullmatch(r"([A-Z_]+)=(.*)", words[0])):
        patch.setenv(found[1], found[2])
        words = words[1:]
    return [one for word in words for one in _expanded(os.path.expanduser(word))]


def _expanded(word: str) -> list[str]:
    return sorted(glob(word)) or [word] if "*" in word else [word]


def _tried(line: Line, words: list[str]) -> None:
    given = [
        os.environ.get(f"REVERIE_{n}", "")
        for n in ("TEAM_URL", "FLEET_DATABASE", "EMBEDDING_MODEL")
    ]
    if is_server(words) or ELSEWHERE.search(" ".join([*words, *given])):
        try:
            parsed(words)
        except click.ClickException as error:
            pytest.fail(f"{line.place}: {error.format_message()}")
        return
    done = run(words, _handed(words))
    wanted = next((code for said, code in ENDS_WITH.items() if line.text[8:].startswith(said)), 0)
    if words[1:2] == ["team"] and words[2] != "scan" and not os.environ.get("REVERIE_TEAM_URL"):
        wanted = 6  # no server is set
    assert done.exit_code == wanted, (line.place, line.text, done.output)


def _handed(words: list[str]) -> str:
    """What stands in a file behind `<`, taken out of the words; else yes to whatever is asked."""
    if "<" not in words:
        return "y\ny\ny\n"
    at = words.index("<")
    text = Path(words[at + 1]).read_text()
    del words[at : at + 2]
    return text


def _looked_at(line: Line, words: list[str]) -> None:
    """Programs that are not ours: what they are given is there."""
    if words[0] == "cp":
        assert glob(str(ROOT / words[1])), line
    elif words[0] == "pip":
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        named = re.findall(r"reverie\[([\w-]+)\]", line.text)
        assert set(named) <= set(extras["optional-dependencies"]), line
    elif words[0] == "make":
        known = (ROOT / "Makefile").read_text(encoding="utf-8")
        for target in (word for word in words[1:] if "=" not in word):
            assert re.search(rf"^{target}:", known, re.MULTILINE), line
    elif words[:2] == [".venv/bin/python", "-m"]:
        place = words[-1] if words[2] == "pytest" else f"{words[2].replace('.', '/')}.py"
        assert (ROOT / place).exists(), line
    else:
        assert words[0] in FOREIGN, line


def test_every_line_that_is_typed_stands_behind_a_dollar_sign() -> None:
    """So that none is passed over: `sh` is for steps that are tried by hand (releasing)."""
    assert len(PAGES) > 15
    found = [
        f"{page}:{number + at}: {row}"
        for page in own_pages()
        for kind in ("", "console", "sh", "bash", "shell", "text")
        for number, block in blocks(page, kind)
        for at, row in enumerate(block.splitlines())
        if re.match(r"(?:\w+=\S* )*reverie ", row)
    ]
    assert found == []
