"""The question for permission as a person reads it, and the answer as they type it.

Everything that is asked for is there, line by line: the path or the command whole, a change of a
file as a diff with its indentation, any other input as it is. Signs that a terminal would obey or
hide are made visible. Nothing here prints or asks: that is the screen's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from reverie.text.terminal import clean
from reverie.text.untrusted import reveal
from reverie.tools.permissions import (
    OPEN_ENDS,
    PermissionAnswer,
    PermissionRule,
    Question,
    covers_command,
)
from reverie.tools.tool import FileChange
from reverie.transcript.blocks import dump

AROUND = 3  # lines shown about a change
COMPARED = 4_000_000
"""Pairs of lines that are compared; where there are more, all the old goes, all the new comes."""
REMOVED, ADDED, BETWEEN = "red", "green", "dim"
NO_END = "  [no newline at the end]"


@dataclass(frozen=True, slots=True)
class Row:
    """A line of what is asked for."""

    text: str
    style: str = ""


def asked_for(question: Question) -> list[Row]:
    """Everything that permission is asked for."""
    rows = [Row(visible(one)) for one in question.subject.split("\n")]
    if question.change is not None:
        return [*rows, *diff(question.change)]
    for key, value in (question.input or {}).items():
        text = value if isinstance(value, str) else dump(value)
        if text == question.subject or (key.endswith("path") and question.subject.endswith(text)):
            continue
        first, *more = text.split("\n")
        rows += [Row(f"{key}: {visible(first)}"), *(Row(f"  {visible(one)}") for one in more)]
    return rows


def visible(text: str) -> str:
    """A line as it is, but for what a terminal would obey or hide."""
    return clean(reveal(text.removesuffix("\r")))


# --- a change of a file


def diff(change: FileChange) -> list[Row]:
    """What goes and what comes, with line numbers and some lines around; all of it."""
    before, after = _lines(change.before or b""), _lines(change.after)
    ends = "␍" if _differ(b"\r\n", change) else ""
    tab = "→   " if _differ(b"\t", change) else "    "
    if before == after:
        return [Row("(nothing would change)", BETWEEN)]
    shared = min(len(before), len(after))
    head = next((n for n in range(shared) if before[n] != after[n]), shared)
    most = shared - head
    tail = next((n for n in range(most) if before[-1 - n] != after[-1 - n]), most)
    skipped = max(0, head - AROUND)
    old = before[skipped : len(before) - max(0, tail - AROUND)]
    new = after[skipped : len(after) - max(0, tail - AROUND)]
    width = len(str(skipped + max(len(old), len(new))))
    rows: list[Row] = []
    for hunk in _hunks(old, new, head - skipped, min(tail, AROUND)):
        if rows:
            rows.append(Row(" " * width + " …", BETWEEN))
        for kind, at, text in hunk:
            style = {"-": REMOVED, "+": ADDED}.get(kind, "")
            shown = visible(text).replace("\t", tab) + (ends if text.endswith("\r") else "")
            rows.append(Row(f"{skipped + at + 1:>{width}} {kind} {shown}".rstrip(), style))
    return rows


def _differ(sign: bytes, change: FileChange) -> bool:
    """Whether a sign that cannot be seen is on one side alone."""
    return change.before is not None and (sign in change.before) != (sign in change.after)


def _lines(data: bytes) -> list[str]:
    text = data.decode("utf-8", "replace")
    lines = text.split("\n")
    return lines[:-1] if not lines[-1] else [*lines[:-1], lines[-1] + NO_END]


def _hunks(
    old: Sequence[str], new: Sequence[str], head: int, tail: int
) -> Iterator[list[tuple[str, int, str]]]:
    """Stretches of a change: a sign, the line's place in its file, the line."""
    if len(old) * len(new) > COMPARED:
        ends = (len(old) - tail, len(new) - tail)
        groups = [
            [
                ("equal", 0, head, 0, head),
                ("replace", head, ends[0], head, ends[1]),
                ("equal", ends[0], len(old), ends[1], len(new)),
            ]
        ]
    else:
        groups = SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(AROUND)
    for group in groups:
        hunk: list[tuple[str, int, str]] = []
        for kind, a, b, c, d in group:
            if kind == "equal":
                hunk += [(" ", c + n, text) for n, text in enumerate(new[c:d])]
                continue
            hunk += [("-", a + n, text) for n, text in enumerate(old[a:b])]
            hunk += [("+", c + n, text) for n, text in enumerate(new[c:d])]
        yield hunk


# --- the answer


def read_answer(said: str, question: Question) -> PermissionAnswer | None:
    """What a person meant; None where that is not clear. Words behind a yes or a no are the
    person's own, for the model; behind an `always` they are a pattern of the person's own."""
    choice, _, words = said.partition(" ")
    words = words.strip()
    match choice.lower().rstrip(",.;:"):
        case "y" | "yes":
            return PermissionAnswer(True, words=words)
        case "n" | "no":
            return PermissionAnswer(False, words=words)
        case "s" | "session" if question.rule is not None:
            return _lasting("session", words, question)
        case "p" | "project" if question.rule is not None:
            return _lasting("project", words, question)
        case _:
            return None


def _lasting(remember: str, pattern: str, question: Question) -> PermissionAnswer | None:
    kept = "session" if remember == "session" else "project"
    if not pattern:
        return PermissionAnswer(True, kept)
    rule = PermissionRule(question.tool, pattern)
    fits = question.runs and pattern.endswith(OPEN_ENDS) and covers_command(rule, question.subject)
    return PermissionAnswer(True, kept, rule=rule) if fits else None
