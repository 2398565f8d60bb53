"""English words brought to one form: Porter's algorithm, and the verbs and plurals it cannot know.

A stem is for comparing, never for showing. What is no lower-case English word comes back as it
is. Each word is worked out once.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

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
    if len(word) < 3 or not (word.isascii() and word.isalpha()):
        return word
    for step in (_plural, _past, _y, _long, _ending, _last_e):
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
