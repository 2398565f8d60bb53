"""A newer rule about the same slot holds in place of the older one, and nothing is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

import reverie
from reverie.session import OpenMemory, young_memories
from reverie.settings import DEFAULTS
from reverie.store import Project
from reverie.topics import Origin, TopicFile, Trust, frames, new, supersedes
from tests.memory.folders import opened

pytestmark = pytest.mark.spec("19.supersede")

REPLACED = (
    ("Always start attribute names with 'q_'", "always start attribute names with 'j_'"),
    ("Function arguments start with `a_`.", "Function argument names start with `b_`."),
    ("Start all method names with 'm_'.", "I want you to start method names with 'n_', not 'm_'."),
    ("Use the prefix 'x_' for variables.", "Variables should begin with 'y_'."),
    ("Make sure that your attributes end with '_x'.", "Attributes must end with '_y' from now on."),
    ("Use npm for installs", "Use pnpm for installs"),
    ("Use jest for unit tests", "From now on, use vitest for unit tests"),
    ("Use tabs for indentation", "Use spaces for indentation"),
    ("Write commit messages in English", "Write commit messages in German"),
    ("Keep functions under 40 lines", "Keep functions under 60 lines"),
    ("Verwende npm für Installationen", "Verwende pnpm für Installationen"),
    ("Les variables commencent par 'a_'", "Les variables commencent par 'b_'"),
    ("Las variables empiezan con 'a_'", "Las variables empiezan con 'b_'"),
    ("函数参数以'a_'开头", "函数参数以'b_'开头"),
    ("変数名は'a_'で始める", "変数名は'b_'で始める"),
    ("Put 'x_' as prefix on variables.", "Variables should begin with 'y_'."),
    ("End method names with '_x'.", "Add '_y' as a suffix to method names."),
    ("Use the suffix '_x' for method names.", "Method names end with '_y'."),
    ("Commit messages are written in English", "Commit messages must be written in German"),
    ("Class names are in CamelCase", "Class names must be in snake_case"),
    ("Variablennamen beginnen mit 'a_'", "Variablennamen beginnen mit 'b_'"),
    ("Methodennamen enden auf '_a'", "Methodennamen enden auf '_b'"),
    ("Les méthodes se terminent par '_a'", "Les méthodes se terminent par '_b'"),
    ("Utilise npm pour les installations", "Utilise pnpm pour les installations"),
    ("Los métodos terminan en '_a'", "Los métodos terminan en '_b'"),
    ("Usa npm para las instalaciones", "Usa pnpm para las instalaciones"),
    ("方法名以'_a'结尾", "方法名以'_b'结尾"),
    ("提交信息用英文写", "提交信息用中文写"),
    ("メソッド名は'_a'で終わる", "メソッド名は'_b'で終わる"),
    ("テストには jest を使う", "テストには vitest を使う"),
    ("コミットは英語で書く", "コミットは日本語で書く"),
)
BOTH_HOLD = (
    ("Room 3 has the broken projector", "Room 5 has the broken projector"),
    ("Methods start with get_ where they read.", "Methods start with set_ where they write."),
    ("Sprint 12 tickets start with 'A-'", "Sprint 13 tickets start with 'B-'"),
    ("Use Room 3 for standups", "Use Room 5 for standups"),
    ("Use server one for builds", "Use server two for builds"),
    ("Use the east gate for deliveries", "Use the west gate for deliveries"),
    ("Use pytest for unit tests", "Use pytest for integration tests"),
    ("Use retries for network calls", "Use timeouts for network calls"),
    ("In module a, variables start with 'a_'", "In module b, variables start with 'b_'"),
    ("Use black for Python", "Use prettier for JavaScript"),
    ("Start function names with 'a_'", "Start method names with 'b_'"),
    ("Start function names with 'a_'", "End function names with '_b'"),
    ("In Go files, start function names with 'a_'", "In C files, start function names with 'b_'"),
    ("Use ruff for linting", "Also use mypy for linting"),
    ("Use ruff for linting", "Use another linter for linting"),
    ("Verwende ruff für Prüfungen", "Verwende auch mypy für Prüfungen"),
    ("Utilise ruff pour les contrôles", "Utilise aussi mypy pour les contrôles"),
    ("Usa ruff para las pruebas", "Usa también mypy para las pruebas"),
    ("函数参数以'a_'开头", "函数参数也可以以'b_'开头"),
    ("変数名は'a_'で始める", "変数名は'b_'で始めてもよい"),
    ("Never use npm for installs", "Use pnpm for installs"),
    ("The office is in Berlin", "The office is in Paris"),
    ("Use npm for installs", "Use npm for installs"),
    ("Use a for b. Start names of classes with 'C_'.", "Use x for b."),
)


def memory(text: str, key: str = "k.md") -> TopicFile:
    return new(key, name="A rule", description=text, type="feedback", body=text)


@pytest.mark.parametrize(("older", "newer"), REPLACED)
def test_another_value_for_the_same_slot_supersedes(older: str, newer: str) -> None:
    assert supersedes(memory(newer), memory(older))
    assert supersedes(memory(older), memory(newer))


@pytest.mark.parametrize(("older", "newer"), BOTH_HOLD)
def test_where_it_is_not_the_same_slot_both_hold(older: str, newer: str) -> None:
    assert not supersedes(memory(newer), memory(older))


def test_every_frame_of_the_table_states_one_of_these() -> None:
    texts = [text for pair in REPLACED for text in pair]
    assert [one for one in frames() if not any(one[1].search(text) for text in texts)] == []


def test_one_is_told_as_current_and_both_stay(home: Path, tmp_path: Path) -> None:
    with reverie.Memory(tmp_path) as memories:
        first = memories.add("Start attribute names with 'q_'.").file
        second = memories.add("Start attribute names with 'j_'.").file
        assert [hit.file for hit in memories.search("attribute names")] == [second]
        assert "'q_'" not in memories.context("attribute names")
        assert {one.file for one in memories.list()} == {first, second}
        memories.add("Start attribute names with 'q_'.")  # back again, in words that are known
        assert [hit.file for hit in memories.search("attribute names")] == [first]
    with OpenMemory.of(Project.at(tmp_path)) as one:
        folder = one.store.folder
        young = young_memories(one.store, DEFAULTS, folder.scan())
        assert [Path(file.path).name for file in young] == [first]
        assert second not in folder.index_sent().text
        assert f"superseded by {first}"[:40].encode() in folder.index_data()
        assert folder.read(second).superseded == first


def test_a_mark_is_part_of_the_step_and_goes_with_it(home: Path, tmp_path: Path) -> None:
    with opened(tmp_path) as memories:
        by_user = Origin("save", Trust.USER)
        memories.save("a.md", memory("Use npm for installs").data, by_user)
        before = memories.folder.bytes_of("a.md")
        memories.save("b.md", memory("Use pnpm for installs").data, by_user)
        assert memories.folder.read("a.md").superseded == "b.md"
        memories.undo("", by_user)
        assert memories.folder.bytes_of("a.md") == before
        assert memories.folder.keys() == ("a.md",)


def test_a_lesser_word_never_supersedes_a_better_one(home: Path, tmp_path: Path) -> None:
    with opened(tmp_path) as memories:
        memories.save("a.md", memory("Use npm for installs").data, Origin("save", Trust.USER))
        memories.save("b.md", memory("Use pnpm for installs").data, Origin("save", Trust.AGENT))
        assert not memories.folder.read("a.md").superseded
