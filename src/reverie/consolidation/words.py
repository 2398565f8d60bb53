"""Words as the judge of a dream compares them; and what tells one thing from another of its kind.

A noun and the id beside it are one subject: "Room 3", "Crane two", "ticket 4411", "customer Adler",
"the third shift", "Raum B", "3号机". Two statements that name one noun with two ids are about two
things. A number with a unit behind it is an amount ("lifts 40 tonnes") unless its noun begins the
sentence, and a date or a time is no id. In doubt there is an id, and both statements stay.

The measure is the judge's own: what makes repairs has another.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from reverie.text.dates import NUMBER_WORDS, WEEKDAYS
from reverie.text.safety import strip
from reverie.text.stems import GERMAN, stem
from reverie.text.tokens import DENIALS, SMALL


def _listed(words: str) -> frozenset[str]:
    return frozenset(words.split())


OTHER_WORDS = 0.6
"""Share of the content words of each of two sentences that the other has, where they say the same:
of 17 near-duplicates and 8 rewordings in `tests/memory/test_facts.py` it keeps all apart."""
_MARK = re.compile(r"[*_`~]+(?=\S)|(?<=\S)[*_`~]+|\s{0,2}\(passed\)")
_LINK = re.compile(r"\]\((?![A-Za-z][\w+.-]*:)[^()\s]*\.md(?:#[^()\s]*)?\)")
_WORD = re.compile(
    "[\u2e80-\u2fff\u3005-\u3007\u3040-\u9fff\uac00-\ud7af]"
    r"|[-+±~≈<>≤≥$€£¥]?\d[\d.,:/]*(?<=\d)[%‰°]?"
    "|[^\\W\u2e80-\u9fff\uac00-\ud7af\u3040-\u30ff]+"
)
TURNS = _listed(
    """not no never none neither nor without cannot nothing nobody nowhere unless except until
    formerly previously longer stop stopped avoid instead rather outdated obsolete wrong false t
    don doesn didn isn aren wasn weren won wouldn shouldn mustn hasn haven hadn couldn nicht kein
    keine keinen keinem keiner keines nie niemals ohne außer weder früher ehemals statt falsch 不 没
    無 无 未 勿 别 非 禁 除 曾"""
)
"""Words that turn the sentence they stand in."""
JOINTS = _listed("a an the of to in on at by for and or is are was be der die das 的")


def words_of(text: str) -> list[str]:
    """Return the words of a text as the judge compares them, numbers with their signs."""
    return [word.lower() for word in _WORD.findall(_seen(text))]


def _seen(text: str) -> str:
    return unicodedata.normalize("NFKC", strip(_LINK.sub("] ", _MARK.sub("", text))))


def same_in_other_words(one: str, other: str) -> bool:
    """Whether two sentences have the same numbers, names, denials and most content words, and no
    word of one stands in the place of a word of the other."""
    a, b = _content(one), _content(other)
    mine, theirs = set(a), set(b)
    if tells_apart(one, other) or _values(one) != _values(other):
        return False
    names = set(_capitals(one)) & set(_capitals(other))  # in their order: who reports to whom
    if [w for w in _capitals(one) if w in names] != [w for w in _capitals(other) if w in names]:
        return False
    if _places(a, theirs) & _places(b, mine):
        return False
    return len(mine & theirs) >= OTHER_WORDS * max(len(mine), len(theirs), 1)


def _content(text: str) -> list[str]:
    small = SMALL | JOINTS | TURNS
    return [stem(word) for word in words_of(text) if word not in small]


def _values(text: str) -> frozenset[str]:
    """What must be the same: numbers in digits or words, weekdays, names of code, denials."""
    words = words_of(text)
    counted = (str(NUMBER_WORDS[word]) for word in words if word in NUMBER_WORDS)
    days = (f"day {WEEKDAYS[word]}" for word in words if word in WEEKDAYS)
    signs = (word for word in words if "_" in word or word[-1].isdigit() or word[-1] in "%‰°")
    turns = ("not",) if TURNS.intersection(words) else ()
    return frozenset((*counted, *days, *signs, *turns))


def _capitals(text: str) -> list[str]:
    words = (word for word in _WORD.findall(_seen(text)) if word[0].isupper())
    return [word.lower() for word in words if word.lower() not in WEEKDAYS]


def _places(words: Sequence[str], shared: set[str]) -> set[tuple[str, str]]:
    """Between which shared words something stands that the other does not say."""
    found: set[tuple[str, str]] = set()
    left, inside = "", False
    for word in (*words, ""):
        if word and word not in shared:
            inside = True
            continue
        if inside:
            found.add((left, word))
        left, inside = word, False
    return found


# Subjects and their ids

SubjectId: TypeAlias = tuple[str, str]

_ID_TOKEN = re.compile(
    r"[#№]?[^\W\u2e80-\u9fff\uac00-\ud7af](?:[^\W\u2e80-\u9fff\uac00-\ud7af]|[.@+/:'’-](?=\w))*"
)
_DATE = re.compile(r"\d{4}[-/.]\d\d?|\d\d?:\d\d|\d\d?\.\d\d?\.\d{2,4}\Z")
_ROMAN = re.compile(r"(?:II|III|IV|VI{1,3}|IX|XI{0,3})\Z")
_ORDINAL = re.compile(
    r"(?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|\d+(?:st|nd|rd|th)"
    r"|(?:erst|zweit|dritt|viert|fünft|sechst|siebt|acht|neunt|zehnt)e[rnms]?"
    r"|premi(?:er|ère)|deuxième|troisième|quatrième|cinquième"
    r"|primer[oa]?|segund[oa]|tercer[oa]?|cuart[oa]|quint[oa])\Z"
)
_COUNTED = _listed(
    "uno dos tres cuatro cinco seis siete ocho nueve diez deux trois quatre cinq sept huit neuf dix"
)
_ARTICLES = _listed("the der die das dem den des le la les el los las l")
_SMALL_WORDS = (
    SMALL
    | GERMAN
    | DENIALS
    | _ARTICLES
    | WEEKDAYS.keys()
    | _listed(
        """de du des du un une uno una al del en y et e con por para sur dans est es son tiene
        january february march april may june july august september october november december
        januar februar
    märz mai juni juli oktober dezember enero febrero marzo abril mayo junio julio agosto
    septiembre octubre noviembre diciembre janvier février mars avril juin juillet août septembre
    octobre novembre décembre until till before after around nearly almost least then now today
    approx exactly"""
    )
)
_KINDS = _listed(
    """account client cluster contract crane customer database device environment floor gateway
    group host house instance machine module node office partner plant platform project queue region
    release repository room server service shop site store supplier system team tenant vendor
    version warehouse kunde kundin lieferant standort filiale lager werk anlage maschine dienst
    projekt mandant abteilung cliente proveedor almacén servidor servicio proyecto equipo tienda
    planta fournisseur entrepôt serveur projet équipe magasin usine"""
)
"""Nouns before which a name is told as an id: "customer Adler"; "ask Pavel" names nobody's kind."""
_KIND_STEMS = frozenset(map(stem, _KINDS))
_PARTS = re.compile(
    r"(?:step|phase|layer|pr|section|part|chapter|tier|level|round|option|issue|line|case|example|"
    r"rule|task|item|row|column|figur|tabl|type|stage|plan|objectiv|method|pattern|strategi|"
    r"approach|scenario|test)s?\Z"
)
"""Nouns whose number only counts, by their stems."""
_WIDE_NUMBER = r"(?:\d+|[一二三四五六七八九十百两]+|[A-Z]\d*)"
_WIDE = re.compile(
    rf"第?(?P<before>{_WIDE_NUMBER})(?P<unit>[号號室楼樓层階期班组区台版章番组線线])"
    rf"|(?P<noun>[\u3040-\u9fff]{{1,2}})[ ]?(?P<behind>\d+|[A-Z]\d*)"
    r"(?![\d.:%年月日天个個人名次位条件只点時时分秒周週元円万千百小本枚ヶか吨噸公米升度岁歳倍杯冊册张張])"
)


def subject_ids(text: str) -> frozenset[SubjectId]:
    """Return every (noun, id) pair that a sentence names."""
    return frozenset((noun, name) for noun, name, _ in _found(text))


def closing_id(text: str) -> SubjectId | None:
    """Return the pair that ends a sentence: what it says of its subject, where one does."""
    bare = text.rstrip(" .!?。！？)*`”\"'")
    last = [(noun, name) for noun, name, end in _found(text) if end >= len(bare)]
    return last[-1] if last else None


def tells_apart(one: str, other: str) -> bool:
    """Whether two sentences name one noun, each with an id that the other does not give it."""
    return _conflict(subject_ids(one), subject_ids(other))


def have_two_subjects(one: str, other: str) -> bool:
    """Whether two sentences surely speak of two things: the noun with another id begins them, or
    is one of a kind of which there are many, and is not what they say at their end."""
    return _conflict(_sure(one), _sure(other))


def _conflict(mine: frozenset[SubjectId], theirs: frozenset[SubjectId]) -> bool:
    return bool({noun for noun, _ in mine - theirs} & {noun for noun, _ in theirs - mine})


def _sure(text: str) -> frozenset[SubjectId]:
    begins = next((stem(word.lower()) for word in _ID_TOKEN.findall(text) if _is_noun(word)), "")
    wide = {(hit["unit"] or hit["noun"]) for hit in _WIDE.finditer(text)}
    nouns, ends = _KIND_STEMS | wide | {begins}, closing_id(text)
    return frozenset(
        one
        for one in subject_ids(text)
        if _PARTS.match(one[0]) or (one[0] in nouns and one != ends)
    )


def _found(text: str) -> Iterator[tuple[str, str, int]]:
    for hit in _WIDE.finditer(text):
        if hit["unit"]:
            yield hit["unit"], hit["before"], hit.end()
        else:
            yield hit["noun"], hit["behind"], hit.end()
    words = list(_ID_TOKEN.finditer(text))
    content = [n for n, word in enumerate(words) if _is_noun(word[0])]
    first = content[0] if content else -1
    for n, word in enumerate(words):
        said = word[0]
        if n and _is_noun(words[n - 1][0]) and _adjacent(text, words[n - 1], word):
            noun = stem(words[n - 1][0].lower())
            unit = n + 1 < len(words) and _is_unit(text, word, words[n + 1])
            if _is_name(said) and words[n - 1][0].lower() in _KINDS:
                yield noun, said.lower(), word.end()
            elif _is_label(said) or (_is_number(said) and (n - 1 == first or not unit)):
                yield noun, said.lstrip("#№").lower(), word.end()
        if n + 1 < len(words) and _is_noun(words[n + 1][0]):
            after = words[n + 1]
            named = n and words[n - 1][0].lower() in _ARTICLES and after[0].islower()
            if _adjacent(text, word, after) and (
                _ORDINAL.match(said.lower()) or (named and _is_name(said))
            ):
                yield stem(after[0].lower()), said.lower(), after.end()


def _is_noun(word: str) -> bool:
    low = word.lower()
    counted = low in NUMBER_WORDS or low in _COUNTED or _ORDINAL.match(low) is not None
    return len(word) > 1 and word.isalpha() and low not in _SMALL_WORDS and not counted


def _adjacent(text: str, one: re.Match[str], other: re.Match[str]) -> bool:
    return not text[one.end() : other.start()].strip(" \t\n-–`*_\"'“”’")


def _is_unit(text: str, number: re.Match[str], after: re.Match[str]) -> bool:
    return after[0].lower() not in _SMALL_WORDS and _adjacent(text, number, after)


def _is_number(word: str) -> bool:
    low = word.lower()
    if low in NUMBER_WORDS or low in _COUNTED:
        return low not in ("ein", "eine")
    return any(map(str.isdigit, word)) and not _DATE.match(word)


def _is_label(word: str) -> bool:
    """A letter or a Roman number: Room B, Stage IV; a number sign with what follows."""
    single = len(word) == 1 and word.isupper() and word != "I"
    return single or _ROMAN.match(word) is not None or word[0] in "#№"


def _is_name(word: str) -> bool:
    return len(word) > 1 and word[0].isupper() and word.lower() not in _SMALL_WORDS
