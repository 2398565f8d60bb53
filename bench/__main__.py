"""Runs every measurement in this folder and writes what it finds to bench/out.

A measurement is a module here with

    def measure(out: Path) -> Iterable[Row]

where a row is `(what, measured, limit, met)`: three texts and True, False, or None where
there is no limit. It may leave plots and data of its own in `out`. Times belong here and
nowhere else; what is promised is a ratio or a count.

    python -m bench [NAME ...]
    python -m bench live --model NAME --budget TOKENS     with a real model; see bench/live.py
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
from collections.abc import Iterable
from pathlib import Path

Row = tuple[str, str, str, bool | None]

HERE = Path(__file__).resolve().parent
OUT = HERE / "out"
ROOT_SHARED = Path(os.environ.get("REVERIE_SHARED") or HERE.parent.parent / "shared")
SIGNS = {True: "yes", False: "NO", None: ""}


def names() -> list[str]:
    """The measurements there are, by file name."""
    found = (module.name for module in pkgutil.iter_modules([str(HERE)]))
    return sorted(name for name in found if not name.startswith("_"))


def table(title: str, rows: Iterable[Row]) -> str:
    """A Markdown table of one measurement."""
    lines = [f"## {title}", "", "| what | measured | limit | met |", "|---|---|---|---|"]
    lines += [f"| {what} | {got} | {limit} | {SIGNS[met]} |" for what, got, limit, met in rows]
    return "\n".join(lines) + "\n"


def main(asked: list[str]) -> int:
    known = names()
    if asked[:1] == ["live"] and asked[1:]:  # the one that takes options: it may ask a provider
        return int(importlib.import_module("bench.live").main(asked[1:]))
    if unknown := sorted(set(asked) - set(known)):
        print(f"no such measurement: {', '.join(unknown)}; there are: {', '.join(known)}")
        return 2
    OUT.mkdir(exist_ok=True)
    pages: list[str] = []
    missed: list[str] = []
    for name in asked or known:
        module = importlib.import_module(f"bench.{name}")
        if not hasattr(module, "measure"):
            continue
        rows = list(module.measure(OUT))
        missed += [f"{name}: {what}" for what, _, _, met in rows if met is False]
        page = table(name.replace("_", " "), rows)
        (OUT / f"{name}.md").write_text(page, encoding="utf-8")
        print(page, flush=True)
        pages.append(page)
    (OUT / "index.md").write_text("\n".join(["# Measurements", "", *pages]), encoding="utf-8")
    print("\n".join(f"limit missed: {one}" for one in missed) or f"{len(pages)} measured")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
