"""Sentences about an agent's work as rows of signs: what weighs, and how it is worded."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.embedded.extraction.conduct import (
    AGAINST,
    BAR,
    COMPLAINTS,
    ORDERS,
    judged,
    objects,
    orders,
)
from reverie.embedded.extraction.lexicon import SIGNS
from reverie.embedded.extraction.tags import bases, forms, tagged
from reverie.embedded.extraction.wording import turned
from reverie.embedded.extraction.words import own, sentences

pytestmark = [pytest.mark.spec("B1"), pytest.mark.spec("7.embedded")]


def test_words_of_one_class_have_one_sign():
    assert tagged("you never ran the tests").signs == tagged("u never ran the linter").signs
    assert tagged("don't push").signs == tagged("do not push").signs == tagged("dont push").signs
    assert tagged("ok, well, hmm really very").signs.strip(",") == ""


def test_a_verb_that_is_a_thing_of_the_work_is_told_apart_by_its_place():
    assert tagged("commit it").signs[0] == "c"
    assert tagged("the commit").signs[-1] == "p"
    assert tagged("do small commits").signs[0] == "v"
    assert tagged("do you commit").signs == "ayc"


@pytest.mark.parametrize("typo", ["alwyas", "alway", "alwayss", "alvays"])
def test_a_letter_wrong_in_a_frequent_word_counts_as_the_word(typo: str):
    assert tagged(typo).signs == tagged("always").signs


def test_other_words_are_left_as_they_are():
    assert tagged("though through stated formal hallways").signs == "....."


def test_names_and_quoted_words_are_no_words():
    assert tagged("src/a.py fooBar foo_bar run() --force @x ·····").signs == "N" * 7


def test_every_verb_has_its_forms():
    assert forms("commit") == ["commit", "committed", "committed", "committing"]
    assert forms("verify")[1] == "verified"
    assert forms("write") == ["write", "wrote", "written", "writing"]
    assert (bases()["wrote"], bases()["running"], bases()["commit"]) == ("write", "run", "commit")


def test_a_sign_is_one_character_and_no_word_stands_twice_in_a_row():
    assert all(len(sign) == 1 for sign in SIGNS)
    for row in SIGNS.values():
        words = row.split("|")
        assert len(words) == len(set(words))
        assert all(words)


@pytest.mark.parametrize("table", [COMPLAINTS, ORDERS, AGAINST])
def test_evidence_is_written_in_the_signs(table: dict[str, tuple[str, float]]):
    for row, weight in table.values():
        re.compile(row)
        assert (weight < 0) == (table is AGAINST)


PAIRS = [
    ("you forgot to run the linter", "you forgot to export the function"),
    ("tests should never mock the store", "the page should never show the price"),
    ("run the linter before you commit", "run the migration before the server starts"),
    ("why did you rewrite the whole file without asking", "why did the build fail"),
    ("commit after each step", "add a button for each row"),
    ("if a test fails, stop and tell me", "if the file does not exist, create it"),
    ("stop adding comments", "stop the server and start it again"),
    ("keep your answers short", "keep the old api"),
    ("don't touch files I didn't mention", "don't render the list if it is empty"),
]


@pytest.mark.parametrize(("work", "program"), PAIRS)
def test_the_same_words_of_the_work_and_of_the_program(work: str, program: str):
    assert judged(work).weight >= BAR > judged(program).weight


def test_the_end_of_a_long_task_counts_on_its_own():
    text = "add the parser to the importer page, rename the field, and commit after each step"
    found = judged(text)
    assert found.weight >= BAR
    assert text[found.start :] == "and commit after each step"


def test_what_another_is_to_do_is_no_order():
    assert judged("the runner should stop and tell me before each commit").weight < BAR
    assert judged("write a note which says: always run the linter before you commit").weight < BAR


def test_an_order_and_an_objection():
    assert orders("run the tests")
    assert orders("please never push")
    assert not orders("the tests run")
    assert objects("you pushed already")
    assert objects("why is that")
    assert not objects("the page is blank")


TURNED = [
    ("you didn't run any tests", "run tests"),
    ("you never wrote any tests", "write tests"),
    ("why did you rewrite the whole file", "do not rewrite the whole file"),
    ("why are you not keeping my notes", "keep my notes"),
    ("why are you lazy today", ""),
    ("did you even read the error message", "read the error message"),
    ("are you forgetting to run the linter", "run the linter"),
    ("you should have asked me first", "ask me first"),
    ("you keep reverting my edits", "avoid reverting my edits"),
    ("3 times, I asked you to follow the spec", "follow the spec"),
    ("I asked you not to touch the tests", "do not touch the tests"),
    ("you added a dependency without asking", "do not add a dependency without asking"),
    ("I want you to explain the plan", "explain the plan"),
    ("there is new feedback, make sure to read it first", "make sure to read it first"),
    ("the tests are slow", ""),
]


@pytest.mark.parametrize(("said", "rule"), TURNED)
def test_a_complaint_is_turned_into_a_rule(said: str, rule: str):
    assert turned(said) == rule


def test_what_was_typed_above_a_paste_is_the_writers():
    text = (
        "you are not running the code: see\nTraceback (most recent call last):\n  File x\n> a\n> b"
    )
    assert own(text).startswith("you are not running the code")
    assert [one.text for one in sentences(own("> a\n> b\n> c"))] == []


@given(st.text(alphabet="dnot youvrepushi,.-'&!? ", max_size=300))
def test_any_words_weigh_something(text: str):
    row = tagged(text)
    assert len(row.signs) == len(row.places)
    assert judged(text) == judged(text)
