"""Three-way merge: both sides keep their words, and nobody's line is lost."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.topics import END, OURS, THEIRS, lines_of, merge_file, merge_index, merge_text

pytestmark = [pytest.mark.spec("B3.merge")]

LINES = st.lists(st.sampled_from([f"line {n}" for n in range(9)] + ["", "---"]), max_size=9)
TEXTS = st.builds(
    lambda rows, end, last: end.join(rows) + (end if last and rows else ""),
    LINES,
    st.sampled_from(["\n", "\n", "\r\n"]),
    st.booleans(),
)
INDEXES = st.lists(
    st.builds(
        "- [{0}]({1}.md) — {2}".format,
        st.sampled_from(["A", "B"]),
        st.sampled_from("abcdef"),
        st.sampled_from(["one", "two", "three"]),
    ),
    max_size=6,
    unique_by=lambda line: line.split("(")[1][0],
).map(lambda rows: "".join(f"{row}\n" for row in rows))
HEAD = "---\nname: {0}\ndescription: {1}\nmetadata:\n  type: project\n  modified: {2}\n---\n\n"
TOPICS = st.builds(
    (HEAD + "{3}").format,
    st.sampled_from(["n1", "n2"]),
    st.sampled_from(["d1", "d2", "d3"]),
    st.sampled_from(["2026-01-01", "2026-02-02"]),
    LINES.map(lambda rows: "".join(f"{row}\n" for row in rows if row != "---")),
)
ANY = st.one_of(
    st.tuples(st.just("topic.md"), TEXTS, TEXTS, TEXTS),
    st.tuples(st.just("MEMORY.md"), INDEXES, INDEXES, INDEXES),
    st.tuples(st.just("topic.md"), TOPICS, TOPICS, TOPICS),
)


def plain(text: str) -> Counter[str]:
    return Counter(line.rstrip("\r\n") for line in lines_of(text))


@given(ANY)
def test_a_side_that_changed_nothing_gives_way(case: tuple[str, str, str, str]) -> None:
    key, base, x, y = case
    assert merge_file(key, base, x, base).text == x
    assert merge_file(key, base, base, y).text == y
    assert merge_file(key, base, x, x).text == x
    assert merge_file(key, base, x, base).clean


@given(TEXTS, TEXTS, TEXTS)
def test_no_line_is_lost_that_no_side_deleted(base: str, ours: str, theirs: str) -> None:
    done = plain(merge_text(base, ours, theirs).text)
    old, left, right = plain(base), plain(ours), plain(theirs)
    for line in old | left | right:
        if not old[line]:
            assert done[line] >= max(left[line], right[line]), "an addition is lost"
        if left[line] and right[line] and old[line] <= 1:
            assert done[line], "both sides have it"
        if old[line] and not done[line]:
            assert left[line] < old[line] or right[line] < old[line], "nobody deleted it"


@given(INDEXES, INDEXES, INDEXES)
def test_pointers_are_a_set_by_target(base: str, ours: str, theirs: str) -> None:
    def targets(text: str) -> set[str]:
        return {line.split("(")[1].split(")")[0] for line in text.splitlines()}

    done = merge_index(base, ours, theirs)
    old, left, right = map(targets, (base, ours, theirs))
    found = [line.split("(")[1].split(")")[0] for line in done.text.splitlines()]
    assert len(found) == len(set(found))
    assert (left - old) | (right - old) | (left & right) <= set(found) <= left | right
    assert OURS not in done.text


@given(TOPICS, TOPICS, TOPICS)
def test_frontmatter_stays_frontmatter(base: str, ours: str, theirs: str) -> None:
    text = merge_file("t.md", base, ours, theirs).text
    head = text.split("---\n")[1]
    assert [row.split(":")[0] for row in head.splitlines()] == [
        "name",
        "description",
        "metadata",
        "  type",
        "  modified",
    ]
    assert "<!--" not in head
    dates = [text.split("modified: ")[1][:10] for text in (ours, theirs)]
    assert head.split("modified: ")[1].strip() in dates


def test_both_sides_of_a_conflict_stay_and_are_marked() -> None:
    done = merge_text("a\nb\nc\n", "a\nours\nc\n", "a\ntheirs\nc\n")
    assert done.text == f"a\n{OURS}\nours\n{THEIRS}\ntheirs\n{END}\nc\n"
    assert [(c.base, c.ours, c.theirs) for c in done.conflicts] == [("b", "ours", "theirs")]


def test_additions_at_one_place_are_both_kept_without_a_mark() -> None:
    done = merge_text("a\n", "a\nsame\nours\n", "a\nsame\ntheirs\n")
    assert done.text == "a\nsame\nours\ntheirs\n"
    assert done.clean


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_line_ends_follow_the_side_that_changed_them(end: str) -> None:
    base, ours = "a\nb\n", f"a{end}b{end}"
    assert merge_text(base, ours, "a\nb\nc\n").text == f"a{end}b{end}c{end}"


def test_a_missing_last_newline_joins_no_lines() -> None:
    assert merge_text("a", "a\nb", "x\na").text == "x\na\nb"


def test_a_pointer_changed_by_both_has_both_hooks() -> None:
    done = merge_index("- [T](t.md) — old\n", "- [T](t.md) — one\n", "- [U](t.md) — two\n")
    assert done.text == "- [T](t.md) — one; two; U\n"
    assert len(done.conflicts) == 1


def test_a_pointer_deleted_here_and_changed_there_stays() -> None:
    assert (
        merge_index("- [T](t.md) — old\n", "", "- [T](t.md) — new\n").text == "- [T](t.md) — new\n"
    )


def test_a_key_both_changed_keeps_ours_and_tells_theirs() -> None:
    head = "---\nname: {0}\ntype: user\n---\n\nbody\n"
    done = merge_file("t.md", head.format("a"), head.format("b"), head.format("c --> d"))
    assert done.text.startswith("---\nname: b\ntype: user\n---\n\nbody\n")
    assert done.text.count("-->") == 1
    assert "c -\\-> d" in done.text


def test_bytes_that_are_no_text_pass_through() -> None:
    base, ours, theirs = (
        d.decode("utf-8", "surrogateescape") for d in (b"\xff\n", b"\xff\na\n", b"b\n\xff\n")
    )
    assert merge_text(base, ours, theirs).text.encode("utf-8", "surrogateescape") == b"b\n\xff\na\n"
