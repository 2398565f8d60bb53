"""Plain orders are kept, a topic has one rule, and what is of the task alone is left."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from reverie.embedded import NOTHING_TO_SAVE, ExtractedFact, find_facts, never, user_turn
from reverie.topics import supersedes
from reverie.transcript import KnownMemory

from .extracting import WEDNESDAY, Talk

pytestmark = [pytest.mark.spec("7.embedded")]


@pytest.fixture
def talk(tmp_path: Path) -> Talk:
    return Talk(tmp_path / "memory")


def found(*said: str) -> list[ExtractedFact]:
    return find_facts([user_turn(str(n), text, WEDNESDAY) for n, text in enumerate(said)])


PLAIN = [
    ("remember you may run the linter yourself, no need to ask", "feedback"),
    ("please write comments in Spanish", "feedback"),
    ("our bugs live in the tracker Mantis", "reference"),
    ("we use tabs, not spaces", "feedback"),
    ("dont ever touch the files in vendor/, the sync overwrites them", "feedback"),
    ("could you always add type hints when you write python", "feedback"),
    ("next time ask me before you delete a branch", "feedback"),
    ("i'm a nurse, not a programmer", "user"),
    ("we go live on january 15", "project"),
    ("ab jetzt bitte alle antworten auf englisch", "feedback"),
    ("soy profesora de matemáticas", "user"),
    ("désormais réponds en français", "feedback"),
    ("from now on keep the diary in notes.md (not in the wiki)", "feedback"),
    ("from now on rerun every suite that touches billing", "feedback"),
    ("from now on dont train on this laptop", "feedback"),
    ("from now on dont ask before a rebase, ill say when", "feedback"),
    ("from now on send a summary so i see where we are", "feedback"),
    ("let's always put fixtures beside the suite they serve", "feedback"),
    ("you always have to use the staging mirror", "feedback"),
    ("never take a shortcut around the review", "feedback"),
    ("don't ask me again for leave to run the suite", "feedback"),
    ("i don't want you to rename branches on your own", "feedback"),
    ("never delete a branch unless i tell you", "feedback"),
    ("remember if a partner calls, you tell sales first", "project"),
]


@pytest.mark.parametrize(("text", "type_"), PLAIN, ids=[row[0] for row in PLAIN])
def test_what_is_plainly_asked_is_kept_with_its_type(text: str, type_: str):
    (one,) = found(text)
    assert one.type == type_
    assert not never(one)


OF_THE_TASK = [
    "remember ticket 4821993 for later",
    "never log in at src/app/main.ts:88:14",
    "always look at #4312 first",
    "should i always run the linter before committing",
    '"From now on I will use pathlib everywhere." ok and where is it then',
    "Subject: reminder\nHi all, please remember to submit your timesheets by Friday.\nRegards, HR",
    "translate this: we never merge on fridays",
    "always tests",
    "never push (unless the",
    "Remember, we're a team and your growth is important to us",
    "peter's wife is in hospital until 2026-12-01",
    "from now on the counter starts at 1",
    "From now on, I'd like you to follow a specific naming convention.",
    "rename all functions to start with get_",
    "add docstrings to all functions",
    "start the function name with an underscore",
    "from now on these should be blue",
    "from now on make fetchUser return an empty list",
    "from now on that is done in the parser",
    "from config import (",
    "remind me where the dashboard for billing is",
    "write in markdown what we found about the outage",
    "remember if we ran the migration",
    "you always show the wrong column",
    "merk dir immer, wie breit die seitenleiste zuletzt war",
    "create a reading plan for two weeks starting tomorrow",
]


@pytest.mark.parametrize("text", OF_THE_TASK)
def test_what_is_of_the_task_or_of_others_is_left(text: str):
    assert found(text) == []


def test_orders_inside_a_long_brief_are_for_that_work():
    brief = "\n".join(f"- step {n}" for n in range(5))
    assert found(f"Build the page:\n{brief}\n\nNever commit generated files.") == []
    assert found("Never commit generated files.") != []
    assert found(f"{brief}\n\nFrom now on, answer in German.") != []


RULES = [
    ("Start all attribute names with 'q_' from now on.", "Attribute names start with 'q_'."),
    ("I want you to end all your method names with '_n'.", "Method names end with '_n'."),
    (
        "Always include the string 'chx' in your function argument names.",
        "Function argument names include 'chx'.",
    ),
    (
        "Always include a single digit in class names.",
        "Class names include a single digit.",
    ),
    ("Going forward, use CamelCase for class names.", "Class names are written in CamelCase."),
    ("Always use docstrings in your methods.", "Use docstrings in all methods."),
    (
        "Please remember to add the '@timer' decorator to all functions.",
        "Add the '@timer' decorator to all functions.",
    ),
    ("Always import the 'gzip' module.", "Import the 'gzip' module, even where unused."),
]


@pytest.mark.parametrize(("text", "line"), RULES, ids=[row[0] for row in RULES])
def test_a_rule_for_code_to_come_is_one_line(text: str, line: str):
    (one,) = found(text)
    assert (one.type, one.line) == ("feedback", line)


def test_two_rules_in_a_sentence_are_two_and_a_pronoun_finds_its_names():
    both = found("Start attribute names with 's_' and function names with 'd_'.")
    assert [one.line for one in both] == [
        "Attribute names start with 's_'.",
        "Function names start with 'd_'.",
    ]
    (one,) = found("We have a rule for the naming of variables. Always start them with 'z_'.")
    assert one.line == "Variable names start with 'z_'."
    (one,) = found("From now on start method names with 'j_' instead of 'i_'.")
    assert one.line == "Method names start with 'j_'."


async def test_a_later_rule_gets_a_file_and_the_earlier_stays_as_it_was(talk: Talk):
    talk.say("From now on, start attribute names with 'q_'.")
    await talk.extract()
    before = talk.texts()
    talk.say("Actually, forget that. Going forward, start attribute names with 'j_'.")
    await talk.extract()
    first, second = talk.entries
    assert before == {first.key: first.text}
    assert first.name == second.name == "Attribute names: beginning"
    assert second.description == "Attribute names start with 'j_'."
    assert supersedes(second, first)


async def test_a_rule_said_again_writes_nothing(talk: Talk):
    talk.say("From now on, start attribute names with 'q_'.")
    await talk.extract()
    before = talk.texts()
    talk.say("Remember to always start attribute names with 'q_'.")
    await talk.extract()
    assert talk.texts() == before


async def test_a_manifest_of_a_hundred_thousand_is_read_and_gets_no_duplicate(talk: Talk):
    many = tuple(
        KnownMemory(f"m{n}.md", "feedback", f"Rule {n}", f"Step {n} comes before step {n + 1}")
        for n in range(100_000)
    )
    mine = KnownMemory("names.md", "feedback", "Names", "Attribute names start with 'q_'.")
    talk.say("From now on, start attribute names with 'q_'.")
    told = await talk.extract(replace(talk.task(), memories=(*many, mine)))
    assert told == NOTHING_TO_SAVE
