"""What was wrong with a setting, and where a value came from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ValueOrigin:
    """Who gave a value."""

    source: str
    """default, policy, environment, local, project, user, flags or override."""
    place: str
    """The file, or the environment variable; "" for a default."""
    trusted: bool


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that was not taken as given, and why."""

    level: str
    """warning: nothing is lost by it. error: a value was not used."""
    place: str
    key: str
    reason: str

    def __str__(self) -> str:
        where = f"{self.place}: {self.key}" if self.key else self.place
        return f"{where}: {self.reason}"


def nearest(word: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """A question naming the known word most like `word`, or ""."""
    import difflib

    close = difflib.get_close_matches(word[:200], list(known), n=1, cutoff=cutoff)
    return f"; did you mean {close[0]}?" if close else ""
