"""Builds the site into docs/_build/html, and looks that it loads nothing from elsewhere.

A warning of the generator ends it. A page may link to any address; what a browser would fetch by
itself (scripts, styles, fonts, pictures, frames) must lie in the site.

    python -m scripts.site [FOLDER]
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "docs" / "_build"
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


def main(*given: str) -> int:
    folder = Path(given[0]) if given else BUILD
    code = build(ROOT, folder)
    if code:
        return code
    found = list(remote(folder / "html"))
    if found:
        print("\n".join(found), file=sys.stderr)
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
