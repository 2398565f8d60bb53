"""Whether a request goes on from the last one of its thread, by the units of the provider's cache:
what the client said by its chain, and what was decided of it, without marks.

A difference in what was decided is a break of ours; one before it is the client's own.
"""

from __future__ import annotations

from collections import OrderedDict
from hashlib import blake2b

from reverie.light import dataclass
from reverie.middleware.outgoing import Asked, OutgoingPlan

MOST = 4_096


@dataclass(frozen=True, slots=True)
class Followed:
    """How a request follows the last one."""

    known: int  # parts of this one that the last one ended with
    broken: bool = False  # what was decided of those is not what it was
    left: bool = False  # the client has left what it said before


@dataclass(frozen=True, slots=True)
class _End:
    """Where a request ended, and what of it was ours."""

    parts: int
    decided: tuple[bytes, ...]


class Ends:
    """Where the newest requests ended, by thread and chain; the oldest go first."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._ends: OrderedDict[tuple[str, bytes], _End] = OrderedDict()
        self._threads: OrderedDict[str, bytes] = OrderedDict()

    def goes_on(self, asked: Asked) -> bool:
        """Whether any request ended where this one was."""
        return any((asked.thread, part.chain) in self._ends for part in asked.body.parts)

    def followed(self, asked: Asked, made: OutgoingPlan) -> Followed:
        """How this one follows; from now on it is the last, where it will be part of a history."""
        thread, parts = asked.thread, asked.body.parts
        sums = tuple(_sum(at, f"{text}{behind}") for at, text, behind in made.decided)
        found = self._found(asked, made, sums)
        if parts and asked.kind != "compaction":
            self._ends[thread, parts[-1].chain] = _End(len(parts), sums)
            self._threads[thread] = parts[-1].chain
            for kept in (self._ends, self._threads):
                while len(kept) > self._most:
                    kept.popitem(last=False)
        return found

    def _found(self, asked: Asked, made: OutgoingPlan, sums: tuple[bytes, ...]) -> Followed:
        parts = asked.body.parts
        for at in range(len(parts), 0, -1):
            end = self._ends.get((asked.thread, parts[at - 1].chain))
            if end is not None and end.parts == at:
                mine = zip(sums, made.decided, strict=True)
                before = tuple(one for one, (n, *_) in mine if n < at)
                return Followed(at, broken=before != end.decided)
        return Followed(0, left=bool(asked.caller.session) and asked.thread in self._threads)


def _sum(at: int, text: str) -> bytes:
    return blake2b(f"{at}:{text}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
