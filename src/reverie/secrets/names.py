"""What says that a secret follows: names in many languages, what joins them to it, and the value.

Parts of patterns and nothing else. A name is found wherever it ends, so `DB_PASSWORD`,
`smtpPasswd` and `x-api-key` need no entry of their own.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from itertools import pairwise
from typing import Literal, TypeAlias

from reverie.light import pattern
from reverie.text.tables import read_rows


def rows(name: str) -> list[list[str]]:
    """Read the rows of a table in `data`, without its header."""
    return read_rows("reverie.secrets", name)[1:]


_SIGNS = "密码碼口令是为為钥鑰秘牌助记記词詞パスワードキ비밀번호암暗証番号は는은토큰"
_LETTERS = "κωδικοςσυ كلمةارورسعبز סיסמהא पासवर्ड পাসওয়ার্ড รหัสผ่าน"
_FIRST_SIGN, _FIRST_CYRILLIC = 0x80, 0xE0
_DASH = "\x7f"


def _table() -> dict[int, str]:
    made = dict.fromkeys(range(0x80, 0x100), "?")
    for code in (*range(0xC0, 0x250), *range(0x1E00, 0x1F00)):
        base = unicodedata.normalize("NFD", chr(code))[0]
        made[code] = base if base.isascii() else "?"
    made |= {ord(letter): plain for letter, plain in zip("łŁøØđĐı", "lLoOdDi", strict=True)}
    for number in range(32):
        made[ord("а") + number] = made[ord("А") + number] = chr(_FIRST_CYRILLIC + number)
    signs = dict.fromkeys(_SIGNS + _LETTERS.replace(" ", ""))
    made |= {ord(sign): chr(_FIRST_SIGN + number) for number, sign in enumerate(signs)}
    made[ord("ό")] = made[ord("ο")]
    made |= dict.fromkeys(map(ord, "“”„«»‟「」『』"), '"')
    made |= dict.fromkeys(map(ord, "‘’‚‹›"), "'")
    made |= dict.fromkeys(map(ord, "–—―"), _DASH)
    return made | {ord("："): ":", ord("→"): ">", ord("⇒"): ">", ord("ё"): chr(0xE5)}


_TABLE = _table()


def spelt(words: str) -> str:
    """The words as they stand in such bytes, for a pattern."""
    written = words.translate(_TABLE)
    written.encode("latin-1")  # a letter that no byte stands for would match nothing
    return written


def _vocabulary(kind: str) -> tuple[str, str]:
    """Return every cue of a kind as one pattern, and the keywords of these cues."""
    found = [row for row in rows("names") if row[0] == kind]
    cues = "|".join(spelt(cue) for _, _, cue, _ in found)
    return f"(?:{cues})", " ".join(
        dict.fromkeys(spelt(" ".join(row[3] for row in found)).split(" "))
    )


_PASSWORDS, PASSWORD_WORDS = _vocabulary("password")
_KEYS, KEY_WORDS = _vocabulary("key")
PASSWORD = _PASSWORDS + "(?:s|en|es)?"
KEY = _KEYS + "s?"
_TAIL = (
    r"(?:[ _.-]?(?:prod(?:uction)?|dev(?:el)?|stag(?:e|ing)|test|root|admin|user|db|live|new|old"
    r"|value|string|text|base|base64|b64|\d{1,2}))?"
)

# What closes a name, what joins it to a value, and what opens that, on one line.
_CLOSES = rf"""{_TAIL}["'\x60*_)\]\\]{{0,4}}[ \t]{{0,3}}(?:\([^()\n]{{1,30}}\)[ \t]{{0,2}})?"""
_IS = spelt("[是为為は는은]")
_TYPE = r":[ \t]?[&*]?(?:'\w{1,12}[ \t])?[\w.<>\[\]?]{1,24}(?:[ \t]\|[ \t]\w{1,12})?[ \t]?="


DASH = r"\x7f"
"""How a pattern names a dash that is no hyphen."""


_SIGN = (
    rf"(?::=|=>|->|==?|:|\||>|{DASH}|{_IS}|{_TYPE}"
    r"""|["'][ \t]{1,3}(?:value|content)[ \t]?=|["'],[ \t]?["'])"""
)
_SAYS = (
    r"(?:is|was|are|to|lautet|ist|war|heisst|auf|es|est|era|e|eh|sera|sono|jest"
    r"|is\ now|now|as|als"
    r"|como|comme|value|wert|currently|c'est|it's|that's)"
)
_OPENS = r"""[ \t*_(\[\\]{0,5}"""
_VALUE = (
    r"""(?:[bruf]{0,2}["'\x60]{1,3}([^\s"'\x60<>\x00-\x1f\x7f-\xff]{6,120})["'\x60]"""
    r"""|["'\x60*_(\[\\ \t]{0,8}(?:([^\s"'\x60<>(){}\[\]|,;\x00-\x1f\x7f-\xff]{6,200})"""
    r"""|([^\s"'\x60<>|\x00-\x1f\x7f-\xff]{8,60})))"""
)
VALUE = r"""([^\s"'\x60<>(){}\[\]|,;\x00-\x1f\x7f-\xff]{6,120})"""
AFTER_SIGN = rf"{_CLOSES}{_SIGN}(?:[ \t]{{0,2}}(?:[|>][+-]?)?\n)?{_OPENS}{_VALUE}"
"""`name: value`, `name = "value"`, `| name | value |`, `<name>value`."""
AFTER_WORDS = (
    rf"(?:'s)?{_CLOSES}(?:[ \t]?[^\s:=.|]{{1,20}}){{0,6}}?"
    rf"(?:[ \t]{{1,3}}{_SAYS}[ \t]?:?[ \t]{{1,3}}"
    rf"|[ \t]{{0,2}}(?::|=>?|->|>|\||{DASH})[ \t]{{1,3}}){_OPENS}{_VALUE}"
)
"""`the name for staging is now value`."""
BESIDE = rf"""[ \t]{{1,3}}{_OPENS}{_VALUE}"""
"""`name value`."""
NEXT_LINE = rf"""{_TAIL}["']?,?\s{{1,14}}["']?value["']?[ \t]?[:=][ \t]?["']?{VALUE}"""
"""`name: NAME`, and `value: value` in the line after it."""


PARTS = {
    "PASSWORD": PASSWORD,
    "PASSWORD_WORDS": PASSWORD_WORDS,
    "KEY": KEY,
    "KEY_WORDS": KEY_WORDS,
    "VALUE": VALUE,
    "AFTER_SIGN": AFTER_SIGN,
    "AFTER_WORDS": AFTER_WORDS,
    "BESIDE": BESIDE,
    "NEXT_LINE": NEXT_LINE,
}
"""What `{NAME}` stands for in a row of `places`."""


# --- The ways in which a value that a rule of our own found is judged. `likely` has them.


SecretKind: TypeAlias = Literal[
    "",
    "token",
    "key",
    "password",
    "strict",
    "address",
    "cookie",
    "groups",
    "words",
    "alone",
    "beside",
    "near",
    "drawn",
]
"""How a value is told from what only stands in its place: `key` after the name of one, `strict`
where hardly anything was said before it, `address` where nothing else can stand, `cookie` for a
row of `name=value`, `groups` for letters in groups, `words` for a phrase,
`alone` where only a password can stand, `beside` for a long key that only has
a name beside it, `near` where each word of a stretch is judged by itself
(`certain`), `drawn` where a beginning is all there is before a long row without words."""


# --- Names after which no secret follows, whatever the value looks like.


# What is named so is no secret: a column, an index, the public half, a count, a name or path.
_NO_SECRET = pattern(
    r"""(?:blob|bucket|cache|dedup|dict|document|etcd|file|foreign|hot|idempotency|index|kafka|lookup
        |map|message|natural|object(?:id)?|partition|peer|primary|project|redis|routing|row|s3|schema
        |sequence|shard|site|sort|unique|verif(?:y|ication))[ _.-]?keys?\d*\b
    | publi(?:c|shable)(?:\w{0,4}[ _.-]?key|[\W_]) | \bpub[ _.-]?keys?\d*\b
    | \bdata-key | access(?:ibility|or) | author(?!iz) | api[ _.-]?(?:name|version)
    | key[ _.-]?(?:board|code|fingerprint|frame|hash|id|name|pair|press|ring|stone|stroke|type|word)
    | (?:credentials?|token)[ _.-]?(?:id|count|limit|budget|type)\b
    | (?:auth|key|token)[ _.-]?(?:dir|docs?|endpoint|file|path|url)\b | tokeni[sz]
    | \b(?:h1|sha-?\d{1,3}|md5)[:=-]\Z""",
    re.IGNORECASE | re.VERBOSE,
)
# A name that ends so is that of an id.
_ID = pattern(
    r"""(?:[ _.-]id|[a-z]{4}Id|[ _.-]ID)["'`*)\]]{0,3}\s{0,3}(?:[:=|]|is\b)?[\s"'`*(]{0,4}\Z"""
)
# What follows is an entry of a password manager.
_KEPT = pattern(
    r"(?i)(?:[>:]|\b(?:in|im|dans|en|no|w|v|via|see|siehe|voir|ver))\s{1,2}(?:1password|bitwarden"
    r"|keepass\w{0,2}|lastpass|vault)\b(?!\W{0,2}(?:is|was|ist|es|est|[:=]))[\s,(>/-]{0,4}"
    r"(?:\w{1,12}[:\s]{1,3})?\Z"
)
# The value's own label, right before it: a digest, a number or an id, whatever is said before.
_LABEL = pattern(
    r"""(?i)(?:\b|_)(?:cf-ray|checksum|cid|commit|digest|etag|fingerprint|g?uuid|integrity|kid|md5
    |revision|serial|sha-?\d{1,3}|traceparent|uid|x-amz-id-2)["']?[ ]?[:=][ ]?(?:W/)?["'`]?\Z""",
    re.VERBOSE,
)
# A frame around what everybody may know: a certificate, a public key.
_OPEN_FRAME = pattern(r"-----BEGIN (?![A-Z ]*PRIVATE)[A-Z0-9 ]{1,40}-----[\w+/=\s\\]*\Z")
_BARE_KEY = pattern(r"(?:^|[^\w.-])[Kk]eys?\b")
_OPENING_KEY = next(cue for kind, _, cue, _ in rows("names") if kind == "key")
_OPENING = pattern(rf"(?i){_OPENING_KEY}|token|secret|cred|passw|\w[_.-]key")


def names_no_secret(kind: SecretKind, name: str) -> bool:
    """Whether what is called so is an id, the name of a place, or open to everybody."""
    if kind in ("key", "beside"):
        return bool(_NO_SECRET.search(name)) or names_an_id(name)
    return bool(_KEPT.search(name)) or (kind != "password" and names_an_id(name))


def labels_no_secret(text: str, start: int) -> bool:
    """Whether what stands right before a value says that it is a digest, a number or public."""
    before = text[max(0, start - 4_000) : start]
    return bool(_LABEL.search(before[-60:]) or _OPEN_FRAME.search(before))


def names_an_id(name: str) -> bool:
    return _ID.search(name) is not None


def names_bare_key(name: str) -> bool:
    """Whether it is a "key", and nothing says that it opens anything."""
    return bool(_BARE_KEY.search(name)) and not _OPENING.search(name)


# --- A text as bytes, one for each character, in which rules can name words of any language.
#
# Letters with accents stand as plain ones, Cyrillic and a few Chinese, Japanese and Korean signs
# as bytes above ASCII, curly quotes as straight ones, and everything else that is not ASCII as
# `?`. `spelt` writes a word the same way, for a pattern. Positions agree with those in the text.


_OTHER = re.compile(r"[^\x00-\x7e]+")


def one_byte_each(text: str) -> bytes:
    """The text as patterns see it."""
    if not text.isascii() or _DASH in text:
        text = _OTHER.sub(_replace_signs, text)
    return text.encode("latin-1", "replace")


def _replace_signs(found: re.Match[str]) -> str:
    return found[0].replace(_DASH, "?").translate(_TABLE)


# --- Whether a value is made of words.
#
# It is cut into words where the case changes and at every sign and number. A part counts as a word
# when its pairs of neighbouring letters are those that words are made of, one in six letters
# aside, and there is a vowel in it. No dictionary is known and nothing looked at but the value.


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


def is_mostly_words(value: str, share: float) -> bool:
    """Whether this share of its letters belongs to words, numbers between them left aside."""
    words = noise = 0
    for part, apart, after_word in _parts(value):
        if is_word(part):
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
        last, word = end, is_word(found[0])


def _is_number(part: str) -> bool:
    return part.isdigit() and len(part) <= 4


def is_word(part: str) -> bool:
    word = part.lower()
    if len(word) < 3 or not word.isalpha() or not _VOWEL.search(word) or _UNLIKELY.search(word):
        return False
    rare = sum(after not in _FOLLOWS[one] for one, after in pairwise(word))
    return rare <= len(word) // 6
