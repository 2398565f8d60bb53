"""The twenty rules by which a stateless client is followed; one test each, by number."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

import reverie
from reverie.interception import InterceptionEngine, ScanCache, chain_seed, scan_body
from reverie.store import Folder
from reverie.transcript import dump
from tests.proxy.clients import (
    BIG,
    MARK,
    Client,
    assistant,
    blocks,
    engine,
    extends,
    gave,
    marks,
    ran,
    reminders,
    result,
    text,
    use,
    user,
)
from tests.proxy.proxied import READ, standing

pytestmark = pytest.mark.spec("18.proxy-rules")
FACT = "Integration tests must hit a real database, never mocks"
ASK = "How should I write integration tests for the database?"


@pytest.fixture
def project(tmp_path: Path, home: Path) -> str:
    folder = tmp_path / "project"
    folder.mkdir()
    with reverie.Memory(folder, home=home) as memory:
        memory.add(FACT)
    return str(folder)


def chains(messages: list[Any], credential: str = "k") -> list[bytes]:
    body = dump({"messages": messages})
    return [
        p.chain for p in scan_body(body, "messages", chain_seed(credential), "", ScanCache()).parts
    ]


def said(*texts: str) -> list[Any]:
    return [(user, assistant)[n % 2](one) for n, one in enumerate(texts)]


# Matching


def test_rule_01_the_chain_depends_on_the_credential_and_what_was_said_alone() -> None:
    one = said("a", "b", "c")
    assert chains(one)[:2] == chains(one[:2])
    assert chains(one) != chains(one, "another key")
    between = [one[0], {"role": "system", "content": "environment"}, *one[1:]]
    assert chains(between)[-1] == chains(one)[-1]


def test_rule_02_marks_strings_and_thinking_make_no_difference() -> None:
    marked = {"cache_control": MARK}
    plain = [user("a"), assistant(use("t", "n", a=1, b=2)), user(gave("t", "r"))]
    thinking = {"type": "thinking", "thinking": "hm", "signature": "s"}
    other = [
        user({**text("a"), **marked}),
        assistant(thinking, use("t", "n", b=2, a=1)),
        user({**gave("t", [text("r")]), "is_error": False, **marked}),
    ]
    assert chains(plain)[-1] == chains(other)[-1]
    split = [*plain, user("x")]
    joined = [*plain[:2], user(gave("t", "r"), text("x"))]
    assert chains(split) == chains(joined)


async def test_rule_03_a_beginning_without_an_answer_proves_nothing(
    through: InterceptionEngine, project: str
) -> None:
    first, second = (Client(through, name, folder=project) for name in ("one", "two"))
    await first.says(ASK).asks(None)
    await second.says("<system-reminder>\nboilerplate\n</system-reminder>").asks(None)
    log = through._log.decisions  # pyright: ignore[reportPrivateUsage]
    assert not log.owners
    twin = Client(through, "three", folder=project)
    await twin.says(ASK).asks(None)
    assert {name.partition(":")[2] for at in log.reminders.values() for name in at} >= {
        "one",
        "three",
    }


async def test_rule_04_a_fork_goes_on_from_its_parent(
    through: InterceptionEngine, project: str
) -> None:
    parent = Client(through, "parent", folder=project)
    before = await parent.says(ASK).asks()
    fork = Client(through, "fork", folder=project)
    fork.messages = list(parent.messages)
    after = await fork.says("And now in another way, please").asks()
    assert len(reminders(before)) == 1
    assert extends(after, before)


# Decisions


async def test_rule_05_a_result_is_known_by_its_call_and_content(
    through: InterceptionEngine,
) -> None:
    client = Client(through)
    client.says("Read it, please")
    sent = await client.round()
    assert "<persisted-output>" in result(sent)
    client.messages[0] = user("A summary of all before.")
    assert result(await client.asks(None)) == result(sent)
    client.messages[-1]["content"][0]["content"] = BIG + "!"
    other = result(await client.asks(None))
    assert "<persisted-output>" in other
    assert other != result(sent)


async def test_rule_06_a_reminder_follows_its_block_though_the_message_grows(
    through: InterceptionEngine, project: str
) -> None:
    client = Client(through, folder=project)
    sent = await client.says(ASK).asks(None)
    assert len(reminders(sent)) == 1
    client.messages[-1] = user(text(ASK), text("[Request interrupted by user]"))
    grown = await client.asks(None)
    assert extends(grown, sent)


async def test_rule_07_what_was_sent_before_stays_as_it_was(through: InterceptionEngine) -> None:
    client = Client(through)
    client.says("Read it, please")
    client.messages += [*ran("old", BIG), assistant("I have read it.")]
    sent = await client.says("Go on with it").asks()
    assert result(sent) == BIG
    del client.messages[3:]  # a rewind to just behind the result
    assert result(await client.asks(None)) == BIG


async def test_rule_08_nothing_is_a_decision(through: InterceptionEngine, project: str) -> None:
    client = Client(through, folder=project)
    with reverie.Memory(project, home=through.rules.shadows.own.home) as memory:
        kept = [one.file for one in memory.list()]
        for file in kept:
            memory.remove(file)
    first = await client.says(ASK).asks()
    assert not reminders(first)
    with reverie.Memory(project, home=through.rules.shadows.own.home) as memory:
        memory.add(FACT)
    second = await client.says("And the others, in the same way?").asks()
    assert extends(second, first)


async def test_rule_09_eight_at_once_give_one_output_also_after_a_restart(
    home: Path, project: str
) -> None:
    made = engine(home)
    client = Client(made, folder=project)
    client.says(ASK)
    await client.round()
    data = json.dumps(client.body()).encode()
    found: set[bytes] = set()

    async def ask(by: InterceptionEngine) -> None:
        found.add((await by.outgoing("messages", client.headers, data)).body)

    async with anyio.create_task_group() as tasks:
        for _ in range(8):
            tasks.start_soon(ask, made)
    await made.aclose()
    for _ in range(2):
        again = engine(home)
        await ask(again)
        await again.aclose()
    assert len(found) == 1


async def test_rule_09_what_was_forgotten_meanwhile_does_not_go_up_again(
    through: InterceptionEngine, project: str
) -> None:
    client = Client(through, folder=project)
    first = await client.says(ASK).asks()
    assert "real database" in reminders(first)[0]
    with Folder(through.rules.shadows.own.home / "proxy") as folder:
        kept = folder.read("decisions.jsonl")
        folder.write("decisions.jsonl", kept.replace(b"real database", b"[forgotten]"))
    again = await client.says("And the others, in the same way?").asks()
    assert "real database" not in json.dumps(again, ensure_ascii=False)


async def test_rule_10_a_preview_has_both_ends_and_nothing_that_changes(tmp_path: Path) -> None:
    found: list[str] = []
    for name in ("one", "two"):
        made = engine(tmp_path / name)
        client = Client(made)
        client.says("Read it, please")
        shown = result(await client.round())
        await made.aclose()
        stored = shown.partition("stored whole in ")[2].partition(";")[0]
        found.append(shown.replace(stored, ""))
        assert BIG.splitlines()[0] in shown
        assert BIG.splitlines()[-1] in shown
    assert found[0] == found[1]


async def test_rule_11_what_is_read_from_the_store_is_not_stored_again(
    through: InterceptionEngine,
) -> None:
    client = Client(through)
    client.says("Read it, please")
    stored = result(await client.round()).partition("stored whole in ")[2].partition(";")[0]
    assert await anyio.Path(stored).read_text() == BIG
    assert result(await client.round(command=f"cat {stored}")) == BIG


async def test_rule_12_nothing_is_stored_where_the_client_has_no_tool_to_read_it(
    through: InterceptionEngine,
) -> None:
    client = Client(through)
    client.tools = [{**READ, "name": "weather"}]
    client.says("Read it, please")
    assert result(await client.round()) == BIG


async def test_rule_13_reminders_join_prompts_of_the_main_thread_alone(
    through: InterceptionEngine, project: str
) -> None:
    agent = Client(through, folder=project, **{"x-claude-code-agent-id": "a1"})
    assert not reminders(await agent.says(ASK).asks())
    title = Client(through, folder=project)
    title.tools = []
    assert not reminders(await title.says(ASK).asks())
    notice = Client(through, folder=project)
    await notice.says(f"<system-reminder>\n{ASK}\n</system-reminder>").asks()
    assert len(reminders(notice.sent[-1])) == 1  # its own
    main = Client(through, folder=project)
    sent = await main.says(ASK).asks()
    assert len(reminders(sent)) == 1
    compaction = main.body()
    compaction["messages"] = [
        *main.messages[:-1],
        assistant({**text("Fine."), "cache_control": MARK}),
        user("Summarise everything said so far"),
    ]
    out = await main.out(compaction)
    assert extends(main.sent[-1], sent)
    assert len(reminders(main.sent[-1])) == 1
    assert out.shadow is None


# Sending


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b'{"messages":1}',
        b'{"messages":[],"messages":[]}',
        b"\xff\xfe",
        b'{"messages":[{"role":"user","content":NaN}]}',
        b"[" * 100_000,
    ],
)
async def test_rule_14_what_cannot_be_read_passes_as_it_is(
    through: InterceptionEngine, data: bytes
) -> None:
    assert (await through.outgoing("messages", {}, data)).body == data


async def test_rule_14_what_needs_no_change_passes_as_it_is(through: InterceptionEngine) -> None:
    said_ = b'{"role":"user","content":"What\\u0020is it?"}'
    data = b'{ "model":"m" ,\n "messages":[' + said_ + b'], "max_tokens":1e3 }'
    assert (await through.outgoing("messages", {}, data)).body == data


async def test_rule_14_if_anything_of_ours_fails_the_original_goes_up(home: Path) -> None:
    made = engine(home)
    client = Client(made)
    client.says("Read it, please")
    made._log.close()  # pyright: ignore[reportPrivateUsage]
    sent = await client.round()
    assert result(sent) == BIG
    assert made.figures.counts["failed"] == 1


async def test_rule_15_the_mark_goes_along_to_the_reminder(
    through: InterceptionEngine, project: str
) -> None:
    sent = await Client(through, folder=project).says(ASK).asks(None)
    last = sent["messages"][-1]["content"]
    assert "cache_control" not in last[0]
    assert last[1]["text"].startswith("<system-reminder>")
    assert last[1]["cache_control"] == MARK
    kept = Client(through, "other")
    kept.says("Read it, please")
    replaced = (await kept.round())["messages"][-1]["content"][-1]
    assert replaced["cache_control"] == MARK


async def test_rule_16_spare_marks_where_they_pay_and_never_more_than_four(
    through: InterceptionEngine,
) -> None:
    client = Client(through)
    client.marks = False
    await client.says("Read these, please").asks(None)
    assert marks(client.sent[-1]) == 0  # nothing is known of it yet
    sent = await client.round("short")
    assert "cache_control" in sent["messages"][-1]["content"][-1]
    full = Client(through, "full")
    full.says("Read these, please")
    body = full.body()
    body["system"] = [{**text(t), "cache_control": {**MARK, "ttl": "1h"}} for t in "ab"]
    await full.out(body)
    assert full.sent[-1]["tools"][-1]["cache_control"] == {**MARK, "ttl": "1h"}
    assert marks(full.sent[-1]) == 4
    body["system"] = [{**text(t), "cache_control": MARK} for t in "abc"]
    await full.out(body)
    assert marks(full.sent[-1]) == 4


async def test_rule_16_a_bridge_where_many_calls_came_at_once(through: InterceptionEngine) -> None:
    client = Client(through)
    await client.says("Read these, please").asks(None)
    sent = await client.round("short", count=12)
    assert "cache_control" in sent["messages"][0]["content"][-1]
    few = Client(through, "few")
    await few.says("Read these, please").asks(None)
    assert "cache_control" not in json.dumps((await few.round("short", count=3))["messages"][0])


async def test_rule_17_a_history_that_is_not_added_to_gets_no_mark(
    through: InterceptionEngine,
) -> None:
    client = Client(through, "")
    client.marks = False
    client.tools = []
    client.messages = said("repository", "Ok.", "files as they are")
    await client.asks()
    client.messages = said("repository", "Ok.", "first question", "Fine.", "files as they are now")
    assert marks(await client.asks()) == 0


async def test_rule_17_nothing_is_injected_into_a_history_that_is_written_anew(
    through: InterceptionEngine, project: str
) -> None:
    client = Client(through, "", folder=project)
    client.marks = False
    client.tools = []
    client.messages = said("repository", "Ok.", ASK)
    assert len(reminders(await client.asks())) == 1
    client.messages = said("repository", "Ok.", "asked before", "Fine.", f"{ASK} Again")
    assert not reminders(await client.asks())
    other = Client(through, "", folder=project)
    other.tools = []
    await other.says("A conversation that is added to").asks()
    await other.says(ASK).asks()
    assert len(reminders(other.sent[-1])) == 1


async def test_rule_19_usage_is_left_as_it_comes(home: Path) -> None:
    with standing(home) as (upstream, proxy):
        body = {"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": said("Hello there")}
        usage = proxy.post("anthropic/v1/messages", body).json()["usage"]
    assert usage["input_tokens"] == upstream.requests[0].tokens


async def test_rule_20_a_mark_that_moves_is_no_break(
    through: InterceptionEngine, project: str
) -> None:
    client = Client(through, folder=project)
    first = await client.says(ASK).asks()
    await client.round("short")
    second = await client.says("And the others, in the same way?").asks()
    assert len(reminders(first)) == 1
    assert extends(second, first)
    assert (through.figures.breaks, through.figures.client_breaks) == (0, 0)
    grown = client.messages[0]
    assert isinstance(grown["content"], str)  # the mark made blocks of it, and is gone by now


async def test_rule_20_breaks_are_counted_ours_and_the_clients(through: InterceptionEngine) -> None:
    client = Client(through)
    await client.says("Read it, please").asks()
    client.says("And that one too")
    await client.round()
    assert (through.figures.breaks, through.figures.client_breaks) == (0, 0)
    client.messages[0]["content"] = "Something else altogether"
    await client.asks()
    assert (through.figures.breaks, through.figures.client_breaks) == (0, 1)
    decisions = through._log.decisions  # pyright: ignore[reportPrivateUsage]
    decisions.results.clear()  # as if the store were lost
    await client.says("Go on with it").asks()
    assert through.figures.breaks == 1
    assert blocks(client.sent[-1])
