"""The list to send: the caller's own messages, and what stands for those that left.

A message that nothing was decided of is the caller's own object. One whose results were
cut, or whose thinking went with an edit, is a copy with every other member as it was.
What is no part of the conversation (system messages, parts nobody knows) stands in its
place, or behind the lines that cover the place. Cache marks are put on copies, last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from reverie.light import dataclass
from reverie.transcript.blocks import Block
from reverie.transcript.messages import Item
from reverie.transcript.view import View
from reverie.wire.adopting import Adopted, Adoption
from reverie.wire.forms import edited, marked, results, said
from reverie.wire.reading import Format, Heard


@dataclass(slots=True)
class Rendering:
    """One list on its way out."""

    messages: Sequence[Any]
    heard: Sequence[Heard]
    adoption: Adoption
    form: Format
    places: Mapping[str, int]  # of parts, by id
    out: list[Any] = field(default_factory=list[Any])
    sealed: int = -1  # where the last message that stands for others is
    marks: list[int] = field(default_factory=list[int])  # of callers, on what left
    at: int = 0  # the first part not looked at

    def take(self, item: Item) -> None:
        if item.kind == "replaced":
            self._stand(item)
        elif item.kind == "attached":
            self.out.append(said(_text(item), self.form))
        elif item.kind == "message":
            place = self.places[item.id]
            self.asides(place)
            self._part(self.adoption.parts[place], item)
            self.at = place + 1

    def _stand(self, item: Item) -> None:
        covered = [self.places[c] for c in item.covers if c in self.places]
        if covered:
            self.asides(min(covered))
        self.sealed = len(self.out)
        self.out.append(said(_text(item), self.form))
        parts = [self.adoption.parts[c] for c in covered]
        if any(self.heard[n].marked for p in parts for n in range(p.first, p.end)):
            self.marks.append(self.sealed)
        if covered:
            self.asides(max(covered) + 1)

    def asides(self, end: int) -> None:
        """What stands aside before a part."""
        for part in self.adoption.parts[self.at : end]:
            if part.part == "aside":
                self.out.append(self.messages[part.first])
        self.at = max(self.at, end)

    def _part(self, part: Adopted, item: Item) -> None:
        if part.part == "interrupted":
            self.out += results(part.blocks, self.adoption.theirs, self.form)
            return
        shown = {piece.index: piece.block for piece in item.pieces}
        changed: dict[int, dict[int, Block]] = {}
        gone: dict[int, list[int]] = {}
        for n, (block, (message, at)) in enumerate(zip(part.blocks, part.places, strict=True)):
            now = shown.get(n)
            if now is None:
                gone.setdefault(message, []).append(at)
            elif now is not block and now != block:  # a renamed one is made anew each time
                changed.setdefault(message, {})[at] = now
        for n in range(part.first, part.end):
            message = self.messages[n]
            if n in changed or n in gone:
                message = edited(message, self.form, changed.get(n, {}), gone.get(n, ()))
            if message is not None:
                self.out.append(message)


def _text(item: Item) -> str:
    return "\n".join(piece.block.text for piece in item.pieces)


def rendered(
    view: View, messages: Sequence[Any], heard: Sequence[Heard], adoption: Adoption, form: Format
) -> Rendering:
    """A played list in the form it came in, without marks of ours."""
    places = {part.id: n for n, part in enumerate(adoption.parts)}
    going = Rendering(messages, heard, adoption, form, places)
    for item in view.items:
        going.take(item)
    going.asides(len(adoption.parts))
    return going


def with_marks(going: Rendering) -> list[Any]:
    """The list with cache marks: the caller's own, or two of ours, where what was sealed
    ends and at the end."""
    out = list(going.out)
    if any(h.marked for h in going.heard):
        wanted = going.marks
    else:
        wanted = sorted({going.sealed, len(out) - 1} - {-1})
    for at in wanted:
        found = marked(out[at])
        out[at] = out[at] if found is None else found
    return out
