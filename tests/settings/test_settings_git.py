"""Whether git tracks a file, read from real repositories' indexes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.settings import git, load

pytestmark = [pytest.mark.needs("git"), pytest.mark.spec("15")]

LOCAL = ".reverie/settings.local.json"


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


def test_untracked_and_tracked(repo: Path) -> None:
    local = repo / LOCAL
    assert git.tracks(local) is False
    local.write_text("{}")
    assert git.tracks(local) is False
    run(repo, "add", "-f", LOCAL)
    assert git.tracks(local) is True
    run(repo, "commit", "-qm", "x")
    assert git.tracks(local) is True
    run(repo, "rm", "-q", "--cached", LOCAL)
    assert git.tracks(local) is False
    assert git.tracks(repo / ".reverie" / "settings.json") is True


def test_many_files(repo: Path) -> None:
    for number in range(300):
        (repo / f"file{number}").write_text("")
    run(repo, "add", ".")
    assert git.tracks(repo / LOCAL) is False
    add(repo, LOCAL)
    assert git.tracks(repo / LOCAL) is True


def test_outside_git(tmp_path: Path) -> None:
    assert git.tracks(tmp_path / LOCAL) is False


def test_a_repository_without_an_index(tmp_path: Path) -> None:
    assert git.tracks(repository(tmp_path / "repo") / LOCAL) is False


@pytest.mark.parametrize(
    "name", [".Reverie/Settings.Local.json", ".rev\u200cerie/settings.local.json"]
)
def test_names_that_a_file_system_may_take_for_the_same(tmp_path: Path, name: str) -> None:
    repo = repository(tmp_path / "repo")
    add(repo, name)
    assert git.tracks(repo / LOCAL) is True


def test_a_tracked_link_in_place_of_the_folder(tmp_path: Path) -> None:
    repo = repository(tmp_path / "repo")
    add(repo, "payload/settings.local.json")
    (repo / ".reverie").symlink_to("payload")
    run(repo, "add", ".reverie")
    assert git.tracks(repo / LOCAL) is True


def test_a_submodule_in_place_of_the_folder(tmp_path: Path) -> None:
    inner = repository(tmp_path / "inner")
    add(inner, "settings.local.json")
    run(inner, "commit", "-qm", "x")
    repo = repository(tmp_path / "repo")
    run(repo, "-c", "protocol.file.allow=always", "submodule", "add", str(inner), ".reverie")
    assert git.tracks(repo / LOCAL) is True


def test_a_folder_inside_a_repository(tmp_path: Path) -> None:
    repo = repository(tmp_path / "repo")
    add(repo, f"deep/er/{LOCAL}")
    assert git.tracks(repo / "deep" / "er" / LOCAL) is True
    assert git.tracks(repo / "deep" / LOCAL) is False


def test_an_outer_repository_counts(tmp_path: Path) -> None:
    outer = repository(tmp_path / "outer")
    add(outer, f"inner/{LOCAL}")
    repository(tmp_path / "other").joinpath(".git").rename(outer / "inner" / ".git")
    assert git.tracks(outer / "inner" / LOCAL) is True


def test_a_worktree_has_its_own_index(tmp_path: Path) -> None:
    repo = repository(tmp_path / "repo")
    add(repo, "a")
    run(repo, "commit", "-qm", "x")
    run(repo, "worktree", "add", "-q", "../tree")
    add(tmp_path / "tree", LOCAL)
    assert git.tracks(tmp_path / "tree" / LOCAL) is True
    assert git.tracks(repo / LOCAL) is False


def test_a_split_index_is_doubt(tmp_path: Path) -> None:
    repo = repository(tmp_path / "repo")
    add(repo, "a")
    run(repo, "update-index", "--split-index")
    assert git.tracks(repo / LOCAL) is True


@pytest.mark.parametrize("broken", ["gitdir: nowhere\n", "", "x", "gitdir: \n", "gitdir: a\0b"])
def test_a_broken_git_file_is_doubt(tmp_path: Path, broken: str) -> None:
    (tmp_path / ".git").write_text(broken)
    assert git.tracks(tmp_path / LOCAL) is True


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
        found = list(git.index_names(bytes(data), 20))
    except (ValueError, IndexError):
        return
    assert len(found) == int.from_bytes(data[8:12], "big")


def test_loading_from_a_real_repository(tmp_path: Path) -> None:
    repo = repository(tmp_path / "repo")
    text = '{"autoMemoryDirectory": "/srv/some/where"}'
    (repo / ".reverie").mkdir()
    (repo / LOCAL).write_text(text)
    none = tmp_path / "none"
    loaded = load({}, home=none, root=repo, policy=none)
    assert loaded.settings.auto_memory_directory == "/srv/some/where"
    run(repo, "add", "-f", LOCAL)
    loaded = load({}, home=none, root=repo, policy=none)
    assert loaded.settings.auto_memory_directory is None
    assert loaded.problems
