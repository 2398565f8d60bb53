"""Git's own files, read from real repositories without running git."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.settings import git_folder, index_names, small_text

pytestmark = [pytest.mark.needs("git"), pytest.mark.spec("15")]


def run(folder: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)


def add(repo: Path, name: str, text: str = "{}") -> None:
    path = repo / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    run(repo, "add", "-f", name)


def repository(folder: Path, *options: str) -> Path:
    folder.mkdir(parents=True)
    run(folder, "init", "-q", *options)
    return folder


@pytest.fixture(params=["2", "3", "4", "sha256"])
def repo(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A repository with a few files, in each kind of index."""
    sha256 = request.param == "sha256"
    made = repository(tmp_path / "repo", *(["--object-format=sha256"] if sha256 else []))
    if not sha256:
        run(made, "config", "index.version", request.param)
    for name in ("a", ".rev", ".reveries", ".reverie-x/settings.local.json", "z" * 200, "ü/ö"):
        add(made, name)
    add(made, ".reverie/settings.json")
    if request.param == "3":
        (made / "later").write_text("")
        run(made, "add", "-N", "later")
    return made


def names(repo: Path) -> set[bytes]:
    sha256 = "sha256" in (small_text(repo / ".git" / "config") or "")
    return set(index_names((repo / ".git" / "index").read_bytes(), 32 if sha256 else 20))


def test_the_names_are_those_that_git_lists(repo: Path) -> None:
    for number in range(300):
        (repo / f"file{number}").write_text("")
    run(repo, "add", ".")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=repo, check=True, capture_output=True)
    assert names(repo) == set(filter(None, listed.stdout.split(b"\0")))


def test_a_split_index_is_refused(tmp_path: Path) -> None:
    repo = repository(tmp_path / "repo")
    add(repo, "a")
    run(repo, "update-index", "--split-index")
    with pytest.raises(ValueError, match="changes what the index means"):
        names(repo)


@pytest.mark.parametrize("broken", ["gitdir: nowhere\n", "", "x", "gitdir: \n", "gitdir: a\0b"])
def test_a_broken_git_file_names_no_folder(tmp_path: Path, broken: str) -> None:
    (tmp_path / ".git").write_text(broken)
    assert git_folder(tmp_path) is None


@given(st.integers(0, 10_000), st.integers(0, 255), st.integers(0, 400))
def test_a_damaged_index_never_raises(cut: int, byte: int, at: int) -> None:
    head = b"DIRC" + (2).to_bytes(4, "big") + (2).to_bytes(4, "big")
    name = b".reverie/settings.json"
    entry = bytes(60) + len(name).to_bytes(2, "big") + name
    entry += bytes(8 - len(entry) % 8)
    data = bytearray((head + entry + entry + bytes(20))[:cut])
    if at < len(data):
        data[at] = byte
    try:
        found = list(index_names(bytes(data), 20))
    except (ValueError, IndexError):
        return
    assert len(found) == int.from_bytes(data[8:12], "big")
