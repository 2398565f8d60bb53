"""Summaries in nine sections.

The embedded model's summary of a range of messages: quoted, counted, and within a budget.

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
from dataclasses import dataclass

from reverie.embedded.chat import terms
from reverie.embedded.history import clip
from reverie.embedded.salience import (
    QUOTE,
    SAID_LAST,
    ConversationFacts,
    ExecutedCommand,
    NamedFile,
    describe_attempt,
    first_sentence,
    work,
)
from reverie.text.format import plural
from reverie.transcript.audit import OpenTask, open_tasks
from reverie.transcript.blocks import TEXT_BYTES, Block, text_block
from reverie.transcript.mentions import (
    REFERENCE,
    NameUse,
    TextPart,
    names_in,
    parts,
    rank_names,
    reference,
)
from reverie.transcript.messages import Message, SentBlock
from reverie.transcript.tasks import SUMMARY, SummaryTask
from reverie.wire.request import Request

# Set on recorded compactions: names .879, reached .994, words .693 (`python -m bench run
# compactions`). TARGET 2,500: words .661, 10,000: .694. TOLD .05: words .651, .3: reached .977.
# UNREACHED 1: reached .991. FILES .12 to .5, REFERENCES .1 to .4, RANGE_SHARE 4: nothing moves.
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
UNREACHED = 2.0  # a name that no reference reads back counts so much more


def answer_summary(request: Request) -> Sequence[Block]:
    """The reply to a `SummaryTask`: one text, no call."""
    task = request.task if isinstance(request.task, SummaryTask) else SummaryTask()
    return [text_block(summary(in_range(request, task), task))]


def in_range(request: Request, task: SummaryTask) -> list[TextPart]:
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
    pieces: tuple[SentBlock, ...] = tuple(p for p in message.pieces if id(p) in chosen)
    return Message(message.role, pieces, None)


def summary(found: Sequence[TextPart], task: SummaryTask) -> str:
    """The whole reply, at most `task.tokens` long."""
    done = work(found)
    tasks = open_tasks(found)
    analysis = ANALYSIS.format(
        count=len({p.at for p in found}), calls=len(done.calls), files=len(done.files)
    )
    limit = _limit(found, task) * TEXT_BYTES - len(analysis) - len(FRAME)
    sheet = SummaryBuilder(limit)
    sheet.put(6, user_lines(done, int(limit * USER)), USER)
    sheet.at_most(TARGET * TEXT_BYTES)
    room = min(limit, TARGET * TEXT_BYTES) / max(1, limit)  # of the budget, for all the rest
    _now(sheet, done, tasks, task, found, room)
    sheet.put(4, _errors(done), ERRORS * room)
    listed = _list_items(sheet, done, room)
    sheet.put(5, _closing(done), CLOSING * room)
    _names(sheet, rank_names(found), listed)
    sheet.put(5, _closing(done), 1.0)
    return analysis + FRAME.format(text=_FRAME.sub("&lt;", sheet.text(NONE)))


def _limit(found: Sequence[TextPart], task: SummaryTask) -> int:
    size = sum(len(part.text.encode("utf-8", "replace")) for part in found) // TEXT_BYTES
    return max(1, min(task.tokens, max(LEAST, size // RANGE_SHARE)))


# --- what is in hand


def _now(
    sheet: SummaryBuilder,
    done: ConversationFacts,
    tasks: Sequence[OpenTask],
    task: SummaryTask,
    found: Sequence[TextPart],
    room: float,
) -> None:
    sheet.put(7, [f"- [{t.status}] {t.text}" for t in tasks], NOW / 2 * room)
    sheet.put(1, _requests(done, task), NOW / 2 * room)
    sheet.put(8, _current(done), NOW * room)
    sheet.put(8, _earlier_answers(done), TOLD * room)
    sheet.put(9, _next(done, tasks), NOW / 3 * room)
    if task.instructions:
        sheet.put(1, _matching_lines(found, task.instructions), NOW * room)


def _requests(done: ConversationFacts, task: SummaryTask) -> Iterator[str]:
    if task.dropped:
        yield f"- Left out of what was summarised: {task.dropped}"
    if task.instructions:
        yield f"- To be minded in this summary: {clip(task.instructions, CLIP * 2)}"
    asked = [*done.carried, *(p.text for p in done.user if not p.media)]
    if asked:
        yield f"- First asked: {clip(asked[0], CLIP)}"
    if len(asked) > 1:
        yield f"- Asked last: {clip(asked[-1], CLIP)}"


def _matching_lines(found: Sequence[TextPart], instructions: str) -> list[str]:
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


def _current(done: ConversationFacts) -> Iterator[str]:
    for part in done.said[-1:]:
        yield f"{SAID_LAST}{clip(part.text, CLIP * 2)}"
    for met in done.errors[:1]:
        if not met.fixed and not met.line.lower().startswith("exit"):  # a code tells nothing
            yield f"- Last error, not mended: {clip(met.line, CLIP)} {reference(met.call)}"
    for call in done.calls[: -LAST_CALLS - 1 : -1]:
        yield f"- {describe_attempt(call)} {reference(call.call)}"


def _earlier_answers(done: ConversationFacts) -> Iterator[str]:
    """How each answer before the last began, the newest first: what was done, and what came of
    it. What an older summary told so stands behind them."""
    before = (first_sentence(part.text) for part in reversed(done.said[:-1]))
    told = [f"  - {one}" for one in dict.fromkeys((*before, *done.state)) if one]
    yield from (BEFORE_THAT, *told) if told else ()


def _next(done: ConversationFacts, tasks: Sequence[OpenTask]) -> Iterator[str]:
    if tasks:
        yield f"- {tasks[0].text}"
    elif done.user and (not done.said or done.said[-1].at < done.user[-1].at):
        yield f"- Answer the user: {clip(done.user[-1].text, CLIP)}"
    elif done.calls and done.said and done.said[-1].at <= done.calls[-1].at:
        yield f"- Go on from: {clip(done.said[-1].text, CLIP)}"


def _errors(done: ConversationFacts) -> Iterator[str]:
    for met in done.errors:
        came = met.ended or "not seen to go well since"
        yield f"- {met.tried}: {clip(met.line, CLIP)} — {came} {reference(met.call)}"


def _closing(done: ConversationFacts) -> list[str]:
    return [f"- {clip(part.text, CLIP)}" for part in reversed(done.closing[:-1])]


# --- files, commands, references


def _list_items(sheet: SummaryBuilder, done: ConversationFacts, room: float) -> dict[str, str]:
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
    return where


def _file_line(file: NamedFile) -> str:
    references = " ".join(reference(call) for call in reversed(file.calls))
    why = f": {file.why}" if file.why and file.edits else ""
    return f"- {file.path} ({file.touched}{why}) {references}"


def _ran_line(ran: ExecutedCommand) -> str:
    times = f" {ran.times}×" if ran.times > 1 else ""
    ended = ", failed" if ran.failed else ""
    references = " ".join(reference(call) for call in reversed(ran.calls))
    tool = "" if ran.tool.lower() == "bash" else f"{ran.tool} "
    return f"- {tool}`{clip(ran.text, CLIP // 2)}`{times}{ended} {references}"


# --- names


def _names(sheet: SummaryBuilder, every: Iterable[NameUse], listed: dict[str, str]) -> None:
    """Names that are not said yet, each beside the file that gave it, as far as there is room."""
    said, shown = sheet.text(""), sheet.references()

    def need(name: NameUse) -> float:
        reached = any(reference(one) in shown for one in name.readers)
        return name.score if reached else name.score * UNREACHED

    for name in sorted(every, key=need, reverse=True):
        if sheet.is_full:
            return
        if name.text in said:
            continue
        line = next((listed[c] for c in reversed(name.readers) if c in listed), "")
        sheet.extend(line, name.text)


# --- A summary in the making: nine sections, the room that is left, and the user's words in them.
#
# Lines go in while they fit into the share they were given and into the whole; what is not used
# stays for what comes later. A name can be put behind a line that stands already.
#
# The user's words are verbatim, and the longest cut first where they are too many. Every message
# keeps its beginning and its end; of what is cut the names are kept. Where even that is too much,
# the oldest after the first are counted and left out. A cut is always said, with the reference by
# which the message can be read whole.


HEADINGS = tuple(f"## {n}. {title}" for n, title in enumerate(SUMMARY, 1))
NAMES = 2  # the section of names that no file gave
BEFORE_NAMES = "·"
SMALLEST = 12  # bytes of room below which nothing more is tried
_EMPTY = 12  # bytes of what stands in an empty section
SHORTEST = 160  # bytes a message keeps, at the least
START = 3 / 4  # of what a cut message keeps, the part that is its beginning
NAMES_SHARE = 1 / 4  # of what a cut message keeps goes to names in what was cut
CUT = "[… {count:,} characters left out{reference}{names}]"
LEFT_OUT = "[{count} of the user left out here]"


def size(line: str) -> int:
    return len(line.encode("utf-8", "replace")) + 1


class SummaryBuilder:
    """Sections by number, in a room of so many bytes."""

    def __init__(self, room: int) -> None:
        self.limit = room
        self.room = room - sum(size(heading) + _EMPTY for heading in HEADINGS)
        self.sections: dict[int, list[str]] = {n: [] for n in range(1, len(SUMMARY) + 1)}
        self.behind: dict[str, list[str]] = {}  # names, by the line they stand behind

    @property
    def is_full(self) -> bool:
        return self.room < SMALLEST

    def at_most(self, most: int) -> None:
        """From here on there is no more room than this."""
        self.room = min(self.room, most)

    def put(self, section: int, lines: Iterable[str], share: float) -> set[str]:
        """The lines that fit, in order; one that does not, or stands already, is passed over."""
        room = min(self.room, int(self.limit * share))
        placed: set[str] = set()
        for line in lines:
            cost = size(line)
            if cost <= room and line not in self.sections[section]:
                room -= cost
                self.room -= cost
                placed.add(line)
                self.sections[section].append(line)
        return placed

    def put_words(self, section: int, heading: str, words: Sequence[str], share: float) -> None:
        """One line of words, as many as fit."""
        room = min(self.room, int(self.limit * share)) - size(heading)
        shown: list[str] = []
        for word in words:
            room -= size(word)
            if room < 0:
                break
            shown.append(word)
        if shown:
            self.put(section, [" ".join([heading, *shown])], 1.0)

    def extend(self, line: str, name: str) -> None:
        """A name behind a line; without one, among the names of section 2."""
        cost = size(name) + (0 if line in self.behind else size(BEFORE_NAMES))
        if cost <= self.room:
            self.room -= cost
            self.behind.setdefault(line, []).append(name)

    def references(self) -> set[str]:
        every = (line for lines in self.sections.values() for line in lines)
        return {found for line in every for found in REFERENCE.findall(line)}

    def _whole(self, line: str) -> str:
        found = self.behind.get(line)
        return " ".join([line, BEFORE_NAMES, *found]) if found else line

    def text(self, nothing: str) -> str:
        out: list[str] = []
        for number, heading in enumerate(HEADINGS, 1):
            lines = [self._whole(line) for line in self.sections[number]]
            if number == NAMES and "" in self.behind:
                lines.append(" ".join(self.behind[""]))
            out += [heading, *(lines or [nothing])]
        return "\n".join(out)


# The user's words


@dataclass(frozen=True, slots=True)
class UserQuote:
    """A message of the user's, and the reference that reads it back, where there is one."""

    text: str
    reference: str = ""


def user_lines(done: ConversationFacts, room: int) -> list[str]:
    """All user messages, oldest first, within so many bytes: one line of text each."""
    said = [UserQuote(text.strip()) for text in done.carried]
    said += [UserQuote(p.text.strip(), reference(p.source)) for p in done.user]
    texts = list({words.text: words for words in said if words.text}.values())
    whole = [quote_lines(words.text) for words in texts]
    sizes = [size(text) for text in whole]
    if sum(sizes) <= room or not texts:
        return whole
    cap = largest_share(sizes, room)
    if cap < SHORTEST:
        return _fewer(texts, room)
    return [
        w if n <= cap else shorten_words(t, cap)
        for w, n, t in zip(whole, sizes, texts, strict=True)
    ]


def largest_share(sizes: Sequence[int], room: int) -> int:
    """The largest size such that all, each cut to it, fit."""
    left = room
    ordered = sorted(sizes)
    for n, one in enumerate(ordered):
        share = left // (len(ordered) - n)
        if one > share:
            return share
        left -= one
    return max(ordered, default=0)


def quote_lines(text: str) -> str:
    return "\n".join(f"{QUOTE}{line}".rstrip() for line in text.split("\n")) + "\n"


def shorten_words(words: UserQuote, cap: int) -> str:
    """A message cut to about `cap` bytes, its beginning and end kept."""
    text = words.text
    data = text.encode("utf-8", "replace")
    names_room = int(cap * NAMES_SHARE)
    room = max(0, cap - names_room - len(CUT) - text.count("\n", 0, cap) * len(QUOTE))
    start = data[: int(room * START)].decode("utf-8", "ignore")
    end = data[len(data) - (room - int(room * START)) :].decode("utf-8", "ignore")
    middle = text[len(start) : len(text) - len(end)]
    kept = f"{start}\n{end}"
    shown: list[str] = []
    for name in names_in(middle):
        names_room -= size(name)
        if names_room < 0:
            break
        if name not in kept:
            shown.append(name)
    told = "; names in them: " + " ".join(shown) if shown else ""
    known = f": {words.reference}" if words.reference else ""
    cut = CUT.format(count=len(middle), reference=known, names=told)
    return quote_lines(f"{start}\n{cut}\n{end}")


def _fewer(texts: Sequence[UserQuote], room: int) -> list[str]:
    """The first and the newest messages, cut; between them, how many are missing."""
    cut = [
        quote_lines(t.text) if size(t.text) < SHORTEST else shorten_words(t, SHORTEST)
        for t in texts
    ]
    room -= size(cut[0]) + size(LEFT_OUT) + 8
    newest: list[str] = []
    for text in reversed(cut[1:]):
        room -= size(text)
        if room < 0:
            break
        newest.append(text)
    gone = len(cut) - 1 - len(newest)
    between = [LEFT_OUT.format(count=plural(gone, "message"))] if gone else []
    return [cut[0], *between, *reversed(newest)]
