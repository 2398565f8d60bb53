"""Where memory lies, and where it may not."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from reverie.errors import PathRefused
from reverie.settings import Settings, load
from reverie.store import MemoryStore, Project, decide, project_folder
from reverie.topics import Scope, agent_folder, base, log_key, memory_paths

pytestmark = pytest.mark.spec("7.folder")

PROJECT = Path("/h/projects/-p")


def project_at(root: Path, home: Path, settings: Settings) -> Project:
    return Project.at(root, home=home, environ={}, settings=settings)


def test_the_first_answer_counts() -> None:
    override = Settings(memory_path_override="/o/m", auto_memory_directory="/s/m")
    assert memory_paths(override, PROJECT) == Path("/o/m")
    setting = Settings(auto_memory_directory="/s/m")
    assert memory_paths(setting, PROJECT) == Path("/s/m")
    assert memory_paths(Settings(), PROJECT) == PROJECT / "memory"


REFUSED = ["", "memory", "./m", "~/m", "../m", "/", "/x", "/x/", "/x/..", "/x/y/..", "//host/share"]
REFUSED += ["\\\\host\\share", "C:\\m", "C:/m", "c:", "/x/y\0z", "/x\\y/z"]


@pytest.mark.parametrize("text", REFUSED)
def test_a_path_that_no_memory_may_have_is_refused(text: str) -> None:
    with pytest.raises(PathRefused, match="cannot be a memory folder"):
        memory_paths(Settings(memory_path_override=text), PROJECT)
    with pytest.raises(PathRefused):
        memory_paths(Settings(auto_memory_directory=text), PROJECT)
    with pytest.raises(PathRefused):
        base(Settings(remote_memory_dir=text), Path("/h"))


def settings_of(root: Path, home: Path, **environ: str) -> Settings:
    return load(
        {"HOME": "/home/user", **environ}, home=home, root=root, policy=root / "none"
    ).settings


def test_a_repository_cannot_move_memory(tmp_path: Path, home: Path) -> None:
    root = tmp_path / "repo"
    (root / ".reverie").mkdir(parents=True)
    (root / ".git").mkdir()
    committed = root / ".reverie/settings.json"
    committed.write_text(json.dumps({"autoMemoryDirectory": "/home/user/.ssh"}))
    assert memory_paths(settings_of(root, home), PROJECT) == PROJECT / "memory"
    local = root / ".reverie/settings.local.json"
    local.write_text(json.dumps({"autoMemoryDirectory": "~/m"}))
    assert memory_paths(settings_of(root, home), PROJECT) == PROJECT / "memory"
    decide(home, local, local.read_bytes(), trusted=True)
    assert memory_paths(settings_of(root, home), PROJECT) == Path("/home/user/m")
    settings = settings_of(root, home, REVERIE_MEMORY_PATH_OVERRIDE="/srv/m")
    assert memory_paths(settings, PROJECT) == Path("/srv/m")
    alias = settings_of(root, home, CLAUDE_COWORK_MEMORY_PATH_OVERRIDE="/srv/n")
    assert memory_paths(alias, PROJECT) == Path("/srv/n")


def git(*command: str, cwd: Path) -> None:
    subprocess.run(["git", *command], cwd=cwd, check=True, capture_output=True)


@pytest.mark.needs("git")
def test_worktrees_share_one_memory(tmp_path: Path, home: Path) -> None:
    repo = tmp_path / "repo"
    repo.mkdir()
    git("init", "-q", cwd=repo)
    git("commit", "-q", "--allow-empty", "-m", "x", cwd=repo)
    git("worktree", "add", "-q", str(tmp_path / "tree"), cwd=repo)
    (tmp_path / "tree" / "sub").mkdir()
    found = [
        project_at(one, home, Settings()).memory_folder for one in (repo, tmp_path / "tree" / "sub")
    ]
    assert found[0] == found[1] == project_folder(home, repo) / "memory"
    assert project_at(tmp_path, home, Settings()).memory_folder != found[0]


@pytest.mark.spec("B16")
@pytest.mark.needs("git")
def test_a_moved_repository_keeps_its_memory(tmp_path: Path, home: Path) -> None:
    repo = tmp_path / "old"
    repo.mkdir()
    git("init", "-q", cwd=repo)
    with MemoryStore.of(project_at(repo, home, Settings()), now=lambda: 0.0) as memories:
        before = memories.folder.root
    moved = repo.rename(tmp_path / "new")
    with MemoryStore.of(project_at(moved, home, Settings()), now=lambda: 0.0) as memories:
        assert memories.folder.root == before


def test_a_remote_base_takes_the_place_of_home(tmp_path: Path, home: Path) -> None:
    remote = tmp_path / "remote"
    settings = Settings(remote=True, remote_memory_dir=str(remote))
    root = tmp_path / "repo"
    root.mkdir()
    folder = project_at(root, home, settings).memory_folder
    assert folder == remote / "projects" / project_folder(remote, root).name / "memory"
    assert not home.exists()


def test_a_look_writes_nothing(tmp_path: Path, home: Path) -> None:
    assert project_at(tmp_path, home, Settings()).memory_folder.parts[-1] == "memory"
    assert not home.exists()


@pytest.mark.parametrize(
    ("scope", "folder"),
    [
        ("user", "/h/agent-memory/team-reviewer"),
        ("project", "/r/.reverie/agent-memory/team-reviewer"),
        ("local", "/r/.reverie/agent-memory-local/team-reviewer"),
    ],
)
def test_agents_have_three_scopes(scope: Scope, folder: str) -> None:
    home, root = Path("/h"), Path("/r")
    assert agent_folder("team:reviewer", scope, home=home, root=root) == Path(folder)
    below = agent_folder("a", scope, home=home, root=root, remote_project=PROJECT)
    assert (below == PROJECT / "agent-memory-local/a") == (scope == "local")


@pytest.mark.parametrize(
    "agent", ["", ".", "..", "../x", "a/b", "a\\b", ".hidden", "a.", "nul", "a\0", "x" * 65, "ａ"]
)
def test_an_agents_type_cannot_lead_elsewhere(agent: str) -> None:
    with pytest.raises(PathRefused):
        agent_folder(agent, "user", home=Path("/h"), root=Path("/r"))


def test_a_days_log_has_its_place() -> None:
    assert log_key("2026-03-05") == "logs/2026/03/2026-03-05.md"
    for bad in ("2026-3-5", "../../../x", "2026-03-05/..", "٢٠٢٦-03-05"):
        with pytest.raises(PathRefused):
            log_key(bad)
