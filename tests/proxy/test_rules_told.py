"""Rules where calls only pass: told with the result of the call, once, and for good."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import pytest

import reverie
from reverie.middleware import Engine
from reverie.testing import provider
from tests.proxy.clients import BIG, Client, engine, extends, result
from tests.proxy.test_anybody import both

pytestmark = pytest.mark.spec("18.proxy")
RULE = "Never run git push --force"
AFTER = "goes against a rule from memory"
FORCED = {"command": "git push --force"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    found = tmp_path / "project"
    found.mkdir()
    return found


@pytest.fixture
async def through(home: Path) -> AsyncGenerator[Engine]:
    made = engine(home)
    yield made
    await made.aclose()


def rule(project: Path, home: Path) -> None:
    with reverie.Memory(project, home=home) as memory:
        memory.add(RULE, type="feedback")


def call(ident: str, given: dict[str, str] = FORCED) -> dict[str, Any]:
    return {"type": "tool_use", "id": ident, "name": "Bash", "input": given}


def gave(ident: str, content: Any = "done") -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": ident, "content": content}


def ran(messages: list[Any], *given: dict[str, Any]) -> None:
    """Calls with their results, as a client sends them."""
    calls = [call(one["tool_use_id"]) for one in given]
    messages += [{"role": "assistant", "content": calls}, {"role": "user", "content": list(given)}]


@both
def test_a_rule_is_told_with_the_result_of_the_call_and_stays(
    way: Any, home: Path, project: Path
) -> None:
    rule(project, home)
    messages: list[Any] = [{"role": "user", "content": "Bring it to the others, please"}]
    with provider(lambda body: "Going on.") as upstream, way(home, project, upstream) as ask:
        ran(messages, gave("toolu_1"), gave("toolu_2", [{"type": "text", "text": "done"}]))
        messages.append(ask(messages))
        with reverie.Memory(project, home=home) as memory:
            for one in memory.list():
                memory.remove(one.file)
        messages.append({"role": "user", "content": "Once more, please"})
        ran(messages, gave("toolu_3"))
        ask(messages)
    first, second = upstream.requests
    assert second.extends(first)
    results = [b for b in first.messages[2]["content"] if b["type"] == "tool_result"]
    assert "done" in json.dumps(results[0])
    assert AFTER in json.dumps(results[0])
    assert RULE in json.dumps(results[0])
    assert AFTER not in json.dumps(results[1])  # told once a turn
    assert json.dumps(second.messages).count(AFTER) == 1  # and the second turn has no rule


async def test_a_rule_is_told_again_in_the_next_turn_alone(
    through: Engine, home: Path, project: Path
) -> None:
    rule(project, home)
    client = Client(through, folder=str(project)).says("Bring it to the others, please")
    await client.asks(None)
    for count, ident in ((1, "a"), (1, "b")):
        ran(client.messages, gave(ident))
        assert json.dumps(await client.asks(None)).count(AFTER) == count
    client.messages.append({"role": "assistant", "content": "Done."})
    await client.says("Now bring the other branch to them, please").asks(None)
    ran(client.messages, gave("c"))
    assert AFTER in result(await client.asks(None))
    assert all(extends(later, earlier) for earlier, later in pairwise(client.sent))
    assert through.figures.breaks == 0


@pytest.mark.parametrize("content", [BIG, [{"type": "text", "text": BIG}], [], ""])
async def test_a_rule_joins_whatever_the_result_is(
    through: Engine, home: Path, project: Path, content: Any
) -> None:
    rule(project, home)
    client = Client(through, folder=str(project)).says("Bring it to the others, please")
    ran(client.messages, gave("a", content))
    found = result(await client.asks(None))
    assert AFTER in found
    assert ("<persisted-output>" in found) == bool(content)


async def test_what_went_out_without_a_rule_stays_without_it(home: Path, project: Path) -> None:
    made = engine(home)
    client = Client(made, folder=str(project)).says("Bring it to the others, please")
    ran(client.messages, gave("a"))
    before = await client.asks(None)
    rule(project, home)
    assert await client.asks(None) == before
    await made.aclose()
    again = engine(home)
    client.engine = again
    assert await client.asks(None) == before
    ran(client.messages, gave("b"))
    after = await client.asks(None)
    assert extends(after, before)
    assert AFTER in result(after)
    await again.aclose()


async def test_a_rule_that_a_hook_has_told_is_not_told_again(
    through: Engine, home: Path, project: Path
) -> None:
    rule(project, home)
    with reverie.Memory(project, home=home) as memory:
        (found,) = memory.list()
    denied = f"Not run yet.\n\nThe user's rule ({found.file}):\n> {RULE}"
    client = Client(through, folder=str(project)).says("Bring it to the others, please")
    await client.asks(None)
    ran(client.messages, gave("a", denied))
    assert AFTER not in json.dumps(await client.asks(None))
    ran(client.messages, gave("b"))
    assert AFTER not in json.dumps(await client.asks(None))


async def test_the_flag_switches_rules_off(through: Engine, home: Path, project: Path) -> None:
    rule(project, home)
    await anyio.Path(home / "flags.json").write_text('{"rules": false}')
    client = Client(through, folder=str(project)).says("Bring it to the others, please")
    ran(client.messages, gave("a"))
    assert AFTER not in json.dumps(await client.asks(None))


async def test_a_sub_agents_calls_are_looked_at_too(
    through: Engine, home: Path, project: Path
) -> None:
    rule(project, home)
    agent = Client(through, folder=str(project), **{"x-claude-code-agent-id": "a1"})
    agent.says("Bring it to the others, please")
    ran(agent.messages, gave("a"))
    assert AFTER in result(await agent.asks(None))


@pytest.mark.parametrize("form", ["chat", "responses"])
async def test_rules_are_told_in_the_formats_of_openai_too(
    through: Engine, home: Path, project: Path, form: Any
) -> None:
    rule(project, home)
    given, said = json.dumps({"cmd": "git push -f"}), {"role": "user", "content": "Go on, please"}
    if form == "chat":
        function = {"name": "exec_command", "arguments": given}
        one = {"id": "c", "type": "function", "function": function}
        messages = [
            said,
            {"role": "assistant", "content": None, "tool_calls": [one]},
            {"role": "tool", "tool_call_id": "c", "content": "done"},
        ]
        body = {"model": "gpt-5.6", "messages": messages}
    else:
        named = {"call_id": "c", "name": "exec_command", "arguments": given}
        output = {"type": "function_call_output", "call_id": "c", "output": "done"}
        body = {"model": "gpt-5.6", "input": [said, {"type": "function_call", **named}, output]}
    headers = {"authorization": "k", "x-reverie-project": str(project)}
    out = await through.outgoing(form, headers, json.dumps(body).encode())
    await through.answered(out, None)
    last = next(iter(reversed(json.loads(out.body)["messages" if form == "chat" else "input"])))
    assert AFTER in last["content" if form == "chat" else "output"]
