"""What a check found: faults with their evidence, what would mend each, and one score.

The score is 100 for a folder without a fault. Each fault takes points by its kind (`POINTS`), and
the sum is set against the number of memories, so that one fault in ten memories weighs what ten
weigh in a hundred: `100 - 100 * points / (points + memories)`, rounded down. It is 0 only for a
folder of nothing but faults, and never depends on a clock or on the order of files.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Literal, TypeAlias

from reverie.memory.facts import DropReason

FindingKind: TypeAlias = Literal[
    "junk",
    "duplicate",
    "contradiction",
    "stale_date",
    "stale_reference",
    "secret",
    "instruction_like",
    "index",
    "link",
]
POINTS: dict[FindingKind, float] = {
    "secret": 5.0,
    "instruction_like": 3.0,
    "contradiction": 2.0,
    "duplicate": 1.0,
    "junk": 1.0,
    "stale_date": 1.0,
    "stale_reference": 0.5,
    "index": 0.5,
    "link": 0.25,
}


@dataclass(frozen=True, slots=True)
class Fix:
    """What would mend a fault: other words for a stretch of the file, or a file to merge into."""

    why: DropReason
    target: str = ""
    start: int = -1
    end: int = -1
    new: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault: where it is, what shows it, the other file where two are at odds."""

    kind: FindingKind
    file: str
    line: int
    evidence: str
    with_file: str = ""
    fix: Fix | None = None
    rule: str = ""
    with_line: int = 0


@dataclass(frozen=True, slots=True)
class HygieneReport:
    """All that a check found, in the order of the files; `memories` is how many it looked at."""

    findings: tuple[Finding, ...]
    memories: int

    @property
    def score(self) -> int:
        points = sum(POINTS[one.kind] for one in self.findings)
        if not points:
            return 100
        return int(100 - 100 * points / (points + max(1, self.memories)))

    @property
    def counts(self) -> dict[str, int]:
        """How many of each kind, the most first."""
        found = Counter(one.kind for one in self.findings)
        return dict(sorted(found.items(), key=lambda pair: (-pair[1], pair[0])))

    def of(self, kind: FindingKind) -> tuple[Finding, ...]:
        return tuple(one for one in self.findings if one.kind == kind)
