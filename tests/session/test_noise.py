"""Which memories are noise beside a tool in use: its documentation, and nothing else."""

from __future__ import annotations

import pytest

from reverie.session import is_noise

pytestmark = pytest.mark.spec("8.selection")


@pytest.mark.parametrize(
    ("title", "tool"),
    [
        ("docker_usage.md Docker usage", "docker"),
        ("reference_kubectl.md kubectl cheat sheet", "kubectl"),
        ("a.md Options of ripgrep", "ripgrep"),
        ("a.md The Grep tool: syntax", "Grep"),
        ("a.md linear API reference", "linear"),
        ("a.md pytest 用法", "pytest"),
    ],
)
@pytest.mark.parametrize("kind", ["reference", "project", ""])
def test_documentation_of_a_tool_in_use_is_noise(title: str, tool: str, kind: str) -> None:
    assert is_noise(kind, title, "Flags and what they do.", ["Edit", tool]) == tool
    assert is_noise(kind, title, "Flags and what they do.", ["Edit"]) == ""


@pytest.mark.parametrize("kind", ["user", "feedback"])
def test_what_the_user_said_is_never_noise(kind: str) -> None:
    assert is_noise(kind, "a.md docker commands", "Use them so.", ["docker"]) == ""


@pytest.mark.parametrize(
    ("title", "text"),
    [
        ("a.md docker commands that break the build", "Use the other ones."),
        ("a.md docker usage", "Known issue: volumes vanish on restart."),
        ("a.md docker usage", "Never prune on the build host."),
        ("a.md docker 用法", "注意不要删除卷"),
    ],
)
def test_what_warns_of_a_tool_stays(title: str, text: str) -> None:
    assert is_noise("reference", title, text, ["docker"]) == ""


@pytest.mark.parametrize(
    ("title", "tool"),
    [
        ("git_server.md Where the git server is", "git"),
        ("a.md Bugs are tracked in linear", "linear"),
        ("a.md The docker registry of the team", "docker"),
    ],
)
def test_a_reference_that_only_names_a_tool_stays(title: str, tool: str) -> None:
    assert is_noise("reference", title, "It is at build.example.", [tool]) == ""


@pytest.mark.parametrize(
    ("title", "tool"),
    [
        ("a.md dockerfile usage", "docker"),
        ("a.md digital docs", "git"),
        ("a.md How we read the API reference", "Read"),
        ("a.md Commands to edit a release", "Edit"),
    ],
)
def test_a_word_that_only_looks_like_a_tool_is_none(title: str, tool: str) -> None:
    assert is_noise("reference", title, "So and so.", [tool]) == ""


def test_a_tool_whose_name_is_a_pattern_is_only_a_name() -> None:
    assert is_noise("reference", "a.md c++ usage", "So and so.", ["c++", "("]) == "c++"
    assert is_noise("reference", "a.md usage of all", "So and so.", [".*"]) == ""
