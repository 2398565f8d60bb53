"""Damages drawn by chance: each is one edit that can be read, and a seed draws the same ones."""

from __future__ import annotations

import ast
import importlib.util
import json
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from scripts import mutants, trials

SOURCE = '''
def kept(rows: list[str], most: int) -> list[str]:
    """The “first” rows."""
    if len(rows) < 3:
        return rows
    flush(rows)
    close(rows)
    return rows[:most]
'''


def test_every_kind_of_damage_is_one_edit_that_can_be_read() -> None:
    found = list(mutants.mutants_of("m", SOURCE))
    told = {one.told(SOURCE) for one in found}
    assert told == {
        "m:4 turned round: len(rows) < 3 -> (not (len(rows) < 3))",
        "m:4 compared otherwise: len(rows) < 3 -> (len(rows) <= 3)",
        "m:4 one off: 3 -> (4)",
        "m:5 no result: return rows -> return None",
        "m:6 left out: flush(rows) -> pass",
        "m:7 left out: close(rows) -> pass",
        "m:6 in each other's place: flush(rows) close(rows) -> close(rows) flush(rows)",
        "m:8 no result: return rows[:most] -> return None",
    }
    for one in found:
        ast.parse(one.of(SOURCE))
        assert one.of(SOURCE) != SOURCE


def test_a_seed_draws_the_same_and_another_others(root: Path) -> None:
    sources = mutants.modules_of(root, "store")
    first = mutants.drawn("store", sources, 20, 1)
    assert first == mutants.drawn("store", sources, 20, 1)
    assert first != mutants.drawn("store", sources, 20, 2)
    assert len(set(first)) == 20
    assert len({one.module for one in first}) > 5


def test_each_room_and_test_that_is_named_is_there(root: Path) -> None:
    for room, tests in mutants.ROOMS.items():
        assert mutants.modules_of(root, room), room
        assert all((root / one).exists() for one in tests), room


def test_each_damage_that_is_explained_is_still_one_that_could_be_drawn(root: Path) -> None:
    known = mutants.explained(root)
    assert known
    for module in {name[0] for name in known}:
        source = (root / mutants.SOURCE / f"{module}.py").read_text(encoding="utf-8")
        possible = {one.name(source) for one in mutants.mutants_of(module, source)}
        assert {name for name in known if name[0] == module} <= possible, module
    assert all(len(why) > 20 for why in known.values())


def test_what_survived_once_is_tried_again_and_the_rest_is_not(tmp_path: Path) -> None:
    path = tmp_path / "results" / "mutants.json"
    row = {"room": "m", "seed": 1, "noticed": ["m:4 turned round: a -> b"]}
    mutants.write_down(path, {**row, "noticed": []})
    mutants.write_down(path, {**row, "room": "n"})
    mutants.write_down(path, row)
    assert mutants.killed_before(path, "m", 1) == ["m:4 turned round: a -> b"]
    assert mutants.killed_before(path, "m", 2) == []
    assert mutants.killed_before(None, "m", 1) == []
    assert [one["room"] for one in json.loads(path.read_text())["rows"]] == ["m", "n"]


@dataclass
class Item:
    nodeid: str


def test_the_tests_that_come_by_a_line_are_run_the_quickest_first_and_new_ones_with_them() -> None:
    notes = {"slow": (2.0, {"a": [3]}), "quick": (1.0, {"a": [3, 4]}), "other": (0.1, {"b": [3]})}

    def run(lines: range, *tests: str) -> list[str]:
        found = trials.chosen([Item(one) for one in tests], notes, "a", lines)
        return [item.nodeid for item in found]

    assert run(range(3, 4), "other", "slow", "quick") == ["quick", "slow"]
    assert run(range(4, 9), "other", "slow", "quick", "new") == ["new", "quick"]
    assert run(range(7, 9), "other", "slow", "quick") == ["other", "slow", "quick"]


def test_the_code_of_a_loaded_function_is_replaced_wherever_it_is_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "damaged_here.py"
    text = "class A:\n    @property\n    def one(self): return 1\n\ndef two(): return 2\n"
    file.write_text(text)
    spec = importlib.util.spec_from_file_location("damaged_here", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "damaged_here", module)
    spec.loader.exec_module(module)
    held = module.two
    assert trials.replaced(str(file), "two", text.replace("return 2", "return 3"))
    assert (held(), module.A().one) == (3, 1)
    assert trials.replaced(str(file), "A.one", text.replace("return 1", "return 7"))
    assert module.A().one == 7
    assert not trials.replaced(str(file), "three", text)
    assert trials.replaced(str(tmp_path / "not_imported.py"), "three", text)
