"""From a user's messages to what they ask to keep.

Nothing is kept that no cue asks for. Cues are data (`data/cues.tsv`, six languages), and so is what
speaks against one (`data/vetoes.tsv`); conventions for code are read beside them. A cue that people
also say of the work in hand counts only where the message says nothing else. Words that the user
reports or rejects are nobody's. What is kept is the passage as it was said, with the reason that
follows it. Never kept, asked for or not, is what `exclusions` names, and what was said already.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from reverie.embedded import conventions
from reverie.embedded.conventions import ConventionState
from reverie.embedded.dates import has_date, said_on
from reverie.embedded.exclusions import CODE_NAME, never
from reverie.embedded.sentences import (
    ExtractedFact,
    Sentence,
    UserTurn,
    is_brief,
    pattern,
    split_sentences,
)
from reverie.text.cues import Cue, compile_phrase, read_cues, read_table
from reverie.topics.consent import rejects, reports
from reverie.topics.entry import Type, sort_of
from reverie.topics.novelty import content, negates

PACKAGE = "reverie.embedded"
MAX = 6  # things kept of one message; 3 and 12 keep the same 338 in 18 dialogues of MemoryCode
_RUN = pattern(r"[\w./@-]++")
ALONE = 300
"""Characters of a message that says one thing; the longest of asks.jsonl's dev half: 122. With 150,
325 of the 338 are kept, with 1,000 341 (`python -m bench run asks memorycode`)."""
MAX_ALONE = 3  # and its sentences; with 2 325 are kept, with 6 347
TYPES: dict[str, Type] = {
    "order": "feedback",
    "person": "user",
    "place": "reference",
    "event": "project",
    "fact": "project",
}
# Words that lead into a sentence and say nothing.
LEAD = pattern(
    r"(?:(?:ok(?:ay)?|yes|yeah|no(?=[,.!])|also|and|but|so(?! (?:that )?you know)|well|please|pls"
    r"|plz|oh|ah|right|sure|great|thanks|thank you|btw|by the way|cool|nice|perfect|actually|anyway"
    r"|just(?! so )|then|hm+|h(?:ey|i|ello)|one (?:more|last|other) thing|ps|bitte|und|ach|übrigens"
    r"|por favor|y|oye|s'il (?:te|vous) plaît|et|stp|svp|au fait"
    r"|(?-i:(?!Remember|Note|Merke|Recuerda|Anota|Apunta|Siempre|Nunca|Retiens"
    r"|Toujours|Jamais)[A-Z][a-z]+(?=,)))\b[\s,:!.–—-]*"
    r"|(?:好的?|嗯+|对了?|是的|谢谢你?|那|但|另外|还有|请|麻烦你?|顺便(?:说一下)?|對了|請|また"
    r"|あと|では|ちなみに|すみません)[\s,，、:：!！。]*)*"
)
_JOIN = pattern(
    r"[\s,:：，、–—-]*(?:(?:please|bitte|por favor|s'il (?:te|vous) plaît|stp|svp|ください|下さい)"
    r"[\s,:：，、]*)?(?:(?:that|dass|daß|que|de que)(?=\s)\s*|qu')?[\s,:：，–—-]*"
)
# Nothing, or a word that points at what was said before.
_POINTING = pattern(
    r"[\s,:：，]*+(?:that|this|it|das|dies|es|esto|eso|ça|cela|ceci|这一点|这点|这个|これ|それ)?"
    r"[\s,:：，]*+(?:please|bitte|por favor|s'il te plaît|stp)?[\s,:：，]*+"
)
_REASON = pattern(
    r"\b(?:because|since|otherwise|so that|due to|weil|sonst|porque|parce que|sinon)\b"
    r"|,\s*(?:they|it|that)\b|因为|否则|不然|ので|から"
)
_FOLLOWS = pattern(
    r"(?:(?:that's |it's )?(?:because|otherwise|the reason)|this (?:applies|goes|is for|holds)"
    r"|only for|except|same for|sonst|weil|das gilt|porque|si no|sinon|parce que)\b|因为|否则|不然"
    r"|适用|そうしないと"
)
_TASK = pattern(
    r"(?:fix|add|make|write|update|change|look|check|run|implement|create|remove|delete|refactor"
    r"|show|explain|find|try|see|commit|push|merge|build|deploy|review|can|could|would|let's|go"
    r"|mach|füge|zeig|haz|arregla|crea|fais|ajoute|corrige)\b|帮我|看一下|修复|直して"
)


@dataclass(frozen=True, slots=True)
class CueHit:
    """A cue that a sentence has: its row, and where the words begin that it asks to keep."""

    cue: Cue
    start: int
    end: int


def find_facts(turns: Sequence[UserTurn], known: Iterable[str] = ()) -> list[ExtractedFact]:
    """Everything that was asked to be kept, in its order; nothing that `known` says already."""
    talk = ConventionState()
    found: list[list[ExtractedFact]] = []
    for turn in turns:
        read, talk = _read(turn, talk)
        found.append([one for one in read if not never(one)])
    texts = list(known) if any(found) else []
    out: list[ExtractedFact] = []
    for mine in found:
        kept: list[ExtractedFact] = []
        for one in mine:
            others = [other for other in (*out, *kept) if other.days == one.days]
            again = any(says(other.rule, one.rule) for other in others)
            dated = all(any(day in text for text in texts) for day in one.days)
            if one.topic or not (again or (dated and any(says(text, one.rule) for text in texts))):
                kept.append(one)
        out += kept[:MAX]
    return conventions.latest(out)


def _read(turn: UserTurn, talk: ConventionState) -> tuple[list[ExtractedFact], ConventionState]:
    """What a message asks to keep, and what the talk is about by then."""
    said = list(split_sentences(turn.text))
    brief = is_brief(turn.text)
    alone = turn.whole and is_alone(turn.text, said)
    hits = [find_cue(one, alone=alone) for one in said]
    hits = [None if brief and hit and not _is_strong(hit) else hit for hit in hits]
    out: list[ExtractedFact] = []
    listed = False
    for place, (sentence, hit) in enumerate(zip(said, hits, strict=True)):
        rules = [] if brief or is_reported(said, place) else conventions.read(sentence, talk)
        talk = conventions.update_state(talk, sentence)
        if not rules and (listed or (hit is not None and not is_reported(said, place, hit))):
            before = said[place - 1] if place and not said[place - 1].asks else None
            rules = _kept(sentence, hit, before, listed=listed)
        listed = _opens_list(sentence, hit) or (listed and turn.text.count("\n") >= place)
        out += [_finish(rule, turn, said[place + 1 :]) for rule in rules]
    return out, talk


def _is_strong(hit: CueHit) -> bool:
    """Whether a cue asks for good even inside a long brief."""
    return hit.cue.phrase.startswith(("from (now", "(remember|memorize) (this"))


def _opens_list(sentence: Sentence, hit: CueHit | None) -> bool:
    """Whether a sentence asks to keep what follows it."""
    return (
        hit is not None and sentence.text.rstrip().endswith((":", "：")) and "+" not in hit.cue.kind
    )


def _kept(
    sentence: Sentence, hit: CueHit | None, before: Sentence | None, *, listed: bool
) -> list[ExtractedFact]:
    """What a sentence asks to keep: its own words, or those of the one before it."""
    rule = sentence.text
    if hit is None:
        return [ExtractedFact("keep", _type("keep", rule), rule, said=rule)] if listed else []
    kind = hit.cue.kind
    if kind in ("keep", "kept"):
        rule = rule[hit.start : hit.end].strip(" ,:：，–—-")
    if kind == "kept" and not rule and before is not None:
        rule = before.text
        return [ExtractedFact("keep", _type("keep", rule), rule, said=rule)]
    if not rule or (kind == "event" and not has_date(sentence.text)):
        return []
    return [ExtractedFact(kind, _type(kind, rule), rule, said=sentence.text)]


def _type(kind: str, rule: str) -> Type:
    """The type of a memory: the cue's, or what the words give that were asked to be kept."""
    if kind in TYPES:
        return TYPES[kind]
    inner = find_cue(Sentence(rule, rule))
    if inner is not None and inner.cue.kind in TYPES:
        return TYPES[inner.cue.kind]
    return _SORTS[sort_of(rule)]


_SORTS: dict[str, Type] = {
    "feedback": "feedback",
    "user": "user",
    "reference": "reference",
    "project": "project",
}


# Cues and what speaks against them


@functools.cache
def vetoes() -> dict[str, tuple[tuple[str, re.Pattern[str]], ...]]:
    """The vetoes by name: where each is looked for, and its pattern."""
    found: dict[str, list[tuple[str, re.Pattern[str]]]] = {}
    for row in read_table(PACKAGE, "vetoes.tsv"):
        phrase, language = row["phrase"], row["language"]
        where = phrase[0] if phrase[0] in "^>" else ""
        made = compile_phrase(phrase[1:] if where else f"…{phrase}", language)
        found.setdefault(row["name"], []).append((where, made))
    return {name: tuple(rows) for name, rows in found.items()}


def find_cue(sentence: Sentence, *, alone: bool = True) -> CueHit | None:
    """The first cue of a sentence that nothing in it speaks against; where it does not stand
    `alone`, of those that count anywhere."""
    masked = sentence.masked
    lead = LEAD.match(masked)
    first = lead.end() if lead else 0
    seen = masked[first:]
    for cue in read_cues(PACKAGE, "cues.tsv"):
        if (sentence.asks and "+ask" not in cue.veto) or (not alone and "+alone" in cue.veto):
            continue
        found = cue.search(seen)
        if found is None:
            continue
        if cue.kind == "kept":
            start, end = first, first + found.start()
        else:
            start, end = first + found.end(), len(masked)
            join = _JOIN.match(masked, start) if cue.kind == "keep" else None
            start = join.end() if join else start
        empty = cue.kind == "keep" and _POINTING.fullmatch(masked, start, end)
        if empty and not sentence.text.rstrip().endswith((":", "：")):
            continue
        named = "code" in cue.veto and CODE_NAME.search(sentence.text[first:])
        if not named and not any(speaks(name, seen, masked[start:end]) for name in cue.veto):
            return CueHit(cue, start, end)
    return None


def speaks(name: str, sentence: str, rest: str) -> bool:
    """Whether a veto speaks against a cue; the reason that a sentence gives is not looked at."""
    if name == "code" or name.startswith("+"):
        return False
    sentence = _REASON.split(sentence, maxsplit=1)[0]
    for _, allowed in vetoes()["-"]:
        sentence, rest = allowed.sub(" ", sentence), allowed.sub(" ", rest)
    return any(
        made.search(rest.lstrip(" ,:") if where == ">" else sentence) is not None
        for where, made in vetoes()[name]
    )


def is_reported(said: Sequence[Sentence], place: int, hit: CueHit | None = None) -> bool:
    """Whether a sentence gives another's words, or the next one rejects what it says."""
    text = said[place].masked
    asked = hit is not None and hit.cue.kind in ("keep", "kept", "order")
    before = text[: hit.start] if hit is not None and asked else text
    if reports(before) or any(rejects(one.masked) for one in said[place : place + 2]):
        return True
    return any(reports(one.masked) and ":" in one.masked for one in said[:place])


def is_alone(text: str, said: Sequence[Sentence]) -> bool:
    """Whether a message says one thing: it is short, asks nothing and gives no task beside it."""
    if len(text) > ALONE or len(said) > MAX_ALONE or "\n\n" in text:
        return False
    others = [one for one in said if find_cue(one) is None]
    return not any(one.asks or _TASK.match(_behind_lead(one.masked)) for one in others)


def _behind_lead(text: str) -> str:
    lead = LEAD.match(text)
    return text[lead.end() if lead else 0 :]


# What is kept


def _finish(found: ExtractedFact, turn: UserTurn, behind: Sequence[Sentence]) -> ExtractedFact:
    """The finding with the reason that follows it, and what its dates mean beside it."""
    said = found.said
    if said and behind and _FOLLOWS.match(behind[0].text):
        start = turn.text.find(said)
        end = turn.text.find(behind[0].text, start) + len(behind[0].text)
        said = turn.text[start:end] if start >= 0 else said
    said = " ".join(said.split())
    when, days = said_on(said or found.rule, turn.at, once=found.kind == "event")
    rule = " ".join(found.rule.split())
    return replace(found, rule=rule, said=said, turn=turn.id, when=when, days=days)


def says(other: str, text: str) -> bool:
    """Whether a passage has every word that a text says: one word more may be another fact."""
    mine, theirs = content(text), content(other)
    if not mine or not mine <= theirs or negates(other) != negates(text):
        return False
    return not _spelled(text) - _spelled(other)


def _spelled(text: str) -> set[str]:
    """Ids, numbers, paths and prefixes: what has no other words."""
    runs = (run.strip(".-/") for run in _RUN.findall(text))
    return {run for run in runs if run and not run.isalpha()}
