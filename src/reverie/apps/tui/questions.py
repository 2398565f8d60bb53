"""The question for permission: everything that is asked for in a box, and a key for each answer."""

from __future__ import annotations

import os
from queue import SimpleQueue

from reverie.apps.tui.footer import Line, apply_key, box, wrap_lines
from reverie.text.format import plural
from reverie.text.safety import line
from reverie.toolbox.permission_rules import (
    ADDED,
    REMOVED,
    PromptRow,
    asked_for,
    diff,
    read_answer,
    visible,
)
from reverie.toolbox.permissions import PermissionAnswer, Question, reach

STYLES = {REMOVED: "class:red", ADDED: "class:green", "dim": "class:dim"}
WIDE = 100
FRAME = 6  # rows of a box that are not its body


def subject_of(question: Question) -> str:
    """What is asked about; a path in the project as the project has it."""
    return visible(question.subject.removeprefix(f"{os.getcwd()}/"))


class PermissionPanel:
    """Asks until there is an answer; `answers` gives it."""

    whole = False

    def __init__(self, question: Question) -> None:
        self.answers: SimpleQueue[PermissionAnswer] = SimpleQueue()
        self._question = question
        self._rows = diff(question.change) if question.change else asked_for(question)
        self._from = 0
        self._why: str | None = None  # what is typed behind a no
        self._pattern: str | None = None  # a rule of the person's own, as it is typed
        self._room = 1

    def lines(self, width: int, height: int) -> list[Line]:
        question = self._question
        inner = max(1, width - 4)
        body: list[Line] = [("", "")]
        for row in self._rows:
            body += [(STYLES.get(row.style, ""), part) for part in self._parts(row, inner)]
        self._room = max(1, height - FRAME)
        total = len(body)
        self._from = max(0, min(self._from, total - self._room))
        if total > self._room:
            body = body[self._from : self._from + self._room]
            told = f"{self._from + 1}-{self._from + len(body)} of {plural(total, 'line')}"
            body.append(("class:dim", f"{told}   ↑↓ pageup pagedown"))
        body += [("", "")]
        body += [("class:dim", row) for row in wrap_lines(self._explanation(), inner)]
        subject = line(subject_of(question), 400)
        return box(f"{question.tool} {subject}?", body, self._choices(width), width)

    def _parts(self, row: PromptRow, width: int) -> list[str]:
        return list(wrap_lines(row.text, width))

    def _explanation(self) -> str:
        change = self._question.change
        if self._pattern is not None:
            return self._told_pattern(self._pattern)
        rule = self._question.rule
        kept = f" s and p: {line(reach(rule, runs=self._question.runs), 120)}." if rule else ""
        if change is None:
            reason = self._question.reason
            return f"{reason[:1].upper()}{reason[1:]}.{kept}"
        signs = [row.style for row in self._rows]
        count = max(signs.count(REMOVED), signs.count(ADDED))
        return f"{plural(count, 'line')} would change. /undo takes turns back, not files.{kept}"

    def _told_pattern(self, pattern: str) -> str:
        answer = self._lasting(pattern)
        if answer is None or answer.rule is None:
            return "This pattern does not cover the command: begin as it does, end in ` *`."
        told = line(reach(answer.rule, runs=self._question.runs), 200)
        return f"Always in this project: {told}."

    def _lasting(self, pattern: str) -> PermissionAnswer | None:
        return read_answer(f"p {pattern}", self._question) if pattern.strip() else None

    def _choices(self, width: int) -> str:
        rule = self._question.rule
        if self._why is not None:
            return f"no, because: {self._why}▌   enter sends, esc goes back"
        if self._pattern is not None:
            return f"always: {self._pattern}▌   enter allows it, esc goes back"
        if rule is None:
            return "y yes   n no, say why   esc no"
        wide = width >= WIDE
        keys = ["y yes", "n no, and say why" if wide else "n no, say why"]
        keys.append("s always in this session" if wide else "s this session")
        keys.append("p always in this project" if wide else "p always here")
        keys += ["r by a pattern" if wide else "r pattern"] if self._question.runs else []
        return "   ".join([*keys, "esc no"])

    def press(self, key: str) -> None:
        if self._why is not None or self._pattern is not None:
            self._edit_text(key)
            return
        moves = {"up": -1, "down": 1, "pageup": -self._room, "pagedown": self._room}
        if key in moves:
            self._from = max(0, self._from + moves[key])
        elif key in ("escape", "c-d"):
            self.answers.put(PermissionAnswer(False))
        elif key == "n":
            self._why = ""
        elif key == "r" and self._question.runs and self._question.rule is not None:
            first = self._question.subject.split()[:1]
            self._pattern = f"{visible(first[0])} *" if first else ""
        elif answer := read_answer(key, self._question):
            self.answers.put(answer)

    def _edit_text(self, key: str) -> None:
        if key == "enter":
            self._send()
        elif key == "escape":
            self._why = self._pattern = None
        elif self._why is not None:
            self._why = apply_key(self._why, key)
        elif self._pattern is not None:
            self._pattern = apply_key(self._pattern, key)

    def _send(self) -> None:
        if self._why is not None:
            self.answers.put(PermissionAnswer(False, words=self._why.strip()))
        elif answer := self._lasting(self._pattern or ""):
            self.answers.put(answer)


class ConfirmPanel:
    """A question that may wait: yes, no, or later."""

    whole = False

    def __init__(self, question: str) -> None:
        self.answers: SimpleQueue[bool | str] = SimpleQueue()
        self._question = question

    def lines(self, width: int, height: int) -> list[Line]:
        rows = list(wrap_lines(visible(self._question), max(1, width - 4)))
        body: list[Line] = [("", row) for row in rows[: max(1, height - FRAME)]]
        return box("A question", body, "y yes   n no, and never ask again   esc later", width)

    def press(self, key: str) -> None:
        if key in ("y", "n", "escape", "enter", "c-d"):
            self.answers.put({"y": True, "n": False}.get(key, ""))
