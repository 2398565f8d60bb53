"""What the provider refuses, edits, diagnoses, logs and bills."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.errors import InvalidInput, PromptTooLong, ProviderError
from reverie.simulator import (
    CACHESIM,
    OPENAI,
    ApiError,
    Ledger,
    Models,
    ModelSpec,
    SimulatedModel,
    answer,
    call,
    cut,
    error,
    from_model,
    garbled,
    load,
    page,
    script,
    slow,
    thinking_block,
)
from reverie.transcript import (
    EMPTY,
    Entry,
    HeadSet,
    Sent,
    UserMessage,
    View,
    apply,
    block_of,
    text_block,
)
from reverie.wire import Reply, Request, render
from reverie.world import Event, complete

from .talk import (
    CLEAR,
    KEY,
    MODEL,
    assistant,
    body,
    engine,
    result,
    text,
    use,
    user,
    words,
)

pytestmark = [pytest.mark.spec("2"), pytest.mark.spec("14")]

# --- refusals

CALLED = assistant(use("a"))
BAD: list[tuple[str, dict[str, Any]]] = [
    ("messages: at least one", body()),
    ("messages: Field required", {"model": MODEL, "max_tokens": 1}),
    ("model: Field required", {"max_tokens": 1, "messages": [user("x")]}),
    ("max_tokens: Field required", {"model": MODEL, "messages": [user("x")]}),
    ("max_tokens: Input", body(user("x"), max_tokens=-1)),
    ("role", body({"role": "robot", "content": "x"})),
    ("content: Field required", body({"role": "user"})),
    ("non-empty content", body({"role": "user", "content": []})),
    ("must be non-empty", body(user(""))),
    ("non-whitespace", body(user(" \n"))),
    ("first message", body(assistant("x"))),
    ("type: Field required", body({"role": "user", "content": [{"text": "x"}]})),
    ("unexpected `tool_use_id`", body(user(result("a")))),
    ("without `tool_result`", body(user("x"), CALLED)),
    ("without `tool_result`", body(user("x"), CALLED, user("y"))),
    ("without `tool_result`", body(user("x"), CALLED, user("y", result("a")))),
    ("without `tool_result`", body(user("x"), assistant(use("a"), use("b")), user(result("a")))),
    ("single result", body(user("x"), CALLED, user(result("a"), result("a")))),
    ("ids must be unique", body(user("x"), assistant(use("a"), use("a")))),
    (
        "ids must be unique",
        body(user("x"), CALLED, user(result("a")), CALLED, user(result("a"))),
    ),
    ("single result", body(user("x"), CALLED, user(result("a")), user(result("a")))),
    ("match pattern", body(user("x"), assistant(use("a b")))),
    ("input: Input", body(user("x"), assistant({**use("a"), "input": "text"}))),
    ("only be in `assistant`", body(user(use("a")))),
    ("only be in `user`", body(user("x"), assistant(result("a")))),
    ("signature: Field required", body(user("x"), assistant({"type": "thinking", "thinking": ""}))),
    ("names must be unique", body(user("x"), tools=[{"name": "A"}, {"name": "A"}])),
    ("name: Field required", body(user("x"), tools=[{}])),
    ("maximum of 4", body(*(user(text(words(n), "5m")) for n in range(5)))),
    ("must not come after", body(user(text("a", "5m"), text("b", "1h")))),
    ("must not come after", body(user(text("a", "5m"), "b"), cache_control={"ttl": "1h"})),
    ("Input should be '5m' or '1h'", body(user(text("a", "2h")))),
    ("cannot be set", body(user("x"), assistant({**text(" ", "5m")}), user("y"))),
    ("budget_tokens", body(user("x"), thinking={"type": "enabled", "budget_tokens": 9})),
    ("must be greater", body(user("x"), thinking={"type": "enabled", "budget_tokens": 2000})),
    ("unknown thinking", body(user("x"), thinking={"type": "deep"})),
    ("system", body(user("x"), system=7)),
    ("context-management-2025-06-27", body(user("x"), context_management={"edits": []})),
]


@pytest.mark.parametrize(("said", "asked"), BAD)
def test_what_the_api_refuses_is_refused_in_its_words(said: str, asked: dict[str, Any]) -> None:
    sim = engine()
    with pytest.raises(ApiError) as caught:
        sim.respond(asked)
    assert said in caught.value.message
    assert caught.value.body("req_1") == {
        "type": "error",
        "error": {"type": "invalid_request_error", "message": caught.value.message},
        "request_id": "req_1",
    }
    (logged,) = sim.log
    assert (logged.status, logged.cost) == (400, 0.0)


@pytest.mark.parametrize("given_text", ["", "{", "[]", "NaN", '{"a":NaN}', "[" * 100_000, "\udfff"])
def test_what_is_no_body_is_refused(given_text: str) -> None:
    with pytest.raises(ApiError) as caught:
        engine().respond(given_text)
    assert caught.value.status == 400


def test_a_body_nested_too_deeply_is_refused() -> None:
    deep: Any = "x"
    for _ in range(20_000):
        deep = [deep]
    asked = body(user("x"), assistant(use("a", deep=deep)), user(result("a")))
    with pytest.raises(ApiError) as caught:
        engine().respond(asked)
    assert caught.value.status == 400


@pytest.mark.parametrize(
    ("headers", "asked", "status", "kind"),
    [
        ({}, body(user("x")), 401, "authentication_error"),
        ({"x-api-key": "wrong"}, body(user("x")), 401, "authentication_error"),
        ({"Authorization": "Bearer right"}, body(user("x"), model="gpt"), 404, "not_found_error"),
    ],
)
def test_keys_and_models_are_checked(headers, asked, status, kind) -> None:
    sim = engine(keys=["right"])
    with pytest.raises(ApiError) as caught:
        sim.respond(asked, headers=headers)
    assert (caught.value.status, caught.value.kind) == (status, kind)
    sim.respond(body(user("x")), headers={"X-Api-Key": "right"})


def test_over_the_window_the_prompt_is_too_long() -> None:
    sim = engine(models=Models([ModelSpec(MODEL, window=1000)]))
    with pytest.raises(ApiError) as caught:
        sim.respond(body(user(words(1, 1002))))
    assert caught.value.message == "prompt is too long: 1002 tokens > 1000 maximum"
    sim.respond(body(user(words(1, 1000))))


json_values: Any = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 9) | st.floats() | st.text(max_size=4)
    | st.sampled_from(["user", "assistant", "system", "text", "tool_use", "thinking", "a", "5m"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["type", "text", "role", "content", "id", "tool_use_id", "input", "name", "thinking",
             "signature", "delete", "cache_control", "ttl", "edits", "keep", "value", "trigger"]
        ),
        inner,
        max_size=4,
    ),
    max_leaves=12,
)  # fmt: skip
KEYS = ["messages", "system", "tools", "thinking", "context_management", "compaction", "metadata",
        "max_tokens", "model", "cache_control", "diagnostics", "tool_choice", "speed"]  # fmt: skip
ALL_BETAS = {
    **KEY,
    "anthropic-beta": "context-management-2025-06-27,compact-2026-09-04,"
    "thinking-binding-controls-2026-08-01",
}


@given(st.dictionaries(st.sampled_from(KEYS), json_values), st.lists(json_values, max_size=3))
def test_any_body_is_answered_or_refused_in_the_apis_shape(changes, contents) -> None:
    """Never another exception than the API's own error."""
    sim = engine()
    messages = [user("x"), *({"role": "user", "content": c} for c in contents)]
    for asked in (changes, {**body(*messages), **changes}, body(*messages)):
        for rules in (None, OPENAI, CACHESIM):
            with contextlib.suppress(ApiError):
                received = sim.receive(json.dumps(asked), ALL_BETAS, rules=rules)
                assert sim.finish(received, answer("ok")).response.text()
            with contextlib.suppress(ApiError):
                sim.finish(sim.receive(asked, ALL_BETAS, rules=rules), answer("ok"))
        with contextlib.suppress(ApiError):
            sim.count_tokens(asked, ALL_BETAS)
    assert all(e.status == 200 or 400 <= e.status < 500 for e in sim.log)


# --- answers


def test_an_answer_over_max_tokens_is_cut() -> None:
    sim = engine()
    done = sim.respond(body(user("x"), max_tokens=10), [text("y" * 100), use("a")])
    assert [b.get("text") for b in done.response.content] == ["y" * 40]
    assert (done.response.stop_reason, done.response.output) == ("max_tokens", 10)


def test_ids_come_from_a_counter_and_differ() -> None:
    ids = []
    for _ in range(2):
        sim = engine()
        done = [sim.respond(body(user("x")), [call("Read")]).response for _ in range(3)]
        ids.append([i for r in done for i in (r.id, r.content[0].get("id"))])
    assert ids[0] == ids[1]
    assert len(set(ids[0])) == 6
    assert engine(seed="other").respond(body(user("x"))).response.id not in ids[0]


async def test_answers_come_from_a_list_a_function_a_file_or_a_model(tmp_path: Path) -> None:
    listed = engine(
        script("one", [thinking_block("hm"), call("Read", '{"n":1e3}')], otherwise="last")
    )
    texts = [(await listed.messages(body(user("x")))).response.text() for _ in range(4)]
    assert '"text":"one"' in texts[0]
    assert '"input":{"n":1e3}' in texts[1]
    assert all('"text":"last"' in t for t in texts[2:])

    async def late(asked: Any) -> str:
        return f"{len(asked['messages'])} messages"

    assert "1 messages" in (await engine(late).messages(body(user("x")))).response.text()
    file = tmp_path / "script.json"
    file.write_text(
        json.dumps(
            {
                "answers": [
                    {"when": {"last": "second"}, "content": "for the second"},
                    {"content": [text("for the first"), use("t9")], "stop_reason": "tool_use"},
                    {"fault": {"status": 529, "retry_after": 2}},
                ],
                "otherwise": "nothing more",
            }
        )
    )
    filed = engine(load(file))
    assert "for the first" in (await filed.messages(body(user("x")))).response.text()
    assert "for the second" in (await filed.messages(body(user("the second")))).response.text()
    with pytest.raises(ApiError, match="Overloaded") as caught:
        await filed.messages(body(user("x")))
    assert caught.value.headers == {"retry-after": "2"}
    assert "nothing more" in (await filed.messages(body(user("x")))).response.text()
    asked: list[Request] = []
    embedded = engine(from_model(Echo(asked)))
    over = body(user("x"), system="s", tools=[{"name": "A"}])
    assert "from a model" in (await embedded.messages(over)).response.text()
    assert json.loads(asked[0].body())["messages"] == [user("x")]


class Echo:
    """The smallest model."""

    name = "echo"
    capabilities = SimulatedModel().capabilities

    def __init__(self, asked: list[Request]) -> None:
        self.asked = asked

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        self.asked.append(request)
        yield Reply((text_block("from a model"),), stop_reason="end_turn")


@pytest.mark.parametrize("written", ["", "[", '{"answers": 7}', "[7]"])
def test_a_script_that_is_none_is_refused(tmp_path: Path, written: str) -> None:
    file = tmp_path / "script.json"
    file.write_text(written)
    with pytest.raises(InvalidInput):
        load(file)


# --- faults, log, bills


def test_faults_come_in_the_order_of_the_plan() -> None:
    sim = engine(faults=[error(429, retry_after=3), None, error(500), cut(10)])
    befell = []
    for _ in range(5):
        with contextlib.suppress(ApiError):
            befell.append(sim.respond(body(user("x"))).fault)
    assert befell == [None, cut(10), None]
    assert [e.status for e in sim.log] == [429, 200, 500, 200, 200]
    chosen = engine(faults=lambda n, _: error(529) if n % 2 else None)
    with pytest.raises(ApiError, match="Overloaded"):
        chosen.respond(body(user("x")))
    chosen.respond(body(user("x")))


def test_every_request_is_logged_and_no_key_is(tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    sim = engine(ledger=Ledger(file))
    headers = {"x-api-key": "sk-very-secret", "authorization": "Bearer sk-very-secret"}
    sim.respond(body(user("x")), headers=headers)
    with pytest.raises(ApiError):
        sim.respond(body(), headers=headers)
    sim.count_tokens(body(user("x")), headers)
    sim.ledger.close()
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(one["n"], one["status"]) for one in lines] == [(1, 200), (2, 400), (3, 200)]
    assert json.loads(lines[0]["body"]) == body(user("x"))
    assert "very-secret" not in file.read_text()
    assert "very-secret" not in repr(sim.log)


@pytest.mark.parametrize(
    ("headers", "other", "session"),
    [
        ({"X-Claude-Code-Session-Id": "s1"}, {}, "s1"),
        ({}, {"metadata": {"user_id": json.dumps({"session_id": "s2", "device_id": "d"})}}, "s2"),
        ({}, {"metadata": {"user_id": "somebody"}}, "somebody"),
        ({}, {}, "key …-key"),
    ],
)
def test_a_bill_goes_to_its_session(headers, other, session) -> None:
    sim = engine()
    sim.respond(body(user("x"), **other), headers={**KEY, **headers})
    assert list(sim.bills) == [session]


# --- the twin


def talk(view: View, *records: Any) -> View:
    for record in records:
        number = len(view.entries)
        view = apply(view, Entry(f"e{number}", view.leaf, float(number), record))
    return view


async def test_the_twin_is_a_model_like_any_other() -> None:
    answers = script([thinking_block("hm"), call("Read", '{"n":1.50}')], "done")
    model = SimulatedModel(engine(answers))
    head = HeadSet(MODEL, json.dumps([text(words(0))]), '[{"name":"Read"}]')
    view = talk(EMPTY, head, UserMessage((text_block(words(1)),)))
    usages: list[Any] = []
    reply = Reply(())
    for _ in range(2):
        request = render(view)
        view = talk(view, Sent("main", view.leaf, request.parts(), request.marks))
        reply = await complete(model, request)
        usages.append(reply.usage)
        view = talk(view, reply.record())
        if reply.tool_calls:
            (asked,) = reply.tool_calls
            assert asked.raw == '{"n":1.50}'
            done = block_of({"type": "tool_result", "tool_use_id": asked.id, "content": "x"})
            view = talk(view, UserMessage((done,), "tool"))
    assert reply.text == "done"
    assert (reply.provider, reply.model, reply.stop_reason) == ("simulator", MODEL, "end_turn")
    assert usages[0].written > 600
    assert usages[0].written_1h == 0
    assert usages[1].read == usages[0].written
    assert model.bill.cost == sum(e.cost for e in model.engine.log)
    assert model.capabilities.marks == 4


async def test_the_twin_raises_what_providers_raise() -> None:
    plan = [error(529), cut(3), garbled(), page(), slow(9.0)]
    model = SimulatedModel(engine(faults=plan), window=1000)
    request = render(talk(EMPTY, HeadSet(""), UserMessage((text_block("x"),))))
    for _ in plan[:-1]:
        with pytest.raises(ProviderError):
            await complete(model, request)
    assert (await complete(model, request)).text
    long = render(talk(EMPTY, HeadSet(""), UserMessage((text_block(words(1, 2000)),))))
    with pytest.raises(PromptTooLong) as caught:
        await complete(model, long)
    assert (caught.value.needed, caught.value.allowed) == (2000, 1000)


async def test_the_twin_sends_the_betas_a_body_needs() -> None:
    model = SimulatedModel(engine())
    options = json.dumps({"context_management": {"edits": [CLEAR]}, "betas": ["some-beta"]})
    head = HeadSet(MODEL, options=options)
    reply = await complete(model, render(talk(EMPTY, head, UserMessage((text_block("x"),)))))
    assert reply.applied_edits == "[]"
    assert model.engine.log[0].headers["anthropic-beta"].endswith(",some-beta")


async def test_a_failing_answerer_is_the_providers_failure() -> None:
    async def broken(_: Any) -> str:
        raise ProviderError("the model is gone")

    sim = engine(broken)
    with pytest.raises(ApiError, match="the model is gone") as caught:
        await sim.messages(body(user("x")))
    assert caught.value.status == 500
    assert sim.log[0].status == 500
