"""An independent judge of what a proxy did to a conversation.

It sees the requests as the client sent them and as they arrived upstream, and shares no code
with the proxy or the simulator's cache. A prompt is cut into units: each tool, each system
block, each block of each message. Marks do not count, and a text in a string is the same as one
text block. A request follows the earlier one of its thread with which it has most in common. Where
the client's own prompt extends that one and the prompt upstream does not, or where upstream breaks
before the client does, the proxy has broken the prefix.

The price follows the provider's written rules: entries where marks stood, a look back of twenty
blocks, reading at a tenth, writing at 1.25 or 2, output at five; four bytes a token, two for
JSON; requests twenty seconds apart, each answered with 150 tokens. OpenAI-style requests have no
marks: every prefix of whole steps of 128 tokens is kept, and read at a tenth.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

APART, OUTPUT = 20.0, 150
READ, WRITE, PRICE_OUT = 0.1, {"5m": 1.25, "1h": 2.0}, 5.0
LIFETIME = {"5m": 300.0, "1h": 3600.0}
LOOK_BACK, MINIMUM, STEP = 20, 1024, 128


@dataclass(frozen=True, slots=True)
class Unit:
    """One piece of a prompt."""

    place: str  # tool, system, or a role
    value: str  # canonical JSON, no mark
    tokens: int
    kind: str = ""
    call: str = ""  # the call that a result answers
    ttl: str = ""  # of the mark it carries


@dataclass(frozen=True, slots=True)
class Seen:
    """One request, on one side of the proxy."""

    number: int
    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    units: tuple[Unit, ...] = field(default=(), compare=False)

    @property
    def session(self) -> str:
        found = self.headers.get
        for name in ("x-claude-code-session-id", "x-session-id", "session-id", "session_id"):
            if value := found(name):
                return value + "/" + (found("x-claude-code-agent-id") or "")
        return ""


def seen(number: int, path: str, headers: dict[str, str], raw: bytes | str) -> Seen:
    body = json.loads(raw)
    lowered = {name.lower(): value for name, value in headers.items()}
    return Seen(number, path.partition("?")[0], lowered, body, tuple(units_of(body)))


# --- units


def units_of(body: dict[str, Any]) -> Iterable[Unit]:
    for tool in body.get("tools") or ():
        yield _unit("tool", tool)
    for name in ("system", "instructions"):
        yield from _pieces("system", body.get(name) or ())
    said = body.get("messages", body.get("input", ()))
    for message in [{"role": "user", "content": said}] if isinstance(said, str) else said:
        yield from _message(message)


def _message(message: dict[str, Any]) -> Iterable[Unit]:
    role = str(message.get("role", message.get("type", "")))
    if "role" not in message:  # an item of the responses API
        yield _unit(role, message)
        return
    content = message.get("content")
    yield from _pieces(role, content if content is not None else ())
    for call in message.get("tool_calls") or ():
        yield _unit(role, {"type": "tool_use", **call})


def _pieces(place: str, content: Any) -> Iterable[Unit]:
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    for block in blocks:
        yield _unit(place, block)


def _bare(value: Any) -> Any:
    if isinstance(value, dict):
        found = {k: _bare(v) for k, v in value.items() if k != "cache_control" and v is not None}
        content = found.get("content")
        if isinstance(content, str) and found.get("type") == "tool_result":
            found["content"] = [{"type": "text", "text": content}]
        if found.get("is_error") is False:
            del found["is_error"]
        return found
    return [_bare(one) for one in value] if isinstance(value, list) else value


def _unit(place: str, block: dict[str, Any]) -> Unit:
    mark = block.get("cache_control") or {}
    value = json.dumps(_bare(block), sort_keys=True, ensure_ascii=False)
    kind = str(block.get("type", ""))
    call = str(block.get("tool_use_id") or block.get("call_id") or "") if "use" not in kind else ""
    ttl = str(mark.get("ttl", "5m")) if mark else ""
    return Unit(place, value, _tokens(place, block, value), kind, call, ttl)


def _tokens(place: str, block: dict[str, Any], value: str) -> int:
    json_like = place == "tool" or block.get("type") in ("tool_use", "function_call")
    return -(-len(value.encode()) // (2 if json_like else 4))


# --- breaks


@dataclass(frozen=True, slots=True)
class Break:
    """A request whose prompt does not extend the one before it upstream, though it could."""

    number: int
    before: int
    client: int  # units in common, as the client sent it
    upstream: int
    expected: int
    unit: str  # the first of the earlier prompt that did not come again

    def __str__(self) -> str:
        return (
            f"request {self.number} after {self.before}: {self.upstream} units in common upstream,"
            f" {self.expected} expected ({self.client} at the client): {self.unit[:200]}"
        )


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the judge found in one recording."""

    requests: int
    client_breaks: int
    upstream_breaks: int
    caused: tuple[Break, ...]
    most_marks: int
    lost: tuple[int, ...]  # requests that did not arrive upstream


def judge(client: Sequence[Seen], upstream: Sequence[Seen]) -> Verdict:
    """Both sides in the order of sending; a pair has the same number."""
    arrived = {one.number: one for one in upstream}
    asked = [one for one in client if _is_model_request(one)]
    breaks = {"client": 0, "upstream": 0}
    caused: list[Break] = []
    for at, one in enumerate(asked):
        before = predecessor(one, asked[:at])
        up, up_before = arrived.get(one.number), arrived.get(before.number) if before else None
        if before is None or up is None or up_before is None:
            continue
        held = common(before.units, one.units)
        up_held = common(up_before.units, up.units)
        breaks["client"] += held < len(before.units)
        breaks["upstream"] += up_held < len(up_before.units)
        expected = carried(before.units[:held], up_before.units)
        if held == len(before.units):
            expected = len(up_before.units)
        if up_held < expected:
            lost = up_before.units[up_held].value
            caused.append(Break(one.number, before.number, held, up_held, expected, lost))
    marks = max((_marks(one.body) for one in upstream), default=0)
    lost_ones = tuple(one.number for one in asked if one.number not in arrived)
    return Verdict(
        len(asked), breaks["client"], breaks["upstream"], tuple(caused), marks, lost_ones
    )


def _is_model_request(one: Seen) -> bool:
    return one.path.endswith(("/messages", "/chat/completions", "/responses"))


def _marks(body: Any) -> int:
    if isinstance(body, dict):
        return ("cache_control" in body) + sum(map(_marks, body.values()))
    return sum(map(_marks, body)) if isinstance(body, list) else 0


def common(one: Sequence[Unit], other: Sequence[Unit]) -> int:
    for n, (a, b) in enumerate(zip(one, other, strict=False)):
        if (a.place, a.value) != (b.place, b.value):
            return n
    return min(len(one), len(other))


def predecessor(one: Seen, earlier: Sequence[Seen]) -> Seen | None:
    """The earlier request of the thread that has most in common; the latest of equals.

    A prefix without a word of the assistant's proves nothing, unless the session is the same.
    """
    best: tuple[int, int] | None = None
    found: Seen | None = None
    for n, other in enumerate(earlier):
        if other.body.get("model") != one.body.get("model"):
            continue
        held = common(other.units, one.units)
        known = any(unit.place == "assistant" for unit in one.units[:held])
        same = other.session == one.session and other.session != ""
        if (known or same) and (best is None or (held, n) >= best):
            best, found = (held, n), other
    return found


def carried(client: Sequence[Unit], upstream: Sequence[Unit]) -> int:
    """How many units upstream stand for these of the client's.

    A result may have become another text, a block of ours may stand between; nothing else may.
    """
    at = 0
    for unit in client:
        found = next((n for n in range(at, len(upstream)) if _stands_for(unit, upstream[n])), None)
        if found is None:
            return at
        at = found + 1
    return at


def _stands_for(unit: Unit, other: Unit) -> bool:
    if unit.place != other.place:
        return False
    return unit.value == other.value or (bool(unit.call) and unit.call == other.call)


# --- price


@dataclass(slots=True)
class Price:
    """A cache of one's own, billed request by request."""

    now: float = 0.0
    cost: float = 0.0
    tokens: int = 0
    entries: dict[str, tuple[float, float]] = field(default_factory=dict)

    def ask(self, one: Seen, output: int = OUTPUT) -> float:
        before = self.cost
        self.now += APART
        self.tokens += sum(unit.tokens for unit in one.units)
        marked = "messages" in one.body and one.path.endswith("/messages")
        self.cost += self._marked(one) if marked else self._automatic(one)
        self.cost += output * PRICE_OUT
        return self.cost - before

    def _live(self, key: str) -> bool:
        return key in self.entries and self.entries[key][0] >= self.now

    def _keep(self, key: str, lifetime: float) -> None:
        self.entries[key] = (self.now + lifetime, lifetime)

    def _marked(self, one: Seen) -> float:
        chain, ends = _chained(str(one.body.get("model")), one.units)
        marks = [(n, u.ttl) for n, u in enumerate(one.units) if u.ttl]
        if not marks and one.body.get("cache_control") and one.units:
            marks = [(len(one.units) - 1, "5m")]
        marks = [(n, ttl) for n, ttl in marks if ends[n] >= MINIMUM]
        hit = max(
            (j for n, _ in marks for j in range(n, max(-1, n - LOOK_BACK), -1)
             if self._live(chain[j])),
            default=-1,
        )  # fmt: skip
        read = done = ends[hit] if hit >= 0 else 0
        cost = read * READ
        for n, ttl in marks:
            if n > hit:
                cost += (ends[n] - done) * WRITE[ttl]
                done = ends[n]
                self._keep(chain[n], LIFETIME[ttl])
        for n in range(hit + 1):
            if self._live(chain[n]):
                self._keep(chain[n], self.entries[chain[n]][1])
        return cost + ((ends[-1] if ends else 0) - done)

    def _automatic(self, one: Seen) -> float:
        text = "\0".join(f"{u.place} {u.value}" for u in one.units)
        total = sum(unit.tokens for unit in one.units)
        width = max(1, len(text) // max(1, total))
        model, read = str(one.body.get("model")), 0
        running = hashlib.sha256(model.encode())
        unbroken = True
        for step in range(STEP, total + 1, STEP):
            running.update(text[(step - STEP) * width : step * width].encode())
            key = running.hexdigest()
            unbroken = unbroken and self._live(key)
            if unbroken and step >= MINIMUM:
                read = step
            self._keep(key, LIFETIME["5m"])
        return read * READ + (total - read)


def _chained(model: str, units: Sequence[Unit]) -> tuple[list[str], list[int]]:
    chain: list[str] = []
    ends: list[int] = []
    last, end = model, 0
    for unit in units:
        last = hashlib.sha256(f"{last}\0{unit.place}\0{unit.value}".encode()).hexdigest()
        end += unit.tokens
        chain.append(last)
        ends.append(end)
    return chain, ends


def price(requests: Iterable[Seen]) -> Price:
    """What these requests cost, asked one after another."""
    found = Price()
    for one in requests:
        if _is_model_request(one):
            found.ask(one)
    return found
