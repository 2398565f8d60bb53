"""Whether a text says again what was said before, also in other words.

Texts are compared by what they are about: words stemmed, common synonyms made one, function
words and the vocabulary of every memory ("the user prefers") left out, pairs of characters
where a script has no spaces. A `PassageIndex` holds texts as windows of a few sentences; a sentence
is found in them by the share of its content that one window holds, so that a long text does not
contain everything.

A candidate is an echo where nearly all its sentences stand in what was injected and the rest of
it is no news: nothing that the user said about the same subject. It compares content, not
meaning: what is said in another language, or with no word in common, is not found.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

from reverie.light import dataclass, pattern
from reverie.text.stems import stem
from reverie.text.tokens import terms

SHARE = 0.7
"""The part of a sentence's content that one window must hold for it to be said there."""
DENSE_SHARE = 0.55
"""The same for scripts without spaces, where other words change more of the pairs."""
NUMBERED = 0.5
"""The part of a sentence with numbers that one other sentence must hold for it to be said there."""
MAX_OF = 0.75
"""The part of a candidate that must be said again for it to be an echo."""
WINDOW = 3
SHORT = 40
"""Content words up to which a text also counts as one window."""
LOOKED_AT = 200_000
"""Characters of one text that are compared: its beginning and its end."""

# Words of one row mean the same here; the first stands for all.
_SAME = """
avoid never forbid forbidden refrain|deploy release ship rollout|delete remove drop erase
folder directory dir|database db|repository repo|configuration config setting settings
documentation docs doc|function func method|begin start|finish complete end|fix repair mend
bug defect|quick fast rapid|large big huge|small little tiny brief short concise
answer reply respond response|indentation indent|package dependency library|create make add
change modify alter edit
test spec|check verify confirm|show display|error failure|employ utilize|explain describe
question ask|boss manager|company firm|meeting call|afternoon pm|morning am
"""
_SYNONYMS = {
    stem(word): stem(row.split()[0])
    for row in _SAME.replace("\n", "|").split("|")
    for word in row.split()
}
_GENERIC = frozenset(
    stem(word)
    for word in """
    user users person people he she they prefers prefer likes want wants wish note notes memory
    remember reminder rule always use uses using used apply applies applied how why when whenever
    every feedback project reference fact type name description said says told asked work works
    working thing things way session conversation instead please should must need needs keep
    generally usually typically context previously recalled
    """.split()  # noqa: SIM905
)
_CHINESE = tuple(
    (word, row.split()[0])
    for row in (
        "不要 禁止 避免 切勿 请勿 不得 不许 不能 别再",
        "总是 始终 一律 永远 每次 一直",
        "删除 移除 去掉",
        "部署 发布 上线",
        "使用 采用 运用 改用",
        "喜欢 偏好 倾向于 倾向 更爱",
        "简短 简洁 简练",
        "缩进 缩排",
        "提交 上交",
    )
    for word in row.split()[1:]
)
_CHINESE_GENERIC = pattern("用户|使用者|喜欢|总是|使用|请|记住|记忆|偏好|希望|应该|需要|进行")
_NEGATION = pattern(
    r"\b(?:not|no|never|don'?t|doesn'?t|isn'?t|won'?t|can'?t|cannot|without|stop|avoid)\b|"
    r"n['’]t\b|不|没|别|勿|禁止|避免",
    re.IGNORECASE,
)
_END = pattern(r"(?<=[.!?;])\s+|(?<=[。！？；])|\n")
_MARKUP = pattern(r"^[\s>#*\-+\d.)\]]+|[*_`#]+")
_POINTER = pattern(r"\s*[-*+]\s+\[")


def content(text: str) -> frozenset[str]:
    """What a text is about."""
    if not text.isascii():
        for word, instead in _CHINESE:
            text = text.replace(word, instead)
        text = _CHINESE_GENERIC.sub(" ", text)
    found = {_SYNONYMS.get(term, term) for term in terms(text)}
    return frozenset(found - _GENERIC)


def negates(text: str) -> bool:
    return _NEGATION.search(text) is not None


def sentences(text: str) -> list[str]:
    """The sentences of a text, its markup off; of a long one the beginning and the end."""
    if len(text) > LOOKED_AT:
        half = LOOKED_AT // 2
        text = f"{text[:half]}\n{text[-half:]}"
    found = (_MARKUP.sub("", piece).strip() for piece in _END.split(text))
    return [piece for piece in found if piece]


@dataclass(frozen=True, slots=True)
class RepetitionMatch:
    """Where a sentence is said: the share of its content there, that place's, and whose it is."""

    share: float = 0.0
    found: frozenset[str] = frozenset()
    source: str = ""
    negated: bool = False


@dataclass(frozen=True, slots=True)
class _Sentence:
    terms: frozenset[str]
    source: str
    text: int  # which text it is of: windows do not reach over its end
    negated: bool
    alone: bool


class PassageIndex:
    """Texts to look sentences up in."""

    def __init__(self, texts: Iterable[tuple[str, str]] = ()) -> None:
        """`texts` are pairs of a source and a text."""
        self._sentences: list[_Sentence] = []
        self._places: dict[str, list[int]] = defaultdict(list)
        self._wholes: list[RepetitionMatch] = []
        for number, (source, text) in enumerate(texts):
            self._take(number, source, text)

    def _take(self, number: int, source: str, text: str) -> None:
        every: set[str] = set()
        listed = False
        for piece in _pieces(text):
            about = content(piece)
            if not about:
                continue
            alone = _POINTER.match(piece) is not None
            for term in about:
                self._places[term].append(len(self._sentences))
            self._sentences.append(_Sentence(about, source, number, negates(piece), alone))
            every |= about
            listed = listed or alone
        if 0 < len(every) <= SHORT and not listed:
            self._wholes.append(RepetitionMatch(1.0, frozenset(every), source, negates(text)))

    @property
    def every(self) -> frozenset[str]:
        """All that the texts are about."""
        return frozenset(self._places)

    def best(self, about: frozenset[str]) -> RepetitionMatch:
        """The window that holds most of this content."""
        if not about:
            return RepetitionMatch()
        held: dict[int, set[str]] = defaultdict(set)
        for term in about:
            for at in self._places.get(term, ()):
                for start in range(max(0, at - WINDOW + 1), at + 1):
                    if start == at or self._together(start, at):
                        held[start].add(term)
        best = max(held, key=lambda start: (len(held[start]), -start), default=None)
        match = RepetitionMatch() if best is None else self._window(best, about)
        for whole in self._wholes:
            share = len(about & whole.found) / len(about)
            if share > match.share:
                match = RepetitionMatch(share, whole.found, whole.source, whole.negated)
        return match

    def has_numbers(self, about: frozenset[str], news: frozenset[str]) -> bool:
        """Whether the numbers in this content stand in one sentence, with half of the rest, and
        what that sentence lacks is no news: the third of May and the fourth of June do not say
        the third of June."""
        numbers = frozenset(term for term in about if any(c.isdigit() for c in term))
        if not numbers:
            return True
        places = [frozenset(self._places.get(term, ())) for term in numbers]
        held = places[0].intersection(*places[1:])
        least = NUMBERED * len(about)
        said = (self._sentences[at].terms for at in held)
        return any(len(about & one) >= least and not (about - one) & news for one in said)

    def _together(self, start: int, at: int) -> bool:
        one = self._sentences[start]
        return one.text == self._sentences[at].text and not any(
            self._sentences[n].alone for n in range(start, at + 1)
        )

    def _window(self, start: int, about: frozenset[str]) -> RepetitionMatch:
        ends = range(start, min(start + WINDOW, len(self._sentences)))
        inside = [self._sentences[n] for n in ends if n == start or self._together(start, n)]
        found = frozenset[str]().union(*(one.terms for one in inside))
        share = len(about & found) / len(about)
        return RepetitionMatch(share, found, inside[0].source, any(one.negated for one in inside))


def _pieces(text: str) -> list[str]:
    """Sentences, but lines of an index as they are."""
    if "](" not in text:
        return sentences(text)
    found: list[str] = []
    for line in text[:LOOKED_AT].split("\n"):
        found += [line] if _POINTER.match(line) else sentences(line)
    return found


def is_said(about: frozenset[str], match: RepetitionMatch) -> bool:
    """Whether a match holds enough of a sentence for it to be said there."""
    dense = sum(not term.isascii() for term in about) * 2 > len(about)
    return match.share >= (DENSE_SHARE if dense else SHARE)


@dataclass(frozen=True, slots=True)
class Repetition:
    """Why a candidate says nothing new: the part of it that was injected, and by what."""

    share: float
    source: str


def echo(added: Sequence[str], injected: PassageIndex, heard: PassageIndex) -> Repetition | None:
    """Whether sentences only repeat what was injected; `heard` is what the user said since."""
    total = again = 0
    source = ""
    for sentence in added:
        about = content(sentence)
        if len(about) < 2:  # too little to tell
            continue
        total += len(about)
        match = injected.best(about)
        if not is_said(about, match) or not injected.has_numbers(about, heard.every):
            continue
        if _is_news(sentence, about, match, heard):
            return None
        again += len(about)
        source = source or match.source
    if not total or again / total < MAX_OF:
        return None
    return Repetition(again / total, source)


def _is_news(
    sentence: str, about: frozenset[str], match: RepetitionMatch, heard: PassageIndex
) -> bool:
    """Whether the user said something else about what was injected: another day, not any more."""
    said = heard.best(about)
    shared = about & said.found & match.found
    if not shared:
        return False
    turned = negates(sentence) != match.negated and negates(sentence) == said.negated
    return turned or bool((about - match.found) & said.found)
