"""An index over its budget: the best part by rank, nothing hidden without a word."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.topics import IndexLimits, SentIndex, TopicFacts, parse_index, render_index

pytestmark = pytest.mark.spec("B9")

DAY = 86_400.0


def index(count: int, hook: str = "hook") -> bytes:
    return "".join(f"- [T{n}](f{n}.md) — {hook}\n" for n in range(count)).encode()


def facts(count: int, **of: TopicFacts) -> dict[str, TopicFacts]:
    return {f"f{n}.md": TopicFacts(n * DAY) for n in range(count)} | {
        f"{key}.md": known for key, known in of.items()
    }


def keys(found: SentIndex) -> list[str]:
    return [one.key for one in parse_index(found.text.encode()).pointers]


def test_within_budget_nothing_is_ranked() -> None:
    found = render_index(index(200), IndexLimits(), facts(200))
    assert found == SentIndex(index(200).decode(), "", 200)


def test_over_budget_the_best_stay_in_order_and_the_rest_is_counted() -> None:
    found = render_index(index(300), IndexLimits(), facts(300))
    assert found.ranked
    assert (found.shown, found.hidden) == (199, 101)
    assert keys(found) == [f"f{n}.md" for n in range(101, 300)]
    assert found.text.endswith(
        "- (101 of 300 entries not shown: search the files of this folder for the rest)\n"
    )
    assert len(found.text.splitlines()) == 200
    assert "only a part of this index is loaded" in found.warning
    assert "300 lines (limit 200)" in found.warning


def test_the_newest_stays_wherever_it_stands_and_however_long_it_is() -> None:
    first = f"- [New](new.md) — {'long ' * 40_000}\n".encode()
    known = facts(400) | {"new.md": TopicFacts(1_000 * DAY)}
    for data in (first + index(400), index(400) + first):
        found = render_index(data, IndexLimits(), known)
        assert "new.md" in keys(found)
        assert len(found.text.encode()) <= 25_000
        assert max(map(len, found.text.splitlines())) <= 150
        assert "210,601 bytes" in found.warning


def test_type_outweighs_a_little_age() -> None:
    limits = IndexLimits(lines=4)
    known = {
        "f0.md": TopicFacts(0, "user"),
        "f1.md": TopicFacts(0, "feedback"),
        "f2.md": TopicFacts(0, "project"),
        "f3.md": TopicFacts(0, ""),
        "f4.md": TopicFacts(10 * DAY, ""),
    }
    found = render_index(index(5), limits, known)
    assert keys(found) == ["f0.md", "f1.md", "f4.md"]
    assert (found.shown, found.hidden) == (3, 2)


def test_pointers_to_nothing_go_first() -> None:
    data = b"- [Bad](../x.md)\n- [Gone](gone.md)\n" + index(3)
    found = render_index(data, IndexLimits(lines=4), facts(3))
    assert keys(found) == ["f0.md", "f1.md", "f2.md"]
    assert "2 of 5 entries not shown" in found.text


def test_headings_come_with_what_stands_under_them() -> None:
    data = b"# Old\n- [A](a.md)\n\n# New\n- [B](b.md)\n- [C](c.md)\n"
    known = {"a.md": TopicFacts(0), "b.md": TopicFacts(90 * DAY), "c.md": TopicFacts(91 * DAY)}
    found = render_index(data, IndexLimits(lines=4), known)
    assert found.text.splitlines()[:-1] == ["# New", "- [B](b.md)", "- [C](c.md)"]


def test_lines_that_are_no_pointers_go_before_any_pointer() -> None:
    data = b"prose one\n" * 3 + index(3)
    found = render_index(data, IndexLimits(lines=5), facts(3))
    assert keys(found) == ["f0.md", "f1.md", "f2.md"]
    assert found.text.startswith("prose one\n- [T0]")
    assert "(2 lines without a pointer not shown:" in found.text


def test_without_pointers_or_facts_the_cut_is_plain() -> None:
    prose = b"prose\n" * 300
    assert not render_index(prose, IndexLimits(), facts(1)).ranked
    assert render_index(prose, IndexLimits(), facts(1)).text == "prose\n" * 199 + "prose"
    plain = render_index(index(300), IndexLimits())
    assert (plain.ranked, plain.shown, plain.hidden) == (False, 200, 100)
    assert "300 lines" in plain.warning


@given(
    st.lists(
        st.tuples(st.integers(0, 400), st.sampled_from(["", "user", "project"])),
        min_size=1,
        max_size=60,
    ),
    st.integers(2, 40),
    st.integers(300, 3_000),
    st.randoms(use_true_random=False),
)
def test_limits_hold_the_newest_stays_and_the_count_is_true(
    known: list[tuple[int, str]], lines: int, size: int, chance: random.Random
) -> None:
    data = index(len(known), "hook é " * 5)
    given_facts = {f"f{n}.md": TopicFacts(d * DAY, t) for n, (d, t) in enumerate(known)}
    limits = IndexLimits(lines, size)
    found = render_index(data, limits, given_facts)
    assert len(found.text.splitlines()) <= lines
    assert len(found.text.encode()) <= size
    assert found.shown + found.hidden == len(known)
    newest = max(range(len(known)), key=lambda n: (known[n][0], n))
    assert f"f{newest}.md" in keys(found)
    said = re.search(r"\((\d+) of (\d+) entries not shown", found.text)
    assert (int(said[1]) if said else 0) == found.hidden
    assert bool(found.warning) == bool(found.hidden or found.ranked)
    shuffled = list(given_facts.items())
    chance.shuffle(shuffled)
    assert render_index(data, limits, dict(shuffled)) == found
