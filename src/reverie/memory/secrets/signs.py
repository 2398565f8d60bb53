"""A text as bytes, one for each character, in which rules can name words of any language.

Letters with accents stand as plain ones, Cyrillic and a few Chinese, Japanese and Korean signs as
bytes above ASCII, curly quotes as straight ones, and everything else that is not ASCII as `?`.
`spelt` writes a word the same way, for a pattern. Positions agree with those in the text.
"""

from __future__ import annotations

import re
import unicodedata

_SIGNS = "密码碼口令是为為钥鑰秘牌助记記词詞パスワードキ비밀번호암暗証番号は는은토큰"
_LETTERS = "κωδικοςσυ كلمةارورسعبز סיסמהא पासवर्ड পাসওয়ার্ড รหัสผ่าน"
_FIRST_SIGN, _FIRST_CYRILLIC = 0x80, 0xE0
_DASH = "\x7f"
DASH = r"\x7f"
"""How a pattern names a dash that is no hyphen."""


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
_OTHER = re.compile(r"[^\x00-\x7e]+")


def one_byte_each(text: str) -> bytes:
    """The text as patterns see it."""
    if not text.isascii() or _DASH in text:
        text = _OTHER.sub(_written, text)
    return text.encode("latin-1", "replace")


def _written(found: re.Match[str]) -> str:
    return found[0].replace(_DASH, "?").translate(_TABLE)


def spelt(words: str) -> str:
    """The words as they stand in such bytes, for a pattern."""
    written = words.translate(_TABLE)
    written.encode("latin-1")  # a letter that no byte stands for would match nothing
    return written
