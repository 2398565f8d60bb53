"""The form that stands for a word and its inflections: for comparing, never for showing.

English by Porter's algorithm and the verbs and plurals it cannot know; Russian, told by its
letters, by the endings of its cases. A word of a German text has its English stem and, where that
is another, its German one: texts of the trade mix both languages, and "Server" is a word of either.
Whether a text is German is told by its umlauts and its small words. What is neither comes back as
it is. Each word is worked out once.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise

from reverie.light import pattern

_IRREGULAR = """
be am is are was were been being|become became|begin began begun|bite bit bitten|blow blew blown
break broke broken|bring brought|build built|buy bought|catch caught|choose chose chosen choice
come came|deal dealt|do did done does|draw drew drawn|drink drank drunk|drive drove driven
eat ate eaten|fall fell fallen|feed fed|feel felt|fight fought|find found|fly flew flown
forget forgot forgotten|forgive forgave forgiven|freeze froze frozen|get got gotten
give gave given|go went gone goes|grow grew grown|hang hung|have has had|hear heard|hide hid hidden
hold held|keep kept|know knew known|lead led|leave left|lend lent|lie lay lain|lose lost loss
make made|mean meant|meet met|pay paid|ride rode ridden|ring rang rung|rise rose risen
run ran|say said|see saw seen|seek sought|sell sold|send sent|shake shook shaken|shine shone
shoot shot|show shown|sing sang sung|sink sank sunk|sit sat|sleep slept|speak spoke spoken
spend spent|stand stood|steal stole stolen|stick stuck|strike struck|swim swam swum
take took taken|teach taught|tear tore torn|tell told|think thought|throw threw thrown
understand understood|wake woke woken|wear wore worn|win won|write wrote written
child children kid kids|foot feet|man men|mouse mice|person people|tooth teeth|wife wives
life lives|leaf leaves|knife knives|index indices indexes|vertex vertices|matrix matrices
datum data|criterion criteria|good better best|bad worse worst|mom mother|dad father
photo photograph picture|delete deletion|decide decision|divide division
"""
_FORMS = {
    form: row.split()[0]
    for line in _IRREGULAR.strip().splitlines()
    for row in line.split("|")
    for form in row.split()
}
_VOWELS = "aeiou"
_STEP_2 = (
    ("ational", "ate"), ("tional", "tion"), ("enci", "ence"), ("anci", "ance"), ("izer", "ize"),
    ("abli", "able"), ("alli", "al"), ("entli", "ent"), ("eli", "e"), ("ousli", "ous"),
    ("ization", "ize"), ("ation", "ate"), ("ator", "ate"), ("alism", "al"), ("iveness", "ive"),
    ("fulness", "ful"), ("ousness", "ous"), ("aliti", "al"), ("iviti", "ive"), ("biliti", "ble"),
    ("logi", "log"),
)  # fmt: skip
_STEP_3 = (
    ("icate", "ic"), ("ative", ""), ("alize", "al"), ("iciti", "ic"), ("ical", "ic"), ("ful", ""),
    ("ness", ""),
)  # fmt: skip
_STEP_4 = (
    "ement", "ance", "ence", "able", "ible", "ment", "ant", "ent", "ism", "ate", "iti", "ous",
    "ive", "ize", "ion", "al", "er", "ic", "ou",
)  # fmt: skip


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """The form that stands for a word and its inflections."""
    word = _FORMS.get(word, word)
    if len(word) < 3 or not word.isalpha():
        return word
    if not word.isascii():
        return _russian(word) if _CYRILLIC.fullmatch(word) else word
    for step in (_plural, _past, _y, _long, _ending, _y, _last_e):  # twice: deployment, deploy
        word = step(word)
    return word


def _consonant(word: str, at: int) -> bool:
    if word[at] in _VOWELS:
        return False
    return word[at] != "y" or at == 0 or not _consonant(word, at - 1)


def _measure(word: str) -> int:
    """How often a vowel is followed by a consonant."""
    kinds = [_consonant(word, n) for n in range(len(word))]
    return sum(now and not before for before, now in pairwise(kinds))


def _has_vowel(word: str) -> bool:
    return any(not _consonant(word, n) for n in range(len(word)))


def _is_double(word: str) -> bool:
    return len(word) > 1 and word[-1] == word[-2] and _consonant(word, len(word) - 1)


def _is_short(word: str) -> bool:
    """Whether it ends consonant, vowel, consonant: `hop`, not `snow`."""
    if len(word) < 3 or word[-1] in "wxy":
        return False
    last = len(word) - 1
    return _consonant(word, last) and not _consonant(word, last - 1) and _consonant(word, last - 2)


def _plural(word: str) -> str:
    if word.endswith("sses"):
        return word[:-2]
    if word.endswith("ies"):
        return word[:-2] if len(word) > 4 else word[:-1]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def _past(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) else word
    for ending in ("ed", "ing"):
        base = word.removesuffix(ending)
        if base == word or not _has_vowel(base):
            continue
        if base.endswith(("at", "bl", "iz")):
            return base + "e"
        if _is_double(base) and base[-1] not in "lsz":
            return base[:-1]
        return base + "e" if _measure(base) == 1 and _is_short(base) else base
    return word


def _y(word: str) -> str:
    return f"{word[:-1]}i" if word[-1] == "y" and len(word) > 2 and _has_vowel(word[:-1]) else word


def _long(word: str) -> str:
    for table in (_STEP_2, _STEP_3):
        for ending, instead in table:
            base = word.removesuffix(ending)
            if base != word:
                word = base + instead if _measure(base) else word
                break
    return word


def _ending(word: str) -> str:
    for ending in _STEP_4:
        base = word.removesuffix(ending)
        if base == word:
            continue
        fits = ending != "ion" or base.endswith(("s", "t"))
        return base if fits and _measure(base) > 1 else word
    return word


def _last_e(word: str) -> str:
    if word.endswith("e"):
        base = word[:-1]
        count = _measure(base)
        if count > 1 or (count == 1 and not _is_short(base)):
            word = base
    return word[:-1] if word.endswith("ll") and _measure(word[:-1]) > 1 else word


# Russian

_CYRILLIC = pattern("[а-яё]+")
_CASES = tuple(
    sorted(
        """
        иями ями ами иях ях ах ых их иям ям ам ием ем ом ией ей ой ий ый ие ые ое ее ого его ому
        ему ыми ими ым им ую юю ая яя ия ья ию ью ов ев а е и й о у ы ь ю я
        """.split(),  # noqa: SIM905
        key=len,
        reverse=True,
    )
)
_LEAST_RUSSIAN = 3


def _russian(word: str) -> str:
    word = word.replace("ё", "е")
    for ending in _CASES:
        if word.endswith(ending) and len(word) - len(ending) >= _LEAST_RUSSIAN:
            return word[: -len(ending)]
    return word


# German

GERMAN = frozenset(
    """
    aber alle als am auch auf aus bei beim bin bis da damit dann das dass dein dem den denn der des
    die diese dieser dieses doch du durch ein eine einem einen einer eines er es fur hat hatte habe
    haben ich ihr ihre im ist ja jede jeder jedes kann kein keine konnen man mein mir mit muss
    mussen nach nicht noch nur oder ob ohne sein seine sich sie sind so soll sollen uber um und uns
    unser unsere vom von vor wann warum war was wegen weil wenn wer werden wie wieder wir wird wo
    wurde wurden zu zum zur zwischen bitte brauche brauchen damals damit dich etwas euch eure geht
    gibt hier ihm ihn ihnen jetzt kannst konnte konnten mach machen mich mochte mochten muss musst
    schon sehr sollte sollten wenig welche welchem welchen welcher welches wohin woher wollen
    """.split()  # noqa: SIM905
)
"""German words that say nothing of what a text is about, without their accents."""
_EITHER = """
    alle als am bei bin da dass dem den des die du er es hat im ja man mit nur ob sein sie so um uns
    von vor war was wer wie wo
"""
_TELLING = GERMAN - frozenset(_EITHER.split())  # without what is a word or a name elsewhere
GERMAN_TERMS = GERMAN | frozenset(map(stem, GERMAN))
_UMLAUT = pattern("[äöüß]", re.IGNORECASE)
_ENOUGH = 2
_LOOKED_AT = 2_000
_GERMAN_ENDS = ("ern", "em", "en", "er", "es", "e")
_GERMAN_S = "bdfghklmnrt"  # letters that an -s of the genitive follows
_LEAST_GERMAN = 4


def is_german(text: str) -> bool:
    """Whether a text, or its beginning, is German."""
    seen = text[:_LOOKED_AT]
    count = len(_TELLING.intersection(seen.lower().split()))
    return count >= _ENOUGH or (not seen.isascii() and _UMLAUT.search(seen) is not None)


@lru_cache(maxsize=1 << 14)
def german(word: str) -> str:
    """The form of a German word, given without its accents: endings off, one after the other, and
    what a participle begins with (gespeichert, speichern, Speicher)."""
    if word.startswith("ge") and word.endswith(("t", "en")) and len(word) > 2 * _LEAST_GERMAN:
        return german(word[2:])
    for ending in _GERMAN_ENDS:
        if word.endswith(ending) and len(word) - len(ending) >= _LEAST_GERMAN:
            return german(word[: -len(ending)])
    genitive = word[-1:] == "s" and word[-2:-1] in _GERMAN_S and len(word) > _LEAST_GERMAN
    verb = word[-1:] == "t" and len(word) > _LEAST_GERMAN + 1
    return german(word[:-1]) if genitive or verb else word
