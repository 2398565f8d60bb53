"""Where values stand in a JSON text: members of objects and elements of arrays, by their places.

Each value is read once, by the decoder of the standard library. Constants that are no JSON and
keys that are given twice are refused: two readers could take them for different things.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from reverie.errors import InvalidInput

_SPACE = re.compile(r"[ \t\n\r]*")


class UnpatchableBody(ValueError):
    """This body is not one that is known."""


def _no_constant(name: str) -> None:
    raise UnpatchableBody(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)

Span = tuple[int, int, Any]
"""Where a value begins and ends, and the value."""


def skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def decode_value(text: str, at: int) -> tuple[Any, int]:
    return _DECODER.raw_decode(text, at)


def skip_opening(text: str, at: int, sign: str) -> int:
    if text[at] != sign:
        raise UnpatchableBody(f"no {sign} at character {at}")
    return skip(text, at + 1)


def skip_separator(text: str, at: int, closing: str) -> tuple[int, bool]:
    """Behind the comma, or behind the closing sign; and whether that was the end."""
    at = skip(text, at)
    if text[at] == closing:
        return at + 1, True
    if text[at] != ",":
        raise UnpatchableBody(f"no comma at character {at}")
    return skip(text, at + 1), False


def key_at(text: str, at: int) -> tuple[str, int]:
    key, at = decode_value(text, at)
    if not isinstance(key, str):
        raise UnpatchableBody("a key is no text")
    at = skip(text, at)
    if text[at] != ":":
        raise UnpatchableBody(f"no colon at character {at}")
    return key, skip(text, at + 1)


def members_at(text: str, at: int, arrays: tuple[str, ...] = ()) -> tuple[dict[str, Span], int]:
    """Members of an object with their places; those of `arrays` as lists of places."""
    found: dict[str, Span] = {}
    at = skip_opening(text, at, "{")
    if text[at] == "}":
        return found, at + 1
    while True:
        key, at = key_at(text, at)
        if key in found:
            raise UnpatchableBody(f"{key} is given twice")
        if key in arrays and text[at] == "[":
            value, end = elements_at(text, at)
        else:
            value, end = decode_value(text, at)
        found[key] = (at, end, value)
        at, ended = skip_separator(text, end, "}")
        if ended:
            return found, at


def elements_at(text: str, at: int) -> tuple[list[Span], int]:
    found: list[Span] = []
    at = skip_opening(text, at, "[")
    if text[at] == "]":
        return found, at + 1
    while True:
        value, end = decode_value(text, at)
        found.append((at, end, value))
        at, ended = skip_separator(text, end, "]")
        if ended:
            return found, at


# --- Settings of other programs, changed where they must be and nowhere else.
#
# A text of JSON, with the comments and trailing commas that editors leave in it, is read into
# values that know where they stand. A change is a patch on the text: what stays is the same bytes,
# comments, order and indentation included. What cannot be read is refused with its line. Nothing
# here touches a file.


_JSONC_SPACE = re.compile(r"[ \t\r\n\ufeff]+|//[^\n]*|/\*.*?\*/", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_PLAIN = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|true|false|null")
_DEEPEST = 100


class Unreadable(InvalidInput, code="unreadable"):
    """The text is not JSON, not even with comments."""


@dataclass(frozen=True, slots=True)
class JsonNode:
    """A value, where it stands in the text, and what it holds."""

    start: int
    end: int
    value: Any
    members: tuple[JsonMember, ...] = ()

    def member(self, name: str) -> JsonMember | None:
        """The member of this name; the last one where there are several, as readers take it."""
        return next((m for m in reversed(self.members) if m.name == name), None)


@dataclass(frozen=True, slots=True)
class JsonMember:
    """A member of an object, or an item of a list, from its first character to its last."""

    start: int
    name: str
    node: JsonNode

    @property
    def end(self) -> int:
        return self.node.end


@dataclass(frozen=True, slots=True)
class TextPatch:
    """In the text at `at`, `old` gives way to `new`."""

    at: int
    old: str
    new: str

    def on(self, text: str) -> str:
        if text[self.at : self.at + len(self.old)] != self.old:
            raise InvalidInput("a patch does not fit the text", where=f"character {self.at}")
        return text[: self.at] + self.new + text[self.at + len(self.old) :]

    def back(self) -> TextPatch:
        return TextPatch(self.at, self.new, self.old)


# --- reading


@dataclass(slots=True)
class _Reader:
    text: str
    at: int = 0

    def fail(self, what: str) -> Unreadable:
        line = self.text.count("\n", 0, self.at) + 1
        return Unreadable(what, where=f"line {line}")

    def skip(self) -> None:
        while found := _JSONC_SPACE.match(self.text, self.at):
            self.at = found.end()

    def take(self, sign: str) -> bool:
        self.skip()
        if not self.text.startswith(sign, self.at):
            return False
        self.at += len(sign)
        return True

    def string(self) -> str:
        found = _STRING.match(self.text, self.at)
        if found is None:
            raise self.fail("a text in double quotes is missing")
        try:
            value = json.loads(found[0])
        except ValueError:
            raise self.fail("a text has an escape that JSON does not know") from None
        self.at = found.end()
        return value

    def value(self, depth: int = 0) -> JsonNode:
        self.skip()
        start = self.at
        if depth > _DEEPEST:
            raise self.fail("it is nested too deeply")
        if self.take("{"):
            members = self.members("}", depth, named=True)
            held: Any = {m.name: m.node.value for m in members}
        elif self.take("["):
            members = self.members("]", depth, named=False)
            held = [m.node.value for m in members]
        elif self.text.startswith('"', self.at):
            held = self.string()
            return JsonNode(start, self.at, held)
        else:
            return self.plain(start)
        return JsonNode(start, self.at, held, tuple(members))

    def plain(self, start: int) -> JsonNode:
        found = _PLAIN.match(self.text, self.at)
        if found is None:
            raise self.fail("a value is missing or cannot be read")
        self.at = found.end()
        try:
            return JsonNode(start, self.at, json.loads(found[0]))
        except ValueError:  # a number that begins with a nought
            raise self.fail("a value that is none") from None

    def members(self, closing: str, depth: int, *, named: bool) -> list[JsonMember]:
        found: list[JsonMember] = []
        while not self.take(closing):
            if found and not self.take(","):
                raise self.fail(f"a comma or {closing} is missing")
            if found and self.take(closing):
                break
            self.skip()
            start, name = self.at, ""
            if named:
                name = self.string()
                if not self.take(":"):
                    raise self.fail("a colon is missing")
            found.append(JsonMember(start, name, self.value(depth + 1)))
        return found


def read(text: str) -> JsonNode:
    """The one value of the text; `Unreadable` names the line where it cannot be read."""
    reader = _Reader(text)
    node = reader.value()
    reader.skip()
    if reader.at != len(text):
        raise reader.fail("something follows the end")
    return node


# --- changing


def put(text: str, path: Sequence[str], value: Any) -> TextPatch:
    """The member at `path` has `value`; objects on the way that are missing are made."""
    node = read(text)
    for depth, name in enumerate(path):
        if not isinstance(node.value, dict):
            raise InvalidInput("it is not an object", where=".".join(path[:depth]) or "the file")
        found = node.member(name)
        if found is None:
            for inner in reversed(path[depth + 1 :]):
                value = {inner: value}
            return _insert_member(text, node, depth + 1, f"{json.dumps(name)}: ", value)
        node = found.node
    return TextPatch(
        node.start, text[node.start : node.end], _dump_indented(value, len(path), _unit(text))
    )


def append_item(text: str, path: Sequence[str], item: Any) -> TextPatch:
    """The list at `path` has `item` as its last; made where it is missing."""
    node = at(text, path)
    if node is None:
        return put(text, path, [item])
    if not isinstance(node.value, list):
        raise InvalidInput("it is not a list", where=".".join(path))
    return _insert_member(text, node, len(path) + 1, "", item)


def remove_member(text: str, path: Sequence[str], item: int | None = None) -> TextPatch:
    """The member at `path`, or an item of the list there, is gone, with its comma."""
    holder = read(text) if item is None else at(text, path)
    for name in path[:-1] if item is None else ():
        found = holder.member(name) if holder else None
        holder = found.node if found else None
    if holder is None:
        raise InvalidInput("there is no such member", where=".".join(path))
    named = [m.name for m in holder.members]
    index = item if item is not None else len(named) - 1 - named[::-1].index(path[-1])
    gone = holder.members[index]
    if index:
        start, end = holder.members[index - 1].end, gone.end
    elif len(holder.members) > 1:
        start, end = gone.start, holder.members[1].start
    else:
        start, end = holder.start + 1, holder.end - 1
    return TextPatch(start, text[start:end], "")


def at(text: str, path: Sequence[str]) -> JsonNode | None:
    """The value at `path`; None where there is none."""
    node: JsonNode | None = read(text)
    for name in path:
        found = node.member(name) if node and isinstance(node.value, dict) else None
        node = found.node if found else None
    return node


def _insert_member(text: str, holder: JsonNode, depth: int, label: str, value: Any) -> TextPatch:
    unit = _unit(text)
    shown = label + _dump_indented(value, depth, unit)
    inner, outer = "\n" + unit * depth, "\n" + unit * (depth - 1)
    if holder.members:
        last = holder.members[-1].end
        lines = "\n" in text[holder.start : holder.members[0].start]
        return TextPatch(last, "", f",{inner if lines else ' '}{shown}")
    inside = text[holder.start + 1 : holder.end - 1]
    if inside.strip():  # comments alone
        return TextPatch(holder.end - 1, "", f"{inner}{shown}{outer}")
    return TextPatch(holder.start + 1, inside, f"{inner}{shown}{outer}")


def _dump_indented(value: Any, depth: int, unit: str) -> str:
    text = json.dumps(value, indent=unit, ensure_ascii=False)
    return text.replace("\n", "\n" + unit * depth)


def _unit(text: str) -> str:
    """What one step of indentation is in this text."""
    found = re.search(r"\n([ \t]+)\S", text)
    return found[1] if found else "  "
