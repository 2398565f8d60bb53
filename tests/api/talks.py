"""Loops of callers' own against the simulated provider, in every way a client can be had."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

import anthropic
import openai

from reverie.simulator import Engine, call, serving
from reverie.transcript import Object, dump
from tests.simulator.talk import engine

MODEL = {"messages": "claude-opus-5-5", "chat": "gpt-5.6", "responses": "gpt-5.6"}
FORMS = ("messages", "chat", "responses")
SCHEMA: Any = {"type": "object", "properties": {"n": {"type": "integer"}}}
TOOLS: dict[str, list[Any]] = {
    "messages": [{"name": "run", "description": "runs", "input_schema": SCHEMA}],
    "chat": [{"type": "function", "function": {"name": "run", "parameters": SCHEMA}}],
    "responses": [{"type": "function", "name": "run", "parameters": SCHEMA, "strict": False}],
}
LEARNED = """<memory file="feedback_linter.md">
---
name: Linter before commits
description: The linter is run before every commit
type: feedback
---

Always run the linter before you commit.
</memory>"""
WORDS = "Fix the failing test. Always run the linter before you commit."


def is_extraction(body: Object) -> bool:
    return "You keep the long-term memory of a coding agent" in dump(body)


def is_background(body: Object) -> bool:
    """Whether a request is no part of the conversation: its last words are ours."""
    return (
        is_extraction(body)
        or "keeps notes on this session" in dump(body)
        or "<summary>" in dump(body)
    )


@dataclass
class Provider:
    """A model behind the wire: a round with a tool, then words; forks answer by `forks`."""

    answers: list[Any] = field(
        default_factory=lambda: [[call("run", '{"n": 1}', "toolu_number_001")], "Done."]
    )
    forks: list[Any] = field(default_factory=lambda: [LEARNED])
    bodies: list[Object] = field(default_factory=list[Any])
    learning: list[Object] = field(default_factory=list[Any])

    def __call__(self, body: Object) -> Any:
        if is_extraction(body):
            self.learning.append(body)
            return self.forks.pop(0) if self.forks else "Nothing."
        if is_background(body):
            return "Nothing."
        self.bodies.append(body)
        return self.answers.pop(0) if self.answers else "Done."


@contextmanager
def serve(provider: Callable[[Object], Any], **other: Any) -> Iterator[tuple[str, Engine]]:
    sim = engine(provider, **other)
    with serving(sim) as url:
        yield url, sim


def client_of(form: str, url: str, *, waits: bool = False) -> Any:
    """A client of the SDK for a form; one that waits is sync."""
    given: Any = {"api_key": "k", "max_retries": 0}
    if form == "messages":
        kind: Any = anthropic.Anthropic if waits else anthropic.AsyncAnthropic
        return kind(base_url=url, **given)
    kind = openai.OpenAI if waits else openai.AsyncOpenAI
    return kind(base_url=f"{url}/v1", **given)


@asynccontextmanager
async def talking(
    provider: Callable[[Object], Any], form: str, *, waits: bool = False, **other: Any
) -> AsyncGenerator[tuple[Any, Engine]]:
    """A client of a provider, closed at the end."""
    with serve(provider, **other) as (url, sim):
        client = client_of(form, url, waits=waits)
        try:
            yield client, sim
        finally:
            closing = client.close()
            if inspect.isawaitable(closing):
                await closing


async def send(client: Any, form: str, request: Any, **more: Any) -> Any:
    """One request as its caller would send it."""
    if form == "messages":
        answer = client.messages.create(**request.anthropic(), **more)
    elif form == "chat":
        answer = client.chat.completions.create(**request.openai(), **more)
    else:
        answer = client.responses.create(**request.responses(), **more)
    return await answer if inspect.isawaitable(answer) else answer


async def loop(s: Any, client: Any, form: str, words: str = WORDS) -> Any:
    """The loop of the first screen."""
    await s.add(words)
    while True:
        reply = await s.observe(await send(client, form, await s.prepare()))
        if not reply.tool_calls:
            return reply
        await s.add(*[c.result(f"ran {c.arguments['n']}") for c in reply.tool_calls])
