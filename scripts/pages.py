"""Checks that the pages lead somewhere and that something leads to them.

A link or picture whose file is not there, an anchor that no heading has, a page of the site that no
table of contents reaches, and a page that the code names and that does not exist. Pages are read as
Markdown, so that what stands in code is no link.

    python -m scripts.pages
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).resolve().parent.parent
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


def main() -> int:
    found = list(problems(ROOT))
    print("\n".join(found) or f"pages: {len(pages(ROOT))}, and every link leads somewhere")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
