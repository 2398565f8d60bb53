"""Topic files: what their bytes say, and that an edit changes nothing else."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.errors import InvalidInput
from reverie.topics import (
    BOM,
    MAX_BYTES,
    TopicFile,
    edit,
    index_of,
    is_topic,
    key_for,
    new,
    parse_frontmatter,
    scalar,
)

pytestmark = pytest.mark.spec("7.folder")

PLAIN = b"""---
name: Real queue
description: Tests use the real queue
type: feedback
---

Never stub it.
"""
CLIENT = b"""---
name: real-queue
description: "Tests: use the real queue"
metadata:
  node_type: memory
  type: feedback
  originSessionId: 5a5cce74-d954-4201-94e8-8952156a687d
  modified: 2026-11-15T22:34:41.412Z
x-own: [a, {b: c}]   # kept
---

Never stub it.
"""


def test_a_plain_file_is_read() -> None:
    one = TopicFile("a.md", PLAIN)
    told = (one.name, one.description, one.type)
    assert told == ("Real queue", "Tests use the real queue", "feedback")
    assert one.body == "Never stub it.\n"
    assert one.title == "Real queue"
    assert not one.fault


@pytest.mark.spec("B16")
def test_the_form_of_the_real_client_is_read() -> None:
    one = TopicFile("a.md", CLIENT)
    assert (one.type, one.description) == ("feedback", "Tests: use the real queue")
    assert one.front.get("metadata", "originSessionId") == "5a5cce74-d954-4201-94e8-8952156a687d"
    assert one.front.get("metadata", "node_type") == "memory"
    assert one.front.get("metadata", "modified") == "2026-11-15T22:34:41.412Z"


@pytest.mark.spec("B16")
def test_an_edit_changes_one_value_and_keeps_all_other_bytes() -> None:
    changed = TopicFile("a.md", CLIENT).with_value("Other", "description").data
    assert changed == CLIENT.replace(b'"Tests: use the real queue"', b"Other")
    typed = TopicFile("a.md", CLIENT).with_value("project", "type").data
    assert typed == CLIENT.replace(b"type: feedback", b"type: project")
    nested = TopicFile("a.md", CLIENT).with_value("2", "metadata", "rank").data
    assert nested == CLIENT.replace(b"41.412Z\n", b'41.412Z\n  rank: "2"\n')
    added = TopicFile("a.md", PLAIN).with_value("s1", "metadata", "from").data
    assert added == PLAIN.replace(b"feedback\n", b"feedback\nmetadata:\n  from: s1\n")


def test_an_edit_keeps_the_comment_behind_a_value() -> None:
    data = b"---\nname: a b  # why\n---\nx"
    assert TopicFile("a.md", data).name == "a b"
    assert TopicFile("a.md", data).with_value("c", "name").data == b"---\nname: c  # why\n---\nx"


def test_a_file_without_frontmatter_gets_one_and_keeps_its_text() -> None:
    one = TopicFile("a.md", b"# Title\r\ntext")
    assert one.title == "Title"
    assert one.with_value("note", "name").data == b"---\r\nname: note\r\n---\r\n\r\n# Title\r\ntext"


def test_a_new_body_stands_behind_the_same_frontmatter() -> None:
    crlf = PLAIN.replace(b"\n", b"\r\n")
    head = crlf[: crlf.index(b"Never")]
    assert TopicFile("a.md", crlf).with_body("One\nTwo").data == head + b"One\r\nTwo\r\n"
    assert TopicFile("a.md", b"old").with_body("new").data == b"new\n"


@pytest.mark.parametrize(
    ("kind", "known"),
    [
        *((kind, kind) for kind in ("user", "feedback", "project", "reference")),
        *((kind, "") for kind in ("", "note", "users", "[user]", "1", "user, feedback")),
    ],
)
def test_the_four_types_are_known_and_any_other_loads_as_untyped(kind: str, known: str) -> None:
    one = TopicFile("a.md", f"---\nname: x\ntype: {kind}\n---\nbody".encode())
    assert (one.type, one.name, one.body) == (known, "x", "body")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("no", "no"),
        ("12:30:45", "12:30:45"),
        ("2026-01-01", "2026-01-01"),
        ("0x10", "0x10"),
        ("~", "~"),
        ("'it''s'", "it's"),
        (r'"a\tb\u00e9\"\\"', 'a\tbé"\\'),
        ('"a # b" # c', "a # b"),
        ("Rule: never mock", "Rule: never mock"),
        ("a, *b* and &c", "a, *b* and &c"),
        ('"open', '"open'),
        ('"a" and "b"', '"a" and "b"'),
        ("[a, b]", "[a, b]"),
        ("größer 大きい", "größer 大きい"),
    ],
)
def test_every_value_is_a_string(value: str, text: str) -> None:
    data = f"---\ndescription: {value}\n---\n".encode()
    assert TopicFile("a.md", data).description == text


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        ("description: >-\n  one\n  two", "one two"),
        ("description: |\n  one\n\n  two", "one\ntwo"),
        ("description: one\n  two", "one two"),
        ("description:\n  one\n  two", "one two"),
        ('description: "one\n  two"', "one two"),
    ],
)
def test_a_value_over_several_lines_is_read_and_replaced_whole(lines: str, text: str) -> None:
    data = f"---\nname: n\n{lines}\ntype: user\n---\nbody\n".encode()
    one = TopicFile("a.md", data)
    assert (one.description, one.type) == (text, "user")
    changed = one.with_value("short", "description")
    assert changed.data == b"---\nname: n\ndescription: short\ntype: user\n---\nbody\n"


def test_lists_are_kept_as_they_are() -> None:
    data = b"---\ntags:\n- a\n- b: c\nmore:\n  - x\n    y\nname: n\n---\n"
    one = TopicFile("a.md", data)
    assert (one.name, one.fault) == ("n", "")
    assert one.with_value("m", "name").data == data.replace(b"name: n", b"name: m")


def test_what_cannot_be_edited_says_so() -> None:
    for data in (b"---\na: 1\na: 2\n---\n", b"---\nmetadata: x\n---\n", "é".encode("utf-16")):
        with pytest.raises(InvalidInput):
            TopicFile("a.md", data).with_value("v", "metadata", "k")
    with pytest.raises(InvalidInput, match="holds other keys"):
        TopicFile("a.md", CLIENT).with_value("v", "metadata")
    with pytest.raises(InvalidInput, match="only 4 were read"):
        TopicFile("a.md", b"part", size=5).with_body("new")
    with pytest.raises(InvalidInput, match="does not fit"):
        TopicFile("a.md", PLAIN).with_value("x" * MAX_BYTES, "description")


def test_a_new_entry_is_read_back_as_it_was_meant() -> None:
    one = new("a.md", name="yes", description="a: b #c\n*d*", type="user", body="**Why:** x\n")
    assert (one.name, one.description, one.type) == ("yes", "a: b #c *d*", "user")
    assert one.data.endswith(b"---\n\n**Why:** x\n")
    with pytest.raises(InvalidInput, match="no such type"):
        new("a.md", name="n", description="d", type="note", body="")
    with pytest.raises(InvalidInput, match="too long"):
        new("a.md", name="n", description="d " * 5_000, type="user", body="")
    with pytest.raises(InvalidInput, match="Unicode"):
        new("a.md", name="n", description="d", type="user", body="\ud800")


def test_keys_say_what_a_file_is() -> None:
    topics = ["a.md", "team/b.md", "x/logs/c.md", "logs.md", "A.MD"]
    others = ["MEMORY.md", "team/MEMORY.md", "memory.md", "logs/2026/01/x.md", "a.txt", ".lock"]
    assert [is_topic(key) for key in (*topics, *others)] == [True] * 5 + [False] * 6
    assert index_of("team/a.md") == "team/MEMORY.md"
    assert index_of("teams/a.md") == "MEMORY.md"


@pytest.mark.parametrize(
    ("name", "kind", "key"),
    [
        ("Real queue!", "feedback", "feedback_real_queue.md"),
        ("../../etc", "feedback", "feedback_etc.md"),
        ("大きい 問題", "feedback", "feedback_大きい_問題.md"),
        ("…", "feedback", "feedback.md"),
        ("\u3164 x\u200by", "feedback", "feedback_xy.md"),
        ("a" * 200, "feedback", "feedback_" + "a" * 51 + ".md"),
        ("COM0", "", "memory_com0.md"),
        ("X", "user", "user_x_3.md"),  # nobody else's
    ],
)
def test_a_key_is_made_from_a_name(name: str, kind: str, key: str) -> None:
    assert key_for(name, kind, frozenset({"user_x.md", "user_x_2.md"})) == key


# -- properties ------------------------------------------------------------------------

KEYS = st.sampled_from(["name", "description", "type", "x-1", "größe", "a.b"])
VALUES = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])


@given(st.binary(max_size=300))
def test_no_bytes_break_the_reader(data: bytes) -> None:
    for one in (data, b"---\n" + data + b"\n---\nx"):
        front = parse_frontmatter(one)
        assert 0 <= front.body <= len(one)
        assert not front.fault or not front.fields
        found = TopicFile("a.md", one)
        assert isinstance(found.text + found.body + found.title + found.type, str)


@given(VALUES)
def test_a_value_is_read_back_as_written(value: str) -> None:
    data = f"---\nname: {scalar(value)}\n---\n".encode()
    assert parse_frontmatter(data).get("name") == value
    assert TopicFile("a.md", PLAIN).with_value(value, "name").front.get("name") == value


@given(
    st.dictionaries(KEYS, VALUES, min_size=1),
    ENDS,
    st.booleans(),
    st.binary(max_size=60),
    VALUES,
    st.data(),
)
def test_an_edit_touches_one_line(
    fields: dict[str, str], end: bytes, bom: bool, body: bytes, value: str, data: st.DataObject
) -> None:
    rows = [f"{key}: {scalar(text)}".encode() for key, text in fields.items()]
    rows.insert(len(rows) // 2, b"own: \xff\xfe kept")
    mark = BOM if bom else b""
    file = mark + end.join((b"---", *rows, b"---", body))
    front = parse_frontmatter(file)
    assert [front.get(key) for key in fields] == list(fields.values())
    key = data.draw(st.sampled_from(sorted(fields)))
    changed = edit(file, (key,), value)
    place = next(n for n, row in enumerate(rows) if row.startswith(f"{key}:".encode()))
    rows[place] = f"{key}: {scalar(value)}".encode()
    assert changed == mark + end.join((b"---", *rows, b"---", body))


@given(st.text(max_size=80), st.sampled_from(["", "user", "feedback"]))
def test_a_made_key_is_one_the_store_takes(name: str, kind: str) -> None:
    from reverie.store import check_key

    key = key_for(name, kind)
    assert check_key(key) == key
    assert re.search(r"\.md\Z", key)
