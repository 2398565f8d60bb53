"""The names that each room offers, for type checkers: one `__init__.pyi` beside its `__init__.py`.

A room's `__init__.py` loads names when they are first used (`__getattr__ = offered(…)`), which no
type checker follows. The stub says the same as imports.

    python -m scripts.rooms            compare
    python -m scripts.rooms --write    write the stubs again
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"


def rooms() -> Iterator[Path]:
    """Yield the `__init__.py` of every package that offers names."""
    for path in sorted(SOURCE.rglob("__init__.py")):
        if "__getattr__ = offered(" in path.read_text(encoding="utf-8"):
            yield path


def offered(path: Path) -> set[tuple[str, str]]:
    """Return the names that a package gives, each with its module."""
    room = ".".join(path.parent.relative_to(SOURCE).parts)
    found = imported(path, room)
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            for module, names in ast.literal_eval(node.value.args[1]).items():
                found |= {(f"{room}.{module}", name) for name in names.split()}
    return found


def imported(path: Path, room: str) -> set[tuple[str, str]]:
    """Return the names that a file imports from its own package."""
    return {
        (node.module, name.name)
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ImportFrom)
        and (node.module or "").startswith(f"{room}.")
        and node.module
        for name in node.names
    }


def defined(path: Path) -> list[ast.FunctionDef]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [node for node in tree.body if isinstance(node, ast.FunctionDef)]


def stub(path: Path) -> str:
    lines = [f"from {module} import {name} as {name}" for module, name in sorted(offered(path))]
    for one in defined(path):
        one.body = [ast.Expr(ast.Constant(...))]
        lines.append(ast.unparse(one))
    return "\n".join(lines) + "\n"


def problems() -> Iterator[str]:
    """Yield a line for each room whose stub says something else."""
    for path in rooms():
        kept, room = path.with_suffix(".pyi"), ".".join(path.parent.relative_to(SOURCE).parts)
        if not kept.is_file() or imported(kept, room) != offered(path):
            yield f"{kept.relative_to(ROOT)}: not the names of {path.name}"
        elif {one.name for one in defined(kept)} != {one.name for one in defined(path)}:
            yield f"{kept.relative_to(ROOT)}: not the functions of {path.name}"


def main() -> None:
    if "--write" in sys.argv:
        for path in rooms():
            path.with_suffix(".pyi").write_text(stub(path), encoding="utf-8")
        stubs = [str(path.with_suffix(".pyi")) for path in rooms()]
        ruff = str(Path(sys.executable).with_name("ruff"))
        subprocess.run([ruff, "check", "-q", "--select", "I", "--fix", *stubs], check=True)
        subprocess.run([ruff, "format", "-q", *stubs], check=True)
    wrong = list(problems())
    print(
        "\n".join(
            [*wrong, "run: python -m scripts.rooms --write"]
            if wrong
            else ["rooms: stubs and names agree"]
        )
    )
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
