"""Rounds that a caller does not see: the model reads back, and is answered at once.

A reply that only calls our tools is a hidden round; in a mixed one our calls are taken out. What
the caller gets is one answer: all that was said, the calls that are its own, all usage. When it
sends that answer back, what really was said stands in its place again, known by the chain behind
the answer, so that the provider's cache holds. Pure, in three formats.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, cast

from reverie.interception import decisions
from reverie.interception.scan import LIST, RequestBody, ScanCache, scan_body
from reverie.light import dataclass
from reverie.transcript.blocks import dump
from reverie.wire.forms import parse_call
from reverie.wire.lists import Format

Message = dict[str, Any]
_APART = "\n\n"


@dataclass(frozen=True, slots=True)
class HiddenRound:
    """One answer of the model's: as it is sent back, and what of it is for whom."""

    said: tuple[Message, ...]  # in the form of the list
    seen: tuple[Any, ...]  # what the caller may see: blocks, messages or items
    own: tuple[Message, ...]  # calls that are ours
    others: int  # calls that are the caller's
    usage: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def is_hidden(self) -> bool:
        return bool(self.own) and not self.others


def round_of(form: Format, value: Mapping[str, Any], names: frozenset[str]) -> HiddenRound:
    """An answer in one piece."""
    usage = decisions.as_value(value.get("usage"))
    if form == "messages":
        content = _objects(value.get("content"))
        own = [b for b in content if b.get("type") == "tool_use" and b.get("name") in names]
        calls = [b for b in content if b.get("type") == "tool_use"]
        seen = [b for b in content if b not in own]
        said = ({"role": "assistant", "content": content},) if content else ()
        return HiddenRound(said, tuple(seen), tuple(own), len(calls) - len(own), usage)
    if form == "responses":
        output = _objects(value.get("output"))
        own = [i for i in output if i.get("type") == "function_call" and i.get("name") in names]
        calls = [i for i in output if str(i.get("type")).endswith("_call")]
        seen = [i for i in output if i not in own]
        return HiddenRound(tuple(output), tuple(seen), tuple(own), len(calls) - len(own), usage)
    choices = _objects(value.get("choices"))
    message = decisions.as_value(choices[0].get("message")) if choices else {}
    calls = _objects(message.get("tool_calls"))
    own = [c for c in calls if parse_call(c)[2] in names]
    said_ = {k: v for k, v in message.items() if v is not None or k == "content"}
    return HiddenRound(
        (said_,), (_without(message, own),), tuple(own), len(calls) - len(own), usage
    )


def _objects(value: object) -> list[dict[str, Any]]:
    found = cast("list[object]", value) if isinstance(value, list) else []
    return [known for one in found if (known := decisions.as_value(one))]


def _without(message: Message, own: Sequence[Message]) -> Message:
    kept = [c for c in _objects(message.get("tool_calls")) if c not in own]
    made = {k: v for k, v in message.items() if k != "tool_calls" and v is not None}
    return {**made, "tool_calls": kept} if kept else made


def results_of(form: Format, results: Sequence[Message]) -> list[Message]:
    """Results as they follow the calls in a list."""
    return [{"role": "user", "content": list(results)}] if form == "messages" else list(results)


# --- what the caller gets


def seen_of(form: Format, rounds: Sequence[HiddenRound]) -> list[Message]:
    """All that a caller may see of some rounds, as it will send it back."""
    if form == "responses":
        return [item for one in rounds for item in one.seen]
    if form == "messages":
        last = rounds[-1].seen
        words = [b for one in rounds[:-1] for b in one.seen if b.get("type") == "text"]
        content = [*words, *last]
        return [{"role": "assistant", "content": content}] if content else []
    texts = [text for one in rounds if (text := _text(one))]
    last = decisions.as_value(rounds[-1].seen[0])
    content = _APART.join(texts)
    return [{**last, "role": "assistant", "content": content or last.get("content")}]


def _text(one: HiddenRound) -> str:
    found = decisions.as_value(one.seen[0]).get("content") if one.seen else ""
    return found if isinstance(found, str) else ""


def whole(form: Format, value: Mapping[str, Any], rounds: Sequence[HiddenRound]) -> dict[str, Any]:
    """The answer for the caller, made of the last one."""
    seen = seen_of(form, rounds)
    usage = sum_usage([one.usage for one in rounds])
    made = {**value, **({"usage": usage} if usage else {})}
    hides = rounds[-1].is_hidden  # and there were too many of them
    if form == "messages":
        content: list[Any] = seen[0]["content"] if seen else []
        return {**made, "content": content, **({"stop_reason": "end_turn"} if hides else {})}
    if form == "responses":
        return {**made, "output": seen}
    choices = _objects(value.get("choices"))
    message = {**decisions.as_value(choices[0].get("message")), **seen[0]}
    if "tool_calls" not in seen[0]:
        message.pop("tool_calls", None)
    first = {**choices[0], "message": message, **({"finish_reason": "stop"} if hides else {})}
    return {**made, "choices": [first, *choices[1:]]}


def sum_usage(usages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """All usage together: what is counted is added up, all else is the last one's."""
    out: dict[str, Any] = {}
    for usage in usages:
        for name, value in usage.items():
            before: Any = out.get(name)
            inner = decisions.as_value(value)
            if inner and isinstance(before, dict):
                out[name] = sum_usage([cast("dict[str, Any]", before), inner])
            elif _is_count(cast("object", value)) and _is_count(before):
                out[name] = before + value
            elif value is not None or name not in out:
                out[name] = value
    return out


def _is_count(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


# --- what stands in its place


@dataclass(frozen=True, slots=True)
class FullExchange:
    """What really was said where a caller has one answer."""

    count: int  # messages of the caller's that it stands for
    messages: tuple[Message, ...]
    results: tuple[Message, ...]  # that go with the results of the caller's own calls


class HiddenRounds:
    """The truth behind answers, by the chain behind them; the oldest go first."""

    def __init__(self, most: int = 10_000) -> None:
        self._most = most
        self._known: OrderedDict[bytes, FullExchange] = OrderedDict()

    def keep(
        self,
        body: RequestBody,
        rounds: Sequence[HiddenRound],
        between: Sequence[Sequence[Message]],
        results: Sequence[Message],
        seed: bytes,
    ) -> None:
        """Keep what was said; `between` are the results behind each hidden round."""
        form = body.form
        seen = seen_of(form, rounds)
        if not seen or (len(rounds) == 1 and not rounds[0].own):
            return
        before = body.parts[-1].chain if body.parts else seed
        behind = scan_body(dump({LIST[form]: seen}), form, before, "", ScanCache()).parts[-1].chain
        messages: list[Message] = []
        for n, one in enumerate(rounds):
            messages += one.said
            if n < len(between):
                messages += results_of(form, between[n])
        self._known[behind] = FullExchange(len(seen), tuple(messages), tuple(results))
        while len(self._known) > self._most:
            self._known.popitem(last=False)

    def restored(self, body: RequestBody, messages: Sequence[Message]) -> list[Message]:
        """The list with what really was said in it."""
        out: list[Message] = []
        waiting: tuple[Message, ...] = ()
        for at, message in enumerate(messages):
            out.append(_with_results(message, waiting))
            waiting = ()
            truth = self._known.get(_behind(body, at)) if self._known else None
            if truth is None:
                continue
            del out[len(out) - min(truth.count, len(out)) :]
            out += truth.messages
            if body.form == "messages":
                waiting = truth.results
            else:
                out += truth.results
        return out


def _with_results(message: Message, results: Sequence[Message]) -> Message:
    """A message that answers calls, with the results of ours before its own."""
    if not results:
        return message
    content = message.get("content")
    parts = _objects(content) or [{"type": "text", "text": content}]
    return {**message, "content": [*results, *parts]}


def _behind(body: RequestBody, message: int) -> bytes:
    firsts = body.talk.firsts
    end = firsts[message + 1] if message + 1 < len(firsts) else len(body.parts)
    return body.parts[end - 1].chain if end else b""
