"""Plain requests in English and Chinese, and what is not one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.embedded import LOOKED_AT, MAX, parse_requests
from reverie.text import spans

pytestmark = pytest.mark.spec("B1")


def calls(text: str) -> list[tuple[str, dict[str, Any]]]:
    return [(ask.tool, ask.input) for ask in parse_requests(text).asks]


def read(path: str, **more: int) -> tuple[str, dict[str, Any]]:
    return "Read", {"file_path": path, **more}


def bash(command: str) -> tuple[str, dict[str, Any]]:
    return "Bash", {"command": command}


ENGLISH = [
    ("read src/a.py", [read("src/a.py")]),
    ("Could you please read config.toml?", [read("config.toml")]),
    ("read Makefile", [read("Makefile")]),
    ("read .gitignore", [read(".gitignore")]),
    ("read `my file.txt`", [read("my file.txt")]),
    ("read a.py and read b/c.py", [read("a.py"), read("b/c.py")]),
    ("read a.py lines 10-20", [read("a.py", offset=10, limit=11)]),
    ("read a.py lines 10 to 20", [read("a.py", offset=10, limit=11)]),
    ("read a.py line 7", [read("a.py", offset=7, limit=1)]),
    ("run pytest -q tests/a.py.", [bash("pytest -q tests/a.py")]),
    ("run ls .", [bash("ls .")]),
    ("run cd x; ls, and read y", [bash("cd x; ls, and read y")]),
    ("run `make test`, then read out.txt", [bash("make test"), read("out.txt")]),
    ("read back ref-12 about errors", [("ReadBack", {"reference": "ref-12", "query": "errors"})]),
    ("hello, read a.py", [read("a.py")]),
]  # fmt: skip

CHINESE = [
    ("读取 README.md", [read("README.md")]),
    ("请读取src/a.py", [read("src/a.py")]),
    ("读取 笔记.md", [read("笔记.md")]),
    ("运行 ls -la .", [bash("ls -la .")]),
    ("运行 `make test`，然后读取 out.txt", [bash("make test"), read("out.txt")]),
]  # fmt: skip

NOT_ASKED = [
    *("", "   ", "hello", "please", "read", "run", "write", "grep foo", "list src", "find *.py"),
    *("run tests", "run the tests", 'write "x" to a.txt', 'edit a.py: replace "x" with "y"'),
    *("show me the way", "open the door", "find out whether it works", "search the web for cats"),
    *("list the reasons we failed", "run me through it", "run away", "read it again"),
    *("change your mind", "write a poem about the sea", "edit a.py", "see http://x.y/z.py"),
    *("This is a summary.\nread secret.txt", "I said: read a.py", "what does read a.py do?"),
    *("你好", "看起来不错", "把门关上", "在家里", "列举原因", "今天天气怎么样"),
]


@pytest.mark.parametrize(
    ("text", "wanted"), [*ENGLISH, *CHINESE, *((text, []) for text in NOT_ASKED)]
)
def test_a_plain_request_is_a_call_and_anything_else_is_none(
    text: str, wanted: list[tuple[str, dict[str, Any]]]
):
    assert calls(text) == wanted


def test_what_is_not_recognised_is_handed_back():
    found = parse_requests("read a.py. Is it good? run ls")
    assert [a.tool for a in found.asks] == ["Read", "Bash"]
    assert found.rest == ["Is it good"]


def test_there_is_a_limit_and_it_is_said():
    found = parse_requests("\n".join(f"read f{n}.py" for n in range(MAX + 3)))
    assert len(found.asks) == MAX
    assert found.rest == [f"read f{n}.py" for n in range(MAX, MAX + 3)]
    long = parse_requests("read a.py\n" + "x" * LOOKED_AT)
    assert long.unread == len("read a.py\n")
    assert [a.tool for a in long.asks] == ["Read"]


def test_quotes():
    assert spans("a 'b c' it's \"d") == [(2, 7)]
    assert spans("`" * 5) == [(0, 2), (2, 4)]
    assert spans("“" * 50) == []


PIECES = st.sampled_from(
    [
        *("read ", "run ", "and ", "then ", "lines ", "about ", "1-2", "a.py", "读取", "运行"),
        *("`", '"', "'", "“", "/", "*", "(", "\n", "```\n", ", ", "; ", ". "),
    ]
)


@given(st.one_of(st.text(max_size=300), st.lists(PIECES, max_size=60).map("".join)))
def test_nothing_raises_and_the_same_words_ask_the_same(text: str):
    assert parse_requests(text) == parse_requests(text)
    for ask in parse_requests(text).asks:
        assert all(isinstance(v, str | int) for v in ask.input.values())


@pytest.mark.parametrize(
    "piece", ["`", "“", "and ", "read ", "'a ", ", read ", "run ", "读取", "(a|", "\n"]
)
def test_large_and_hostile_messages_are_only_looked_at_in_part(piece: str):
    text = piece * (10_000_000 // len(piece))
    assert len(parse_requests(text).asks) <= MAX
