"""No private name of another package is used: those change without a word."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import reverie

SOURCE = Path(reverie.__file__).parent
READERS = frozenset({"getattr", "setattr", "hasattr", "delattr"})

ALLOWED = {
    # OpenTelemetry has no public call that makes providers from its own variables.
    ("adapters/telemetry.py", "from opentelemetry.sdk._configuration"),
    ("adapters/telemetry.py", "_OTelSDKConfigurator"),
    # Documented, in spite of its name.
    ("agent/subagents/teammate_process.py", "_exit"),
    ("toolbox/supervisor.py", "_exit"),
    ("toolbox/landlock.py", "_exit"),
    # The only call before pools of threads stop: `atexit` comes after Python waited for ours.
    ("interception/background_learner.py", "_register_atexit"),
    # What the SDKs' clients send with has no other name, and a wrapped one is found again by it.
    ("session/report.py", "_client"),
    ("interception/wrap.py", "_client"),
}


def trees() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        yield name, ast.parse(path.read_text(encoding="utf-8"))


def is_private(name: object) -> bool:
    return isinstance(name, str) and name.startswith("_") and not name.startswith("__")


def names_defined(tree: ast.Module) -> Iterator[str]:
    """Yield the names that a module gives to functions, classes, variables and attributes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield from [node.attr] if ast.unparse(node.value) in ("self", "cls") else []


def attributes(tree: ast.Module) -> Iterator[str]:
    yield from (node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute))


def spelt_out(tree: ast.Module) -> Iterator[str]:
    """Yield names that a module reads off something by their text."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and ast.unparse(node.value).startswith("vars("):
            yield from [str(node.slice.value)] if isinstance(node.slice, ast.Constant) else []
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in READERS:
            yield from [str(one.value) for one in node.args[1:2] if isinstance(one, ast.Constant)]


def imports(tree: ast.Module) -> Iterator[str]:
    """Yield imports of private modules and names of other packages."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] != "reverie":
            if any(map(is_private, (node.module or "").split("."))):
                yield f"from {node.module}"
            yield from [one.name for one in node.names if is_private(one.name)]
        elif isinstance(node, ast.Import):
            yield from [n.name for n in node.names if any(map(is_private, n.name.split(".")))]


def test_no_private_name_of_another_package_is_used() -> None:
    known = list(trees())
    ours = {name for _, tree in known for name in names_defined(tree)}
    found: set[tuple[str, str]] = set()
    for path, tree in known:
        found |= {(path, one) for one in attributes(tree) if is_private(one) and one not in ours}
        found |= {(path, one) for one in spelt_out(tree) if is_private(one)}
        found |= {(path, one) for one in imports(tree)}
    assert found == ALLOWED


@pytest.mark.parametrize(
    "text",
    ["one._kind", "vars(threading)['_kind']", "getattr(one, '_kind')", "from os import _kind"],
)
def test_each_spelling_is_found(text: str) -> None:
    tree = ast.parse(text)
    found = [*attributes(tree), *spelt_out(tree), *imports(tree)]
    assert [one for one in found if is_private(one)] == ["_kind"]
