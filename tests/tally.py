"""How much a run tried: kills, failures, cancellations, disk states, changed journals.

`make endurance` names a file by REVERIE_TALLY; each thing that was tried adds a line there, and the
lines are summed up in its row. Without it nothing is written.

What a seed draws is other work for another seed. What is the same for every seed, because a test
goes through all of it, counts once, however many seeds there were.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path


def counted(what: str, number: int = 1, *, drawn: bool) -> None:
    """Say that so many different ones of something were tried, and held; `drawn` where another
    seed makes others."""
    path = os.environ.get("REVERIE_TALLY")
    if path and number:
        with open(path, "a", encoding="utf-8") as file:
            file.write(f"{number} {'drawn' if drawn else 'same'} {what}\n")


@dataclass(frozen=True, slots=True)
class Total:
    """What was counted, by what it is: drawn from a seed, and the same for every seed."""

    drawn: Counter[str] = field(default_factory=Counter[str])
    same: Counter[str] = field(default_factory=Counter[str])


def total(path: Path) -> Total:
    found = Total()
    if path.is_file():
        for line in path.read_text(encoding="utf-8").splitlines():
            number, kind, what = line.split(" ", 2)
            (found.drawn if kind == "drawn" else found.same)[what] += int(number)
    return found
