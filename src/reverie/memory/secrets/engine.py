"""RE2, and no more of it than the scanner needs.

Everything is matched in time linear in the text, whatever the text is; that is why it is RE2
and not `re`. Texts are ASCII bytes, one byte a character. It never logs: a line of RE2's own
about a pattern that is too large would end up beside the text on somebody's screen.

The package `google-re2` carries no types; this is the one place that knows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from importlib import import_module
from typing import Any, Protocol

MatchSpan = tuple[int, int]


class Match(Protocol):
    """Where a pattern and its groups matched; (-1, -1) for a group that took no part."""

    def span(self, group: int = 0) -> MatchSpan: ...


class Pattern(Protocol):
    """A compiled pattern."""

    @property
    def groups(self) -> int: ...

    def search(self, text: bytes, pos: int = 0) -> Match | None: ...


class Disabled(RuntimeError):
    """RE2 did not answer as it must."""


@cache
def _re2() -> Any:
    return import_module("re2")


def _options(**changed: Any) -> Any:
    options = _re2().Options()
    options.encoding = options.Encoding.LATIN1
    options.log_errors = False
    for name, value in changed.items():
        setattr(options, name, value)
    return options


@cache
def compiled(pattern: str) -> Pattern:
    """The pattern, ready to search; an invalid one raises."""
    return _re2().compile(pattern.encode("ascii"), _options())


class WordFinder:
    """Finds which of many words stand in a text, in one pass, whatever their case."""

    # Added to every text: where even this is not found, "nothing found" means nothing.
    _CANARY = b"\x01canary\x01"

    def __init__(self, words: Sequence[str]) -> None:
        self._count = len(words)
        self._set = _re2().Set.SearchSet(_options(case_sensitive=False, max_mem=64 << 20))
        for word in (*(word.encode("ascii") for word in words), self._CANARY):
            self._set.Add(_re2().escape(word))
        self._set.Compile()

    def among(self, text: bytes) -> frozenset[int]:
        """The positions, in the list given, of the words that stand in the text."""
        found: frozenset[int] = frozenset(self._set.Match(text + self._CANARY) or ())
        if self._count not in found:
            raise Disabled("RE2 gave up on the keywords")
        return found - {self._count}


def matches(pattern: Pattern, text: bytes, *, again: bool) -> Iterator[Match]:
    """Every match from left to right.

    With `again`, the search goes on inside a match, at its first group: for patterns whose
    value may itself begin with what another value is named by. No part is matched a third time.
    """
    at = reach = 0
    while (found := pattern.search(text, at)) is not None:
        yield found
        start, end = found.span()
        groups = range(1, pattern.groups + 1 if again and start >= reach else 1)
        inner = (first for first, _ in map(found.span, groups) if first > start)
        at = max(next(inner, end), start + 1)
        reach = max(reach, end)
