"""From a user's messages to what is worth keeping of them.

Each sentence is read by the rules of its language, the surest first; one that says several
things counts once. A reason given in the same or the next sentence is its why, a range given
in a sentence of its own its how; neither is ever made up. Nothing is guessed from what a person
complains of or an agent owns up to. Never kept, asked for or not, is what the code or git can
tell, debugging recipes, the state of the work in hand, lists, verdicts on people, secrets, and
what was said already. The same messages always give the same findings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from reverie.embedded import (
    conventions,
    cues_languages,
    cues_orders,
    cues_person,
    cues_project,
    exclusions,
)
from reverie.embedded.dates import is_ahead, said_on
from reverie.embedded.exclusions import never
from reverie.embedded.sentences import (
    SELF,
    TYPE_OF,
    ExtractedFact,
    Sentence,
    SentenceRule,
    UserTurn,
    is_brief,
    pattern,
    split_sentences,
)
from reverie.text.tokens import has_chinese
from reverie.topics.entry import Type
from reverie.topics.novelty import PassageIndex, RepetitionMatch, content, is_said, negates

MAX = 6  # things kept of one message

ENGLISH: tuple[SentenceRule, ...] = (
    *cues_orders.STANDING,
    *cues_project.POINTERS,
    *cues_project.FACTS,
    *cues_project.DEADLINES,
    *cues_person.ROLES,
    *cues_person.PREFERENCES,
    *cues_languages.RULES,
)
CHINESE: tuple[SentenceRule, ...] = (
    *cues_languages.STANDING,
    *cues_languages.POINTERS,
    *cues_languages.FACTS,
    *cues_languages.DEADLINES,
    *cues_languages.ROLES,
    *cues_languages.PREFERENCES,
)
# Words that lead into a sentence and say nothing.
LEAD = pattern(
    r"(?:(?:ok(?:ay)?|yes|yeah|yep|yup|nope|nah|hmm+|no(?=\s*[,.!:–—-]|\s+(?:you|u|i|we|it|that"
    r"|this|do|don'?t|stop|use|never|always|the|just|please)\b)|also|and|but|so|well|please|pls|plz"
    r"|oh|ah|right|sure|great|thanks|thank you|btw|by the way|alright|all right|cool|nice"
    r"|wait(?=\s*[,.!:…–—-])|wtf|dude|man|bro|jesus|ffs|ugh|argh|gah|seriously|come on|lol|um|uh"
    r"|perfect|actually|anyway|like|or|just|then|because|one (?:more|last|other) thing"
    r"|remember(?: that(?!'))?"
    r"|note(?: that(?!'))?|(?:keep|bear) in mind(?: that(?!'))?|heads up|ps"
    r"|p\.s|fyi|h(?:ey|i|ello)(?: (?!you|we|i\b)\w+)?|again|lastly|finally|first(?! things)|hm"
    r"|(?-i:[A-Z][a-z]+(?=[,!])))\b[\s,:!.–—-]*)*"
)
_WHY = pattern(
    r"[,;–—-]{0,3}\s{0,9}\b(?:because|since(?! (?:\d|last|we last|then|monday"
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
    r"[,\s]{0,9}\b(?:you )?(?:idiot|moron|dummy|stupid|dumbass|fool)\b[\s.!]{0,9}", re.IGNORECASE
)
_TAIL = re.compile(
    r",?\s{0,9}(?:any other options?|right|no|ok(?:ay)?|please|thanks|got it|understood)\s{0,9}$"
    r"|[，,]?\s{0,9}(?:好吗|好不好|可以吗|行吗|谢谢|知道了吗)\s{0,9}$",
    re.IGNORECASE,
)
_ORDER_WIDE = pattern(r"^(?:不要|别|总是|始终|每次|必须|务必|一律|先|用|使用|要)")


def find_facts(turns: Sequence[UserTurn], known: Iterable[str] = ()) -> list[ExtractedFact]:
    """Everything worth keeping, in the order it was said; nothing that `known` says already."""
    talk = conventions.ConventionState()
    found: list[list[ExtractedFact]] = []
    for turn in turns:
        read, talk = _read(turn, talk)
        found.append([one for one in read if not never(one)])
    texts = list(known) if any(found) else []
    told = PassageIndex(("", text) for text in texts)
    out: list[ExtractedFact] = []
    for mine in found:
        kept: list[ExtractedFact] = []
        for one in mine:
            others = [other for other in (*out, *kept) if other.days == one.days]
            again = any(says(other.rule, one.rule) for other in others)
            dated = all(any(day in text for text in texts) for day in one.days)
            if one.topic or not (again or (dated and _is_told(one, told))):
                kept.append(one)
        out += kept[:MAX]
    return conventions.latest(out)


def _is_told(found: ExtractedFact, told: PassageIndex) -> bool:
    """Whether some texts say it already."""
    about = content(found.rule)
    match = told.best(about)
    same = is_said(about, match) and match.negated == negates(found.rule)
    return same and told.has_numbers(about, about)


def _read(
    turn: UserTurn, talk: conventions.ConventionState
) -> tuple[list[ExtractedFact], conventions.ConventionState]:
    """What a message says, unjudged, and what the talk is about by then."""
    said = list(split_sentences(turn.text))
    brief = is_brief(turn.text)
    out: list[ExtractedFact] = []
    for place, sentence in enumerate(said):
        reasons = [one for one in said[place + 1 : place + 3] if not one.asks]
        rules = [] if brief else conventions.read(sentence, talk)
        talk = conventions.update_state(talk, sentence)
        one = None if rules else _sentence(sentence, turn)
        if (
            brief
            and one is not None
            and one.kind != "request"
            and not cues_orders.FOR_GOOD.search(one.rule)
        ):
            one = None
        rules += [replace(one, said=sentence.text)] if one is not None else []
        out += [_finish_fact(_add_reason(rule, reasons), turn) for rule in rules]
    return out, talk


def _sentence(sentence: Sentence, turn: UserTurn) -> ExtractedFact | None:
    """What one sentence says: asked to be kept, or by the first rule that fits."""
    wide = has_chinese(sentence.text)
    if wide:
        sentence = replace(sentence, masked=sentence.masked.translate(cues_languages.TRADITIONAL))
    asked = (
        _asked_wide(sentence)
        if wide
        else exclusions.memory_request(sentence) or cues_languages.european_request(sentence)
    )
    if asked is not None:
        return _classify_request(asked, turn)
    lead = (cues_languages.LEAD if wide else LEAD).match(sentence.masked)
    seen = sentence.masked[lead.end() if lead else 0 :]
    frame = None if wide else cues_orders.FRAME.match(seen)
    if frame is None:
        return _first_match(sentence, seen, turn)
    asked_of = replace(sentence, asks=sentence.asks and not frame["asks"])
    return _first_match(asked_of, seen[frame.end() :], turn) or _first_match(sentence, seen, turn)


def _first_match(sentence: Sentence, seen: str, turn: UserTurn) -> ExtractedFact | None:
    """What the first rule finds that fits; a day that has passed is no deadline."""
    for rule in CHINESE if has_chinese(sentence.text) else ENGLISH:
        found = rule.reads(sentence, seen)
        if found and (found.kind != "deadline" or is_ahead(sentence.text, turn.at)):
            return found
    return None


def _asked_wide(sentence: Sentence) -> str | None:
    lead = cues_languages.LEAD.match(sentence.masked)
    start = lead.end() if lead else 0
    found = cues_languages.ASKED.search(sentence.masked[start:])
    if found is None or sentence.asks or found["list"]:
        return None
    name = "what" if found["what"] else "what2"
    what = sentence.text[start + found.start(name) : start + found.end(name)]
    return None if cues_languages.ONCE.search(what) else what


def _classify_request(what: str, turn: UserTurn) -> ExtractedFact:
    """What was asked to be kept, with the type its content gives."""
    found = _first_match(Sentence(what, what), what, turn)
    if found is not None:
        return replace(found, kind="request")
    kind: Type = "project"
    if cues_orders.ORDER.search(what) or _ORDER_WIDE.search(what):
        kind = TYPE_OF["standing_instruction"]
    elif SELF.search(what):
        kind = TYPE_OF["role"]
    elif re.search(r"https?://", what):
        kind = TYPE_OF["pointer"]
    return ExtractedFact("request", kind, what)


def _add_reason(found: ExtractedFact, behind: Sequence[Sentence]) -> ExtractedFact:
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
        elif found.topic and not why and conventions.WHY.search(sentence.text):
            why = sentence.text
        elif _RANGE.search(sentence.text) and not how:
            how = sentence.text
        else:
            break
    return replace(found, rule=rule, why=why, how=how)


def _finish_fact(found: ExtractedFact, turn: UserTurn) -> ExtractedFact:
    """The finding in whole sentences, its dates as they were said."""
    parts = {"rule": _bare(found.rule), "why": found.why, "how": found.how}
    closed = {name: _close_sentence(text) for name, text in parts.items()}
    said = " ".join(found.said.split())
    text = f"{said or found.rule} {found.why} {found.how}"
    when, days = said_on(text, turn.at, once=found.kind == "deadline")
    return replace(found, **closed, said=said, turn=turn.id, when=when, days=days)


def _bare(text: str) -> str:
    """Words without insults and empty endings; a bracket goes that was never opened."""
    bare = _TAIL.sub("", _INSULT.sub(" ", text).strip().rstrip(" .…")).strip(" ,;:，；：–—-")
    stray = [b for a, b in ("()", "（）") if bare.count(b) > bare.count(a)]
    return bare.strip(" ,;:，；：–—-" + "".join(stray))


def _close_sentence(text: str) -> str:
    """A sentence with a capital and an end."""
    text = " ".join(text.split()).strip(" ,;，；")
    text = text.capitalize() if text.isupper() and " " in text else text
    if not text:
        return ""
    if text[-1] not in ".!?。！？…":
        text += "。" if has_chinese(text) else "."
    return text[:1].upper() + text[1:]


def says(other: str, text: str) -> bool:
    """Whether a passage says what a text says, in the same or other words."""
    mine, theirs = content(text), content(other)
    if not mine or any(word[0].isdigit() for word in mine - theirs):
        return False  # a number or a date has no other words
    share = len(mine & theirs) / len(mine)
    return is_said(mine, RepetitionMatch(share)) and negates(other) == negates(text)
