"""What the agent's answer gives away: that it took the turn for a correction, and the lesson.

Extraction runs once a turn is answered. Where the agent owns up to its way of working ("I should
have asked first", "sorry, I rushed", "I'll run them before committing from now on"), the turn it
answers was a correction, whatever its words. That counts only beside a turn in which the person
finds fault or tells the agent what to do, and only for the agent's conduct: "you're right, it
returns nil" owns up to nothing.

The lesson may become the rule, but an answer can echo what a tool brought. So it is short, without
names, addresses or quotes, begins with a step of the agent's, has a word in common with what the
person said, and never outweighs it: half of what is written is the person's. Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from reverie.embedded.extraction.chinese import TRADITIONAL
from reverie.embedded.extraction.found import pattern
from reverie.embedded.extraction.tags import PROGRAM, tagged
from reverie.embedded.extraction.wording import first, stem
from reverie.embedded.extraction.words import Sentence, sentences
from reverie.embedded.phrases import is_chinese
from reverie.memory.echo import content

MAX_SENTENCES = 8  # of an answer's beginning
MAX_WORDS = 14  # of a lesson
MAX = 3.5

# Rows of signs, "i" being the agent: what it owns up to, and how surely that is its conduct.
OWNED: tuple[tuple[re.Pattern[str], float], ...] = (
    (re.compile(r"idn?a[CVARFacv.]"), 2.5),  # I should have, I shouldn't have
    (re.compile(r"i[aBkl]{0,2}R"), 2.5),  # I assumed, I rushed
    (re.compile(r"i[aBkl]{0,2}F(?:o?[cv]|[^,&]{0,3}p)"), 2.5),  # I forgot to run
    (re.compile(r"iBn[lEk]?(?:c|v[^,&]{0,3}[pO])"), 2.5),  # I didn't check
    (re.compile(r"i[alk]?[CV.][^,]{0,12}u(?:j|_?O|rO)"), 3.0),  # I pushed without asking
    (re.compile(r"(?:^|[,&])i[alk]?[CV][^,&]{0,6}[mW]"), 1.5),  # I changed too much
)
_PROMISED = re.compile(r"i[aK]n?[^,]{0,3}[cvk]")  # I'll run, with one of these
_AHEAD = pattern(
    r"\b(?:from now on|going forward|in (?:the )?future|next time|again"
    r"|i(?:'ll| will) (?:always|never)|(?:after|before) (?:each|every))\b"
)
_SORRY = pattern(r"\b(?:sorry|(?:i )?apologi[sz]e|apologies|my (?:mistake|bad|fault|error))\b")
_RIGHT = pattern(
    r"\byou(?:'re| are) (?:\w+ )?right\b|\bfair (?:point|criticism|enough)\b|^understood\b"
)
PROMISE, SORRY, RIGHT, ABOUT_THE_PROGRAM = 2.5, 1.5, 0.5, -1.5

_WIDE_OWNED = re.compile(
    r"我(?:应该|应当|本应|本该)先?|我不(?:应该|应当|该)|我(?:忘了|忘记|漏了|遗漏|忽略了|误以为|擅自|假设)"
    r"|我(?:没有?|并没有|并未)先?(?:跑|运行|看|读|检查|确认|验证|测试|询?问)|(?:以后|今后|下次|接下来)我?会"
)
_WIDE_SORRY = re.compile(r"抱歉|对不起|不好意思|我的(?:错|疏忽|失误)")
_WIDE_RIGHT = re.compile(r"你说得?对|您说得?对|你是对的|您是对的|说得没错")


@dataclass(frozen=True, slots=True)
class Conceded:
    """How much an answer owns up to, and the lesson it draws."""

    weight: float = 0.0
    lesson: str = ""


def conceded(after: str) -> Conceded:
    """What an answer owns up to in its beginning."""
    text = after.partition("```")[0].replace("’", "'")
    if any(map(is_chinese, text)):
        return _conceded_wide(text.translate(TRADITIONAL))
    own = sorry = right = 0.0
    lesson = ""
    for count, one in enumerate(sentences(text)):
        if count >= MAX_SENTENCES:
            break
        sorry = SORRY if _SORRY.search(one.masked) else sorry
        right = RIGHT if _RIGHT.search(one.masked) else right
        here = _owned(one)
        own = max(own, here)
        if here > 0 and not lesson:
            lesson = _lesson(one)
    return Conceded(min(own + max(sorry, right), MAX), lesson)


def _owned(sentence: Sentence) -> float:
    if sentence.asks:
        return 0.0
    signs = tagged(_SORRY.sub("", sentence.masked)).signs
    found = max((weight for row, weight in OWNED if row.search(signs)), default=0.0)
    if _PROMISED.search(signs) and _AHEAD.search(sentence.masked):
        found = max(found, PROMISE)
    return max(0.0, found + ABOUT_THE_PROGRAM) if "T" in signs or "N" in signs else found


def _conceded_wide(text: str) -> Conceded:
    head = text[:400]
    own = 3.0 if _WIDE_OWNED.search(head) else 0.0
    sorry = SORRY if _WIDE_SORRY.search(head) else 0.0
    right = RIGHT if _WIDE_RIGHT.search(head) else 0.0
    return Conceded(min(own + max(sorry, right), MAX))


# The lesson

_REST = (
    r"(?P<rest>[^.,;:!?()\u2013\u2014]*?)"
    r"(?= (?:and|but|so|instead) (?:i|let|now|then)\b| from now on| going forward| next time"
    r"| in (?:the )?future|[.,;:!?()\u2013\u2014]|$)"
)
_TO_YOU = pattern(r"(?<=asking) you\b|(?<=ask) you\b|(?<=telling) you\b|\bmy (?=\w)")
# Steps that make work less safe: an answer alone never makes a rule of them.
_WEAKENS = pattern(
    r"^(?:skip|bypass|disable|ignore|silence|suppress|hide|trust|rely|delete|drop|kill|overwrite)\b"
)


def _step(found: re.Match[str]) -> str:
    base = stem(found["step"])
    return f"{base}{found['rest'].rstrip()}" if base else ""


def _never(found: re.Match[str]) -> str:
    said = _step(found)
    return f"do not {said}" if said else ""


_LESSONS = (
    (pattern(rf"\bi should(?:n't| not) have (?P<step>\w+){_REST}"), _never),
    (pattern(rf"\bi should(?: have|'ve) (?:first |also |actually )?(?P<step>\w+){_REST}"), _step),
    (pattern(rf"\bi (?:forgot|failed|neglected) to (?P<step>\w+){_REST}"), _step),
    (pattern(rf"\bi did(?:n't| not) (?:even |actually |first )?(?P<step>\w+){_REST}"), _step),
    (pattern(rf"\bi (?:just )?(?P<step>\w+)(?= [^.]* without \w+ing){_REST}"), _never),
)
_PROMISES = (
    (pattern(rf"\bi(?: won't| will not|'ll never) (?P<step>\w+){_REST}"), _never),
    (
        pattern(
            rf"\bi(?:'ll| will) (?:make sure to |be sure to |always |now )?(?P<step>\w+){_REST}"
        ),
        _step,
    ),
)


def _lesson(sentence: Sentence) -> str:
    """The rule that a sentence owns up to, where it is short and about steps alone."""
    forms = (*_LESSONS, *_PROMISES) if _AHEAD.search(sentence.masked) else _LESSONS
    said = _TO_YOU.sub("", first(forms, sentence.masked))
    said = re.sub(r"\byour\b", "the user's", said)
    few = 2 <= len(said.split()) <= MAX_WORDS
    return said if few and not PROGRAM.search(said) and not _WEAKENS.search(said) else ""


def carries(sentence: str, lesson: str, text: str) -> bool:
    """Whether what a person said carries a lesson: a word of it is theirs, and what is not does
    not outweigh the sentence that is quoted with it."""
    mine, theirs = content(lesson), content(text)
    return bool(mine & theirs) and len(mine - theirs) <= len(content(sentence))
