"""A stream for the caller, made of the streams of several rounds.

What the model says passes as it comes; only calls of our tools are held back, and the end, until
it is known whether another round follows. Numbers of blocks and items run on from round to round.
A stream that breaks off in any round ends for the caller without an end; one that makes no sense is
a `BadStream`. Pure: bytes in, bytes out.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

from reverie.errors import InvalidMessage
from reverie.interception import decisions
from reverie.interception.hidden_rounds import HiddenRound, round_of, sum_usage
from reverie.transcript.blocks import dump, parse
from reverie.wire.lists import Format
from reverie.wire.messages import MessagesAssembler
from reverie.wire.stream import BadStream, EventParser, ServerEvent

Value = dict[str, Any]
DONE = "[DONE]"
_APART = "\n\n"


class JoinedStream(Protocol):
    """A stream of one format, on its way."""

    def feed(self, piece: bytes) -> bytes:
        """Bytes of a round's stream; gives what the caller gets now."""
        ...

    def ended(self) -> HiddenRound | None:
        """The round, once its stream has ended; None where it broke off."""
        ...

    def again(self) -> None:
        """Another round begins."""
        ...

    def end(self, rounds: list[HiddenRound]) -> bytes:
        """The end of it all."""
        ...


def joined_stream(form: Format, names: frozenset[str]) -> JoinedStream:
    if form == "messages":
        return MessagesStream(names)
    return ChatStream(names) if form == "chat" else ResponsesStream(names)


def event(name: str, value: object) -> bytes:
    head = f"event: {name}\n" if name else ""
    text = f"{head}data: {value if value == DONE else dump(value)}\n\n"
    return text.encode("utf-8", "replace")


class _Stream(ABC):
    """What the three have in common."""

    def __init__(self, names: frozenset[str]) -> None:
        self.names = names
        self.round = 0
        self.events = EventParser()

    def feed(self, piece: bytes) -> bytes:
        with _sense():
            return b"".join(out for one in self.events.feed(piece) for out in self._consume(one))

    def ended(self) -> HiddenRound | None:
        with _sense():
            return self._finish_round()

    def end(self, rounds: list[HiddenRound]) -> bytes:
        with _sense():
            return self._end(rounds)

    @abstractmethod
    def _consume(self, one: ServerEvent) -> Iterator[bytes]: ...

    @abstractmethod
    def _finish_round(self) -> HiddenRound | None: ...

    @abstractmethod
    def _end(self, rounds: list[HiddenRound]) -> bytes: ...

    def again(self) -> None:
        self.round += 1
        self.events = EventParser()


@contextmanager
def _sense() -> Generator[None]:
    """What no provider would send is a fault of the stream, wherever it is noticed."""
    try:
        yield
    except (InvalidMessage, TypeError, KeyError, AttributeError, ValueError) as error:
        raise BadStream(f"an event of the stream makes no sense: {error}") from error


class MessagesStream(_Stream):
    """Events of the Messages API."""

    def __init__(self, names: frozenset[str]) -> None:
        super().__init__(names)
        self.next = 0  # the number of the caller's next block
        self._begin()

    def _begin(self) -> None:
        self.taken = MessagesAssembler("the provider's stream")
        self.places: dict[int, int] = {}
        self.last: Value = {}

    def again(self) -> None:
        super().again()
        self._begin()

    def _consume(self, one: ServerEvent) -> Iterator[bytes]:
        value = decisions.as_value(parse(one.data))
        kind = str(value.get("type"))
        if kind == "error":  # the caller's own client knows what to do about it
            yield event(kind, value)
            return
        self.taken.take(one.data)
        if kind == "message_start":
            if self.round == 0:
                yield event(kind, value)
        elif kind == "content_block_start":
            block = decisions.as_value(value.get("content_block"))
            if not (block.get("type") == "tool_use" and block.get("name") in self.names):
                self.places[value["index"]] = self.next
                self.next += 1
                yield event(kind, {**value, "index": self.places[value["index"]]})
        elif kind in ("content_block_delta", "content_block_stop"):
            if value["index"] in self.places:
                yield event(kind, {**value, "index": self.places[value["index"]]})
        elif kind == "message_delta":
            self.last = value
        elif kind != "message_stop":
            yield event(kind, value)

    def _finish_round(self) -> HiddenRound | None:
        if not self.taken.done:
            return None
        content = [block.value for block in self.taken.reply().blocks]
        return round_of("messages", {"content": content, "usage": self.taken.usage}, self.names)

    def _end(self, rounds: list[HiddenRound]) -> bytes:
        delta = {**decisions.as_value(self.last.get("delta"))}
        if rounds[-1].is_hidden:
            delta["stop_reason"] = "end_turn"
        usage = sum_usage([one.usage for one in rounds])
        value = {**self.last, "delta": delta, "usage": usage}
        return event("message_delta", value) + event("message_stop", {"type": "message_stop"})


class ChatStream(_Stream):
    """Chunks of chat completions."""

    def __init__(self, names: frozenset[str]) -> None:
        super().__init__(names)
        self.next = 0
        self.first: Value = {}
        self.spoken = False
        self._begin()

    def _begin(self) -> None:
        self.places: dict[int, int] = {}
        self.calls: dict[int, Value] = {}
        self.text: list[str] = []
        self.finish: Value = {}
        self.usage: Value = {}
        self.counted: Value = {}
        self.done = False

    def again(self) -> None:
        super().again()
        self._begin()

    def _consume(self, one: ServerEvent) -> Iterator[bytes]:
        if one.data.strip() == DONE:
            self.done = True
            return
        value = decisions.as_value(parse(one.data))
        self.first = self.first or value
        if value.get("usage"):
            self.usage, self.counted = decisions.as_value(value["usage"]), value
        choices = value.get("choices")
        if not choices:
            return
        choice = decisions.as_value(choices[0])
        delta = {**decisions.as_value(choice.get("delta"))}
        if self.round:
            delta.pop("role", None)
        calls = self._calls(delta)
        text = delta.get("content")
        if isinstance(text, str) and text:
            if self.round and self.spoken and not self.text:
                delta["content"] = _APART + text
            self.text.append(text)
            self.spoken = True
        finish = choice.get("finish_reason")
        if finish is not None:
            self.finish = {**value, "choices": [{**choice, "delta": {}}]}
        if calls or delta:
            made = {**delta, **({"tool_calls": calls} if calls else {})}
            yield event("", self._as_first(value, {**choice, "delta": made, "finish_reason": None}))

    def _as_first(self, value: Value, choice: Value) -> Value:
        made = {k: v for k, v in value.items() if k != "usage"}
        return {**made, "id": self.first.get("id"), "choices": [choice]}

    def _calls(self, delta: Value) -> list[Value]:
        """The caller's own calls in a delta; all of them are put together here."""
        out: list[Value] = []
        for call in delta.pop("tool_calls", None) or ():
            at = call.get("index", 0)
            about = decisions.as_value(call.get("function"))
            if at not in self.calls:
                start = {"name": about.get("name", ""), "arguments": ""}
                self.calls[at] = {"id": call.get("id"), "type": "function", "function": start}
                if start["name"] not in self.names:
                    self.places[at] = self.next
                    self.next += 1
            self.calls[at]["function"]["arguments"] += about.get("arguments") or ""
            if at in self.places:
                out.append({**call, "index": self.places[at]})
        return out

    def _finish_round(self) -> HiddenRound | None:
        if not (self.done or self.finish):
            return None
        message: Value = {"role": "assistant", "content": "".join(self.text) or None}
        if self.calls:
            message["tool_calls"] = [self.calls[at] for at in sorted(self.calls)]
        found = {"choices": [{"message": message}], "usage": self.usage}
        return round_of("chat", found, self.names)

    def _end(self, rounds: list[HiddenRound]) -> bytes:
        out = b""
        if self.finish:
            choice = decisions.as_value(self.finish["choices"][0])
            if rounds[-1].is_hidden:
                choice = {**choice, "finish_reason": "stop"}
            out += event("", self._as_first(self.finish, choice))
        usage = sum_usage([one.usage for one in rounds])
        if usage:
            out += event(
                "", {**self.counted, "id": self.first.get("id"), "choices": [], "usage": usage}
            )
        return out + event("", DONE) if self.done else out


class ResponsesStream(_Stream):
    """Events of the responses API."""

    def __init__(self, names: frozenset[str]) -> None:
        super().__init__(names)
        self.next = 0
        self.number = 0
        self.id: object = None
        self._begin()

    def _begin(self) -> None:
        self.places: dict[int, int] = {}
        self.hides: set[int] = set()
        self.last: tuple[str, Value] = ("", {})

    def again(self) -> None:
        super().again()
        self._begin()

    def _consume(self, one: ServerEvent) -> Iterator[bytes]:
        value = decisions.as_value(parse(one.data))
        kind = str(value.get("type"))
        if kind in ("response.created", "response.in_progress", "response.queued"):
            if self.round == 0:
                self.id = decisions.as_value(value.get("response")).get("id")
                yield self._numbered_event(kind, value)
        elif kind in ("response.completed", "response.incomplete"):
            self.last = (kind, value)
        elif "output_index" not in value:
            yield self._numbered_event(kind, value)
        else:
            at = value["output_index"]
            item = decisions.as_value(value.get("item"))
            if item.get("type") == "function_call" and item.get("name") in self.names:
                self.hides.add(at)
            if at not in self.hides:
                if at not in self.places:
                    self.places[at] = self.next
                    self.next += 1
                yield self._numbered_event(kind, {**value, "output_index": self.places[at]})

    def _numbered_event(self, kind: str, value: Mapping[str, Any]) -> bytes:
        made = {**value, "sequence_number": self.number} if "sequence_number" in value else value
        self.number += 1
        return event(kind, made)

    def _finish_round(self) -> HiddenRound | None:
        response = decisions.as_value(self.last[1].get("response"))
        return round_of("responses", response, self.names) if self.last[0] else None

    def _end(self, rounds: list[HiddenRound]) -> bytes:
        kind, value = self.last
        response = {
            **decisions.as_value(value.get("response")),
            "id": self.id or decisions.as_value(value.get("response")).get("id"),
            "output": [item for one in rounds for item in one.seen],
            "usage": sum_usage([one.usage for one in rounds]),
        }
        return self._numbered_event(kind, {**value, "response": response})
