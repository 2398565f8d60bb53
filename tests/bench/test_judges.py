"""The judges of learning and recall can fail: what saves or sends all, or nothing, is caught."""

from __future__ import annotations

from collections import Counter
from hashlib import sha256

import pytest

from bench import asks, chats, gate, memorycode
from bench.extraction import Outcome
from bench.figures import Row
from bench.memorycode import Page, Rule, rule_of, told
from bench.prepared import stands, words_of

pytestmark = pytest.mark.spec("7.embedded")

TYPES = {"user", "feedback", "project", "reference"}


def missed(rows: list[Row]) -> list[str]:
    return [what for what, _, _, met in rows if met is False]


# Rules


def page(body: str, name: str = "A note", about: str = "about it") -> Page:
    return Page.of(
        "a.md", f"---\nname: {name}\ndescription: {about}\ntype: feedback\n---\n\n{body}\n"
    )


@pytest.mark.parametrize(
    ("rule", "says", "silent"),
    [
        (("method", ".*_o$"), "Method names end with '_o'.", "Method names end with '_ok'."),
        (("method", "^x_.*"), "Start methods with `x_`.", "Start methods with max_1."),
        (("function", ".*_gn$"), "End function names with _gn.", "Function arguments end in _gn."),
        (
            ("function argument", "^j_.*"),
            "Arguments start with 'j_'.",
            "Variables start with 'j_'.",
        ),
        (("variable", r".*\d$"), "A digit in variable names.", "Variables are named."),
        (("attribute", ".*chx.*"), "Attributes contain 'chx'.", "Attributes are short."),
        (("class decorator", "trace_class"), "@trace_class on classes", "@trace on classes"),
        (("import", "bz2"), "Always import bz2.", "bz2 packs well."),
        (("function try", ""), "Try statements in functions.", "Try other functions."),
        (("comment", ""), "Add comments in your code.", "His comments were kind."),
        (("class", "^[a-z0-9_]*$"), "Class names in snake_case.", "Class names in CamelCase."),
    ],
)
def test_a_rule_is_known_by_its_object_and_its_literal_part(
    rule: Rule, says: str, silent: str
) -> None:
    assert page(says).states(rule)
    assert not page(silent).states(rule)


@pytest.mark.parametrize(
    "told_as_old",
    [
        "Method names end with '_o', no longer with '_md'.",
        "Method names end with '_o' instead of '_md'.",
        "'_md' at the end of method names was replaced by '_o'.",
    ],
)
def test_what_is_told_as_old_is_not_told_as_current(told_as_old: str) -> None:
    assert page(told_as_old, name="Method names").states(("method", ".*_o$"))
    assert not page(told_as_old, name="Method names").states(("method", ".*_md$"))


def dialogue() -> memorycode.Dialogue:
    sessions = [
        {"topic": ["always end method names with '_md'"], "type": ["instruction-add"], "rules": []},
        {
            "topic": ["always end method names with '_o'", "use Skype for video calls"],
            "type": ["instruction-update", "filler-instruction-add"],
            "rules": [["method", ".*_o$"]],
        },
    ]
    return memorycode.Dialogue("made-up", sessions)


def test_what_holds_and_what_was_replaced_follow_from_the_topics() -> None:
    assert dialogue().final == [("method", ".*_o$")]
    assert dialogue().replaced == [("method", ".*_md$")]
    assert rule_of("import", ["bz2", True]) == told("always import the 'bz2' module even if")


def test_saving_nothing_and_saving_everything_miss_a_limit() -> None:
    new, old = page("End method names with '_o'."), page("End method names with '_md'.")
    filler = page("Use Skype for video calls.")
    right = memorycode.Outcome(dialogue(), (new,))
    assert not missed(list(memorycode.rows_of([right])))
    nothing = memorycode.Outcome(dialogue(), ())
    assert len(missed(list(memorycode.rows_of([nothing])))) == 1
    everything = memorycode.Outcome(dialogue(), (new, old, filler))
    assert len(missed(list(memorycode.rows_of([everything])))) == 1
    assert (everything.others, everything.orders) == ([filler], [filler])


# Asks


def test_the_asks_are_whole() -> None:
    rows = asks.cases()
    wanted = [row for row in rows if row["save"]]
    assert Counter(row["language"] for row in wanted) == {"en": 40, "de": 8, "zh": 8, "es": 4}
    assert len(rows) - len(wanted) == 120
    assert len({row["id"] for row in rows}) == len({row["text"] for row in rows}) == len(rows)
    for row in rows:
        assert row["held"] is (sha256(row["id"].encode()).digest()[0] % 2 == 1)
        if row["save"]:
            assert row["expect"]["type"] in TYPES
            assert all(word.lower() in row["text"].lower() for word in row["expect"]["words"])
        else:
            assert row["why"]


def test_keeping_every_turn_and_keeping_none_miss_a_limit() -> None:
    rows = asks.cases()
    every = {row["id"]: Outcome(("feedback",), (row["text"],)) for row in rows}
    assert missed(list(asks.judged(rows, every))) == ["all: saves that must not be"]
    none = {row["id"]: Outcome() for row in rows}
    assert missed(list(asks.judged(rows, none))) == ["all: plain asks saved, English"]
    empty = {
        row["id"]: Outcome(("feedback",), ("A rule.",)) if row["save"] else Outcome()
        for row in rows
    }
    assert missed(list(asks.judged(rows, empty))) == ["all: plain asks saved, English"]


# What is sent


def test_a_body_stands_in_a_request_where_all_its_lines_do() -> None:
    body = '{"system": [{"text": "one\\n  two"}], "messages": [{"content": "three"}]}'
    text = words_of(body)
    assert stands("one\n\ntwo", text)
    assert not stands("one\nfour", text)


def test_short_orders_are_many_and_short() -> None:
    assert len(set(gate.ORDERS)) == 20
    assert max(map(len, gate.ORDERS)) < 60


def test_a_document_is_seen_where_its_line_is_and_not_where_the_prompt_has_it() -> None:
    folder = gate.Folder.__new__(gate.Folder)
    folder.lines = {"a.md": "a line of its own", "b.md": "another line"}
    assert folder.seen("prompt\na line of its own", "prompt") == {"a.md"}
    assert folder.seen("about another line", "about another line") == set()


# Chats


def test_what_an_earlier_message_alone_said_is_asked_for_once_it_comes_again() -> None:
    said = [
        chats.Said("1", "user", "The gateway of the bakery is flaky today"),
        chats.Said("2", "assistant", "I look at the parser."),
        chats.Said("3", "user", "So the bakery gateway is fixed then"),
    ]
    (found,) = chats.later_queries(said)
    assert (found.wanted, found.before) == (frozenset({"1"}), "3")
    left = chats.Later(chats.Chats({"s": said}, [found]))
    assert left.left(found, ["3", "2", "1"]) == ["2", "1"]


def test_the_yardstick_finds_any_of_the_words() -> None:
    said = [chats.Said("1", "user", "red apples"), chats.Said("2", "user", "green pears")]
    assert chats.Plain(chats.Chats({"s": said}, [])).find("pears or plums?") == ["2"]
