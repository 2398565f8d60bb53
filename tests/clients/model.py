"""A scripted model for real clients: what it does stands in the prompt, not in a counter.

A prompt names a plan, `[[plan]]`; the step is how often the assistant has spoken since. So a
rewind, a fork, a retry or a resumed session gets the answer that belongs to its history, whatever
was asked in between. A request to sum up is answered with a summary that ends the plan; a request
without tools and without a plan is one for a title.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from reverie.simulator import Given

PLAN = re.compile(r"\[\[([a-z0-9-]+)\]\]")
SUMMARY = "<analysis>all of it</analysis>\n<summary>The work went on. [[rest]]</summary>"


def said(message: Mapping[str, Any]) -> list[str]:
    """A message's own texts, not what tools gave."""
    content = message.get("content")
    if isinstance(content, str):
        return [content]
    return [str(b.get("text", "")) for b in content or () if b.get("type") == "text"]


def results(body: Mapping[str, Any]) -> list[str]:
    """What the tools gave, as the model sees it, in order."""
    found: list[str] = []
    for message in body["messages"]:
        for block in message["content"] if isinstance(message["content"], list) else ():
            if block.get("type") == "tool_result":
                content = block.get("content") or ""
                parts = (
                    [content] if isinstance(content, str) else [b.get("text", "") for b in content]
                )
                found.append("\n".join(map(str, parts)))
    return found


class Planned:
    """The answerer; `asked` are the bodies as the model saw them."""

    def __init__(self, plans: Mapping[str, Sequence[Any]]) -> None:
        self.plans = dict(plans)
        self.asked: list[dict[str, Any]] = []

    def __call__(self, body: Any) -> Given:
        self.asked.append(body)
        messages = [m for m in body["messages"] if m["role"] in ("user", "assistant")]
        step = 0
        for at in range(len(messages) - 1, -1, -1):
            message = messages[at]
            if message["role"] == "assistant":
                step += at + 1 == len(messages) or messages[at + 1]["role"] == "user"
                continue
            texts = said(message)
            if at == len(messages) - 1 and texts and asks_to_sum_up(texts[-1]):
                return SUMMARY
            named = [name for text in texts for name in PLAN.findall(text) if name in self.plans]
            if named:
                return self._step(named[-1], step, body)
        return "A title"

    def _step(self, name: str, step: int, body: dict[str, Any]) -> Given:
        plan = self.plans[name]
        found: Any = plan[step] if step < len(plan) else f"That is done ({name})."
        return cast("Given", found(body) if callable(found) else found)


def asks_to_sum_up(text: str) -> bool:
    return len(text) > 1_500 and "summary" in text.lower() and "tool" in text.lower()
