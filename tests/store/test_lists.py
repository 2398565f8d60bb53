"""Lists of marks: what was forgotten is known by a salted hash, one salt a home."""

from __future__ import annotations

from pathlib import Path

import pytest

from reverie.store import KEPT, Folder, ForgottenTextRefused, ForgottenWords, ReviewQueue
from reverie.topics import CommandEvidence, ForgetWords, Origin, Trust

pytestmark = pytest.mark.spec("7.forget")

WORDS = ForgetWords.of("the grey heron")


def listed(base: Path) -> ForgottenWords:
    return ForgottenWords(base)


def test_the_same_words_have_another_mark_in_another_home(tmp_path: Path) -> None:
    one, other = (listed(tmp_path / name).add(WORDS, 1.0, done=True) for name in ("a", "b"))
    assert one
    assert not {mark.id for mark in one} & {mark.id for mark in other}


def test_words_are_refused_wherever_they_stand_and_by_whoever_asks_later(tmp_path: Path) -> None:
    marks = listed(tmp_path).add(WORDS, 1.0, done=False)
    later = listed(tmp_path)
    for text in (
        "the grey heron",
        "of the grey heron",
        "the grey heron flew",
        "a the grey heron b",
    ):
        assert later.within(text)
        with pytest.raises(ForgottenTextRefused):
            later.guard("note.md", text.encode())
    assert not later.within("the grey hero")
    assert later.unfinished() == marks


def test_a_home_where_nothing_was_forgotten_lists_nothing_and_refuses_nothing(
    tmp_path: Path,
) -> None:
    empty = listed(tmp_path)
    assert (empty.marks(), empty.unfinished()) == ((), ())
    empty.guard("note.md", b"the grey heron")


def test_what_is_dropped_waits_no_more_and_can_be_put_back_for_a_while(tmp_path: Path) -> None:
    review, origin = ReviewQueue(Folder(tmp_path)), Origin("extraction", Trust.UNTRUSTED)
    why = (CommandEvidence("source", 1, "it does not rest on the user's words"),)
    first, second = (review.add(f"{name}.md", f"about {name}", 1.0, origin, why) for name in "ab")
    review.drop(first, 10.0)
    assert review.items() == [second]
    (kept,) = review.dropped(10.0 + KEPT)
    assert (kept.id, kept.text, kept.evidence) == (first.id, first.text, why)
    assert review.dropped(11.0 + KEPT) == []
    assert review.restore(first.id, 20.0).text == first.text
    assert [item.id for item in review.items()] == [second.id, first.id]
    assert review.dropped(20.0) == []
    review.drop(second, 30.0)
    review.drop(first, 31.0 + KEPT)  # what was dropped too long ago goes for good
    assert [item.id for item in review.dropped(30.0)] == [first.id]
