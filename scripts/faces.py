"""The async faces of classes, written from the classes: `python -m scripts.faces [--write]`.

`Memory`, `Fitter` and `Toolset` are written once, blocking; `.aio` runs the same methods in a
worker thread. Its types are a Protocol with the same signatures, generated here from the source
text, so that the two cannot differ. Without `--write` it says
whether the files are as they should be.
"""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
API = ROOT / "src" / "reverie" / "api"
HEAD = '''"""The types of `{name}.aio`, made from `{name}` by `python -m scripts.faces --write`.

Every method is the one of the same name, as a coroutine; nothing here runs.
"""

from __future__ import annotations

{imports}


class Async{name}(Protocol):
    """`{name}` for tasks."""
'''


@dataclass(frozen=True)
class Face:
    """One class, and what its async face needs to name its types."""

    name: str
    source: str
    file: str
    imports: str

    @property
    def path(self) -> Path:
        return API / self.file

    def text(self) -> str:
        """The text of the generated file."""
        tree = ast.parse((API / self.source).read_text(encoding="utf-8"))
        classes = (one for one in tree.body if isinstance(one, ast.ClassDef))
        made = next(one for one in classes if one.name == self.name)
        methods = [one for one in made.body if isinstance(one, ast.FunctionDef) and _is_public(one)]
        parts = [HEAD.format(name=self.name, imports=self.imports), *map(_as_async, methods)]
        if any(method.name == "close" for method in methods):
            parts.append(
                f"    async def __aenter__(self) -> Async{self.name}: ...\n\n"
                "    async def __aexit__(self, *ended: object) -> None: ...\n"
            )
        return "\n".join(parts)


FACES = (
    Face(
        "Memory",
        "memory.py",
        "async_memory.py",
        """\
import builtins
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from reverie.api.toolset import Toolset
from reverie.api.values import Change, Checked, Dreamt, Forgotten, Found, Pending, Saved, Undone
from reverie.world import Model""",
    ),
    Face(
        "Fitter",
        "fitting.py",
        "async_fitter.py",
        """\
from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from reverie.api.fitted import Fitted
from reverie.api.toolset import Toolset
from reverie.api.values import Saved
from reverie.world import Model

T = TypeVar("T")""",
    ),
    Face(
        "Toolset",
        "toolset.py",
        "async_toolset.py",
        """\
from collections.abc import Mapping
from typing import Any, Protocol

from reverie.api.toolset import Toolset""",
    ),
)


def _is_public(method: ast.FunctionDef) -> bool:
    by_class = any(isinstance(d, ast.Name) and d.id == "classmethod" for d in method.decorator_list)
    return not method.name.startswith("_") and method.name != "aio" and not by_class


def _as_async(method: ast.FunctionDef) -> str:
    is_property = bool(method.decorator_list)
    returned = ast.unparse(method.returns) if method.returns else "None"
    given = ast.unparse(method.args)
    doc = (ast.get_docstring(method) or "").replace("\n", "\n        ")
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
    """Write the files, or say whether they are current."""
    if "--write" in sys.argv[1:]:
        for face in FACES:
            face.path.write_text(face.text(), encoding="utf-8")
        return 0
    current = all(face.path.read_text(encoding="utf-8") == face.text() for face in FACES)
    print("current" if current else "run: python -m scripts.faces --write")
    return 0 if current else 1


if __name__ == "__main__":
    sys.exit(main())
