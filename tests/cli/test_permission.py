"""The question for permission: what is shown of it, what an answer means, what is kept."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.apps.cli import SHOWN, SHOWN_ROWS, LineScreen
from reverie.toolbox import (
    ADDED,
    BEYOND,
    REMOVED,
    PermissionAnswer,
    PermissionRule,
    PromptRow,
    ProposedEdit,
    Question,
    asked_for,
    diff,
    reach,
    read_answer,
)
from reverie.toolbox import permission_rules as permission

pytestmark = pytest.mark.spec("18.permission")
RULE = PermissionRule("Bash", "git log")
GIT = Question("Bash", "git log -5", "it runs a command", RULE, {}, runs=True)
ONCE = Question("Bash", "a && b", "it runs a command", None, {}, runs=True)


@pytest.mark.parametrize(
    ("said", "question", "answer"),
    [
        ("y", ONCE, PermissionAnswer(True)),
        ("YES", ONCE, PermissionAnswer(True)),
        ("n", GIT, PermissionAnswer(False)),
        ("n use git", GIT, PermissionAnswer(False, words="use git")),
        ("no, use git", GIT, PermissionAnswer(False, words="use git")),
        ("y but quietly", GIT, PermissionAnswer(True, words="but quietly")),
        ("s", GIT, PermissionAnswer(True, "session")),
        ("s", ONCE, None),
        ("p", GIT, PermissionAnswer(True, "project")),
        ("p", ONCE, None),
        ("", GIT, None),
        ("yeah", GIT, None),
        ("p git *", GIT, PermissionAnswer(True, "project", rule=PermissionRule("Bash", "git *"))),
        (
            "s git log:*",
            GIT,
            PermissionAnswer(True, "session", rule=PermissionRule("Bash", "git log:*")),
        ),
        ("p rm *", GIT, None),  # does not cover what is asked for
        ("p git", GIT, None),
        ("p *", GIT, None),
    ],
)
def test_only_a_clear_answer_counts(
    said: str, question: Question, answer: PermissionAnswer | None
) -> None:
    assert read_answer(said, question) == answer


def test_what_permission_is_asked_for_is_shown_whole() -> None:
    command = "echo a; " * 1_000 + "\n  rm -rf /"
    rows = asked_for(Question("Bash", command, "it runs a command", None, {"command": command}))
    assert "\n".join(row.text for row in rows) == command
    given = {"file_path": "a.py", "text": "\n".join("abc") + "\n\tindented", "all": True}
    rows = asked_for(Question("Note", "/p/a.py", "", PermissionRule("Note"), given))
    assert [row.text for row in rows] == [
        "/p/a.py", "text: a", "  b", "  c", "  \tindented", "all: true",
    ]  # fmt: skip


def test_what_a_terminal_would_obey_or_hide_is_made_visible() -> None:
    change = ProposedEdit(b"", "\x1b[31mx \u202eevil\u200b\n".encode())
    (row,) = diff(change)
    assert row.text == "1 + ⟦U+001B⟧[31mx ⟦U+202E⟧evil⟦U+200B⟧"


def test_a_change_is_shown_with_its_indentation() -> None:
    before = (
        "".join(f"line {n}\n" for n in range(1, 30)) + "def f(x):\n    if x:\n        return 1\n"
    )
    after = before.replace("        return 1", "        return 2").replace("line 2\n", "")
    assert diff(ProposedEdit(before.encode(), after.encode())) == [
        PromptRow(" 1   line 1"),
        PromptRow(" 2 - line 2", REMOVED),
        PromptRow(" 2   line 3"),
        PromptRow(" 3   line 4"),
        PromptRow(" 4   line 5"),
        PromptRow("   …", "dim"),
        PromptRow("28   line 29"),
        PromptRow("29   def f(x):"),
        PromptRow("30       if x:"),
        PromptRow("32 -         return 1", REMOVED),
        PromptRow("31 +         return 2", ADDED),
    ]
    assert diff(ProposedEdit(None, b"    new\n")) == [PromptRow("1 +     new", ADDED)]
    assert diff(ProposedEdit(b"a\n", b"a")) == [
        PromptRow("1 - a", REMOVED),
        PromptRow("1 + a  [no newline at the end]", ADDED),
    ]


def test_signs_that_cannot_be_seen_are_shown_where_they_are_the_change() -> None:
    assert diff(ProposedEdit(b"\tx\n", b"        x\n"))[0].text == "1 - →   x"
    assert diff(ProposedEdit(b"x\r\n", b"x\n"))[0].text == "1 - x␍"
    assert diff(ProposedEdit(b"\tx\r\n", b"\ty\r\n"))[1].text == "1 +     y"


LINES = st.lists(st.sampled_from(["", "a", "  b", "c"]), max_size=12)


@given(LINES, LINES, st.sampled_from([0, permission.COMPARED]))
def test_a_diff_tells_everything(old: list[str], new: list[str], most: int) -> None:
    """The old file without what it shows to go is the new file without what it shows to come."""
    before, after = ("".join(f"{one}\n" for one in lines).encode() for lines in (old, new))
    compared, permission.COMPARED = permission.COMPARED, most
    try:
        rows = diff(ProposedEdit(before, after))
    finally:
        permission.COMPARED = compared
    if before == after:
        assert [row.text for row in rows] == ["(nothing would change)"]
        return
    removed, added = (
        {int(row.text.split()[0]) for row in rows if row.style == style}
        for style in (REMOVED, ADDED)
    )
    kept = [text for n, text in enumerate(old, 1) if n not in removed]
    assert kept == [text for n, text in enumerate(new, 1) if n not in added]
    for row in rows:
        if row.style:
            lines = {REMOVED: old, ADDED: new}.get(row.style, [""])
            number = int(row.text.split()[0]) if row.style != "dim" else 1
            assert row.text.rstrip().endswith(lines[number - 1]) or row.style == "dim"


def test_a_large_change_is_shown_in_no_time() -> None:
    lines = [f"{n}\n" for n in range(50_000)]
    change = ProposedEdit("".join(lines).encode(), "".join(reversed(lines)).encode())
    began = time.process_time()
    assert len(diff(change)) > 99_000
    assert time.process_time() - began < 5


# --- what a rule covers


@pytest.mark.parametrize(
    ("rule", "runs", "told"),
    [
        (PermissionRule("Bash", "ls -la"), True, "this command alone, word for word"),
        (PermissionRule("Edit", "src/a.py"), False, "Edit of src/a.py, and of nothing else"),
        (PermissionRule("Note"), False, "every call of Note"),
        (PermissionRule("Bash", "ls *"), True, "begins with `ls`, whatever follows"),
        (PermissionRule("Bash", "find *"), True, "`-exec` runs programs"),
        (PermissionRule("Bash", "git log:*"), True, "`--output`"),
        (PermissionRule("Bash", "/usr/bin/find . *"), True, "`-exec` runs programs"),
    ],
)
def test_what_always_covers_is_said(rule: PermissionRule, runs: bool, told: str) -> None:
    assert told in reach(rule, runs=runs)


def test_every_warning_is_a_sentence_that_fits() -> None:
    for program, told in BEYOND.items():
        said = reach(PermissionRule("Bash", f"{program} *"), runs=True)
        assert said.endswith(f"whatever follows: {told}")


# --- at the screen


def asked(
    question: Question,
    answers: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> tuple[PermissionAnswer, str]:
    given = iter(answers)
    monkeypatch.setattr("builtins.input", lambda prompt: print(prompt) or next(given))
    return LineScreen().ask(question), capsys.readouterr().out


def test_all_of_it_can_be_reached(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    after = "".join(f"    line {n}\n" for n in range(60)).encode()
    question = Question("Write", "/p/a.py", "it writes a file", RULE, {}, ProposedEdit(None, after))
    answer, said = asked(question, ["d", "n"], monkeypatch, capsys)
    assert answer == PermissionAnswer(False)
    first, _, rest = said.partition("d show all of it")
    assert f"[{61 - SHOWN_ROWS} more lines]" in first
    assert "line 59" not in first
    assert "60 +     line 59" in rest
    long = Question("Bash", "x" * (SHOWN + 7) + "; rm -rf /", "", None, {}, runs=True)
    _, said = asked(long, ["d", "y"], monkeypatch, capsys)
    assert "[17 more characters]" in said.partition("d show all")[0]
    assert "; rm -rf /" in said.replace("\n", "").partition("d show all")[2]


def test_a_short_question_offers_nothing_more(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _, said = asked(ONCE, ["y"], monkeypatch, capsys)
    assert "[d]" not in said
    assert "always" not in said


def test_what_is_kept_is_said_and_a_wider_rule_needs_a_second_word(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answer, said = asked(GIT, ["p"], monkeypatch, capsys)
    assert answer == PermissionAnswer(True, "project")
    assert "Bash(git log) in this project: this command alone, word for word" in said
    wide = PermissionAnswer(True, "session", rule=PermissionRule("Bash", "git *"))
    answer, said = asked(GIT, ["s git *", "n", "s git *", "y"], monkeypatch, capsys)
    assert answer == wide
    assert said.count("begins with `git`, whatever follows: `-c` and `--output`") == 2
