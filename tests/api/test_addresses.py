"""Whose memory: writes go to exactly the address, reads outwards, never sideways."""

from __future__ import annotations

import os
import re
import tempfile
from itertools import product
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from reverie import Memory
from reverie.errors import InvalidInput, NotFound, PathRefused
from reverie.store import address_folder
from tests.conftest import PROOF

pytestmark = pytest.mark.spec("18.addresses")
PROPERTY = 200 if PROOF else 8

STRANGE = [
    "../..",
    "/etc/passwd",
    "a\0b",
    "x" * 4096,
    "Ада",
    "ada@example.org",
    "..",
    "\udc80",
    "CON",
]


@pytest.mark.parametrize("name", STRANGE)
def test_a_name_never_becomes_a_path(home: Path, tmp_path: Path, name: str) -> None:
    memory = Memory("shop", user=name, agent=name)
    memory.add("The user likes tea")
    assert Path(os.path.realpath(memory.folder)).is_relative_to(home / "projects")
    assert len(memory.folder.relative_to(home).parts) == 7
    assert [one.text for one in Memory("shop", user=name, agent=name).list()] == [
        "The user likes tea"
    ]
    assert Memory("shop", user=f"{name}.").list() == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home"]


def test_names_that_differ_have_folders_that_differ_also_where_case_does_not_count() -> None:
    names = ["ada", "Ada", "ADA", " ada", "ada ", "a-d-a", "a.d.a", *STRANGE]
    found = {str(address_folder(Path("/p"), name)).casefold() for name in names}
    assert len(found) == len(names)
    user, agent = (address_folder(Path("/p"), *one) for one in (("x", ""), ("", "x")))
    assert user != agent


def test_reads_go_outwards_and_writes_stay(home: Path) -> None:
    project, user = Memory("shop"), Memory("shop", user="ada")
    agent, both = Memory("shop", agent="support"), Memory("shop", user="ada", agent="support")
    project.add("The shop sells zebras")
    user.add("Ada wants two zebras")
    agent.add("Support answers zebra questions in a day")
    both.add("Support promised Ada a zebra")
    scopes = {
        project: ["project"],
        user: ["user", "project"],
        agent: ["agent", "project"],
        both: ["agent", "user", "project"],
    }
    for memory, expected in scopes.items():
        assert [one.scope for one in memory.list()] == expected
        assert {one.scope for one in memory.search("zebra")} == set(expected)
    assert [len(memory.history()) for memory in scopes] == [1, 1, 1, 1]
    wider = project.list()[0].file
    assert user.get(wider).scope == "project"
    for write in (lambda: user.remove(wider), lambda: user.update(wider, "other")):
        with pytest.raises(NotFound):
            write()
    assert "project's memory" in both.context()


def test_a_text_at_two_parts_is_found_once_at_the_narrower(home: Path) -> None:
    Memory("shop").add("The shop sells zebras")
    user = Memory("shop", user="ada")
    user.add("The shop sells zebras")
    assert [one.scope for one in user.search("zebra")] == ["user"]


def test_a_project_is_a_folder_or_a_name(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Memory("shop").add("By name")
    (tmp_path / "shop").mkdir()
    assert Memory("shop").list() == []
    Memory("shop").add("By folder")
    assert [one.text for one in Memory(tmp_path / "shop").list()] == ["By folder"]
    here = Memory("./shop")
    monkeypatch.chdir("/")
    assert [one.text for one in here.list()] == ["By folder"]
    assert [one.text for one in Memory("shop").list()] == ["By name"]
    assert Memory("").__project__.cwd == Path("/")
    with pytest.raises(InvalidInput, match="is a text"):
        Memory("shop", user=7)  # pyright: ignore[reportArgumentType]


def test_the_person_is_remembered_in_all_projects_and_clashes_with_no_name(home: Path) -> None:
    Memory.personal().add("I write left-handed")
    assert [one.scope for one in Memory.personal().list()] == ["personal"]
    assert Memory("personal").list() == []
    assert Memory("shop").list() == []


def test_another_home_is_another_place(home: Path, tmp_path: Path) -> None:
    there = Memory("shop", home=tmp_path / "other")
    there.add("Kept elsewhere")
    assert there.folder.is_relative_to(tmp_path / "other")
    assert not home.exists()
    assert Memory("shop").list() == []
    with pytest.raises(PathRefused):
        Memory("shop", home="/").list()


def test_one_folder_for_all_memory_is_not_shared_by_users(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REVERIE_MEMORY_PATH_OVERRIDE", str(tmp_path / "all" / "memory"))
    Memory("shop", user="ada").add("A secret wish of Ada")
    assert Memory("shop", user="bob").list() == []


USERS = ("", "ada", "bob", "../ada")
AGENTS = ("", "support")
CALLS = st.lists(
    st.tuples(
        st.sampled_from(("add", "add", "update", "remove", "undo", "learn")),
        st.sampled_from(USERS),
        st.sampled_from(AGENTS),
        st.integers(0, 3),
    ),
    min_size=2,
    max_size=6,
)


@given(CALLS)
@settings(max_examples=PROPERTY, phases=[Phase.generate])
def test_two_users_never_see_each_others_memories(
    calls: list[tuple[str, str, str, int]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for verb, user, agent, number in calls:
            _call(Memory("shop", user=user, agent=agent, home=folder), verb, user, agent, number)
        for user, agent in product(USERS, AGENTS):
            memory = Memory("shop", user=user, agent=agent, home=folder)
            texts = [one.text for one in (*memory.list(), *memory.search("zebra"))]
            told = "\n".join((*texts, memory.context("zebra")))
            seen = {USERS[int(n)] + AGENTS[int(m)] for n, m in re.findall(r"owner(\d)(\d)", told)}
            assert seen <= {user + agent, user, ""}


def _call(memory: Memory, verb: str, user: str, agent: str, number: int) -> None:
    """One call at random; each text says whose it is."""
    mark = f"owner{USERS.index(user)}{AGENTS.index(agent)}"
    text = f"Zebra number {number} of {mark} is striped"
    own = [one for one in memory.list() if mark in one.text]
    if verb == "learn":
        memory.learn([{"role": "user", "content": f"Please remember: {text}"}])
    elif verb == "add" or not own:
        memory.add(text)
    elif verb == "update":
        memory.update(own[-1].file, text)
    elif verb == "remove":
        memory.remove(own[0].file)
    else:
        memory.undo()
