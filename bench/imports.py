"""What each public name costs to import: CPU against bare Python, compiled files, the least of
seven."""

from __future__ import annotations

import compileall
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.core import importing
from bench.figures import ROOT, Figure, at_most

NAMES = {"fit": 8.0}
"""What a name may cost, in bare Pythons."""
VERSION = (
    "import os, sys; sys.stdout = open(os.devnull, 'w'); sys.argv[1:] = ['--version'];"
    "from reverie.apps.cli import main; main()"
)
VERSION_MOST = 8.0
ADDED = "m = Memory('shop', home={home!r}); m.add('The shop sells zebras'); m.search('zebra')"
FITTED = "fit([{'role': 'user', 'content': 'x'}], model='gpt-5')"


def measure(out: Path) -> Iterator[Figure]:
    del out
    compileall.compile_dir(str(ROOT / "src"), quiet=2)
    bare = importing("pass", 7)
    for name, most in NAMES.items():
        code = f"from reverie import {name}"
        yield row(f"import.{name}", f"`{code}`", code, bare, most)
    yield row("start.version", "`reverie --version`", VERSION, bare, VERSION_MOST)
    code = f"from reverie import fit; {FITTED}"
    yield row("start.fit", "a list fitted, in a fresh process", code, bare, 8.0)
    with tempfile.TemporaryDirectory() as home:
        code = f"from reverie import Memory; {ADDED.format(home=home)}"
        yield row("start.memory", "a text added and found, in a fresh process", code, bare, 15.0)


def row(key: str, what: str, code: str, bare: float, most: float) -> Figure:
    told = f"CPU of {what}, in bare Pythons"
    return at_most(key, told, importing(code, 7) / bare, most, "x", n=7)
