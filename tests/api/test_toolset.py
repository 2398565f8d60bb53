"""Tools for the model: three forms, own names, and answers to bad calls."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

import reverie
from reverie.errors import InvalidInput
from reverie.toolbox import Offer, ToolAnswer
from reverie.transcript import UserMessage, reference
from reverie.wire import Format, ToolCall
from tests.api.lists import FORMS, answered, call

pytestmark = pytest.mark.spec("18.toolset")
CALLED: list[Any] = [
    {"role": "user", "content": "go"},
    {
        "role": "assistant",
        "content": "a look",
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "run", "arguments": '{"n":1}'}}
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "the result\nof two lines"},
]


class Greeter:
    """Whatever has tools."""

    @property
    def tools(self) -> reverie.Toolset:
        return reverie.Toolset(
            [Offer("greet", "greet", "Greets.", {"type": "object"}, lambda _: ToolAnswer("hello"))]
        )


def test_each_form_describes_the_same_tools():
    kit = reverie.tools()
    assert kit.names == ("read_back",)
    (plain,), (chat,), (item,) = kit.anthropic(), kit.openai(), kit.responses()
    assert plain["input_schema"] == chat["function"]["parameters"] == item["parameters"]
    assert plain["name"] == chat["function"]["name"] == item["name"] == "read_back"
    assert kit.openai() == reverie.tools().openai()


@pytest.mark.parametrize("form", FORMS)
def test_a_call_is_answered_in_its_form_and_others_are_not_ours(form: Format):
    sent = reverie.fit(CALLED, model="gpt-5")
    result = sent.handle(call("read_back", form, reference=reference("c1")))
    assert "the result" in answered(result, form)
    assert 'run {"n":1}' in answered(result, form)
    assert "a look" in answered(result, form)
    assert "call_back" in result.values() or "toolu_back" in result.values()
    assert sent.handle(call("run", form, n=1)) is None


def test_a_call_of_a_session_is_answered_for_add():
    sent = reverie.fit(CALLED, model="gpt-5")
    result = sent.handle(ToolCall("x", "read_back", f'{{"reference":"{reference("c1")}"}}'))
    assert isinstance(result, UserMessage)
    assert sent.handle(ToolCall("x", "other", "{}")) is None


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"reference": 5},
        {"reference": "r:000000"},
        {"reference": "r:000000", "offset": 0},
        {"reference": "../../etc/passwd"},
        {"reference": "x", "other": 1},
        {"reference": ""},
    ],
)
@pytest.mark.parametrize("form", FORMS)
def test_bad_input_of_a_model_is_an_error_result(form: Format, given: Any):
    sent = reverie.fit(CALLED, model="gpt-5")
    result = sent.handle(call("read_back", form, **given))
    assert answered(result, form)
    assert "the result" not in answered(result, form)
    if form == "messages":
        assert result["is_error"] is True


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '"x"', "{" * 5_000, '{"a":1}{'])
def test_arguments_that_cannot_be_read_are_an_error_result(text: str):
    sent = reverie.fit(CALLED, model="gpt-5")
    asked = {"id": "x", "type": "function", "function": {"name": "read_back", "arguments": text}}
    assert sent.handle(asked)["tool_call_id"] == "x"


def test_own_names():
    kit = reverie.tools(Greeter(), names={"read_back": "fetch_result", "greet": "wave"})
    assert kit.names == ("fetch_result", "wave")
    assert kit.handle(call("wave", "chat"))["content"] == "hello"
    assert kit.handle(call("greet", "chat")) is None
    long = [*CALLED[:2], {**CALLED[2], "content": "a line of it\n" * 5_000}]
    sent = reverie.fit(long, model="gpt-5", tools=kit, via="fetch_result")
    assert "fetch_result with r:" in sent[2]["content"]
    back = sent.handle(call("fetch_result", "chat", reference=reference("c1")))
    assert "a line of it" in back["content"]


def test_what_a_read_back_returns_is_not_stored_away_again():
    kit = reverie.tools(names={"read_back": "fetch_result"})
    function = {"name": "fetch_result", "arguments": '{"reference":"r:000000"}'}
    asked = {"id": "c2", "type": "function", "function": function}
    result = {"role": "tool", "tool_call_id": "c2", "content": "a line of it\n" * 5_000}
    messages = [*CALLED, {"role": "assistant", "content": None, "tool_calls": [asked]}, result]
    sent = reverie.fit(messages, model="gpt-5", tools=kit, via="fetch_result")
    assert sent[-1] is result


def test_names_that_clash_or_are_unknown_are_refused():
    with pytest.raises(InvalidInput):
        reverie.tools(Greeter(), Greeter())
    with pytest.raises(InvalidInput):
        reverie.tools(names={"nothing": "x"})
    with pytest.raises(InvalidInput):
        reverie.tools(Greeter(), names={"greet": "read_back"})


def test_toolsets_are_added():
    both = reverie.tools() + Greeter().tools
    assert both.names == ("read_back", "greet")
    assert len(both.responses()) == 2


def test_a_toolset_that_only_describes_says_who_can_answer():
    with pytest.raises(InvalidInput, match="handle of what fit returned"):
        reverie.tools().handle(call("read_back", "chat", reference="r:000000"))


def test_the_package_of_tools_does_not_hide_the_function():
    import_module("reverie.toolbox.tool")
    assert reverie.tools().names == ("read_back",)
