"""Plain requests in English and Chinese, and what is not one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.embedded import LOOKED_AT, MAX, TESTS, parse_requests
from reverie.text import spans

pytestmark = pytest.mark.spec("B1")


def calls(text: str) -> list[tuple[str, dict[str, Any]]]:
    return [(ask.tool, ask.input) for ask in parse_requests(text).asks]


def read(path: str, **more: int) -> tuple[str, dict[str, Any]]:
    return "Read", {"file_path": path, **more}


def grep(pattern: str, **more: str) -> tuple[str, dict[str, Any]]:
    return "Grep", {"pattern": pattern, **more}


def bash(command: str) -> tuple[str, dict[str, Any]]:
    return "Bash", {"command": command}


def write(path: str, content: str) -> tuple[str, dict[str, Any]]:
    return "Write", {"file_path": path, "content": content}


def edit(path: str, old: str, new: str, **more: bool) -> tuple[str, dict[str, Any]]:
    return "Edit", {"file_path": path, "old_string": old, "new_string": new, **more}


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
    ("grep TODO", [grep("TODO")]),
    ("grep 'def main' in src/", [grep("def main", path="src/")]),
    ("grep foo( in lib", [grep("foo\\(", path="lib")]),
    ('grep "a, and read b" in *.py', [grep("a, and read b", glob="*.py")]),
    ("find *.py in src", [("Glob", {"pattern": "**/*.py", "path": "src"})]),
    ("find src/**/*.ts", [("Glob", {"pattern": "src/**/*.ts"})]),
    ("find config.toml", [("Glob", {"pattern": "**/config.toml"})]),
    ("list", [("List", {"path": "."})]),
    ("List docs/", [("List", {"path": "docs/"})]),
    ("list ..", [("List", {"path": ".."})]),
    ("run the tests", [bash(TESTS)]),
    ("run pytest -q tests/a.py.", [bash("pytest -q tests/a.py")]),
    ("run ls .", [bash("ls .")]),
    ("run cd x; ls, and read y", [bash("cd x; ls, and read y")]),
    ("run `make test`, then read out.txt", [bash("make test"), read("out.txt")]),
    ("run tests and read a.py", [bash(TESTS), read("a.py")]),
    ('write "hi, and read x" to o.txt', [write("o.txt", "hi, and read x")]),
    ("write hello to o.txt", [write("o.txt", "hello")]),
    ('edit a.py: replace "x y" with "z"', [edit("a.py", "x y", "z")]),
    ("read back ref-12 about errors", [("ReadBack", {"reference": "ref-12", "query": "errors"})]),
    ("read a.py; grep x; list", [read("a.py"), grep("x"), ("List", {"path": "."})]),
    ("hello, read a.py", [read("a.py")]),
]  # fmt: skip

CHINESE = [
    ("读取 README.md", [read("README.md")]),
    ("请读取src/a.py", [read("src/a.py")]),
    ("读取 笔记.md", [read("笔记.md")]),
    ("搜索 foo", [grep("foo")]),
    ("在 src 中搜索 foo(", [grep("foo\\(", path="src")]),
    ("查找 *.py", [("Glob", {"pattern": "**/*.py"})]),
    ("列出 src", [("List", {"path": "src"})]),
    ("运行测试", [bash(TESTS)]),
    ("运行 ls -la .", [bash("ls -la .")]),
    ("运行 `make test`，然后读取 out.txt", [bash("make test"), read("out.txt")]),
    ('把 "你好" 写入 a.txt', [("Write", {"file_path": "a.txt", "content": "你好"})]),
    ('把 a.txt 中的 "x" 替换为 "y"', [edit("a.txt", "x", "y")]),
    ("请列出 docs，然后读取 a.md", [("List", {"path": "docs"}), read("a.md")]),
]  # fmt: skip

NOT_ASKED = [
    *("", "   ", "hello", "please", "read", "run", "write", "grep", "edit", "find", "print"),
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
    found = parse_requests("read a.py. Is it good? grep x")
    assert [a.tool for a in found.asks] == ["Read", "Grep"]
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
        *("read ", "run ", "grep ", "and ", "then ", "replace ", "with ", "in ", "to ", "a.py"),
        *("把", "在", "中", "搜索", "替换为", "写入"),
        *("`", '"', "'", "“", "/", "*", "(", "\n", "```\n", ", ", "; ", ". "),
    ]
)


@given(st.one_of(st.text(max_size=300), st.lists(PIECES, max_size=60).map("".join)))
def test_nothing_raises_and_the_same_words_ask_the_same(text: str):
    assert parse_requests(text) == parse_requests(text)
    for ask in parse_requests(text).asks:
        assert all(isinstance(v, str | int) for v in ask.input.values())


@pytest.mark.parametrize(
    "piece", ["`", "“", "and ", "read ", "'a ", ", read ", "run ", "把", "(a|", "\n"]
)
def test_large_and_hostile_messages_are_only_looked_at_in_part(piece: str):
    text = piece * (10_000_000 // len(piece))
    assert len(parse_requests(text).asks) <= MAX
