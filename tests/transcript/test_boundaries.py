"""What a compaction's boundary starts over, and what the newest cursors say."""

from __future__ import annotations

import pytest

from reverie.transcript import (
    EMPTY,
    AssistantMessage,
    Boundary,
    Candidate,
    Entry,
    Extracted,
    Failed,
    HeadSet,
    NotesTaken,
    Recalled,
    Record,
    Replaced,
    Stand,
    Usage,
    UserMessage,
    View,
    apply,
    text_block,
)


def folded(*records: Record) -> View:
    view = EMPTY
    for n, record in enumerate(records):
        view = apply(view, Entry(f"e{n}", view.leaf, float(n), record))
    return view


def said(text: str) -> UserMessage:
    return UserMessage((text_block(text),))


def answered(text: str, usage: Usage | None = None) -> AssistantMessage:
    return AssistantMessage((text_block(text),), usage=usage)


SUMMARY = (Stand("user", (text_block("short " * 20),)),)


@pytest.mark.spec("6")
def test_a_boundary_counts_what_is_left_by_the_rate_the_last_usage_told() -> None:
    # the estimate is 2,000 tokens a message; the provider counts twice that
    long = "word " * 1600
    view = folded(
        HeadSet("m"),
        said(long),
        answered(long),
        said(long),
        answered(long, Usage(uncached=14_000, output=2_000)),
        Replaced("e1", "e3", SUMMARY, "full", boundary=Boundary()),
    )
    assert view.tokens == view.head_tokens + round(view.estimated * 2)
    assert view.boundary == "e5"


@pytest.mark.spec("6")
def test_what_is_said_behind_a_boundary_is_added_as_estimated() -> None:
    view = folded(
        said("a" * 4_000),
        answered("b" * 400, Usage(uncached=1_500, output=100)),
        Replaced("e0", "e1", SUMMARY, "full", boundary=Boundary()),
    )
    before = view.tokens
    assert apply(view, Entry("n", view.leaf, 9.0, said("c" * 400))).tokens == before + 100


@pytest.mark.spec("6")
def test_failures_in_a_row_are_counted_and_a_success_resets_them() -> None:
    failed = (said("hello"), Failed("compaction", "x"), Failed("notes", "y"))
    view = folded(*failed, Failed("compaction", "z"))
    assert view.compaction_failures == 2
    done = Replaced("e0", "e0", SUMMARY, "full", boundary=Boundary())
    assert apply(view, Entry("n", view.leaf, 9.0, done)).compaction_failures == 0
    snipped = Replaced("e0", "e0", SUMMARY, "snip")
    assert apply(view, Entry("n", view.leaf, 9.0, snipped)).compaction_failures == 2


@pytest.mark.spec("6")
def test_what_was_recalled_starts_over_behind_a_boundary() -> None:
    ledger = Recalled("e0", 3, (Candidate("a.md", 1.0, "injected", size=90),))
    view = folded(said("hello"), ledger, NotesTaken("e0", 10), Extracted("e0"))
    assert view.recalled == (ledger,)
    done = Replaced("e0", "e0", SUMMARY, "session_memory", boundary=Boundary())
    after = apply(view, Entry("n", view.leaf, 9.0, done))
    assert after.recalled == ()
    assert (after.notes, after.extracted) == (NotesTaken("e0", 10), Extracted("e0"))
