"""A body is read in place, in three forms: what is said, called and answered, and where."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reverie.interception import RequestBody, ScanCache, scan_body
from reverie.transcript import dump
from reverie.wire import Format
from tests.proxy.clients import assistant, gave, text, use, user

pytestmark = [pytest.mark.spec("1.matching")]
MARK = {"cache_control": {"type": "ephemeral"}}
CALLED = {"name": "Bash", "arguments": '{"command": "ls"}'}

TALKS: dict[Format, list[dict[str, Any]]] = {
    "messages": [
        user("look"),
        assistant(
            {"type": "thinking", "thinking": "hm", "signature": "s"},
            use("t1", "Bash", command="ls"),
        ),
        user(gave("t1", "a b")),
        assistant(text("Two files.")),
        user(text("thanks")),
    ],
    "chat": [
        user("look"),
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "t1", "type": "function", "function": CALLED}],
        },
        {"role": "tool", "tool_call_id": "t1", "content": "a b"},
        assistant("Two files."),
        user("thanks"),
    ],
    "responses": [
        user("look"),
        {"type": "reasoning", "id": "r1", "summary": []},
        {"type": "function_call", "call_id": "t1", **CALLED},
        {"type": "function_call_output", "call_id": "t1", "output": "a b"},
        {"type": "message", **assistant({"type": "output_text", "text": "Two files."})},
        user({"type": "input_text", "text": "thanks"}),
    ],
}
each_form = pytest.mark.parametrize("form", list(TALKS))


def read(form: Format, talk: object, known: ScanCache | None = None, **more: object) -> RequestBody:
    name = "input" if form == "responses" else "messages"
    return scan_body(
        dump({"model": "m", **more, name: talk}), form, b"seed", "t", known or ScanCache()
    )


@each_form
def test_each_form_tells_who_spoke_what_was_called_and_what_came_back(form: Format) -> None:
    body = read(form, TALKS[form])
    told = [(part.role, part.kind, part.call) for part in body.parts if part.kind != "thinking"]
    assert told == [
        ("user", "text", ""),
        ("assistant", "tool_use", "t1"),
        ("user", "tool_result", "t1"),
        ("assistant", "text", ""),
        ("user", "text", ""),
    ]
    (called,) = [part for part in body.parts if part.kind == "tool_use"]
    (result,) = [part for part in body.parts if part.kind == "tool_result"]
    assert called.tool == body.talk.tools["t1"][0] == "Bash"
    assert body.content(result) == "a b"
    assert body.answered == len(body.parts) - 1
    assert body.messages(len(TALKS[form]) - 1) == TALKS[form][-1:]


@each_form
def test_what_is_read_on_from_what_is_known_is_what_is_read_at_once(form: Format) -> None:
    known = ScanCache()
    for count in range(1, len(TALKS[form]) + 1):
        talk = TALKS[form][:count]
        assert read(form, talk, known).talk == read(form, talk).talk
    changed = [user("other"), *TALKS[form][1:]]
    assert read(form, changed, known).talk == read(form, changed).talk
    spaced = json.dumps({"messages": TALKS[form], "input": TALKS[form]}, indent=1)
    met, new = (scan_body(spaced, form, b"seed", "t", one) for one in (known, ScanCache()))
    assert met.talk == new.talk


def test_nothing_said_yet_was_answered_by_nobody() -> None:
    assert read("messages", [user("look")]).answered == 0
    assert read("messages", []).answered == 0


def test_a_conversation_that_is_one_text_is_the_users() -> None:
    (part,) = (body := read("responses", "look")).parts
    assert (part.role, part.kind, part.bare, body.raw(part)) == ("user", "text", True, '"look"')
    assert part.chain == read("messages", [user("look")]).parts[0].chain


def test_marks_are_counted_wherever_they_stand_and_one_on_a_block_can_be_cut_out() -> None:
    blocks = [
        {**text("one"), **MARK},
        {**MARK, **text("two")},
        gave("t1", [{**text("a"), **MARK}]),
        text("none"),
    ]
    more = {"system": [{"type": "text", "text": "s", **MARK}], "tools": [{"name": "x"}], **MARK}
    body = read("messages", [user(*blocks)], **more)
    assert [part.marks for part in body.parts] == [1, 1, 1, 0]
    assert body.marks == 5
    for part, block in zip(body.parts, blocks, strict=True):
        begin, end = (body.base + at for at in part.mark)
        if end > body.base:
            left = body.text[body.base + part.start : begin] + body.text[end:]
            assert json.JSONDecoder().raw_decode(left)[0] == {
                name: value for name, value in block.items() if name not in MARK
            }
    assert [part.mark != (0, 0) for part in body.parts] == [True, True, False, False]


def test_a_mark_on_a_system_that_is_a_text_is_none() -> None:
    talk = [user("look")]
    assert read("messages", talk, system="cache_control", tools=[]).marks == 0


@pytest.mark.parametrize(
    "item",
    [
        {"type": "function_call", "call_id": "t", "name": "Bash", "arguments": "no {s} JSON"},
        {"type": "custom_tool_call", "call_id": "t", "name": "Bash", "input": "{s}"},
        {"type": "function_call_output", "call_id": "t", "output": "{s}"},
    ],
)
def test_another_text_given_or_answered_is_another_conversation(item: dict[str, str]) -> None:
    def ended(words: str) -> bytes:
        told = {name: value.replace("{s}", words) for name, value in item.items()}
        return read("responses", [told]).parts[-1].chain

    assert ended("a") == ended("a") != ended("b")


def test_as_many_conversations_are_known_as_there_is_room_for() -> None:
    one, other = ("x" * 100, "y" * 50)
    talk = [user("hello"), assistant(one)]
    size = len(read("messages", talk).text)

    def known_after(most: int) -> bool:
        known = ScanCache(most)
        body = read("messages", talk, known)
        scan_body(dump({"messages": [], "more": other}), "messages", b"seed", "other", known)
        return known.begun(b"seed", "t", body.text, body.base)[1] > 0

    more = len(dump({"messages": [], "more": other}))
    assert known_after(size + more)
    assert not known_after(size + more - 1)
