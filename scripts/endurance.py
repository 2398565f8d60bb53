"""Runs some tests for hours, slice after slice, each larger or with another seed.

A part is a list of test files and what they are run for. A slice is one run of them at proof
scale: its seed is the one given plus its number, and the random examples double from slice to
slice up to a bound. A finished slice is noted at once, so that a run that was stopped goes on with
the slice it was in; and it goes to bench/results/endurance.json, into one row for each thing that
its tests say they have tried. `python -m bench report` shows the rows in bench/RESULTS.md.

What a row counts is different work that held. What tests draw from a seed is summed up over the
seeds, and a seed that is run again replaces its slice. What is the same with every seed counts
once. A test that fails counts nothing from where it failed: `bad` is how many failed in the newest
slice of each seed, `mended` how many had failed in a slice whose seed is clean now.

A slice that fails is noted too and ends the run; it is run again next time. Nothing else is
written.

    python -m scripts.endurance --part kills|cancels|power|faults|courses|journals|simulation|
                                       fuzz|stops|properties|all
                                --seed N [--hours H] [--slices N] [--jobs N]
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.tally import total

ROOT = Path(__file__).resolve().parent.parent
STATE = "bench/out/endurance.json"
RESULTS = "bench/results/endurance.json"
FIRST_EXAMPLES = 1_000
MAX_EXAMPLES = 64_000
FAILED = ("fail", "erro")


@dataclass(frozen=True, slots=True)
class Part:
    """The files whose text a pattern is found in, and what they are run for here: one that is in
    two parts counts each thing in one of them. `narrow` runs only those of their tests that the
    pattern is found in: they stand among others that have nothing to do with it."""

    files: re.Pattern[str]
    tries: tuple[str, ...]
    narrow: bool = False


def _part(pattern: str, *tries: str, narrow: bool = False) -> Part:
    return Part(re.compile(pattern, re.MULTILINE), tries, narrow)


PARTS = {
    "kills": _part(r"\bevery_kill\(|\bkilled_anywhere\(|\brun_with_kill\(", "kills", narrow=True),
    "cancels": _part(r"\bcancelled_at\(", "native cancels"),
    "power": _part(r'\bcounted\("power-cut states"', "power-cut states"),
    "faults": _part(
        r'\bevery_error\(|\bfailed_anywhere\(|\bcounted\("fault points"',
        "fault points",
        narrow=True,
    ),
    "courses": _part(r"^from tests\.breaking import", "kills", "fault points", "power-cut states"),
    "journals": _part(r'\bcounted\("journal mutations"', "journal mutations"),
    "simulation": _part(r"^from tests\.simulation\.running import", "simulation seeds"),
    "fuzz": _part(r"^from tests\.fuzz\.fuzzing import", "fuzz executions"),
    "stops": _part(r"\bSIGSTOP\b|\bmail_course\b", "kills", "stops"),
    "properties": _part(r"^from hypothesis", "tests"),
}
TALLY = "bench/out/tally"


@dataclass(frozen=True, slots=True)
class Slice:
    """One run of a part: its number, from 0, and the seed the part was given."""

    part: str
    seed: int
    number: int

    @property
    def examples(self) -> int:
        return min(FIRST_EXAMPLES << min(self.number, 16), MAX_EXAMPLES)

    @property
    def environ(self) -> dict[str, str]:
        return {
            "REVERIE_SCALE": "proof",
            "REVERIE_INTEGRATION": "1",
            "REVERIE_SEED": str(self.seed + self.number),
            "REVERIE_EXAMPLES": str(self.examples),
        }


def test_files(root: Path, part: str) -> list[str]:
    """The test files whose text says that they belong to a part."""
    found = sorted((root / "tests").rglob("test_*.py"))
    return [
        path.relative_to(root).as_posix()
        for path in found
        if PARTS[part].files.search(path.read_text(encoding="utf-8"))
    ]


def test_names(root: Path, part: str) -> list[str]:
    """What is run for a part: its files, or the tests in them that its pattern is found in."""
    files = test_files(root, part)
    return [name for one in files for name in _narrowed(root, part, one)]


def _narrowed(root: Path, part: str, file: str) -> list[str]:
    text = (root / file).read_text(encoding="utf-8")
    named = [
        f"{file}::{found.name}"
        for found in ast.parse(text).body
        if isinstance(found, ast.FunctionDef | ast.AsyncFunctionDef)
        and found.name.startswith("test_")
        and PARTS[part].files.search(ast.get_source_segment(text, found) or "")
    ]
    return named if named and PARTS[part].narrow else [file]


def finished(state: Path) -> dict[str, int]:
    """How many slices of each part and seed are done."""
    return json.loads(state.read_text(encoding="utf-8")) if state.is_file() else {}


def note_finished(state: Path, done: Mapping[str, int]) -> None:
    state.parent.mkdir(parents=True, exist_ok=True)
    new = state.with_suffix(".new")
    new.write_text(json.dumps(done), encoding="utf-8")
    new.replace(state)


def run_slice(root: Path, one: Slice, jobs: int) -> tuple[int, str]:
    """Runs one slice; its exit code, and pytest's last word on it."""
    tally = root / TALLY
    tally.parent.mkdir(parents=True, exist_ok=True)
    tally.write_text("", encoding="utf-8")
    options = ["-q", "-n", str(jobs), "--dist", "loadfile", "--timeout", "0", "--tb=short"]
    seeded = f"--hypothesis-seed={one.seed + one.number}"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, seeded, *test_names(root, one.part)],
        cwd=root,
        env={**os.environ, **one.environ, "REVERIE_TALLY": str(tally)},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        print(done.stdout)
    return done.returncode, last_word(done.stdout)


def last_word(output: str) -> str:
    """`12 passed, 1 failed` from pytest's own last line."""
    ends = [line for line in output.splitlines() if re.search(r"\d+ \w+.* in [\d.]+s\b", line)]
    counts = re.findall(r"\d+ (?:passed|failed|errors?|skipped|xfailed)\b", "".join(ends[-1:]))
    return ", ".join(counts) or "no test ran"


def add_rows(root: Path, one: Slice, seconds: float, word: str, bad: int) -> list[dict[str, Any]]:
    """Put a slice into the rows of its part, in place of an earlier one of its seed."""
    results = root / RESULTS
    known = json.loads(results.read_text(encoding="utf-8"))["rows"] if results.is_file() else []
    rows = {row["key"]: row for row in known}
    tried = total(root / TALLY)
    tried.drawn["tests"] += sum(int(n) for n in re.findall(r"(\d+) passed", word))
    now = {
        "seed": one.seed + one.number,
        "seconds": round(seconds),
        "bad": bad,
        "commit": commit(root),
        "day": datetime.now(UTC).date().isoformat(),
    }
    new = [
        {**now, "drawn": tried.drawn[what], "same": tried.same[what]}
        for what in PARTS[one.part].tries
    ]
    for what, this in zip(PARTS[one.part].tries, new, strict=True):
        key = f"endurance.{one.part}.{what.replace(' ', '-')}"
        slices = replaced(rows.get(key, {}).get("slices", []), this)
        rows[key] = {"key": key, "part": one.part, "what": what, **summed(one.part, slices)}
    results.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"rows": list(rows.values())}, indent=1, ensure_ascii=False)
    results.write_text(f"{text}\n", encoding="utf-8")
    return new


def replaced(slices: list[dict[str, Any]], new: dict[str, Any]) -> list[dict[str, Any]]:
    """The slices of a row with a new one, which remembers what failed before it with its seed."""
    before = [old for old in slices if old["seed"] == new["seed"]]
    failed = sum(old["mended"] + (0 if new["bad"] else old["bad"]) for old in before)
    return [old for old in slices if old not in before] + [{**new, "mended": failed}]


def summed(part: str, slices: list[dict[str, Any]]) -> dict[str, Any]:
    """What the slices of a row come to. The rate is that of trying, whatever it was."""
    drawn, same = sum(one["drawn"] for one in slices), [one["same"] for one in slices]
    seconds = sum(one["seconds"] for one in slices)
    seeds = [one["seed"] for one in slices]
    return {
        "count": drawn + max(same),
        "same": max(same),
        "bad": sum(one["bad"] for one in slices),
        "mended": sum(one["mended"] for one in slices),
        "seconds": seconds,
        "rate": round(60 * (drawn + sum(same)) / max(seconds, 1)),
        "seed": ", ".join(map(str, sorted(seeds))),
        "command": f"python -m scripts.endurance --part {part} --seed {min(seeds)}",
        "commit": ", ".join(dict.fromkeys(one["commit"] for one in slices)),
        "day": max(one["day"] for one in slices),
        "slices": slices,
    }


def failures(word: str) -> int:
    """How many tests failed, by pytest's last word."""
    return sum(int(n) for n, what in re.findall(r"(\d+) (\w+)", word) if what[:4] in FAILED)


def commit(root: Path) -> str:
    """Which state of the tree this is; "" outside of a repository."""
    asked = ["git", "-C", str(root), "rev-parse", "--short", "HEAD"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def run(
    root: Path, part: str, seed: int, *, hours: float, slices: int | None = None, jobs: int = 2
) -> int:
    """Runs slice after slice; 0, or the exit code of the one that failed."""
    began, name, ran = time.monotonic(), f"{part}:{seed}", 0
    done = finished(root / STATE)
    while ran != slices and time.monotonic() - began < hours * 3600:
        one = Slice(part, seed, done.get(name, 0))
        start = time.monotonic()
        code, outcome = run_slice(root, one, jobs)
        bad = failures(outcome) or int(code != 0)
        took = time.monotonic() - start
        new = add_rows(root, one, took, outcome, bad)
        told = "; ".join(
            f"{this['drawn']:,} and {this['same']:,} {what} in {took:.0f} s"
            for what, this in zip(PARTS[part].tries, new, strict=True)
        )
        print(f"{part} {seed}+{one.number}: {told}: {outcome}", flush=True)
        if code:
            return code
        done[name] = one.number + 1
        note_finished(root / STATE, done)
        ran += 1
    return 0


def main() -> None:
    parser = argparse.ArgumentParser(description="Run a part of the tests for hours.")
    parser.add_argument("--part", choices=[*sorted(PARTS), "all"], required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--hours", type=float, default=8.0, help="of a part")
    parser.add_argument("--slices", type=int, help="how many at most")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    parts = list(PARTS) if given.part == "all" else [given.part]
    codes = [
        run(ROOT, one, given.seed, hours=given.hours, slices=given.slices, jobs=given.jobs)
        for one in parts
    ]
    sys.exit(max(codes))


if __name__ == "__main__":
    main()
