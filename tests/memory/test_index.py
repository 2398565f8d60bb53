"""The index: pointers in, pointers out, and every other byte as it was."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.topics import (
    IndexFault,
    IndexLimits,
    check,
    find_pointer,
    limits_hit,
    line,
    parse_index,
    plain_cut,
    pointers_to,
    put,
    render_index,
    without,
    write_warning,
)

pytestmark = pytest.mark.spec("7.index")

SAMPLE = """# Index

## How to work
- [Real queue](feedback_queue.md) — tests use the real queue
* [Spaces](<a b.md>): in the name
1. [Escaped](c%20d.md) - by percent

prose
"""


def test_pointers_are_read() -> None:
    found = parse_index(SAMPLE.encode()).pointers
    assert [(one.number, one.title, one.key, one.hook) for one in found] == [
        (4, "Real queue", "feedback_queue.md", "tests use the real queue"),
        (5, "Spaces", "a b.md", "in the name"),
        (6, "Escaped", "c d.md", "by percent"),
    ]


def test_a_pointer_is_added_behind_the_last_one() -> None:
    new = put(SAMPLE.encode(), "x.md", "X", "y").decode()
    assert new == SAMPLE.replace("percent\n", "percent\n- [X](x.md) — y\n")
    assert put(b"", "x.md", "X", "y").decode() == "- [X](x.md) — y\n"
    assert put(b"prose", "x.md", "X", "").decode() == "prose\n- [X](x.md)\n"


def test_a_pointer_is_changed_in_its_place() -> None:
    data = b"\xef\xbb\xbf  - [A](a.md) \xe2\x80\x94 old\r\nkept \xff\r\n- [B](b.md)"
    assert put(data, "a.md", "A", "new") == data.replace(b"old", b"new")
    assert put(data, "b.md", "B", "new") == data + " — new".encode()


def test_a_pointer_is_taken_out_with_its_line_alone() -> None:
    data = b"a\r\n- [A](a.md)\r\n- [B](b.md)\n- [A again](./a.md)\nz"
    assert without(data, "a.md") == b"a\r\n- [B](b.md)\nz"
    assert without(data, "c.md") == data


def test_a_line_holds_the_fact_once() -> None:
    fact = "Integration tests hit a real [database], because a mock broke"
    shown = "- [Integration tests hit a real (database), because a mock broke](tests.md)"
    assert line("tests.md", "Integration tests hit a real [database]", fact) == shown
    assert line("tests.md", fact, fact) == shown
    assert line("a.md", "Tests", "hit a database") == "- [Tests](a.md) — hit a database"
    assert line("a.md", "Tests", "Testsuites hit it") == "- [Tests](a.md) — Testsuites hit it"
    assert len(line("a.md", "Tests", "Tests " * 90)) <= 150


def test_a_line_is_kept_short() -> None:
    row = line("file.md", "Title [x]\ny", "word " * 100)
    assert len(row) <= 150
    assert row.startswith("- [Title (x) y](file.md) — word word")
    assert row.endswith("word…")
    assert line("a (b).md", "", "") == "- [a (b).md](<a (b).md>)"


# -- limits ----------------------------------------------------------------------------


def rows(count: int, width: int = 20) -> bytes:
    return b"".join(b"%06d%s\n" % (n, b"x" * (width - 7)) for n in range(count))


def test_within_both_limits_it_is_sent_as_it_is() -> None:
    data = rows(200, 125)
    assert len(data) == 25_000
    assert render_index(data, IndexLimits()).text == data.decode()
    assert not render_index(data, IndexLimits()).warning
    assert render_index(data[:-1], IndexLimits()).text == data[:-1].decode()


def test_over_the_line_limit_the_first_lines_stay() -> None:
    found = render_index(rows(201), IndexLimits())
    assert found.text == rows(200).decode().rstrip("\n")
    assert "201 lines (limit 200)" in found.warning
    assert "bytes" not in found.warning
    assert "Keep each line short" in found.warning
    assert "topic files" in found.warning


def test_over_the_byte_limit_it_is_cut_at_the_last_line_end_before_it() -> None:
    found = render_index(rows(200, 126), IndexLimits())
    assert found.text.encode() == rows(200, 126)[: 198 * 126 - 1]
    assert "25,200 bytes (limit 25,000)" in found.warning
    assert " lines" not in found.warning


def test_lines_are_cut_first_and_then_bytes() -> None:
    data = rows(400, 200)
    found = render_index(data, IndexLimits())
    assert found.text.encode() == data[: 125 * 200 - 1]
    assert "400 lines" in found.warning
    assert "80,000 bytes" in found.warning
    # 300 lines of which the first 200 fit: the byte limit is over, yet takes nothing more.
    wide = rows(300, 100)
    assert render_index(wide, IndexLimits()).text.encode() == wide[: 200 * 100 - 1]


def test_one_endless_line_is_cut_between_characters() -> None:
    data = "é".encode() * 20_000
    cut = plain_cut(b"x" + data, IndexLimits())
    assert len(cut) == 24_999
    assert cut.decode() == "x" + "é" * 12_499


@given(
    st.lists(st.text(st.characters(exclude_characters="\r\n"), max_size=12), max_size=30),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.integers(1, 12),
    st.integers(4, 120),
)
def test_a_cut_keeps_both_limits_and_whole_lines(
    lines: list[str], end: str, most_lines: int, most_bytes: int
) -> None:
    data = end.join(lines).encode("utf-8", "ignore")
    limits = IndexLimits(most_lines, most_bytes)
    cut = plain_cut(data, limits)
    assert data.startswith(cut)
    assert len(cut) <= most_bytes
    assert len(cut.splitlines()) <= most_lines
    cut.decode()
    if not limits_hit(data, limits):
        assert cut == data
    elif cut.strip(b"\r\n").splitlines()[1:]:
        assert data[len(cut) : len(cut) + 1] in (b"\n", b"\r", b"")


def test_a_write_over_the_limit_is_said() -> None:
    assert write_warning(limits_hit(rows(200), IndexLimits())) == ""
    said = write_warning(limits_hit(rows(201), IndexLimits()), "team/MEMORY.md")
    assert said.startswith("team/MEMORY.md is too large")
    assert "201 lines" in said


# -- faults ----------------------------------------------------------------------------


def faults(text: str, *keys: str) -> list[tuple[str, int]]:
    return [(one.kind, one.line) for one in check(parse_index(text.encode()), keys)]


def test_a_sound_index_has_no_faults() -> None:
    assert faults("# Index\n\n- [A](a.md) — x\n<!-- note -->\n", "a.md") == []


def test_dangling_and_missing_pointers_are_found() -> None:
    text = "- [Gone](gone.md)\n- content\n- [A](a.md) — x\n- [A twice](a.md)\n- [Out](../x.md)\n"
    found = [("missing", 1), ("content", 2), ("twice", 4), ("outside", 5), ("unlisted", 0)]
    assert faults(text, "a.md", "b.md") == found


def test_long_lines_and_content_are_named() -> None:
    text = f"- [A](a.md) — {'x' * 200}\n- A memory told in the index.\n"
    assert faults(text, "a.md") == [("long", 1), ("content", 2)]
    assert IndexFault("unlisted", 0, "b.md", "no line of the index names it") in check(
        parse_index(b""), ["b.md"]
    )


# -- properties ------------------------------------------------------------------------

LINES = st.lists(
    st.one_of(
        st.text(max_size=20),
        st.builds("- [{}]({}.md) — {}".format, st.text(max_size=5), st.text(max_size=5), st.text()),
    ),
    max_size=8,
)


@given(LINES, st.sampled_from(["\n", "\r\n"]), st.binary(max_size=20))
def test_a_change_and_its_reverse_leave_every_byte(lines: list[str], end: str, raw: bytes) -> None:
    text = end.join((*lines, "")).encode("utf-8", "replace")
    data = text + raw.replace(b"\r", b"") + (b"\n" if raw else b"")
    key = "new-one.md"
    added = put(data, key, "T", "hook")
    found = parse_index(added).find(key)
    assert found is not None
    assert (found.title, found.hook) == ("T", "hook")
    assert without(added, key) == data
    assert put(added, key, "T", "hook") == added


@given(st.binary(max_size=300))
def test_no_bytes_break_the_reader(data: bytes) -> None:
    index = parse_index(data)
    assert parse_index(put(index.data, "a.md", "A", "b")).find("a.md") is not None
    assert all(one.key or one.fault for one in index.pointers)
    check(index, ["z.md"])


@given(
    LINES,
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.sampled_from(["a.md", "K.md", "é.md", "d/a.md"]),
)
def test_looking_for_one_pointer_finds_what_reading_all_does(
    lines: list[str], end: str, key: str
) -> None:
    ways = [
        key,
        f"./{key}",
        key.replace("a", "%61"),
        key.replace("K", "\u212a"),
        "e\u0301.md",
        "b.md",
    ]
    data = end.join((*lines, *(f"- [T]({way}) - x" for way in ways), *lines)).encode(
        "utf-8", "replace"
    )
    found = [(one.start, one.end, one.key) for one in pointers_to(data, key)]
    assert found == [(o.start, o.end, o.key) for o in parse_index(data).pointers if o.key == key]
    assert found
    assert find_pointer(data, "nothing.md") is None
