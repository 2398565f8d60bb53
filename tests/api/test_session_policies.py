"""Policies, the window, reading back, layers of one's own: in sessions of callers' own loops."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import anthropic
import pytest

import reverie
from reverie import Notice, Session, Settings, layers
from reverie.errors import InvalidInput, PromptTooLong, ReverieError
from reverie.simulator import Models, ModelSpec, call
from reverie.testing import ScriptedModel
from reverie.transcript import Json, Object, dump
from tests.api.talks import MODEL, TOOLS, Provider, is_background, loop, talking

# ruff: noqa: SIM117 - a client first, then what is made of it
pytestmark = [pytest.mark.spec("18.policies"), pytest.mark.anyio]
ROUNDS = 30
SMALL = Models([ModelSpec(MODEL["messages"], window=30_000)])


def result(n: int) -> str:
    rows = [f"line {row} of src/module_{n}/part.py" for row in range(200)]
    rows[77] = f"needle in line 77 of result {n}" if n == 1 else rows[77]
    return "\n".join(rows)


class Reader:
    """Runs a tool round after round, then reads the first result back, then is done."""

    def __init__(self, *, mixed: bool = False) -> None:
        self.asked = 0
        self.mixed = mixed

    def __call__(self, body: Object) -> Any:
        if is_background(body):
            return "Nothing."
        self.asked += 1
        text = dump(body)
        if self.asked <= ROUNDS:
            return [call("run", dump({"n": self.asked}), f"toolu_number_{self.asked:03d}")]
        if self.asked == ROUNDS + 1:
            found = re.search(r"> run 1 (r:\w{6})", text)
            assert found is not None, "nothing was sealed"
            given: dict[str, Json] = {"reference": found[1], "query": "needle"}
            calls = [call("read_back", given, "toolu_that_reads_back")]
            own = call("run", dump({"n": 99}), "toolu_beside_it_too")
            return [*calls, own] if self.mixed else calls
        assert "needle in line 77" in text
        return "Done."


async def turned(s: Any, client: Any, *, handles: bool = False) -> tuple[Any, list[str]]:
    """The loop with large results; the names of the calls that the caller saw."""
    seen: list[str] = []
    await s.add("go")
    while True:
        request = await s.prepare()
        reply = await s.observe(await client.messages.create(**request.anthropic()))
        seen += [c.name for c in reply.tool_calls]
        if not reply.tool_calls:
            return reply, seen
        results: list[Any] = []
        for c in reply.tool_calls:
            own = await s.handle(c) if handles else None
            results.append(own or c.result(result(c.arguments["n"])))
        await s.add(*results)


@pytest.mark.parametrize("mixed", [False, True])
async def test_with_a_client_reading_back_happens_inside(
    mixed: bool, home: Path, tmp_path: Path
) -> None:
    reader = Reader(mixed=mixed)
    async with talking(reader, "messages") as (client, sim), Session.open(
        tmp_path, model="claude-opus-4-8", client=client, memory=True,
        tools=TOOLS["messages"], policy="collapse",
        settings={"collapse_tail": 20_000},
    ) as s:  # fmt: skip
        reply, seen = await turned(s, client)
        assert reply.text == "Done."
        assert reverie.report(s).saved > 15_000
        kinds = {event.kind for event in reverie.report(s).events}
    assert "read_back" not in seen
    assert len(seen) == ROUNDS + mixed
    assert reader.asked == ROUNDS + 2
    assert "sealed" in kinds
    assert {e.status for e in sim.log} == {200}


async def test_without_a_client_the_caller_hands_the_call_on(home: Path, tmp_path: Path) -> None:
    async with talking(Reader(), "messages") as (client, sim), Session.open(
        tmp_path, model="claude-opus-4-8", memory=True, tools=TOOLS["messages"],
        policy="collapse",
        settings={"collapse_tail": 20_000},
    ) as s:  # fmt: skip
        assert s.tools.names == ("read_back",)
        reply, seen = await turned(s, client, handles=True)
        assert reply.text == "Done."
        assert await s.handle(call_of("other")) is None
    assert seen.count("read_back") == 1
    assert {e.status for e in sim.log} == {200}


def call_of(name: str) -> reverie.ToolCall:
    return reverie.ToolCall("toolu_1", name, "{}")


async def test_an_own_name_for_reading_back_is_found_among_the_tools(
    home: Path, tmp_path: Path
) -> None:
    kit = reverie.tools(names={"read_back": "fetch_result"})
    notices: list[Notice] = []
    async with Session.open(
        tmp_path, model="claude-opus-5-5", memory=True, policy="collapse",
        tools=[*TOOLS["messages"], *kit.anthropic()], roles={"fetch_result": "read_back"},
        on_notice=notices.append,
    ) as s:  # fmt: skip
        assert s.tools.names == ("fetch_result",)
        await s.add("go")
        names = [tool["name"] for tool in (await s.prepare()).anthropic()["tools"]]
    assert names == ["run", "fetch_result"]
    assert not [n for n in notices if "collapse needs" in n.text]


async def test_collapse_without_a_way_back_is_classic_and_says_so_once(
    home: Path, tmp_path: Path
) -> None:
    notices: list[Notice] = []
    async with Session.open(
        tmp_path, model="claude-opus-5-5", policy="collapse", tools=TOOLS["messages"],
        on_notice=notices.append,
    ) as s:  # fmt: skip
        assert s.tools.names == ()
        await s.add("go")
        await s.prepare()
        await s.observe({"role": "assistant", "content": "ok"})
        await s.add("again")
        request = await s.prepare()
        assert s.world.settings.context_policy == "classic"
    assert [n.level for n in notices if "collapse needs" in n.text] == ["warning"]
    assert "read_back" not in request.body()


async def test_a_stored_result_names_no_tool_that_is_not_there(home: Path, tmp_path: Path) -> None:
    cat: Any = {"name": "cat", "input_schema": {"type": "object", "properties": {}}}
    for tools, words in ((TOOLS["messages"], ""), ([*TOOLS["messages"], cat], "cat reads it")):
        async with Session.open(tmp_path, model="claude-opus-5-5", tools=tools) as s:
            await s.add("go")
            await s.prepare()
            reply = await s.observe(
                {"content": [{"type": "tool_use", "id": "t1", "name": "run", "input": {}}]}
            )
            await s.add(reply.tool_calls[0].result("x " * 100_000))
            body = (await s.prepare()).body()
        assert "is stored whole in" in body
        assert "ReadBack" not in body
        assert words in body


@pytest.mark.parametrize("model", ["claude-haiku-4-5", "gpt-4o"])
async def test_a_name_never_switches_compaction_off(model: str, home: Path, tmp_path: Path) -> None:
    """The rules summarise where nobody else can; no request is over the window."""
    window = {"claude-haiku-4-5": 200_000, "gpt-4o": 128_000}[model]
    async with Session.open(tmp_path, model=model, policy="classic") as s:
        for n in range(60):
            await s.add(f"{n}: " + "herons stand in shallow water. " * 600)
            request = await s.prepare()
            assert request.tokens <= window
            await s.observe({"role": "assistant", "content": f"Read part {n}."})
        assert "compacted" in {event.kind for event in reverie.report(s).events}


async def test_what_cannot_fit_is_never_given_out(home: Path, tmp_path: Path) -> None:
    for policy in ("classic", "off"):
        async with Session.open(tmp_path, model="gpt-4o", policy=policy) as s:
            await s.add("word " * 300_000)
            with pytest.raises(PromptTooLong) as raised:
                await s.prepare()
            assert raised.value.allowed == 128_000
            assert (raised.value.needed or 0) > 128_000
            assert "/compact" not in str(raised.value)
            assert "gpt-4o" in str(raised.value)


async def test_an_unknown_model_is_said_to_be_one(home: Path, tmp_path: Path) -> None:
    notices: list[Notice] = []
    async with Session.open(
        tmp_path, model="my-model", settings={"context_window": 20_000}, on_notice=notices.append
    ) as s:
        await s.add("word " * 60_000)
        with pytest.raises(PromptTooLong):
            await s.prepare()
    assert "20,000 tokens are assumed" in notices[0].text


async def test_a_refusal_as_too_long_is_answered_with_a_shorter_request(
    home: Path, tmp_path: Path
) -> None:
    """Of the caller's own client, whose error is handed in as it is."""
    provider = Provider(answers=[f"Read part {n}." for n in range(40)])
    async with talking(provider, "messages", models=SMALL) as (client, sim):
        async with Session.open(tmp_path, model=MODEL["messages"], policy="classic") as s:
            for n in range(12):
                await s.add(f"{n}: " + "herons stand in shallow water. " * 500)
                request = await s.prepare()
                try:
                    answer = await client.messages.create(**request.anthropic())
                except anthropic.BadRequestError as error:
                    request = await s.too_long(error)
                    answer = await client.messages.create(**request.anthropic())
                await s.observe(answer)
            with pytest.raises(ZeroDivisionError):
                await s.too_long(ZeroDivisionError())
    assert 400 in {e.status for e in sim.log}


async def test_ask_makes_room_by_itself_and_leaves_other_errors_alone(
    home: Path, tmp_path: Path
) -> None:
    provider = Provider(answers=[f"Read part {n}." for n in range(60)])
    async with talking(provider, "messages", models=SMALL) as (client, sim):
        async with Session.open(
            tmp_path, model=MODEL["messages"], client=client, policy="classic",
            settings={"summary_model": "embedded"},
        ) as s:  # fmt: skip
            for n in range(12):
                await s.add(f"{n}: " + "herons stand in shallow water. " * 500)
                assert "part" in (await s.ask()).text
        assert 400 in {e.status for e in sim.log}
        wrong = client.with_options(base_url="http://127.0.0.1:9/")
        async with Session.open(tmp_path, model=MODEL["messages"], client=wrong) as s:
            await s.add("hello")
            with pytest.raises(anthropic.APIConnectionError):
                await s.ask()
            await s.add("and again")
            assert "and again" in (await s.prepare()).body()


async def test_layers_of_ones_own_run_and_fail_alone(home: Path, tmp_path: Path) -> None:
    asked: list[int] = []

    async def note(view: layers.View, world: layers.World) -> list[layers.Record]:
        del world
        asked.append(len(view.messages))
        return [layers.attach("A note of my own.")]

    async def broken(view: layers.View, world: layers.World) -> list[layers.Record]:
        raise ValueError("broken")

    notices: list[Notice] = []
    async with Session.open(
        tmp_path, model="claude-opus-5-5", layers=[broken, note], on_notice=notices.append
    ) as s:
        await s.add("hello")
        assert "A note of my own." in (await s.prepare()).body()
    assert asked == [1]
    assert [n.layer for n in notices if n.level == "error"] == ["broken"]


async def test_a_layer_hides_old_screenshots(home: Path, tmp_path: Path) -> None:
    async def hide_screenshots(view: layers.View, world: layers.World) -> list[layers.Record]:
        calls = view.calls.values()
        return [layers.clear(c.id) for c in calls if c.name == "screenshot" and c.age > 3]

    async with Session.open(
        tmp_path, model="claude-opus-5-5", memory=True, layers=[*layers.COLLAPSE, hide_screenshots]
    ) as s:
        await s.add("look")
        for n in range(6):
            await s.prepare()
            asked = {"type": "tool_use", "id": f"t{n}", "name": "screenshot", "input": {}}
            reply = await s.observe({"content": [asked]})
            await s.add(reply.tool_calls[0].result(f"picture {n}"))
        body = (await s.prepare()).body()
    assert [n for n in range(6) if f"picture {n}" in body] == [2, 3, 4, 5]
    assert "read_back with r:" in body


async def test_wrong_words_are_refused_where_they_are_said(home: Path, tmp_path: Path) -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"policy": "collaps"}, "no such policy"),
        ({"roles": {"run": "runner"}}, "no such role"),
        ({"roles": {"walk": "read"}}, "not offered"),
        ({"settings": {"nothing": 1}}, "no such setting"),
    ]
    for given, told in wrong:
        with pytest.raises(InvalidInput, match=told):
            await Session.start(tmp_path, model="claude-opus-5-5", tools=TOOLS["messages"], **given)


async def test_results_of_tools_with_a_role_can_be_cleared(home: Path, tmp_path: Path) -> None:
    from reverie.toolbox import roles_of

    tools: list[Any] = [
        {"name": "sh", "input_schema": {}},
        {"name": "fetch", "input_schema": {"properties": {"path": {}}}},
        {"name": "put", "input_schema": {"properties": {"path": {}, "content": {}}}},
        {"name": "run", "input_schema": {"properties": {"n": {}}}},
    ]
    guessed = {"sh": "shell", "fetch": "read", "put": "write"}
    assert roles_of(tools, None) == guessed
    assert roles_of(tools, {"run": "search"}) == {**guessed, "run": "search"}


async def test_a_fork_asks_beside_the_conversation(home: Path, tmp_path: Path) -> None:
    def answers(request: Any) -> str:
        return "Aside." if request.source == "fork" else "Main."

    async with Session.open(tmp_path, model=ScriptedModel(answers)) as s:
        await s.add("hello")
        await s.ask()
        assert (await s.fork("And what was that?")).text == "Aside."
        await s.add("go on")
        request = await s.prepare()
    assert "Aside" not in request.body()


async def test_head_rewind_and_compact(home: Path, tmp_path: Path) -> None:
    async with Session.open(tmp_path, model="embedded", system="One.") as s:
        await s.add("Say hello to the herons in the harbour.")
        await s.ask()
        await s.set_head(system="Two.", tools=TOOLS["chat"], options={"temperature": 0})
        await s.add("more")
        request = await s.prepare()
        sent = request.anthropic()
        assert (sent["system"][0]["text"], sent["tools"][0]["name"]) == ("Two.", "run")
        assert sent["temperature"] == 0
        await s.observe({"role": "assistant", "content": "x"})
        before = request.last
        await s.rewind(before)
        with pytest.raises(ReverieError) as raised:
            await s.compact("Keep the herons.")  # a summary would be longer
        assert "/compact" not in str(raised.value)
        await s.add("herons stand in shallow water. " * 900)
        await s.ask()
        done = await s.compact("Keep the herons.")
        assert done.tokens_after < done.tokens_before


async def test_settings_are_taken_as_they_are(home: Path, tmp_path: Path) -> None:
    async with Session.open(
        tmp_path, model="claude-opus-5-5", settings=Settings(max_output_tokens=77)
    ) as s:
        await s.add("hello")
        assert (await s.prepare()).anthropic()["max_tokens"] == 77


async def test_a_loop_keeps_its_prompt_cache(home: Path, tmp_path: Path) -> None:
    provider = Provider(
        answers=[[call("run", '{"n": 1}', f"toolu_number_{n:03d}")] for n in range(12)]
    )
    async with talking(provider, "messages") as (client, sim), Session.open(
        tmp_path, model=MODEL["messages"], client=client, memory=True, system="Rule. " * 900,
        tools=TOOLS["messages"],
    ) as s:  # fmt: skip
        await loop(s, client, "messages")
        report = reverie.report(s)
    assert report.hit_rate is not None
    assert report.hit_rate > 0.8
    assert report.money is not None
    assert report.requests == 13
    assert json.dumps(provider.bodies[0]["system"]) == json.dumps(provider.bodies[-1]["system"])
    assert {e.status for e in sim.log} == {200}
