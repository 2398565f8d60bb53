"""Whether what a pattern found can be a secret.

Three questions: is it random enough for its rule (entropy, strictly above the floor); is it
a placeholder; and, where only a name before it points to it, is it made of words. The allow
lists of gitleaks are kept in spirit: a value is excused as a whole or not at all. A remark
beside a secret (`gitleaks:allow`) excuses nothing, nor does the name of the file, nor a word
like "false" inside it.

A value is cut into words where the case changes and at every sign and number. A part counts as a
word when its pairs of neighbouring letters are those that words are made of, one in six letters
aside, and there is a vowel in it. No dictionary is known and nothing looked at but the value.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from reverie.memory.secrets.likely import likely
from reverie.memory.secrets.patterns import MatchSpan, SecretRule

# After each letter the letters that often follow it, in English and in names of code.
_PAIRS = (
    "abcdefgiklmnprstuvwxyz babceijlmorstuy cacehiklorstuy dabcdegilmnoprsuvwy "
    "eabcdefghijklmnopqrstuvwxy faefilorstuy gaeghilnorsuy haeilmorstuy iabcdefgklmnoprstvxz "
    "jeou kaefilnpstuwy labcdefiklmopstuvy mabefilmopsuy nacdefghijklmnoprstuvy "
    "oabcdefghijklmnoprstuvwxyz padefghiloprstuy qu rabcdefghiklmnoprstuvwy sacefhiklmnopqstuwy "
    "tacdefhilmnorstuwy uabcdefgilmnoprst vaeio waehilnors xaceipt yabceilmnopstwz zaeio"
)
_FOLLOWS = {letters[0]: frozenset(letters[1:]) for letters in _PAIRS.split()}
_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
_UNLIKELY = re.compile(r"(.)\1\1|[^aeiouy]{5}")
_VOWEL = re.compile(r"[aeiouy]")


def worded(value: str, share: float) -> bool:
    """Whether this share of its letters belongs to words, numbers between them left aside."""
    words = noise = 0
    for part, apart, after_word in _parts(value):
        if _is_word(part):
            words += len(part)
        elif not (_is_number(part) and (apart or after_word)) and not (apart and len(part) < 3):
            noise += len(part)
    return words >= 4 and words >= share * (words + noise)


def _parts(value: str) -> Iterator[tuple[str, bool, bool]]:
    """Each part, whether signs or ends are on both sides of it, and whether a word is before it."""
    last, word = -1, False
    for found in _PART.finditer(value):
        start, end = found.span()
        before = start != last
        after = end == len(value) or not value[end].isalnum()
        yield found[0], before and after, word and not before
        last, word = end, _is_word(found[0])


def _is_number(part: str) -> bool:
    return part.isdigit() and len(part) <= 4


def _is_word(part: str) -> bool:
    word = part.lower()
    if len(word) < 3 or not word.isalpha() or not _VOWEL.search(word) or _UNLIKELY.search(word):
        return False
    rare = sum(after not in _FOLLOWS[one] for one, after in pairwise(word))
    return rare <= len(word) // 6


_PLACEHOLDER = re.compile(
    r"""true|false|null|none|undefined
    | (.)\1{2,}
    | \$\d+ | \$\{?\w+\}? | \$\{\{.*\}\} | \{\{.*\}\} | %\w+% | @\w+@ | \{\w{0,40}\} | <[^<>]*>
    | /(?:bin|etc|home|opt|tmp|usr|var|Users)/[\w ./-]+
    """,
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
_EXAMPLE = re.compile(r".+EXAMPLE", re.DOTALL)
# What is named so is no secret: a column, an index, the public half, a count, a name or path.
_NO_SECRET = re.compile(
    r"""(?:bucket|cache|dedup|dict|foreign|hot|idempotency|index|lookup|map|natural|partition
        |primary|pub(?:lic)?|routing|schema|sequence|shard|sort|unique)[ _.-]?keys?\b
    | access(?:ibility|or) | author(?!iz) | api[ _.-]?(?:name|version)
    | key[ _.-]?(?:board|code|frame|id|name|press|ring|stone|stroke|word)
    | (?:credentials?|token)[ _.-]?(?:id|count|limit|budget|type)\b
    | (?:auth|key|token)[ _.-]?(?:dir|docs?|endpoint|file|path|url)\b | tokeni[sz]""",
    re.IGNORECASE | re.VERBOSE,
)
# The words and the identifier that stand right before the part of a name that was matched.
_BEFORE = re.compile(r"(?:\w{1,20}[ ])?[\w.-]{0,30}\Z")

MOSTLY = 0.7
"""The share of words that excuses what any name of a secret may stand before."""
WHOLLY = 0.9
"""The share that excuses what the name of a product stands before."""

PARTLY = 0.4
"""The share that excuses the name of a function that is called."""

# Their shape alone would fit a word after "Bearer", prose about PEM, or a method (`s.readLine`).
_OPEN = {"curl-auth-header": WHOLLY, "private-key": WHOLLY, "vault-service-token": MOSTLY}


def entropy(value: str) -> float:
    """Bits a character, by Shannon."""
    counts = Counter(value).values()
    return -sum(n / len(value) * math.log2(n / len(value)) for n in counts)


def plausible(rule: SecretRule, text: str, match: MatchSpan, secret: MatchSpan) -> bool:
    """Whether what this rule matched in the text is to be taken for a secret."""
    value = text[slice(*secret)]
    if not value or (rule.floor and entropy(value) <= rule.floor):
        return False
    bare = value.strip("\"'`")
    if _PLACEHOLDER.fullmatch(bare):
        return False
    if rule.kind:
        return likely(rule.kind, bare)
    if rule.id == "aws-access-token":
        return not _EXAMPLE.fullmatch(bare)
    if rule.id == "curl-auth-user":
        return not _stand_in(bare)
    if rule.id == "generic-api-key":
        called = text[secret[1] : secret[1] + 1] == "("
        named = _NO_SECRET.search(_name(text, match[0], secret[0]))
        return not named and not worded(bare, PARTLY if called else MOSTLY)
    if rule.named or rule.id in _OPEN:
        return not worded(bare, _OPEN.get(rule.id, WHOLLY))
    return True


def _name(text: str, start: int, end: int) -> str:
    """What the value is called: the match up to it, and what belongs to that before it."""
    before = _BEFORE.search(text[max(0, start - 60) : start])
    return (before[0] if before else "") + text[start:end]


_STAND_INS = re.compile(
    r"change(?:it|me)|pass(?:word|wd)?|pwd|secret|token|test|user(?:name)?|example|x+|\*+|\.+",
    re.IGNORECASE,
)


def _stand_in(pair: str) -> bool:
    """Whether the second half of `user:password` only says what should stand there."""
    password = pair.partition(":")[2].strip("\"'")
    whole = _STAND_INS.fullmatch(password) or _PLACEHOLDER.fullmatch(password)
    return bool(whole) or (password.startswith("[") and password.endswith("]"))
