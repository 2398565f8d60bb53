"""Whether a word is a password wherever it stands, as long as one is spoken of near it.

Nothing has to join it to what names it, so it holds in languages no rule knows, in calls, in
columns, and in the line after. For that the word alone must leave no doubt: letters, digits and
signs as no name, number, address, path or ticket has them. It looks at nothing but the word.
"""

from __future__ import annotations

from collections.abc import Iterator

from reverie.light import pattern
from reverie.memory.secrets.worded import worded

LONGEST = 64
_WORD = pattern(r"""[!#-&*+./0-9:=?@A-Z\\^_a-z~-]+""")
_GOES_ON = pattern(r"[A-Za-z0-9+/][A-Za-z0-9+/]")
_ENDS = ".:*_"
_ASCII = pattern("[!-~]+")
# An address, a path, a setting, an option, a variable, a name of code, a digest, a time or date.
_OTHER = pattern(
    r"://|/|\\|^[a-z_.-]+=.|\$\$|^[-@.~$%#]|@[\w-]+\.\w|^\w+\.\w|::|->|&|\$\{|%\w*%|:\w"
    r"|%(?:2[0-9A-F]|3[A-F]|40|5[B-E]|[C-E][0-9A-F])|^(?i:sha|md5|rfc|iso|utf)"
    r"|^[A-Z]{2,10}-\d|\d{4}-\d\d|^\d+(?:\D{0,3}|[.:x]\d.*)$"
)
# Words and a number that is closed by a sign, or signs in the middle of letters and digits.
_WORDS_NUMBER_SIGN = pattern(r"(?:[A-Z][a-z]{2,11}){1,3}\d{2,6}[!#%^*?+$@~=_-]{1,3}")
_PHRASE = pattern(r"[A-Za-z][a-z]{2,9}(?:[-_.][A-Za-z][a-z]{2,9}){3,5}\d{2,4}")
_MIDDLE_SIGN = pattern(r"[A-Za-z0-9][!#%^*?+$@~=&_-]{1,3}[A-Za-z0-9]")
_STRONG_SIGN = pattern(r"[!#%^*?+$@~=]")
_SUM = pattern(r"[*+=-]\d+$")  # `length*2+1`
_BETWEEN = pattern(r"[A-Za-z]\d+[A-Za-z]")
_JOINTS = pattern("[-_]")
_TURNS = pattern("[a-z](?=[A-Z])|[A-Z](?=[a-z])|[A-Za-z](?=[0-9])|[0-9](?=[A-Za-z])")


def words(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Where each word that begins in a stretch is, with and without what may only close it."""
    if _GOES_ON.match(text, max(0, start - 1), end):
        found = _WORD.match(text, start, end)
        start = found.end() if found else start
    for found in _WORD.finditer(text, start, end):
        for word in dict.fromkeys((found[0], found[0].rstrip(_ENDS))):
            yield found.start(), found.start() + len(word)


def certain(word: str) -> bool:
    """Whether it can hardly be anything but a password."""
    if not 8 <= len(word) <= LONGEST or not _ASCII.fullmatch(word) or _OTHER.search(word):
        return False
    digits = sum(sign.isdigit() for sign in word)
    if not digits or not any(sign.isalpha() for sign in word):
        return False
    if _WORDS_NUMBER_SIGN.fullmatch(word) or _PHRASE.fullmatch(word):
        return True
    if _STRONG_SIGN.search(word.rstrip("!?")):
        return _signed(word)
    return _drawn(word)


def _signed(word: str) -> bool:
    """A sign among letters and digits: the case must change, or digits stand within words."""
    mixed = word.lower() != word and word.upper() != word
    if not mixed:
        return bool(_BETWEEN.search(word)) and not worded(word, 0.7)
    sums = _SUM.search(word) is not None
    return not worded(word, 0.7) or (bool(_MIDDLE_SIGN.search(word)) and not sums)


def _drawn(word: str) -> bool:
    """No sign: long, and case and digits change as they do in no name."""
    word = _JOINTS.sub("", word.rstrip("!?"))
    if len(word) < 12 or not word.isalnum() or word.lower() == word or word.upper() == word:
        return False
    return len(_TURNS.findall(word)) >= 5 and not worded(word, 0.5)
