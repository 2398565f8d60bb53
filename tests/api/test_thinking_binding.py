"""Thinking delays a seal only where the tail holds some; without any, Claude is as any model.

A provider binds a thinking block to all that precedes it. So each test asks for one of two
things: where there is no thinking, the requests are those of a model that binds nothing; where
there is some, every block that is sent stands behind what it was made behind.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import anthropic
import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reverie
from reverie.apps.proxy import sealing
from reverie.simulator import call, thinking_block
from reverie.testing import Provider, provider
from tests.proxy.proxied import KEY, READ, proxied

pytestmark = pytest.mark.spec("B12")
Plan: TypeAlias = "list[list[bool]]"
"""Turns, each of so many rounds; True where the model thinks before it calls."""
CLAUDE = "claude-sonnet-4-5"
CLAUDES = (CLAUDE, "claude-opus-4-8", "claude-haiku-5-5", "anthropic/claude-3-opus")
SENT = "claude-opus-5-5"  # to a provider
NO_BINDING = "a-model-that-binds-nothing"
SAME = {"price_write_short": 1.3}  # prices that hold for both, so that only the binding differs
SEALED = "[Earlier rounds of this conversation, sealed"
NEVER: Plan = [[False] * 25, [False] * 3, [], [False] * 40]
ALWAYS: Plan = [[True] * 25, [True] * 3, [True], [True] * 60]
LATER: Plan = [[False] * 15 + [True] + [False] * 15, [False] * 15]
AS_BEFORE = "bf12914b4809bbf2543d60c0276d65179471003236b1de32466dddfcaad4cd5e"
"""The requests of `ALWAYS`, as they were while every Claude model was bound."""


def answer(n: int, *, thinks: bool) -> list[dict[str, Any]]:
    thinking = {"type": "thinking", "thinking": f"So it is part {n}.", "signature": f"s{n}"}
    use = {"type": "tool_use", "id": f"toolu_{n:05d}", "name": "run", "input": {"n": n}}
    return [thinking, use] if thinks else [use]


def output(n: int) -> str:
    return f"part_{n}.py: a line of what call number {n} gave\n" * 60


def lists(plan: Plan) -> Iterator[list[dict[str, Any]]]:
    """The caller's list at each request."""
    messages: list[dict[str, Any]] = []
    n = 0
    for turn, rounds in enumerate(plan):
        messages.append({"role": "user", "content": f"Look at the next parts, turn {turn}"})
        for thinks in rounds:
            yield [*messages]
            n += 1
            result = {"type": "tool_result", "tool_use_id": f"toolu_{n:05d}", "content": output(n)}
            messages.append({"role": "assistant", "content": answer(n, thinks=thinks)})
            messages.append({"role": "user", "content": [result]})
        yield [*messages]
        messages.append({"role": "assistant", "content": [{"type": "text", "text": "Seen."}]})


def requests(plan: Plan, model: str, **more: Any) -> list[list[Any]]:
    window = 200_000
    tools = reverie.tools().anthropic()
    with reverie.Fitter(model=model, window=window, tools=tools, marks=False, **more) as fitter:
        return [list(fitter.fit(messages)) for messages in lists(plan)]


def blocks(messages: list[Any]) -> list[Any]:
    """All blocks, with their speakers: how they are spread over messages is no matter."""
    return [
        (m["role"], {"type": "text", "text": b} if isinstance(b, str) else b)
        for m in messages
        for b in ([m["content"]] if isinstance(m["content"], str) else m["content"])
    ]


def refused(sent: list[list[Any]]) -> int:
    """Thinking blocks that stand behind other blocks than those they were made behind."""
    made: dict[str, int] = {}
    bodies = [blocks(messages) for messages in sent]
    count = 0
    for number, body in enumerate(bodies):
        for at, (_, block) in enumerate(body):
            if block["type"] == "thinking":
                first = made.setdefault(block["signature"], number)
                count += first > 0 and body[:at] != bodies[first - 1]
    return count


@pytest.mark.parametrize("model", CLAUDES)
def test_without_thinking_the_requests_are_those_of_a_model_that_binds_nothing(model: str) -> None:
    assert requests(NEVER, model, settings=SAME) == requests(NEVER, NO_BINDING, settings=SAME)


def test_a_list_without_thinking_is_fitted_in_the_middle_of_a_turn() -> None:
    messages = list(lists([[False] * 30]))[-1]
    sent = reverie.fit(messages, model=CLAUDE, tools=reverie.tools())
    assert sent.before > 20_000
    assert sent.tokens < 10_000


def test_with_thinking_in_each_answer_the_requests_are_as_before() -> None:
    sent = requests(ALWAYS, CLAUDE)
    assert hashlib.sha256(json.dumps(sent).encode()).hexdigest() == AS_BEFORE
    assert not refused(sent)
    assert refused(requests(ALWAYS, NO_BINDING))


def test_thinking_that_comes_later_holds_what_was_sent_before_it() -> None:
    sent = [blocks(messages) for messages in requests(LATER, CLAUDE)]
    moves = [n for n in range(1, len(sent)) if sent[n][: len(sent[n - 1])] != sent[n - 1]]
    assert moves[0] <= 15  # while nobody had thought
    assert not set(moves) & set(range(16, 32))  # from the thinking on to the end of its turn
    assert 32 in moves


@settings(max_examples=60)
@given(st.lists(st.lists(st.booleans(), max_size=30), min_size=1, max_size=4))
def test_no_thinking_is_ever_sent_behind_other_bytes(plan: Plan) -> None:
    sent = requests(plan, CLAUDE)
    assert not refused(sent)
    assert list(reverie.fit(list(lists(plan))[-1], model=CLAUDE, window=200_000, marks=False,
                            tools=reverie.tools().anthropic())) == sent[-1]  # fmt: skip


# The same through a client, against a provider that refuses what was moved


class Thinker:
    """A model that calls a tool in each round, and thinks in some."""

    def __init__(self, plan: list[bool]) -> None:
        self.plan = plan

    def __call__(self, body: Mapping[str, Any]) -> Any:
        del body
        at, self.plan = self.plan[:1], self.plan[1:]
        if not at:
            return "Done."
        use = call("run", "{}", f"toolu_number_{len(self.plan):03d}")
        return [thinking_block("So that is it."), use] if at[0] else [use]


def body_of(messages: list[Any]) -> dict[str, Any]:
    schema = {"type": "object", "properties": {}}
    run = {"name": "run", "description": "runs", "input_schema": schema}
    return {"model": SENT, "max_tokens": 999, "messages": messages, "tools": [run, READ]}


def talk(client: Any) -> None:
    """One turn of a caller's own loop."""
    messages: list[Any] = [{"role": "user", "content": "Look at all parts"}]
    while True:
        reply = client.messages.create(**body_of(messages))
        content = [block.model_dump(exclude_none=True) for block in reply.content]
        messages.append({"role": "assistant", "content": content})
        found = [b["id"] for b in content if b["type"] == "tool_use"]
        if not found:
            return
        results = [{"type": "tool_result", "tool_use_id": c, "content": output(1)} for c in found]
        messages.append({"role": "user", "content": results})


def by_wrap(upstream: Provider, home: Path) -> None:
    del home
    with anthropic.Anthropic(api_key="k", base_url=upstream.anthropic_url, max_retries=0) as client:
        talk(reverie.wrap(client))


def by_proxy(upstream: Provider, home: Path) -> None:
    with proxied(
        home, upstream.anthropic_url, memory=False, seal=sealing("collapse")
    ) as proxy, anthropic.Anthropic(
        api_key=KEY, base_url=proxy.address.anthropic, max_retries=0,
        default_headers={"x-claude-code-session-id": "s1"},
    ) as client:  # fmt: skip
        talk(client)


def by_session(upstream: Provider, home: Path) -> None:
    tools = [*body_of([])["tools"][:1], *reverie.tools().anthropic()]
    url = upstream.anthropic_url
    with anthropic.Anthropic(api_key="k", base_url=url, max_retries=0) as client:
        anyio.run(session_talk, client, home.parent / "project", tools)


async def session_talk(client: Any, project: Path, tools: list[Any]) -> None:
    async with reverie.Session.open(project, model=SENT, tools=tools, policy="collapse") as s:
        await s.add("Look at all parts")
        while True:
            request = await s.prepare()
            reply = await s.observe(client.messages.create(**request.anthropic()))
            if not reply.tool_calls:
                return
            await s.add(*[c.result(output(1)) for c in reply.tool_calls])


@pytest.mark.parametrize("way", [by_wrap, by_proxy, by_session])
@pytest.mark.parametrize(
    ("plan", "seals"),
    [([False] * 25, True), ([True] * 25, False), ([False] * 15 + [True] * 10, True)],
    ids=["never", "always", "later"],
)
def test_in_a_turn_old_rounds_are_sealed_where_nothing_is_bound(
    way: Any, plan: list[bool], seals: bool, home: Path
) -> None:
    with provider(Thinker(plan)) as upstream:
        way(upstream, home)
        sent = upstream.requests
    assert {request.status for request in sent} == {200}
    assert (SEALED in json.dumps(sent[-1].body, ensure_ascii=False)) is seals
