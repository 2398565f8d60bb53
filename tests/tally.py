"""How much a run tried: kills, failures, cancellations, disk states, changed journals.

`make endurance` names a file by REVERIE_TALLY; each thing that was tried adds a line there, and the
lines are summed up in its row. Without it nothing is written.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path


def counted(what: str, number: int = 1) -> None:
    """Say that so many of something were tried, and held."""
    path = os.environ.get("REVERIE_TALLY")
    if path and number:
        with open(path, "a", encoding="utf-8") as file:
            file.write(f"{number} {what}\n")


def total(path: Path) -> Counter[str]:
    """What was counted, by what it is."""
    found: Counter[str] = Counter()
    if path.is_file():
        for line in path.read_text(encoding="utf-8").splitlines():
            number, _, what = line.partition(" ")
            found[what] += int(number)
    return found
