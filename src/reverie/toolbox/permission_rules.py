"""Permission rules read and kept, and the question a person is asked.

Rules in settings files: read from all of them, kept in the local one.

    {"permissions": {"allow": ["Bash(npm test)", "Edit(src/**)"], "deny": ["Read(.env)"]}}

A file that the repository may have brought may only deny. A rule that cannot be read is
said and left out; a file that cannot be read as JSON is never written over, and one that the
user has not approved is not added to: that would approve all of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import cast

from anyio import to_thread

from reverie.errors import StoreError
from reverie.settings.schema import parse_object
from reverie.settings.sources import SettingsFile, settings_files
from reverie.store import approvals
from reverie.store.approvals import LOCAL
from reverie.store.project import Project
from reverie.text.safety import clean, reveal
from reverie.toolbox.permissions import (
    OPEN_ENDS,
    PermissionAnswer,
    PermissionRule,
    Question,
    Verdict,
    covers_command,
)
from reverie.toolbox.tool import ProposedEdit
from reverie.transcript.blocks import dump

KEY = "permissions"
_VERDICTS: tuple[Verdict, ...] = ("deny", "ask", "allow")
_RULE = re.compile(r"([\w*.-]{1,128})(?:\((.{0,4000})\))?", re.DOTALL)


def parse_rule(text: str, verdict: Verdict) -> PermissionRule | None:
    """`Tool` or `Tool(pattern)`; None where it is neither."""
    found = _RULE.fullmatch(text.strip())
    return None if found is None else PermissionRule(found[1], found[2] or "", verdict)


def load_rules(project: Project) -> tuple[list[PermissionRule], list[str]]:
    """All rules that hold for a project, and what was wrong on the way."""
    rules: list[PermissionRule] = []
    problems: list[str] = []
    for file in settings_files(home=project.home, root=project.root):
        problems += [str(p) for p in file.problems if p.level == "error"]
        for rule in rules_in(file, problems):
            if rule.verdict == "deny" or file.origin.trusted:
                rules.append(rule)
            else:
                problems.append(f"{file.path}: {rule} is ignored: a repository may only deny")
    return rules, problems


def rules_in(file: SettingsFile, problems: list[str]) -> Iterator[PermissionRule]:
    """The rules that a file gives, whoever wrote it; what is wrong joins the problems."""
    given = file.value.get(KEY)
    if given is None:
        return
    if not isinstance(given, Mapping):
        problems.append(f"{file.path}: {KEY} is not an object")
        return
    lists = cast("Mapping[str, object]", given)
    for verdict in _VERDICTS:
        texts = lists.get(verdict, [])
        if not isinstance(texts, list):
            problems.append(f"{file.path}: {KEY}.{verdict} is not a list")
            continue
        for text in cast("list[object]", texts):
            rule = parse_rule(text, verdict) if isinstance(text, str) else None
            if rule is None:
                problems.append(f"{file.path}: {KEY}.{verdict} has a rule that cannot be read")
            else:
                yield rule


def with_rule(text: str, rule: PermissionRule, place: str = LOCAL) -> str:
    """The settings text with a rule more; everything else in it stays."""
    value, bad = parse_object(text or "{}", place)
    if bad:
        raise StoreError(f"the rule was not kept: {bad[0]}", where=place, do="Mend the file first")
    found = value.get(KEY)
    lists = dict(cast("Mapping[str, object]", found)) if isinstance(found, Mapping) else {}
    held = lists.get(rule.verdict)
    kept = list(cast("Sequence[object]", held)) if isinstance(held, list) else []
    if str(rule) not in kept:
        kept.append(str(rule))
    lists[rule.verdict] = kept
    return json.dumps({**value, KEY: lists}, indent=2, ensure_ascii=False) + "\n"


async def keep(project: Project, rule: PermissionRule) -> None:
    """Put a rule into the project's local settings, which are not committed, at the user's
    word; they are trusted from then on as they were before."""
    await to_thread.run_sync(_keep, project, rule)


def _keep(project: Project, rule: PermissionRule) -> None:
    refusal = "the rule holds for this session and was not kept"
    approvals.change(project, lambda text: with_rule(text, rule), refusal)


# --- The question for permission as a person reads it, and the answer as they type it.
#
# Everything that is asked for is there, line by line: the path or the command whole, a change of a
# file as a diff with its indentation, any other input as it is. Signs that a terminal would obey
# or hide are made visible. Nothing here prints or asks: that is the screen's.


AROUND = 3  # lines shown about a change
COMPARED = 4_000_000
"""Pairs of lines that are compared; where there are more, all the old goes, all the new comes."""
REMOVED, ADDED, BETWEEN = "red", "green", "dim"
NO_END = "  [no newline at the end]"


@dataclass(frozen=True, slots=True)
class PromptRow:
    """A line of what is asked for."""

    text: str
    style: str = ""


def asked_for(question: Question) -> list[PromptRow]:
    """Everything that permission is asked for."""
    rows = [PromptRow(visible(one)) for one in question.subject.split("\n")]
    if question.change is not None:
        return [*rows, *diff(question.change)]
    for key, value in (question.input or {}).items():
        text = value if isinstance(value, str) else dump(value)
        if text == question.subject or (key.endswith("path") and question.subject.endswith(text)):
            continue
        first, *more = text.split("\n")
        rows += [
            PromptRow(f"{key}: {visible(first)}"),
            *(PromptRow(f"  {visible(one)}") for one in more),
        ]
    return rows


def visible(text: str) -> str:
    """A line as it is, but for what a terminal would obey or hide."""
    return clean(reveal(text.removesuffix("\r")))


# --- a change of a file


def diff(change: ProposedEdit) -> list[PromptRow]:
    """What goes and what comes, with line numbers and some lines around; all of it."""
    before, after = _lines(change.before or b""), _lines(change.after)
    ends = "␍" if _differ(b"\r\n", change) else ""
    tab = "→   " if _differ(b"\t", change) else "    "
    if before == after:
        return [PromptRow("(nothing would change)", BETWEEN)]
    shared = min(len(before), len(after))
    head = next((n for n in range(shared) if before[n] != after[n]), shared)
    most = shared - head
    tail = next((n for n in range(most) if before[-1 - n] != after[-1 - n]), most)
    skipped = max(0, head - AROUND)
    old = before[skipped : len(before) - max(0, tail - AROUND)]
    new = after[skipped : len(after) - max(0, tail - AROUND)]
    width = len(str(skipped + max(len(old), len(new))))
    rows: list[PromptRow] = []
    for hunk in _hunks(old, new, head - skipped, min(tail, AROUND)):
        if rows:
            rows.append(PromptRow(" " * width + " …", BETWEEN))
        for kind, at, text in hunk:
            style = {"-": REMOVED, "+": ADDED}.get(kind, "")
            shown = visible(text).replace("\t", tab) + (ends if text.endswith("\r") else "")
            rows.append(PromptRow(f"{skipped + at + 1:>{width}} {kind} {shown}".rstrip(), style))
    return rows


def _differ(sign: bytes, change: ProposedEdit) -> bool:
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
