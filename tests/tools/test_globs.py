"""Patterns for paths: the same files as ripgrep's own, and an end whatever the pattern."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.toolbox import BadPattern, matcher

pytestmark = pytest.mark.spec("13.search")

NAMES = ("a", "b", "ab", "a.py", "b.py", "a.md", ".env")
FOLDERS = ("", "a", "b", "ab", "a/b", "b/a", "a/a/b", ".hid/a")
PARTS = ("*", "**", "?", "a", "b", "a*", "*.py", "[ab]", "[!a].py", "{a,b}", "a.{py,md}", ".*")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = tmp_path_factory.mktemp("tree")
    for folder in sorted(FOLDERS, key=len, reverse=True):
        (top / folder).mkdir(parents=True, exist_ok=True)
        for name in NAMES:
            if not (top / folder / name).exists():
                (top / folder / name).touch()
    return top


def by_ripgrep(tree: Path, pattern: str) -> set[str]:
    found = subprocess.run(
        ["rg", "--no-config", "--files", "--hidden", "--no-ignore", f"--glob={pattern}", "."],
        cwd=tree,
        capture_output=True,
        text=True,
        check=False,
    )
    return {line.removeprefix("./") for line in found.stdout.splitlines()}


def by_us(tree: Path, pattern: str) -> set[str]:
    test = matcher(pattern if "/" in pattern else f"**/{pattern}")
    paths = (path.relative_to(tree) for path in tree.rglob("*") if path.is_file())
    return {path.as_posix() for path in paths if test(path.parts)}


@pytest.mark.needs("rg")
@given(pattern=st.lists(st.sampled_from(PARTS), min_size=1, max_size=4).map("/".join))
def test_the_same_files_as_by_ripgrep(tree: Path, pattern: str) -> None:
    assert by_us(tree, pattern) == by_ripgrep(tree, pattern)


def test_what_lies_below_a_folder_is_not_the_folder_unless_that_is_asked_for() -> None:
    names = [(), ("a",), ("a", "b"), ("a", "b", "c")]
    assert [matcher("a/**")(one) for one in names] == [False, False, True, True]
    with_folders = matcher("a/**", folders=True)
    assert [with_folders(one) for one in names] == [False, True, True, True]


@pytest.mark.parametrize("pattern", ["*a" * 400 + "b", "**/" * 300 + "b", "?*" * 400])
def test_the_work_is_bounded_whatever_the_pattern(pattern: str) -> None:
    assert not matcher(pattern)(["a" * 250] * 64)


@pytest.mark.parametrize("pattern", ["x" * 1_001, "{a,b}" * 7])
def test_a_pattern_that_stands_for_too_many_is_refused(pattern: str) -> None:
    with pytest.raises(BadPattern):
        matcher(pattern)
