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

_PASSWORDS = (
    *("kennwort", "losungswort", "contrasen[ay]a?", r"\bclave", "mot[ _-]de[ _-]passe", r"\bmdp"),
    *("senha", "palavra[ _-]passe", "wachtwoord", "losenord", "adgangskode", "kodeord", "passord"),
    *("salasana", r"\bhaslo", r"\bheslo", r"\bparola", r"\bsifre", "jelsz", "mat[ _]khau"),
    *(
        "kata[ _]sandi",
        "парол(?:ь|я|ем|и)",
        "密[码碼]",
        "口令",
        "パスワード",
        "비밀번호",
        "暗証番号",
    ),
    *("lozink", "лозинк", r"\bgeslo", "slaptazod", "parool", "nenosiri", "wagwoord"),
    *("κωδικο[ςσυ]", "كلمة (?:ال)?(?:مرور|سر)", "رمز (?:ال)?(?:مرور|عبور)", "סיסמ[הא]"),
    *("पासवर्ड", "পাসওয়ার্ড", "รหัสผ่าน", "비번", r"пасс"),
)
_KEYS = (
    *("schlussel", "geheimnis", "jeton", r"\bclef?", r"\bllave", r"\bclave", r"\bchave", "sleutel"),
    *("chiave", "ключ", "токен", "секрет", "密[钥鑰]", "秘[钥鑰]", "令牌"),
    *("nyckel", "nokkel", "nogle", "klucz", r"\bklic", "kulcs", "anahtar", "kunci", "토큰", "キー"),
)


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


PASSWORD = (
    rf"(?:pass[ _-]?(?:wor[dt]|wd|phrase|code)|pas+w(?:or)?d|\bpsw|pswd|pwd|\bpw|[_.-]pw"
    rf"|[_.-]pass|\bpsk|community[ _-]string"
    rf"|{spelt('|'.join(_PASSWORDS))})(?:s|en|es)?"
)
KEY = (
    r"(?:(?:api|access|auth|secret|private|sign(?:ing)?|encrypt(?:ion)?|master|account|shared"
    r"|service|storage|subscription|license|app|admin|client|deploy|webhook|hmac|aes|jwt|host)"
    r"[ _.-]?keys?|token|secret|(?:php|j)sess(?:ion)?id|credential|\bcreds|keys?"
    rf"|{spelt('|'.join(_KEYS))})s?"
)
_TAIL = (
    r"(?:[ _.-]?(?:prod(?:uction)?|dev(?:el)?|stag(?:e|ing)|test|root|admin|user|db|live|new|old"
    r"|value|string|text|base|base64|b64|\d{1,2}))?"
)
PASSWORD_WORDS = spelt(
    "pass pwd pw psk community pswd psw paswd kennwort losungswort contrase clave "
    "mdp senha palavra wachtwoord "
    "losenord adgangskode kodeord salasana haslo heslo parola sifre jelsz khau sandi "
    "парол 密码 密碼 口令 パスワード 비밀번호 暗証番号 lozink лозинк geslo slaptazod parool "
    "nenosiri wagwoord κωδικο كلمة رمز סיסמ पासवर्ड পাসওয়ার্ড รหัสผ่าน 비번 пасс"
)
KEY_WORDS = spelt(
    "key token secret sessid sessionid credential creds schlussel geheimnis jeton "
    "cle llave clave chave sleutel "
    "chiave ключ токен секрет 密钥 密鑰 秘钥 秘鑰 令牌 "
    "nyckel nokkel nogle klucz klic kulcs anahtar kunci 토큰 キー"
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


# --- Secrets in commands, statements and files whose form says where they stand.
#
# Nothing here searches a text.


_FLAG_KEY = r"(?:token|secret|api-?key|access-?key|secret-?key|auth-?key|account-?key|key)"
_QUOTED = r"""['"\x60]([^'"\x60\n]{4,120})['"\x60]"""

COMMANDS: tuple[tuple[str, str, str, SecretKind], ...] = (
    (
        "netrc",
        (
            r"(?i)\bmachine\s{1,4}\S{1,100}\s{1,8}login\s{1,4}\S{1,100}\s{1,8}"
            r"password\s{1,4}(\S{4,100})"
        ),
        "machine",
        "alone",
    ),
    (
        "registry-auth",
        r"""(?i)(?:^|[\s:/])_(?:authtoken|auth|password)[ \t]?=[ \t]?["']?([\w.+/=-]{16,})""",
        "_auth _password",
        "token",
    ),
    (
        "registry-auth",
        r'(?i)"(?:identity)?(?:auth|token)"\s{0,3}:\s{0,3}"([A-Za-z0-9+/]{12,}={0,2})"',
        '"auth" token"',
        "token",
    ),
    (
        "password-of-a-command",
        (
            r"(?i)\b(?:mysql|mysqldump|mysqladmin|mariadb|sshpass|docker|podman|helm|redis-cli|psql"
            r"|mongo|mongosh|mongodump|sqlcmd|bcp|ldapsearch|7z|zip|unzip|ftp|lftp|kinit|cqlsh"
            r"|smbclient|htpasswd|influx|clickhouse-client|oc|az|nmcli|rabbitmqctl)\b"
            rf"[^\n]{{0,120}}?[ \t](?:-[paw]|(?-i:-U)|--password|--pass|password)[ =]?['\"]?{VALUE}"
        ),
        (
            "mysql mariadb sshpass docker podman helm redis-cli psql mongo sqlcmd bcp ldapsearch "
            "7z zip ftp kinit cqlsh smbclient htpasswd influx clickhouse oc az nmcli rabbitmqctl"
        ),
        "password",
    ),
    (
        "password-of-a-command",
        (
            r"(?i)(?:--?|/)(?:\w+-)?(?:pass(?:word|wd|phrase)?|storepass|keypass|pw|pwd)[ =:]"
            rf"['\"]?{VALUE}"
        ),
        "-pass -pw storepass keypass /pass",
        "password",
    ),
    ("token-of-a-command", rf"(?i)--(?:\w+-)*{_FLAG_KEY}[ =]['\"]?{VALUE}", "--", "key"),
    (
        "token-of-a-command",
        rf"(?i)\b[a-z][\w-]{{1,20}}[ \t](?:auth|login|add-authtoken|authtoken)[ \t]['\"]?{VALUE}",
        "auth login",
        "key",
    ),
    ("password-of-a-command", rf"(?i)(?:\bpass:|[ \t]/p:){VALUE}", "pass: /p:", "password"),
    ("password-of-a-command", rf"(?i)--(?:\w+-)?pass(?:word|wd|phrase)?={VALUE}", "--", "alone"),
    (
        "password-of-a-command",
        (
            r"(?i)\b(?:lftp[ \t][^\n]{0,60}?-u[ \t]\w{1,40},|wpa_passphrase[ \t]\S{1,40}[ \t])"
            rf"{VALUE}"
        ),
        "lftp wpa_passphrase",
        "alone",
    ),
    (
        "password-of-a-command",
        (
            rf"(?i)\becho[ \t]{{1,2}}(?:-n[ \t])?['\"]?(?:\w{{1,30}}:)?{VALUE}['\"]?[ \t]{{0,2}}\|"
            r"[ \t]{0,2}(?:sudo|docker|podman|passwd|chpasswd|gpg|cryptsetup|su|kinit|ssh-add)\b"
        ),
        "echo",
        "password",
    ),
    (
        "password-in-sql",
        (
            r"(?i)\bidentified[ \t](?:with[ \t]\w+[ \t])?by[ \t]{1,3}(?:password[ \t])?"
            r"'([^'\n]{4,120})'"
        ),
        "identified",
        "alone",
    ),
    (
        "password-in-sql",
        (
            r"(?i)\b(?:user|role|login)\b[^\n;]{0,100}?\bpassword[ \t]{0,2}[=(]?[ \t]{0,2}"
            rf"{_QUOTED}"
        ),
        "user role login",
        "password",
    ),
    (
        "wifi-code",
        r"(?i)\bWIFI:(?:[A-Z]:[^;\n]{0,64};){0,4}P:([^;\n]{6,64})",
        "wifi:",
        "alone",
    ),
    (
        "pgpass",
        (
            r"(?m)(?:^|[ \t>\x60'\"])[\w.*/:\[\]-]{1,100}:(?:\d{4,5}|\*):[\w*.-]{1,60}:[\w*.-]{1,60}:"
            rf"{VALUE}['\"\x60]?[ \t]*$"
        ),
        "5432: :5433: :5434: :6432: :6543: :*: pgpass",
        "alone",
    ),
    (
        "oracle-login",
        r"(?i)(?:jdbc:oracle:\w{1,8}:|sqlplus[ \t]{1,3})(\w{1,40}/[^\s@/]{4,60})@",
        "jdbc:oracle sqlplus",
        "address",
    ),
    (
        "terraform-default",
        (
            r"""(?i)variable\s{1,3}"[^"\n]{0,60}(?:password|secret|token|key)[^"\n]{0,20}"\s{0,3}"""
            r"""\{[^}]{0,300}?default\s{0,3}=\s{0,3}"([^"\n]{6,200})["]"""
        ),
        "variable",
        "password",
    ),
)
"""Id, pattern, the words of which one stands in every such text, and how its value is judged."""


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
