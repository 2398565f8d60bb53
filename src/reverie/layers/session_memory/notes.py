"""The notes as text: what of them may never change, budgets, the prompt.

Headings and the italic lines below them are the frame that no update may change. Nothing
here reads the notes' file or decides when they are taken.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files

from reverie.settings.catalog import Settings
from reverie.transcript.blocks import TEXT_BYTES, estimate
from reverie.transcript.tasks import NotesSection, sections

KEY = "session-memory/summary.md"
TRUNCATED = "[... section truncated for length ...]"
_TITLE = "Session Title"
EXACT = ("Current State", "Errors & Corrections")  # not shortened to make room for others
_VARIABLE = re.compile(r"\{\{(currentNotes|notesPath|notesName)\}\}")


def frame(text: str) -> tuple[tuple[str, str], ...]:
    """Headings and description lines, in order: what an update may not change."""
    return tuple((s.heading.rstrip(), s.description.rstrip()) for s in sections(text) if s.heading)


def section_bodies(text: str) -> list[str]:
    """Return what the notes say below their headings; a title says nothing."""
    found = (s.body.strip() for s in sections(text) if s.name != _TITLE)
    return [body for body in found if body]


def is_blank(text: str) -> bool:
    """Whether nothing was noted yet: empty, or a template's frame with a title at most."""
    return not section_bodies(text)


# --- what is put into a context


def notes_within_budget(text: str, settings: Settings) -> str:
    """The notes for a compacted context: what was noted, each section within its budget,
    all of them within theirs. What the sections are for is told to their writer alone."""
    noted = [s for s in sections(text) if s.body.strip()]
    each = limit = settings.notes_section_tokens
    parts = _fit_sections(noted, limit, each)
    while sum(map(estimate, parts)) > settings.notes_total_tokens and limit > 1:
        limit = limit * 3 // 4
        parts = _fit_sections(noted, limit, each)
    whole, cut = _cut("\n\n".join(parts), settings.notes_total_tokens * TEXT_BYTES)
    return f"{whole}\n{TRUNCATED}" if cut else whole


def _fit_sections(noted: Sequence[NotesSection], tokens: int, exact: int) -> list[str]:
    out: list[str] = []
    for section in noted:
        body, cut = section.body.strip(), False
        if section.heading:  # a text without headings has the whole budget
            most = exact if section.name in EXACT else tokens
            body, cut = _cut(body, most * TEXT_BYTES)
        lines = (section.heading.strip(), body, TRUNCATED if cut else "")
        out.append("\n".join(line for line in lines if line))
    return out


def _cut(text: str, limit: int) -> tuple[str, bool]:
    """The first `limit` bytes, cut at a line end; and whether something is gone."""
    data = text.encode("utf-8", "replace")
    if len(data) <= limit:
        return text, False
    head = data[:limit].decode("utf-8", "ignore")
    return head[: max(0, head.rfind("\n"))].rstrip() or head, True


# --- the prompt


@lru_cache(maxsize=8)
def own(name: str) -> str:
    """A text of ours that lies with the layers' prompts."""
    return (files("reverie.layers") / "prompts" / f"{name}.md").read_text(encoding="utf-8")


def template() -> str:
    return own("session_memory_template")


def instruction(prompt: str, notes: str, path: str, settings: Settings) -> str:
    """What an update is told. Variables are filled in once: what looks like one in the
    notes stays as it is. A prompt that leaves one out is told its value at the end."""
    values = {
        "currentNotes": notes,
        "notesPath": path,
        "notesName": posixpath.basename(path),  # enough for Edit
    }
    parts = [_VARIABLE.sub(lambda found: values[found[1]], prompt).rstrip()]
    named = set(_VARIABLE.findall(prompt))
    if not named & {"notesPath", "notesName"}:
        parts.append(f"The notes are in {path}")
    if "currentNotes" not in named:
        parts.append(f"This is what the notes hold now:\n\n<notes>\n{notes}\n</notes>")
    parts.append(_budgets(notes, settings))
    return "\n\n".join(parts) + "\n"


def _budgets(notes: str, settings: Settings) -> str:
    each, in_all = settings.notes_section_tokens, settings.notes_total_tokens
    text = f"About {each:,} tokens a section, {in_all:,} in all."
    over = over_budget(notes, settings)
    if not over:
        return text
    lines = "\n".join(f"- {name}: {tokens:,} tokens" for name, tokens in over)
    return (
        f"{text} These are over their limit now:\n{lines}\n"
        "Make them fit in this update: drop what is of little weight, join what belongs together, "
        f"and shorten the oldest first. {' and '.join(EXACT)} stay exact."
    )


def over_budget(notes: str, settings: Settings) -> list[tuple[str, int]]:
    """Each section over its limit with its size, and all together where they are over theirs."""
    found = sections(notes)
    each, in_all = settings.notes_section_tokens, settings.notes_total_tokens
    over = [(s.name, s.tokens) for s in found if s.heading and s.tokens > each]
    total = estimate(notes)
    return [*over, ("the notes in all", total)] if total > in_all else over


IN_WORDS = """
You have no Edit tool here, so answer in words: each section that changes, with its heading line
exactly as it is and then all that the section shall hold, between a line <notes> and a line
</notes>. Leave out the sections that stay as they are, and call no tool.
"""
_ANSWER = re.compile(r"<notes>[ \t]*\r?\n(.*)</notes>", re.DOTALL)


def rewritten(notes: str, answer: str) -> list[tuple[str, str]]:
    """The sections of an answer in words, each as the text that stands and the text to come;
    nothing stands for a heading that the notes do not have."""
    found = _ANSWER.search(answer)
    known = {s.heading.rstrip(): s for s in sections(notes)}
    out: list[tuple[str, str]] = []
    for new in sections(found[1]) if found else ():
        old = known.get(new.heading.rstrip())
        body = new.body.strip()
        if old is not None and body and body != old.body.strip():
            kept = "".join(f"{line.rstrip()}\n" for line in (old.heading, old.description) if line)
            out.append((old.text, f"{kept}{body}\n\n"))
        elif old is None and new.heading:
            out.append(("", new.text))
    return out
