"""A write to a memory folder as others see it: what is asked before, and told after it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

from reverie.light import dataclass
from reverie.store.heads import KnownPointer


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file before and after a write; None where there was or is none, or where all that
    happened is that something was added at its end."""

    key: str
    before: bytes | None
    after: bytes | None
    added: bytes = b""


@dataclass(frozen=True, slots=True)
class SavedFile:
    """What a write did: the files it changed, and what its caller should be told."""

    key: str
    changes: tuple[FileChange, ...]
    warnings: tuple[str, ...] = ()


WriteGuard: TypeAlias = Callable[[str, bytes], None]
"""Called with key and bytes before they are written; refuses by raising a ReverieError."""
OnLanded: TypeAlias = Callable[[FileChange], None]
"""Called under the folder's lock for each change that was made, in their order."""


class KnownIndexes(Protocol):
    """What is known of long indexes without reading them; asked under the folder's lock."""

    def known_pointer(self, index: str, name: str) -> KnownPointer: ...
    def grow(self, index: str, line: bytes) -> int: ...
    def twin_of(self, key: str) -> str: ...
