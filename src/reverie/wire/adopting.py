"""Foreign lists, made fit for a transcript: `adopt`.

A caller's list may hold what a transcript refuses, and all of it is the caller's right:
call ids that are used again or left empty (renamed inside), results whose call is not
there, system messages in the middle, roles and parts that nobody knows (kept aside, in
their places), calls that nobody answered (the result "interrupted"). Nothing is dropped.
What was adopted of a list stays so when more follows, but for the last round, which may
still be answered.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Literal, TypeAlias

from reverie.light import dataclass
from reverie.transcript.blocks import Block, dump
from reverie.transcript.messages import interrupted_result
from reverie.wire.reading import Format, Heard

Part: TypeAlias = Literal["user", "assistant", "aside", "interrupted"]
_USER_PARTS = ("text", "tool_result")


@dataclass(frozen=True, slots=True)
class Adopted:
    """Messages of the caller's that count as one: its own places, and the blocks of ours."""

    id: str
    part: Part
    first: int  # the place of the first of them in the caller's list
    count: int  # how many they are; none where a result was missing
    blocks: tuple[Block, ...]
    places: tuple[tuple[int, int], ...]  # of each block: message, and block in it

    @property
    def end(self) -> int:
        return self.first + self.count

    @property
    def tokens(self) -> int:
        return sum([b.tokens for b in self.blocks])


@dataclass(slots=True)
class Calls:
    """The names of calls: those given by the caller, and ours, of which each is there once."""

    theirs: dict[str, str] = field(default_factory=dict[str, str])  # ours → the caller's
    waiting: dict[str, list[str]] = field(default_factory=dict[str, list[str]])  # theirs → ours

    def made(self, one: Block, place: str) -> Block:
        """A call that waits for its result now, under a name no other has."""
        given = one.call
        name = given if given and given not in self.theirs else f"{given}~{place}"
        self.theirs[name] = given
        self.waiting.setdefault(given, []).append(name)
        return one if name == given else one.with_member("id", dump(name))

    def answered(self, one: Block) -> Block | None:
        """A result of a call that waits, under the call's name; None where none does."""
        waiting = self.waiting.get(one.call)
        if not waiting:
            return None
        name = waiting.pop(0)
        return one if name == one.call else one.with_member("tool_use_id", dump(name))

    def left(self) -> list[str]:
        return [name for names in self.waiting.values() for name in names]


@dataclass(slots=True)
class Adopter:
    """Goes through a list once, from its beginning."""

    joins: bool  # whether neighbouring messages of the assistant's are one
    calls: Calls = field(default_factory=Calls)
    out: list[Adopted] = field(default_factory=list[Adopted])
    answered: int = 0  # where in `out` the results of the last round end

    def take(self, at: int, said: Heard) -> None:
        if said.speaker == "assistant":
            self._assistant(at, said)
        elif said.speaker == "user":
            self._user(at, said)
        else:
            self._aside(at, said)

    def _assistant(self, at: int, said: Heard) -> None:
        before = self.out[-1] if self.out else None
        joined = self.joins and before is not None and before.part == "assistant"
        if not said.blocks or all(b.blank for b in said.blocks):
            self._aside(at, said)
            return
        if not joined:
            self.close()
        made = tuple(
            self.calls.made(b, f"{at}.{n}") if b.type == "tool_use" else b
            for n, b in enumerate(said.blocks)
        )
        places = tuple((at, n) for n in range(len(made)))
        if joined and before is not None:
            self.out[-1] = Adopted(
                before.id,
                "assistant",
                before.first,
                at + 1 - before.first,
                before.blocks + made,
                before.places + places,
            )
        else:
            self.out.append(Adopted(f"m{at}", "assistant", at, 1, made, places))
        self.answered = len(self.out)

    def _user(self, at: int, said: Heard) -> None:
        blocks: list[Block] = []
        places: list[tuple[int, int]] = []
        results = 0
        for n, one in enumerate(said.blocks):
            found = self.calls.answered(one) if one.type == "tool_result" else one
            results += one.type == "tool_result" and found is not None
            if found is not None and not found.blank:
                blocks.append(found)
                places.append((at, n))
        plain = all(b.type in _USER_PARTS for b in said.blocks)
        if not blocks or not (results or plain):
            self._aside(at, said)
            return
        self.out.append(Adopted(f"m{at}", "user", at, 1, tuple(blocks), tuple(places)))
        if results == len(said.blocks) and self.answered == len(self.out) - 1:
            self.answered = len(self.out)

    def _aside(self, at: int, said: Heard) -> None:
        self.out.append(Adopted(f"m{at}", "aside", at, 1, said.blocks, ()))

    def close(self) -> None:
        """Give every call that still waits a result that says it was interrupted."""
        left = self.calls.left()
        self.calls.waiting.clear()
        if left:
            before = self.out[self.answered - 1]
            results = tuple(interrupted_result(name) for name in left)
            made = Adopted(f"{before.id}:open", "interrupted", before.end, 0, results, ())
            self.out.insert(self.answered, made)


@dataclass(frozen=True, slots=True)
class Adoption:
    """A whole list, adopted."""

    parts: tuple[Adopted, ...]
    theirs: dict[str, str]  # what the caller calls each call

    def settled(self) -> int:
        """How many parts stay as they are, whatever follows in the list."""
        return next(
            (n for n in reversed(range(len(self.parts))) if self.parts[n].part == "assistant"), 0
        )

    def asides(self) -> Iterator[Adopted]:
        return (p for p in self.parts if p.part == "aside")


def adopt(messages: Sequence[Heard], form: Format) -> Adoption:
    """A list in the parts a transcript takes."""
    adopter = Adopter(joins=form != "chat")
    for at, said in enumerate(messages):
        adopter.take(at, said)
    adopter.close()
    return Adoption(tuple(adopter.out), adopter.calls.theirs)
