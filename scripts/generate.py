"""Writes what is made from the code or from real runs, or checks what is written.

    python -m scripts.generate [--check]              faces, rooms and reference; links are checked
    python -m scripts.generate faces|rooms [--check]  types of the other faces; stubs of the rooms
    python -m scripts.generate reference [--check]    docs/reference
    python -m scripts.generate pages|examples         links of the pages; types of their examples
    python -m scripts.generate site [FOLDER]          the site, to docs/_build/html
    python -m scripts.generate pictures NAME          cost, draw, terminal or screens

`Memory`, `Fitter` and `Toolset` are written once, blocking; `.aio` runs the same methods in a
worker thread. `Session` and `Agent` are written once, async; `blocking(...)` waits for them. The
types of each other face are a Protocol with the same signatures, generated from the source text.

A room's `__init__.py` loads names when they are first used (`__getattr__ = offered(…)`), which no
type checker follows. The `__init__.pyi` beside it says the same as imports.
"""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scripts import pages
from scripts.pages import ROOT

SOURCE = ROOT / "src"
PACKAGE = SOURCE / "reverie"
HEAD = '''"""The types of `{name}.aio`, made from `{name}` by `python -m scripts.faces --write`.

Every method is the one of the same name, as a coroutine; nothing here runs.
"""

from __future__ import annotations

{imports}


'''
CLASS = '''class Async{name}(Protocol):
    """`{name}` for tasks."""
'''


@dataclass(frozen=True)
class Face:
    """One class, and what its async face needs to name its types."""

    name: str
    source: str
    file: str

    @property
    def path(self) -> Path:
        return PACKAGE / self.file

    def text(self) -> str:
        """The text of the generated file."""
        tree = ast.parse((PACKAGE / self.source).read_text(encoding="utf-8"))
        classes = (one for one in tree.body if isinstance(one, ast.ClassDef))
        made = next(one for one in classes if one.name == self.name)
        methods = [one for one in made.body if isinstance(one, ast.FunctionDef) and _is_public(one)]
        parts = [CLASS.format(name=self.name), *map(_as_async, methods)]
        if any(method.name == "close" for method in methods):
            parts.append(
                f"    async def __aenter__(self) -> Async{self.name}: ...\n\n"
                "    async def __aexit__(self, *ended: object) -> None: ...\n"
            )
        body = "\n".join(parts)
        return HEAD.format(name=self.name, imports=imports(body, self.source)) + body


FACES = (
    Face("Memory", "memory/memory.py", "memory/async_memory.py"),
    Face("Fitter", "context/fitter.py", "context/async_fitter.py"),
    Face("Toolset", "toolbox/toolset.py", "toolbox/async_toolset.py"),
)


BLOCKING = PACKAGE / "agent/blocking_types.py"
BLOCKED = (("Session", "session/session.py"), ("Agent", "agent/agent.py"))
BLOCKING_HEAD = '''"""The types of what `blocking` gives, made by `python -m scripts.faces --write`.

Every method is the one of the same name, waited for; nothing here runs.
"""

from __future__ import annotations

{imports}

'''
Method = ast.FunctionDef | ast.AsyncFunctionDef


def blocking_faces() -> str:
    """The text of the file for `blocking`."""
    parts: list[str] = []
    for name, source in BLOCKED:
        parts.append(f'\nclass Blocking{name}(Protocol):\n    """`{name}` without a loop."""\n')
        tree = ast.parse((PACKAGE / source).read_text(encoding="utf-8"))
        (made,) = (o for o in tree.body if isinstance(o, ast.ClassDef) and o.name == name)
        methods = (one for one in made.body if isinstance(one, Method) and _is_public(one))
        parts += map(_as_blocking, methods)
    body = "\n".join(parts)
    return BLOCKING_HEAD.format(imports=imports(body, *(source for _, source in BLOCKED))) + body


# What a face names, imported as its sources do

OURS = {"Protocol": "typing", "Generator": "collections.abc"}
LONGEST = 100


def imports(body: str, *sources: str) -> str:
    """The imports for a face's text, each name from where its source has it."""
    known: dict[str, str] = dict(OURS)
    variables: set[str] = set()
    for source in sources:
        tree = ast.parse((PACKAGE / source).read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                known |= {one.asname or one.name: node.module or "" for one in node.names}
            elif isinstance(node, ast.Import):
                known |= {one.name: "" for one in node.names}
            elif isinstance(node, ast.ClassDef) and node in tree.body:
                known.setdefault(node.name, _module(source))
            elif isinstance(node, ast.Assign) and "TypeVar(" in ast.unparse(node.value):
                variables |= {one.id for one in node.targets if isinstance(one, ast.Name)}
    nodes = list(ast.walk(ast.parse(body)))
    made_here = {node.name for node in nodes if isinstance(node, ast.ClassDef)}
    used = {node.id for node in nodes if isinstance(node, ast.Name)} - made_here
    wanted = used & known.keys() | ({"TypeVar"} if used & variables else set())
    modules: dict[str, list[str]] = {}
    for name in sorted(wanted):
        modules.setdefault(known[name], []).append(name)
    plain = "".join(f"import {name}\n" for name in modules.pop("", ()))
    rows = {module: _line(module, names) for module, names in sorted(modules.items())}
    house = "".join(row for module, row in rows.items() if module.startswith("reverie"))
    others = "".join(row for module, row in rows.items() if not module.startswith("reverie"))
    made = "".join(f'{name} = TypeVar("{name}")\n' for name in sorted(used & variables))
    return "\n".join(filter(None, (plain + others, house, made))).rstrip("\n")


def _module(source: str) -> str:
    return f"reverie.{source.removesuffix('.py').replace('/', '.')}"


def _line(module: str, names: list[str]) -> str:
    line = f"from {module} import {', '.join(names)}\n"
    if len(line) <= LONGEST:
        return line
    rows = "".join(f"    {name},\n" for name in names)
    return f"from {module} import (\n{rows})\n"


def _as_blocking(method: Method) -> str:
    returned = ast.unparse(method.returns) if method.returns else "None"
    for old, new in (("AsyncGenerator[", "Generator["), ("Session", "BlockingSession")):
        returned = returned.replace(old, new)
    return _written(
        "    @property\n    def" if method.decorator_list else "    def", method, returned
    )


def _is_public(method: Method) -> bool:
    by_class = any(isinstance(d, ast.Name) and d.id == "classmethod" for d in method.decorator_list)
    return not method.name.startswith("_") and method.name != "aio" and not by_class


def _as_async(method: ast.FunctionDef) -> str:
    returned = ast.unparse(method.returns) if method.returns else "None"
    kind = "    @property\n    def" if method.decorator_list else "    async def"
    return _written(kind, method, returned)


def _written(kind: str, method: Method, returned: str) -> str:
    given = ast.unparse(method.args)
    lines = (ast.get_docstring(method) or "").splitlines()
    doc = "\n".join(f"        {line}" if line else "" for line in lines).strip()
    noqa = "  # noqa: A002" if "type: str" in given else ""
    line = f"{kind} {method.name}({given}) -> {returned}:"
    if len(line) > 92:
        rows = ",\n        ".join(_split(given))
        line = f"{kind} {method.name}(\n        {rows},\n    ) -> {returned}:"
        line = line.replace("type: str='',", "type: str='',  # noqa: A002")
        noqa = ""
    text = f'{line}{noqa}\n        """{doc}"""\n        ...\n'
    text = re.sub(r"='([^']*)'", r' = "\1"', text)
    return text.replace("=None", " = None").replace("=False", " = False").replace("int=", "int = ")


def _split(given: str) -> list[str]:
    """Arguments one by one; a comma inside brackets parts none."""
    parts, depth, start = list[str](), 0, 0
    for at, sign in enumerate(given):
        depth += (sign == "[") - (sign == "]")
        if sign == "," and not depth:
            parts.append(given[start:at])
            start = at + 2
    return [*parts, given[start:]]


def faces() -> list[tuple[Path, str]]:
    """Return every file of types with the text that its classes give."""
    return [*((face.path, face.text()) for face in FACES), (BLOCKING, blocking_faces())]


# The rooms


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


# What is asked for


def write_faces() -> None:
    for path, text in faces():
        path.write_text(text, encoding="utf-8")


def face_problems() -> Iterator[str]:
    """Yield a line for each file of types that is not what its class says."""
    for path, text in faces():
        if path.read_text(encoding="utf-8") != text:
            yield f"{path.relative_to(ROOT)}: run `python -m scripts.generate faces`"


def write_rooms() -> None:
    for path in rooms():
        path.with_suffix(".pyi").write_text(stub(path), encoding="utf-8")
    stubs = [str(path.with_suffix(".pyi")) for path in rooms()]
    ruff = str(Path(sys.executable).with_name("ruff"))
    subprocess.run([ruff, "check", "-q", "--select", "I", "--fix", *stubs], check=True)
    subprocess.run([ruff, "format", "-q", *stubs], check=True)


def room_problems() -> Iterator[str]:
    """Yield a line for each room whose stub says something else."""
    for path in rooms():
        kept, room = path.with_suffix(".pyi"), ".".join(path.parent.relative_to(SOURCE).parts)
        if not kept.is_file() or imported(kept, room) != offered(path):
            yield f"{kept.relative_to(ROOT)}: not the names of {path.name}"
        elif {one.name for one in defined(kept)} != {one.name for one in defined(path)}:
            yield f"{kept.relative_to(ROOT)}: not the functions of {path.name}"


WRITERS: dict[str, Callable[[], None]] = {
    "faces": write_faces,
    "rooms": write_rooms,
    "reference": lambda: _reference().write(),
}
CHECKS: dict[str, Callable[[], Iterator[str]]] = {
    "faces": face_problems,
    "rooms": room_problems,
    "reference": lambda: _reference().problems(),
    "pages": lambda: pages.problems(ROOT),
    "examples": pages.example_problems,
}
QUICK = tuple(CHECKS)[:-1]


def _reference() -> Any:
    """Return the module that loads the whole package, where it is asked for."""
    return importlib.import_module("scripts.reference")


def main(asked: list[str]) -> int:
    names = [one for one in asked if one != "--check"]
    if names[:1] == ["site"]:
        return pages.build_site(*map(Path, names[1:]))
    if names[:1] == ["pictures"]:
        return importlib.import_module("scripts.pictures").main(names[1:])
    if {*names} - {*CHECKS}:
        print(__doc__)
        return 2
    if "--check" not in asked:
        for name in names or WRITERS:
            WRITERS.get(name, list)()
    names = names or list(QUICK)
    found = [line for name in names for line in CHECKS[name]()]
    print("\n".join(found) or f"{', '.join(names)}: nothing found")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
