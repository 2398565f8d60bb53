from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given

from reverie.providers import BASE_URL, WireFormat, openai_model
from reverie.settings import DEFAULTS
from reverie.transcript import AssistantMessage, block
from reverie.wire import render
from tests.providers.test_openai import FORMATS, GPT, body
from tests.providers.wire import (
    Talk,
    assistant,
    patient,
    talk,
)
from tests.transcript.histories import Builder, histories

pytestmark = pytest.mark.spec("14")

PICTURE: dict[str, object] = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": "iVBO"},
}
OPTIONS = (
    '{"max_tokens":1.0e2,"temperature":0.50,"stop_sequences":["x"],"betas":["b"],'
    '"thinking":{"type":"adaptive"},"output_config":{"effort":"max"},'
    '"tool_choice":{"type":"tool","name":"Read","disable_parallel_tool_use":true},'
    '"openai":{"seed":1e1}}'
)


def rich() -> Talk:
    conversation = talk(replace(GPT, options=OPTIONS)).say("and", PICTURE)
    conversation.say({"type": "document", "source": {"type": "text", "data": "words"}})
    conversation.say(
        {"type": "document", "title": "a.pdf", "source": {"type": "base64", "data": "JV"}}
    )
    conversation.add(
        AssistantMessage(
            (
                block('{"type":"thinking","thinking":"secret","signature":"s"}'),
                block('{"type":"text","text":"Sure."}'),
                block('{"type":"tool_use","id":"t1","name":"Read","input":{"n": 1e3}}'),
            )
        )
    )
    return conversation.result("t1", [{"type": "text", "text": "see"}, PICTURE]).say("go on")


def test_a_request_as_chat_completions() -> None:
    made = openai_model("gpt-5", retries=patient(), base_url="http://l.test/v1", wire="chat")
    text = made.body(rich().request())
    found = json.loads(text)
    assert '"max_tokens":1.0e2' in text
    assert '"minimum":1.50' in text
    assert list(found)[-1] == "messages"
    assert found["stream_options"] == {"include_usage": True}
    assert found["reasoning_effort"] == "xhigh"
    assert found["stop"] == ["x"]
    assert found["seed"] == 10
    assert found["parallel_tool_calls"] is False
    assert found["tool_choice"] == {"type": "function", "function": {"name": "Read"}}
    assert found["tools"][0]["function"]["name"] == "Read"
    assert "betas" not in found
    url = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO"}}
    pdf = {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JV"}
    assert found["messages"] == [
        {"role": "system", "content": "Be brief."},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Hello"},
                {"type": "text", "text": "and"},
                url,
                {"type": "text", "text": "words"},
                {"type": "file", "file": pdf},
            ],
        },
        {
            "role": "assistant",
            "content": "Sure.",
            "tool_calls": [
                {
                    "id": "t1",
                    "type": "function",
                    "function": {"name": "Read", "arguments": '{"n": 1e3}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "t1", "content": "see"},
        {"role": "user", "content": [url, {"type": "text", "text": "go on"}]},
    ]


def test_a_request_as_responses() -> None:
    found = body(rich(), "responses")
    assert list(found)[-1] == "input"
    assert found["instructions"] == "Be brief."
    assert found["store"] is False
    assert found["include"] == ["reasoning.encrypted_content"]
    assert found["reasoning"] == {"effort": "xhigh"}
    assert found["max_output_tokens"] == 100
    assert found["tool_choice"] == {"type": "function", "name": "Read"}
    assert found["tools"][0]["strict"] is False
    url = {"type": "input_image", "image_url": "data:image/png;base64,iVBO"}
    assert found["input"][1:] == [
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Sure."}],
        },
        {"type": "function_call", "call_id": "t1", "name": "Read", "arguments": '{"n": 1e3}'},
        {
            "type": "function_call_output",
            "call_id": "t1",
            "output": [{"type": "input_text", "text": "see"}, url],
        },
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go on"}]},
    ]
    plain = talk(replace(GPT, model="gpt-4o"))
    assert "include" not in body(plain, "responses")


@pytest.mark.parametrize(
    ("choice", "chat"), [("auto", "auto"), ("any", "required"), ("none", "none")]
)
@pytest.mark.parametrize("style", FORMATS)
def test_the_choice_of_tools(style: WireFormat, choice: str, chat: str) -> None:
    options = json.dumps({"tool_choice": {"type": choice}})
    assert body(talk(replace(GPT, options=options)), style)["tool_choice"] == chat


def test_openai_itself_has_its_own_name_for_the_limit() -> None:
    made = openai_model("gpt-5", retries=patient(), key="k", wire="chat")
    assert json.loads(made.body(talk(GPT).request()))["max_completion_tokens"] == 100


@pytest.mark.parametrize("style", FORMATS)
def test_an_empty_answer_leaves_no_empty_message(style: WireFormat) -> None:
    conversation = talk(GPT).add(assistant({"type": "thinking", "thinking": "x"})).say("go")
    found = body(conversation, style)
    sent = found["messages" if style == "chat" else "input"]
    assert all(m["role"] != "assistant" for m in sent)


BUILT = openai_model("m1", retries=patient(), base_url="http://l.test/v1")


@given(histories)
def test_a_longer_request_begins_with_the_bytes_of_a_shorter_one(
    steps: list[tuple[Any, ...]],
) -> None:
    history = Builder()
    for step in steps:
        history.do(*step)
    requests = [request for request, _ in history.requests] + [render(history.view)]
    for style in FORMATS:
        made = replace(BUILT, format=style)
        bodies = [made.body(r) for r in requests]
        assert bodies == [made.body(r) for r in requests]
        pairs = list(zip(requests, bodies, strict=True))
        for (before, shorter), (after, longer) in pairwise(pairs):
            if after.extends(before):
                assert longer.startswith(shorter.rstrip("]}"))


def test_one_cache_key_for_a_session_and_its_forks() -> None:
    conversation = talk(GPT)
    first = body(conversation, "chat")["prompt_cache_key"]
    conversation.add(assistant({"type": "text", "text": "hi"})).say("more")
    assert body(conversation, "chat")["prompt_cache_key"] == first
    assert body(talk(GPT, "Other"), "chat")["prompt_cache_key"] != first
    named = talk(replace(GPT, options='{"prompt_cache_key":"mine"}'))
    assert body(named, "responses")["prompt_cache_key"] == "mine"
    assert body(named, "responses", cache_key="session")["prompt_cache_key"] == "session"


# --- the output limit

FREE = replace(GPT, options="{}")


@pytest.mark.parametrize(
    ("wire", "official", "key"),
    [
        ("chat", False, "max_tokens"),
        ("chat", True, "max_completion_tokens"),
        ("responses", True, "max_output_tokens"),
    ],
)
def test_the_output_limit_is_the_setting_within_what_the_model_can(
    wire: WireFormat, official: bool, key: str
) -> None:
    url = BASE_URL if official else "http://l.test/v1"
    few = replace(DEFAULTS, max_output_tokens=900)
    for settings, most in ((DEFAULTS, 32_000), (few, 900)):
        made = openai_model(
            "gpt-5", retries=patient(), key="k", base_url=url, wire=wire, settings=settings
        )
        assert json.loads(made.body(talk(FREE).request()))[key] == most
    made = openai_model("gpt-4o", retries=patient(), key="k", base_url=url, wire=wire)
    assert json.loads(made.body(talk(FREE).request()))[key] == 16_384


@pytest.mark.parametrize("wire", FORMATS)
def test_a_model_of_which_nothing_is_known_keeps_its_servers_own_limit(wire: WireFormat) -> None:
    url = "http://l.test/v1"
    made = openai_model("qwen3", retries=patient(), base_url=url, wire=wire)
    sent = json.loads(made.body(talk(FREE).request()))
    assert not {"max_tokens", "max_completion_tokens", "max_output_tokens"} & sent.keys()
    few = replace(DEFAULTS, max_output_tokens=900)
    made = openai_model("qwen3", retries=patient(), base_url=url, wire=wire, settings=few)
    assert 900 in json.loads(made.body(talk(FREE).request())).values()
