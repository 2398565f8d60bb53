"""Rules where calls only pass: told with the result of the call, once, and for good."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import pytest

import reverie
from reverie.interception import InterceptionEngine
from reverie.store import MemoryStore, Project, RuleStore
from reverie.testing import provider
from tests.proxy.clients import (
    BIG,
    Client,
    assistant,
    engine,
    extends,
    gave,
    result,
    text,
    use,
    user,
)
from tests.proxy.forms import asking, results
from tests.proxy.test_anybody import both

pytestmark = pytest.mark.spec("18.proxy")
RULE = "Never run git push --force"
AFTER = "goes against a rule from memory"
TASK = "Bring it to the others, please"
FORCED = {"command": "git push --force"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    found = tmp_path / "project"
    found.mkdir()
    return found


def rule(project: Path, home: Path) -> None:
    with reverie.Memory(project, home=home) as memory:
        memory.add(RULE, type="feedback")


@pytest.fixture
def client(through: InterceptionEngine, home: Path, project: Path) -> Client:
    """Somebody at work where the rule holds."""
    rule(project, home)
    return Client(through, folder=str(project)).says(TASK)


def ran(messages: list[Any], *given: dict[str, Any]) -> None:
    """Calls with their results, as a client sends them."""
    calls = [use(one["tool_use_id"], "Bash", **FORCED) for one in given]
    messages += [assistant(*calls), user(*given)]


@both
def test_a_rule_is_told_with_the_result_of_the_call_and_stays(
    way: Any, home: Path, project: Path
) -> None:
    rule(project, home)
    messages: list[Any] = [user(TASK)]
    with provider(lambda body: "Going on.") as upstream, way(home, project, upstream) as ask:
        ran(messages, gave("toolu_1", "done"), gave("toolu_2", [text("done")]))
        messages.append(ask(messages))
        with reverie.Memory(project, home=home) as memory:
            for one in memory.list():
                memory.remove(one.file)
        messages.append(user("Once more, please"))
        ran(messages, gave("toolu_3", "done"))
        ask(messages)
    first, second = upstream.requests
    assert second.extends(first)
    results = [b for b in first.messages[2]["content"] if b["type"] == "tool_result"]
    assert "done" in json.dumps(results[0])
    assert AFTER in json.dumps(results[0])
    assert RULE in json.dumps(results[0])
    assert AFTER not in json.dumps(results[1])  # told once a turn
    assert json.dumps(second.messages).count(AFTER) == 1  # and the second turn has no rule


async def test_a_rule_is_told_again_in_the_next_turn_alone(client: Client) -> None:
    await client.asks(None)
    for count, ident in ((1, "a"), (1, "b")):
        ran(client.messages, gave(ident, "done"))
        assert json.dumps(await client.asks(None)).count(AFTER) == count
    client.messages.append(assistant("Done."))
    await client.says("Now bring the other branch to them, please").asks(None)
    ran(client.messages, gave("c", "done"))
    assert AFTER in result(await client.asks(None))
    assert all(extends(later, earlier) for earlier, later in pairwise(client.sent))
    assert client.engine.figures.breaks == 0


@pytest.mark.parametrize("content", [BIG, [text(BIG)], [], ""])
async def test_a_rule_joins_whatever_the_result_is(client: Client, content: Any) -> None:
    ran(client.messages, gave("a", content))
    found = result(await client.asks(None))
    assert AFTER in found
    assert ("<persisted-output>" in found) == bool(content)


async def test_what_went_out_without_a_rule_stays_without_it(home: Path, project: Path) -> None:
    made = engine(home)
    client = Client(made, folder=str(project)).says(TASK)
    ran(client.messages, gave("a", "done"))
    before = await client.asks(None)
    rule(project, home)
    assert await client.asks(None) == before
    await made.aclose()
    again = engine(home)
    client.engine = again
    assert await client.asks(None) == before
    ran(client.messages, gave("b", "done"))
    after = await client.asks(None)
    assert extends(after, before)
    assert AFTER in result(after)
    await again.aclose()


async def test_a_rule_that_a_hook_has_told_is_not_told_again(
    client: Client, home: Path, project: Path
) -> None:
    with reverie.Memory(project, home=home) as memory:
        (found,) = memory.list()
    denied = f"Not run yet.\n\nThe user's rule ({found.file}):\n> {RULE}"
    await client.asks(None)
    ran(client.messages, gave("a", denied))
    assert AFTER not in json.dumps(await client.asks(None))
    ran(client.messages, gave("b", "done"))
    assert AFTER not in json.dumps(await client.asks(None))
    place = Project.at(project, home=home, environ={"HOME": str(home)})
    with MemoryStore.of(place, now=lambda: 1.0) as memories:
        counts = RuleStore(memories, place.root).counts()[found.file]
    assert dict(counts.total) == {"matched": 1, "broken": 1}  # what ran, not what the hook held


async def test_the_flag_switches_rules_off(client: Client, home: Path) -> None:
    await anyio.Path(home / "flags.json").write_text('{"rules": false}')
    ran(client.messages, gave("a", "done"))
    assert AFTER not in json.dumps(await client.asks(None))


async def test_a_sub_agents_calls_are_looked_at_too(client: Client) -> None:
    client.headers["x-claude-code-agent-id"] = "a1"
    ran(client.messages, gave("a", "done"))
    assert AFTER in result(await client.asks(None))


@pytest.mark.parametrize("form", ["chat", "responses"])
async def test_rules_are_told_in_the_formats_of_openai_too(
    through: InterceptionEngine, home: Path, project: Path, form: Any
) -> None:
    rule(project, home)
    body = asking(form, [("exec_command", {"cmd": "git push -f"}, "done")], "gpt-5.6")
    headers = {"authorization": "k", "x-reverie-project": str(project)}
    out = await through.outgoing(form, headers, json.dumps(body).encode())
    await through.answered(out, None)
    (found,) = results(form, json.loads(out.body)["messages" if form == "chat" else "input"])
    assert AFTER in found
