"""From a user's messages to what is worth keeping of them.

Each sentence is read by the rules of its language, the surest first; one that says several
things counts once. A reason given in the same or the next sentence is its why, a range given
in a sentence of its own its how; neither is ever made up. What may not be saved, or was said
already, is left out. The same messages always give the same findings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from reverie.embedded.extraction import chinese, people, project
from reverie.embedded.extraction.conduct import (
    BAR,
    Judged,
    judged,
    objects,
    orders,
    reaches,
)
from reverie.embedded.extraction.dates import is_ahead, made_absolute
from reverie.embedded.extraction.found import TYPE_OF, Found, SentenceRule, pattern
from reverie.embedded.extraction.never import never, says
from reverie.embedded.extraction.reply import Conceded, carries, conceded
from reverie.embedded.extraction.tags import NAMES, PROGRAM
from reverie.embedded.extraction.wording import LEAD, turned
from reverie.embedded.extraction.words import Sentence, UserTurn, sentences
from reverie.embedded.phrases import is_chinese
from reverie.memory.echo import Passages, content, is_said, negates
from reverie.memory.format.entry import Type

MAX = 6  # things kept of one message
MANY, NAMED = 60, 4  # words and names of a message that is likelier a task, or pasted
TASK, UNMOVED = 0.5, 1.0  # more that a sentence must weigh in a task, or if nothing was owned up to
OF_THE_TASK, ALONE = 2.0, 6  # the same of an order for this task, and words beside one that is not
LEAST = 0.5  # what a sentence must weigh of itself for the answer to add to it

ENGLISH: tuple[SentenceRule, ...] = (
    *people.CONFIRMATIONS,
    *project.POINTERS,
    *project.FACTS,
    *project.DEADLINES,
    *people.ROLES,
    *people.PREFERENCES,
)
CHINESE: tuple[SentenceRule, ...] = (
    *chinese.STANDING,
    *chinese.CORRECTIONS,
    *chinese.CONFIRMATIONS,
    *chinese.POINTERS,
    *chinese.FACTS,
    *chinese.DEADLINES,
    *chinese.ROLES,
    *chinese.PREFERENCES,
)
_WHY = pattern(
    r"[,;–—-]*\s*\b(?:because|since(?! (?:\d|last|we last|then|monday"
    r"|yesterday|i was))|so that|the reason (?:is|being)|otherwise"
    r"|as it|as they|due to)\b\s*(?P<why>.{6,})$"
    r"|[，,；]?\s*(?:因为|由于|否则|不然|免得|以免|原因是)(?P<wide>.{3,})$"
)
_BECAUSE = pattern(
    r"^(?:that's |it's |this is )?(?:because|the reason (?:is|being)"
    r"(?: that)?|otherwise|why:)\s*(?P<why>.{6,})$|^(?:因为|原因是|否则|不然)"
    r"(?P<wide>.{3,})$"
)
_RANGE = pattern(
    r"^(?:this|that|it|same) (?:applies|goes|holds|counts|is) (?:only"
    r" )?(?:for|to|when|in|if) .{3,}|^(?:only|except|unless|but not)"
    r" (?:for|in|when|if|where|on) .{3,}"
    r"|^(?:how to apply:|this is for|applies to) .{3,}|^(?:只|仅)?适用于.{2,}"
    r"|^(?:除了|仅限|只限).{2,}|^只有.{2,}时.{0,}"
)
_INSULT = re.compile(
    r"[,\s]*\b(?:you )?(?:idiot|moron|dummy|stupid|dumbass|fool)\b[\s.!]*|[\s.…]+$", re.IGNORECASE
)
_TAIL = re.compile(
    r",?\s*(?:any other options?|right|no|ok(?:ay)?|please|thanks|got it|understood)\s*$"
    r"|[，,]?\s*(?:好吗|好不好|可以吗|行吗|谢谢|知道了吗)\s*$",
    re.IGNORECASE,
)
_ORDER_WIDE = pattern(r"^(?:不要|别|总是|始终|每次|必须|务必|一律|先|用|使用|要)")
_SELF = pattern(r"^(?:i|my|i'm|i've|me)\b|^我(?!们)")


def findings(turns: Sequence[UserTurn], known: Iterable[str] = ()) -> list[Found]:
    """Everything worth keeping, in the order it was said; nothing that `known` says already."""
    found = [[one for one in _read(turn) if not never(one)] for turn in turns]
    told = Passages(("", text) for text in known) if any(found) else Passages()
    out: list[Found] = []
    for mine in found:
        kept: list[Found] = []
        for one in mine:
            again = any(says(other.rule, one.rule) for other in (*out, *kept))
            if not again and not _is_told(one, told):
                kept.append(one)
        out += kept[:MAX]
    return out


def _is_told(found: Found, told: Passages) -> bool:
    """Whether some texts say it already."""
    about = content(found.rule)
    match = told.best(about)
    same = is_said(about, match) and match.negated == negates(found.rule)
    return same and told.has_numbers(about, about)


def _read(turn: UserTurn) -> list[Found]:
    """What a message says, unjudged."""
    said = list(sentences(turn.text))
    out: list[Found] = []
    told = -1  # the sentence that a complaint took for what is to be done
    for place, sentence in enumerate(said):
        found = _sentence(sentence, turn) if place != told else None
        if found is None:
            continue
        behind = said[place + 1 : place + 3]
        if found.complaint and behind and _directs(behind[0]):
            found = replace(found, rule=_led(behind[0]), quote=sentence.text)
            told, behind = place + 1, behind[1:]
        reasons = [one for one in behind if not one.asks]
        out.append(_finished(_reasoned(found, reasons), turn))
    return _answered(out, said, turn)


def _answered(out: list[Found], said: Sequence[Sentence], turn: UserTurn) -> list[Found]:
    """The findings, with what only the agent's answer gives away, or words better."""
    answer = conceded(turn.after) if turn.after else Conceded()
    if not answer.weight:
        return out
    at = next((n for n, one in enumerate(out) if one.type == "feedback"), len(out))
    found = out[at] if at < len(out) else _objected(said, turn, answer)
    if found is None:
        return out
    quote = found.quote or found.rule
    if found.complaint and answer.lesson and carries(quote, answer.lesson, turn.text):
        found = replace(found, rule=answer.lesson, quote=quote)
    return [*out[:at], _finished(found, turn), *out[at + 1 :]]


def _objected(said: Sequence[Sentence], turn: UserTurn, answer: Conceded) -> Found | None:
    """The sentence that an answer took for a correction: one that finds fault and weighs enough
    with what was owned up to, or any that carries the lesson of a full concession."""
    best, most = None, LEAST
    for one in said:
        weight = _objection(one, turn)
        if weight >= most:
            best, most = one, weight
    if best is None and answer.lesson and answer.weight >= BAR:
        best = next((one for one in said if carries(one.text, answer.lesson, one.text)), None)
    if best is None or most + answer.weight < BAR:
        return None
    return _conduct(best, _led(best), complains=True)


def _objection(sentence: Sentence, turn: UserTurn) -> float:
    """What a sentence that finds fault weighs of itself."""
    if any(map(is_chinese, sentence.text)):
        return chinese.objection(sentence.masked.translate(chinese.TRADITIONAL))
    if not objects(sentence.masked):
        return 0.0
    return judged(sentence.masked, turn.before, asks=sentence.asks).weight


def _directs(sentence: Sentence) -> bool:
    """Whether a sentence behind a complaint says what is to be done."""
    said = _led(sentence)
    ordered = orders(said) or bool(_ORDER_WIDE.search(said))
    return not sentence.asks and ordered and not PROGRAM.search(said)


def _doubt(turn: UserTurn, sentence: Sentence, *, complains: bool) -> float:
    """What a sentence must weigh more: in a long message or one full of names, as an order among
    others that does not say how far it reaches, or as a complaint that the answer did not take
    for one."""
    among = len(turn.text.split()) > len(sentence.text.split()) + ALONE
    if among and not complains and not reaches(sentence.masked):
        return OF_THE_TASK
    named = len(NAMES.findall(turn.text)) >= NAMED
    long = TASK if named or len(turn.text.split()) > MANY else 0.0
    unmoved = complains and turn.after and not conceded(turn.after).weight
    return long + (UNMOVED if unmoved else 0.0)


def _led(sentence: Sentence, start: int = 0) -> str:
    """A sentence from some place on, without the words that lead in."""
    lead = LEAD.match(sentence.masked, start)
    return sentence.text[lead.end() if lead else start :]


def _conduct(sentence: Sentence, said: str, *, complains: bool) -> Found:
    """A sentence about the agent's way of working, worded as a rule where a form fits."""
    kind = "correction" if complains else "standing_instruction"
    rule, rest = turned(said), said.partition(", ")[2]
    if complains and not rule and orders(rest):
        rule = rest
    plain = Found(kind, TYPE_OF[kind], rule or said, complaint=complains and not rule)
    return replace(plain, quote=sentence.text) if rule else plain


def _sentence(sentence: Sentence, turn: UserTurn) -> Found | None:
    """What one sentence says: asked to be kept, about the agent's work, or by the first rule
    that fits."""
    wide = any(map(is_chinese, sentence.text))
    if wide:
        sentence = replace(sentence, masked=sentence.masked.translate(chinese.TRADITIONAL))
    lead = (chinese.LEAD if wide else LEAD).match(sentence.masked)
    seen = sentence.masked[lead.end() :] if lead else sentence.masked
    asked = _asked_wide(sentence) if wide else _asked(sentence)
    if asked is not None:
        return _typed(asked, turn)
    mine = Judged() if wide else judged(sentence.masked, turn.before, asks=sentence.asks)
    said = _led(sentence, mine.start)
    enough = mine.weight >= BAR + _doubt(turn, sentence, complains=mine.complains)
    work = _conduct(sentence, said, complains=mine.complains) if enough else None
    if work is not None and mine.start <= len(sentence.text) - len(seen):
        return work
    for rule in CHINESE if wide else ENGLISH:
        found = rule.reads(sentence, seen)
        if found and (found.kind != "deadline" or is_ahead(sentence.text, turn.at)):
            return found
    return work  # said in passing, at the end of something else


def _asked(sentence: Sentence) -> str | None:
    """What a sentence asks to be kept."""
    strong = project.ASKED.search(sentence.masked)
    if strong and (orders(strong["what"]) or project.TELLS.search(strong["what"])):
        return sentence.text[strong.start("what") : strong.end("what")]
    weak = project.WEAK.search(sentence.masked)
    if weak is None or sentence.asks or PROGRAM.search(weak["what"]):
        return None
    how, what = weak["weak"].lower(), weak["what"]
    if how.startswith("remember") and project.REMINDED.match(what):
        return None
    far = bool(project.REACHES.search(what)) or judged(what).weight >= BAR
    if how.endswith(" to") or how.startswith("remember"):
        return sentence.text[weak.start("what") : weak.end("what")] if far else None
    if not orders(what) and not _SELF.search(what) and not far:
        return None
    return sentence.text[weak.start("what") : weak.end("what")]


def _asked_wide(sentence: Sentence) -> str | None:
    lead = chinese.LEAD.match(sentence.masked)
    start = lead.end() if lead else 0
    found = chinese.ASKED.search(sentence.masked[start:])
    if found is None or sentence.asks or found["list"]:
        return None
    name = "what" if found["what"] else "what2"
    what = sentence.text[start + found.start(name) : start + found.end(name)]
    return None if chinese.ONCE.search(what) else what


def _typed(what: str, turn: UserTurn) -> Found:
    """What was asked to be kept, with the type its content gives."""
    wide = any(map(is_chinese, what))
    inner = Sentence(what, what)
    if not wide and judged(what).weight >= BAR:
        return Found("request", TYPE_OF["correction"], what)
    for rule in CHINESE if wide else ENGLISH:
        found = rule.reads(inner, what)
        if found and (found.kind != "deadline" or is_ahead(what, turn.at)):
            return replace(found, kind="request", rule=what, quote="")
    kind: Type = "project"
    if orders(what) or _ORDER_WIDE.search(what):
        kind = TYPE_OF["correction"]
    elif _SELF.search(what):
        kind = TYPE_OF["role"]
    elif re.search(r"https?://", what):
        kind = TYPE_OF["pointer"]
    return Found("request", kind, what)


def _reasoned(found: Found, behind: Sequence[Sentence]) -> Found:
    """The finding with the reason and the range that the same words or the next give."""
    rule, why, how = found.rule, "", ""
    inside = _WHY.search(rule)
    if inside and inside.start() > 8:
        why = inside["why"] or inside["wide"]
        rule = rule[: inside.start()]
    for sentence in behind:
        reason = _BECAUSE.search(sentence.text)
        if reason and not why:
            why = reason["why"] or reason["wide"]
        elif _RANGE.search(sentence.text) and not how:
            how = sentence.text
        else:
            break
    return replace(found, rule=rule, why=why, how=how)


def _finished(found: Found, turn: UserTurn) -> Found:
    """The finding in whole sentences, its dates written out."""
    parts = {
        "rule": _closed(made_absolute(_bare(found.rule), turn.at)),
        "why": _closed(made_absolute(found.why, turn.at)),
        "how": _closed(made_absolute(found.how, turn.at)),
        "quote": _bare(found.quote),
    }
    return replace(found, **parts, turn=turn.id)


def _bare(text: str) -> str:
    """Words without insults and empty endings."""
    return _TAIL.sub("", _INSULT.sub(" ", text).strip()).strip(" ,;:)，；：）–—-")


def _closed(text: str) -> str:
    """A sentence with a capital and an end."""
    text = " ".join(text.split()).strip(" ,;，；")
    text = text.capitalize() if text.isupper() and " " in text else text
    if not text:
        return ""
    if text[-1] not in ".!?。！？…":
        text += "。" if any(map(is_chinese, text)) else "."
    return text[:1].upper() + text[1:]
