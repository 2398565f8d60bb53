"""Whether a match can be a secret, or is a word that only stands in its place.

A password is told from a name by how digits, signs and case are mixed in it: "required",
`config.password2` and `sha256` are none. One made of words alone passes for a name, but where
its place says what it is. It looks at nothing but the value.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator

from reverie.light import pattern
from reverie.secrets.names import (
    SecretKind,
    is_mostly_words,
    is_word,
    labels_no_secret,
    names_an_id,
    names_bare_key,
    names_no_secret,
    one_byte_each,
)
from reverie.secrets.patterns import MatchSpan, SecretRule, compile_pattern

SEED = 12
"""So many words make a wallet's phrase, or more."""

_SEEN = pattern("[!-~À-ɏ]*")
_UUID = pattern("[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
# What a public key is known by.
_FINGERPRINT = pattern("[0-9A-F]{16}|[0-9A-F]{40}")
_HEX = pattern("(?:0x)?[0-9a-fA-F]{16,}")
_BEGINNING = pattern("^[A-Za-z0-9]+[_-]")
# A digest, or a name with a date or an id in it.
_DIGEST = pattern(r"^(?i:sha|md)\d|\d{4}-\d\d|[0-9a-f]{4}-[0-9a-f]{4}-")
_COOKIES = pattern(r";\s*")
_GROUPS = pattern(r"[\s,;/-]+")
_LETTERS = pattern("[a-zA-Z]+")
# A call, an index, a type with parameters.
_CODE = pattern(r"^[\w.]+[(\[]|^[(\[{].*[)\]}]$")
_WORDS_AND_NUMBER = pattern(
    r"(?:\d{1,4}[-_]?)?[A-Za-z]{3,12}(?:[-_]?\d{0,4}[-_.][A-Za-z]{3,12}){1,4}[-_]?\d{0,4}[!?#$%&*]?"
)
_WORD_AND_NUMBER = pattern(r"[A-Z][A-Za-z0-9]{3,12}[-_]?\d{2,4}[-_]?")
_WORDS = pattern(r"[a-z]{3,9}(?:-[a-z]{3,9}){3,6}")
# Short words that are on no list of words for wallets.
_NO_SEED = frozenset(re.findall(r"\w+", "the and for with from are was not its has been"))
# Words of a sentence, and their endings.
_ENDING = pattern("(?:ed|ing|ly|ion|able|ment|ize|ise|ters|ers)$")
_PROSE = frozenset(
    re.findall(
        r"\w+",
        "the and for with from are was not must should your enter please see stored kept vault can "
        "never has its may which based only via file read generated into have been when then than "
        "per our you this that sent same also default empty optional needs least characters long "
        "any all too some but will does hash hashes user users set lost let say "
        "der die das und mit von ist nicht wird los las una con para por les des que est pas pour",
    )
)
# Words that say what should stand there. In RE2: what may be repeated here would take `re` long.
_STAND_IN = (
    r"(?i)^\W*(?:(?:your|my|the|some|new|old|db|user|admin|root|test|example|sample|default|strong"
    r"|secure|super|secret|change|me|it|password|passwd|passwort|kennwort|pass|pwd|pw|token|key"
    r"|here|goes|username|host|guest|postgres|mysql|redis|redacted|hidden|foo|bar|baz|dummy|fake"
    r"|mock|placeholder|replace|todo|string|required|value|abc|def|xyz|123|1234567?8?9?0?|qwerty"
    r"|hash|enc|auth|login|api|x+|1password|keepass\w{0,2}|lastpass|bitwarden|vault)[\W_]*)+"
    r"\d{0,4}\W*$|^\W+$"
)
# Words with a number that are no password: ciphers, digests, codings, standards.
_TERM = pattern(
    r"(?:pbkdf2?|argon2?|bcrypt|scrypt|sha|md|aes|rsa|hs|rs|es|ed|utf|base|oauth|saml|totp|rfc|iso"
    r"|http|ipv|tls|ssl|owasp|python|node|web|log4|step|line|page|phase|level|option|type|version)"
    r"[-_]?\d[a-z0-9.:/-]{0,12}",
    re.IGNORECASE,
)
_PARTS = pattern("[-_./]")
# A digit in the place of a letter, twice.
_LEET = pattern("[A-Za-z][0-9][A-Za-z].*[A-Za-z][0-9][A-Za-z]")
# Where small letters follow large ones or large ones small.
_TURNS = pattern("[a-z](?=[A-Z])|[A-Z](?=[a-z])")
_SIGN = pattern(r"[!#%^*?+&$@~=]")
# An address, a variable, a path or file, a digest, a template, a name of code.
_INVALID = pattern(
    r"://|^\$(?:\w*$|[{(])|^@[\w-]+$|^[.~-]|^/(?![A-Za-z0-9+/]{30}[A-Za-z0-9+/=]+$)"
    r"|^(?i:sha|md)\d+[:-]|^(?:[0-9A-Fa-f]{2}:){4}|^%[sdr]|%\(\w"
    r"|[$%{]\{|\$\(|\{\w*\}|^\w+\.\w+\.\w|\.(?:md|py|ts|js|json|ya?ml|txt|go|rs|sh|env)\b"
    r"|::|->|&&|^[a-z_.-]+=[\d.]+$"
)


def entropy(value: str) -> float:
    """Bits a character, by Shannon."""
    counts = Counter(value).values()
    return -sum(n / len(value) * math.log2(n / len(value)) for n in counts)


def likely(kind: SecretKind, value: str) -> bool:
    """Whether this may be a secret of such a kind, and not a word that stands in its place."""
    if kind in _AS_IT_STANDS:
        return _AS_IT_STANDS[kind](value)
    found = _SEEN.match(value.strip("\"'`"))
    bare = found[0].rstrip(".,;:)*_") if found else ""
    if len(bare) < 6 or _stands_in(bare) or _TERM.fullmatch(bare):
        return False
    if _INVALID.search(bare) or _CODE.search(bare):
        return False
    return _NAMED[kind](bare)


def _stands_in(value: str) -> bool:
    return compile_pattern(_STAND_IN).search(one_byte_each(value)) is not None


# -- values that are judged as they stand --------------------------------------------


def _token(value: str) -> bool:
    return not is_mostly_words(value, 0.8) and not _stands_in(value)


def _login(value: str) -> bool:
    user, _, password = value.replace("/", ":").rpartition(":")
    return password != user and _alone(password)


def _alone(password: str) -> bool:
    return bool(password) and not _stands_in(password) and password[0] not in "$%{<["


def _cookie(value: str) -> bool:
    return any(_lone_key(part.partition("=")[2]) for part in _COOKIES.split(value))


def _has_odd_groups(value: str) -> bool:
    """Whether half of the groups or more are no words."""
    groups = _GROUPS.split(value.lower())
    odd = [group for group in groups if not is_word(group) and len(set(group)) > 1]
    return 2 * len(odd) >= len(groups) and len("".join(odd)) >= 8


def _row(value: str) -> bool:
    """Whether the words are a row and no sentence."""
    words = value.lower().split()
    if len(words) >= SEED:
        return not _NO_SEED.intersection(words)
    return not _PROSE.intersection(words) and not any(map(_ENDING.search, words))


def _is_random_mixed(value: str) -> bool:
    """Whether letters of both cases and digits follow each other by chance behind a beginning."""
    body = _BEGINNING.sub("", value)
    if not _is_mixed(body) or _DIGEST.search(value) or _PUBLIC.match(value):
        return False
    digits = sum(sign.isdigit() for sign in body)
    return digits >= 3 and entropy(body) > 4.0 and not is_mostly_words(body, 0.4)


# -- values that follow a name -------------------------------------------------------


def _key(value: str) -> bool:
    return _long_key(value) or (8 <= len(value) < 16 and _random(value, strict=True))


def _lone_key(value: str) -> bool:
    short = len(value) < 20 and not _is_mixed(value)
    return _long_key(value) and not short and not _UUID.fullmatch(value)


def _long_key(value: str) -> bool:
    """Whether letters and digits follow each other as in no name."""
    if len(value) < 16 or _FINGERPRINT.fullmatch(value):
        return False
    if _HEX.fullmatch(value) or _UUID.fullmatch(value):
        return entropy(value) > 2.5
    digit = any(sign.isdigit() for sign in value)
    letter = any(sign.isalpha() for sign in value)
    if digit and letter:
        return entropy(value) > 3.0 and not is_mostly_words(value, 0.6)
    long = len(value) >= 20 and entropy(value) > 3.5
    return long and _is_mixed(value) and not is_mostly_words(value, 0.4)


def _password(value: str) -> bool:
    return _random(value, strict=False) or _phrase(value)


def _password_beside(value: str) -> bool:
    return _random(value, strict=True) or _phrase(value)


def _phrase(value: str) -> bool:
    """Whether it is a few words with a number, or four words and no sentence."""
    if not _WORDS_AND_NUMBER.fullmatch(value) and not _WORDS.fullmatch(value):
        return False
    parts = _LETTERS.findall(value.lower())
    enough = _WORDS.fullmatch(value) or sum(sign.isdigit() for sign in value) > 1
    stands_in = _PROSE.intersection(parts) or any(map(_stands_in, parts))
    return bool(enough) and not stands_in


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
    if digits:
        return _mixes_digits(value, digits, strict=strict)
    return _mixes_case(value, strict=strict)


def _mixes_digits(value: str, digits: int, *, strict: bool) -> bool:
    if not _PARTS.search(value):
        return not strict or digits > 1
    if not strict and digits > 1 and _WORD_AND_NUMBER.fullmatch(value):
        return True
    loose = not strict or (digits > 1 and value.lower() != value)
    return bool(_LEET.search(value)) or (loose and not is_mostly_words(value, 0.7))


def _mixes_case(value: str, *, strict: bool) -> bool:
    if is_mostly_words(value, 0.7) or len(set(value)) < 6:
        return False
    if _SIGN.search(value.rstrip("!?")):
        return _is_mixed(value)
    return not strict and len(_TURNS.findall(value)) >= 4


def _is_mixed(value: str) -> bool:
    return value.lower() != value and value.upper() != value


LONGEST = 64
_ASCII = pattern("[!-~]+")
# An address, a path, a setting, an option, a variable, a name of code, a digest, a time or date.
_OTHER = pattern(
    r"://|/|\\|^[a-z_.-]+=.|\$\$|^[-@.~$%#]|@[\w-]+\.\w|^\w+\.\w|::|->|&|\$\{|%\w*%|:\w"
    r"|%(?:2[0-9A-F]|3[A-F]|40|5[B-E]|[C-E][0-9A-F])|^(?i:sha|md5|rfc|iso|utf)"
    r"|^[A-Z]{2,10}-\d|\d{4}-\d\d|[0-9a-f]{8}-[0-9a-f]|^\d+(?:\D{0,3}|[.:x]\d.*)$"
)
# Words and a number that is closed by a sign, or signs in the middle of letters and digits.
_WORDS_NUMBER_SIGN = pattern(r"(?:[A-Z][a-z]{2,11}){1,3}\d{2,6}[!#%^*?+$@~=_-]{1,3}")
_PHRASE = pattern(r"[A-Za-z][a-z]{2,9}(?:[-_.][A-Za-z][a-z]{2,9}){3,5}\d{2,4}")
_MIDDLE_SIGN = pattern(r"[A-Za-z0-9][!#%^*?+$@~=&_-]{1,3}[A-Za-z0-9]")
_STRONG_SIGN = pattern(r"[!#%^*?+$@~=]")
_SUM = pattern(r"[*+=-]\d+$")  # `length*2+1`
_BETWEEN = pattern(r"[A-Za-z]\d+[A-Za-z]")
_JOINTS = pattern("[-_]")
_CERTAIN_TURNS = pattern("[a-z](?=[A-Z])|[A-Z](?=[a-z])|[A-Za-z](?=[0-9])|[0-9](?=[A-Za-z])")


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
        return _is_random_signed(word)
    return _is_random_plain(word)


def _is_random_signed(word: str) -> bool:
    """A sign among letters and digits: the case must change, or digits stand within words."""
    mixed = word.lower() != word and word.upper() != word
    if not mixed:
        return bool(_BETWEEN.search(word)) and not is_mostly_words(word, 0.7)
    sums = _SUM.search(word) is not None
    return not is_mostly_words(word, 0.7) or (bool(_MIDDLE_SIGN.search(word)) and not sums)


def _is_random_plain(word: str) -> bool:
    """No sign: long, and case and digits change as they do in no name."""
    word = _JOINTS.sub("", word.rstrip("!?"))
    if len(word) < 12 or not word.isalnum() or word.lower() == word or word.upper() == word:
        return False
    return len(_CERTAIN_TURNS.findall(word)) >= 5 and not is_mostly_words(word, 0.5)


_AS_IT_STANDS: dict[SecretKind, Callable[[str], bool]] = {
    "token": _token,
    "address": _login,
    "alone": _alone,
    "cookie": _cookie,
    "groups": _has_odd_groups,
    "words": _row,
    "near": certain,
    "drawn": _is_random_mixed,
}
_NAMED: dict[SecretKind, Callable[[str], bool]] = {
    "key": _key,
    "beside": _lone_key,
    "password": _password,
    "strict": _password_beside,
}


# --- Whether a word is a password wherever it stands, as long as one is spoken of near it.
#
# Nothing has to join it to what names it, so it holds in languages no rule knows, in calls, in
# columns, and in the line after. For that the word alone must leave no doubt: letters, digits and
# signs as no name, number, address, path or ticket has them. It looks at nothing but the word.


_WORD = pattern(r"""[!#-&*+./0-9:=?@A-Z\\^_a-z~-]+""")
_GOES_ON = pattern(r"[A-Za-z0-9+/][A-Za-z0-9+/]")
_ENDS = ".:*_"


def words(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Where each word that begins in a stretch is, with and without what may only close it."""
    if _GOES_ON.match(text, max(0, start - 1), end):
        found = _WORD.match(text, start, end)
        start = found.end() if found else start
    for found in _WORD.finditer(text, start, end):
        for word in dict.fromkeys((found[0], found[0].rstrip(_ENDS))):
            yield found.start(), found.start() + len(word)


# --- Whether what a pattern found can be a secret.
#
# Three questions: is it random enough for its rule (entropy, strictly above the floor); is it a
# placeholder; and, where only a name before it points to it, is it made of words. The allow lists
# of gitleaks are kept in spirit: a value is excused as a whole or not at all. A remark beside a
# secret (`gitleaks:allow`) excuses nothing, nor does the name of the file, nor a word like "false"
# inside it.
#
# What a rule of our own found is judged in `likely`.


_PLACEHOLDER = pattern(
    r"""true|false|null|none|undefined
    | (.)\1{2,}
    | \$\d+ | \$\{?\w+\}? | \$\{\{.*\}\} | \{\{.*\}\} | %\w+% | @\w+@ | \{\w{0,40}\} | <[^<>]*>
    | /(?:bin|etc|home|opt|tmp|usr|var|Users)/[\w ./-]+
    """,
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
_EXAMPLE = pattern(r".+EXAMPLE", re.DOTALL)
# Public keys of SSH, of PEM without its frame, of age and wallets; keys that vendors publish; what
# is encrypted for a cluster.
_PUBLIC = pattern(
    r"AAAA(?:[BC]3NzaC1|E2VjZHNh|GnNrLX|InNrLW)|MCowBQYDK2V|MI[GI]\w{1,8}BgkqhkiG9w0BAQEFAAO"
    r"|M(?:Fkw|HYw)E.YHKoZIzj0CAQ|age1[a-z0-9]{58}|npub1|[xyztuv]pub\w{90}|pk_(?:live|test)_|pk\.eyJ"
    r"|phc_|arn:aws[\w-]*:|[a-z]{1,12}-0[0-9a-f]{16}\b|Ag[AB][\w+/]{150}|(?i:sha-?\d{1,3}|md5)[:/-]"
)
_WHOLE = pattern(r"[\w.:/#=+~-]{0,300}")
_EXTENSION = pattern(r"\w\.[a-z]\w{1,4}$")
# The address of a project at Sentry, whose key every visitor's browser has.
_DSN = pattern(r"[0-9a-f]{32}@[\w.-]{1,80}/\d+(?![\w/])")
# An id, alone or behind words; a digest behind words, or one of the length of a fingerprint.
_NAMES_A_THING = pattern(
    r"(?i)(?:[a-z][\w.:/-]*[-_:#./])?(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?:[-_:./].*)?"
    r"|(?:\w[\w.]*-){1,9}[0-9a-f]{40,64}|[0-9a-f]{40}"
)
# The words and the identifier that stand right before the part of a name that was matched.
_BEFORE = pattern(r"(?:\w{1,20}[ ])?[\w.-]{0,30}\Z")

MOSTLY = 0.7
"""The share of words that excuses what any name of a secret may stand before."""
WHOLLY = 0.9
"""The share that excuses what the name of a product stands before."""
PARTLY = 0.4
"""The share that excuses the name of a function that is called."""

# Their shape alone would fit a word after "Bearer", prose about PEM, or a method (`s.readLine`).
_OPEN = {"curl-auth-header": WHOLLY, "private-key": WHOLLY, "vault-service-token": MOSTLY}


def plausible(rule: SecretRule, text: str, match: MatchSpan, secret: MatchSpan) -> bool:
    """Whether what this rule matched in the text is to be taken for a secret."""
    value = text[slice(*secret)]
    if not value or (rule.floor and entropy(value) <= rule.floor):
        return False
    bare = value.strip("\"'`")
    ours = bool(rule.kind) or rule.id == "generic-api-key"
    if _PLACEHOLDER.fullmatch(bare) or (ours and labels_no_secret(text, secret[0])):
        return False
    called = text[secret[1] : secret[1] + 1] == "("
    if rule.kind:
        found = likely(rule.kind, bare) and not (rule.named and called)
        return found and not (rule.named and _is_open(rule.kind, text, match, secret))
    if rule.id == "aws-access-token":
        return not _EXAMPLE.fullmatch(bare)
    if rule.id == "curl-auth-user":
        return not _stand_in(bare)
    if rule.id == "generic-api-key":
        wordy = is_mostly_words(bare, PARTLY if called else MOSTLY)
        return not wordy and not _is_open("key", text, match, secret)
    if not rule.named and rule.id not in _OPEN:
        return True
    of_an_id = not rule.id.endswith("-id") and names_an_id(_name(text, match[0], secret[0]))
    return not of_an_id and not is_mostly_words(bare, _OPEN.get(rule.id, WHOLLY))


def _is_open(kind: SecretKind, text: str, match: MatchSpan, secret: MatchSpan) -> bool:
    """Whether its name or its shape says that everybody may know the value: an id, a path, the
    public half of a key."""
    name = _name(text, match[0], secret[0])
    if "://" in name:
        return _DSN.match(text, secret[0]) is not None
    found = _WHOLE.match(text, secret[0])
    value = found[0].rstrip(".:") if found else ""
    if _PUBLIC.match(value) or names_no_secret(kind, name):
        return True
    if kind not in ("key", "beside"):
        return False
    return is_path(value) or bool(names_bare_key(name) and _NAMES_A_THING.fullmatch(value))


def is_path(value: str) -> bool:
    """Whether it is the path of an object: a word, then an id, a file, or no capital letter."""
    first, *rest = value.lstrip("/").split("/")
    if not rest or first.lower() != first or not any(map(is_word, _LETTERS.findall(first))):
        return False
    if any(map(_UUID.search, rest)) or _EXTENSION.search(rest[-1]):
        return True
    if any(part.islower() and is_mostly_words(part, MOSTLY) for part in rest):
        return True
    return len(rest) > 1 and all(part.lower() == part for part in rest if len(part) > 2)


def _name(text: str, start: int, end: int) -> str:
    """What the value is called: the match up to it, and what belongs to that before it."""
    before = _BEFORE.search(text[max(0, start - 60) : start])
    return (before[0] if before else "") + text[start:end]


_STAND_INS = pattern(
    r"change(?:it|me)|pass(?:word|wd)?|pwd|secret|token|test|user(?:name)?|example|x+|\*+|\.+",
    re.IGNORECASE,
)


def _stand_in(pair: str) -> bool:
    """Whether the second half of `user:password` only says what should stand there."""
    password = pair.partition(":")[2].strip("\"'")
    whole = _STAND_INS.fullmatch(password) or _PLACEHOLDER.fullmatch(password)
    return bool(whole) or (password.startswith("[") and password.endswith("]"))
