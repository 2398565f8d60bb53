"""The gate: what speaks for a memory in a message, and that orders and chance do not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.recall import (
    CLEAR,
    MARGIN,
    MAX_SENTENCES,
    Query,
    QueryTerms,
    RankedNote,
    evidence,
    find_terms,
    joining,
    sentences,
    telling,
)
from reverie.store import RecallHit
from reverie.text import terms

pytestmark = pytest.mark.spec("8.gate")

NOW = 1_770_000_000.0
LENGTHS = [3, 3, 8, 10, 100]


def speaks(text: str, name: str, body: str = "", sentences: int = 1) -> float:
    """The evidence of a memory for a text, in a folder where no word is in many."""
    weighed = QueryTerms.of(Query.of(text, NOW), 300, lambda _: 5)
    fields = tuple(" ".join(terms(part)) for part in ("a", name, name, "", body))
    found = find_terms(RankedNote(fields), weighed, LENGTHS)
    return evidence(found, telling(weighed), sentences)


def test_words_of_any_order_tell_less_than_others() -> None:
    weighed = QueryTerms.of(Query.of("commit zebra", NOW), 300, lambda _: 5)
    order, other = telling(weighed)
    assert order == pytest.approx(0.4 * other)


@pytest.mark.parametrize(
    "text",
    ["commit and push", "run the tests", "fix it", "rebase on main", "undo that"],
)
def test_an_order_is_not_clear_even_where_a_memory_has_all_its_words(text: str) -> None:
    assert speaks(text, text, text) < CLEAR
    assert speaks("frozen dataclass immutability", "frozen dataclass immutability") > CLEAR


def test_the_share_of_a_sentence_that_a_memory_has_counts() -> None:
    about = "webhook retries and backoff"
    alone = speaks("webhook retries backoff", about)
    among = speaks("webhook retries backoff quux garply waldo plugh xyzzy", about)
    assert 0 < among < alone


def test_many_sentences_need_more_evidence_each() -> None:
    one, many = (speaks("webhook backoff", "webhook backoff", sentences=n) for n in (1, 8))
    assert 0.4 * one < many < one


def test_meaning_speaks_for_a_memory_in_other_words_and_for_none_of_the_same_trade() -> None:
    weighed = QueryTerms.of(Query.of("immutable frozen dataclass", NOW), 300, lambda _: 5)
    order = QueryTerms.of(Query.of("fix test", NOW), 300, lambda _: 5)
    nothing = find_terms(RankedNote(("", "", "", "", "banana")), weighed, LENGTHS)
    other, trade = (evidence(nothing, telling(weighed), 1, like) for like in (0.85, 0.35))
    assert (other > CLEAR, trade) == (True, 0.0)
    found = find_terms(RankedNote(("", "", "", "", "banana")), order, LENGTHS)
    assert evidence(found, telling(order), 1, 0.85) < 0.6 * other


def test_a_large_folder_needs_no_other_threshold() -> None:
    found = [
        telling(QueryTerms.of(Query.of("zebra", NOW), texts, lambda _: 1)) for texts in (10, 10_000)
    ]
    assert found == [(pytest.approx(1.0),), (pytest.approx(1.0),)]


def found(file: str, score: float, evidence: float = 2 * CLEAR, sentence: int = 0) -> RecallHit:
    return RecallHit(file, score, "memory", evidence=evidence, sentence=sentence)


def test_beside_the_best_of_a_sentence_only_what_answers_as_well_joins() -> None:
    good = [found("best", 5.0), found("as good", 5.0 * MARGIN), found("worse", 4.9 * MARGIN)]
    assert [hit.file for hit in joining(good)] == ["best", "as good"]
    other = found("another sentence", 1.0, sentence=1)
    assert [hit.file for hit in joining([other, *good])] == ["best", "as good", "another sentence"]
    assert joining([found("best", 5.0, CLEAR / 2), found("worse", 4.9, CLEAR / 2)]) == []
    assert len(joining([found(str(n), 5.0) for n in range(9)])) == 3


def test_words_in_what_a_memory_is_called_speak_louder_than_in_its_body() -> None:
    weighed = QueryTerms.of(Query.of("webhook backoff", NOW), 300, lambda _: 5)
    words = " ".join(terms("webhook backoff"))
    named, said = (
        find_terms(RankedNote(fields), weighed, LENGTHS)
        for fields in (("", words, "", "", ""), ("", "", "", "", words))
    )
    assert (named.titled, said.titled) == (1.0, 0.0)
    assert evidence(named, telling(weighed)) > 1.5 * evidence(said, telling(weighed))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Wie vergeben wir die Nummern der Rechnungen?", "Rechnung: Nummern werden vergeben"),
        ("Speichere eine Sicherungskopie bitte", "Eine der Sicherungskopien ist gespeichert"),
        ("Ist der Prüfstand vor dem Lauf geleert?", "Prüfstände werden vor jedem Lauf geleert"),
    ],
)
def test_german_inflections_count_as_the_word_itself(text: str, name: str) -> None:
    held = set(terms(name))
    weighed = QueryTerms.of(Query.of(text, NOW), 300, lambda word: 5 if word in held else 0)
    fields = ("", " ".join(terms(name)), "", "", "")
    matched = find_terms(RankedNote(fields), weighed, LENGTHS)
    assert len(matched.own) == len(weighed.all)


def test_sentences_are_the_first_and_the_last_of_many() -> None:
    text = " ".join(f"zebra{n} walks." for n in range(40))
    found = [query.text for query in sentences(text, NOW)]
    assert len(found) == MAX_SENTENCES
    assert found[0] == "zebra0 walks."
    assert found[-1] == "zebra39 walks."
    assert [q.text for q in sentences("eins; zwei\n\ndrei。四", NOW)] == [
        "eins;",
        "zwei",
        "drei。",
        "四",
    ]


def test_a_message_without_a_telling_word_is_one_query() -> None:
    assert len(sentences("Is it? Was it?", NOW)) == 1
    (only,) = sentences("", NOW)
    assert not only


@given(st.text())
def test_any_text_has_sentences(text: str) -> None:
    assert 1 <= len(sentences(text, NOW)) <= MAX_SENTENCES
