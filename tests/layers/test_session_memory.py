"""The notes as text, when they are due, and what they cover."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.layers import (
    TRUNCATED,
    due,
    frame,
    instruction,
    is_blank,
    last_covered,
    notes_within_budget,
    over_budget,
    own,
    rewritten,
    template,
)
from reverie.settings import Settings
from reverie.testing import FixedFlags, ScriptedModel, call
from reverie.transcript import (
    EMPTY,
    AssistantMessage,
    Attached,
    Block,
    Boundary,
    Entry,
    Failed,
    HeadSet,
    NotesTaken,
    Record,
    Replaced,
    Rewound,
    Sent,
    Stand,
    Started,
    UserMessage,
    View,
    apply,
    branch,
    estimate,
    fold_entries,
    sections,
    text_block,
)
from reverie.wire import render
from reverie.world import Capabilities, World
from tests.classic import DEFAULTS, world
from tests.layers.running import result

pytestmark = pytest.mark.spec("5")
SECTIONS = (
    "Session Title",
    "Current State",
    "Task specification",
    "Files and Functions",
    "Workflow",
    "Errors & Corrections",
    "Codebase and System Documentation",
    "Learnings",
    "Key results",
    "Worklog",
)


def noted(text: str, **bodies: str) -> str:
    """The template with bodies put below the headings; keys are first words."""
    for heading in SECTIONS:
        body = bodies.get(heading.split()[0])
        if body:
            section = next(s for s in sections(text) if s.name == heading)
            text = text.replace(section.text, section.heading + section.description + body + "\n\n")
    return text


# --- the text


def test_the_template_has_the_ten_sections_each_with_its_line():
    found = sections(template())
    assert tuple(s.name for s in found) == SECTIONS
    for section in found:
        assert section.description.startswith("_")
        assert section.description.rstrip().endswith("_")
        assert not section.body.strip()
    assert is_blank(template())
    assert is_blank("")
    assert is_blank(" \n")


@given(st.text(alphabet=st.sampled_from("# _*`~a\n\r\u2028 "), max_size=200))
def test_sections_joined_again_are_the_text(text: str):
    assert "".join(s.text for s in sections(text)) == text


def test_a_comment_in_a_code_block_is_no_heading():
    code = "```sh\n# install\nmake\n```\n"
    text = noted(template(), Workflow=code)
    assert tuple(s.name for s in sections(text)) == SECTIONS
    assert frame(text) == frame(template())
    left_open = noted(template(), Workflow="```sh\nmake\n")
    assert frame(left_open) == frame(template())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# Current State", "# Current state"),
        ("# Learnings\n", ""),
        ("_The parts of the system", "_Parts of the system"),
        ("# Worklog", "# Done\n\n# Worklog"),
        ("# Workflow", "## Workflow"),
    ],
)
def test_the_frame_tells_a_changed_heading_or_line(old: str, new: str):
    text = template()
    assert old in text
    assert frame(text.replace(old, new)) != frame(text)


def test_a_long_section_is_cut_at_a_line_end_with_the_mark():
    lines = "".join(f"- step {n} of many that were taken\n" for n in range(900))
    text = noted(template(), Worklog=lines, Current="All is well.")
    shown = notes_within_budget(text, DEFAULTS)
    assert shown.endswith(TRUNCATED)
    *kept, mark = shown.partition("# Worklog\n")[2].splitlines()
    assert mark == TRUNCATED
    assert kept == lines.splitlines()[: len(kept)]
    assert 1_950 <= estimate("\n".join(kept)) <= 2_000
    assert "# Current State\nAll is well.\n" in shown
    assert "_" not in shown.partition("# Worklog")[0]  # what sections are for is the writer's
    assert "# Learnings" not in shown


def test_all_sections_together_keep_to_their_budget_and_the_exact_ones_stay():
    long = "a fact that takes some room to write down\n" * 185
    text = noted(template(), **{s.split()[0]: long for s in SECTIONS})
    shown = notes_within_budget(text, DEFAULTS)
    assert estimate(shown) <= 12_000
    found = {s.name: s for s in sections(shown)}
    for name in ("Current State", "Errors & Corrections"):
        assert found[name].body.strip() == long.strip()
    assert all(TRUNCATED in found[n].body for n in ("Worklog", "Learnings", "Workflow"))


@pytest.mark.parametrize("text", ["word " * 40_000, "# a\nb\n" * 40_000, "é" * 90_000])
def test_notes_of_any_shape_keep_to_the_budget(text: str):
    shown = notes_within_budget(text, DEFAULTS)
    assert estimate(shown) <= 12_000 + estimate(TRUNCATED) + 1
    assert TRUNCATED in shown


def test_variables_are_filled_in_once_and_nothing_in_the_notes_is_one():
    strange = noted(template(), Learnings=r"{{notesPath}} {{currentNotes}} $1 \1 \g<0>")
    text = instruction("At {{notesPath}}: {{currentNotes}}", strange, "/n.md", DEFAULTS)
    assert text.startswith(f"At /n.md: {strange}".rstrip())
    assert text.count("/n.md") == 1
    assert "{{other}}" in instruction("{{other}} {{notesPath}}", "", "/n", DEFAULTS)


def test_a_prompt_without_variables_is_told_what_it_needs():
    text = instruction("Note it all.", "# A\n", "/x/notes.md", DEFAULTS)
    assert text.startswith("Note it all.")
    assert "/x/notes.md" in text
    assert "<notes>\n# A\n" in text


def test_the_prompt_names_every_section_over_its_limit_with_its_size():
    text = noted(template(), Worklog="w" * 12_000, Workflow="f" * 8_400)
    told = instruction(own("session_memory"), text, "/n.md", DEFAULTS)
    assert "- Worklog: 3,000 tokens" in told
    assert "- Workflow: 2,100 tokens" in told
    assert "- Learnings" not in told
    assert "in all:" not in told
    assert "Current State and Errors & Corrections stay exact" in told
    small = instruction(own("session_memory"), template(), "/n.md", DEFAULTS)
    assert "over their limit" not in small
    large = "\n".join(f"# S{n}\n{'x' * 7_000}" for n in range(8))
    assert over_budget(large, DEFAULTS) == [("the notes in all", estimate(large))]


def test_an_answer_in_words_becomes_edits_of_its_sections():
    text = noted(template(), Current="Old.", Worklog="- one")
    answer = (
        "Here:\n<notes>\n# Current State\nNew.\n\n# Worklog\n_Every step_\n- one\n- two\n\n"
        "# Learnings\n</notes>\n"
    )
    pairs = rewritten(text, answer)
    for old, new in pairs:
        assert text.count(old) == 1
        text = text.replace(old, new)
    assert len(pairs) == 2
    assert frame(text) == frame(template())
    assert "New.\n" in text
    assert "Old." not in text
    assert "- one\n- two" in text
    assert rewritten(text, "I changed nothing.") == []
    assert rewritten(text, "<notes>\n# Mine\nx\n</notes>") == [("", "# Mine\nx\n")]


# --- when they are due


class Talk:
    """A transcript in the making."""

    def __init__(self, *first: Record) -> None:
        self.view: View = EMPTY
        self.calls = 0
        for record in (Started("s", "/p", "/p", "0"), HeadSet("m"), *first):
            self.add(record)

    def add(self, record: Record) -> str:
        ident = f"e{len(self.view.entries)}"
        self.view = apply(self.view, Entry(ident, self.view.leaf, 1.0, record))
        return ident

    def user(self, tokens: int = 1) -> str:
        return self.add(UserMessage((text_block("u" * 4 * tokens),)))

    def answer(self, tokens: int = 1, calls: int = 0) -> str:
        request = render(self.view)
        self.add(Sent("main", self.view.leaf, request.parts(), request.marks))
        made: list[Block] = []
        for _ in range(calls):
            self.calls += 1
            made.append(call("B", f"t{self.calls}"))
        return self.add(AssistantMessage((text_block("a" * 4 * tokens), *made)))

    def results(self, tokens: int = 0) -> str:
        blocks = [result(c, "r" * 4 * tokens) for c in self.view.open_calls]
        return self.add(UserMessage(tuple(blocks), "tool"))

    def noted(self) -> None:
        self.add(NotesTaken(self.view.leaf, self.view.estimated))


EARLY = replace(DEFAULTS, notes_first_tokens=9_999)


def with_model(**parts: object) -> World:
    return world(**{"model": ScriptedModel([]), "settings": EARLY, **parts})


@pytest.mark.parametrize(
    ("settings", "window", "first"),
    [
        (DEFAULTS, 200_000, 83_500),  # half of the threshold of 167,000
        (DEFAULTS, 1_000_000, 483_500),
        (DEFAULTS, 20_000, 8_350),
        (EARLY, 200_000, 9_999),  # a number that somebody set
    ],
)
def test_the_first_notes_come_at_half_of_the_threshold(settings: Settings, window: int, first: int):
    head = HeadSet("m", '[{"type":"text","text":"%s"}]' % ("s" * 90_000), "[]", "[]")
    model = ScriptedModel([], capabilities=Capabilities(window=window))
    where = with_model(settings=settings, model=model)
    talk = Talk(head)
    talk.user(first - 4_000)
    talk.answer(3_999)
    assert not due(talk.view, where)
    talk.user(1)
    assert due(talk.view, where)


def test_instruction_files_and_attachments_are_no_messages():
    context = '[{"type":"text","text":"%s"}]' % ("c" * 90_000)
    talk = Talk(HeadSet("m", context=context))
    talk.user(100)
    talk.add(Attached((text_block("m" * 90_000),), "memory"))
    talk.answer(100)
    assert not due(talk.view, with_model())


def grown(tokens: int, calls: int, *, pause: bool) -> Talk:
    talk = Talk()
    talk.user(6_000)
    talk.answer(6_000)
    talk.noted()
    size = talk.view.estimated
    talk.user()
    for _ in range(calls):
        talk.answer(1, calls=1)
        talk.results()
    talk.answer(1, calls=0 if pause else 1)
    talk.user(tokens - (talk.view.estimated - size))
    return talk


@pytest.mark.parametrize(
    ("tokens", "calls", "pause", "expected"),
    [
        (5_000, 0, True, True),
        (4_999, 0, True, False),
        (4_999, 9, True, False),  # the token condition always holds
        (5_000, 2, False, True),
        (4_999, 2, False, False),
        (5_000, 1, False, False),
        (90_000, 1, False, False),
    ],
)
def test_later_ones_need_growth_and_calls_or_a_pause(
    tokens: int, calls: int, pause: bool, expected: bool
):
    assert due(grown(tokens, calls, pause=pause).view, with_model()) is expected


def test_three_calls_since_the_update_are_enough_two_are_not():
    for calls, expected in ((2, False), (3, True)):
        talk = Talk()
        talk.user(12_000)
        talk.answer(1, calls=3)  # made before the update: they do not count
        talk.noted()
        talk.results(6_000)
        talk.answer(1, calls=calls)
        assert due(talk.view, with_model()) is expected


def test_after_a_compaction_the_new_count_is_the_baseline():
    talk = Talk()
    first = talk.user(40_000)
    last = talk.answer(40_000)
    talk.noted()
    talk.user(9_000)
    kept = talk.answer(9_000)
    assert due(talk.view, with_model())
    stand = (Stand("user", (text_block("short"),)),)
    talk.add(Replaced(first, last, stand, "full", boundary=Boundary()))
    talk.add(Attached((text_block("f" * 80_000),), "file"))  # restored
    assert kept
    talk.user(2_000)
    talk.answer(2_999)
    assert not due(talk.view, with_model())
    talk.user(1)
    assert due(talk.view, with_model())


def test_a_late_update_does_not_hold_up_the_next():
    """It began before a compaction, when the conversation was long, and was recorded after."""
    talk = Talk()
    first = talk.user(80_000)
    last = talk.answer(80_000)
    stand = (Stand("user", (text_block("short"),)),)
    talk.add(Replaced(first, last, stand, "full", boundary=Boundary()))
    talk.add(NotesTaken(last, 160_000))
    talk.user(3_000)
    talk.answer(2_000)
    assert due(talk.view, with_model())


def test_a_failed_update_is_due_again_and_three_in_a_row_wait_for_growth():
    talk = Talk()
    talk.user(6_000)
    talk.answer(6_000)
    for _ in range(2):
        talk.add(Failed("session_memory", "overloaded"))
        assert due(talk.view, with_model())
    talk.add(Failed("session_memory", "overloaded"))
    assert not due(talk.view, with_model())
    talk.user(2_000)
    talk.answer(3_000)
    assert due(talk.view, with_model())
    talk.add(Failed("session_memory", "overloaded"))
    assert not due(talk.view, with_model())
    talk.noted()
    talk.user(2_000)
    talk.answer(3_000)
    assert due(talk.view, with_model())


def test_who_switches_notes_off():
    talk = Talk()
    talk.user(6_000)
    talk.answer(6_000)
    view = talk.view
    assert due(view, with_model())
    assert not due(view, world())  # nobody could write them
    for name in ("auto_compact_enabled", "simple"):
        off = replace(EARLY, **{name: name == "simple"})
        assert not due(view, with_model(settings=off))
    assert not due(view, with_model(flags=FixedFlags({"session_memory": False})))
    collapse = replace(EARLY, context_policy="collapse")
    assert not due(view, with_model(settings=collapse))  # no summary will read them
    assert due(view, with_model(settings=collapse, flags=FixedFlags({"context_collapse": False})))
    child = branch(view, Entry("x", "", 1.0, Started("s", "/p", "/p", "0", "agent:explore", "a")))
    assert not due(child, with_model())
    other = replace(talk.view.entries[0], record=Started("s", "/p", "/p", "0", "agent:explore"))
    assert not due(fold_entries([other, *talk.view.entries[1:]]), with_model())


def test_numbers_come_from_the_flag_and_shrink_with_a_small_window():
    talk = Talk()
    talk.user(1_000)
    talk.answer(1_000)
    assert not due(talk.view, with_model())
    flags = FixedFlags({"session_memory_config": {"notes_first_tokens": 2_000}})
    assert due(talk.view, with_model(flags=flags))
    assert due(talk.view, with_model(learned_window=40_000))
    assert not due(talk.view, with_model(learned_window=42_000))


# --- what they cover


def test_nothing_is_covered_by_notes_of_a_branch_that_was_left():
    talk = Talk()
    first = talk.user(10)
    talk.answer(10)
    talk.noted()
    assert last_covered(talk.view) == 1
    rewound = Entry("r", first, 1.0, Rewound())
    talk.view = apply(talk.view, rewound)
    talk.answer(10)
    assert last_covered(talk.view) == -1


def test_a_summary_that_knows_more_than_the_notes_is_not_covered():
    talk = Talk()
    first = talk.user(10)
    middle = talk.answer(10)
    talk.noted()
    talk.user(10)
    last = talk.answer(10)
    stand = (Stand("user", (text_block("short"),)),)
    sealed = Talk()
    sealed.view = talk.view
    sealed.add(Replaced(first, middle, stand, "collapse"))
    assert last_covered(sealed.view) == 0
    talk.add(Replaced(first, last, stand, "full", boundary=Boundary()))
    assert last_covered(talk.view) == -1
    talk.noted()
    assert last_covered(talk.view) == 0
