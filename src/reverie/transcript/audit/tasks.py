"""Which tasks of a conversation are still open, read from the calls that kept a list.

Lists are known by their shape, not by a tool's name: members with a status that are given
whole each time, or tasks made one by one and updated by number. Boxes that the assistant or
the user left unticked count where no tool keeps a list. Only what is written is told.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from reverie.light import dataclass
from reverie.transcript.audit.parts import Part
from reverie.transcript.blocks import Json, Object

DONE = frozenset(
    {"completed", "complete", "done", "cancelled", "canceled", "deleted", "closed", "skipped"}
)
WORDS = ("content", "subject", "step", "title", "text", "task", "description")
NUMBERS = ("taskId", "task_id", "id")
LONGEST = 300  # characters of one task
_NUMBER = re.compile(r"#(\d{1,9})")
_BOX = re.compile(r"(?m)^[ \t]{0,12}[-*+][ \t]+\[([ xX])\][ \t]+(.{3,300})$")


@dataclass(frozen=True, slots=True)
class Open:
    """One task on a list."""

    text: str
    status: str
    source: str
    calls: tuple[str, ...] = ()

    @property
    def is_done(self) -> bool:
        return self.status.lower() in DONE


def open_tasks(found: Sequence[Part]) -> list[Open]:
    """Tasks not done yet, those in hand first."""
    listed = {**_made(found), **_whole(found)}
    tasks = list(listed.values()) if listed else list(_boxes(found))
    left = [task for task in tasks if not task.is_done]
    return sorted(left, key=lambda task: task.status.lower() in ("pending", "open", ""))


def _whole(found: Sequence[Part]) -> dict[str, Open]:
    """The newest list that was given whole."""
    for part in reversed(found):
        if part.who == "call" and isinstance(part.input, dict):
            for value in part.input.values():
                tasks = list(_listed(value, part))
                if tasks:
                    return {f"list {n}": task for n, task in enumerate(tasks)}
    return {}


def _listed(value: Json, part: Part) -> Iterator[Open]:
    for member in value if isinstance(value, list) else ():
        if not isinstance(member, dict) or not isinstance(member.get("status"), str):
            return
        text = _words(member)
        if text:
            yield Open(text, str(member["status"]), part.source, (part.call,))


def _words(value: Object) -> str:
    texts = (value.get(key) for key in WORDS)
    found = next((t for t in texts if isinstance(t, str) and t.strip()), "")
    return " ".join(found.split())[:LONGEST]


def _made(found: Sequence[Part]) -> dict[str, Open]:
    """Tasks that were made one by one: a result names their number, later calls their status."""
    out: dict[str, Open] = {}
    asked: dict[str, Part] = {}
    for part in found:
        if part.who == "call":
            asked[part.call] = part
            number, status = _updated(part)
            if number in out:
                task = out[number]
                out[number] = replace(task, status=status, calls=(*task.calls, part.call))
        elif part.who == "result" and part.call in asked:
            made = asked[part.call]
            number = _NUMBER.search(part.text[:200]) if made.given("subject") else None
            if number and isinstance(made.input, dict):
                out[number[1]] = Open(_words(made.input), "pending", made.source, (made.call,))
    return out


def _updated(part: Part) -> tuple[str, str]:
    given = part.input if isinstance(part.input, dict) else {}
    number = next((str(given[key]) for key in NUMBERS if isinstance(given.get(key), str | int)), "")
    return (number, part.given("status")) if part.given("status") else ("", "")


def _boxes(found: Sequence[Part]) -> Iterator[Open]:
    """Boxes of the newest text that has any."""
    for part in reversed(found):
        if part.who in ("assistant", "user", "stand"):
            boxes = _BOX.findall(part.text)
            for mark, text in boxes:
                yield Open(text.strip(), "completed" if mark.strip() else "pending", part.source)
            if boxes:
                return
