"""A request's body, read in place: where each block of the conversation stands in the bytes.

Nothing is written again: what goes out later is the same text with patches on it. A body that
begins like an earlier one is read from the first message that differs, so that the work follows
what is new and not how long the conversation is. What cannot be read for certain raises
`UnpatchableBody`, and the body passes as it is.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import field
from typing import Any, cast

from reverie.errors import InvalidMessage
from reverie.interception import decisions
from reverie.light import dataclass
from reverie.text.json_spans import (
    Span,
    UnpatchableBody,
    decode_value,
    key_at,
    members_at,
    skip,
    skip_opening,
    skip_separator,
)
from reverie.transcript.blocks import THINKING, parse
from reverie.wire.lists import Format

LIST: Mapping[Format, str] = {"messages": "messages", "chat": "messages", "responses": "input"}
MOST_PARTS = 20_000
"""Parts of a conversation that is read; a longer one passes as it is."""
_STEPS = (1, 2, 3, 4, 8, 16, 32, 64, 128)
_CALLS = ("function_call", "custom_tool_call")
_OUTPUTS = ("function_call_output", "custom_tool_call_output")


@dataclass(frozen=True, slots=True)
class ScannedPart:
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
class ScannedConversation:
    """A conversation as it was read: the text that its list stands in, its messages and parts."""

    text: str = ""
    base: int = 0  # where the list begins in the text
    starts: list[int] = field(default_factory=list[int])  # of each message
    firsts: list[int] = field(default_factory=list[int])  # the first part of each message
    parts: list[ScannedPart] = field(default_factory=list[ScannedPart])
    tools: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])

    def begun(self, count: int) -> ScannedConversation:
        """The first messages of it, to go on from."""
        end = self.firsts[count] if count < len(self.firsts) else len(self.parts)
        return ScannedConversation(
            starts=self.starts[:count],
            firsts=self.firsts[:count],
            parts=self.parts[:end],
            tools=dict(self.tools),
        )


class ScanCache:
    """Conversations read lately, each under its tenant; the oldest go first. Used from any
    thread."""

    def __init__(self, most: int = 64 * 1024 * 1024) -> None:
        self._most = most
        self._turn = threading.Lock()
        self._size = 0
        self._talks: OrderedDict[tuple[bytes, str], ScannedConversation] = OrderedDict()

    def begun(
        self, seed: bytes, thread: str, text: str, at: int
    ) -> tuple[ScannedConversation, int]:
        """What of a list is known already, and where the rest begins; 0 where nothing is."""
        talk = self._talks.get((seed, thread))
        if talk is None:
            return ScannedConversation(), 0
        for step in _STEPS:
            if step >= len(talk.starts):
                break
            count = len(talk.starts) - step
            end = talk.starts[count]
            if text.startswith(talk.text[talk.base : talk.base + end], at):
                return talk.begun(count), end
        return ScannedConversation(), 0

    def keep(self, seed: bytes, thread: str, talk: ScannedConversation) -> None:
        with self._turn:
            old = self._talks.pop((seed, thread), None)
            self._size += len(talk.text) - (len(old.text) if old else 0)
            self._talks[seed, thread] = talk
            while self._size > self._most and self._talks:
                _, gone = self._talks.popitem(last=False)
                self._size -= len(gone.text)


@dataclass(frozen=True, slots=True)
class RequestBody:
    """A request's body: its text, its members, and where its conversation stands."""

    text: str
    form: Format
    members: Mapping[str, Any]
    places: Mapping[str, tuple[int, int]]
    talk: ScannedConversation
    base: int  # where the list begins in the text

    @property
    def parts(self) -> list[ScannedPart]:
        return self.talk.parts

    @property
    def answered(self) -> int:
        """The place of the first part behind the last of the assistant's."""
        for at in range(len(self.parts) - 1, -1, -1):
            if self.parts[at].role == "assistant":
                return at + 1
        return 0

    def raw(self, part: ScannedPart) -> str:
        return self.text[self.base + part.start : self.base + part.end]

    def value(self, part: ScannedPart) -> Any:
        found: Any = decode_value(self.text, self.base + part.start)[0]
        return found

    def content(self, part: ScannedPart) -> object:
        """What a result holds."""
        return decode_value(self.text, self.base + part.inner[0])[0]

    def called(self, part: ScannedPart) -> tuple[str, object]:
        """The call that a result answers: its tool, and what it was given."""
        tool, text = self.talk.tools.get(part.call, ("", ""))
        given = given_value(text)
        return tool, decisions.as_value(given).get("input") if self.form == "messages" else given

    def messages(self, first: int) -> list[dict[str, Any]]:
        """The messages themselves, from the `first` on."""
        starts = self.talk.starts[first:]
        values = [decode_value(self.text, self.base + at)[0] for at in starts]
        return [
            {"role": "user", "content": one} if isinstance(one, str) else decisions.as_value(one)
            for one in values
        ]

    @property
    def marks(self) -> int:
        """How many cache marks it has, the one at the top counted."""
        count = int(decisions.MARK in self.members) + sum(part.marks for part in self.parts)
        for name in ("system", "tools"):
            found = self.members.get(name)
            if isinstance(found, list):
                blocks = cast("list[object]", found)
                count += sum(decisions.MARK in decisions.as_value(one) for one in blocks)
        return count


def scan_body(text: str, form: Format, seed: bytes, thread: str, known: ScanCache) -> RequestBody:
    """A body, read; `UnpatchableBody` where it is none."""
    try:
        return _BodyScanner(text, form, seed).whole(thread, known)
    except (ValueError, RecursionError, IndexError) as error:
        raise UnpatchableBody(str(error)) from error


class _BodyScanner:
    """One body, on its way through."""

    def __init__(self, text: str, form: Format, seed: bytes) -> None:
        self.text = text
        self.form: Format = form
        self.seed = seed
        self.base = 0
        self.talk = ScannedConversation()

    def whole(self, thread: str, known: ScanCache) -> RequestBody:
        text, name = self.text, LIST[self.form]
        members: dict[str, Any] = {}
        places: dict[str, tuple[int, int]] = {}
        at = skip_opening(text, skip(text, 0), "{")
        ended = text[at] == "}"
        at += ended
        while not ended:
            key, at = key_at(text, at)
            if key in places:
                raise UnpatchableBody(f"{key} is given twice")
            if key == name and text[at] == "[":
                self.base = at
                self.talk, begun = known.begun(self.seed, thread, text, at)
                end = self._messages(at + begun if begun else skip_opening(text, at, "["))
                self.talk.text, self.talk.base = text, at
                members[key] = ()
            else:
                members[key], end = decode_value(text, at)
            places[key] = (at, end)
            at, ended = skip_separator(text, end, "}")
        if skip(text, at) != len(text):
            raise UnpatchableBody("there is text behind the end")
        if name not in places:
            raise UnpatchableBody(f"there is no {name}")
        if members[name] != ():
            self._sole(places[name], members[name])
        known.keep(self.seed, thread, self.talk)
        return RequestBody(text, self.form, members, places, self.talk, self.base)

    def _sole(self, place: tuple[int, int], value: object) -> None:
        """A list that is a text: the one thing the user says."""
        if not isinstance(value, str):
            raise UnpatchableBody("the conversation is no list")
        self.base = place[0]
        self._part(
            "user", "text", 0, place[1] - place[0], {"type": "text", "text": value}, bare=True
        )
        self.talk.starts.append(0)
        self.talk.firsts.append(0)

    def _messages(self, at: int) -> int:
        if self.text[at] == "]":
            return at + 1
        while True:
            self.talk.starts.append(at - self.base)
            self.talk.firsts.append(len(self.talk.parts))
            end = self._message(at)
            if len(self.talk.parts) > MOST_PARTS:
                raise UnpatchableBody(f"it has more than {MOST_PARTS:,} parts")
            at, ended = skip_separator(self.text, end, "]")
            if ended:
                return at

    def _message(self, at: int) -> int:
        found, end = members_at(self.text, at, ("content",))
        kind = _word(found.get("type"))
        if self.form == "responses" and kind not in ("", "message"):
            self._item(found, kind, at - self.base, end - self.base)
            return end
        role = _word(found.get("role"))
        if self.form == "chat" and role == "tool":
            self._result(found, "content", _word(found.get("tool_call_id")), at, end)
            return end
        self._read_content(found, role)
        for call in _values(found.get("tool_calls")):
            self._read_call(decisions.as_value(call.get("function")), str(call.get("id") or ""))
        return end

    def _read_content(self, found: Mapping[str, Span], role: str) -> None:
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
            raise UnpatchableBody("a message's content is neither text nor blocks")
        for one in cast("list[Span]", content):
            self._block(speaker, one)

    def _block(self, speaker: str, place: Span) -> None:
        start, end, value = place
        block = decisions.as_value(value)
        kind = str(block.get("type") or "")
        named: dict[str, Any] = {}
        inner = block.get("content")
        nested = (
            [decisions.as_value(one) for one in cast("list[object]", inner)]
            if isinstance(inner, list)
            else []
        )
        marks = sum(decisions.MARK in one for one in (block, *nested))
        if decisions.MARK in block:
            named["mark"] = self._mark(start)
        if kind == "tool_result":
            spans, _ = members_at(self.text, start)
            named["call"] = str(block.get("tool_use_id") or "")
            if "content" in spans:
                at, to, content = spans["content"]
                named["inner"] = (at - self.base, to - self.base)
                named["key"] = decisions.content_digest(content)
        elif kind == "tool_use":
            named["call"] = str(block.get("id") or "")
            named["tool"] = str(block.get("name") or "")
            self.talk.tools[named["call"]] = (named["tool"], self.text[start:end])
        if kind in decisions.TEXTS:
            kind = "text"
        self._part(speaker, kind, start - self.base, end - self.base, block, marks=marks, **named)

    def _mark(self, start: int) -> tuple[int, int]:
        """The member that is a cache mark, with the comma that goes with it."""
        spans, _ = members_at(self.text, start)
        at, end, _ = spans[decisions.MARK]
        names = list(spans)
        n = names.index(decisions.MARK)
        if n:
            begin = spans[names[n - 1]][1]
        else:
            begin = start + 1
            if len(names) > 1:
                end = skip_separator(self.text, end, "}")[0]
        del at
        return begin - self.base, end - self.base

    def _item(self, found: Mapping[str, Span], kind: str, start: int, end: int) -> None:
        if kind in _OUTPUTS:
            self._result(
                found, "output", _word(found.get("call_id")), start + self.base, end + self.base
            )
        elif kind in _CALLS:
            value = {name: one[2] for name, one in found.items()}
            self._read_call(value, _word(found.get("call_id")))
        else:
            role = "system" if kind == "item_reference" else "assistant"
            sort = "thinking" if kind == "reasoning" else kind
            value = {name: _plain(name, one) for name, one in found.items()}
            self._part(role, sort, start, end, value)

    def _read_call(self, about: Mapping[str, Any], ident: str) -> None:
        tool = str(about.get("name") or "")
        given = about.get("arguments", about.get("input"))
        self.talk.tools[ident] = (tool, str(given))
        value = {"id": ident, "name": tool, "given": given_value(given)}
        self._part("assistant", "tool_use", 0, 0, value, call=ident, tool=tool)

    def _result(
        self, found: Mapping[str, Span], member: str, call: str, start: int, end: int
    ) -> None:
        named: dict[str, Any] = {"call": call}
        content: object = None
        if member in found:
            at, to, _ = found[member]
            content = _plain(member, found[member])
            named["inner"] = (at - self.base, to - self.base)
            named["key"] = decisions.content_digest(content)
        value = {"type": "tool_result", "tool_use_id": call, "content": content}
        self._part("user", "tool_result", start - self.base, end - self.base, value, **named)

    def _part(
        self, role: str, kind: str, start: int, end: int, value: object, **named: Any
    ) -> None:
        parts = self.talk.parts
        before = parts[-1].chain if parts else self.seed
        if role == "system" or kind in THINKING:
            after = before
        else:
            after = decisions.extend_chain(before, role, decisions.digest(value))
        message = len(self.talk.starts) - 1
        parts.append(ScannedPart(role, kind, max(0, message), start, end, after, **named))


def given_value(arguments: object) -> object:
    """What a call was given: written as a text, it is the value that counts."""
    if isinstance(arguments, str):
        try:
            return parse(arguments)
        except InvalidMessage:
            return arguments
    return arguments


def _plain(member: str, place: Span) -> object:
    """A member's value; of contents the places of their parts are known."""
    found: object = place[2]
    if member == "content" and isinstance(found, list):
        return [one[2] for one in cast("list[Span]", found)]
    return found


def _word(place: Span | None) -> str:
    return place[2] if place is not None and isinstance(place[2], str) else ""


def _values(place: Span | None) -> list[dict[str, Any]]:
    found = place[2] if place is not None else None
    return (
        [decisions.as_value(one) for one in cast("list[object]", found)]
        if isinstance(found, list)
        else []
    )
