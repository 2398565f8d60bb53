"""Lists of marks: what was forgotten is known by a salted hash, one salt a home."""

from __future__ import annotations

from pathlib import Path

import pytest

from reverie.memory.words import ForgetWords
from reverie.store.lists import Forgotten, ForgottenWords

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
        with pytest.raises(Forgotten):
            later.guard("note.md", text.encode())
    assert not later.within("the grey hero")
    assert later.unfinished() == marks


def test_a_home_where_nothing_was_forgotten_lists_nothing_and_refuses_nothing(
    tmp_path: Path,
) -> None:
    empty = listed(tmp_path)
    assert (empty.marks(), empty.unfinished()) == ((), ())
    empty.guard("note.md", b"the grey heron")
