"""Runs some tests for hours, slice after slice, each larger or with another seed.

A part is a list of test files. A slice is one run of them at proof scale: its seed is the
one given plus its number, and the random examples double from slice to slice up to a bound.
A finished slice is noted at once, so that a run that was stopped goes on with the slice it
was in; and it adds to the rows of bench/results/endurance.json, one for each thing that its tests
say they have tried: how much of it, how much a minute, by which seeds, command and commit, and how
many tests failed. `python -m bench report` shows them in bench/RESULTS.md.
A slice that fails is noted too and ends the run; it is run again next time. Nothing else is
written.

    python -m scripts.endurance --part kills|cancels|power|faults|courses|journals|simulation|
                                       fuzz|stops|properties|all
                                --seed N [--hours H] [--slices N] [--jobs N]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
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
PARTS = {
    "kills": re.compile(r"\bevery_kill\(|\bkilled_anywhere\(|\brun_with_kill\("),
    "cancels": re.compile(r"\bcancelled_at\("),
    "power": re.compile(r'\bcounted\("power-cut states"'),
    "faults": re.compile(r"\bevery_error\(|\bfailed_anywhere\("),
    "courses": re.compile(r"^from tests\.breaking import", re.MULTILINE),
    "journals": re.compile(r'\bcounted\("journal mutations"'),
    "simulation": re.compile(r"^from tests\.simulation\.running import", re.MULTILINE),
    "fuzz": re.compile(r"^from tests\.fuzz\.fuzzing import", re.MULTILINE),
    "stops": re.compile(r"\bSIGSTOP\b"),
    "properties": re.compile(r"^from hypothesis", re.MULTILINE),
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
            "REVERIE_SEED": str(self.seed + self.number),
            "REVERIE_EXAMPLES": str(self.examples),
        }


def test_files(root: Path, part: str) -> list[str]:
    """The test files whose text says that they belong to a part."""
    found = sorted((root / "tests").rglob("test_*.py"))
    return [
        path.relative_to(root).as_posix()
        for path in found
        if PARTS[part].search(path.read_text(encoding="utf-8"))
    ]


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
        [sys.executable, "-m", "pytest", *options, seeded, *test_files(root, one.part)],
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
    """`12 passed, 1 failed` from what pytest printed."""
    counts = re.findall(r"\d+ (?:passed|failed|errors?|skipped|xfailed)\b", output)
    return ", ".join(dict.fromkeys(counts)) or "no test ran"


def add_rows(root: Path, one: Slice, seconds: float, bad: int) -> list[dict[str, Any]]:
    """What a slice tried, one row for each thing, summed up with the slices before it."""
    results, now = root / RESULTS, commit(root)
    known = json.loads(results.read_text(encoding="utf-8"))["rows"] if results.is_file() else []
    rows = {row["key"]: row for row in known}
    added: list[dict[str, Any]] = []
    for what, count in (total(root / TALLY) or Counter({"tests": 0})).most_common():
        key = f"endurance.{one.part}.{what.replace(' ', '-')}"
        before = rows.get(key, {"count": 0, "bad": 0, "seconds": 0, "seeds": [], "commits": []})
        done, used = before["count"] + count, before["seconds"] + round(seconds)
        commits = list(dict.fromkeys([*before["commits"], now]))
        rows[key] = {
            "key": key,
            "part": one.part,
            "what": what,
            "count": done,
            "bad": before["bad"] + bad,
            "seconds": used,
            "rate": round(60 * done / max(used, 1)),
            "seeds": (seeds := [*before["seeds"], one.seed + one.number]),
            "seed": ", ".join(map(str, dict.fromkeys(seeds))),
            "command": f"python -m scripts.endurance --part {one.part} --seed {one.seed}",
            "commits": commits,
            "commit": ", ".join(commits),
            "day": datetime.now(UTC).date().isoformat(),
        }
        added.append({"what": what, "count": count, "rate": round(60 * count / max(seconds, 1))})
    results.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"rows": list(rows.values())}, indent=1, ensure_ascii=False)
    results.write_text(f"{text}\n", encoding="utf-8")
    return added


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
        rows = add_rows(root, one, time.monotonic() - start, bad)
        told = "; ".join(
            f"{row['count']:,} {row['what']}, {row['rate']:,} a minute" for row in rows
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
