"""Why a prompt's cache could not be used again, as the API's own diagnosis says it.

A request is remembered by digests of its parts under the id of its answer. A later one
is compared with it in the prompt's order, and the first part that differs is the reason.
An expired lifetime is no divergence. Only digests are kept, and only the newest.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from reverie.simulator.cache import Charge
from reverie.simulator.prompt import Prompt
from reverie.transcript.blocks import Object

KEPT = 2_000


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """A request's parts, each by a digest."""

    model: str
    options: bytes  # thinking and tool choice
    tools: bytes
    system: bytes
    messages: tuple[bytes, ...]
    marked: int  # tokens up to the last mark


def fingerprint(model: str, speed: str, options: bytes, prompt: Prompt) -> Fingerprint:
    def end(role: str) -> bytes:
        return next((p.chain for p in reversed(prompt.parts) if p.role == role), b"")

    heads = ("tools", "system")
    first = next((n for n, p in enumerate(prompt.parts) if p.role not in heads), 0)
    head = prompt.parts[:first]
    return Fingerprint(
        f"{model} {speed}",
        options,
        end("tools"),
        next((p.chain for p in reversed(head) if p.role == "system"), b""),
        tuple(p.chain for p in prompt.parts[first:]),
        prompt.marked,
    )


class RecentRequests:
    """The newest requests, and the comparison."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Fingerprint] = OrderedDict()

    def keep(self, message: str, found: Fingerprint) -> None:
        self._kept[message] = found
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)

    def compare(self, previous: str, now: Fingerprint, charge: Charge) -> Object | None:
        """`diagnostics` of a response, or None where nothing diverged."""
        before = self._kept.get(previous)
        if before is None:
            return {"cache_miss_reason": {"type": "previous_message_not_found"}}
        reason = _reason(before, now)
        if reason is None:
            return None
        if reason == "unavailable":
            return {"cache_miss_reason": {"type": reason}}
        missed = max(0, before.marked - charge.read)
        return {"cache_miss_reason": {"type": reason, "cache_missed_input_tokens": missed}}


def _reason(before: Fingerprint, now: Fingerprint) -> str | None:
    if before.model != now.model:
        return "model_changed"
    if before.tools != now.tools:
        return "tools_changed"
    if before.system != now.system:
        return "system_changed"
    if before.options != now.options:
        return "unavailable"
    if now.messages[: len(before.messages)] != before.messages:
        return "messages_changed"
    return None
