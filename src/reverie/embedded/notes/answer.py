"""The embedded model's session notes: what was said since the last ones, sorted into sections.

It answers with Edit calls, one a section, each of which leaves the heading and the line below
it as they are. What a section is for is told by its heading, so that a template of the user's
own works too; where none is known, the last section takes it all. Lines that stand already
stay, newer ones on the same thing take their place, and where a section is over its budget the
oldest go first. Everything is quoted or counted, and the same for the same request.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from reverie.embedded import history as past
from reverie.embedded.notes.lines import EXACT, Told, everything, fitted, lines_for, purpose
from reverie.transcript.audit.parts import Part, parts
from reverie.transcript.blocks import Block, estimate, text_block
from reverie.transcript.messages import Message
from reverie.transcript.sections import NotesSection, sections
from reverie.transcript.tasks import NotesTask
from reverie.wire.request import Request

EDIT = "Edit"
SHRINK = 3 / 4  # of a section's size, at each step of making the whole fit
STEPS = 300
DONE = "The notes are up to date."
FAILED = "Some of the edits could not be made; the next update starts again."
NOTHING = "There is nothing new to note."


def answer(request: Request) -> Sequence[Block]:
    """Edits of the notes; once their results are there, a word to end with."""
    task = request.task if isinstance(request.task, NotesTask) else NotesTask()
    ended = _ended(request)
    if ended:
        return [text_block(ended)]
    standing = sections(task.notes)
    changed = updated(standing, _told(request, task), task)
    used = {call.id for call in past.read(request).calls}
    edits = [
        past.call_block(
            request,
            used,
            EDIT,
            {"file_path": task.path, "old_string": old.text, "new_string": new.text},
        )
        for old, new in zip(standing, changed, strict=True)
        if old.text != new.text and old.text and task.notes.count(old.text) == 1
    ]
    return edits or [text_block(NOTHING)]


def _ended(request: Request) -> str:
    """What to end with, where the request ends in results and no new instruction."""
    last = request.at(request.count - 1) if request.count else None
    if last is None or any(p.block.type != "tool_result" for p in last.pieces):
        return ""
    failed = any(p.block.value.get("is_error") is True for p in last.pieces)
    return FAILED if failed else DONE


def _told(request: Request, task: NotesTask) -> Told:
    """The conversation without the instruction at its end, and what of it is new."""
    kept: list[Message] = []
    for message in request.messages():
        pieces = tuple(p for p in message.pieces if p.source != request.last)
        if pieces:
            kept.append(Message(message.role, pieces, None))
    every = parts(kept)
    return Told(every, _since(every, task.since))


def _since(every: Sequence[Part], since: str) -> list[Part]:
    places = [n for n, part in enumerate(every) if part.source == since]
    return list(every[places[-1] + 1 :] if places else every)


# --- what the sections will hold


def updated(page: Sequence[NotesSection], told: Told, task: NotesTask) -> list[NotesSection]:
    """The sections with what is new, within their budgets."""
    known = [purpose(section) for section in page]
    bodies: list[list[str]] = []
    for n, (section, role) in enumerate(zip(page, known, strict=True)):
        if role:
            lines = lines_for(role, section.lines, told, task.section_tokens)
        elif not any(known) and n == len(page) - 1:
            lines = [*section.lines, *everything(told)]
        else:
            lines = section.lines
        bodies.append(fitted(lines, task.section_tokens, role))
    _fit_all(page, known, bodies, task.total_tokens)
    return [_with(section, lines) for section, lines in zip(page, bodies, strict=True)]


def _with(section: NotesSection, lines: Sequence[str]) -> NotesSection:
    """A section with other lines; one that holds the same stays as it is, to the byte."""
    if list(lines) == section.lines:
        return section
    return replace(section, body=section.spaced("\n".join(lines)))


def _fit_all(
    page: Sequence[NotesSection], known: Sequence[str], bodies: list[list[str]], total: int
) -> None:
    """Make the largest sections shorter until all fit; what must stay exact only once there
    is nothing else to shorten."""
    for _ in range(STEPS):
        whole = [_with(s, lines).text for s, lines in zip(page, bodies, strict=True)]
        if estimate("".join(whole)) <= total:
            return
        long = [n for n, lines in enumerate(bodies) if len(lines) > 1]
        free = [n for n in long if known[n] not in EXACT] or long
        if not free:
            return
        largest = max(free, key=lambda n: estimate("\n".join(bodies[n])))
        size = estimate("\n".join(bodies[largest]))
        bodies[largest] = fitted(bodies[largest], int(size * SHRINK), known[largest])
