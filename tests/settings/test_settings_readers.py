"""Every setting and flag has somebody who reads it: a switch that nothing asks is no switch."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from reverie.settings import FLAGS, SETTINGS

pytestmark = pytest.mark.spec("17.readers")

SOURCE = Path(__file__).parents[2] / "src" / "reverie"
ASKS = ("get", "on", "number", "table")


@cache
def trees() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text("utf-8")) for path in SOURCE.rglob("*.py")}


def outside() -> Iterator[ast.Module]:
    return (tree for path, tree in trees().items() if path.parent != SOURCE / "settings")


def attributes(tree: ast.AST) -> set[str]:
    return {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}


def methods() -> dict[str, set[str]]:
    """What each method of `Settings` reads, by its name."""
    tree = trees()[SOURCE / "settings" / "catalog.py"]
    found = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    return {node.name: attributes(node) for node in found}


def settings_read() -> set[str]:
    """Read outside, or by a method of `Settings` that is called outside, or by its helpers."""
    read = set().union(*map(attributes, outside()))
    for _ in range(3):
        read |= set().union(*(names for name, names in methods().items() if name in read))
    return read | attributes(trees()[SOURCE / "settings" / "flags.py"])


def flags_asked() -> Iterator[str]:
    for tree in outside():
        named = {
            target.id: node.value.value
            for node in tree.body
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            if node.func.attr not in ASKS or "flags" not in ast.unparse(node.func.value):
                continue
            for given in node.args[:1]:
                if isinstance(given, ast.Constant):
                    yield str(given.value)
                elif isinstance(given, ast.Name):
                    yield str(named.get(given.id, ""))


def test_every_setting_is_read() -> None:
    assert set(SETTINGS) - settings_read() == set()


def test_every_flag_is_asked() -> None:
    assert set(FLAGS) - set(flags_asked()) == set()
