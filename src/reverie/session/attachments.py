"""What joins the conversation beside what is said: a new date, skills, the plan.

Each is a pure function from what was announced already and what is there now to records
with the same bytes for the same state. A thing is announced once, and again only where it
changed or the announcement is no longer in the context. Nothing here reads a clock while a
request is rendered, follows a link out of the project, or lets a file close its own frame.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Protocol

from reverie.errors import NotFound
from reverie.light import dataclass
from reverie.settings import sources as git
from reverie.topics.frontmatter import parse_frontmatter
from reverie.transcript.blocks import text_block, text_of
from reverie.transcript.records import Attached
from reverie.transcript.view import View, head_blocks

DATE = "date"
SKILLS = "skills"
SKILL = "skill"
PLAN = "plan"
SKILLS_FOLDER = ".reverie/skills"
SKILLS_FOLDERS = (SKILLS_FOLDER, ".claude/skills")
"""Of two skills of one name, the first counts."""
SKILL_FILE = "SKILL.md"
PLAN_FILE = ".reverie/plan.md"
MAX_SKILLS = 200
MAX_NAME = 64
MAX_ABOUT = 200
MAX_FILE = 1024 * 1024
_TODAY = re.compile(r"^Today is (\d{4}-\d{2}-\d{2})\b", re.MULTILINE)
_NAME = re.compile(r"[\w][\w.-]*")
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass(frozen=True, slots=True)
class Skill:
    """A skill of the project: instructions that are read when they are needed."""

    name: str
    about: str
    path: Path
    shown: str  # the path as the model is told it

    @property
    def line(self) -> str:
        return f"- {self.name}: {self.about} ({self.shown})"


# --- what was announced


def attachment_texts(view: View, kind: str) -> Iterator[str]:
    """The texts of one kind that are in the context or wait to join it, oldest first."""
    for item in (*view.items, *view.waiting):
        if item.kind != "attached":
            continue
        entry = view.entries.find(item.id)
        record = entry.record if entry else None
        if isinstance(record, Attached) and record.kind == kind:
            yield "\n".join(p.block.text for p in item.pieces)


def build_attachment(kind: str, text: str) -> Attached:
    """Every attachment stands in one frame, so that nobody takes it for the user's words."""
    return Attached((text_block(_reminder(text)),), kind)


def _reminder(text: str) -> str:
    return frame_text("system-reminder", text)


def frame_text(tag: str, text: str, attributes: str = "") -> str:
    """A file's text in a frame that it cannot close itself."""
    inside = re.sub(rf"<(?=/?{tag}\b)", "&lt;", text, flags=re.IGNORECASE)
    return f"<{tag}{attributes}>\n{inside.strip()}\n</{tag}>"


# --- the date


def local_date(now: float) -> str:
    """The day of a moment, where this program runs."""
    return datetime.fromtimestamp(now, UTC).astimezone().strftime("%Y-%m-%d")


def date_line(day: str) -> str:
    """How a date is told, with its weekday; `date_change` finds it again by this form."""
    return f"Today is {day}, {_WEEKDAYS[date.fromisoformat(day).weekday()]}."


def told_date(view: View) -> str:
    """The newest date in the context, or "" where none was ever told."""
    told = "" if view.head is None else text_of([b.value for b in head_blocks(view.head.context)])
    for text in attachment_texts(view, DATE):
        told += f"\n{text}"
    days = _TODAY.findall(told)
    return str(days[-1]) if days else ""


def date_change(told: str, today: str) -> tuple[Attached, ...]:
    """One attachment when midnight has passed since the date was told."""
    if not told or told == today:
        return ()
    return (
        build_attachment(
            DATE, f"{date_line(today)} The date has changed since you were last told."
        ),
    )


# --- skills


def find_skills(root: Path) -> tuple[Skill, ...]:
    """The project's skills by name, Claude Code's own among them; files that cannot be used are
    left out."""
    found: dict[str, Skill] = {}
    for base in SKILLS_FOLDERS:
        for skill in _skills_in(root, base):
            if len(found) < MAX_SKILLS:
                found.setdefault(skill.name, skill)
    return tuple(found[name] for name in sorted(found))


def _skills_in(root: Path, base: str) -> Iterator[Skill]:
    try:
        names = sorted(os.listdir(root / base))[:MAX_SKILLS]
    except OSError:
        return
    for folder in names:
        path = root / base / folder / SKILL_FILE
        text = _inside(path, root / base)
        if text is None:
            continue
        fields = frontmatter(text)[0]
        name = fields.get("name") or folder
        if fields.get("disable-model-invocation", "").lower() == "true":
            continue  # for a person to call by name, in a program that has it
        if _NAME.fullmatch(name) and len(name) <= MAX_NAME:
            about = " ".join(fields.get("description", "").split())[:MAX_ABOUT]
            yield Skill(name, about or "(not described)", path, f"{base}/{folder}/{SKILL_FILE}")


def _inside(path: Path, base: Path) -> str | None:
    """A file's text, if it lies inside `base` by its real path and is a plain file."""
    real = os.path.realpath(path)
    if not real.startswith(os.path.realpath(base) + os.sep):
        return None
    text = git.small_text(Path(real), MAX_FILE)
    return None if text is None else text.encode("utf-8", "replace").decode("utf-8", "replace")


def frontmatter(text: str) -> tuple[dict[str, str], str]:
    """The `key: value` lines between two `---`, and the text behind them."""
    data = text.encode()
    found = parse_frontmatter(data)
    if not found.present:
        return {}, text
    fields = {one.names[0].lower(): one.value for one in found.fields if len(one.names) == 1}
    return fields, "\n".join(data[found.body :].decode().splitlines())


def skills_listed(before: Sequence[str], skills: Sequence[Skill]) -> tuple[Attached, ...]:
    """Skills that no earlier list has, in one attachment."""
    known = {line for text in before for line in text.splitlines()}
    fresh = [s.line for s in skills if s.line not in known]
    if not fresh:
        return ()
    head = "Skills of this project. Read a skill's file before you do what it is about:"
    return (build_attachment(SKILLS, "\n".join((head, *fresh))),)


def skill_invoked(skill: Skill, most: int) -> Attached:
    """The text of a skill that the user asked for, bounded and cut at a line end."""
    text = _inside(skill.path, skill.path.parent.parent)
    if text is None:
        raise NotFound("a skill's file cannot be read", where=str(skill.path))
    body = truncate_text(frontmatter(text)[1], most)
    return build_attachment(SKILL, frame_text("skill", body, f' name="{skill.name}"'))


def truncate_text(text: str, most: int) -> str:
    """The first `most` bytes, cut at a line end, and a note where that is not all."""
    data = text.encode()
    if len(data) <= most:
        return text
    head = data[:most].decode("utf-8", "ignore")
    line = head.rfind("\n")
    return f"{head[:line] if line > 0 else head}\n[cut at {most:,} bytes of {len(data):,}]"


# --- the plan


def plan_changed(before: Sequence[str], root: Path, most: int) -> tuple[Attached, ...]:
    """The project's plan where it is new or differs from the one last attached."""
    text = _inside(root / PLAN_FILE, root)
    if text is None or not text.strip():
        return ()
    plan = frame_text("plan", truncate_text(text, most), f' file="{PLAN_FILE}"')
    return () if before and before[-1] == _reminder(plan) else (build_attachment(PLAN, plan),)


# --- all of them


class AttachmentSource(Protocol):
    """Something else that has to be told: once, and again where the context lost it."""

    def at_turn(self, view: View) -> Sequence[Attached]:
        """What the context should hold and does not."""
        ...

    def at_round(self) -> Sequence[Attached]:
        """What is new since the last round."""
        ...


class Attachments:
    """What a session attaches by itself, and the date it last told.

    `at_turn` looks through the context once a turn; `at_round` costs the same however
    long the conversation is.
    """

    def __init__(
        self, root: Path, *, bytes_each: int, sources: Sequence[AttachmentSource] = ()
    ) -> None:
        self.root = root
        self.sources = tuple(sources)
        self._bytes = bytes_each
        self._told = ""

    def at_turn(self, view: View, now: float) -> tuple[Attached, ...]:
        self._told = told_date(view)
        return (
            *self.at_round(now),
            *skills_listed(list(attachment_texts(view, SKILLS)), find_skills(self.root)),
            *plan_changed(list(attachment_texts(view, PLAN)), self.root, self._bytes),
            *(one for source in self.sources for one in source.at_turn(view)),
        )

    def at_round(self, now: float) -> tuple[Attached, ...]:
        today = local_date(now)
        changed = date_change(self._told, today)
        if changed:
            self._told = today
        return (*changed, *(one for source in self.sources for one in source.at_round()))

    def invoke(self, name: str) -> Attached:
        """A skill's text, for a user who asked for it by name."""
        for skill in find_skills(self.root):
            if skill.name == name:
                return skill_invoked(skill, self._bytes)
        known = ", ".join(s.name for s in find_skills(self.root)) or "none"
        raise NotFound("there is no such skill", where=name[:80], do=f"There are: {known}")
