"""A request's body, read in place: where each block of the conversation stands in the bytes.

Nothing is written again: what goes out later is the same text with patches on it. A body that
begins like an earlier one is read from the first message that differs, so that the work follows
what is new and not how long the conversation is. What cannot be read for certain raises
`Unreadable`, and the body passes as it is.
"""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import field
from typing import Any, cast

from reverie.light import dataclass
from reverie.middleware import chain
from reverie.transcript.blocks import THINKING
from reverie.wire.reading import Format

LIST: Mapping[Format, str] = {"messages": "messages", "chat": "messages", "responses": "input"}
_SPACE = re.compile(r"[ \t\n\r]*")
_STEPS = (1, 2, 3, 4, 8, 16, 32, 64, 128)
_CALLS = ("function_call", "custom_tool_call")
_OUTPUTS = ("function_call_output", "custom_tool_call_output")


class Unreadable(ValueError):
    """This body is not one that is known."""


def _no_constant(name: str) -> None:
    raise Unreadable(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)


@dataclass(frozen=True, slots=True)
class Part:
    """One block of the conversation; places count from the beginning of its list."""

    role: str  # user, assistant, system
    kind: str  # text, tool_result, tool_use, thinking, or what the block calls itself
    message: int
    start: int
    end: int
    chain: bytes  # behind this block
    bare: bool = False  # the content of its message is this text alone
    call: str = ""
    tool: str = ""  # of a call
    inner: tuple[int, int] = (0, 0)  # of a result's content
    key: str = ""  # of a result's content
    mark: tuple[int, int] = (0, 0)  # of the cache mark on it, with a comma
    marks: int = 0  # on it and in it


@dataclass(slots=True)
class Talk:
    """A conversation as it was read: the text of the list, its messages and parts."""

    text: str = ""
    starts: list[int] = field(default_factory=list[int])  # of each message
    firsts: list[int] = field(default_factory=list[int])  # the first part of each message
    parts: list[Part] = field(default_factory=list[Part])
    tools: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])

    def begun(self, count: int) -> Talk:
        """The first messages of it, to go on from."""
        end = self.firsts[count] if count < len(self.firsts) else len(self.parts)
        return Talk("", self.starts[:count], self.firsts[:count], self.parts[:end], dict(self.tools))


class Known:
    """Conversations read lately, each under its tenant; the oldest go first."""

    def __init__(self, most: int = 64 * 1024 * 1024) -> None:
        self._most = most
        self._size = 0
        self._talks: OrderedDict[tuple[bytes, str], Talk] = OrderedDict()

    def begun(self, seed: bytes, thread: str, text: str, at: int) -> tuple[Talk, int]:
        """What of a list is known already, and where the rest begins; 0 where nothing is."""
        talk = self._talks.get((seed, thread))
        for step in _STEPS if talk is not None else ():
            if step >= len(talk.starts):
                break
            count = len(talk.starts) - step
            end = talk.starts[count]
            if text.startswith(talk.text[:end], at):
                return talk.begun(count), end
        return Talk(), 0

    def keep(self, seed: bytes, thread: str, talk: Talk) -> None:
        old = self._talks.pop((seed, thread), None)
        self._size += len(talk.text) - (len(old.text) if old else 0)
        self._talks[seed, thread] = talk
        while self._size > self._most and self._talks:
            _, gone = self._talks.popitem(last=False)
            self._size -= len(gone.text)


@dataclass(frozen=True, slots=True)
class Body:
    """A request's body: its text, its members, and where its conversation stands."""

    text: str
    form: Format
    members: Mapping[str, Any]
    places: Mapping[str, tuple[int, int]]
    talk: Talk
    base: int  # where the list begins in the text

    @property
    def parts(self) -> list[Part]:
        return self.talk.parts

    @property
    def answered(self) -> int:
        """The place of the first part behind the last of the assistant's."""
        for at in range(len(self.parts) - 1, -1, -1):
            if self.parts[at].role == "assistant":
                return at + 1
        return 0

    def raw(self, part: Part) -> str:
        return self.text[self.base + part.start : self.base + part.end]

    def value(self, part: Part) -> Any:
        found: Any = _decoded(self.text, self.base + part.start)[0]
        return found

    def content(self, part: Part) -> object:
        """What a result holds."""
        return _decoded(self.text, self.base + part.inner[0])[0]

    def messages(self, first: int) -> list[dict[str, Any]]:
        """The messages themselves, from the `first` on."""
        starts = self.talk.starts[first:]
        return [chain.as_value(_decoded(self.text, self.base + at)[0]) for at in starts]

    @property
    def marks(self) -> int:
        """How many cache marks it has, the one at the top counted."""
        count = int(chain.MARK in self.members) + sum(part.marks for part in self.parts)
        for name in ("system", "tools"):
            found = self.members.get(name)
            if isinstance(found, list):
                blocks = cast("list[object]", found)
                count += sum(chain.MARK in chain.as_value(one) for one in blocks)
        return count


def scan(text: str, form: Format, seed: bytes, thread: str, known: Known) -> Body:
    """A body, read; `Unreadable` where it is none."""
    try:
        return _Reading(text, form, seed).whole(thread, known)
    except (ValueError, RecursionError, IndexError) as error:
        raise Unreadable(str(error)) from error


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _decoded(text: str, at: int) -> tuple[Any, int]:
    return _DECODER.raw_decode(text, at)


def _opened(text: str, at: int, sign: str) -> int:
    if text[at] != sign:
        raise Unreadable(f"no {sign} at character {at}")
    return _skip(text, at + 1)


def _stepped(text: str, at: int, closing: str) -> tuple[int, bool]:
    """Behind the comma, or behind the closing sign; and whether that was the end."""
    at = _skip(text, at)
    if text[at] == closing:
        return at + 1, True
    if text[at] != ",":
        raise Unreadable(f"no comma at character {at}")
    return _skip(text, at + 1), False


def _key(text: str, at: int) -> tuple[str, int]:
    key, at = _decoded(text, at)
    if not isinstance(key, str):
        raise Unreadable("a key is no text")
    at = _skip(text, at)
    if text[at] != ":":
        raise Unreadable(f"no colon at character {at}")
    return key, _skip(text, at + 1)


_Span = tuple[int, int, Any]


def _object(text: str, at: int, arrays: tuple[str, ...] = ()) -> tuple[dict[str, _Span], int]:
    """Members of an object with their places; those of `arrays` as lists of places."""
    found: dict[str, _Span] = {}
    at = _opened(text, at, "{")
    if text[at] == "}":
        return found, at + 1
    while True:
        key, at = _key(text, at)
        if key in found:
            raise Unreadable(f"{key} is given twice")
        if key in arrays and text[at] == "[":
            value, end = _array(text, at)
        else:
            value, end = _decoded(text, at)
        found[key] = (at, end, value)
        at, ended = _stepped(text, end, "}")
        if ended:
            return found, at


def _array(text: str, at: int) -> tuple[list[_Span], int]:
    found: list[_Span] = []
    at = _opened(text, at, "[")
    if text[at] == "]":
        return found, at + 1
    while True:
        value, end = _decoded(text, at)
        found.append((at, end, value))
        at, ended = _stepped(text, end, "]")
        if ended:
            return found, at


class _Reading:
    """One body, on its way through."""

    def __init__(self, text: str, form: Format, seed: bytes) -> None:
        self.text = text
        self.form: Format = form
        self.seed = seed
        self.base = 0
        self.talk = Talk()

    def whole(self, thread: str, known: Known) -> Body:
        text, name = self.text, LIST[self.form]
        members: dict[str, Any] = {}
        places: dict[str, tuple[int, int]] = {}
        at = _opened(text, _skip(text, 0), "{")
        ended = text[at] == "}"
        at += ended
        while not ended:
            key, at = _key(text, at)
            if key in places:
                raise Unreadable(f"{key} is given twice")
            if key == name and text[at] == "[":
                self.base = at
                self.talk, begun = known.begun(self.seed, thread, text, at)
                end = self._messages(at + begun if begun else _opened(text, at, "["))
                self.talk.text = text[at:end]
                members[key] = ()
            else:
                members[key], end = _decoded(text, at)
            places[key] = (at, end)
            at, ended = _stepped(text, end, "}")
        if _skip(text, at) != len(text):
            raise Unreadable("there is text behind the end")
        if name not in places:
            raise Unreadable(f"there is no {name}")
        if members[name] != ():
            self._sole(places[name], members[name])
        known.keep(self.seed, thread, self.talk)
        return Body(text, self.form, members, places, self.talk, self.base)

    def _sole(self, place: tuple[int, int], value: object) -> None:
        """A list that is a text: the one thing the user says."""
        if not isinstance(value, str):
            raise Unreadable("the conversation is no list")
        self.base = place[0]
        self._part("user", "text", 0, place[1] - place[0], {"type": "text", "text": value}, bare=True)
        self.talk.starts.append(0)
        self.talk.firsts.append(0)

    def _messages(self, at: int) -> int:
        if self.text[at] == "]":
            return at + 1
        while True:
            self.talk.starts.append(at - self.base)
            self.talk.firsts.append(len(self.talk.parts))
            end = self._message(at)
            at, ended = _stepped(self.text, end, "]")
            if ended:
                return at

    def _message(self, at: int) -> int:
        found, end = _object(self.text, at, ("content",))
        kind = _word(found.get("type"))
        if self.form == "responses" and kind not in ("", "message"):
            self._item(found, kind, at - self.base, end - self.base)
            return end
        role = _word(found.get("role"))
        if self.form == "chat" and role == "tool":
            self._result(found, "content", _word(found.get("tool_call_id")), at, end)
            return end
        self._said(found, role)
        for call in _values(found.get("tool_calls")):
            self._called(chain.as_value(call.get("function")), str(call.get("id") or ""))
        return end

    def _said(self, found: Mapping[str, _Span], role: str) -> None:
        speaker = role if role in ("user", "assistant") else "system"
        place = found.get("content")
        if place is None or place[2] is None:
            return
        start, end, content = place
        if isinstance(content, str):
            block = {"type": "text", "text": content}
            self._part(speaker, "text", start - self.base, end - self.base, block, bare=True)
            return
        if not isinstance(content, list):
            raise Unreadable("a message's content is neither text nor blocks")
        for one in cast("list[_Span]", content):
            self._block(speaker, one)

    def _block(self, speaker: str, place: _Span) -> None:
        start, end, value = place
        block = chain.as_value(value)
        kind = str(block.get("type") or "")
        named: dict[str, Any] = {}
        inner = block.get("content")
        nested = [chain.as_value(one) for one in cast("list[object]", inner)] if isinstance(inner, list) else []
        marks = sum(chain.MARK in one for one in (block, *nested))
        if chain.MARK in block:
            named["mark"] = self._mark(start)
        if kind == "tool_result":
            spans, _ = _object(self.text, start)
            named["call"] = str(block.get("tool_use_id") or "")
            if "content" in spans:
                at, to, content = spans["content"]
                named["inner"] = (at - self.base, to - self.base)
                named["key"] = chain.content_digest(content)
        elif kind == "tool_use":
            named["call"] = str(block.get("id") or "")
            named["tool"] = str(block.get("name") or "")
            self.talk.tools[named["call"]] = (named["tool"], self.text[start:end])
        if kind in chain.TEXTS:
            kind = "text"
        self._part(speaker, kind, start - self.base, end - self.base, block, marks=marks, **named)

    def _mark(self, start: int) -> tuple[int, int]:
        """The member that is a cache mark, with the comma that goes with it."""
        spans, _ = _object(self.text, start)
        at, end, _ = spans[chain.MARK]
        names = list(spans)
        n = names.index(chain.MARK)
        if n:
            begin = spans[names[n - 1]][1]
        else:
            begin = start + 1
            if len(names) > 1:
                end = _stepped(self.text, end, "}")[0]
        del at
        return begin - self.base, end - self.base

    def _item(self, found: Mapping[str, _Span], kind: str, start: int, end: int) -> None:
        if kind in _OUTPUTS:
            self._result(found, "output", _word(found.get("call_id")), start + self.base, end + self.base)
        elif kind in _CALLS:
            value = {name: one[2] for name, one in found.items()}
            self._called(value, _word(found.get("call_id")))
        else:
            role = "system" if kind == "item_reference" else "assistant"
            sort = "thinking" if kind == "reasoning" else kind
            value = {n: [p[2] for p in o[2]] if n == "content" and isinstance(o[2], list) else o[2] for n, o in found.items()}
            self._part(role, sort, start, end, value)

    def _called(self, about: Mapping[str, Any], ident: str) -> None:
        tool = str(about.get("name") or "")
        given = about.get("arguments", about.get("input"))
        self.talk.tools[ident] = (tool, str(given))
        value = {"id": ident, "name": tool, "given": _given(given)}
        self._part("assistant", "tool_use", 0, 0, value, call=ident, tool=tool)

    def _result(self, found: Mapping[str, _Span], member: str, call: str, start: int, end: int) -> None:
        named: dict[str, Any] = {"call": call}
        content: object = None
        if member in found:
            at, to, content = found[member]
            if isinstance(content, list):  # places of its parts
                content = [one[2] for one in cast("list[_Span]", content)] if member == "content" else content
            named["inner"] = (at - self.base, to - self.base)
            named["key"] = chain.content_digest(content)
        value = {"type": "tool_result", "tool_use_id": call, "content": content}
        self._part("user", "tool_result", start - self.base, end - self.base, value, **named)

    def _part(self, role: str, kind: str, start: int, end: int, value: object, **named: Any) -> None:
        parts = self.talk.parts
        before = parts[-1].chain if parts else self.seed
        if role == "system" or kind in THINKING:
            after = before
        else:
            after = chain.extended(before, role, chain.digest(value))
        message = len(self.talk.starts) - 1
        parts.append(Part(role, kind, max(0, message), start, end, after, **named))


def _given(arguments: object) -> object:
    """What a call was given: written as a text, it is the value that counts."""
    if isinstance(arguments, str):
        try:
            return _DECODER.decode(arguments)
        except (ValueError, RecursionError):
            return arguments
    return arguments


def _word(place: _Span | None) -> str:
    return place[2] if place is not None and isinstance(place[2], str) else ""


def _values(place: _Span | None) -> list[dict[str, Any]]:
    found = place[2] if place is not None else None
    return [chain.as_value(one) for one in cast("list[object]", found)] if isinstance(found, list) else []
