"""What a question is made into, and what a text scores: pure, total, and the same every time."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.recall import (
    MAX_TERMS,
    Query,
    QueryTerms,
    RankedNote,
    RankedTurn,
    Utterance,
    best_lines,
    count_terms,
    find_terms,
    headings,
    rarity,
    score_note,
    score_turn,
    utterances,
)
from reverie.testing import call
from reverie.text import LONGEST, closeness, stem, terms
from reverie.transcript import AssistantMessage, Attached, Entry, UserMessage, block_of, text_block

pytestmark = pytest.mark.spec("B2.ranking")

NOW = datetime(2026, 3, 18, 15, tzinfo=UTC).timestamp()  # a Wednesday


def day(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def asked(text: str) -> tuple[str, ...]:
    return Query.of(text, NOW).terms


# Terms


def test_an_identifier_is_found_by_its_parts_and_in_every_spelling() -> None:
    spelled = {tuple(terms(text)) for text in ("currentSessionKey", "current_session_key")}
    assert spelled == {("current", "session", "kei", "currentsessionkey")}
    assert terms("CurrentSessionKey") == terms("currentSessionKey")
    assert set(terms("current session key")) < set(terms("currentSessionKey"))
    assert terms("HTTPServer2") == ["http", "server", "2", "httpserver2"]
    assert terms("src/reverie/store/lock.py") == ["src", "reveri", "store", "lock", "py"]


def test_words_meet_in_their_inflections() -> None:
    for words in ("running ran runs", "went goes going gone", "studies studied study"):
        assert len({stem(word) for word in words.split()}) == 1, words
    for words in ("user's user users", "indexes indices index", "deploying deployed deploy"):
        assert len({tuple(terms(word)) for word in words.split()}) == 1, words
    assert terms("don't isn't I'm we'll") == []
    assert terms("Café CAFÉ cafe ｃａｆｅ") == ["cafe"] * 4


def test_scripts_without_spaces_give_pairs() -> None:
    assert terms("数据库备份") == ["数据", "据库", "库备", "备份"]
    assert set(asked("请问数据库怎么备份？")) == {"数据", "据库", "备份"}
    assert set(asked("你还记得上海的天气吗")) >= {"上海", "天气"}
    assert terms("サーバー")[0] == "サー"
    assert "목적" in terms("목적은")


def test_a_question_is_asked_without_its_asking_words() -> None:
    assert asked("What kind of database do we use?") == ("databas",)
    assert asked("Do you remember where the staging server is?") == ("stage", "server")
    assert asked("what is the how of it") == ()
    assert asked("show") == ("show",)  # all there is


KNOWN = {"Lu", "Ll", "Lt", "Lm", "Lo", "Nd", "Nl", "No", "Mn", "Mc", "Me", "Cn"}


def is_word(term: str) -> bool:
    """Letters, digits, the vowel signs and tones that some scripts write as marks, and letters
    of those scripts that this Python does not know yet."""
    return bool(term) and all(unicodedata.category(c) in KNOWN for c in term)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "😀🎉👩‍👩‍👧",
        "the of and is",
        '") OR 1=1; DROP TABLE note; --',
        "NEAR(a b) AND name:x* OR ^y NOT {z}",
        "\x00\ud800\udfff\u202e",
        "—…·¿",
    ],
)
def test_any_text_is_a_query(text: str) -> None:
    query = Query.of(text, NOW)
    assert all(is_word(term) for term in query.terms)


@given(st.text(max_size=300))
def test_terms_are_letters_and_digits_and_bounded(text: str) -> None:
    found = terms(text)
    assert len(found) <= 2 * len(text)
    assert all(len(term) <= LONGEST and is_word(term) for term in found)
    assert Query.of(text, NOW) == Query.of(text, NOW)


def test_a_huge_query_is_cut_to_its_beginning_and_end() -> None:
    text = " ".join(f"word{n}x" for n in range(20_000))
    found = asked(text)
    assert len(found) == MAX_TERMS
    assert "word0x" in found
    assert "word19999x" in found
    for piece in (
        "a",
        "word ",
        "昨天",
        "1 ",
        "a'",
        "aB",
        "1-1-",
        "in May ",
        "\\",
        '"',
        "two days ago ",
    ):
        Query.of(piece * (100_000 // len(piece)), NOW)


# Times


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("what did we decide yesterday", "2026-03-17", "2026-03-17"),
        ("the bug of the day before yesterday", "2026-03-16", "2026-03-16"),
        ("what we did last week", "2026-03-09", "2026-03-15"),
        ("what we did this week", "2026-03-16", "2026-03-18"),
        ("the plan from last month", "2026-02-01", "2026-02-28"),
        ("the plan from last year", "2025-01-01", "2025-12-31"),
        ("the meeting last Friday", "2026-03-13", "2026-03-13"),
        ("the talk 3 days ago", "2026-03-15", "2026-03-15"),
        ("notes of 7 May 2023", "2023-05-07", "2023-05-07"),
        ("notes of May 7th, 2023", "2023-05-07", "2023-05-07"),
        ("notes of 2023-05-07", "2023-05-07", "2023-05-07"),
        ("notes from May 2023", "2023-05-01", "2023-05-31"),
        ("昨天说了什么", "2026-03-17", "2026-03-17"),
        ("上周的计划", "2026-03-09", "2026-03-15"),
        ("三天前的会议", "2026-03-15", "2026-03-15"),
        ("2023年5月7日的记录", "2023-05-07", "2023-05-07"),
    ],
)
def test_a_date_in_a_query_is_a_span_of_days(text: str, first: str, last: str) -> None:
    (span,) = Query.of(text, NOW).dates
    assert (span.start, span.end) == (day(first), day(last) + 86_400)


def test_an_impossible_date_is_none() -> None:
    for text in ("31 February 2023", "2023-13-45", "99999 years ago", "0000-00", "13月99日"):
        Query.of(text, NOW)
        Query.of(text, 1e300)
        Query.of(text, -1e300)
    assert Query.of("31 February 2023", NOW).dates == ()


def test_what_was_said_soon_after_a_day_is_close_to_it() -> None:
    spans = Query.of("7 May 2023", NOW).dates
    at = [closeness(day(text), spans) for text in ("2023-05-07", "2023-05-10", "2023-06-20")]
    assert 1 == at[0] > at[1] > at[2]
    assert closeness(day("2023-05-04"), spans) < at[1]
    query = Query.of("what happened in August", NOW)
    assert closeness(day("2020-08-05"), query.dates, query.months) > 0
    assert closeness(day("2020-09-05"), query.dates, query.months) == 0


# Memories


def scored(note: RankedNote, question: str, counts: dict[str, int] | None = None) -> float:
    known = counts or {}
    weighed = QueryTerms.of(Query.of(question, NOW), 100, lambda term: known.get(term, 1))
    return score_note(note, weighed, find_terms(note, weighed, [3, 3, 8, 10, 100]))


def note(name: str = "", about: str = "", body: str = "", **more: float) -> RankedNote:
    fields = tuple(" ".join(terms(text)) for text in ("a", name, about, "", body))
    return RankedNote(fields, saved=more.get("saved", 0.0))


def test_where_a_term_stands_decides() -> None:
    question = "how does the staging deploy work"
    asked_for = "staging deploy"
    order = [note(name=asked_for), note(about=asked_for), note(body=asked_for)]
    found = [scored(one, question) for one in order]
    assert found == sorted(found, reverse=True)
    assert len(set(found)) == 3


def test_a_rare_term_weighs_more_and_common_words_are_known_to_be_common() -> None:
    counts = {"zebra": 1, "server": 90}
    assert scored(note(body="zebra"), "zebra server", counts) > scored(
        note(body="server"), "zebra server", counts
    )
    assert rarity("file", 3, 1) < rarity("zebra", 3, 1)


def test_neighbours_of_the_query_close_together_count() -> None:
    near = note(body="alpha beta " + "filler " * 40)
    apart = note(body="alpha " + "filler " * 40 + "beta")
    assert scored(near, "alpha beta") > scored(apart, "alpha beta")


def test_synonyms_count_less_than_the_word_itself() -> None:
    found = [scored(note(body=word), "the pets") for word in ("pet", "animal", "banana")]
    assert found[0] > found[1] > found[2]


def test_a_query_whose_words_are_not_there_finds_nothing_clear() -> None:
    known = {"deploi": 3}
    text = "deploy"
    alone = scored(note(name=text, about=text, body=text), "deploy", known)
    lost = scored(
        note(name=text, about=text, body=text), "deploy quux garply waldo plugh xyzzy", known
    )
    assert lost < alone


def test_age_breaks_ties_only() -> None:
    question = "staging server"
    old, new = note(body=question, saved=0.0), note(body=question, saved=NOW)
    assert scored(new, question) > scored(old, question)
    better = note(name="staging server", saved=0.0)
    assert scored(better, question) > scored(note(body="server", saved=NOW), question)


# Turns


def turns(*said: tuple[str, str]) -> dict[int, RankedTurn]:
    made = [Utterance(text, speaker) for speaker, text in said]
    return {
        n: RankedTurn(
            " ".join(terms(one.text)),
            one.speaker,
            one.at,
            one.asks,
            one.ends_asking,
            one.first_person,
            len(one.text),
        )
        for n, one in enumerate(made)
    }


def turn_scores(
    said: dict[int, RankedTurn], question: str, speakers: frozenset[str]
) -> list[float]:
    weighed = QueryTerms.of(Query.of(question, NOW), 50, lambda _: 2)
    amounts = {n: count_terms(turn, weighed) for n, turn in said.items()}
    return [score_turn(n, said, amounts, weighed, 6.0, 0.0, speakers)[0] for n in said]


def test_the_answer_to_a_question_is_found_by_the_question() -> None:
    said = turns(
        ("Ann", "Lovely weather today."),
        ("Bob", "What breed is your puppy?"),
        ("Ann", "She is a beagle, four months old."),
        ("Bob", "Great."),
        ("Ann", "Nothing else happened."),
        ("Bob", "See you soon."),
    )
    found = turn_scores(said, "Which breed is the puppy of Ann?", frozenset({"Ann"}))
    assert max(range(6), key=lambda n: found[n]) == 2
    assert found[5] < found[3]


def test_what_the_named_person_says_counts_more() -> None:
    said = turns(("Ann", "I went hiking."), ("", ""), ("", ""), ("", ""), ("Bob", "I went hiking."))
    found = turn_scores(said, "hiking", frozenset({"Bob"}))
    assert found[4] > found[0]


def test_a_long_reply_scores_by_its_best_passage_and_not_by_words_all_over_it() -> None:
    filler = " ".join(f"filler{n} padding{n} stuffing{n}" for n in range(20))
    said = turns(
        ("assistant", f"The kayak. {filler} The trailer. {filler} The permit. {filler}"),
        *[("", "")] * 3,
        ("assistant", f"{filler} {filler} The kayak trailer needs a permit. {filler}"),
    )
    weighed = QueryTerms.of(Query.of("kayak trailer permit", NOW), 50, lambda _: 2)
    amounts = {n: count_terms(turn, weighed, whole=False) for n, turn in said.items()}
    assert [sum(amounts[n].values()) for n in (0, 4)] == [1, 3]
    scattered, close = (
        score_turn(n, said, amounts, weighed, 6.0, 0.0, frozenset())[0] for n in (0, 4)
    )
    assert close > 2 * scattered


def test_a_transcript_is_turns_without_our_own_echo() -> None:
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "three tests passed"}
    records = [
        UserMessage((text_block("run the tests"),)),
        Attached((text_block("a memory we injected"),), "recall"),
        AssistantMessage((text_block("Running."), call("Bash", "t1", command="make test"))),
        UserMessage((block_of(result),), "tool"),
        UserMessage((text_block("a reminder of ours"),), "reminder"),
        AssistantMessage(()),
    ]
    entries = [Entry(f"e{n}", "", float(n), record) for n, record in enumerate(records)]
    found = list(utterances(entries))
    assert [(one.speaker, one.message) for one in found] == [
        ("user", "e0"),
        ("assistant", "e2"),
        ("tool", "e3"),
    ]
    assert "make test" in found[1].text
    assert found[2].text == "three tests passed"


def test_the_best_lines_are_those_with_most_of_the_terms() -> None:
    body = "# Title\n\nfirst line\nnothing\nthe deploy of staging goes here\nlast deploy"
    at, shown = best_lines(body, [("deploi", 1.0), ("deploy", 1.0), ("stage", 1.0), ("stag", 1.0)])
    assert at == 4
    assert shown.startswith("the deploy of staging")
    assert best_lines("", [("a", 1.0)]) == (0, "")
    assert headings("# One\ntext\n## Two ##\n#no") == "One\nTwo"


# Words of other languages


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("Die Häuser werden im Mai gestrichen", "Wann wird das Haus gestrichen?"),
        ("Die Datenbank wird jede Nacht gesichert", "Wie werden die Datenbanken gesichert?"),
        ("Развёртывание сервера идёт ночью", "порядок развертывания"),
        ("資料庫每天備份", "数据库什么时候备份"),
        ("我們的連線設定", "连线设定在哪里"),
    ],
)
def test_a_word_is_found_in_another_form_of_its_language(text: str, query: str) -> None:
    assert set(asked(query)) & set(terms(text))


def test_a_german_text_keeps_the_stems_of_english_words() -> None:
    assert {"server", "deploi"} <= set(terms("Der Server ist nach dem Deploy wieder da und läuft"))
    assert terms("The server was in the house") == ["server", "hous"]


def test_a_word_with_letters_of_its_language_is_one_word() -> None:
    assert terms("Straßenbahn")[0] == "strassenbahn"
    assert terms("Café naïve") == ["cafe", "naiv"]
