"""What a text says once its encodings are undone: one step at a time, in place.

Base64 (of both alphabets), hexadecimal, percent signs, escapes of JSON and the like, HTML
entities. Letters and digits are decoded only where a stretch of plain text comes out, so that
ordinary words stay as they are. The result is never longer than the text, and the work is
linear in it. It decodes nothing that must be unpacked (gzip and the like) and nothing that is
turned around.
"""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Callable, Iterable, Iterator
from heapq import merge

from reverie.memory.secrets.engine import compiled, matches
from reverie.memory.secrets.views import TextChange, TextView, changed, seen

# These begin with a sign that is rare in prose, which `re` looks for quickly; each unit has
# one length or one end, so nothing is read twice.
_PERCENT = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_ENTITIES = re.compile(r"(?:&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});)+")
_ESCAPE = re.compile(
    r"\\(?:u[0-9A-Fa-f]{4}|u\{[0-9A-Fa-f]{1,6}\}|U[0-9A-Fa-f]{8}|x[0-9A-Fa-f]{2}|[0-7]{3}"
    r"|[nrt\"'/\\])"
)
_ESCAPES = re.compile(f"(?:{_ESCAPE.pattern})+")
_CODE_POINT = re.compile(r"U\+[0-9A-Fa-f]{4,6} ?")
_NAMED = {"n": "\n", "r": "\n", "t": "\t"}

# Ten bytes or more of printable ASCII, as they look in hexadecimal, alone or in pairs.
_BYTE = r"(?:[2-7][0-9A-Fa-f]|0[9AaDd])"
_HEX = rf"{_BYTE}{{10,}}"
_PAIRS = rf"{_BYTE}(?:[ :,]{_BYTE}){{9,}}"
_BETWEEN = re.compile("[ :,]")

# In base64 the high bit of each byte, which ASCII leaves at 0, is seen in three of four signs.
_SIGNS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_URL_SAFE = str.maketrans("-_", "+/")
_FIRST = "[CDI-Za-f]"
_SECOND = "[" + "".join(sign for n, sign in enumerate(_SIGNS) if n & 15 in (0, *range(2, 8))) + "]"
_THIRD = "[" + "".join(sign for n, sign in enumerate(_SIGNS) if n & 3 in (0, 1)) + "]"
_ANY = r"[A-Za-z0-9+/_\-]"
_BASE64 = rf"(?:{_FIRST}{_SECOND}{_THIRD}{_ANY}){{4,}}{_ANY}{{0,3}}={{0,2}}"


def decoded(view: TextView) -> Iterator[TextView]:
    """The view with every encoding undone once, if there is any.

    Where both signs and letters are encoded, also with the signs alone undone: what is in
    clear beside them may by chance look like letters that are encoded.
    """
    signs, letters = list(_apart(merge(*_signs(view.text)))), list(_apart(merge(*_letters(view))))
    for changes in (signs, letters if not signs else list(_apart(merge(signs, letters)))):
        made = changed(view, changes)
        if made is not None:
            yield made
        if not letters:
            break


def _apart(changes: Iterable[TextChange]) -> Iterator[TextChange]:
    """Without those that begin inside another."""
    done = 0
    for start, end, new in changes:
        if start >= done:
            yield start, end, new
            done = end


def _signs(text: str) -> Iterator[Iterator[TextChange]]:
    if "%" in text:
        yield ((*one.span(), _percent(one[0])) for one in _PERCENT.finditer(text))
    if "&" in text:
        yield ((*one.span(), seen(html.unescape(one[0]))) for one in _ENTITIES.finditer(text))
    if "\\" in text:
        yield ((*one.span(), _ESCAPE.sub(_escape, one[0])) for one in _ESCAPES.finditer(text))
    if "U+" in text:
        yield ((*one.span(), _character(one[0][2:])) for one in _CODE_POINT.finditer(text))


def _letters(view: TextView) -> Iterator[Iterator[TextChange]]:
    yield _decodable(view, _HEX, _hex)
    yield _decodable(view, _PAIRS, _hex)
    yield _decodable(view, _BASE64, _base64)


def _decodable(view: TextView, pattern: str, read: Callable[[str], str]) -> Iterator[TextChange]:
    for found in matches(compiled(pattern), view.raw, again=False):
        start, end = found.span()
        yield start, end, read(view.text[start:end])


def _percent(part: str) -> str:
    return _read(bytes.fromhex(part.replace("%", "")))


def _escape(found: re.Match[str]) -> str:
    body = found[0][1:]
    if len(body) == 1:
        return _NAMED.get(body, body)
    if body[0] in "uUx":
        return _character(body.strip("uUx{}"))
    return chr(int(body, 8))


def _character(digits: str) -> str:
    number = int(digits, 16)
    return seen(chr(number)) if number <= 0x10FFFF else ""


def _hex(part: str) -> str:
    return _read(bytes.fromhex(_BETWEEN.sub("", part)))


def _base64(part: str) -> str:
    body = part.rstrip("=").translate(_URL_SAFE)
    body = body[:-1] if len(body) % 4 == 1 else body
    return _read(base64.b64decode(body + "=" * (-len(body) % 4)))


def _read(raw: bytes) -> str:
    return seen(raw.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n"))
