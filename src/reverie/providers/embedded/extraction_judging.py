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
from itertools import islice

from reverie.memory.entry import Type
from reverie.providers.embedded import extraction_chinese as chinese
from reverie.providers.embedded import extraction_corrections as corrections
from reverie.providers.embedded import extraction_english as english
from reverie.providers.embedded import extraction_house as house
from reverie.providers.embedded import extraction_limits as limits
from reverie.providers.embedded import extraction_people as people
from reverie.providers.embedded import extraction_project as project
from reverie.providers.embedded.extraction_dates import is_ahead, made_absolute
from reverie.providers.embedded.extraction_found import TYPE_OF, Found, Rule, pattern
from reverie.providers.embedded.extraction_never import never, said_already, says
from reverie.providers.embedded.extraction_words import Sentence, Turn, sentences
from reverie.providers.embedded.extraction_work import ACT, PRODUCT
from reverie.providers.embedded.phrases import is_chinese

MOST = 6  # things kept of one message
MOST_CLAUSES = 6  # later parts of one sentence that are read

ENGLISH_WORK: tuple[Rule, ...] = (
    *english.STANDING,
    *corrections.CORRECTIONS,
    *limits.LIMITS,
    *house.HOUSE,
)
ENGLISH: tuple[Rule, ...] = (
    *ENGLISH_WORK,
    *people.CONFIRMATIONS,
    *project.POINTERS,
    *project.FACTS,
    *project.DEADLINES,
    *people.ROLES,
    *people.PREFERENCES,
)
CHINESE: tuple[Rule, ...] = (
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
_ORDER = pattern(
    rf"^(?:(?:to|please|always|never|don't|do not) )*{ACT}\b"
    rf"|^(?:always|never|don't|do not)\b"
    r"|^(?:不要|别|总是|始终|每次|必须|务必|一律|先|用|使用|要)"
)
# Where a later part of a sentence begins, and what before it makes that part another's.
_CUT = pattern(r"[,;:–—]\s+|\s[-–—]+\s|\s+(?=(?:but|and|so|then) )")
_SPOKEN_OF = pattern(
    r"\b(?:the|our|a|an|each|every|users?|it|they) (?:\w+ ){0,3}(?:should|must|shall|needs? to"
    r"|has to|will"
    r"|says?|said|reads?|states?)\b|\b(?:if|when(?:ever)?|so that|prompt|says?|translate|titled"
    r"|called)\b"
    r"|\b(?:write|add|put|implement|create|make) .*\b(?:says?|rule|section|note|hook|md)\b"
)
_SELF = pattern(r"^(?:i|my|i'm|i've|me)\b|^我(?!们)")


def findings(turns: Sequence[Turn], known: Iterable[str] = ()) -> list[Found]:
    """Everything worth keeping, in the order it was said; nothing that `known` says already."""
    texts = tuple(known)
    out: list[Found] = []
    for turn in turns:
        mine: list[Found] = []
        for found in _read(turn):
            said = [one.rule for one in (*out, *mine)]
            if never(found) or said_already(found, texts):
                continue
            if not any(says(one, found.rule) for one in said):
                mine.append(found)
        out += mine[:MOST]
    return out


def _read(turn: Turn) -> list[Found]:
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
    return out


def _directs(sentence: Sentence) -> bool:
    """Whether a sentence behind a complaint says what is to be done."""
    said = _led(sentence)
    return not sentence.asks and bool(_ORDER.search(said)) and not PRODUCT.search(said)


def _led(sentence: Sentence) -> str:
    """A sentence without the words that lead in."""
    lead = english.LEAD.match(sentence.masked)
    return sentence.text[lead.end() if lead else 0 :]


def _sentence(sentence: Sentence, turn: Turn) -> Found | None:
    """What one sentence says: asked to be kept, or by the first rule that fits."""
    wide = any(map(is_chinese, sentence.text))
    lead = (chinese.LEAD if wide else english.LEAD).match(sentence.masked)
    seen = sentence.masked[lead.end() :] if lead else sentence.masked
    asked = _asked_wide(sentence) if wide else _asked(sentence)
    if asked is not None:
        return _typed(asked, turn)
    for rule in CHINESE if wide else ENGLISH:
        found = rule.reads(sentence, seen, turn.before)
        if found and (found.kind != "deadline" or is_ahead(sentence.text, turn.at)):
            return found
    return None if wide else _clause(sentence, seen, turn)


def _clause(sentence: Sentence, seen: str, turn: Turn) -> Found | None:
    """What a later part of a sentence says against or about the agent's work, where the part
    before it does not speak of the program."""
    for cut in islice(_CUT.finditer(seen), MOST_CLAUSES):
        if _SPOKEN_OF.search(seen[: cut.start()]):
            return None
        rest = seen[cut.end() :]
        lead = english.LEAD.match(rest)
        rest = rest[lead.end() :] if lead else rest
        for rule in ENGLISH_WORK:
            found = rule.reads(sentence, rest, turn.before)
            if found:
                return found
    return None


def _asked(sentence: Sentence) -> str | None:
    """What a sentence asks to be kept."""
    strong = project.ASKED.search(sentence.masked)
    if strong and (_ORDER.search(strong["what"]) or project.TELLS.search(strong["what"])):
        return sentence.text[strong.start("what") : strong.end("what")]
    weak = project.WEAK.search(sentence.masked)
    if weak is None or sentence.asks or PRODUCT.search(weak["what"]):
        return None
    how, what = weak["weak"].lower(), weak["what"]
    if how.startswith("remember") and project.REMINDED.match(what):
        return None
    reaches = bool(project.REACHES.search(what))
    if how.endswith(" to") or how.startswith("remember"):
        return sentence.text[weak.start("what") : weak.end("what")] if reaches else None
    if not _ORDER.search(what) and not _SELF.search(what) and not reaches:
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


def _typed(what: str, turn: Turn) -> Found:
    """What was asked to be kept, with the type its content gives."""
    wide = any(map(is_chinese, what))
    inner = Sentence(what, what)
    for rule in CHINESE if wide else ENGLISH:
        found = rule.reads(inner, what)
        if found and (found.kind != "deadline" or is_ahead(what, turn.at)):
            return replace(found, kind="request", rule=what, quote="")
    kind: Type = "project"
    if _ORDER.search(what):
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


def _finished(found: Found, turn: Turn) -> Found:
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
    if not text:
        return ""
    if text[-1] not in ".!?。！？…":
        text += "。" if any(map(is_chinese, text)) else "."
    return text[:1].upper() + text[1:]
