"""Answers of the Messages API, put together from the lines themselves.

`MessagesAssembler` takes the events of a stream, `read` an answer in one piece; both end in the
same `Reply`. Blocks and deltas of unknown types are kept (see `grow`), tool inputs keep
the text the model wrote, and blocks without words, which the API would not take back, are
left out. No `Reply` exists before the last event has come and every block was closed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from reverie.errors import InvalidMessage
from reverie.light import dataclass
from reverie.transcript.blocks import Block, Json, Object, block, elements, members, parse
from reverie.transcript.messages import usage_of
from reverie.wire.failures import from_event
from reverie.wire.reply import Delta, Reply
from reverie.wire.stream import CUT, PartialObject, cut_call, input_text, was_cut

PROVIDER = "anthropic"


@dataclass(slots=True)
class MessagesAssembler:
    """An answer on its way."""

    where: str
    message: dict[str, str] = field(default_factory=dict[str, str])
    usage: Object = field(default_factory=dict[str, Json])
    blocks: dict[int, PartialObject] = field(default_factory=dict[int, PartialObject])
    inputs: dict[int, list[str]] = field(default_factory=dict[int, list[str]])
    closed: set[int] = field(default_factory=set[int])
    done: bool = False

    def take(self, data: str) -> Delta | None:
        """One event's data; what of it people may watch. InvalidMessage if it makes no sense."""
        event = members(data)
        kind = event["type"][1] if "type" in event else None
        match kind:
            case "message_start":
                self._head(_texts(_raw(event, "message")))
            case "content_block_start":
                self.blocks[_index(event)] = PartialObject.of(_raw(event, "content_block"))
            case "content_block_delta":
                return self._delta(_index(event), _raw(event, "delta"))
            case "content_block_stop":
                self.closed.add(_index(event))
            case "message_delta":
                self._head(_texts(_raw(event, "delta")))
                self._head({k: raw for k, (raw, _) in event.items() if k not in ("type", "delta")})
            case "message_stop":
                self.done = True
            case "error":
                raise from_event(parse(data), self.where)
            case _:  # pings, and what is not known yet
                pass
        return None

    def _head(self, texts: Mapping[str, str]) -> None:
        for key, raw in texts.items():
            if key == "usage":
                value = parse(raw)
                if isinstance(value, dict):
                    self.usage.update({k: v for k, v in value.items() if v is not None})
            elif raw != "null" or key not in self.message:
                self.message[key] = raw

    def _delta(self, at: int, raw: str) -> Delta | None:
        growing = self.blocks.get(at)
        if growing is None or at in self.closed:
            raise InvalidMessage("a delta belongs to no open block")
        delta = members(raw)
        kind = str(delta["type"][1]) if "type" in delta else ""
        if kind == "input_json_delta":
            piece = delta["partial_json"][1] if "partial_json" in delta else ""
            self.inputs.setdefault(at, []).append(str(piece))
            return Delta("tool", str(piece))
        if kind == "citations_delta" and "citation" in delta:
            growing.add("citations", f"[{delta['citation'][0]}]")
            return None
        growing.take(raw, leave=("type",))
        if kind == "text_delta" and "text" in delta:
            return Delta("text", str(delta["text"][1]))
        if kind == "thinking_delta" and "thinking" in delta:
            return Delta("thinking", str(delta["thinking"][1]))
        return None

    def ended(self) -> bool:
        return False  # without its last event nothing is known to be whole

    def read(self, text: str) -> Reply:
        return read(text)

    def reply(self) -> Reply:
        """The whole answer; InvalidMessage where it is not whole."""
        if not self.done or not self.message or self.closed != set(self.blocks):
            raise InvalidMessage("a block was never closed")
        stop = _string(self.message, "stop_reason")
        blocks = [self._block(at, stop) for at in sorted(self.blocks)]
        return reply_of(self.message, self.usage, blocks)

    def _block(self, at: int, stop_reason: str) -> Block:
        growing = self.blocks[at]
        written = "".join(self.inputs.get(at, ()))
        if at == max(self.blocks) and "input" in growing.parts and was_cut(written, stop_reason):
            return cut_call(str(parse(growing.member("name") or '""')), written)
        if written.strip():
            growing.parts["input"] = [input_text(written)]
        return block(growing.text())


def read(text: str) -> Reply:
    """An answer that came in one piece; InvalidMessage where it is none."""
    message = _texts(text)
    if "content" not in message:
        raise InvalidMessage("it has no content")
    usage = parse(message.get("usage", "null"))
    blocks = [block(raw) for raw, _ in elements(message["content"])]
    if blocks and blocks[-1].type == "tool_use" and _string(message, "stop_reason") in CUT:
        # nothing tells whether its input is whole
        written = members(blocks[-1].raw).get("input", ("", None))[0]
        blocks[-1] = cut_call(blocks[-1].get("name"), written)
    return reply_of(message, usage if isinstance(usage, dict) else {}, blocks)


def reply_of(message: Mapping[str, str], usage: Object, blocks: Sequence[Block]) -> Reply:
    """An answer from its members' texts."""
    managed = message.get("context_management", "null")
    edits = members(managed).get("applied_edits") if managed != "null" else None
    changed = message.get("input_transformations", "null")
    native = "" if changed in ("null", "[]") else '{"input_transformations":' + changed + "}"
    return Reply(
        blocks=tuple(b for b in blocks if not b.blank),
        usage=usage_of(_last_round(usage)) if usage else None,
        stop_reason=_string(message, "stop_reason"),
        model=_string(message, "model"),
        provider=PROVIDER,
        message_id=_string(message, "id"),
        native=native,
        applied_edits=edits[0] if edits and edits[0] != "null" else "[]",
        diagnostics=message.get("diagnostics", "null"),
    )


def _last_round(usage: Object) -> Object:
    """Where the server went several rounds, the last one is the context."""
    rounds = usage.get("iterations")
    for one in reversed(rounds if isinstance(rounds, list) else []):
        if isinstance(one, dict) and one.get("type") == "message":
            return one
    return usage


def _texts(raw: str) -> dict[str, str]:
    return {key: text for key, (text, _) in members(raw).items()}


def _raw(event: Mapping[str, tuple[str, Json]], key: str) -> str:
    if key not in event:
        raise InvalidMessage(f"an event has no {key}")
    return event[key][0]


def _index(event: Mapping[str, tuple[str, Json]]) -> int:
    found = event["index"][1] if "index" in event else None
    if not isinstance(found, int):
        raise InvalidMessage("an event has no index")
    return found


def _string(texts: Mapping[str, str], key: str) -> str:
    value = parse(texts[key]) if key in texts else None
    return value if isinstance(value, str) else ""
