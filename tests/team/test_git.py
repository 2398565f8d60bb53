"""Team memory through a git remote: two folders and a bare repository, no server."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from reverie.errors import InvalidInput
from reverie.team import (
    BEGINNING,
    BRANCH,
    EntryChange,
    GitRemote,
    Offline,
    RemoteState,
    Stale,
    SyncMode,
)
from reverie.testing import ManualClock

from .conftest import Mate, draft

pytestmark = [pytest.mark.spec("11.git"), pytest.mark.needs("git")]
EMPTY = RemoteState(BEGINNING, {})
COMMANDS = {"log", "ls-remote", "fetch", "cat-file", "ls-tree", "rev-parse", "init"}


def git(*words: str, cwd: Path) -> bytes:
    return subprocess.run(["git", *words], cwd=cwd, check=True, capture_output=True).stdout


def remote(hub: Path, folder: Path, url: str = "", program: str = "") -> GitRemote:
    program = program or shutil.which("git") or "git"
    return GitRemote(
        url or f"file://{hub}", "acme/reader", folder, program=program, environ=os.environ
    )


@pytest.fixture
def hub(tmp_path: Path) -> Path:
    folder = tmp_path / "hub.git"
    git("init", "-q", "--bare", str(folder), cwd=tmp_path)
    return folder


@pytest.fixture
def mates(tmp_path: Path, hub: Path, hand: ManualClock) -> Iterator[list[Mate]]:
    made = [
        Mate(tmp_path / name, remote(hub, tmp_path / name / "team-git"), hand.now)
        for name in ("ines", "tomas")
    ]
    yield made
    for one in made:
        one.memories.close()


def test_two_folders_share_through_a_plain_git_remote(mates: list[Mate], hub: Path) -> None:
    ines, tomas = mates
    ines.write("deploy.md", "On Tuesdays — always.\n")
    assert ines.sync().pushed == ["deploy.md"]
    assert tomas.sync().pulled == ["deploy.md"]
    (author,) = {one.author for one in tomas.remote.log()}
    assert tomas.memories.history.log("team/deploy.md")[-1].origin.note == f"by {author}"
    open_to_others = [
        one for one in (tomas.memories.home / "team-git").rglob("*") if one.stat().st_mode & 0o077
    ]
    assert open_to_others == []
    assert tomas.read("deploy.md") == "On Tuesdays — always.\n"
    tomas.write("deploy.md", "On Wednesdays.\n")
    tomas.write("b.md", "b\n")
    assert tomas.sync().pushed == ["b.md", "deploy.md"]
    assert sorted(ines.sync().pulled) == ["b.md", "deploy.md"]
    quiet = ines.sync()
    assert (quiet.pulled, quiet.pushed) == ([], [])
    assert git("rev-list", "--count", BRANCH, cwd=hub).strip() == b"2"
    assert [(one.key, one.version) for one in ines.remote.log()] == [
        ("b.md", 2),
        ("deploy.md", 2),
        ("deploy.md", 1),
    ]


def test_what_both_changed_is_merged_or_kept_beside(mates: list[Mate]) -> None:
    ines, tomas = mates
    both = SyncMode(merging=True)
    ines.write("a.md", "top\n\nmiddle\n\nend\n")
    ines.sync(both)
    tomas.sync(both)
    ines.write("a.md", "TOP\n\nmiddle\n\nend\n")
    ines.sync(both)
    tomas.write("a.md", "top\n\nmiddle\n\nEND\n")
    assert tomas.sync(both).conflicts == ["a.md"]
    ines.sync(both)
    assert ines.read("a.md") == "TOP\n\nmiddle\n\nEND\n"


def test_a_push_on_an_old_tip_is_refused(hub: Path, tmp_path: Path) -> None:
    first, second = remote(hub, tmp_path / "a"), remote(hub, tmp_path / "b")
    for one in (first, second):
        state = one.state()
        assert state is not None
        assert state.tag == BEGINNING
    first.put([draft("a.md", "one")], BEGINNING)
    with pytest.raises(Stale):
        second.put([draft("b.md", "two")], BEGINNING)
    state = second.state()
    assert state is not None
    tag = second.put([draft("b.md", "two"), EntryChange("a.md", None, "")], state.tag)
    assert first.state(tag) is None
    state = first.state()
    assert state is not None
    assert dict(state.contents) == {"b.md": "two"}


def test_row_53_a_branch_with_names_that_lead_elsewhere_is_refused(
    hub: Path, tmp_path: Path
) -> None:
    work = tmp_path / "evil"
    git("init", "-q", str(work), cwd=tmp_path)
    for name in ("CON.md", "a:b.md"):
        (work / name).write_text("x")
        git("add", "-A", cwd=work)
        git("-c", "user.name=x", "-c", "user.email=x", "commit", "-qm", "x", cwd=work)
        git("push", "-qf", str(hub), f"HEAD:{BRANCH}", cwd=work)
        found = remote(hub, tmp_path / "mine").state()
        assert found is not None
        assert (list(found.contents), list(found.refused)) == ([], [name])
        git("rm", "-q", name, cwd=work)
    os.symlink("/etc/passwd", work / "link.md")
    (work / "good.md").write_text("good")
    git("add", "-A", cwd=work)
    git("-c", "user.name=x", "-c", "user.email=x", "commit", "-qm", "x", cwd=work)
    git("push", "-qf", str(hub), f"HEAD:{BRANCH}", cwd=work)
    state = remote(hub, tmp_path / "mine").state()
    assert state is not None
    assert dict(state.contents) == {"good.md": "good"}


def test_a_remote_that_is_away_or_none(tmp_path: Path) -> None:
    with pytest.raises(Offline):
        remote(tmp_path, tmp_path / "mine", f"file://{tmp_path}/nothing.git").state()
    for bad in ("--upload-pack=x", "ext::sh", "a b", "reader"):
        if bad == "ext::sh":
            with pytest.raises(Offline):
                remote(tmp_path, tmp_path / "mine", bad).state()
            continue
        with pytest.raises(InvalidInput):
            remote(tmp_path, tmp_path / "mine", bad)


def test_what_is_here_already_is_neither_fetched_nor_read_again(hub: Path, tmp_path: Path) -> None:
    said = tmp_path / "said"
    noted = tmp_path / "noted-git"
    noted.write_text(f'#!/bin/sh\necho "$@" >> {said}\nexec {shutil.which("git")} "$@"\n')
    noted.chmod(0o700)

    def asked() -> list[str]:
        rows = said.read_text().splitlines()
        said.write_text("")
        return [next(one for one in row.split() if one in COMMANDS) for row in rows]

    writer, reader = remote(hub, tmp_path / "a"), remote(hub, tmp_path / "b", program=str(noted))
    tag = writer.put([draft("a.md", "one")], (writer.hashes() or EMPTY).tag)
    reader.hashes()
    asked()
    assert reader.hashes(tag) is None
    assert asked() == ["ls-remote"]
    state = reader.state()
    assert state is not None
    assert dict(state.contents) == {"a.md": "one"}
    assert asked() == ["ls-remote", "cat-file", "log"]  # is it here, and whose is it


@pytest.mark.parametrize("known", ["environment", "git"])
def test_a_commit_carries_its_author(hub: Path, tmp_path: Path, known: str) -> None:
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "nobody")}
    if known == "environment":
        environ |= {"GIT_AUTHOR_NAME": "ines", "GIT_AUTHOR_EMAIL": "ines@acme.example"}
        environ |= {"GIT_COMMITTER_NAME": "ines", "GIT_COMMITTER_EMAIL": "ines@acme.example"}
    if known == "git":
        (tmp_path / "nobody").mkdir()
        (tmp_path / "nobody" / ".gitconfig").write_text(
            "[user]\nname = ines\nemail = i@a.example\n"
        )
    program = shutil.which("git") or "git"
    url, folder = f"file://{hub}", tmp_path / "mine"
    made = GitRemote(url, "acme/reader", folder, program=program, environ=environ)
    made.put([draft("a.md", "one")], (made.hashes() or EMPTY).tag)
    assert [one.author for one in made.log()] == ["ines"]
