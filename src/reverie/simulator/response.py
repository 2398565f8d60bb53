"""A whole response of the Messages API, with its blocks as they were made.

`text()` is the JSON a client receives; blocks go into it byte for byte. A value once
made is never changed; how it travels (whole, or as events) is the wire's business.
"""

from __future__ import annotations

from dataclasses import dataclass

from reverie.simulator.cache import Charge
from reverie.transcript.blocks import Block, Object, dump, estimate, joined, members


@dataclass(frozen=True, slots=True)
class SimulatedResponse:
    """What the model said and what it is billed as."""

    id: str
    model: str
    content: tuple[Block, ...]
    stop_reason: str
    usage: Object
    extra: Object  # context_management, diagnostics, input_transformations, where asked for

    @property
    def output(self) -> int:
        found = self.usage.get("output_tokens")
        return found if isinstance(found, int) else 0

    def head(self, *, content: str = "[]", stop: str | None = None) -> dict[str, str]:
        """The members' texts, in the API's order."""
        parts = {
            "id": dump(self.id),
            "type": '"message"',
            "role": '"assistant"',
            "model": dump(self.model),
            "content": content,
            "stop_reason": dump(stop),
            "stop_sequence": "null",
            "usage": dump(self.usage),
        }
        return parts | {k: dump(v) for k, v in self.extra.items()}

    def input_of(self, block: Block) -> str:
        """A call's input as far as it was written: the output limit cuts the last one short."""
        whole = members(block.raw)["input"][0]
        cut = self.stop_reason == "max_tokens" and block is self.content[-1]
        return whole[:-1] if cut else whole

    def text(self) -> str:
        content = f"[{','.join(b.raw for b in self.content)}]"
        return joined(self.head(content=content, stop=self.stop_reason))


def usage_of(charge: Charge, output: int, thinking: int, *, compacting: bool) -> Object:
    """Usage exactly as the API reports it; a compaction's own tokens stand apart."""
    counts = _counts(charge, output)
    if compacting:
        entry: Object = {"type": "compaction", **counts}
        return {**_counts(Charge(), 0), "service_tier": "standard", "iterations": [entry]}
    details: Object = {"output_tokens_details": {"thinking_tokens": thinking}}
    return {**counts, **details, "service_tier": "standard"}


def _counts(charge: Charge, output: int) -> Object:
    return {
        "input_tokens": charge.plain,
        "cache_creation_input_tokens": charge.written,
        "cache_read_input_tokens": charge.read,
        "cache_creation": {
            "ephemeral_5m_input_tokens": charge.written_5m,
            "ephemeral_1h_input_tokens": charge.written_1h,
        },
        "output_tokens": output,
    }


def fitted(blocks: tuple[Block, ...], limit: int) -> tuple[tuple[Block, ...], bool]:
    """The blocks that fit into so many tokens; the last text is cut. True if all fit."""
    room = limit
    kept: list[Block] = []
    for block in blocks:
        if block.tokens <= room:
            kept.append(block)
            room -= block.tokens
            continue
        if block.type == "text" and room > 0:
            data = block.get("text").encode("utf-8", "replace")[: room * 4]
            kept.append(block.with_member("text", dump(data.decode("utf-8", "ignore"))))
        return tuple(kept), False
    return tuple(kept), True


def thinking_tokens(blocks: tuple[Block, ...]) -> int:
    return sum(estimate(b.value) for b in blocks if b.thinking)
