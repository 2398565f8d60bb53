"""One agent's end of the post: what waits for it, given to its conversation, once.

A box is anything that letters wait in: a `Mailbox` of files, or a `Tray` in this process. What a
letter's record in the transcript says is what counts as delivered, so a letter that was given and
not recorded is given again. Nothing here knows who may write to whom.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from reverie.agent.mail.letters import Letter, checked, delivered
from reverie.agent.mail.mailbox import MAX_TAKEN, MAX_WAITING
from reverie.errors import NotAvailable
from reverie.transcript.records import UserMessage
from reverie.transcript.view import View


class Box(Protocol):
    """Where letters wait for one recipient."""

    def put(self, letter: Letter) -> Letter: ...
    def waiting(self, delivered: Mapping[str, int]) -> list[Letter]: ...
    def clear(self, delivered: Mapping[str, int]) -> None: ...


class Tray:
    """A box in this process: nothing outlives it."""

    def __init__(self, owner: str, next_number: Callable[[], int]) -> None:
        self.owner = owner
        self._next_number = next_number  # of all letters in this process
        self._letters: list[Letter] = []

    def put(self, letter: Letter) -> Letter:
        letter = checked(letter)
        mine = [one for one in self._letters if one.sender == letter.sender]
        if letter.kind != "result" and len(mine) >= MAX_WAITING:  # a result is never turned away
            raise NotAvailable(
                f"{MAX_WAITING} messages of yours wait there already",
                where=self.owner,
                do="Go on without an answer, or wait until some are read",
            )
        sent = replace(letter, here=True, number=self._next_number())
        self._letters.append(sent)
        return sent

    def waiting(self, delivered: Mapping[str, int]) -> list[Letter]:
        found = [one for one in self._letters if one.number > delivered.get(one.series, 0)]
        return found[:MAX_TAKEN]

    def clear(self, delivered: Mapping[str, int]) -> None:
        self._letters = [n for n in self._letters if n.number > delivered.get(n.series, 0)]


class Post:
    """The letters of one agent, from all its boxes, as messages of its conversation."""

    def __init__(
        self,
        view: Callable[[], View],
        boxes: Sequence[Box],
        seen: Callable[[Letter], None] = lambda _: None,
    ) -> None:
        self._view = view
        self._boxes = boxes
        self._seen = seen
        self._known: dict[str, int] = {}
        self._looked = 0  # entries of the transcript that were looked at

    @property
    def delivered(self) -> Mapping[str, int]:
        entries = self._view().entries
        if len(entries) < self._looked:
            self._looked = 0
        for name, number in delivered(entries[self._looked :]).items():
            self._known[name] = max(number, self._known.get(name, 0))
        self._looked = len(entries)
        return self._known

    def waiting(self) -> list[Letter]:
        done = self.delivered
        return [letter for box in self._boxes for letter in box.waiting(done)]

    def letters(self) -> list[UserMessage]:
        """What waits, for the conversation; what it holds already is cleared away."""
        done = self.delivered
        for box in self._boxes:
            box.clear(done)
        found = self.waiting()
        for letter in found:
            self._seen(letter)
        return [letter.message() for letter in found]
