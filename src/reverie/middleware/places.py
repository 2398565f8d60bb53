"""Where values stand in a JSON text: members of objects and elements of arrays, by their places.

Each value is read once, by the decoder of the standard library. Constants that are no JSON and
keys that are given twice are refused: two readers could take them for different things.
"""

from __future__ import annotations

import json
import re
from typing import Any

_SPACE = re.compile(r"[ \t\n\r]*")


class UnreadableBody(ValueError):
    """This body is not one that is known."""


def _no_constant(name: str) -> None:
    raise UnreadableBody(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)

Span = tuple[int, int, Any]
"""Where a value begins and ends, and the value."""


def skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def decoded(text: str, at: int) -> tuple[Any, int]:
    return _DECODER.raw_decode(text, at)


def opened(text: str, at: int, sign: str) -> int:
    if text[at] != sign:
        raise UnreadableBody(f"no {sign} at character {at}")
    return skip(text, at + 1)


def stepped(text: str, at: int, closing: str) -> tuple[int, bool]:
    """Behind the comma, or behind the closing sign; and whether that was the end."""
    at = skip(text, at)
    if text[at] == closing:
        return at + 1, True
    if text[at] != ",":
        raise UnreadableBody(f"no comma at character {at}")
    return skip(text, at + 1), False


def key_at(text: str, at: int) -> tuple[str, int]:
    key, at = decoded(text, at)
    if not isinstance(key, str):
        raise UnreadableBody("a key is no text")
    at = skip(text, at)
    if text[at] != ":":
        raise UnreadableBody(f"no colon at character {at}")
    return key, skip(text, at + 1)


def members_at(text: str, at: int, arrays: tuple[str, ...] = ()) -> tuple[dict[str, Span], int]:
    """Members of an object with their places; those of `arrays` as lists of places."""
    found: dict[str, Span] = {}
    at = opened(text, at, "{")
    if text[at] == "}":
        return found, at + 1
    while True:
        key, at = key_at(text, at)
        if key in found:
            raise UnreadableBody(f"{key} is given twice")
        if key in arrays and text[at] == "[":
            value, end = elements_at(text, at)
        else:
            value, end = decoded(text, at)
        found[key] = (at, end, value)
        at, ended = stepped(text, end, "}")
        if ended:
            return found, at


def elements_at(text: str, at: int) -> tuple[list[Span], int]:
    found: list[Span] = []
    at = opened(text, at, "[")
    if text[at] == "]":
        return found, at + 1
    while True:
        value, end = decoded(text, at)
        found.append((at, end, value))
        at, ended = stepped(text, end, "]")
        if ended:
            return found, at
