"""Whether what a pattern found can be a secret.

Three questions: is it random enough for its rule (entropy, strictly above the floor); is it
a placeholder; and, where only a name before it points to it, is it made of words. The allow
lists of gitleaks are kept in spirit: a value is excused as a whole or not at all. A remark
beside a secret (`gitleaks:allow`) excuses nothing, nor does the name of the file, nor a word
like "false" inside it.

A value is cut into words where the case changes and at every sign and number. A part counts as a
word when its pairs of neighbouring letters are those that words are made of, one in six letters
aside, and there is a vowel in it. No dictionary is known and nothing looked at but the value.

Whether what a rule of our own found is a secret, or a word that stands in its place.

A password is told from a name by how digits, signs and case are mixed in it: "required",
`config.password2` and `sha256` are none. One made of words alone passes for a name, but where
its place says what it is. It looks at nothing but the value.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from reverie.memory.secrets.own import SecretKind
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


_ASCII = re.compile("[!-~]*")
_STAND_IN = re.compile(
    r"""\W*(?:(?:your|my|the|some|new|old|db|user|admin|root|test|example|sample|default|strong
        |secure|super|secret|change|me|it|password|passwd|passwort|kennwort|pass|pwd|pw|token|key|here|goes
        |username|user|host|guest|postgres|mysql|redis|redacted|hidden|foo|bar|baz|dummy|fake|mock
        |placeholder|replace|todo|string|required|x+|\*+|\.+|…)[\W_]*)+\d{0,4}\W*""",
    re.IGNORECASE | re.VERBOSE,
)
# Words with a number that are no password: ciphers, digests, codings, standards.
_TERM = re.compile(
    r"(?:pbkdf2?|argon2?|bcrypt|scrypt|sha|md|aes|rsa|hs|rs|es|ed|utf|base|oauth|saml|totp|rfc"
    r"|iso|http|ipv|tls|ssl|owasp|python|node|web|log4|step|line|page|phase|level|option|type|version)"
    r"[-_]?\d[a-z0-9.:/-]{0,12}",
    re.IGNORECASE,
)
_SIGN = re.compile(r"[!#%^*?+&$@~=]")
_INVALID = re.compile(
    r"://|^[$@./~-]|^\w+\.\w+\.\w|\.(?:md|py|ts|js|json|ya?ml|txt|go|rs|sh|env)\b|::|->|&&"
)


def likely(kind: SecretKind, value: str) -> bool:
    """Whether this may be a secret of such a kind, and not a word that stands in its place."""
    if kind == "token":
        return not worded(value, 0.8) and not _STAND_IN.fullmatch(value)
    if kind == "address":
        user, _, password = value.replace("/", ":").rpartition(":")
        return password != user and not _STAND_IN.fullmatch(password) and password[0] not in "$%{<["
    found = _ASCII.match(value.strip("\"'`"))
    bare = found[0].rstrip(".,;:)") if found else ""
    if len(bare) < 6 or _STAND_IN.fullmatch(bare) or _INVALID.search(bare) or _TERM.fullmatch(bare):
        return False
    return _random(bare, strict=kind == "strict")


def _random(value: str, *, strict: bool) -> bool:
    """Whether digits, signs and case are mixed as in a password and not as in a name."""
    digit = any(sign.isdigit() for sign in value)
    letter = any(sign.isalpha() for sign in value)
    sign = bool(_SIGN.search(value.rstrip("!?")) or (digit and _SIGN.search(value)))
    mixed = value.lower() != value and value.upper() != value
    named = worded(value, 0.7)
    if not letter:
        return len(value) >= 6 and digit and not strict and value.isdigit()
    if digit and sign:
        return True
    if strict and len(value) < 8:
        return False
    if digit:
        parts = "_" in value or "-" in value or "." in value or "/" in value
        return not (named and parts) and (not strict or (mixed and not named))
    return not named and mixed and (sign or not strict) and len(set(value)) >= 6
