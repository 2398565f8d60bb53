"""Claims looked at in a real repository: present, moved, gone, unverifiable; nothing guessed."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from reverie.session import CheckedClaim, Repository, line
from reverie.topics import Claim, find_claims

pytestmark = [pytest.mark.spec("B8"), pytest.mark.needs("git")]

PROGRAMS = os.environ.get("PATH", os.defpath)


def git(at: Path, *args: str) -> str:
    done = subprocess.run(["git", *args], cwd=at, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def commit(at: Path) -> str:
    git(at, "add", "-A")
    git(at, "commit", "-qm", "change")
    return git(at, "rev-parse", "HEAD")


def put(at: Path, key: str, text: str) -> None:
    path = at / key
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    at = tmp_path / "repository"
    at.mkdir()
    git(at, "init", "-q", "-b", "main")
    body = "".join(f"line {n} of the file that will be renamed\n" for n in range(30))
    put(at, "src/auth/login.py", "def login_user(name):\n    return check_password(name)\n")
    put(at, "src/old/session.py", "class Session:\n    def prepare(self): ...\n")
    put(at, "src/first.py", body)
    put(at, "cli.py", "parser.add_argument('--dry-run')\n")
    put(at, "CHANGELOG.md", "removed_function() is gone\n")
    commit(at)
    git(at, "mv", "src/old/session.py", "src/new_session_home.py")
    (at / "lib").mkdir()
    git(at, "mv", "src/first.py", "lib/second.py")
    commit(at)
    return at


def looked(at: Path, text: str, seconds: float = 30.0) -> dict[str, CheckedClaim]:
    found = Repository(at, seconds=seconds, path=PROGRAMS).check(find_claims(text))
    return {one.claim.text: one for one in found}


def status(at: Path, text: str, **more: float) -> dict[str, tuple[str, str]]:
    return {name: (one.status, one.where) for name, one in looked(at, text, **more).items()}


def test_paths_symbols_and_flags_that_are_there(repository: Path):
    text = "`login_user()` in `src/auth/login.py`, flag `--dry-run`, login.py, `src/auth/`"
    assert status(repository, text) == {
        "login_user()": ("present", "src/auth/login.py"),
        "src/auth/login.py": ("present", "src/auth/login.py"),
        "--dry-run": ("present", "cli.py"),
        "login.py": ("present", "src/auth/login.py"),
        "src/auth/": ("present", "src/auth"),
    }


def test_a_renamed_file_is_found_by_what_git_knows(repository: Path):
    assert status(repository, "src/old/session.py") == {
        "src/old/session.py": ("moved", "src/new_session_home.py")
    }
    git(repository, "mv", "lib/second.py", "lib/third.py")
    commit(repository)
    assert status(repository, "src/first.py") == {"src/first.py": ("moved", "lib/third.py")}


def test_no_git_of_the_project_is_run(repository: Path, tmp_path: Path):
    put(repository, "bin/git", f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    (repository / "bin/git").chmod(0o755)
    for first in (f"{repository}/bin", "bin"):
        found = Repository(repository, seconds=30, path=f"{first}:{PROGRAMS}")
        (told,) = found.check(find_claims("src/old/session.py"))
        assert (told.status, told.where) == ("moved", "src/new_session_home.py")
    assert not (tmp_path / "ran").exists()


def test_a_file_of_the_same_name_elsewhere_is_where_it_moved(repository: Path):
    os.rename(repository / "src/auth/login.py", repository / "lib/login.py")  # git was not told
    assert status(repository, "src/auth/login.py") == {
        "src/auth/login.py": ("moved", "lib/login.py")
    }


def test_two_files_of_that_name_are_no_answer(repository: Path):
    for folder in ("a", "b"):
        put(repository, f"{folder}/util.py", "x = 1\n")
    commit(repository)
    assert status(repository, "src/util.py") == {"src/util.py": ("gone", "")}
    assert status(repository, "x/b/util.py") == {"x/b/util.py": ("moved", "b/util.py")}


def test_what_is_gone(repository: Path):
    text = "`removed_function()`, src/never.py, --no-such-flag, commit 0123456789"
    assert {name: one[0] for name, one in status(repository, text).items()} == {
        "removed_function()": "gone",  # a change log is no code
        "src/never.py": "gone",
        "--no-such-flag": "gone",
        "0123456789": "gone",
    }


def test_a_symbol_that_left_its_file_has_moved(repository: Path):
    put(repository, "src/auth/check.py", "def check_password(name): ...\n")
    put(repository, "src/auth/login.py", "from check import other\n")
    text = "`check_password()` in `src/auth/login.py`"
    assert status(repository, text)["check_password()"] == ("moved", "src/auth/check.py")


def test_a_symbol_in_a_file_git_does_not_know_yet_is_present(repository: Path):
    put(repository, "src/fresh.py", "def brand_new_thing(): ...\n")
    assert status(repository, "`brand_new_thing()`")["brand_new_thing()"][0] == "present"


def test_a_name_is_a_whole_word(repository: Path):
    assert status(repository, "`login_us()` and `--dry`") == {
        "login_us()": ("gone", ""),
        "--dry": ("gone", ""),
    }


@pytest.mark.parametrize("packed", [False, True])
def test_commits_by_their_beginning_loose_and_packed(repository: Path, packed: bool):
    head, first = git(repository, "rev-parse", "HEAD", "HEAD~1").split()
    if packed:
        git(repository, "gc", "-q")
        assert not list((repository / ".git/objects" / head[:2]).glob("*"))
    text = f"commit {head[:7]} and commit {first} and commit {'0' * 10}"
    found = {name: one[0] for name, one in status(repository, text).items()}
    assert found == {head[:7]: "present", first: "present", "0" * 10: "gone"}


def test_commits_of_a_shallow_copy_cannot_be_told(repository: Path, tmp_path: Path):
    first = git(repository, "rev-parse", "HEAD~1")
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{repository}", "shallow")
    one = looked(tmp_path / "shallow", f"commit {first}")[first]
    assert (one.status, one.why) == ("unverifiable", "the repository is not whole")


def test_a_worktree_has_the_commits_of_its_repository(repository: Path, tmp_path: Path):
    git(repository, "worktree", "add", "-q", str(tmp_path / "tree"), "-b", "other")
    head = git(repository, "rev-parse", "HEAD")
    found = status(tmp_path / "tree", f"commit {head[:9]}, src/auth/login.py, src/old/session.py")
    assert {name: one[0] for name, one in found.items()} == {
        head[:9]: "present",
        "src/auth/login.py": "present",
        "src/old/session.py": "moved",
    }


def test_what_lies_elsewhere_cannot_be_told(repository: Path):
    text = "~/notes.md, /etc/hosts.txt, ../other/a.py, `owner/name`, `git push --force`"
    assert {one[0] for one in status(repository, text).values()} == {"unverifiable"}


def test_a_link_leads_to_nothing_outside(repository: Path, tmp_path: Path):
    put(tmp_path, "elsewhere/secret.py", "hidden_name = 1\n")
    (repository / "out").symlink_to(tmp_path / "elsewhere")
    (repository / "near.py").symlink_to(tmp_path / "elsewhere" / "secret.py")
    found = status(repository, "`out/secret.py`, `near.py`, `hidden_name`")
    assert {name: one[0] for name, one in found.items()} == {
        "out/secret.py": "unverifiable",
        "near.py": "gone",
        "hidden_name": "gone",
    }


def test_another_memory_is_no_lost_file(repository: Path, tmp_path: Path):
    put(tmp_path, "memory/project_deploys.md", "x\n")
    found = Repository(repository, also=tmp_path / "memory", path=PROGRAMS).check(
        find_claims("see [it](project_deploys.md) and project_other.md")
    )
    assert [one.status for one in found] == ["present", "gone"]


def test_outside_git_files_are_looked_at_all_the_same(tmp_path: Path):
    put(tmp_path, "pkg/a.py", "def one_thing(): ...\n")
    text = "`one_thing()`, pkg/a.py, pkg/b.py, commit 1234567"
    assert {name: one[0] for name, one in status(tmp_path, text).items()} == {
        "one_thing()": "present",
        "pkg/a.py": "present",
        "pkg/b.py": "gone",
        "1234567": "unverifiable",
    }


def test_without_time_nothing_is_said_to_be_gone(repository: Path):
    text = "`removed_function()`, src/never.py, `src/auth/login.py`, --no-such-flag"
    found = status(repository, text, seconds=0.0)
    assert {name: one[0] for name, one in found.items()} == {
        "removed_function()": "unverifiable",
        "src/never.py": "unverifiable",
        "src/auth/login.py": "present",
        "--no-such-flag": "unverifiable",
    }


def test_a_clock_that_runs_out_midway_stops_the_search(repository: Path):
    for n in range(200):
        put(repository, f"many/f{n:03d}.py", "nothing = 1\n")
    commit(repository)
    ticks = iter(range(10**6))
    found = Repository(repository, seconds=50.0, now=lambda: float(next(ticks)), path=PROGRAMS)
    (one,) = found.check(find_claims("`removed_function()`"))
    assert (one.status, one.why) == ("unverifiable", "there was no time to look")
    assert next(ticks) < 100


def signed(at: Path) -> None:
    """Make the newest commit one that has a signature, which git would ask a program about."""
    head, _, rest = git(at, "cat-file", "commit", "HEAD").partition("\n\n")
    signature = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----"
    done = subprocess.run(
        ["git", "hash-object", "-t", "commit", "-w", "--stdin"],
        cwd=at, check=True, capture_output=True, text=True,
        input=f"{head}\n{signature}\n\n{rest}\n",
    )  # fmt: skip
    git(at, "reset", "-q", "--soft", done.stdout.strip())


def test_the_repositorys_configuration_starts_no_program(repository: Path, tmp_path: Path):
    mark = tmp_path / "ran"
    script = tmp_path / "evil.sh"
    script.write_text(f"#!/bin/sh\ntouch {mark}\n")
    script.chmod(0o755)
    signed(repository)
    names = ("core.fsmonitor", "diff.external", "core.pager", "gpg.program", "core.sshCommand")
    for name in names:
        git(repository, "config", name, str(script))
    git(repository, "config", "log.showSignature", "true")
    git(repository, "config", "diff.evil.textconv", str(script))
    put(repository, ".gitattributes", "*.py diff=evil filter=evil\n")
    assert status(repository, "src/old/session.py")["src/old/session.py"][0] == "moved"
    assert not mark.exists()


@pytest.mark.parametrize("damage", [b"", b"DIRC", b"\0" * 100, b"DIRC\0\0\0\2\xff\xff\xff\xff"])
def test_a_broken_index_is_done_without(repository: Path, damage: bytes):
    (repository / ".git/index").write_bytes(damage)
    found = status(repository, "`login_user()`, src/auth/login.py")
    assert {one[0] for one in found.values()} == {"present"}


def test_odd_files_hold_nothing_up(repository: Path):
    os.mkfifo(repository / "a_pipe.py")
    (repository / "huge.py").touch()
    os.truncate(repository / "huge.py", 1 << 30)
    put(repository, "bad.py", "")
    (repository / "bad.py").write_bytes(b"\xff\xfe only_in_bytes_here \xff")
    (repository / "binary.py").write_bytes(b"\0only_in_binary")
    (repository / "loop.py").symlink_to("loop.py")
    found = status(repository, "`only_in_bytes_here()`, `only_in_binary()`, `loop.py`")
    assert found["only_in_bytes_here()"][0] == "present"
    assert found["only_in_binary()"][0] == "gone"


def test_the_line_says_what_changed_first_and_how_many_more(repository: Path):
    text = "\n".join(
        [f"src/f{n}.py" for n in range(20)] + ["src/auth/login.py", "src/old/session.py"]
    )
    told = line(Repository(repository, seconds=30, path=PROGRAMS).check(find_claims(text)))
    assert told.startswith("Checked against the repository: src/f0.py gone; ")
    assert told.endswith("; 10 more")
    assert "\n" not in told
    assert line(()) == ""


def test_nothing_is_written(repository: Path, tmp_path: Path):
    def everything(below: Path, look: Callable[[Path], object]) -> dict[str, object]:
        return {str(p): look(p) for p in sorted(below.rglob("*"))}

    before = everything(tmp_path, lambda p: p.stat().st_mtime_ns)
    status(repository, "src/old/session.py, `login_user()`, src/never.py, --dry-run")
    assert everything(tmp_path, lambda p: p.stat().st_mtime_ns) == before


@pytest.mark.parametrize(
    "named", ["src/app/", "src/pipe.py", "/".join(["a" * 200] * 20) + "/x.py", "src/app"]
)
def test_what_is_no_file_costs_no_other_claim(tmp_path: Path, named: str):
    (tmp_path / "src/app").mkdir(parents=True)
    (tmp_path / "src/app/x.py").write_text("def hello(): ...\n")
    os.mkfifo(tmp_path / "src/pipe.py")
    sought = Claim("symbol", "hello()", 1, near=named)
    found = Repository(tmp_path).check([Claim("path", named, 1), sought])
    assert found[1].where == "src/app/x.py"
