"""The embedded answer to extraction: what the user asked to keep of the newest messages, written.

It reads the user's own new words by cues and answers in the form of any extraction, with one block
for each new file; pointers follow files by themselves. A memory that says it already is left alone,
and none is changed: where a newer rule replaces an older one, the older is marked when the newer is
saved. Where nothing was asked it says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from reverie.embedded.findings import LEAD, find_cue, find_facts, says
from reverie.embedded.sentences import ExtractedFact, Sentence, turns
from reverie.errors import ReverieError
from reverie.text.tokens import has_chinese
from reverie.topics import entry as entries
from reverie.topics.index import shorten
from reverie.topics.novelty import content
from reverie.transcript.blocks import Block, text_block
from reverie.transcript.tasks import ExtractTask, KnownMemory
from reverie.wire.request import Request

NOTHING_TO_SAVE = "Nothing new is worth keeping."
NAME = 60  # characters of a name
NAME_WORDS = 5
FILE_WORDS = 4  # of a file's name, behind the type
DENSE_NAME = 12  # characters of a name in a script without spaces
DESCRIPTION = 200
MIN_NAMED = 2  # content words that a name needs


def answer_extraction(request: Request) -> Sequence[Block]:
    """The blocks of one round."""
    task = request.task
    if not isinstance(task, ExtractTask):
        return [text_block(NOTHING_TO_SAVE)]
    known = (*task.injected, task.instructions)
    saves = plan_saves(find_facts(turns(request, task), known), task.memories)
    texts = ((save.key, new_file(save)) for save in saves)
    blocks = [f'<memory file="{key}">\n{text.rstrip()}\n</memory>' for key, text in texts if text]
    return [text_block("\n".join(blocks) or NOTHING_TO_SAVE)]


# Where a finding goes


@dataclass(frozen=True, slots=True)
class DraftWrite:
    """A finding and the file it goes to."""

    found: ExtractedFact
    key: str


def plan_saves(found: Iterable[ExtractedFact], memories: Sequence[KnownMemory]) -> list[DraftWrite]:
    """Where each finding goes; what a memory's description says already goes nowhere."""
    out: list[DraftWrite] = []
    taken = {known.file for known in memories}
    for one in found:
        if any(_is_known(known, one) for known in memories):
            continue
        name = " ".join(re.findall(r"[^\W_]+", name_of(one))[:FILE_WORDS])
        key = entries.key_for(name, one.type, frozenset(taken))
        taken.add(key)
        out.append(DraftWrite(one, key))
    return out


def _is_known(known: KnownMemory, found: ExtractedFact) -> bool:
    if found.topic:
        return known.type == found.type and known.description == description_of(found)
    text = f"{known.name} {known.description}"
    return all(day in text for day in found.days) and says(text, found.rule)


# What is written

_CLAUSE = re.compile(
    r"[,;:(，；：（。]|\s(?:because|since|so that|before|when(?:ever)?|unless|if|while|instead of"
    r"|rather than|not|is|are|will|lives?|goes?|gets?|must|should|has to|weil|porque|parce que)\s"
)
_ASK = re.compile(
    r"^[\s,:–—-]*(?:please )?(?:remember|don't forget|make sure)(?: to| that)?\b[\s,:–—-]*",
    re.IGNORECASE,
)
"""Words that ask to keep, which are no part of what it is about."""
_LOOSE = frozenset(
    """the a an at on of to in and so or with for by is are has please each every das die der de la
    el le""".split()  # noqa: SIM905
)
"""Words that no name ends with."""


def name_of(found: ExtractedFact) -> str:
    """What it is about, in a few words."""
    if found.topic:
        return shorten(found.topic, NAME)
    rule = found.rule.rstrip(".。!！?？")
    about = _about(rule)
    cut = _CLAUSE.search(about)
    if cut and len(content(about[: cut.start()])) >= MIN_NAMED:
        about = about[: cut.start()]
    if has_chinese(about):
        return about[:DENSE_NAME].strip("，,。 ")
    every = about.split()
    words = every[:NAME_WORDS]
    while " ".join(words).count("`") % 2 and len(words) < len(every):
        words.append(every[len(words)])  # code is named whole
    while len(words) > 1 and words[-1].lower().strip(",") in _LOOSE:
        words = words[:-1]
    short = " ".join(words).strip(" ,.:;")
    return shorten(f"{short[:1].upper()}{short[1:]}", NAME)


def _about(rule: str) -> str:
    """A rule without the words that lead into it and those of its cue."""
    lead = LEAD.match(rule)
    bare = _ASK.sub("", rule[lead.end() if lead else 0 :])
    hit = find_cue(Sentence(rule, rule))
    if hit is None or hit.cue.kind != "order" or hit.cue.phrase.startswith("…"):
        return bare
    behind = _ASK.sub("", rule[hit.start : hit.end])
    return behind if len(content(behind)) >= MIN_NAMED else bare


def description_of(found: ExtractedFact) -> str:
    """The fact itself, in a line: the user's words, or a convention's rule."""
    beside = f" ({found.when})" if found.when and not found.line else ""
    return shorten(found.line or found.rule, DESCRIPTION - len(beside)) + beside


def body_of(found: ExtractedFact) -> str:
    """The passage as it was said; a rule of several in one sentence stands by itself."""
    if not found.said:
        return found.rule
    who = "用户说：" if has_chinese(found.said) else "The user said: "
    return f"{who}“{found.said}”" + (f" ({found.when})" if found.when else "")


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
    return (made.with_value(found.said, entries.FROM) if found.said else made).text
