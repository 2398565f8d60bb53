"""Messages of a framework's own classes, fitted without being rewritten.

A `Dialect` says what a message of theirs is in the form of the Messages API. What nothing was
decided of comes back as the very object that went in; one whose results were cut, or whose
thinking had to go, is asked of the dialect, which changes that and nothing else. So ids,
signatures, pictures and members that nobody here knows are never copied to another form and back.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any, Protocol, TypeAlias, TypeVar, cast

from reverie.api.fitting import Fitter
from reverie.light import dataclass

M = TypeVar("M")
Value: TypeAlias = dict[str, Any]
PLACE = "place"
"""The member of a value that says which message it is of; it is never sent."""
ASIDE = "aside"
"""The role of what is no part of the conversation: it stays where it stands."""


class Dialect(Protocol[M]):
    """How a framework writes messages."""

    def read(self, message: M) -> list[Value]:
        """A message in the Messages form, one value or several; what is neither the user's nor
        the model's has the role `ASIDE`."""
        ...

    def changed(self, message: M, values: Sequence[Value]) -> list[M]:
        """A message of which this is left."""
        ...

    def made(self, value: Value) -> list[M]:
        """Words of ours for the model, in messages of theirs."""
        ...


@dataclass(frozen=True, slots=True)
class KeptBlock:
    """A block that is left of a message: its place there, and what its result became."""

    at: int
    content: Any = None  # None: it is as it was


def kept_blocks(before: Sequence[Value], after: Sequence[Value]) -> list[KeptBlock]:
    """What is left of a message's blocks, in their order."""
    found: list[KeptBlock] = []
    left = list(after)
    for at, block in enumerate(before):
        if left and left[0] == block:
            found.append(KeptBlock(at))
        elif left and block.get("type") == "tool_result" and _is_of(left[0], block):
            found.append(KeptBlock(at, left[0].get("content")))
        else:
            continue
        left.pop(0)
    return found


def _is_of(one: Value, other: Value) -> bool:
    ident = "tool_use_id"
    return one.get("type") == other["type"] and one.get(ident) == other.get(ident)


def fit_in(dialect: Dialect[M], fitter: Fitter, messages: Sequence[M]) -> list[M]:
    """The list to send in place of this one."""
    known = (dialect.read(message) for message in messages)
    read = [[{**value, PLACE: n} for value in values] for n, values in enumerate(known)]
    sent = fitter.fit([value for values in read for value in values])
    out: list[M] = []
    for place, group in groupby(sent, _place):
        values = list(group)
        if place < 0:
            out += [made for value in values for made in dialect.made(value)]
            continue
        is_whole = list(map(id, values)) == list(map(id, read[place]))
        message = messages[place]
        out += [message] if is_whole else dialect.changed(message, values)
    return out


def _place(value: Value) -> int:
    """Which message a value is of; below 0 where it is ours."""
    return value.get(PLACE, -1)


def said_in(value: Value) -> str:
    """The texts of a value, or of a result's content."""
    content: object = value.get("content")
    if isinstance(content, str):
        return content
    parts = cast("list[Value]", content) if isinstance(content, list) else []
    return "\n".join(str(part.get("text")) for part in parts if part.get("type") == "text")


def pictures_in(result: Value) -> list[Value]:
    """The sources of the pictures in a result, as the Messages API has them."""
    content: object = result.get("content")
    parts = cast("list[Value]", content) if isinstance(content, list) else []
    return [part["source"] for part in parts if part.get("type") == "image"]
