"""Whether what a rule of our own found is a secret, or a word that stands in its place.

A password is told from a name by how digits, signs and case are mixed in it: "required",
`config.password2` and `sha256` are none. One made of words alone passes for a name, but where
its place says what it is. It looks at nothing but the value.
"""

from __future__ import annotations

import math
import re
from collections import Counter

from reverie.memory.secrets.places import SecretKind
from reverie.memory.secrets.worded import is_word, worded

_SEEN = re.compile("[!-~À-ɏ]*")
_UUID = re.compile("[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
# What a public key is known by.
_FINGERPRINT = re.compile("[0-9A-F]{16}|[0-9A-F]{40}")
_HEX = re.compile("(?:0x)?[0-9a-fA-F]{16,}")
_COOKIES = re.compile(r";\s*")
_GROUPS = re.compile(r"[\s,;/-]+")
_LETTERS = re.compile("[a-zA-Z]+")
# A call, an index, a type with parameters.
_CODE = re.compile(r"^[\w.]+[(\[]|^[(\[{].*[)\]}]$")
_WORDS_AND_NUMBER = re.compile(
    r"(?:\d{1,4}[-_]?)?[A-Za-z]{3,12}(?:[-_]?\d{0,4}[-_.][A-Za-z]{3,12}){1,4}[-_]?\d{0,4}[!?#$%&*]?"
)
_WORDS = re.compile(r"[a-z]{3,9}(?:-[a-z]{3,9}){3,6}")
SEED = 12
"""So many words make a wallet's phrase, or more."""
# Short words that are on no list of such words.
_NO_SEED = frozenset(("the", "and", "for", "with", "from", "are", "was", "not", "its", "has", "been"))
_ENDING = re.compile("(?:ed|ing|ly|ion|able|ment|ize|ise|ters|ers)$")
_PROSE = frozenset(
    (
        "the and for with from are was not must should your enter please see stored kept vault can "
        "never has its may which based only via file read generated into have been when then than "
        "per our you this that sent same also default empty optional needs least characters long "
        "any all too some but will does hash hashes user users set lost let say "
        "der die das und mit von ist nicht wird los las una con para por les des que est pas pour"
    ).split()
)
_STAND_IN = re.compile(
    r"""\W*(?:(?:your|my|the|some|new|old|db|user|admin|root|test|example|sample|default|strong
        |secure|super|secret|change|me|it|password|passwd|passwort|kennwort|pass|pwd|pw|token|key|here|goes
        |username|user|host|guest|postgres|mysql|redis|redacted|hidden|foo|bar|baz|dummy|fake|mock
        |placeholder|replace|todo|string|required|value|abc|def|xyz|123|1234567?8?9?0?|qwerty|hash|enc|auth|login|api|x+|\*+|\.+|…)[\W_]*)+\d{0,4}\W*""",
    re.IGNORECASE | re.VERBOSE,
)
# Words with a number that are no password: ciphers, digests, codings, standards.
_TERM = re.compile(
    r"(?:pbkdf2?|argon2?|bcrypt|scrypt|sha|md|aes|rsa|hs|rs|es|ed|utf|base|oauth|saml|totp|rfc"
    r"|iso|http|ipv|tls|ssl|owasp|python|node|web|log4|step|line|page|phase|level|option|type|version)"
    r"[-_]?\d[a-z0-9.:/-]{0,12}",
    re.IGNORECASE,
)
_PARTS = re.compile("[-_./]")
# A digit in the place of a letter, twice.
_LEET = re.compile("[A-Za-z][0-9][A-Za-z].*[A-Za-z][0-9][A-Za-z]")
# Where small letters follow large ones or large ones small.
_TURNS = re.compile("[a-z](?=[A-Z])|[A-Z](?=[a-z])")
_SIGN = re.compile(r"[!#%^*?+&$@~=]")
_INVALID = re.compile(
    r"://|^\$(?:\w*$|[{(])|^@[\w-]+$|^[./~-]|^(?i:sha|md)\d+[:-]|^(?:[0-9A-Fa-f]{2}:){4}|%[sdr(]|[$%{]\{|\$\(|\{\w*\}|^\w+\.\w+\.\w|\.(?:md|py|ts|js|json|ya?ml|txt|go|rs|sh|env)\b|::|->|&&"
)


def entropy(value: str) -> float:
    """Bits a character, by Shannon."""
    counts = Counter(value).values()
    return -sum(n / len(value) * math.log2(n / len(value)) for n in counts)


def likely(kind: SecretKind, value: str) -> bool:
    """Whether this may be a secret of such a kind, and not a word that stands in its place."""
    if kind == "token":
        return not worded(value, 0.8) and not _STAND_IN.fullmatch(value)
    if kind == "address":
        user, _, password = value.replace("/", ":").rpartition(":")
        return password != user and _alone(password)
    if kind == "alone":
        return _alone(value)
    if kind == "certain":
        return _certain(value.rstrip(".,;:)"))
    if kind == "cookie":
        return any(_long_key(part.partition("=")[2]) for part in _COOKIES.split(value))
    if kind == "groups":
        return _grouped(_GROUPS.split(value.lower()))
    if kind == "words":
        return _mnemonic(value.lower().split())
    found = _SEEN.match(value.strip("\"'`"))
    bare = found[0].rstrip(".,;:)*_") if found else ""
    if len(bare) < 6 or _STAND_IN.fullmatch(bare) or _INVALID.search(bare) or _TERM.fullmatch(bare):
        return False
    if _CODE.search(bare):
        return False
    if kind == "key":
        return _random_key(bare)
    if kind == "beside":
        short = len(bare) < 20 and (bare.lower() == bare or bare.upper() == bare)
        return _long_key(bare) and not short and not _UUID.fullmatch(bare)
    return _random(bare, strict=kind == "strict") or _phrase(bare)


def _random_key(value: str) -> bool:
    """Whether letters and digits follow each other as in no name."""
    if len(value) < 16:
        return len(value) >= 8 and _random(value, strict=True)
    return _long_key(value)


def _long_key(value: str) -> bool:
    if len(value) < 16 or _FINGERPRINT.fullmatch(value):
        return False
    if _HEX.fullmatch(value) or _UUID.fullmatch(value):
        return entropy(value) > 2.5
    digit = any(sign.isdigit() for sign in value)
    letter = any(sign.isalpha() for sign in value)
    if digit and letter:
        return entropy(value) > 3.0 and not worded(value, 0.6)
    mixed = value.lower() != value and value.upper() != value
    return mixed and len(value) >= 20 and entropy(value) > 3.5 and not worded(value, 0.4)


def _phrase(value: str) -> bool:
    """Whether it is a few words with a number behind them, or four words and no sentence."""
    if not _WORDS_AND_NUMBER.fullmatch(value) and not _WORDS.fullmatch(value):
        return False
    parts = _LETTERS.findall(value.lower())
    enough = _WORDS.fullmatch(value) or sum(sign.isdigit() for sign in value) > 1
    stands_in = _PROSE.intersection(parts) or any(map(_STAND_IN.fullmatch, parts))
    return bool(enough) and not stands_in


def _grouped(groups: list[str]) -> bool:
    """Whether most of the groups are no words."""
    odd = [group for group in groups if not is_word(group) and len(set(group)) > 1]
    return 2 * len(odd) >= len(groups) and len("".join(odd)) >= 8


def _mnemonic(words: list[str]) -> bool:
    """Whether the words are a row and no sentence."""
    if len(words) >= SEED:
        return not _NO_SEED.intersection(words)
    return not _PROSE.intersection(words) and not any(map(_ENDING.search, words))


def _alone(password: str) -> bool:
    return bool(password) and not _STAND_IN.fullmatch(password) and password[0] not in "$%{<["


def _certain(value: str) -> bool:
    """Whether it is a password wherever it stands."""
    if len(value) < 8 or _INVALID.search(value) or _CODE.search(value) or "=" in value[:-1]:
        return False
    mixed = value.lower() != value and value.upper() != value
    digit = any(sign.isdigit() for sign in value)
    return mixed and not worded(value, 0.7) and (digit or len(value) >= 10)


def _random(value: str, *, strict: bool) -> bool:
    """Whether digits, signs and case are mixed as in a password and not as in a name."""
    digits = sum(sign.isdigit() for sign in value)
    if digits == len(value):
        return not strict
    if not any(sign.isalpha() for sign in value):
        return False
    if digits and _SIGN.search(value):
        return True
    if strict and len(value) < 8:
        return False
    named = worded(value, 0.7)
    if digits:
        if _PARTS.search(value):
            mixed = value.lower() != value and digits > 1
            return bool(_LEET.search(value)) or (not named and (mixed or not strict))
        return not strict or digits > 1
    if named or len(set(value)) < 6:
        return False
    mixed = value.lower() != value and value.upper() != value
    if _SIGN.search(value.rstrip("!?")):
        return mixed
    return not strict and len(_TURNS.findall(value)) >= 4
