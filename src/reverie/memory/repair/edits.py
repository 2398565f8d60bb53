"""What a repair did: edits with reasons, and the files as they are afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from reverie.memory.facts import DropReason, Reason


@dataclass(frozen=True, slots=True)
class Edit:
    """Words of a file, what stands in their place (None: the file or line is gone), and why."""

    file: str
    before: str
    after: str | None
    why: DropReason
    target: str = ""

    @property
    def reason(self) -> Reason:
        """Without words before it, it is about the whole file."""
        return Reason(self.why, self.file, self.target, self.before)


@dataclass(frozen=True, slots=True)
class Repaired:
    """`files` holds only what changed; None is a file that is gone."""

    files: Mapping[str, bytes | None]
    edits: tuple[Edit, ...] = ()

    @property
    def reasons(self) -> tuple[Reason, ...]:
        return tuple(dict.fromkeys(one.reason for one in self.edits))
