"""The parts of the terminal app without a terminal: what is drawn, in how many columns, of what."""

from __future__ import annotations

import pytest

from reverie.apps.tui import (
    COLLAPSE,
    OPEN_LINES,
    CallLine,
    ConfirmPanel,
    FooterStatus,
    ListItem,
    ListPanel,
    MarkdownStream,
    PermissionPanel,
    apart,
    box,
    cut,
    footer_line,
    render_markdown,
    status_text,
    terminal_text,
    text_for_encoding,
    wide,
    wrap_lines,
)
from reverie.toolbox import PermissionAnswer, PermissionRule, ProposedEdit, Question
from reverie.wire import ToolCall
from tests.processes import loaded

pytestmark = pytest.mark.spec("18.terminal-app")
STATUS = FooterStatus(
    "claude-opus-5-5", 0.25, 117_710, "compaction", 0.44, "$0.42", "dream: gather"
)
EVIL = "a\x1b[31mred\x1b]0;title\x07\x9b2Jb\u202ec\u200bd\re"


def test_the_input_is_drawn_before_the_engine_is_loaded() -> None:
    names = loaded("import reverie.apps.cli.app, reverie.apps.cli.chat, reverie.apps.tui.terminal")
    heavy = {
        "rich",
        "anyio",
        "reverie.session",
        "reverie.agent",
        "reverie.store",
        "reverie.toolbox",
    }
    assert not names & heavy
    assert "prompt_toolkit" in names


def test_one_prompt_loads_nothing_of_the_terminal() -> None:
    names = loaded("import reverie.apps.cli.chat, reverie.apps.cli.chat")
    assert not {name for name in names if name.startswith("prompt_toolkit")}
    assert "reverie.apps.tui.terminal" not in names


@pytest.mark.parametrize("width", [10, 20, 30, 40, 60, 80, 120])
def test_a_footer_fits_and_gives_up_from_the_right(width: int) -> None:
    line = footer_line(STATUS, width)
    assert len(line) <= width
    assert ("ctx 25%" in line or "context 25%" in line) == (width >= 20)
    assert ("$0.42" in line) == (width >= 80)


def test_the_footer_in_words() -> None:
    words = status_text(STATUS)
    assert words.startswith("status: context 25 percent, 117,710 tokens until compaction, cache 44")
    assert "loading" in footer_line(FooterStatus(), 80)


def test_nothing_of_others_acts_on_the_terminal() -> None:
    for text in (terminal_text(EVIL), render_markdown(EVIL, 40, colour=False)):
        assert not {sign for sign in text if ord(sign) < 32 and sign != "\n"}
        assert not {"\x9b", "\u202e", "\u200b", "\x7f"} & set(text)
    assert "red" in terminal_text(EVIL)
    assert "U+200B" in terminal_text(EVIL)
    call = CallLine.of(ToolCall("c", f"Ba{EVIL}", '{"command":"x\\u001b[2J"}'), 0.0)
    call.end(EVIL, True, 1.0)
    for line in (call.head(60), *call.body(60)):
        assert "\x1b" not in line
        assert wide(line) <= 60


def test_blocks_are_over_at_an_empty_line_outside_a_fence() -> None:
    stream = MarkdownStream()
    assert stream.add("One ") == []
    assert stream.add("line.\n\n```py\na\n\nb") == ["One line.\n"]
    assert stream.rest() == "```py\na\n\nb"
    assert stream.add("\n```\nrest") == ["```py\na\n\nb\n```"]
    assert stream.end() == "rest"
    assert stream.rest() == ""


def test_a_table_too_wide_becomes_a_list() -> None:
    table = "| name | what it is for |\n|---|---|\n| a | something long to say |\n"
    assert "─" in render_markdown(table, 60, colour=False)
    narrow = render_markdown(table, 20, colour=False)
    assert "name: a" in narrow
    assert all(wide(line) <= 20 for line in narrow.split("\n"))


def test_boxes_are_as_wide_as_they_should_be() -> None:
    for width in (20, 80, 121):
        body = [("", "日本語" * 30), ("", "x" * 300), ("", "")]
        lines = box("A title that is long " * 9, body, "y yes   n no " * 12, width)
        assert {wide(text) for _, text in lines} == {width}
    assert wide(apart("left" * 30, "right", 40)) == 40
    assert cut("日本語", 4) == "日…"
    assert list(wrap_lines("one two three", 8)) == ["one two", "three"]


def test_signs_that_an_encoding_lacks_have_others_in_their_place() -> None:
    assert text_for_encoding("╭─ › … ●", "ascii") == "+- > ... *"
    assert text_for_encoding("╭─", "UTF-8") == "╭─"


def test_a_failed_call_tells_how_much_more_there_is() -> None:
    call = CallLine.of(ToolCall("c", "Bash", '{"command":"make"}'), 0.0)
    call.end("\n".join(map(str, range(40))), True, 0.3)
    assert call.head(60).startswith("▸ Bash make")
    assert call.head(60).endswith("failed  0.3 s")
    lines = call.body(60)
    assert len(lines) == OPEN_LINES + 1
    assert "28 lines more" in lines[-1].replace("… ", "") or "28 lines" in lines[-1]


def edits() -> PermissionPanel:
    rule = PermissionRule("Edit", "a.py")
    return PermissionPanel(
        Question("Edit", "a.py", "it edits", rule, {}, ProposedEdit(b"a\n", b"b\n"))
    )


def asked(*keys: str) -> PermissionAnswer:
    panel = edits()
    told = "\n".join(text for _, text in panel.lines(80, 24))
    assert "1 - a" in told
    assert "1 + b" in told
    for key in keys:
        panel.press(key)
    return panel.answers.get_nowait()


def test_each_key_of_a_question() -> None:
    assert asked("y") == PermissionAnswer(True)
    assert asked("s").remember == "session"
    assert asked("p").remember == "project"
    assert asked("escape") == PermissionAnswer(False)
    assert asked("x", "enter", "n", *"not so", "backspace", "enter").words == "not s"
    assert asked("n", "escape", "y").allow


def runs(*keys: str) -> tuple[str, PermissionPanel]:
    rule = PermissionRule("Bash", "git log -3")
    question = Question("Bash", "git log -3", "it runs a command", rule, {}, runs=True)
    panel = PermissionPanel(question)
    for key in keys:
        panel.press(key)
    return "\n".join(text for _, text in panel.lines(80, 24)), panel


def test_a_pattern_of_ones_own_says_what_it_lets_in() -> None:
    told, panel = runs("r")
    assert "always: git *" in told
    assert "every command that begins with `git`" in told.replace("│\n│ ", "")
    panel.press("enter")
    answer = panel.answers.get_nowait()
    assert (answer.allow, answer.remember, str(answer.rule)) == (True, "project", "Bash(git *)")
    told, panel = runs("r", *["backspace"] * 5, *"rm *", "enter")
    assert "does not cover the command" in told
    assert panel.answers.empty()
    panel.press("escape")
    panel.press("y")
    assert panel.answers.get_nowait() == PermissionAnswer(True)
    assert "r pattern" not in "".join(text for _, text in edits().lines(80, 24))


def test_a_line_that_was_ended_is_not_joined_to_the_next() -> None:
    assert render_markdown("1 one\n2 two", 40, colour=False) == "1 one\n2 two"


def test_the_footer_says_what_comes_first() -> None:
    sealed = FooterStatus("m", 0.03, 39_900, COLLAPSE)
    assert "39k until collapse" in footer_line(sealed, 80)
    assert "39,900 left until collapse" in footer_line(sealed, 120)
    assert "117k left" in footer_line(STATUS, 80)


def test_a_list_keeps_its_choice_and_gives_keys_on() -> None:
    panel = ListPanel("Tasks", "k kill", "nothing")
    assert "nothing" in "".join(text for _, text in panel.lines(40, 12))
    panel.fill([ListItem("a", "A"), ListItem("b", "B")])
    panel.press("down")
    assert panel.chosen == "b"
    panel.fill([ListItem("new", "N"), ListItem("a", "A"), ListItem("b", "B")])
    assert panel.chosen == "b"
    panel.press("k")
    assert [panel.wait(0.0), panel.wait(0.0)] == ["moved", "k"]
    assert all(wide(text) == 40 for _, text in panel.lines(40, 12))


def test_a_question_that_may_wait() -> None:
    for key, meant in (("y", True), ("n", False), ("escape", "")):
        panel = ConfirmPanel("May the rule \x1b[2J do more?")
        assert all(wide(text) == 60 for _, text in panel.lines(60, 20))
        panel.press("x")
        panel.press(key)
        assert panel.answers.get_nowait() == meant
