"""The other faces of classes, written from the classes: `python -m scripts.faces [--write]`.

`Memory`, `Fitter` and `Toolset` are written once, blocking; `.aio` runs the same methods in a
worker thread. `Session` and `Agent` are written once, async; `blocking(...)` waits for them. The
types of each other face are a Protocol with the same signatures, generated here from the source
text, so that the two cannot differ. Without `--write` it says whether the files are as they should
be.
"""

from __future__ import annotations

import ast
import re
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "reverie"
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
    Face("Memory", "api/memory.py", "api/async_memory.py"),
    Face("Fitter", "api/fitting.py", "api/async_fitter.py"),
    Face("Toolset", "tools/toolset.py", "tools/async_toolset.py"),
)


BLOCKING = PACKAGE / "api/blocking_faces.py"
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


def main() -> int:
    """Write the files, or say whether they are current."""
    made = [*((face.path, face.text()) for face in FACES), (BLOCKING, blocking_faces())]
    if "--write" in sys.argv[1:]:
        for path, text in made:
            path.write_text(text, encoding="utf-8")
        return 0
    current = all(path.read_text(encoding="utf-8") == text for path, text in made)
    print("current" if current else "run: python -m scripts.faces --write")
    return 0 if current else 1


if __name__ == "__main__":
    sys.exit(main())
