"""One command that measures everything, and one report.

    python -m bench run [--quick] [--again] [PART ...]    measure; what is there is not run again
    python -m bench report                                write bench/RESULTS.md from the results
    python -m bench keys                                  every number a text may cite
    python -m bench live --model NAME --budget TOKENS     with a real model; see bench/live.py

A part runs in a process of its own and leaves bench/results/PART.json: its figures, the command,
the commit and the seconds. One that fails or takes too long leaves what was measured before, with
the commit of that, and says so. A run that was stopped goes on where it was: a part that was
measured on this very code is left out unless `--again` is given. `--quick` takes five minutes,
measures less, and writes to bench/out alone. Times are read here and nowhere else; what is
promised is a ratio or a count.

A measurement is a function `measure(out: Path) -> Iterable[Figure | Row]` of a module here, or
another of that form that `PARTS` names.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.figures import (
    BY_NAME,
    HERE,
    OUT,
    PARTS,
    RESULTS,
    ROOT,
    Figure,
    Part,
    code,
    known,
    written,
)

MINILM = ROOT / ".venv" / "minilm"  # where `make bench` puts the model of meaning
TOLD = 400  # characters of an error that are kept


def main(asked: list[str]) -> int:
    if asked[:1] == ["live"]:  # the one that takes options: it may ask a provider
        return int(importlib.import_module("bench.live").main(asked[1:]))
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure, and report.")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="measure some parts, or all")
    run.add_argument("parts", nargs="*", metavar="PART", help=", ".join(BY_NAME))
    run.add_argument("--quick", action="store_true", help="five minutes; written to bench/out")
    run.add_argument("--again", action="store_true", help="also what was measured on this code")
    run.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    commands.add_parser("report", help="write bench/RESULTS.md").add_argument(
        "--quick", action="store_true", help="the quick run's, in bench/out"
    )
    commands.add_parser("keys", help="every number a text may cite")
    given = parser.parse_args(asked)
    if given.command == "keys":
        print("\n".join(f"{key} {value:.6g}" for key, value in known().items()))
        return 0
    if given.command == "report":
        from bench.report import write

        return write(OUT / "results" if given.quick else RESULTS, OUT if given.quick else HERE)
    if unknown := sorted(set(given.parts) - set(BY_NAME)):
        parser.error(f"no such part: {', '.join(unknown)}; there are: {', '.join(BY_NAME)}")
    if given.here:
        return measured(BY_NAME[given.parts[0]])
    chosen = [BY_NAME[name] for name in given.parts] or [
        one for one in PARTS if one.quick or not given.quick
    ]
    return run_all(chosen, quick=given.quick, again=given.again)


def run_all(chosen: Sequence[Part], *, quick: bool, again: bool) -> int:
    folder = OUT / "results" if quick else RESULTS
    folder.mkdir(parents=True, exist_ok=True)
    failed = 0
    for number, part in enumerate(chosen, 1):
        place = f"[{number}/{len(chosen)}] {part.name}"
        before = written(part.name, folder)
        if before and not again and before.get("code") == code() and "failed" not in before:
            print(f"{place}: measured on this code already", flush=True)
            continue
        print(f"{place} …", end=" ", flush=True)
        found = run_one(part, quick=quick, before=before)
        text = json.dumps(found, indent=1, ensure_ascii=False) + "\n"
        (folder / f"{part.name}.json").write_text(text, encoding="utf-8")
        failed += "failed" in found
        print(told(found), flush=True)
    from bench.report import write

    return write(folder, OUT if quick else HERE) or (1 if failed else 0)


def run_one(part: Part, *, quick: bool, before: dict[str, Any] | None) -> dict[str, Any]:
    """A part's figures from a process of its own; where it fails, those it had before."""
    environ = dict(os.environ) | ({"REVERIE_BENCH_QUICK": "1"} if quick else {})
    if part.meaning:
        environ["PYTHONPATH"] = str(MINILM)
    line = [sys.executable, "-m", "bench", "run", "--here", part.name]
    began = time.monotonic()
    try:
        done = subprocess.run(
            line,
            cwd=ROOT,
            env=environ,
            capture_output=True,
            text=True,
            timeout=60 * part.minutes,
            check=False,
        )
        error = "" if not done.returncode else (done.stderr or done.stdout)[-TOLD:]
    except subprocess.TimeoutExpired:
        done, error = None, f"stopped after {part.minutes:g} minutes"
    seconds = round(time.monotonic() - began, 1)
    tried = {"commit": commit(), "seconds": seconds}
    if done is None or error:
        return (before or {"part": part.name}) | {"failed": plain(error), "tried": tried}
    found = json.loads(done.stdout.splitlines()[-1])
    about = {"part": part.name, "command": f"python -m bench run {part.name}", "code": code()}
    return about | tried | found


def measured(part: Part) -> int:
    """Measure in this process, and print the outcome as one line of JSON at the end."""
    rows: list[dict[str, Any]] = []
    details: list[Any] = []
    OUT.mkdir(exist_ok=True)
    for name in part.measures:
        module, _, function = name.partition(":")
        measure = getattr(importlib.import_module(f"bench.{module}"), function or "measure")
        for one in measure(OUT):
            if isinstance(one, Figure):
                rows.append(one.value())
                print(f"{one.key}: {one.ours:.6g} against {one.against} ({one.peer})", flush=True)
            else:
                details.append(list(one))
                print(" | ".join(map(str, one)), flush=True)
    print(json.dumps({"rows": rows, "details": details}, ensure_ascii=False))
    return 0


def told(found: dict[str, Any]) -> str:
    if "failed" in found:
        return f"failed: {found['failed'].splitlines()[-1] if found['failed'] else ''}"
    rows = found["rows"]
    leads = sum(row.get("leads") is True for row in rows)
    return f"{found['seconds']:.0f} s, leads in {leads} of {len(rows)}"


def plain(error: str) -> str:
    """An error without the machine's own paths."""
    return error.replace(str(ROOT), ".").replace(str(Path.home()), "~").strip()


def commit() -> str:
    """The commit that is measured; with a + where its sources were changed since."""
    changed = _git("status", "--porcelain", "--", "src")
    return _git("rev-parse", "--short=10", "HEAD") + ("+" if changed else "")


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
