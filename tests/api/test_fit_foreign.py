"""Lists as callers have them: everything a transcript would refuse is a caller's right."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import reverie
from reverie.errors import InvalidInput, InvalidMessage, PromptTooLong
from reverie.transcript import INTERRUPTED, reference
from reverie.wire import Format
from tests.api.lists import FORMS, MODELS, answered, call, calls_of, results_of
from tests.api.rounds import one_round
from tests.api.rounds import rounds as large_rounds

pytestmark = [pytest.mark.spec("18.wire"), pytest.mark.spec("18.fit")]
LONG = "src/reverie/context/fitter.py line of text\n" * 1_000
KIT = reverie.tools()


def chat_call(ident: str, arguments: str = "{}", said: str | None = None) -> dict[str, Any]:
    function = {"name": "run", "arguments": arguments}
    calls = [{"id": ident, "type": "function", "function": function}]
    return {"role": "assistant", "content": said, "tool_calls": calls}


def chat_result(ident: str, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": ident, "content": text}


def fitted(messages: list[Any], **more: Any) -> reverie.Fitted[Any]:
    given = {"model": "gpt-5", "tools": KIT.openai(), **more}
    return reverie.fit(messages, **given)


def rounds(count: int, form: Format = "chat") -> list[Any]:
    out: list[Any] = [{"role": "user", "content": "begin"}]
    for n in range(count):
        text = f"result {n} in src/part_{n}/module_{n}.py\n" * 100
        if form == "chat":
            out += [chat_call(f"c{n}"), chat_result(f"c{n}", text)]
        elif form == "responses":
            given = {"call_id": f"c{n}", "name": "run", "arguments": "{}"}
            out.append({"type": "reasoning", "id": f"rs_{n}", "summary": []})
            out.append({"type": "function_call", **given})
            out.append({"type": "function_call_output", "call_id": f"c{n}", "output": text})
        else:
            use = {"type": "tool_use", "id": f"c{n}", "name": "run", "input": {"n": n}}
            thought = {"type": "thinking", "thinking": "hm", "signature": f"s{n}"}
            result = {"type": "tool_result", "tool_use_id": f"c{n}", "content": text}
            out.append({"role": "assistant", "content": [thought, use]})
            out.append({"role": "user", "content": [result]})
    return out


def offered(form: Format) -> list[Any]:
    made = {"messages": KIT.anthropic, "chat": KIT.openai, "responses": KIT.responses}
    return made[form]()


def test_ids_that_are_used_again_are_two_calls():
    messages = [{"role": "user", "content": "go"}]
    for n in range(40):
        messages += [chat_call("call_1"), chat_result("call_1", f"{n}: {LONG}")]
    sent = fitted(messages)
    assert sent.saved > 0
    assert sent[-2] is messages[-2]
    assert sent[-1]["tool_call_id"] == "call_1"
    assert calls_of(list(sent), "chat").count("call_1") == len(
        [m for m in sent if m["role"] == "tool"]
    )
    first = answered(sent.handle(call("read_back", "chat", reference=reference("call_1"))), "chat")
    assert "0: src/reverie" in first
    later = reference("call_1~7.0")  # the fourth of them
    assert "3: src/reverie" in answered(
        sent.handle(call("read_back", "chat", reference=later)), "chat"
    )


def test_an_empty_id_is_a_call_too():
    messages = [{"role": "user", "content": "go"}, chat_call(""), chat_result("", "done")]
    assert list(fitted(messages)) == messages


def test_results_without_a_call_stay_where_they_are():
    messages = [chat_result("gone", "orphan"), {"role": "user", "content": "go"}]
    sent = fitted(messages)
    assert [a is b for a, b in zip(sent, messages, strict=True)] == [True, True]


def test_a_greeting_of_the_assistant_comes_first():
    greeting = {"role": "assistant", "content": "How can I help?"}
    messages = [greeting, {"role": "user", "content": "hi"}]
    assert fitted(messages)[0] is greeting
    messages = [greeting, *rounds(80)]
    assert "How can I help?" in json.dumps(list(fitted(messages)))


def test_system_messages_survive_sealing_in_their_order():
    first = {"role": "system", "content": "be brief"}
    middle = {"role": "developer", "content": "never touch main"}
    messages = [first, *rounds(30), middle, *rounds(60)[1:]]
    sent = fitted(messages)
    assert sent.saved > 0
    assert sent[0] is first
    assert [m for m in sent if m["role"] in ("system", "developer")] == [first, middle]
    assert any(m is middle for m in sent)


def test_arguments_that_are_no_json_stay_as_written():
    broken = chat_call("c", '{"path": "a')
    messages = [{"role": "user", "content": "go"}, broken, chat_result("c", "no")]
    assert fitted(messages)[1] is broken
    found = fitted([*messages, *rounds(80)[1:]])
    text = answered(found.handle(call("read_back", "chat", reference=reference("c"))), "chat")
    assert '{\\"path\\": \\"a' in text


@pytest.mark.parametrize("form", FORMS)
def test_a_call_without_a_result_is_interrupted(form: Format):
    messages = rounds(2, form)
    del messages[-1]
    last = calls_of(messages, form)[-1]
    sent = reverie.fit(messages, model=MODELS[form], tools=offered(form), marks=False)
    assert results_of(list(sent), form)[last] == INTERRUPTED
    assert all(a is b for a, b in zip(sent, messages, strict=False))
    later = [*messages, {"role": "user", "content": "go on"}]
    middle = [*later, {"role": "assistant", "content": "yes"}]
    for more in (later, middle):
        sent = reverie.fit(more, model=MODELS[form], tools=offered(form), marks=False)
        assert results_of(list(sent), form)[last] == INTERRUPTED
        assert sent[-1] is more[-1]
        at = next(n for n, m in enumerate(sent) if m is messages[-1])
        assert INTERRUPTED in json.dumps(sent[at + 1])


def test_some_of_the_calls_of_a_message_are_answered():
    two = chat_call("a")
    two["tool_calls"] += chat_call("b")["tool_calls"]
    messages = [{"role": "user", "content": "go"}, two, chat_result("a", "one")]
    sent = fitted(messages)
    assert list(sent[:3]) == messages
    assert sent[3] == chat_result("b", INTERRUPTED)


@pytest.mark.parametrize("form", FORMS)
def test_one_message_too_long_for_the_window_is_refused(form: Format):
    messages = [{"role": "user", "content": "x" * 1_000_000}]
    with pytest.raises(PromptTooLong) as caught:
        reverie.fit(messages, model=MODELS[form], tools=offered(form), window=20_000)
    assert caught.value.needed is not None
    assert caught.value.needed > 250_000
    assert caught.value.allowed == 18_000


@pytest.mark.parametrize("form", FORMS)
def test_one_result_too_long_for_the_window_is_cut(form: Format):
    messages = rounds(1, form)
    messages[-1] = json.loads(json.dumps(messages[-1]).replace("result 0", "x" * 10_000))
    for tools in (offered(form), ()):
        sent = reverie.fit(messages, model=MODELS[form], tools=tools, window=20_000, marks=False)
        assert sent.tokens <= 18_000
        assert list(sent[:-1]) == messages[:-1]
        assert set(calls_of(list(sent), form)) == set(results_of(list(sent), form))


def test_policy_off_changes_nothing_and_still_refuses():
    assert list(fitted(rounds(80), policy="off")) == rounds(80)
    with pytest.raises(PromptTooLong):
        fitted(rounds(80), policy="off", window=20_000)
    with pytest.raises(InvalidInput):
        fitted(rounds(1), policy="other")


def test_unknown_roles_and_parts_pass():
    odd: list[Any] = [
        {"role": "narrator", "content": "it rains"},
        {"role": "user", "content": [{"type": "hologram", "data": 1}]},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]},
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "1"},
        {"role": "assistant", "content": ""},
        {"role": "user", "content": ""},
    ]
    messages = [{"role": "user", "content": "go"}, *odd, *rounds(80)[1:]]
    sent = fitted(messages)
    assert sent.saved > 0
    for message in odd:
        assert sum(m is message for m in sent) == 1


def test_unknown_members_survive_an_edit():
    result = {**chat_result("c", LONG), "mine": {"a": 1}, "name": "run"}
    messages = [{"role": "user", "content": "go"}, chat_call("c"), result]
    sent = fitted(messages)
    assert sent[2]["content"] != LONG
    assert {**sent[2], "content": LONG} == result


def test_marks_of_the_caller_survive_and_two_are_set_where_there_are_none():
    def marks(messages: list[Any]) -> list[int]:
        return [n for n, m in enumerate(messages) if "cache_control" in json.dumps(m)]

    plain = rounds(80, "messages")
    model, tools = MODELS["messages"], offered("messages")
    sent = reverie.fit(plain, model=model, tools=tools)
    lines = [n for n, m in enumerate(sent) if "Earlier rounds" in json.dumps(m)]
    assert lines
    assert len(marks(list(sent))) == 2
    assert marks(list(sent))[-1] == len(sent) - 1
    assert "cache_control" not in json.dumps(plain)
    own = rounds(80, "messages")
    for n in (2, len(own) - 1):
        own[n]["content"][0]["cache_control"] = {"type": "ephemeral"}
    sent = reverie.fit(own, model=model, tools=tools)
    assert len(marks(list(sent))) == 2  # one of them stood on what was sealed
    assert sent[-1] is own[-1]


def test_what_was_fitted_before_is_sent_as_it_is_and_said_so():
    notices: list[str] = []
    fitter = reverie.Fitter(
        model="gpt-5", tools=KIT.openai(), on_notice=lambda n: notices.append(n.text)
    )
    once = list(fitted(rounds(80)))
    twice = fitter.fit(once)
    fitter.fit(once)
    assert all(a is b for a, b in zip(once, twice, strict=True))
    assert len(notices) == 1
    assert "fitted before" in notices[0]


def test_an_old_message_changed_in_place_is_seen():
    fitter = reverie.Fitter(model="gpt-5", tools=KIT.openai())
    messages = rounds(3)
    fitter.fit(messages)
    messages[0]["content"] = "another beginning"
    assert list(fitter.fit(messages)) == list(fitted(messages))
    assert fitter.fit(messages)[0]["content"] == "another beginning"


@pytest.mark.parametrize("bad", ["hello", b"x", {"role": "user"}, 3, None])
def test_what_is_no_list_is_refused(bad: Any):
    with pytest.raises(InvalidMessage):
        fitted(bad)


@pytest.mark.parametrize("bad", [["hello"], [3], [None], [object()]])
def test_what_is_no_message_is_refused(bad: Any):
    with pytest.raises(InvalidMessage):
        fitted(bad)


def test_an_empty_list_is_empty():
    assert list(fitted([])) == []


def test_fit_runs_inside_a_running_loop_without_disk_or_network(
    monkeypatch: pytest.MonkeyPatch,
):
    import asyncio
    import builtins
    import socket
    import time

    fitted(rounds(1))

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("fit reached outside")

    async def inside() -> reverie.Fitted[Any]:
        with monkeypatch.context() as patch:
            patch.setattr(builtins, "open", refuse)
            patch.setattr(socket, "socket", refuse)
            patch.setattr(time, "time", refuse)
            return fitted(rounds(80))

    assert asyncio.run(inside()).saved > 0


def test_a_layer_of_ones_own_that_fails_fails_alone():
    async def broken(view: Any, world: Any) -> Any:
        raise ValueError("no")

    notices: list[str] = []
    fitter = reverie.Fitter(
        model="gpt-5", layers=[broken], on_notice=lambda n: notices.append(n.text)
    )
    assert list(fitter.fit(rounds(2))) == rounds(2)
    assert notices == ["the layer failed: ValueError: no"]


@pytest.mark.parametrize("form", FORMS)
def test_a_line_longer_than_a_page_is_read_on_by_column(form: Format):
    text = "".join(f"{n:06d}," for n in range(30_000))  # one line of 210,000 characters
    messages = [*rounds(0, form), *one_round(0, "build", text, form)]
    sent = reverie.fit(messages, model=MODELS[form], tools=reverie.tools())
    (ref,) = {f"r:{found}" for found in re.findall(r"r:(\w{6})", json.dumps(list(sent)))}
    got, place = "", {"offset": 1, "column": 1}
    while True:
        page = answered(sent.handle(call("read_back", form, reference=ref, **place)), form)
        rows = page.split("\n")[1:]
        more = re.search(r"go on with offset (\d+)(?: and column (\d+))?", rows[-1])
        got += "".join(row.partition("\t")[2] for row in rows)
        if more is None:
            break
        place = {"offset": int(more[1]), "column": int(more[2] or 1)}
    assert text in got


def test_threads_and_two_event_loops_share_a_fitter_in_turn():
    import asyncio
    import threading

    fitter = reverie.Fitter(model="gpt-5", tools=reverie.tools())
    full = large_rounds(30)
    wanted = [list(reverie.fit(full[:n], model="gpt-5", tools=reverie.tools())) for n in (21, 61)]
    failed: list[BaseException] = []

    def loop() -> None:
        async def work() -> None:
            for _ in range(4):
                assert list(await fitter.aio.fit(full[:21])) == wanted[0]
                assert list(await fitter.aio.fit(full)) == wanted[1]

        try:
            asyncio.run(work())
        except BaseException as error:  # noqa: BLE001 - told below
            failed.append(error)

    threads = [threading.Thread(target=loop) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []


FORK = """
import os, sys, reverie
sys.path.insert(0, sys.argv[1])
from tests.api.rounds import rounds
fitter = reverie.Fitter(model="gpt-5", tools=reverie.tools(), store=sys.argv[2])
before = list(fitter.fit(rounds(30)))
child = os.fork()
again = list(fitter.fit(rounds(30))) == before and fitter.fit(rounds(31)).before > 90_000
if not child:
    os._exit(0 if again else 1)
assert again and os.waitpid(child, 0)[1] == 0
"""


def test_a_fork_of_the_process_goes_on_with_its_fitter(tmp_path: Path):
    root = str(Path(__file__).resolve().parents[2])
    run = [sys.executable, "-c", FORK, root, str(tmp_path / "store")]
    done = subprocess.run(run, capture_output=True, text=True, check=False, cwd=root, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
