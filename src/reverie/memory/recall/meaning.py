"""The port to a model that turns texts into vectors, and what recall asks of it.

Meaning is a second signal beside the words, never the first: it finds what was put in other
words, and its word alone weighs less than that of the terms. Without a model nothing is missing
but that. A model in this process is asked in turns too, one behind an endpoint only where somebody
waits for a search. Types alone; nothing here loads a model or opens a connection.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from reverie.light import dataclass

Vector = Sequence[float]


class Embeddings(Protocol):
    """A model that gives each text a vector; texts that mean the same have close ones."""

    @property
    def name(self) -> str:
        """Which model it is; vectors of different names are never compared."""
        ...

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """The vectors of texts, in their order."""
        ...


class LocalModel(Protocol):
    """A model in this process that is quick enough to be asked while a request waits."""

    @property
    def name(self) -> str: ...

    def encode(self, texts: Sequence[str], tokens: int = ...) -> Sequence[Vector]:
        """The vectors of texts, each looked at up to so many tokens."""
        ...


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a query means to one model."""

    model: str
    vector: Vector
