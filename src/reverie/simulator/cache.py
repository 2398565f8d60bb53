"""The prompt cache.

`PromptCache` follows Anthropic's written rules: entries exist only where a mark stood,
a prefix matches whole or not at all, each mark looks back a bounded number of blocks,
and a hit starts an entry's time again. `AutomaticCache` follows OpenAI's: every prefix
of a whole number of steps is kept. Both see digests and counts, never texts, and take
the time as an argument. Neither knows what a request looks like.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from reverie.simulator.profiles import LIFETIMES, Profile

KEPT = 50_000  # entries after which the dead ones are swept out


@dataclass(frozen=True, slots=True)
class CachedBlock:
    """One block of a prompt, as the cache sees it."""

    role: str
    chain: bytes  # digest of all blocks up to and with this one
    tokens: int
    end: int  # tokens of the prompt up to and with this block
    ttl: str = ""  # the lifetime of its mark, if it has one
    start: bytes = b""  # automatic caching: what a share of this block follows
    data: bytes = b""  # automatic caching: the bytes a share is taken of
    width: int = 0  # automatic caching: bytes a token; 0 where there are no shares


@dataclass(frozen=True, slots=True)
class Charge:
    """What a request's input is billed as."""

    read: int = 0
    written_5m: int = 0
    written_1h: int = 0
    plain: int = 0
    total: int = 0

    @property
    def written(self) -> int:
        return self.written_5m + self.written_1h

    def cost(self, rules: Profile, output: int) -> float:
        """In units of one plain input token."""
        writing = self.written_5m * rules.write["5m"] + self.written_1h * rules.write["1h"]
        return writing + (self.read * rules.read + self.plain + output * rules.output)


@dataclass(slots=True)
class _Entry:
    expires: float
    lifetime: int


class PromptCache:
    """Entries at marks; see the module."""

    def __init__(self, rules: Profile) -> None:
        self.rules = rules
        self._entries: dict[bytes, _Entry] = {}

    def _live(self, key: bytes, now: float) -> _Entry | None:
        entry = self._entries.get(key)
        return entry if entry is not None and entry.expires >= now else None

    def charge(self, parts: Sequence[CachedBlock], now: float, minimum: int) -> Charge:
        """Bill one prompt, and keep what its marks say."""
        marks = [(i, p.ttl) for i, p in enumerate(parts) if p.ttl and p.end >= minimum]
        at = self._found(parts, marks, now)
        read = parts[at].end if at >= 0 else 0
        written = {"5m": 0, "1h": 0}
        done = read
        for i, ttl in marks:
            part = parts[i]
            if part.end > done:
                written[ttl] += part.end - done
                done = part.end
                self._keep(part.chain, now, ttl)
            elif i > at or self._live(part.chain, now) is None:
                self._keep(part.chain, now, ttl)
        for part in parts[: at + 1]:
            if entry := self._live(part.chain, now):
                entry.expires = now + entry.lifetime
        self._sweep(now)
        total = parts[-1].end if parts else 0
        return Charge(read, written["5m"], written["1h"], total - done, total)

    def _found(
        self, parts: Sequence[CachedBlock], marks: Sequence[tuple[int, str]], now: float
    ) -> int:
        """The last block of the longest cached prefix that any mark can see, or -1."""
        at = -1
        for i, _ in reversed(marks):
            for j in range(i, max(at, i - self.rules.look_back), -1):
                if self._live(parts[j].chain, now):
                    at = j
                    break
        return at

    def _keep(self, key: bytes, now: float, ttl: str) -> None:
        lifetime = LIFETIMES[ttl]
        self._entries[key] = _Entry(now + lifetime, lifetime)

    def _sweep(self, now: float) -> None:
        if len(self._entries) > KEPT:
            self._entries = {k: e for k, e in self._entries.items() if e.expires >= now}


class AutomaticCache:
    """Entries at every whole step; see the module."""

    def __init__(self, rules: Profile) -> None:
        self.rules = rules
        self._entries: dict[bytes, float] = {}

    def charge(self, parts: Sequence[CachedBlock], now: float, minimum: int) -> Charge:
        read = stored = 0
        for tokens, key in self._steps(parts):
            if tokens < minimum:
                continue
            if self._entries.get(key, -1.0) >= now and read == stored:
                read = tokens
            stored = tokens
            self._entries[key] = now + self.rules.lifetime
        if len(self._entries) > KEPT:
            self._entries = {k: at for k, at in self._entries.items() if at >= now}
        total = parts[-1].end if parts else 0
        return Charge(read, stored - read, 0, total - stored, total)

    def _steps(self, parts: Sequence[CachedBlock]) -> Iterator[tuple[int, bytes]]:
        due = self.rules.step
        for part in parts:
            begins = part.end - part.tokens
            while due <= part.end:
                share = part.data[: (due - begins) * part.width] if part.width else part.data
                yield due, blake2b(part.start + share, digest_size=16).digest()
                due += self.rules.step
