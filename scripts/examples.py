"""Checks the types of every example of the docs, as a user of pyright and of mypy would see them.

Each Python block of the pages becomes a file of its own; both checkers run over all of them, in
their strict modes. What they find is told with the page and the line in it.

    python -m scripts.examples
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = (
    "README.md",
    *(
        f"docs/{name}.md"
        for name in (
            "adapters", "agent", "fitting", "library", "loop", "mcp", "memory", "secrets",
            "telemetry", "transcripts", "wrap",
        )
    ),
    *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs/how-to").glob("*.md")),
)  # fmt: skip
INSIDE = "docs/loop.md"
"""A page whose examples stand inside an `async def`, with names of the reader's own."""
NOT_STRICT = (INSIDE, "docs/adapters.md", "docs/how-to/own-loop-openai.md")
"""Pages whose subjects are not strict themselves: LangChain and OpenAI have unknown types."""
PREAMBLE = """
from typing import Any
TOOLS: list[Any] = []
async def run(name: str, arguments: dict[str, Any]) -> str:
    return name
async def send(request: Any) -> object:
    return {}
async def example() -> None:
"""
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BIN = Path(sys.executable).parent


def examples(page: str) -> list[tuple[int, str]]:
    """The blocks of a page, each with the line it begins in."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return [(text.count("\n", 0, m.start(1)), m[1]) for m in BLOCK.finditer(text)]


def write(folder: Path) -> dict[str, tuple[str, int]]:
    """Each example as a file; which page and line each stands for."""
    places: dict[str, tuple[str, int]] = {}
    for page in PAGES:
        for number, (line, code) in enumerate(examples(page)):
            name = f"{Path(page).stem.lower().replace('-', '_')}_{number}.py"
            mode = "# pyright: standard\n" if page in NOT_STRICT else ""
            above = PREAMBLE.lstrip() if page == INSIDE else ""
            body = textwrap.indent(code, "    ") if above else code
            (folder / name).write_text(above + body + mode, encoding="utf-8")
            places[name] = (page, line - above.count("\n"))
    return places


def by_pyright(folder: Path) -> list[tuple[str, int, str]]:
    """What pyright finds: file, line, words."""
    config = {
        "include": ["."],
        "typeCheckingMode": "strict",
        "pythonVersion": "3.11",
        "venvPath": str(BIN.parent.parent),
        "venv": BIN.parent.name,
        "reportUnusedCoroutine": True,
        "reportMissingTypeStubs": False,
    }
    (folder / "pyrightconfig.json").write_text(json.dumps(config))
    run = [str(BIN / "basedpyright"), "--outputjson", "-p", str(folder)]
    told = subprocess.run(run, capture_output=True, text=True, check=False).stdout
    return [
        (Path(one["file"]).name, one["range"]["start"]["line"] + 1, f"pyright: {one['message']}")
        for one in json.loads(told)["generalDiagnostics"]
        if one["severity"] == "error"
    ]


def by_mypy(folder: Path) -> list[tuple[str, int, str]]:
    """What mypy finds; our own sources are followed and not judged."""
    run = [
        str(BIN / "mypy"),
        "--strict",
        "--follow-imports=silent",
        "--no-error-summary",
        "--hide-error-context",
        "--python-executable",
        sys.executable,
        "--cache-dir",
        str(ROOT / ".mypy_cache"),
        *sorted(str(path) for path in folder.glob("*.py")),
    ]
    done = subprocess.run(run, capture_output=True, text=True, check=False, cwd=folder)
    if done.returncode > 1:
        raise SystemExit(done.stdout + done.stderr)
    found = re.findall(r"^(?:.*/)?(\w+\.py):(\d+): error: (.*)$", done.stdout, re.MULTILINE)
    return [(name, int(line), f"mypy: {words}") for name, line, words in found]


def problems() -> list[str]:
    """One line for each thing found."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        places = write(folder)
        found = [*by_pyright(folder), *by_mypy(folder)]
    return [
        f"{places[name][0]}:{places[name][1] + line}: {words}"
        for name, line, words in sorted(found)
        if name in places
    ]


def main() -> int:
    found = problems()
    print("\n".join(found) or f"examples of {len(PAGES)} pages: nothing found")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
