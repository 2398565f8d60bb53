"""The head of a request: what a caller wants it to carry besides the conversation.

A resumed session sends the head that was recorded; only a model asked for anew and tools that no
longer exist change it, and both are announced.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from reverie.transcript.blocks import dump, elements
from reverie.transcript.records import HeadSet

Content = str | Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Head:
    """What a caller wants a request to carry besides the conversation."""

    model: str = ""
    system: Content = ""
    tools: Sequence[Mapping[str, Any]] = ()
    context: Content = ""
    options: Mapping[str, Any] | None = None

    def record(self, reason: str = "") -> HeadSet:
        return HeadSet(
            self.model,
            _array(self.system),
            dump(list(self.tools)),
            _array(self.context),
            dump(dict(self.options or {})),
            reason,
        )


def _array(content: Content) -> str:
    if isinstance(content, str):
        return dump([{"type": "text", "text": content}] if content else [])
    return dump(list(content))


def resumed_head(recorded: HeadSet, wanted: Head) -> HeadSet | None:
    """A resumed session sends what was recorded, but for a model that was asked for anew
    and for tools that no longer exist."""
    reasons: list[str] = []
    head = recorded
    if wanted.model and wanted.model != recorded.model:
        head, reasons = replace(head, model=wanted.model), ["model"]
    if wanted.tools:
        asked = wanted.record()
        if not _tool_names(recorded.tools) <= _tool_names(asked.tools):
            head = replace(head, tools=asked.tools)
            reasons.append("tools")
    return replace(head, reason=", ".join(reasons)) if reasons else None


def _tool_names(array: str) -> set[str]:
    return {str(v.get("name")) for _, v in elements(array) if isinstance(v, dict)}
