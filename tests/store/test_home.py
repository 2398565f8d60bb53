"""Roots of real repositories, project folders that nobody steals, and the session's files."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import shutil
import stat
import subprocess
import uuid
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.errors import InvalidInput, PathRefused, StoreError
from reverie.store import (
    LAYOUT,
    OWNER,
    canonical_root,
    find_project_folder,
    is_shared,
    project_folder,
    session_folder,
    session_id,
    sessions,
    slug,
    tool_results_folder,
    transcripts_folder,
)
from reverie.store import home as home_module

pytestmark = [pytest.mark.needs("git"), pytest.mark.spec("1.home")]

SESSION = "0b9c6a52-3c1f-4a4e-9d54-0a4b3c2d1e0f"


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)


def repository(folder: Path, *options: str) -> Path:
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main", *options)
    if "--bare" not in options:
        git(folder, "commit", "-q", "--allow-empty", "-m", "first")
    return folder


def tree(repo: Path, folder: Path) -> Path:
    git(repo, "worktree", "add", "-q", "--detach", str(folder))
    return folder


@pytest.fixture
def here(tmp_path: Path) -> Path:
    return Path(os.path.realpath(tmp_path))


# -- home ----------------------------------------------------------------------------


def test_home_is_named_or_the_usual_one() -> None:
    environ = {"HOME": "/home/user"}
    assert home_module.home(environ) == Path("/home/user/.reverie")
    assert home_module.home(environ | {"REVERIE_HOME": ""}) == Path("/home/user/.reverie")
    assert home_module.home(environ | {"REVERIE_HOME": "~/.claude"}) == Path("/home/user/.claude")
    assert home_module.home(environ | {"REVERIE_HOME": "/srv/a/../b/"}) == Path("/srv/b")


@pytest.mark.parametrize("text", ["x", "./x", "../x", "/", "//", "/a/..", "~bob", "/a\0b", "C:\\x"])
def test_homes_that_are_refused(text: str) -> None:
    with pytest.raises(PathRefused, match="REVERIE_HOME"):
        home_module.home({"HOME": "/home/user", "REVERIE_HOME": text})


@pytest.mark.parametrize("under", ["", "/home", "/a/home"])
@pytest.mark.parametrize("kind", ["file", "a link to nothing"])
def test_a_home_that_can_be_no_folder_is_refused(here: Path, kind: str, under: str) -> None:
    there = here / "there"
    there.touch() if kind == "file" else there.symlink_to(here / "gone")
    with pytest.raises(PathRefused, match="must be a folder"):
        home_module.check_folder(Path(f"{there}{under}"))
    home_module.check_folder(here)
    home_module.check_folder(here / "not" / "yet")


# -- canonical root ------------------------------------------------------------------


def test_outside_git_the_folder_itself(here: Path) -> None:
    (here / "a").mkdir()
    assert canonical_root(here / "a") == here / "a"
    assert canonical_root(here / "not" / "there") == here / "not" / "there"


@pytest.mark.parametrize("name", ["repo", "with space", "ünï-çødé", "日本", "-dash", "new\nline"])
def test_the_nearest_repository(here: Path, name: str) -> None:
    repo = repository(here / name)
    (repo / "deep" / "er").mkdir(parents=True)
    assert canonical_root(repo) == repo
    assert canonical_root(repo / "deep" / "er") == repo
    assert canonical_root(repo / ".git" / "hooks") == repo


def test_a_nested_repository_is_its_own(here: Path) -> None:
    outer = repository(here / "outer")
    inner = repository(outer / "inner")
    assert canonical_root(inner) == inner
    assert canonical_root(outer) == outer


@pytest.mark.parametrize("name", ["tree", "with space", "ünï"])
def test_every_worktree_has_the_main_root(here: Path, name: str) -> None:
    repo = repository(here / "repo")
    outside = tree(repo, here / name)
    inside = tree(repo, repo / "trees" / name)
    (outside / "deep").mkdir()
    assert canonical_root(outside / "deep") == repo
    assert canonical_root(inside) == repo
    assert canonical_root(repo / ".git" / "worktrees" / name) == repo


def test_worktrees_of_a_bare_repository_share_it(here: Path) -> None:
    repo = repository(here / "repo")
    git(here, "clone", "-q", "--bare", str(repo), "bare.git")
    bare = here / "bare.git"
    one, two = tree(bare, here / "one"), tree(bare, bare / "two")
    assert canonical_root(one) == canonical_root(two) == bare
    assert canonical_root(bare) == canonical_root(bare / "refs") == bare


def test_a_bare_repository_inside_its_project_folder(here: Path) -> None:
    repo = repository(here / "repo")
    project = here / "project"
    project.mkdir()
    git(here, "clone", "-q", "--bare", str(repo), str(project / ".bare"))
    (project / ".git").write_text("gitdir: ./.bare\n")
    assert canonical_root(tree(project, project / "one")) == project
    assert canonical_root(project) == project


def test_a_submodule_keeps_its_own_root(here: Path) -> None:
    other, outer = repository(here / "other"), repository(here / "outer")
    git(outer, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other), "sub")
    sub = outer / "sub"
    assert canonical_root(sub) == sub
    assert canonical_root(tree(sub, here / "of-sub")) == sub
    assert canonical_root(outer) == outer


def test_a_git_folder_that_lies_elsewhere(here: Path) -> None:
    repo = repository(here / "repo", "--separate-git-dir", str(here / "store"))
    assert canonical_root(repo) == repo


def test_links_are_resolved(here: Path) -> None:
    repo = repository(here / "repo")
    (repo / "sub").mkdir()
    (here / "link").symlink_to(repo / "sub")
    assert canonical_root(here / "link") == repo
    (here / "other").mkdir()
    (here / "other" / ".git").symlink_to(repo / ".git")
    assert canonical_root(here / "other") == here / "other"


def test_relative_links_between_worktree_and_repository(here: Path) -> None:
    repo, work = repository(here / "repo"), here / "work"
    tree(repo, work)
    (work / ".git").write_text("gitdir: ../repo/.git/worktrees/work\n")
    (repo / ".git/worktrees/work/gitdir").write_text("../../../../work/.git\n")
    assert canonical_root(work) == repo


def hostile(here: Path) -> Path:
    folder = here / "hostile"
    folder.mkdir()
    return folder


def test_a_folder_that_claims_anothers_worktree_is_not_believed(here: Path) -> None:
    repo, folder = repository(here / "repo"), hostile(here)
    tree(repo, here / "tree")
    (folder / ".git").write_text(f"gitdir: {repo}/.git/worktrees/tree\n")
    assert canonical_root(folder) == folder
    assert canonical_root(here / "tree") == repo


def test_a_folder_that_claims_the_repository_itself_is_not_believed(here: Path) -> None:
    repo, folder = repository(here / "repo"), hostile(here)
    (folder / ".git").write_text(f"gitdir: {repo}/.git\n")
    assert canonical_root(folder) == folder


def test_a_forged_worktree_entry_is_not_believed(here: Path) -> None:
    repo, folder = repository(here / "repo"), hostile(here)
    forged = folder / "forged" / "worktrees" / "w"
    forged.mkdir(parents=True)
    (folder / ".git").write_text("gitdir: forged/worktrees/w\n")
    (forged / "gitdir").write_text(f"{folder}/.git\n")
    (forged / "commondir").write_text(f"{repo}/.git\n")
    assert canonical_root(folder) == folder
    (folder / ".git").unlink()
    (folder / ".git").mkdir()
    (folder / ".git" / "commondir").write_text(f"{repo}/.git\n")
    assert canonical_root(folder) == folder


def test_a_forged_repository_that_names_anothers_work_tree_is_not_believed(here: Path) -> None:
    repo, folder = repository(here / "repo"), hostile(here)
    forged = folder / "forged"
    shutil.copytree(repo / ".git", forged)
    (forged / "config").write_text(f"[core]\n\tworktree = {repo}\n")
    entry = forged / "worktrees" / "w"
    entry.mkdir(parents=True)
    (folder / ".git").write_text("gitdir: forged/worktrees/w\n")
    (entry / "gitdir").write_text(f"{folder}/.git\n")
    (entry / "commondir").write_text("../..\n")
    assert canonical_root(folder) == forged


@pytest.mark.parametrize(
    "broken",
    ["", "x", "gitdir:", "gitdir: /no/where\n", "gitdir: a\0b", "gitdir: .\n", "y" * 99_999],
)
def test_a_broken_git_file_makes_the_folder_its_own(here: Path, broken: str) -> None:
    inner = repository(here / "outer") / "inner"
    inner.mkdir()
    (inner / ".git").write_text(broken)
    assert canonical_root(inner) == inner


def test_git_entries_that_are_no_files(here: Path) -> None:
    for name, make in (("a", os.mkfifo), ("b", os.mkdir)):
        (here / name).mkdir()
        make(here / name / ".git")
        assert canonical_root(here / name) == here / name
    (here / "c").mkdir()
    (here / "c" / ".git").symlink_to(".git")
    assert canonical_root(here / "c") == here / "c"


def test_a_name_with_nul_is_refused() -> None:
    with pytest.raises(PathRefused):
        canonical_root(Path("/a\0b"))


# -- slug ----------------------------------------------------------------------------


def test_slugs() -> None:
    assert slug(Path("/home/user/my_repo.git")) == "-home-user-my-repo-git"
    assert slug(Path("/日本")) == "---"
    long = Path("/" + "a" * 300)
    assert len(slug(long)) == 200
    assert slug(long) != slug(Path("/" + "a" * 301))
    assert slug(Path("/" + "a" * 199)) == "-" + "a" * 199


@given(st.lists(st.text(min_size=1, max_size=90), max_size=5))
def test_a_slug_is_a_plain_name(parts: list[str]) -> None:
    path = Path("/" + "/".join(parts).replace("\0", ""))
    name = slug(path)
    assert re.fullmatch(r"[A-Za-z0-9-]{1,200}", name)
    if len(str(path)) <= 200:
        assert len(name) == len(str(path))


# -- project folders -----------------------------------------------------------------


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def owner_of(folder: Path) -> str:
    return json.loads((folder / OWNER).read_text())["root"]


def test_a_project_folder_is_made_private_and_owned(home: Path) -> None:
    folder = project_folder(home, Path("/srv/repo"))
    assert folder == home / "projects" / "-srv-repo"
    assert owner_of(folder) == "/srv/repo"
    assert {mode(it) for it in (home, home / "projects", folder)} == {0o700}
    assert {mode(it) for it in home.rglob("*") if it.is_file()} == {0o600}
    assert project_folder(home, Path("/srv/repo")) == folder


def test_finding_writes_nothing(home: Path) -> None:
    assert find_project_folder(home, Path("/srv/repo")) == home / "projects" / "-srv-repo"
    assert not home.exists()


def test_roots_of_one_slug_have_folders_of_their_own(home: Path) -> None:
    roots = [Path(it) for it in ("/srv/a-b", "/srv/a/b", "/srv/a.b", "/srv/a b", "/srv-a/b")]
    folders = [project_folder(home, root) for root in roots]
    assert len(set(folders)) == len(roots)
    assert folders[0].name == "-srv-a-b"
    assert all(re.fullmatch(r"-srv-a-b-[0-9a-f]{12}", it.name) for it in folders[1:])
    assert [project_folder(home, root) for root in reversed(roots)] == folders[::-1]
    assert [find_project_folder(home, root) for root in roots] == folders


def test_roots_that_differ_in_case_alone(home: Path) -> None:
    one, two = project_folder(home, Path("/srv/Repo")), project_folder(home, Path("/srv/repo"))
    assert one.name.lower() != two.name.lower()
    assert project_folder(home, Path("/srv/repo")) == two


def test_a_root_that_is_no_unicode(home: Path) -> None:
    root = Path(os.fsdecode(b"/srv/\xff\xfe"))
    folder = project_folder(home, root)
    assert owner_of(folder) == str(root)
    assert project_folder(home, root) == folder


def test_a_folder_that_is_there_already_is_taken_as_it_is(home: Path) -> None:
    memory = home / "projects" / "-srv-repo" / "memory"
    memory.mkdir(parents=True)
    (memory / "MEMORY.md").write_text("- x")
    assert project_folder(home, Path("/srv/repo")) == memory.parent
    assert (memory / "MEMORY.md").read_text() == "- x"


def test_an_owner_file_that_was_cut_short_is_written_anew(home: Path) -> None:
    folder = project_folder(home, Path("/srv/repo"))
    (folder / OWNER).write_text("{")
    assert project_folder(home, Path("/srv/repo")) == folder
    assert owner_of(folder) == "/srv/repo"


def test_an_owner_file_that_cannot_be_read_belongs_to_somebody_else(home: Path) -> None:
    folder = home / "projects" / "-srv-repo"
    (folder / OWNER).mkdir(parents=True)
    assert project_folder(home, Path("/srv/repo")) != folder


def test_a_home_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError):
        project_folder(tmp_path / "file" / "home", Path("/srv/repo"))


def claim(home: str, root: str) -> str:
    return str(project_folder(Path(home), Path(root)))


def test_claims_from_many_processes_agree(home: Path) -> None:
    roots = ["/srv/a-b", "/srv/a/b", "/srv/a.b"] * 8
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        folders = pool.starmap(claim, [(str(home), root) for root in roots], chunksize=1)
    assert len(set(zip(roots, folders, strict=True))) == 3
    assert len(set(folders)) == 3
    assert {owner_of(Path(it)) for it in folders} == set(roots)


# -- moved repositories --------------------------------------------------------------


def test_a_moved_repository_keeps_its_folder(home: Path, here: Path) -> None:
    before = project_folder(home, repository(here / "before"))
    after = (here / "before").rename(here / "after")
    assert find_project_folder(home, after) == before
    assert owner_of(before) == str(here / "before")
    assert project_folder(home, after) == before
    assert owner_of(before) == str(after)
    assert project_folder(home, after) == before
    again = after.rename(here / "again")
    assert project_folder(home, again) == before


def test_a_move_to_another_disk_keeps_times_not_inodes(home: Path, here: Path) -> None:
    before = project_folder(home, repository(here / "before"))
    subprocess.run(["cp", "-a", here / "before", here / "after"], check=True)
    copied = project_folder(home, here / "after")
    assert copied != before
    shutil.rmtree(here / "before")
    subprocess.run(["cp", "-a", here / "after", here / "third"], check=True)
    assert project_folder(home, here / "third") == before
    assert project_folder(home, here / "after") == copied


def test_a_new_repository_at_the_old_place_starts_anew(home: Path, here: Path) -> None:
    before = project_folder(home, repository(here / "before"))
    after = (here / "before").rename(here / "after")
    assert project_folder(home, after) == before
    fresh = project_folder(home, repository(here / "before"))
    assert fresh != before
    assert project_folder(home, here / "before") == fresh
    assert project_folder(home, after) == before


def test_a_root_that_still_exists_loses_nothing(home: Path, here: Path) -> None:
    before = project_folder(home, repository(here / "before"))
    shutil.move(here / "before" / ".git", here / "git")
    (here / "after").mkdir()
    shutil.move(here / "git", here / "after" / ".git")
    assert project_folder(home, here / "after") != before
    assert owner_of(before) == str(here / "before")


def test_another_repository_inherits_nothing_nor_does_a_clone(home: Path, here: Path) -> None:
    before = project_folder(home, repository(here / "before"))
    git(here, "clone", "-q", "before", "clone")
    shutil.rmtree(here / "before")
    assert project_folder(home, repository(here / "other")) != before
    assert project_folder(home, here / "clone") != before


def test_a_git_file_or_link_inherits_nothing(home: Path, here: Path) -> None:
    before = project_folder(home, repository(here / "before"))
    moved = (here / "before").rename(here / "after")
    for name in ("file", "link", "inner"):
        (here / name).mkdir()
    (here / "file" / ".git").write_text(f"gitdir: {moved}/.git\n")
    (here / "link" / ".git").symlink_to(moved / ".git")
    (here / "inner" / ".git").mkdir()
    for name in ("description", "info"):
        (here / "inner" / ".git" / name).symlink_to(moved / ".git" / name)
    for name in ("file", "link", "inner"):
        assert project_folder(home, here / name) != before
    assert project_folder(home, moved) == before


def test_times_from_an_archive_tell_nothing(home: Path, here: Path) -> None:
    for name in ("before", "other"):
        repo = repository(here / name)
        for file in ("description", "info/exclude"):
            os.utime(repo / ".git" / file, (1_000_000_000, 1_000_000_000))
    before = project_folder(home, here / "before")
    shutil.rmtree(here / "before")
    assert project_folder(home, here / "other") != before


def test_a_place_that_has_memory_already_keeps_it(home: Path, here: Path) -> None:
    before = project_folder(home, repository(here / "before"))
    after = (here / "before").rename(here / "after")
    (home / "projects" / slug(after) / "memory").mkdir(parents=True)
    assert project_folder(home, after) == home / "projects" / slug(after) != before


def test_a_folder_that_became_a_repository_is_known_by_it_after_a_move(
    home: Path, here: Path
) -> None:
    (here / "before").mkdir()
    before = project_folder(home, here / "before")
    git(here / "before", "init", "-q")
    assert project_folder(home, here / "before") == before
    after = (here / "before").rename(here / "after")
    assert project_folder(home, after) == before


# -- beside Claude Code --------------------------------------------------------------


def test_our_own_home_keeps_transcripts_in_the_project(home: Path) -> None:
    project = project_folder(home, Path("/srv/repo"))
    assert transcripts_folder(project, home) == project
    (project / f"{SESSION}.jsonl").write_text("{}\n")
    (home / LAYOUT).unlink()
    assert transcripts_folder(project, home) == project


def test_a_home_named_so_is_shared_and_one_that_the_environment_names(
    home: Path, tmp_path: Path
) -> None:
    environ = {"CLAUDE_CONFIG_DIR": str(home)}
    assert is_shared(home, environ) is True
    for shared, around in ((tmp_path / ".claude", {}), (home, environ)):
        project = project_folder(shared, Path("/srv/repo"), environ=around)
        assert transcripts_folder(project, shared) == project / "reverie"


def test_a_home_with_foreign_transcripts_is_shared_and_stays_so(home: Path) -> None:
    foreign = home / "projects" / "-srv-repo" / f"{SESSION}.jsonl"
    foreign.parent.mkdir(parents=True)
    foreign.write_text("{}\n")
    project = project_folder(home, Path("/srv/repo"))
    ours = transcripts_folder(project, home)
    assert ours == foreign.parent / "reverie"
    foreign.unlink()
    assert transcripts_folder(project, home) == ours
    ours.mkdir()
    (ours / f"{SESSION}.jsonl").write_text("{}\n")
    (home / LAYOUT).unlink()
    assert transcripts_folder(project, home) == ours


# -- the files of a session ----------------------------------------------------------


def test_where_a_sessions_files_lie() -> None:
    folder = Path("/p")
    assert session_folder(folder, SESSION) == folder / SESSION
    assert tool_results_folder(folder, SESSION) == folder / SESSION / "tool-results"


@given(st.uuids())
def test_uuids_are_session_ids(one: uuid.UUID) -> None:
    assert session_id(str(one)) == str(one)


@given(st.text(max_size=40) | st.from_regex(r"[0-9A-F-]{36}", fullmatch=True))
def test_nothing_else_is(text: str) -> None:
    try:
        assert session_id(text) == str(uuid.UUID(text))
    except (InvalidInput, ValueError):
        with pytest.raises(InvalidInput, match="UUID"):
            session_id(text)


@pytest.mark.parametrize(
    "text", ["", "..", "../x", SESSION.upper(), f"{SESSION}\n", f"{{{SESSION}}}"]
)
def test_ids_that_are_refused(text: str) -> None:
    for make in (session_folder, tool_results_folder):
        with pytest.raises(InvalidInput):
            make(Path("/p"), text)


def test_sessions_are_listed_without_agents(tmp_path: Path) -> None:
    ids = [str(uuid.UUID(int=number)) for number in range(4)]
    for age, one in enumerate(ids[:3]):
        path = tmp_path / f"{one}.jsonl"
        path.write_text("x" * (age + 1))
        os.utime(path, (1_000 - age, 1_000 - age))
    agent = session_folder(tmp_path, ids[0]) / "agents" / f"{ids[3]}.jsonl"
    agent.parent.mkdir(parents=True)
    agent.write_text("{}")
    (tmp_path / "notes.jsonl").write_text("")
    (tmp_path / f"{ids[3]}.jsonl").symlink_to("notes.jsonl")
    (tmp_path / f"{ids[3]}.json").write_text("")
    found = sessions(tmp_path)
    assert [one.id for one in found] == ids[:3]
    assert [(one.mtime, one.size) for one in found] == [(1000.0, 1), (999.0, 2), (998.0, 3)]
    assert found[0].path == tmp_path / f"{ids[0]}.jsonl"
    assert sessions(tmp_path / "none") == []
