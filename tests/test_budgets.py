"""The budgets' own arithmetic; `make check` holds the tree against them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from scripts import budgets

FOUND = {"source": {"files": 7, "share": 0.2}, "rooms": {"wire": [10, 5, 1]}}
TEXT = """\
[source]
files = [{files}, 3]   # why
share = 0.3
[rooms]
wire = [12, 5, 2]
"""


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "budgets.toml"
    monkeypatch.setattr(budgets, "FILE", file)
    monkeypatch.setattr(budgets, "measured", lambda: FOUND)
    return file


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (TEXT.format(files=7), []),
        (TEXT.format(files=6), ["source.files: 7, at most 6"]),
        (TEXT.format(files=9).replace("5, 2", "4, 2"), ["rooms.wire: 5, at most 4"]),
        (TEXT.format(files=9) + "gone = [1, 1, 1]\n", ["rooms.gone: not in the tree"]),
        (TEXT.format(files=9).replace("share", "part"), None),
    ],
)
def test_what_is_above_or_missing_is_named(tree: Path, text: str, said: list[str] | None) -> None:
    tree.write_text(text)
    found = list(budgets.problems())
    assert found == said if said is not None else len(found) == 2


def test_ceilings_only_fall_and_goals_and_comments_stay(tree: Path) -> None:
    tree.write_text(TEXT.format(files=9))
    budgets.lower()
    assert tree.read_text() == TEXT.format(files=7).replace("0.3", "0.2").replace(
        "[12, 5, 2]", "[10, 5, 1]"
    )
    tree.write_text(TEXT.format(files=6))
    budgets.lower()
    assert "files = [6, 3]   # why" in tree.read_text()


@pytest.mark.parametrize(
    ("name", "is_one"),
    [("_told", True), ("opened", True), ("need", False), ("read", False), ("is_opened", False)],
)
def test_a_participle_is_the_whole_name(name: str, is_one: bool) -> None:
    assert budgets.participle(name) is is_one


@pytest.mark.parametrize(
    ("source", "inside"),
    [
        ("import reverie", False),
        ("from reverie import wire", False),
        ("from reverie.wire import read", False),
        ("from reverie.wire.messages import read", True),
        ("from reverie.wire import messages", True),
        ("from reverie.apps.cli import main", False),
        ("from reverie.apps.cli.app import run", True),
        ("def test():\n    import reverie.wire.messages", True),
    ],
)
def test_a_file_inside_a_room_is_told_from_the_room(source: str, inside: bool) -> None:
    assert budgets.inside_a_room(ast.parse(source)) is inside
