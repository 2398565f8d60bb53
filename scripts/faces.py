"""The async face of a class, written from the class: `python -m scripts.faces [--write]`.

`Memory` is written once, blocking; `Memory.aio` runs the same methods in a worker thread. Its
types are a Protocol with the same signatures, generated here from the source text, so that the
two cannot differ. Without `--write` it says whether the file is as it should be.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "reverie" / "api" / "memory.py"
FACE = ROOT / "src" / "reverie" / "api" / "async_memory.py"
HEAD = '''"""The types of `Memory.aio`, made from `Memory` by `python -m scripts.faces --write`.

Every method is the one of the same name, as a coroutine; nothing here runs.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from reverie.api.values import Change, Checked, Dreamt, Forgotten, Found, Pending, Saved, Undone
from reverie.world import Model


class AsyncMemory(Protocol):
    """`Memory` for tasks."""
'''


def face() -> str:
    """The text of the generated file."""
    tree = ast.parse(SOURCE.read_text(encoding="utf-8"))
    (made,) = (one for one in tree.body if isinstance(one, ast.ClassDef) and one.name == "Memory")
    methods = [one for one in made.body if isinstance(one, ast.FunctionDef) and _is_public(one)]
    parts = [HEAD, *map(_as_async, methods)]
    parts.append(
        "    async def __aenter__(self) -> AsyncMemory: ...\n\n"
        "    async def __aexit__(self, *ended: object) -> None: ...\n"
    )
    return "\n".join(parts)


def _is_public(method: ast.FunctionDef) -> bool:
    by_class = any(isinstance(d, ast.Name) and d.id == "classmethod" for d in method.decorator_list)
    return not method.name.startswith("_") and method.name != "aio" and not by_class


def _as_async(method: ast.FunctionDef) -> str:
    is_property = bool(method.decorator_list)
    returned = ast.unparse(method.returns) if method.returns else "None"
    given = ast.unparse(method.args)
    doc = ast.get_docstring(method) or ""
    kind = "    @property\n    def" if is_property else "    async def"
    noqa = "  # noqa: A002" if "type: str" in given else ""
    line = f"{kind} {method.name}({given}) -> {returned}:"
    if len(line) > 92:
        rows = ",\n        ".join(_split(given))
        line = f"{kind} {method.name}(\n        {rows},\n    ) -> {returned}:"
        line = line.replace("type: str='',", "type: str='',  # noqa: A002")
        noqa = ""
    text = f'{line}{noqa}\n        """{doc}"""\n        ...\n'
    return (
        text.replace("=''", ' = ""')
        .replace("='memory'", ' = "memory"')
        .replace("=None", " = None")
        .replace("=False", " = False")
        .replace("int=", "int = ")
    )


def _split(given: str) -> list[str]:
    return given.split(", ")


def main() -> int:
    """Write the file, or say whether it is current."""
    if "--write" in sys.argv[1:]:
        FACE.write_text(face(), encoding="utf-8")
        return 0
    current = FACE.read_text(encoding="utf-8") == face()
    print("current" if current else "run: python -m scripts.faces --write")
    return 0 if current else 1


if __name__ == "__main__":
    sys.exit(main())
