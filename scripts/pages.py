"""Checks the pages: their links, what the site loads, and the types of their examples.

A link or picture whose file is not there, an anchor that no heading has, a page of the site that no
table of contents reaches, and a page that the code names and that does not exist. Pages are read as
Markdown, so that what stands in code is no link.

The site is built into docs/_build/html; a warning of the generator ends it. A page may link to any
address; what a browser would fetch by itself (scripts, styles, fonts, pictures, frames) must lie in
the site.

Each Python block of a page becomes a file of its own, which pyright and mypy check in their strict
modes, as a user of either would. What they find is told with the page and the line in it.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import textwrap
import unicodedata
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "docs" / "_build"
START = "docs/index.md"
FOLDERS = ("docs", "examples", "deploy")
OTHERS = ("bench/RESULTS.md", "bench/labels/README.md")
UNBUILT = ("deploy/",)
"""Read on a code host alone."""
NAMED = re.compile(r"(?<![\w/.-])(?:docs|examples)/[\w./-]+\.md\b")
NAMERS = ("src/**/*.py", "src/**/*.md", "scripts/*.py", "Makefile", "pyproject.toml")
ELSEWHERE = re.compile(r"^(?:[a-z][a-z0-9+.-]*:|//)", re.IGNORECASE)
ENTRY = re.compile(r"^(?:.*<(?P<inner>[^>]+)>|(?P<plain>\S.*))$")


class Link(NamedTuple):
    """Where a link stands and where it leads."""

    line: int
    target: str


class Page(NamedTuple):
    """What a page holds that others depend on."""

    links: tuple[Link, ...]
    anchors: frozenset[str]
    contents: tuple[str, ...]


def pages(root: Path) -> list[str]:
    """Every page, by its path from the root."""
    found = [path for folder in FOLDERS for path in (root / folder).rglob("*.md")]
    found += [*root.glob("*.md"), *(path for one in OTHERS if (path := root / one).exists())]
    names = sorted(path.relative_to(root).as_posix() for path in found)
    return [name for name in names if "/_build/" not in name and "node_modules" not in name]


def read(text: str) -> Page:
    """The links, anchors and tables of contents of a page."""
    links: list[Link] = []
    anchors: list[str] = []
    contents: list[str] = []
    tokens = _parser().parse(text)
    for at, token in enumerate(tokens):
        line = (token.map or [0])[0] + 1
        if token.type == "inline":
            links += [Link(line, target) for target in _targets(token)]
            if tokens[at - 1].type == "heading_open":
                anchors.append(_unused(slug(_plain(token)), anchors))
        elif token.type == "fence" and token.info.strip() == "{toctree}":
            contents += _entries(token.content)
        elif token.type == "html_block":
            links += [
                Link(line, one) for one in re.findall(r'(?:src|href)="([^"]+)"', token.content)
            ]
    return Page(tuple(links), frozenset(anchors), tuple(contents))


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark").enable("table")


def _targets(token: Token) -> Iterator[str]:
    for child in token.children or ():
        target = child.attrGet("href") if child.type == "link_open" else child.attrGet("src")
        if child.type == "html_inline":
            yield from re.findall(r'(?:src|href)="([^"]+)"', child.content)
        if target:
            yield str(target)


def _plain(token: Token) -> str:
    return "".join(
        one.content for one in token.children or () if one.type in ("text", "code_inline")
    )


def slug(heading: str) -> str:
    """The anchor that a code host gives a heading; the site's is the same."""
    kept = (c for c in heading.strip().lower() if c in " -_" or unicodedata.category(c)[0] in "LNM")
    return "".join(kept).replace(" ", "-")


def _unused(wanted: str, taken: list[str]) -> str:
    number, name = 0, wanted
    while name in taken:
        number += 1
        name = f"{wanted}-{number}"
    return name


def _entries(text: str) -> Iterator[str]:
    for line in text.splitlines():
        found = ENTRY.match(line.strip())
        if found and not line.strip().startswith(":"):
            yield found["inner"] or found["plain"]


# -- what is wrong -------------------------------------------------------------------


def problems(root: Path) -> Iterator[str]:
    """One line for each thing that leads nowhere, or that nothing leads to."""
    known = {name: read((root / name).read_text(encoding="utf-8")) for name in pages(root)}
    for name, page in known.items():
        for link in page.links:
            wrong = _broken(root, name, link.target, known)
            if wrong:
                yield f"{name}:{link.line}: {wrong}: {link.target}"
    yield from _unreached(known)
    yield from _unwritten(root)


def _broken(root: Path, name: str, target: str, known: dict[str, Page]) -> str:
    if ELSEWHERE.match(target):
        return ""
    path, _, anchor = unquote(target).partition("#")
    if path.startswith("/"):
        return "a path from the root of the file system"
    place = (root / name).parent / path if path else root / name
    try:
        led = place.resolve().relative_to(root.resolve()).as_posix()
    except ValueError:
        return "a path out of the repository"
    if not (root / led).is_file():
        return (
            "a folder, which the site has no page for" if (root / led).exists() else "no such file"
        )
    if anchor and led in known and anchor not in known[led].anchors:
        return "no such heading"
    return ""


def _unreached(known: dict[str, Page]) -> Iterator[str]:
    """Pages of the site that no table of contents has, and entries that match nothing."""
    reached, waiting = set[str](), [START]
    while waiting:
        name = waiting.pop()
        if name in reached or name not in known:
            continue
        reached.add(name)
        for entry in known[name].contents:
            found = [one for one in known if _matches(entry, name, one)]
            if not found and "*" not in entry:
                yield f"{name}: its table of contents names a page that is not there: {entry}"
            waiting += found
    for name in known:
        if name not in reached and not name.startswith(UNBUILT):
            yield f"{name}: no table of contents leads to it, beginning at {START}"


def _matches(entry: str, name: str, other: str) -> bool:
    folder = Path() if entry.startswith("/") else Path(name).parent
    wanted = (folder / entry.lstrip("/")).as_posix()
    pattern = re.escape(wanted).replace(r"\*", "[^/]*")
    return re.fullmatch(pattern, other.removesuffix(".md")) is not None


def _unwritten(root: Path) -> Iterator[str]:
    """Pages that the code, the scripts or the Makefile name, and that are not there."""
    for pattern in NAMERS:
        for path in sorted(root.glob(pattern)):
            text = path.read_text(encoding="utf-8")
            for found in NAMED.finditer(text):
                if not (root / found[0]).exists():
                    line = text.count("\n", 0, found.start()) + 1
                    place = f"{path.relative_to(root).as_posix()}:{line}"
                    yield f"{place}: it names a page that is not there: {found[0]}"


# -- the site ------------------------------------------------------------------------

REMOTE = re.compile(r"^\s*(?:[a-z][a-z0-9+.-]*:)?//", re.IGNORECASE)
IN_STYLE = re.compile(
    r"""url\(\s*["']?((?:https?:)?//[^)"']+)|@import\s+["']((?:https?:)?//[^"']+)""", re.IGNORECASE
)
BY_SCRIPT = re.compile(
    r"""(?:\bfetch|\bimport|importScripts|\bWebSocket|\bEventSource|\.open)\(\s*(?:["']GET["'],\s*)?"""
    r"""["']((?:https?:|wss?:)?//[^"']+)"""
)
FETCHED = {
    ("audio", "src"), ("embed", "src"), ("form", "action"), ("iframe", "src"), ("img", "src"),
    ("img", "srcset"), ("image", "href"), ("input", "src"), ("object", "data"), ("script", "src"),
    ("source", "src"), ("source", "srcset"), ("track", "src"), ("use", "href"), ("video", "poster"),
    ("video", "src"),
}  # fmt: skip
HARMLESS_LINKS = {"author", "canonical", "help", "license", "next", "prev", "search"}


class Fetches(HTMLParser):
    """The addresses elsewhere that a browser would fetch for a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._inside = tag if tag in ("style", "script") else ""
        given = {name: value or "" for name, value in attrs}
        for name, value in given.items():
            is_fetched = (tag, name) in FETCHED or (tag == "link" and name == "href")
            if tag == "link" and set(given.get("rel", "").split()) <= HARMLESS_LINKS:
                is_fetched = False
            if is_fetched and REMOTE.match(value):
                self.found.append(value)
        self.found += in_style(given.get("style", ""))

    def handle_data(self, data: str) -> None:
        if self._inside == "style":
            self.found += in_style(data)
        elif self._inside == "script":
            self.found += BY_SCRIPT.findall(data)


def in_style(text: str) -> list[str]:
    """The addresses elsewhere that a style sheet loads."""
    return [one or other for one, other in IN_STYLE.findall(text)]


def remote(folder: Path) -> Iterator[str]:
    """One line for each thing that a browser would fetch from elsewhere."""
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".html", ".svg"):
            page = Fetches()
            page.feed(path.read_text(encoding="utf-8"))
            found = page.found
        elif path.suffix == ".css":
            found = in_style(path.read_text(encoding="utf-8"))
        elif path.suffix == ".js":
            found = BY_SCRIPT.findall(path.read_text(encoding="utf-8"))
        else:
            continue
        yield from (f"{path.relative_to(folder).as_posix()}: it loads {one}" for one in found)


def build(root: Path, folder: Path) -> int:
    """Run the generator; a warning is an error."""
    run = [sys.executable, "-m", "sphinx", "-b", "html", "-W", "--keep-going", "-q", "-j", "1"]
    given = ["-c", "docs", "-d", str(folder / "doctrees"), ".", str(folder / "html")]
    return subprocess.run([*run, *given], cwd=root, check=False).returncode


def build_site(folder: Path = BUILD) -> int:
    """Build the site; the exit status says whether it is whole and loads nothing from elsewhere."""
    code = build(ROOT, folder)
    if code:
        return code
    found = list(remote(folder / "html"))
    if found:
        print("\n".join(found), file=sys.stderr)
    return bool(found)


# -- the types of examples -----------------------------------------------------------

WITH_EXAMPLES = (
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


def write_examples(folder: Path) -> dict[str, tuple[str, int]]:
    """Each example as a file; which page and line each stands for."""
    places: dict[str, tuple[str, int]] = {}
    for page in WITH_EXAMPLES:
        for number, (line, code) in enumerate(examples(page)):
            name = f"{Path(page).stem.lower().replace('-', '_')}_{number}.py"
            mode = "# pyright: standard\n" if page in NOT_STRICT else ""
            above = PREAMBLE.lstrip() if page == INSIDE else ""
            body = textwrap.indent(code, "    ") if above else code
            (folder / name).write_text(above + body + mode, encoding="utf-8")
            places[name] = (page, line - above.count("\n"))
    return places


def pyright_errors(folder: Path) -> list[tuple[str, int, str]]:
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


def mypy_errors(folder: Path) -> list[tuple[str, int, str]]:
    """What mypy finds; our own sources are followed and not judged."""
    run = [
        *(str(BIN / "mypy"), "--strict", "--follow-imports=silent"),
        *("--no-error-summary", "--hide-error-context"),
        *("--python-executable", sys.executable, "--cache-dir", str(ROOT / ".mypy_cache")),
        *sorted(str(path) for path in folder.glob("*.py")),
    ]
    done = subprocess.run(run, capture_output=True, text=True, check=False, cwd=folder)
    if done.returncode > 1:
        raise SystemExit(done.stdout + done.stderr)
    found = re.findall(r"^(?:.*/)?(\w+\.py):(\d+): error: (.*)$", done.stdout, re.MULTILINE)
    return [(name, int(line), f"mypy: {words}") for name, line, words in found]


def example_problems() -> Iterator[str]:
    """One line for each thing found."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        places = write_examples(folder)
        found = [*pyright_errors(folder), *mypy_errors(folder)]
    for name, line, words in sorted(found):
        if name in places:
            yield f"{places[name][0]}:{places[name][1] + line}: {words}"
