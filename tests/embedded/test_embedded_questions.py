"""Questions about the conversation so far, and conversations of any shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.embedded import CHINESE, ENGLISH
from reverie.text import frame
from reverie.transcript import EMPTY, AssistantMessage, HeadSet, UserMessage, block, text_block
from reverie.wire import Request, render
from tests.embedded.test_embedded import ALL, Talk, answer
from tests.transcript.histories import build, histories

pytestmark = pytest.mark.spec("B1")


def told() -> Talk:
    talk = Talk(*ALL)
    talk.say("The deploy key lives in the blue vault.")
    reply = talk.say("read src/app.py and read src/gone.py")
    missing = {"content": "no such file", "is_error": True}
    talk.give(reply, "import os\ndef launch_rocket(): pass", missing)
    out = {
        "content": "FAILED tests/t.py::test_a\n1 failed, 2 passed\nExit code: 1",
        "is_error": True,
    }
    talk.give(talk.say("run python -m pytest -q"), out)
    return talk


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("what did I ask first?", "“The deploy key lives in the blue vault.” (message 1, you)"),
        ("where is the deploy key?", "(message 1, you)"),
        ("where is launch_rocket defined?", "(src/app.py:2)"),
        ("which tests failed?", "FAILED tests/t.py::test_a"),
    ],
)
def test_questions_are_answered_from_the_transcript(question: str, expected: str):
    reply = told().say(question)
    assert expected in reply.text
    assert reply.tool_calls == ()


@pytest.mark.parametrize(
    "question",
    [
        *("who won the match?", "which hangar gate opens the deploy?", "why is it so?"),
        *("what is the wifi password?", "首都是哪里？"),
    ],
)
def test_what_is_not_there_is_not_known(question: str):
    text = told().say(question).text
    assert text in (ENGLISH.not_found, CHINESE.not_found)


def test_nothing_said_before():
    assert Talk().say("what did I ask first?").text == ENGLISH.no_asks


def test_chinese_words_are_looked_up():
    talk = Talk()
    talk.say("部署密钥放在蓝色保险箱里。")
    assert "蓝色保险箱" in talk.say("密钥在哪里？").text


# --- any shape


IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aa"}}


@pytest.mark.parametrize(
    "content",
    [
        [IMAGE],
        [{"type": "mystery", "zeta": 1}],
        [{"type": "text", "text": "  "}],
        [{"type": "text"}],
        [{"type": "text", "text": 7}],
        [{}],
        [IMAGE, {"type": "text", "text": "read a.py"}],
        [{"type": "document", "source": {"type": "text", "data": "read a.py"}}],
    ],
)
def test_odd_messages_get_an_answer(content: list[dict[str, Any]]):
    reply = Talk(*ALL).say(content)
    assert reply.blocks
    wanted = any(c.get("text") == "read a.py" for c in content)
    assert bool(reply.tool_calls) == wanted


@pytest.mark.parametrize(
    "result",
    [
        {},
        {"content": None},
        {"content": []},
        {"content": [IMAGE]},
        {"content": [{"type": "text", "text": "x"}, {"type": "odd"}]},
        {"content": {"a": 1}},
        {"content": 7, "is_error": "yes"},
    ],
)
def test_odd_results_get_a_report(result: dict[str, Any]):
    for words in ("read a.py", "read back r:1", "run ls"):
        talk = Talk(*ALL)
        assert talk.give(talk.say(words), result).text


def test_no_messages_and_no_head():
    assert answer(Request(HeadSet("m", tools="nonsense", system="{"), EMPTY.closed, ())).text


LARGE: list[tuple[str, Callable[[int], str]]] = [
    ("one line", lambda n: "why x" * (n // 5)),
    ("lines", lambda n: "what is this?\n" * (n // 14)),
    ("quotes", lambda n: "“" * (n // 3)),
    ("request first", lambda n: "read a.py\n" + "y" * n),
    ("cjk", lambda n: "什么" * (n // 6)),
]


@pytest.mark.parametrize(("name", "text"), LARGE)
def test_ten_megabytes(name: str, text: Callable[[int], str]):
    talk = Talk(*ALL)
    talk.put(UserMessage((text_block(text(10_000_000)),)))
    assert answer(render(talk.view)).blocks
    talk.put(AssistantMessage((text_block("ok"),)))
    assert talk.say("where does the why stand?").text
    reply = talk.say("run ls")
    assert talk.give(reply, text(10_000_000)).text


@given(histories)
def test_every_history_gets_an_answer_that_fits_it(steps):
    built = build([*steps, ("user", 3)])
    reply = answer(render(built.view))
    assert reply.blocks
    assert all(not b.blank for b in reply.blocks)
    before = {p.block.get("id") for m in render(built.view).messages() for p in m.pieces}
    assert not before.intersection(c.id for c in reply.tool_calls)


@given(st.text(max_size=400), st.text(max_size=400))
def test_no_words_and_no_result_raise(words: str, result: str):
    talk = Talk(*ALL)
    reply = talk.say([{"type": "text", "text": words or "x"}])
    for _ in range(20):
        if not reply.tool_calls:
            break
        reply = talk.give(reply, *[result] * len(reply.tool_calls))
    assert not reply.tool_calls
    assert all(block(b.raw) == b for b in reply.blocks)


def test_a_recalled_memory_is_quoted_with_its_file():
    talk = Talk(*ALL)
    body = "---\nname: Releases …\ntype: project\n---\n\nReleases go out on Tuesdays.\n"
    framed = frame(body, session="s", source="releases.md")
    text = f"<system-reminder>\nRecalled:\n{framed}\n</system-reminder>"
    talk.put(UserMessage((text_block("When do releases go out?"), text_block(text))))
    said = talk.next().text
    assert "“Releases go out on Tuesdays.” (releases.md)" in said
    assert "system-reminder" not in said
    plain = Talk(*ALL)
    assert "I do not know" in plain.say("When do releases go out?").text
