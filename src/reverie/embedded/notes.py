"""Session notes, section by section.

The embedded model's session notes: what was said since the last ones, sorted into sections.

It answers with Edit calls, one a section, each of which leaves the heading and the line below
it as they are. What a section is for is told by its heading, so that a template of the user's
own works too; where none is known, the last section takes it all. Lines that stand already
stay, newer ones on the same thing take their place, and where a section is over its budget the
oldest go first. Everything is quoted or counted, and the same for the same request.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import TypeAlias

from reverie.embedded import history as past
from reverie.embedded.history import clip
from reverie.embedded.salience import (
    QUOTE,
    ConversationFacts,
    ExecutedCommand,
    NamedFile,
    describe_attempt,
    is_edit,
    user_words,
    work,
)
from reverie.embedded.summary import user_lines
from reverie.transcript.audit import binding, open_tasks
from reverie.transcript.blocks import TEXT_BYTES, Block, estimate, text_block
from reverie.transcript.mentions import REFERENCE, TextPart, parts, rank_names, reference
from reverie.transcript.messages import Message
from reverie.transcript.tasks import NotesSection, NotesTask, sections
from reverie.wire.request import Request

EDIT = "Edit"
SHRINK = 3 / 4  # of a section's size, at each step of making the whole fit
STEPS = 300
DONE = "The notes are up to date."
FAILED = "Some of the edits could not be made; the next update starts again."
NOTHING = "There is nothing new to note."


def answer_notes(request: Request) -> Sequence[Block]:
    """Edits of the notes; once their results are there, a word to end with."""
    task = request.task if isinstance(request.task, NotesTask) else NotesTask()
    ended = _closing_text(request)
    if ended:
        return [text_block(ended)]
    standing = sections(task.notes)
    changed = update_sections(standing, _read_conversation(request, task), task)
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


def _closing_text(request: Request) -> str:
    """What to end with, where the request ends in results and no new instruction."""
    last = request.at(request.count - 1) if request.count else None
    if last is None or any(p.block.type != "tool_result" for p in last.pieces):
        return ""
    failed = any(p.block.value.get("is_error") is True for p in last.pieces)
    return FAILED if failed else DONE


def _read_conversation(request: Request, task: NotesTask) -> NotesInput:
    """The conversation without the instruction at its end, and what of it is new."""
    kept: list[Message] = []
    for message in request.messages():
        pieces = tuple(p for p in message.pieces if p.source != request.last)
        if pieces:
            kept.append(Message(message.role, pieces, None))
    every = parts(kept)
    return NotesInput(every, _since(every, task.since))


def _since(every: Sequence[TextPart], since: str) -> list[TextPart]:
    places = [n for n, part in enumerate(every) if part.source == since]
    return list(every[places[-1] + 1 :] if places else every)


# --- what the sections will hold


def update_sections(
    page: Sequence[NotesSection], told: NotesInput, task: NotesTask
) -> list[NotesSection]:
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
        bodies.append(lines_within(lines, task.section_tokens, role))
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
        bodies[largest] = lines_within(bodies[largest], int(size * SHRINK), known[largest])


# --- The lines of each section of the session notes: what a section is for, and what stands in it.
#
# Each purpose has a function from the lines that stand to the lines that shall stand. Lines about
# one thing (a file, a command, an error) are told apart by what stands before the dash, or by the
# reference they end with; a newer one takes the older one's place, at the end. A line of somebody
# else's stays. Headings are known by their words, in any case. Nothing written here can be taken
# for a heading.


# The first that fits a heading decides; then the first that fits the line below it.
_WORDS = {
    "title": r"\b(?:title|name)\b|标题",
    "state": r"\b(?:state|status|current|now|next|pending|todo)\b|状态|当前|下一步",
    "errors": r"\b(?:errors?|corrections?|failures?|problems?|bugs?)\b|错误|纠正",
    "results": r"\b(?:results?|outputs?|answers?)\b|结果|输出",
    "worklog": r"\b(?:worklog|log|journal|history|steps?)\b|日志|记录",
    "files": r"\b(?:files?|functions?)\b|文件|函数",
    "workflow": r"\b(?:workflows?|commands?)\b|流程|命令",
    "task": r"\b(?:task|specification|spec|goals?|requests?|asked|wants?)\b|任务|目标|需求",
    "system": r"\b(?:codebase|system|documentation|architecture|parts)\b|系统|架构|代码",
    "learnings": r"\b(?:learnings?|learned|lessons?|rules|avoid)\b|经验|教训|规则",
}
PURPOSES = tuple((name, re.compile(words, re.IGNORECASE)) for name, words in _WORDS.items())
EXACT = ("state", "errors")  # purposes whose lines are not shortened for others
DASH = " — "
WIDTH = 160
TITLE_WORDS = 10
REFERENCES = 6  # of a file or a command, the newest
LAST_CALLS = 4
UNFIXED = 3  # newest errors that no later try has ended
NAMES = 600  # characters of names
INDENT = "    "
CUT = " [cut]"
CORRECTING = re.compile(
    r"\b(?:no|not|wrong|actually|instead|revert|undo|stop|don't|doesn't|isn't|should(?:n't)?)\b"
    r"|不对|不是|错了|改回|撤销|应该|别",
    re.IGNORECASE,
)


def purpose(section: NotesSection) -> str:
    """What a section is for; empty where its words do not say."""
    if not section.heading:
        return ""
    for text in (section.heading, section.description):
        for name, words in PURPOSES:
            if words.search(text):
                return name
    return ""


def lines_within(lines: Sequence[str], tokens: int, role: str) -> list[str]:
    """The lines within a budget: the oldest, which stand first, go first. What is in hand is
    written from the most important on, so there the last go."""
    out = list(lines)
    while len(out) > 1 and estimate("\n".join(out)) > tokens:
        del out[-1 if role in ("state", "results", "title") else 0]
    return out


@dataclass
class NotesInput:
    """A conversation, and what of it the notes do not cover yet."""

    every: Sequence[TextPart]
    new: Sequence[TextPart]

    @cached_property
    def whole(self) -> ConversationFacts:
        return work(self.every)

    @cached_property
    def done(self) -> ConversationFacts:
        return work(self.new)


LinesOf: TypeAlias = Callable[[Sequence[str], NotesInput, int], list[str]]


def lines_for(role: str, old: Sequence[str], told: NotesInput, tokens: int) -> list[str]:
    """What a section with this purpose shall hold."""
    return LINES[role](old, told, tokens) if told.new else list(old)


def everything(told: NotesInput) -> list[str]:
    """For notes whose sections say nothing of what they are for."""
    return _worklog((), told, 0)


def merge_lines(old: Iterable[str], new: Iterable[str], key: Callable[[str], str]) -> list[str]:
    """The lines that stand, without those that newer ones tell anew, then these."""
    fresh = {key(line): line for line in new}
    return [*(line for line in old if key(line) not in fresh), *fresh.values()]


def before_dash(line: str) -> str:
    return line.partition(DASH)[0]


def last_reference(line: str) -> str:
    return (REFERENCE.findall(line) or [line])[-1]


# --- one function a purpose


def _title(old: Sequence[str], told: NotesInput, tokens: int) -> list[str]:
    del tokens
    asked = [p.text for p in told.whole.user if not p.media] or list(told.whole.carried)
    if any(line.strip() for line in old) or not asked:
        return list(old)
    plain = re.sub(r"[#<>`*]+", " ", asked[0])
    return [clip(" ".join(plain.split()[:TITLE_WORDS]), WIDTH)]


def _state(old: Sequence[str], told: NotesInput, tokens: int) -> list[str]:
    del old, tokens
    whole, out = told.whole, list[str]()
    if whole.user:
        out.append(f"- Asked last: {clip(whole.user[-1].text, WIDTH * 2)}")
    if whole.said:
        out.append(f"- Said last: {clip(whole.said[-1].text, WIDTH * 2)}")
    out += [f"- {task.status}: {task.text}" for task in open_tasks(told.every)]
    left = [met for met in whole.errors if not met.fixed][:UNFIXED]
    out += [f"- Not seen to work yet: {m.tried}: {clip(m.line)}" for m in left]
    calls = whole.calls[: -LAST_CALLS - 1 : -1]
    out += [f"- Last: {describe_attempt(call)} {reference(call.call)}" for call in calls]
    return out


def _task(old: Sequence[str], told: NotesInput, tokens: int) -> list[str]:
    quoted = [line for line in old if line.startswith(QUOTE.rstrip())]
    others = [line for line in old if line.strip() and line not in quoted]
    section = "All user messages\n" + "\n".join(old)
    carried = tuple(user_words(section)) if quoted else ()
    room = tokens * TEXT_BYTES - sum(len(line.encode()) + 1 for line in others)
    words = user_lines(ConversationFacts(user=told.done.user, carried=carried), room)
    return [*others, *"\n".join(words).rstrip("\n").split("\n")] if words else list(old)


def _files(old: Sequence[str], told: NotesInput, tokens: int) -> list[str]:
    del tokens
    known = {before_dash(line): line for line in old}
    new = [_file_line(f, known.get(f"- {f.path}", "")) for f in reversed(told.done.files)]
    return merge_lines(old, new, before_dash)


def _file_line(file: NamedFile, old: str) -> str:
    earlier = old.partition(DASH)[2]
    why = REFERENCE.sub("", earlier.partition(":")[2]).strip() or file.why
    calls = [*REFERENCE.findall(old), *(reference(c) for c in file.calls)]
    shown = " ".join(list(dict.fromkeys(calls))[-REFERENCES:])
    touched = "edited" if file.edits or earlier.startswith("edited") else "read"
    return f"- {file.path}{DASH}{touched}: {why} {shown}".replace(":  ", ": ")


def _workflow(old: Sequence[str], told: NotesInput, tokens: int) -> list[str]:
    del tokens
    new = [_ran_line(ran) for ran in reversed(told.done.commands)]
    return merge_lines(old, new, before_dash)


def _ran_line(ran: ExecutedCommand) -> str:
    went = "failed" if ran.failed else "went well"
    references = " ".join(reference(call) for call in ran.calls[-REFERENCES:])
    return f"- `{clip(ran.text, WIDTH)}`{DASH}{went} {references}"


def _errors(old: Sequence[str], told: NotesInput, tokens: int) -> list[str]:
    del tokens
    fresh = {met.call for met in told.done.errors}
    noted = {last_reference(line) for line in old}
    new = [
        f"- {m.tried}: {clip(m.line)}{DASH}{m.ended or 'not seen to work since'} "
        f"{reference(m.call)}"
        for m in reversed(told.whole.errors)  # one that was noted may have ended since
        if m.call in fresh or reference(m.call) in noted
    ]
    said = [f"- The user: {clip(s, WIDTH)}" for s in _sentences(told) if CORRECTING.search(s)]
    return merge_lines(merge_lines(old, new, last_reference), said, str)


def _sentences(told: NotesInput) -> list[str]:
    return [s for part in told.done.user if not part.media for s in binding(part.text)]


def _system(old: Sequence[str], told: NotesInput, tokens: int) -> list[str]:
    """Folders with what was seen in them, and the names that came up most."""
    del tokens
    folders: dict[str, dict[str, None]] = {}
    for file in told.whole.files:
        folder, _, name = file.path.rpartition("/")
        folders.setdefault(folder or ".", {})[name] = None
    new = [f"- {folder}/{DASH}{' '.join(names)}" for folder, names in folders.items()]
    room, names = NAMES, list[str]()
    for name in rank_names(told.every):
        if not name.is_path:
            room -= len(name.text) + 1
            if room < 0:
                break
            names.append(name.text)
    new += [f"- Names{DASH}{' '.join(names)}"] if names else []
    return merge_lines(old, new, before_dash)


def _learnings(old: Sequence[str], told: NotesInput, tokens: int) -> list[str]:
    del tokens
    new = [f"- The user: {clip(s, WIDTH)}" for s in _sentences(told) if not CORRECTING.search(s)]
    new += [f"- {m.tried}: {m.ended}" for m in reversed(told.done.errors) if m.fixed]
    return merge_lines(old, new, str)


def _results(old: Sequence[str], told: NotesInput, tokens: int) -> list[str]:
    """The last answer, whole as far as it fits; it stands until there is a newer one."""
    last = told.new[-1]
    if last.who != "assistant":
        return list(old)
    room, out = tokens * TEXT_BYTES, list[str]()
    for line in last.text.splitlines():
        text = f"{INDENT}{line}".rstrip()
        data = text.encode("utf-8", "replace")
        if len(data) + 1 > room:
            out.append(data[: max(0, room - len(CUT))].decode("utf-8", "ignore") + CUT)
            break
        room -= len(data) + 1
        out.append(text)
    return out


def _worklog(old: Sequence[str], told: NotesInput, tokens: int) -> list[str]:
    del tokens
    return [*old, *(_turn_line(turn) for turn in _turns(told.new))]


def _turns(found: Sequence[TextPart]) -> Iterator[list[TextPart]]:
    turn: list[TextPart] = []
    for part in found:
        if part.who == "user" and any(p.who != "user" for p in turn):
            yield turn
            turn = []
        turn.append(part)
    if turn:
        yield turn


def _turn_line(turn: Sequence[TextPart]) -> str:
    asked = [p.text for p in turn if p.who == "user"]
    edited = dict.fromkeys(p.path.rpartition("/")[2] for p in turn if is_edit(p))
    ran = sum(p.who == "call" and bool(p.given("command")) for p in turn)
    said = [p.text for p in turn if p.who == "assistant"]
    did = [f"edited {' '.join(edited)}" if edited else "", f"ran {ran} commands" if ran else ""]
    did += [clip(said[-1], WIDTH // 2)] if said else []
    head = clip(asked[0], WIDTH // 2) if asked else "went on"
    return f"- {head}{DASH}{'; '.join(filter(None, did))}"


LINES: Mapping[str, LinesOf] = MappingProxyType(
    {
        "title": _title,
        "state": _state,
        "task": _task,
        "files": _files,
        "workflow": _workflow,
        "errors": _errors,
        "system": _system,
        "learnings": _learnings,
        "results": _results,
        "worklog": _worklog,
    }
)
