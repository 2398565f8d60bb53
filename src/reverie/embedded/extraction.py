"""The embedded answer to extraction: what is worth keeping of the newest messages, written.

It reads the user's own new words by fixed rules and works through tool calls: the memories to
change are read in one round, everything is written in the next, and a last short text says what
was done; pointers follow files by themselves. A memory that says it already is left alone; one on
the same subject is brought up to date by exact edits of the lines that differ, so nothing else in
a file can be lost. It calls no other tool, writes outside no folder it was given, and where
nothing is worth keeping it says so and writes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from reverie.embedded import history as past
from reverie.embedded.findings import find_facts, says
from reverie.embedded.history import ConversationHistory, RequestedCall, read_ask
from reverie.embedded.sentences import ExtractedFact, turns
from reverie.errors import ReverieError
from reverie.text.tokens import has_chinese
from reverie.topics import entry as entries
from reverie.topics.entry import TopicFile
from reverie.topics.index import shorten
from reverie.topics.novelty import content, negates
from reverie.transcript.blocks import Block, text_block
from reverie.transcript.tasks import ExtractTask, KnownMemory
from reverie.wire.request import Request

NOTHING_TO_SAVE = "Nothing new is worth keeping."
SAVED = "Saved: {files}."
FAILED = "Not saved: {files}."
WRITERS = frozenset({"Write", "Edit"})
NAME = 60  # characters of a name
DESCRIPTION = 200
MIN_NAMED = 2  # content words that a name needs
MAX_PASSAGES = 2_000
CUT = "more bytes in this line]"
SUBJECT = (0.6, 0.4)  # of the shorter and of the longer text's words, to be on one subject

_ROW = re.compile(r" *\d+[\t→](.*)")
_INSTEAD = re.compile(
    r"\b(?:instead|no longer|anymore|any more|not .* but|changed|moved|postponed|from now on)\b"
    r"|不再|改为|改成|改到|推迟|换成|而不是",
    re.IGNORECASE,
)
_DIGITS = re.compile(r"\d")
_CALENDAR = content(
    """today tomorrow yesterday monday tuesday wednesday thursday friday saturday sunday january
    february march april may june july august september october november december"""
)


def answer_extraction(request: Request) -> Sequence[Block]:
    """The blocks of one round."""
    task = request.task
    if not isinstance(task, ExtractTask):
        return [text_block(NOTHING_TO_SAVE)]
    history = past.read(request)
    if any(call.name in WRITERS for call in history.made):
        return [text_block(_describe_writes(history, task))]
    saves = saves_of(request, task)
    asks = _reads(saves, task, history) if not history.made else []
    asks = asks or _writes(saves, task, history)
    if not asks or not (task.any_tool or history.tools >= {ask.tool for ask in asks}):
        return [text_block(NOTHING_TO_SAVE)]
    used = {call.id for call in history.calls}
    return [past.call_block(request, used, ask.tool, ask.input) for ask in asks]


def saves_of(request: Request, task: ExtractTask) -> list[DraftWrite]:
    """What is to be saved, and where; the same at every round."""
    known = (*task.injected, task.instructions)
    return plan_saves(find_facts(turns(request, task), known), task.memories)


def _path(task: ExtractTask, key: str) -> str:
    return f"{task.folder.rstrip('/')}/{key}"


def _reads(
    saves: Sequence[DraftWrite], task: ExtractTask, history: ConversationHistory
) -> list[RequestedCall]:
    """Every file that will be changed, to be read together."""
    if not saves or not (task.any_tool or "Read" in history.tools):
        return []
    return [read_ask(_path(task, save.key)) for save in saves if save.known]


def _read_texts(history: ConversationHistory) -> dict[str, str]:
    """What the reads of this run brought, by path; one that failed brought nothing."""
    mine = {call.id for call in history.made}
    good = [o for o in history.outcomes if o.call.id in mine and not o.error]
    return {outcome.call.path: shown_text(outcome.text) for outcome in good}


def _writes(
    saves: Sequence[DraftWrite], task: ExtractTask, history: ConversationHistory
) -> list[RequestedCall]:
    """The files; pointers follow them by themselves."""
    read = _read_texts(history)
    taken = {known.file for known in task.memories}
    asks: list[RequestedCall] = []
    for save in saves:
        text = read.get(_path(task, save.key), "") if save.known else ""
        if save.known and not text:  # it is gone: a memory of its own
            save = DraftWrite(save.found, new_key(save.found, taken))  # noqa: PLW2901
        ask = _edit_call(save, text, task) if text else _new(save, task)
        if ask is None:
            continue
        taken.add(save.key)
        asks.append(ask)
    return asks


def _edit_call(save: DraftWrite, text: str, task: ExtractTask) -> RequestedCall | None:
    after = changed_file(save, text)
    change = edit_between(text, after) if after is not None else None
    if change is None:
        return None
    given = {"file_path": _path(task, save.key), "old_string": change[0], "new_string": change[1]}
    return RequestedCall("Edit", dict(given))


def _new(save: DraftWrite, task: ExtractTask) -> RequestedCall | None:
    text = new_file(save)
    if text is None:
        return None
    return RequestedCall("Write", {"file_path": _path(task, save.key), "content": text})


def _describe_writes(history: ConversationHistory, task: ExtractTask) -> str:
    """What became of the writes, by name."""
    made = {call.id: call for call in history.made if call.name in WRITERS}
    good: dict[str, None] = {}
    bad: dict[str, None] = {}
    for outcome in history.outcomes:
        call = made.get(outcome.call.id)
        if call is not None:
            name = call.path.removeprefix(_path(task, ""))
            (bad if outcome.error else good)[name] = None
    lines = [SAVED.format(files=", ".join(good))] if good else []
    lines += [FAILED.format(files=", ".join(bad))] if bad else []
    return "\n".join(lines) or NOTHING_TO_SAVE


# Where a finding goes


@dataclass(frozen=True, slots=True)
class DraftWrite:
    """A finding and the file it goes to: a new one, or the memory that is on its subject."""

    found: ExtractedFact
    key: str
    known: KnownMemory | None = None


def plan_saves(found: Iterable[ExtractedFact], memories: Sequence[KnownMemory]) -> list[DraftWrite]:
    """Where each finding goes; what a memory's description says already goes nowhere."""
    out: list[DraftWrite] = []
    taken = {known.file for known in memories}
    for one in found:
        known = _of_topic(one, memories) if one.topic else _on_subject(one, memories)
        if one.topic:
            if known is not None and known.description == description_of(one):
                continue
        elif any(_says(f"{known.name} {known.description}", one) for known in memories):
            continue
        if known is not None and any(save.known is known for save in out):
            known = None  # one change to a file at a time
        key = known.file if known else new_key(one, taken)
        taken.add(key)
        out.append(DraftWrite(one, key, known))
    return out


def _says(text: str, found: ExtractedFact) -> bool:
    return all(day in text for day in found.days) and says(text, found.rule)


def new_key(found: ExtractedFact, taken: Iterable[str]) -> str:
    return entries.key_for(name_of(found), found.type, frozenset(taken))


def _of_topic(found: ExtractedFact, memories: Sequence[KnownMemory]) -> KnownMemory | None:
    """The memory that holds the rule for a topic so far."""
    same = (one for one in memories if one.type == found.type and one.name == name_of(found))
    return next(same, None)


def _on_subject(found: ExtractedFact, memories: Sequence[KnownMemory]) -> KnownMemory | None:
    mine = _lasting(content(found.rule))
    best: tuple[float, KnownMemory] | None = None
    for known in memories:
        if known.type not in ("", found.type):
            continue
        theirs = _lasting(content(f"{known.name} {known.description}"))
        both = len(mine & theirs)
        if both < 2 or not theirs:
            continue
        short, long = both / min(len(mine), len(theirs)), both / max(len(mine), len(theirs))
        if short >= SUBJECT[0] and long >= SUBJECT[1] and (best is None or short > best[0]):
            best = (short, known)
    return best[1] if best else None


def _lasting(words: frozenset[str]) -> frozenset[str]:
    """Words that stay when a date or a number changes."""
    return frozenset(word for word in words - _CALENDAR if not _DIGITS.search(word))


# What is written


# Words that lead up to what a rule is about.
_LEADS_UP = re.compile(
    r"(?:(?:from (?:now|here) on|going forward|in (?:the )?future|next time|please|always"
    r"|remember(?: to| that)?|make sure(?: to| you)?|only|just|here|i (?:prefer|hate|love"
    r"|like|want you to|want|need you to|need|work (?:as|in|at|for)|use|lead|am|live in|don't like)"
    r"|i'm|we (?:use|say|write|call them|call|always|are)|we're|you (?:may|can|don't need to|must"
    r"|should)|an?|the|our|my|all|use|ab jetzt|immer|nie|bitte|ich bin|wir nutzen|siempre|nunca"
    r"|soy)\b"
    r"[\s,:]*)+",
    re.IGNORECASE,
)
_CLAUSE = re.compile(
    r"[,;:(，；：（]|\s(?:because|since|so that|before|when(?:ever)?|unless|if|while|instead of"
    r"|rather than"
    r"|is|are|will|lives?|goes?|gets?|must|should|has to|weil|porque|parce que)\s"
)
_NOT = re.compile(
    r"(?:we |you must |you should )?(?:never|do(?: not|n't)(?: ever)?|stop|avoid|no more)\s+",
    re.IGNORECASE,
)
_LOOSE = frozenset(
    [
        "the",
        "a",
        "an",
        "at",
        "on",
        "of",
        "to",
        "in",
        "and",
        "so",
        "or",
        "with",
        "for",
        "by",
        "is",
        "are",
        "has",
        "please",
        "each",
        "every",
        "das",
        "die",
        "der",
        "de",
        "la",
        "el",
        "le",
    ]
)  # words that no name ends with
NAME_WORDS = 6


def name_of(found: ExtractedFact) -> str:
    """What it is about, in a few words."""
    if found.topic:
        return shorten(found.topic, NAME)
    rule = found.rule.rstrip(".。!！?？")
    lead = _LEADS_UP.match(rule)
    about = rule[lead.end() if lead else 0 :]
    refused = _NOT.match(about)
    about = about[refused.end() if refused else 0 :]
    cut = _CLAUSE.search(about)
    if cut and len(content(about[: cut.start()])) >= MIN_NAMED:
        about = about[: cut.start()]
    words = about.split()
    if len(content(about)) < MIN_NAMED:
        words = rule.split()
    words = words[:NAME_WORDS]
    while len(words) > 1 and words[-1].lower().strip(",") in _LOOSE:
        words = words[:-1]
    short = " ".join(words).rstrip(",")
    short = about[: NAME // 3] if has_chinese(rule) else short
    return shorten(f"{short[:1].upper()}{short[1:]}{': never' if refused else ''}", NAME)


def description_of(found: ExtractedFact) -> str:
    """The fact itself, in a line."""
    beside = f" ({found.when})" if found.when and not found.line else ""
    words = found.line or f"{_whose(found)}{found.rule}"
    return shorten(words, DESCRIPTION - len(beside)) + beside


def body_of(found: ExtractedFact) -> str:
    """The rule or fact, then why and how where they were given; else the words as they came."""
    if not found.why and not found.how and found.said:
        who = "用户说：" if has_chinese(found.rule) else "The user said: "
        return f"{who}“{found.said}”" + (f" ({found.when})" if found.when else "")
    labelled = found.type in ("feedback", "project")
    parts = [
        f"{_whose(found)}{found.rule}",
        f"{'**Why:** ' if labelled else ''}{found.why}" if found.why else "",
        f"{'**How to apply:** ' if labelled else ''}{found.how}" if found.how else "",
        f"({found.when})" if found.when else "",
    ]
    return "\n\n".join(filter(None, parts))


def _whose(found: ExtractedFact) -> str:
    if found.type != "user":
        return ""
    return "用户说：" if has_chinese(found.rule) else "In the user's words: "


def new_file(save: DraftWrite) -> str | None:
    """The whole text of a new memory, or nothing where it makes no valid one."""
    found = save.found
    try:
        made = entries.new(
            save.key,
            name=name_of(found),
            description=description_of(found),
            type=found.type,
            body=body_of(found),
        )
    except ReverieError:
        return None
    return made.text


def changed_file(save: DraftWrite, text: str) -> str | None:
    """The memory's text brought up to date, or nothing where it says so already."""
    found = save.found
    passages = re.split(r"\n+|(?<=[.!?])\s+|(?<=[。！？])", text)[:MAX_PASSAGES]
    dated = all(day in text for day in found.days)
    if not found.topic and dated and any(says(passage, found.rule) for passage in passages):
        return None
    old = TopicFile(save.key, text.encode("utf-8", "replace"))
    try:
        if _replaces(found, old):
            changed = old.with_body(body_of(found)).with_value(description_of(found), "description")
        else:
            changed = old.with_body(f"{old.body.rstrip()}\n\n{body_of(found)}")
    except ReverieError:
        return None
    return changed.text


def _replaces(found: ExtractedFact, old: TopicFile) -> bool:
    """Whether the finding takes the place of what the memory says, and does not add to it."""
    told = f"{old.description} {old.body}"
    if found.topic:
        return True
    if negates(found.rule) != negates(old.description or old.body) or _INSTEAD.search(found.rule):
        return True
    mine, theirs = content(found.rule), content(told)
    values = mine - _lasting(mine) - theirs
    moved = bool(values) or any(day not in told for day in found.days)
    return moved and _lasting(mine) <= _lasting(theirs)


# Exact edits


def shown_text(result: str) -> str:
    """A file's text from a result with numbered lines; notes around them are no part of it."""
    rows = [row[1] for line in result.split("\n") if (row := _ROW.fullmatch(line.rstrip("\r")))]
    return "\n".join(rows) + "\n" if rows else ""


def edit_between(old: str, new: str) -> tuple[str, str] | None:
    """What to replace by what to get from one text to the other: lines that differ, and as
    many before them as make the place unique; nothing where that cannot be said."""
    a, b = old.split("\n"), new.split("\n")
    head = 0
    while head < min(len(a), len(b)) and a[head] == b[head]:
        head += 1
    tail = 0
    while tail < min(len(a), len(b)) - head and a[-1 - tail] == b[-1 - tail]:
        tail += 1
    while head > 0 and not _is_place(old, a[head : len(a) - tail]):
        head -= 1
    gone, put = a[head : len(a) - tail], b[head : len(b) - tail]
    if not _is_place(old, gone) or CUT in "\n".join(gone):
        return None
    return "\n".join(gone), "\n".join(put)


def _is_place(text: str, lines: Sequence[str]) -> bool:
    part = "\n".join(lines)
    return bool(part.strip()) and text.count(part) == 1
