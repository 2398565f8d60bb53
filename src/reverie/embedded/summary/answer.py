"""The embedded model's summary of a range of messages: quoted, counted, and within a budget.

Nine sections behind a short drafting block. The user's words stand as they were said; files,
commands and errors each carry the references by which `ReadBack` gives the calls whole; how the
state of the work came about is told by the first sentence of each answer; what room is left goes
to the names most likely to be needed. Each kind has a share of the budget,
and what one does not use the next may. Nothing is made up: where a section has nothing, it
says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from reverie.embedded.chat.lookup import terms
from reverie.embedded.history import clip
from reverie.embedded.summary.salience import (
    SAID_LAST,
    CommandRan,
    NamedFile,
    WorkDone,
    first_sentence,
    tried,
    work,
)
from reverie.embedded.summary.sheet import Sheet, user_lines
from reverie.transcript.audit.names import Name, ranked
from reverie.transcript.audit.parts import Part, parts
from reverie.transcript.audit.tasks import Open, open_tasks
from reverie.transcript.blocks import TEXT_BYTES, Block, text_block
from reverie.transcript.messages import Message, Piece
from reverie.transcript.names import reference
from reverie.transcript.tasks import SummaryTask
from reverie.wire.request import Request

LEAST = 500  # tokens a summary may have however short the range is
RANGE_SHARE = 2  # else at most this part of what it stands for
TARGET = 5_000  # tokens of all but the user's words, where more is allowed
NONE = "None seen."
_FRAME = re.compile(r"<(?=/?(?:analysis|summary)\b)", re.IGNORECASE)  # no quote closes the frame
ANALYSIS = "<analysis>\n{count} messages, {calls} calls, {files} files.\n</analysis>\n"
FRAME = "<summary>\n{text}\n</summary>"
# Shares of the budget. What is left over goes to names.
USER, NOW, ERRORS, FILES, CALLS, CLOSING = 0.40, 0.12, 0.06, 0.25, 0.12, 0.04
TOLD = 0.15  # how answers began; prose says what names cannot
REFERENCES = 0.20  # of calls that no line names; a few bytes each, and they reach everything
CLIP = 160
MINDED = 5  # lines quoted on what the user asked to be minded
LAST_CALLS = 4
BEFORE_THAT = "- Said before that, the newest first:"
SNIPPETS = 2
UNREACHED = 2.0  # a name that no reference reads back counts so much more


def answer(request: Request) -> Sequence[Block]:
    """The reply to a `SummaryTask`: one text, no call."""
    task = request.task if isinstance(request.task, SummaryTask) else SummaryTask()
    return [text_block(summary(in_range(request, task), task))]


def in_range(request: Request, task: SummaryTask) -> list[Part]:
    """The parts of the messages that the summary will stand for. The instruction that the
    request ends with is none of them."""
    pieces = [p for m in request.messages() for p in m.pieces]
    sources = [p.source for p in pieces]
    first = sources.index(task.first) if task.first in sources else 0
    last = len(sources)
    if task.last in sources:
        last -= sources[::-1].index(task.last)
    chosen = {id(p) for p in pieces[first:last] if task.last or p.source != request.last}
    kept = (_only(message, chosen) for message in request.messages())
    return parts(message for message in kept if message.pieces)


def _only(message: Message, chosen: set[int]) -> Message:
    pieces: tuple[Piece, ...] = tuple(p for p in message.pieces if id(p) in chosen)
    return Message(message.role, pieces, None)


def summary(found: Sequence[Part], task: SummaryTask) -> str:
    """The whole reply, at most `task.tokens` long."""
    done = work(found)
    tasks = open_tasks(found)
    analysis = ANALYSIS.format(
        count=len({p.at for p in found}), calls=len(done.calls), files=len(done.files)
    )
    limit = _limit(found, task) * TEXT_BYTES - len(analysis) - len(FRAME)
    sheet = Sheet(limit)
    sheet.put(6, user_lines(done, int(limit * USER)), USER)
    sheet.at_most(TARGET * TEXT_BYTES)
    room = min(limit, TARGET * TEXT_BYTES) / max(1, limit)  # of the budget, for all the rest
    _now(sheet, done, tasks, task, found, room)
    sheet.put(4, _errors(done), ERRORS * room)
    listed = _listed(sheet, done, room)
    sheet.put(5, _closing(done), CLOSING * room)
    _names(sheet, ranked(found), listed)
    sheet.put(5, _closing(done), 1.0)
    sheet.put(3, [_snippet(file) for file in done.files if file.snippet], 1.0)
    return analysis + FRAME.format(text=_FRAME.sub("&lt;", sheet.text(NONE)))


def _limit(found: Sequence[Part], task: SummaryTask) -> int:
    size = sum(len(part.text.encode("utf-8", "replace")) for part in found) // TEXT_BYTES
    return max(1, min(task.tokens, max(LEAST, size // RANGE_SHARE)))


# --- what is in hand


def _now(
    sheet: Sheet,
    done: WorkDone,
    tasks: Sequence[Open],
    task: SummaryTask,
    found: Sequence[Part],
    room: float,
) -> None:
    sheet.put(7, [f"- [{t.status}] {t.text}" for t in tasks], NOW / 2 * room)
    sheet.put(1, _requests(done, task), NOW / 2 * room)
    sheet.put(8, _current(done), NOW * room)
    sheet.put(8, _told(done), TOLD * room)
    sheet.put(9, _next(done, tasks), NOW / 3 * room)
    if task.instructions:
        sheet.put(1, _minded(found, task.instructions), NOW * room)


def _requests(done: WorkDone, task: SummaryTask) -> Iterator[str]:
    if task.dropped:
        yield f"- Left out of what was summarised: {task.dropped}"
    if task.instructions:
        yield f"- To be minded in this summary: {clip(task.instructions, CLIP * 2)}"
    asked = [*done.carried, *(p.text for p in done.user if not p.media)]
    if asked:
        yield f"- First asked: {clip(asked[0], CLIP)}"
    if len(asked) > 1:
        yield f"- Asked last: {clip(asked[-1], CLIP)}"


def _minded(found: Sequence[Part], instructions: str) -> list[str]:
    """The lines that have most of the words of the user's instructions."""
    wanted = terms(instructions)
    best: dict[str, int] = {}
    for part in found:
        if part.who in ("assistant", "user", "error"):
            for line in part.text.splitlines():
                low = line.lower()
                count = sum(term in low for term in wanted)
                if count:
                    best[clip(line, CLIP)] = count
    ordered = sorted(best, key=lambda line: -best[line])
    return [f"  - {line}" for line in ordered[:MINDED]]


def _current(done: WorkDone) -> Iterator[str]:
    for part in done.said[-1:]:
        yield f"{SAID_LAST}{clip(part.text, CLIP * 2)}"
    for met in done.errors[:1]:
        if not met.fixed and not met.line.lower().startswith("exit"):  # a code tells nothing
            yield f"- Last error, not mended: {clip(met.line, CLIP)} {reference(met.call)}"
    for call in done.calls[: -LAST_CALLS - 1 : -1]:
        yield f"- {tried(call)} {reference(call.call)}"


def _told(done: WorkDone) -> Iterator[str]:
    """How each answer before the last began, the newest first: what was done, and what came of
    it. What an older summary told so stands behind them."""
    before = (first_sentence(part.text) for part in reversed(done.said[:-1]))
    told = [f"  - {one}" for one in dict.fromkeys((*before, *done.state)) if one]
    yield from (BEFORE_THAT, *told) if told else ()


def _next(done: WorkDone, tasks: Sequence[Open]) -> Iterator[str]:
    if tasks:
        yield f"- {tasks[0].text}"
    elif done.user and (not done.said or done.said[-1].at < done.user[-1].at):
        yield f"- Answer the user: {clip(done.user[-1].text, CLIP)}"
    elif done.calls and done.said and done.said[-1].at <= done.calls[-1].at:
        yield f"- Go on from: {clip(done.said[-1].text, CLIP)}"


def _errors(done: WorkDone) -> Iterator[str]:
    for met in done.errors:
        came = met.ended or "not seen to go well since"
        yield f"- {met.tried}: {clip(met.line, CLIP)} — {came} {reference(met.call)}"


def _closing(done: WorkDone) -> list[str]:
    return [f"- {clip(part.text, CLIP)}" for part in reversed(done.closing[:-1])]


# --- files, commands, references


def _listed(sheet: Sheet, done: WorkDone, room: float) -> dict[str, str]:
    """Files with their calls, then other calls. Gives the line of each call's file."""
    lines = {file.path: _file_line(file) for file in done.files}
    placed = sheet.put(3, lines.values(), FILES * room)
    where: dict[str, str] = {}
    for file in done.files:
        if lines[file.path] in placed:
            where.update(dict.fromkeys(file.calls, lines[file.path]))
    sheet.put(3, [_ran_line(ran) for ran in (*done.commands,)], CALLS / 2 * room)
    sheet.put(3, [_ran_line(ran) for ran in done.others], CALLS / 2 * room)
    shown = sheet.references()
    left = [r for c in reversed(done.calls) if (r := reference(c.call)) not in shown]
    left += [r for r in done.references if r not in shown]
    sheet.put_words(3, "- Other calls:", left, REFERENCES * room)
    snippets = [f for f in done.files if f.snippet][:SNIPPETS]
    sheet.put(3, [_snippet(file) for file in snippets], CLOSING * room)
    return where


def _file_line(file: NamedFile) -> str:
    references = " ".join(reference(call) for call in reversed(file.calls))
    why = f": {file.why}" if file.why and file.edits else ""
    return f"- {file.path} ({file.touched}{why}) {references}"


def _ran_line(ran: CommandRan) -> str:
    times = f" {ran.times}×" if ran.times > 1 else ""
    ended = ", failed" if ran.failed else ""
    references = " ".join(reference(call) for call in reversed(ran.calls))
    tool = "" if ran.tool.lower() == "bash" else f"{ran.tool} "
    return f"- {tool}`{clip(ran.text, CLIP // 2)}`{times}{ended} {references}"


def _snippet(file: NamedFile) -> str:
    name = file.path.rpartition("/")[2]
    return f"- Put into {name}: `{clip(file.snippet, CLIP * 2)}`"


# --- names


def _names(sheet: Sheet, every: Iterable[Name], listed: dict[str, str]) -> None:
    """Names that are not said yet, each beside the file that gave it, as far as there is room."""
    said, shown = sheet.text(""), sheet.references()

    def need(name: Name) -> float:
        reached = any(reference(one) in shown for one in name.readers)
        return name.score if reached else name.score * UNREACHED

    for name in sorted(every, key=need, reverse=True):
        if sheet.is_full:
            return
        if name.text in said:
            continue
        line = next((listed[c] for c in reversed(name.readers) if c in listed), "")
        sheet.extend(line, name.text)
