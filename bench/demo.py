"""One session from end to end, as `reverie demo --json` tells it: scripted, billed by the simulated
prompt cache, without a key or a network."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from bench.figures import Figure, at_least


def measure(out: Path) -> Iterator[Figure]:
    del out
    line = [sys.executable, "-m", "reverie.apps.cli", "demo", "--json"]
    found = json.loads(subprocess.run(line, capture_output=True, check=True).stdout)
    layers, checks = found["layers"], found["checks"]
    yield Figure(
        "demo.checks",
        "demo: checks that hold",
        sum(checks.values()),
        len(checks),
        "all",
        "higher",
        n=len(checks),
    )
    yield Figure(
        "demo.cost",
        "demo: cost with stored results and microcompaction, as a share of sending all",
        found["cost"] / found["naive_cost"],
        1.0,
        "sending everything",
        "lower",
        "share",
        n=found["rounds"],
    )
    notes = layers["compaction"]["by_notes"]
    yield Figure(
        "demo.notes.tokens",
        "demo: tokens left when the notes take the place of old messages, no call made",
        notes["tokens_after"],
        notes["tokens_before"],
        "before it",
        "lower",
    )
    hits = {
        "notes": ("notes on the session", layers["session_memory"]["hit_rate"], 0.9),
        "extraction": ("memory extraction", layers["extraction"]["hit_rate"], 0.9),
        "fork": ("a forked agent", found["fork"]["hit_rate"], 0.99),
    }
    for key, (what, rate, bound) in hits.items():
        told = f"demo: prompt of {what} that is read from the session's cache"
        yield at_least(f"demo.{key}.cached", told, rate, bound, "share")
