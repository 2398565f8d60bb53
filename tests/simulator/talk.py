"""Short conversations for tests: bodies, a clock that stands still, an engine."""

from __future__ import annotations

from typing import Any

from reverie.simulator import Answerer, Engine, FaultPlan, Plan, script
from reverie.testing import ManualClock

MODEL = "claude-opus-5-5"
BINDING = {"anthropic-beta": "thinking-binding-controls-2026-08-01"}
MANAGING = {"anthropic-beta": "context-management-2025-06-27"}
COMPACTING = {"anthropic-beta": "compact-2026-09-04"}
KEY = {"x-api-key": "test-key", "anthropic-version": "2023-06-01"}

CLEAR = {
    "type": "clear_tool_uses_20250919",
    "trigger": {"type": "input_tokens", "value": 5000},
    "keep": {"type": "tool_uses", "value": 2},
}


def engine(answers: Answerer | None = None, *, faults: Plan = (), **other: Any) -> Engine:
    clock = other.pop("clock", None) or ManualClock()
    return Engine(answers or script(), clock.now, faults=FaultPlan(faults), **other)


def text(words: str, mark: str = "") -> Any:
    block: dict[str, Any] = {"type": "text", "text": words}
    return {**block, "cache_control": {"type": "ephemeral", "ttl": mark}} if mark else block


def words(number: int, tokens: int = 600) -> str:
    """So many tokens, different for each number."""
    return f"{number:08d}" * (tokens // 2)


def user(*blocks: Any) -> Any:
    return {"role": "user", "content": [text(b) if isinstance(b, str) else b for b in blocks]}


def assistant(*blocks: Any) -> Any:
    return {"role": "assistant", "content": [text(b) if isinstance(b, str) else b for b in blocks]}


def use(ident: str, name: str = "Read", **given: Any) -> Any:
    return {"type": "tool_use", "id": ident, "name": name, "input": given}


def result(ident: str, content: Any = "done") -> Any:
    return {"type": "tool_result", "tool_use_id": ident, "content": content}


def body(*messages: Any, **other: Any) -> Any:
    return {"model": MODEL, "max_tokens": 1000, "messages": list(messages), **other}


def said(outcome: Any) -> Any:
    """An answer as the message that sends it back."""
    return assistant(*(b.value for b in outcome.response.content))


def marked(message: dict[str, Any], ttl: str = "5m") -> Any:
    """The same message with a mark on its last block."""
    *rest, last = message["content"]
    control = {"type": "ephemeral", "ttl": ttl}
    return {**message, "content": [*rest, {**last, "cache_control": control}]}
