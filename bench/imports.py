"""What each public name costs to import: CPU against bare Python, compiled files, the least of
seven."""

from __future__ import annotations

import compileall
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.__main__ import Row
from bench.core import importing

ROOT = Path(__file__).resolve().parent.parent
NAMES = {"Memory": 10.0, "fit": 8.0, "Session": 12.0}
"""What a name may cost, in bare Pythons."""
VERSION = (
    "import os, sys; sys.stdout = open(os.devnull, 'w'); sys.argv[1:] = ['--version'];"
    "from reverie.apps.cli import main; main()"
)
VERSION_MOST = 8.0
ADDED = "m = Memory('shop', home={home!r}); m.add('The shop sells zebras'); m.search('zebra')"
FITTED = "fit([{'role': 'user', 'content': 'x'}], model='gpt-5')"


def measure(out: Path) -> Iterator[Row]:
    del out
    compileall.compile_dir(str(ROOT / "src"), quiet=2)
    bare = importing("pass", 7)
    for name, most in NAMES.items():
        yield row(f"`from reverie import {name}`", f"from reverie import {name}", bare, most)
    yield row("`reverie --version`", VERSION, bare, VERSION_MOST)
    yield row("a list fitted, in a fresh process", f"from reverie import fit; {FITTED}", bare, 8.0)
    with tempfile.TemporaryDirectory() as home:
        code = f"from reverie import Memory; {ADDED.format(home=home)}"
        yield row("a text added and found, in a fresh process", code, bare, None)


def row(what: str, code: str, bare: float, most: float | None) -> Row:
    ratio = importing(code, 7) / bare
    limit = "" if most is None else f"{most:g} x"
    return f"CPU of {what}", f"{ratio:.1f} x", limit, None if most is None else ratio <= most
