"""A caller's list as far as it was heard: what is new of it, and whose it is.

A list goes on where it begins with what was heard before, or with what was handed out for that: a
framework wrote our list over the caller's. Anything else is another list. All contents are
compared, since callers change old messages in place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from reverie.api.fitted import begins, fingerprint, is_ours
from reverie.wire.reading import Format, Heard, format_of, heard, value_of

How: TypeAlias = Literal["goes on", "tells", "another"]


class HeardList:
    """The messages of one conversation, in our blocks."""

    def __init__(self, tools: Sequence[Mapping[str, Any]], model: str) -> None:
        self._tools, self._model = tools, model
        self._forget()

    def _forget(self) -> None:
        self.messages: list[Any] = []
        self.heard: list[Heard] = []
        self.form: Format = "chat"
        self._prints: list[bytes] = []
        self._tells = False  # whether the list itself says which form it has
        self._out: list[bytes] = []  # what was handed out last

    def take(self, messages: Sequence[Any]) -> How:
        """Take in what is new. It goes on, only now tells which form it has, or is another."""
        how: How = "goes on"
        prints = [fingerprint(m) for m in messages]
        if begins(prints, self._prints):
            new, at = list(messages), len(self._prints)
        elif self._is_ours(prints):
            new, at = self.originals(messages, prints), len(self._prints)
            prints = [*self._prints, *prints[len(self._out) :]]
        else:
            self._forget()
            new, at, how = list(messages), 0, "another"
        values = [value_of(m) for m in new[at:]]
        if not self._tells:
            whole = values if not at else [value_of(m) for m in new]
            form, self._tells = format_of(whole, self._tools, self._model)
            if form != self.form and at:
                how, values, self.heard = "tells", whole, []
            self.form = form
        self.heard += [heard(v, self.form) for v in values]
        self.messages, self._prints = new, prints
        return how

    def _is_ours(self, prints: Sequence[bytes]) -> bool:
        return bool(self._out) and begins(prints, self._out)

    def originals(self, messages: Sequence[Any], prints: Sequence[bytes] = ()) -> list[Any]:
        """A list in the caller's own words, where it begins with what was handed out."""
        known = prints or [fingerprint(m) for m in messages]
        if not self._is_ours(known):
            return list(messages)
        return [*self.messages, *messages[len(self._out) :]]

    def handed(self, out: Sequence[Any]) -> bool:
        """Remember what goes out; whether it differs from what came in."""
        self._out = [fingerprint(m) for m in out]
        return self._out != self._prints

    @property
    def is_fitted(self) -> bool:
        """Whether it holds words of ours whose originals nobody here knows."""
        return any(is_ours(b) for h in self.heard if h.speaker == "user" for b in h.blocks)

    @property
    def tokens(self) -> int:
        return sum([h.tokens for h in self.heard])
