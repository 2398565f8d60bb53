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
NAMES = {"Memory": 10.0}
"""What a name may cost, in bare Pythons."""
VERSION = (
    "import os, sys; sys.stdout = open(os.devnull, 'w'); sys.argv[1:] = ['--version'];"
    "from reverie.apps.cli import main; main()"
)
VERSION_MOST = 8.0
USED = "m = Memory('shop', home={home!r}); m.add('The shop sells zebras'); m.search('zebra')"


def measure(out: Path) -> Iterator[Row]:
    del out
    compileall.compile_dir(str(ROOT / "src"), quiet=2)
    bare = importing("pass", 7)
    for name, most in NAMES.items():
        ratio = importing(f"from reverie import {name}", 7) / bare
        limit = f"{most:g} x"
        yield f"CPU of `from reverie import {name}`", f"{ratio:.1f} x", limit, ratio <= most
    ratio = importing(VERSION, 7) / bare
    yield (
        "CPU of `reverie --version`",
        f"{ratio:.1f} x",
        f"{VERSION_MOST:g} x",
        ratio <= VERSION_MOST,
    )
    with tempfile.TemporaryDirectory() as home:
        code = f"from reverie import Memory; {USED.format(home=home)}"
        yield (
            "the same with one text added and found",
            f"{importing(code, 7) / bare:.1f} x",
            "",
            None,
        )
