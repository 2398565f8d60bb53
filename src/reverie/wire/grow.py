"""JSON objects that arrive in pieces, put together without reading them.

A `Growing` starts from an object's text and takes deltas. Each member of a delta joins
the member of the same name: a string is appended, an array extended, anything else
replaces what was there; null changes nothing that is there. That rule also holds for
deltas nobody knows yet. Texts are joined as they were written: escapes, key order and
number literals stay, and what is put together is byte for byte what an answer in one
piece would have held.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from reverie.light import dataclass
from reverie.transcript.blocks import joined, members


@dataclass(slots=True)
class Growing:
    """An object so far: each member's text, in the order of their first appearance."""

    parts: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    @classmethod
    def of(cls, raw: str) -> Growing:
        return cls({key: [text] for key, (text, _) in members(raw).items()})

    def take(self, raw: str, leave: Iterable[str] = ()) -> None:
        """One delta: every member but those to leave out."""
        for key, (text, _) in members(raw).items():
            if key not in leave:
                self.add(key, text)

    def add(self, key: str, text: str) -> None:
        """One member of a delta, as its JSON text."""
        old = self.parts.get(key)
        if old is None or old == ["null"]:
            self.parts[key] = [text]
        elif text[:1] in ('"', "[") and old[0][:1] == text[:1]:
            old.append(text)
        elif text != "null":
            self.parts[key] = [text]

    def member(self, key: str) -> str:
        """One member's text, whole; empty where there is none."""
        return _whole(self.parts[key]) if key in self.parts else ""

    def text(self) -> str:
        return joined({key: _whole(texts) for key, texts in self.parts.items()})


def _whole(texts: list[str]) -> str:
    if len(texts) == 1:
        return texts[0]
    opening = texts[0][0]
    if opening == '"':
        return '"' + "".join(text[1:-1] for text in texts) + '"'
    inner = (text[1:-1].strip() for text in texts)
    return "[" + ",".join(text for text in inner if text) + "]"
