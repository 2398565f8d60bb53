"""The labels that extraction is measured with: whole, split by their rule, and without texts."""

from __future__ import annotations

import json
import re
from hashlib import sha256
from pathlib import Path

import pytest

from bench import labels
from bench.extraction import (
    CORRECTIONS,
    Outcome,
    disagreements,
    figures,
    one_case,
    share,
    synthetic,
    wilson,
)
from bench.labels import Labelled, locomo, unlabelled

pytestmark = pytest.mark.spec("7.embedded")

KEYS = {"id", "half", "save", "type", "kind", "gist", "why"}
TYPES = {"user", "feedback", "project", "reference"}
TOLD = {"role", "preference", "deadline", "project_fact", "pointer"}
PLAIN = ("synthetic-en-023", "synthetic-en-028", "synthetic-en-033")
"""They correct, and order for good in plain words."""
LABEL = re.compile(r"\*\*(?:Why|How to apply):\*\* ")
GUESSED = {"correction", "confirmation"}


def rows(name: str) -> list[dict[str, object]]:
    lines = (labels.LABELS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("name", ["sessions", "locomo"])
def test_a_label_holds_a_judgement_and_no_text(name: str):
    for row in rows(name):
        assert set(row) <= KEYS
        assert ("why" in row) != bool(row["save"])
        assert not row["save"] or row["type"] in TYPES
        assert len(str(row.get("gist", "")).split()) <= 12


@pytest.mark.parametrize("name", ["sessions", "locomo"])
def test_the_half_follows_from_the_id(name: str):
    for row in rows(name):
        even = sha256(str(row["id"]).encode()).digest()[0] % 2 == 0
        assert row["half"] == ("tune" if even else "test")
    assert len({row["id"] for row in rows(name)}) == len(rows(name))


def test_every_typed_turn_has_a_label(shared: Path):
    assert unlabelled(shared) == []
    assert len(locomo(shared)) == len(rows("locomo"))


def test_the_synthetic_set_is_marked_and_mostly_what_is_not_saved():
    cases = synthetic()
    assert len(cases) >= 120
    assert all(case["synthetic"] is True for case in cases)
    assert sum(not case["save"] for case in cases) * 2 >= len(cases)
    assert len({case["id"] for case in cases}) == len(cases)
    assert {case["language"] for case in cases} == {"en", "zh"}


def test_of_the_synthetic_cases_only_those_to_be_saved_are():
    for case in synthetic():
        done = one_case(case)
        assert not done.types or case["save"], case["id"]
        assert not done.types or case["type"] in done.types, case["id"]
        reason = LABEL.sub("", case.get("says", "")).rstrip(".。").lower()
        assert not done.types or reason in "".join(done.texts).lower(), case["id"]


def test_what_is_plainly_told_is_mostly_saved_and_no_guess_is_made():
    """Without a cue a fact let fall in passing is left to a model."""
    told: list[bool] = []
    for case in (case for case in synthetic() if case["save"]):
        saved = bool(one_case(case).types)
        if case["kind"] in GUESSED:
            assert not saved or case["id"] in PLAIN, case["id"]
        elif case["kind"] in TOLD:
            told.append(saved)
    assert sum(told) >= 0.75 * len(told)


def test_the_synthetic_corrections_are_marked_and_split_by_their_id():
    cases = synthetic(CORRECTIONS)
    assert all(case["synthetic"] is True for case in cases)
    assert sum(case["save"] for case in cases) >= 150
    assert sum(not case["save"] for case in cases) >= 200
    assert len({case["id"] for case in cases}) == len(cases)
    for case in cases:
        even = sha256(case["id"].encode()).digest()[0] % 2 == 0
        assert case["half"] == ("tune" if even else "test")


@pytest.mark.parametrize("half", labels.HALVES)
def test_hardly_anything_that_looks_like_a_correction_is_saved(half: str):
    """A task worded as an order ("never log the password") reads like a rule."""
    cases = [case for case in synthetic(CORRECTIONS) if case["half"] == half and not case["save"]]
    assert sum(bool(one_case(case).types) for case in cases) <= 0.02 * len(cases)


def test_an_interval_holds_its_share():
    assert wilson(0, 0) == (0.0, 1.0)
    low, high = wilson(9, 10)
    assert 0.55 < low < 0.9 < high < 1.0
    assert share(9, 10).startswith("9/10 = 0.90 [0.60, 0.98")
    assert share(0, 0) == "0/0"


def labelled(ident: str, kind: str = "", why: str = "") -> Labelled:
    type_ = "feedback" if kind else ""
    return Labelled(ident, "tune", bool(kind), type_, kind, "", why, "", "", "", "user", 0.0)


def test_saves_and_labels_are_matched_by_turn():
    turns = [
        labelled("right", "correction"),
        labelled("other type", "correction"),
        labelled("missed", "standing_instruction"),
        labelled("junk", why="code"),
        labelled("wrong", why="chatter"),
        labelled("left", why="task"),
    ]
    saved = {"right": "feedback", "other type": "user", "junk": "project", "wrong": "user"}
    done = {one.id: Outcome((saved[one.id],) if one.id in saved else ()) for one in turns}
    got = figures(turns, done)
    assert (got.turns, got.saved, got.right, got.typed, got.wanted) == (6, 4, 2, 1, 3)
    assert (got.rules, got.junk, got.precision) == ((2, 3), 1, 0.5)
    told = "\n".join(disagreements(turns, done))
    assert all(f"`{name}`" in told for name in ("missed", "junk", "wrong"))
    assert told.count("\n") == 2
