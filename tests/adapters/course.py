"""A recorded course, played through a real agent of any framework against the simulated provider.

The provider answers with the steps of the trace, whatever it is sent; the agent's tools return
what the trace has. What was spent is the provider's own bill. At the end it asks for facts: those
that the last request does not hold, the model looks up by calling `read_back` with the references
it sees, through the framework's own tool loop. Nothing here knows how a list is fitted.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reverie import testing

REFERENCE = re.compile(r"\br:[0-9a-z]{4,}")
DONE = "That is all."
SUMMARY = "Summary of the work so far. " * 60  # 1,700 characters, as long as real ones are short


def trace(shared: Path, calls: int, seed: int = 7) -> dict[str, Any]:
    folder = str(shared / "bench" / "context")
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return importlib.import_module("traces").synthetic(seed, calls)


@dataclass
class Course:
    """One trace under way; the provider and the agent's tools both take from it."""

    steps: list[dict[str, Any]]
    system: str
    tools: list[dict[str, Any]]
    facts: list[str]
    at: int = 0
    asking: list[str] = field(default_factory=list)  # facts that are asked for now
    bodies: list[str] = field(default_factory=list)  # of the requests that asked
    results: dict[str, str] = field(default_factory=dict)
    main: int = 0  # requests of the course itself
    others: int = 0  # requests beside it: summaries

    @classmethod
    def of(cls, given: dict[str, Any]) -> Course:
        blocks = (b for s in given["steps"] if s["role"] == "tool" for b in s["blocks"])
        results = {b["tool_use_id"]: b["content"] for b in blocks}
        return cls(given["steps"], given["system"], given["tools"], given["facts"], results=results)

    @property
    def users(self) -> list[str]:
        return [s["blocks"][0]["text"] for s in self.steps if s["role"] == "user"]

    def late_facts(self, count: int) -> list[str]:
        """Errors that old results told: nobody but a tool said them."""
        found = [
            line.split()[1]
            for text in self.results.values()
            for line in text.splitlines()
            if line.startswith("AssertionError: ")
        ]
        return found[:count]

    def answer(self, body: Any) -> Any:
        """What the model says next."""
        if not body.get("tools"):
            self.others += 1
            return SUMMARY
        if self.asking:
            return self._looked_up(body)
        self.main += 1
        while self.at < len(self.steps) and self.steps[self.at]["role"] != "assistant":
            self.at += 1
        if self.at >= len(self.steps):
            return DONE
        said = self.steps[self.at]["blocks"]
        self.at += 1
        return said

    def _looked_up(self, body: Any) -> Any:
        text = json.dumps(body, ensure_ascii=False)
        self.bodies.append(text)
        missing = [fact for fact in self.asking if fact not in text]
        named = {tool.get("name") for tool in body["tools"]}
        if len(self.bodies) > 1 or not missing or "read_back" not in named:
            self.asking = []
            return DONE
        references = sorted(set(REFERENCE.findall(text)))
        return [
            testing.call("read_back", f"toolu_back_{n}_{m}", reference=name, query=fact)
            for n, fact in enumerate(missing)
            for m, name in enumerate(references)
        ]

    def run_tool(self, call: str) -> str:
        return self.results[call]


@dataclass(frozen=True)
class Played:
    """What a course came to."""

    cost: float  # the provider's bill, up to the last turn of the trace
    hit_rate: float
    peak: int  # tokens of the largest request
    requests: int
    others: int
    lost: list[str]  # facts that were neither in the last request nor read back
    refused: list[str]


Ask = Callable[[str], Awaitable[Any]]


async def play(
    given: dict[str, Any], begin: Callable[[Course, testing.Provider], Ask], facts: int = 8
) -> Played:
    """Play a trace. `begin` makes an agent and gives what runs one turn of it."""
    course = Course.of(given)
    wanted = [*course.facts[:facts], *course.late_facts(facts)]
    with testing.provider(course.answer) as provider:
        ask = begin(course, provider)
        refused: list[str] = []
        try:
            for text in course.users:
                await ask(text)
        except Exception as error:  # noqa: BLE001 - a peer may fail, which is its result
            refused.append(f"{type(error).__name__}: {error}")
        bill = provider.bill
        peak = max((one.tokens for one in provider.requests), default=0)
        if not refused:
            course.asking = list(wanted)
            await ask("What were the keys, the files and the errors?")
        refused += [one.error for one in provider.requests if one.status != 200]
    seen = "\n".join(course.bodies)
    lost = [fact for fact in wanted if fact not in seen]
    return Played(bill.cost, bill.hit_rate, peak, course.main, course.others, lost, refused)
