"""Message blocks, kept as received.

A block is its JSON text and nothing is ever written over it: key order, number
literals and unknown keys go back to the model as they came. What is derived from
the text (its value, token estimate and digest) is worked out once. This module
never drops or reorders anything inside a block.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any, TypeAlias, cast

from reverie.errors import InvalidMessage
from reverie.settings.catalog import Settings

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Object: TypeAlias = "dict[str, Json]"

_DEFAULTS = Settings()
TEXT_BYTES = _DEFAULTS.text_bytes_per_token
JSON_BYTES = _DEFAULTS.json_bytes_per_token
MEDIA_TOKENS = _DEFAULTS.media_tokens
MEDIA = ("image", "document")


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
DECODER = json.JSONDecoder(parse_constant=_no_constant)
THINKING = ("thinking", "redacted_thinking")
_PLAIN = frozenset({str, int, bool, type(None)})
_CALLS = {"tool_use": "id", "tool_result": "tool_use_id"}
_SAID = {"text": "text", "thinking": "thinking", "tool_result": "content"}
_SPACE = re.compile(r"[ \t\n\r]*")
_STEPS = {"{": "}", "[": "]"}


def parse(text: str, what: str = "JSON text") -> Json:
    """The value of a JSON text, or InvalidMessage saying what is wrong with it."""
    try:
        value, end = DECODER.raw_decode(text, _skip(text, 0))
    except (ValueError, RecursionError) as error:
        raise InvalidMessage(f"{what} is not valid JSON: {error}") from error
    if _skip(text, end) != len(text):
        raise InvalidMessage(f"{what} has text after its end", where=f"character {end}")
    return cast("Json", value)


def dump(value: object) -> str:
    """Compact JSON text; escapes only what UTF-8 could not carry."""
    try:
        text = _ENCODER.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidMessage(f"a value cannot be written as JSON: {error}") from error
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            return json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def members(text: str) -> dict[str, tuple[str, Json]]:
    """Each member of a JSON object: its raw text and its value (a key given twice: the last)."""
    return {key: (raw, value) for key, raw, value in _walk(text, "{")}


def elements(text: str) -> list[tuple[str, Json]]:
    """Each element of a JSON array: its raw text and its value."""
    return [(raw, value) for _, raw, value in _walk(text, "[")]


def _walk(text: str, opening: str) -> Iterator[tuple[str, str, Json]]:
    at = _skip(text, 0)
    closing = _STEPS[opening]
    if text[at : at + 1] != opening:
        raise InvalidMessage(f"JSON text does not begin with {opening}")
    at = _skip(text, at + 1)
    if text[at : at + 1] == closing:
        return
    while True:
        key = ""
        try:
            if opening == "{":
                found, at = DECODER.raw_decode(text, at)
                key = str(found)
                at = _skip(text, at)
                if text[at : at + 1] != ":":
                    raise ValueError(f"no colon at character {at}")
                at = _skip(text, at + 1)
            value, end = DECODER.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            raise InvalidMessage(f"not valid JSON: {error}") from error
        yield key, text[at:end], cast("Json", value)
        at = _skip(text, end)
        step = text[at : at + 1]
        if step == closing:
            return
        if step != ",":
            raise InvalidMessage(f"not valid JSON: no comma at character {at}")
        at = _skip(text, at + 1)


class Block:
    """One content block: its JSON text, and what follows from it. Never changed once made;
    each part is worked out when it is first asked for, since much is stored and never sent."""

    __slots__ = ("_digest", "_raw", "_tokens", "call", "type", "value")

    def __init__(self, raw: str, value: Object) -> None:
        self.type = kind = str(value.get("type", ""))
        call = value.get(_CALLS[kind]) if kind in _CALLS else ""
        self.call = call if isinstance(call, str) else ""  # that it makes or answers, by its id
        self.value = value
        self._raw = raw  # empty: not written yet
        self._tokens = -1
        self._digest = b""

    @property
    def raw(self) -> str:
        if not self._raw:
            self._raw = dump(self.value)
        return self._raw

    @property
    def tokens(self) -> int:
        if self._tokens < 0:
            value, kind = self.value, self.type
            said = value.get(_SAID[kind]) if kind in _SAID else None
            if isinstance(said, str):
                self._tokens = _size(said, TEXT_BYTES)
            else:
                self._tokens = _call_tokens(value) if kind == "tool_use" else estimate(value)
        return self._tokens

    @property
    def digest(self) -> bytes:
        if not self._digest:
            self._digest = blake2b(self.raw.encode(), digest_size=16).digest()
        return self._digest

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Block) and self.raw == other.raw)

    def __hash__(self) -> int:
        return hash(self.raw)

    def __repr__(self) -> str:
        return f"Block(raw={self.raw!r})"

    def get(self, key: str) -> str:
        """A member that is a string, or the empty string."""
        found = self.value.get(key)
        return found if isinstance(found, str) else ""

    @property
    def text(self) -> str:
        """The words a person would read in it."""
        return text_of(self.value)

    @property
    def thinking(self) -> bool:
        return self.type in THINKING

    @property
    def markable(self) -> bool:
        """Whether the provider takes a cache mark on it."""
        return self.type == "tool_result" or not (self.thinking or self.blank)

    @property
    def blank(self) -> bool:
        """A text block with no words: the provider refuses it in a user message."""
        text = self.get("text") if self.type == "text" else "."
        return not text or text.isspace()

    def with_member(self, key: str, raw: str) -> Block:
        """The same block with one member's text replaced in place, or put last."""
        if not self._raw:  # what is replaced need not be written first
            found = {k: raw if k == key else dump(v) for k, v in self.value.items()}
        else:
            found = {k: text for k, (text, _) in members(self._raw).items()}
            if found.get(key) == raw:
                return self
        text = join_members({**found, key: raw}) if key in found else add_member(self.raw, key, raw)
        return block_from(text, {**self.value, key: parse(raw, "a member")})


def join_members(parts: Mapping[str, str]) -> str:
    """A JSON object's text from its members' texts."""
    return "{" + ",".join([f"{_key(k)}:{v}" for k, v in parts.items()]) + "}"


@lru_cache(maxsize=256)
def _key(name: str) -> str:
    return dump(name)


def add_member(raw: str, key: str, value: str) -> str:
    """A JSON object's text with one more member at its end."""
    body = raw.rstrip()[:-1].rstrip()
    comma = "" if body.endswith("{") else ","
    return f"{body}{comma}{json.dumps(key)}:{value}}}"


def block(raw: str) -> Block:
    """A block from its JSON text, which is kept as it is, but for a cache mark on it:
    marks are put on by `render`, last."""
    return block_from(raw, parse(raw, "a content block"))


def block_from(raw: str, value: Json) -> Block:
    """A block from a JSON text and the value already read from it."""
    if not isinstance(value, dict):
        raise InvalidMessage("a content block must be a JSON object")
    if "cache_control" in value:
        parts = {k: text for k, (text, _) in members(raw).items() if k != "cache_control"}
        value = {k: v for k, v in value.items() if k != "cache_control"}
        raw = join_members(parts)
    if "\n" in raw or "\r" in raw:  # only between tokens, where they are no part of the value
        raw = raw.replace("\r", " ").replace("\n", " ")
    if not raw.isascii():
        try:
            raw.encode()
        except UnicodeEncodeError:
            raw = dump(value)
    return Block(raw, value)


def block_of(value: Mapping[str, Any]) -> Block:
    """A block from a value: its first serialisation is the one kept."""
    try:
        kept = {
            key: member if type(member) in _PLAIN else _own(member)
            for key, member in value.items()
            if key != "cache_control"
        }
    except RecursionError as error:
        raise InvalidMessage("a value is nested too deeply") from error
    return Block("", kept)


def _own(value: Any) -> Json:
    """A value of our own, since the caller may change what is nested in it; or InvalidMessage."""
    if isinstance(value, list):
        return [m if type(m) in _PLAIN else _own(m) for m in cast("list[Any]", value)]
    if isinstance(value, dict):
        found = cast("dict[Any, Any]", value)
        if all(isinstance(key, str) for key in found):
            return {k: m if type(m) in _PLAIN else _own(m) for k, m in found.items()}
    if isinstance(value, (str, int)):
        return value
    return parse(dump(cast("object", value)))  # a number, or what JSON may not be able to hold


def text_block(text: str) -> Block:
    return block_of({"type": "text", "text": text})


def blocks_of(content: str | Sequence[Mapping[str, Any] | Block]) -> tuple[Block, ...]:
    """A message's content in any of the forms people write it."""
    if isinstance(content, str):
        return (text_block(content),)
    return tuple(b if isinstance(b, Block) else block_of(b) for b in content)


def text_of(value: object) -> str:
    """All readable text of a block, a content list, or a string; none of what is nested deeper
    than can be read."""
    try:
        return _text_of(value)
    except RecursionError:
        return ""


def media_of(content: object) -> tuple[Mapping[str, Any], ...]:
    """The pictures and documents of a content list, as they came."""
    found = cast("list[object]", content) if isinstance(content, list) else []
    blocks = [cast("Mapping[str, Any]", b) for b in found if isinstance(b, dict)]
    return tuple([b for b in blocks if b.get("type") in MEDIA])


def _text_of(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(_text_of(v) for v in cast("list[object]", value))
    if not isinstance(value, dict):
        return ""
    found = cast("dict[str, object]", value)
    kind = found.get("type")
    if kind == "tool_result":
        return _text_of(found.get("content"))
    if kind == "tool_use":
        return dump(found.get("input"))
    if kind == "thinking":
        return _text_of(found.get("thinking"))
    return _text_of(found.get("text"))


def _size(text: str, per_token: int) -> int:
    return -(-_bytes(text) // per_token)


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _json_tokens(value: object) -> int:
    """Tokens of a value as JSON. The input of most calls, a few strings, is counted without
    being written: quotes, a colon and a comma around each, and what is escaped in it."""
    if not isinstance(value, dict):
        return _size(dump(value), JSON_BYTES)
    size = 1
    for key, member in cast("dict[str, object]", value).items():
        if isinstance(member, str):
            size += len(key) + _bytes(member) + 6
            size += member.count('"') + member.count("\\")
            size += member.count("\n") + member.count("\t")
        elif isinstance(member, bool) or member is None:
            size += len(key) + 8
        else:
            return _size(dump(cast("object", value)), JSON_BYTES)
    return -(-max(2, size) // JSON_BYTES)


def _call_tokens(call: Mapping[str, object]) -> int:
    return estimate(call.get("name")) + _json_tokens(call.get("input"))


def estimate(value: object) -> int:
    """Rough tokens: 4 bytes each for text, 2 for JSON, a flat figure for media, none for what
    is nested deeper than can be read."""
    try:
        return _estimate(value)
    except RecursionError:
        return 0


def _estimate(value: object) -> int:
    if isinstance(value, str):
        return _size(value, TEXT_BYTES)
    if isinstance(value, list):
        return sum(_estimate(v) for v in cast("list[object]", value))
    if not isinstance(value, dict):
        return 0 if value is None else _json_tokens(value)
    found = cast("dict[str, object]", value)
    match found.get("type"):
        case "tool_use":
            tokens = _call_tokens(found)
        case "text" | "tool_result" | "thinking":
            tokens = _estimate(found.get(_SAID[str(found["type"])]))
        case "image" | "document":
            tokens = MEDIA_TOKENS
        case "openai_items":  # what its sibling blocks say already, in the provider's own form
            tokens = 0
        case _:
            tokens = _json_tokens(found)
    return tokens
