"""What was acknowledged, as whoever was told would remember it; no code of the store is in it."""

from __future__ import annotations

from dataclasses import dataclass, field

from reverie.store import AcquiredLock

REPO = "acme/reader"
PLACE = ("acme", REPO)
KEYS = ("a.md", "b.md", "c.md", "team/s.md", "team/t.md")
LIMIT, CALLS = 1_000, 6
STALE = 3_600.0


class Broken(AssertionError):
    """Something that must hold does not."""


@dataclass(slots=True)
class Model:
    """What was acknowledged, as whoever was told would remember it."""

    files: dict[str, bytes] = field(default_factory=dict[str, bytes])
    ever: list[tuple[str, bytes]] = field(default_factory=list[tuple[str, bytes]])
    remote: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    spent: dict[str, float] = field(default_factory=dict[str, float])
    calls: dict[str, int] = field(default_factory=dict[str, int])
    dreamers: dict[int, tuple[AcquiredLock, float]] = field(
        default_factory=dict[int, tuple[AcquiredLock, float]]
    )
    newest: AcquiredLock | None = None
    dreams: int = 0

    def wrote(self, key: str, data: bytes) -> None:
        self.files[key] = data
        self.ever.append((key, data))
