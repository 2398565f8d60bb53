"""Other ways to read one text, each of which knows the lines it came from.

A view is a text made from another by putting something else in place of parts of it: nothing
for a zero-width character, `A` for a full-width one, one line for two. It holds only the
surroundings of what changed, so a text that hardly changes makes a small view, and no view is
longer than what it was made from and a line for each part. Every step is linear.

Encodings are undone one step at a time, in place: base64 (of both alphabets), hexadecimal,
percent signs, escapes of JSON and the like, HTML entities. Letters and digits are decoded only
where a stretch of plain text comes out, so that ordinary words stay as they are. Nothing that
must be unpacked (gzip and the like) or is turned around is decoded. Nothing here knows what a
secret is.
"""

from __future__ import annotations

import base64
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import field
from functools import cache
from heapq import merge
from itertools import pairwise

from reverie.light import dataclass, pattern
from reverie.secrets.names import one_byte_each
from reverie.secrets.patterns import compile_pattern, matches

TextChange = tuple[int, int, str]
"""From, to (exclusive), and what is to be read there."""

AROUND = 256
"""How much is kept before and after a change: enough for a name, a command or a header."""

_BREAK = "\n\n"


@dataclass(frozen=True, slots=True)
class TextView:
    """A text, and for each piece of it where in the parent it was."""

    text: str = field(repr=False)
    parent: TextView | None = field(default=None, repr=False)
    starts: tuple[int, ...] = field(default=(), repr=False)
    origins: tuple[tuple[int, bool], ...] = field(default=(), repr=False)
    joined: bool = False
    raw: bytes = field(default=b"", init=False, repr=False)
    """The text with one byte a character, so that positions agree."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "raw", one_byte_each(self.text))

    def line(self, at: int) -> int:
        """The line of the first text that stands behind this position, from 1."""
        view = self
        while view.parent is not None:
            piece = max(0, bisect_right(view.starts, at) - 1)
            origin, copied = view.origins[piece]
            at = origin + (at - view.starts[piece] if copied else 0)
            view = view.parent
        return view.text.count("\n", 0, at) + 1


class _ViewBuilder:
    """Puts a view together, piece by piece."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.starts: list[int] = []
        self.origins: list[tuple[int, bool]] = []
        self.size = 0

    def add(self, text: str, origin: int, *, copied: bool) -> None:
        if text:
            self.texts.append(text)
            self.starts.append(self.size)
            self.origins.append((origin, copied))
            self.size += len(text)


def apply_changes(
    view: TextView, changes: Iterable[TextChange], *, joined: bool = False
) -> TextView | None:
    """The view with the changes made, in order and without overlap; none where there are none."""
    pieces = _ViewBuilder()
    text, done, kept = view.text, 0, -1
    for start, end, new in changes:
        if kept < 0 or start - done > 2 * AROUND:
            if kept >= 0:
                pieces.add(text[done : done + AROUND], done, copied=True)
                pieces.add(_BREAK, done, copied=False)
            done = max(done, start - AROUND)
        pieces.add(text[done:start], done, copied=True)
        pieces.add(new, start, copied=False)
        done = kept = end
    if kept < 0:
        return None
    pieces.add(text[done : done + AROUND], done, copied=True)
    return TextView(
        "".join(pieces.texts),
        view,
        tuple(pieces.starts),
        tuple(pieces.origins),
        joined or view.joined,
    )


# -- characters ----------------------------------------------------------------------

_UNUSUAL = pattern(r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b|[^\t\n -~\x1b\x9b]+|\x9b")
"""What is not plain text; a colour of a terminal's (`ESC [ 31 m`) with the plain signs in it."""
_FILLERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0\u2800")


@cache
def _plain(character: str) -> str:
    """What is read for the character: itself, its ASCII, or nothing where nothing is seen."""
    kind = unicodedata.category(character)
    if kind in ("Cf", "Cc", "Mn", "Me") or character in _FILLERS:
        return ""
    compatible = unicodedata.normalize("NFKC", character)
    return compatible if compatible.isascii() else character


def visible_text(text: str) -> str:
    """The text as it looks, in plain characters."""
    return _UNUSUAL.sub(_visible_signs, text)


def _visible_signs(found: re.Match[str]) -> str:
    if found[0][0] in "\x1b\x9b":
        return ""
    return "".join(map(_plain, found[0]))


def plain(view: TextView) -> TextView | None:
    """Without characters that are not seen, and with plain ones for those that look alike."""
    found = ((one, _visible_signs(one)) for one in _UNUSUAL.finditer(view.text))
    return apply_changes(view, ((*one.span(), new) for one, new in found if new != one[0]))


# -- lines ---------------------------------------------------------------------------

_WORD = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=_.~-")
SHORTEST = 12
"""Two lines with fewer characters between them are not joined: no secret is as short."""
_TRAILING = " \t\\"
_LEADING = " \t>#|*"


@dataclass(frozen=True, slots=True)
class _Seam:
    """A line end between two words."""

    line: int
    start: int
    end: int
    single: bool
    """The line after it is one word."""


def _seams(text: str) -> Iterator[_Seam]:
    line, start, end = 0, 0, text.find("\n")
    while end >= 0:
        after = text.find("\n", end + 1)
        stop = after if after >= 0 else len(text)
        left = text[start:end].rstrip(_TRAILING)
        right = text[end + 1 : stop].lstrip(_LEADING)
        long = len(left) + len(right) >= SHORTEST
        if long and left and right and left[-1] in _WORD and right[0] in _WORD:
            single = " " not in right.rstrip()
            yield _Seam(line, start + len(left), stop - len(right), single)
        line, start, end = line + 1, end + 1, after


def join_lines(view: TextView) -> Iterator[TextView]:
    """Each line with the next: first, third, …; second, fourth, …; then whole blocks.

    Two views and not one, so that what was on two lines ends where the second line ends. The
    third is for what was broken into many lines of one word each.
    """
    seams = list(_seams(view.text))
    pairs = ([seam for seam in seams if seam.line % 2 == half] for half in (0, 1))
    for chosen in (*pairs, list(_inner(seams))):
        made = apply_changes(view, ((seam.start, seam.end, "") for seam in chosen), joined=True)
        if made is not None:
            yield made


def _inner(seams: list[_Seam]) -> Iterator[_Seam]:
    """The seams before and after each line of one word that has both."""
    kept = -1
    for before, after in pairwise(seams):
        if before.single and after.line == before.line + 1:
            if kept != before.line:
                yield before
            yield after
            kept = after.line


# These begin with a sign that is rare in prose, which `re` looks for quickly; each unit has
# one length or one end, so nothing is read twice.
_PERCENT = pattern(r"(?:%[0-9A-Fa-f]{2})+")
_ENTITIES = pattern(r"(?:&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});)+")
_UNIT = (
    r"\\(?:u[0-9A-Fa-f]{4}|u\{[0-9A-Fa-f]{1,6}\}|U[0-9A-Fa-f]{8}|x[0-9A-Fa-f]{2}|[0-7]{3}"
    r"|[nrt\"'/\\])"
)
_ESCAPE = pattern(_UNIT)
_ESCAPES = pattern(f"(?:{_UNIT})+")
_CODE_POINT = pattern(r"U\+[0-9A-Fa-f]{4,6} ?")
_NAMED = {"n": "\n", "r": "\n", "t": "\t"}

# Ten bytes or more of printable ASCII, as they look in hexadecimal, alone or in pairs.
_BYTE = r"(?:[2-7][0-9A-Fa-f]|0[9AaDd])"
_HEX = rf"{_BYTE}{{10,}}"
_PAIRS = rf"{_BYTE}(?:[ :,]{_BYTE}){{9,}}"
_BETWEEN = pattern("[ :,]")

# In base64 the high bit of each byte, which ASCII leaves at 0, is seen in three of four signs.
_SIGNS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_URL_SAFE = str.maketrans("-_", "+/")
_FIRST = "[CDI-Za-f]"
_SECOND = "[" + "".join(sign for n, sign in enumerate(_SIGNS) if n & 15 in (0, *range(2, 8))) + "]"
_THIRD = "[" + "".join(sign for n, sign in enumerate(_SIGNS) if n & 3 in (0, 1)) + "]"
_ANY = r"[A-Za-z0-9+/_\-]"
_BASE64 = rf"(?:{_FIRST}{_SECOND}{_THIRD}{_ANY}){{4,}}{_ANY}{{0,3}}={{0,2}}"


def undo_encodings(view: TextView) -> Iterator[TextView]:
    """The view with every encoding undone once, if there is any.

    Where both signs and letters are encoded, also with the signs alone undone: what is in
    clear beside them may by chance look like letters that are encoded.
    """
    signs, letters = list(_apart(merge(*_signs(view.text)))), list(_apart(merge(*_letters(view))))
    for changes in (signs, letters if not signs else list(_apart(merge(signs, letters)))):
        made = apply_changes(view, changes)
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
        from html import unescape  # due where a text holds entities

        yield ((*one.span(), visible_text(unescape(one[0]))) for one in _ENTITIES.finditer(text))
    if "\\" in text:
        yield ((*one.span(), _ESCAPE.sub(_escape, one[0])) for one in _ESCAPES.finditer(text))
    if "U+" in text:
        yield ((*one.span(), _character(one[0][2:])) for one in _CODE_POINT.finditer(text))


def _letters(view: TextView) -> Iterator[Iterator[TextChange]]:
    yield _decodable(view, _HEX, _hex)
    yield _decodable(view, _PAIRS, _hex)
    yield _decodable(view, _BASE64, _base64)


def _decodable(view: TextView, pattern: str, read: Callable[[str], str]) -> Iterator[TextChange]:
    for found in matches(compile_pattern(pattern), view.raw, again=False):
        start, end = found.span()
        yield start, end, read(view.raw[start:end].decode("latin-1"))  # as the pattern saw it


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
    return visible_text(chr(number)) if number <= 0x10FFFF else ""


def _hex(part: str) -> str:
    return _read(bytes.fromhex(_BETWEEN.sub("", part)))


def _base64(part: str) -> str:
    body = part.rstrip("=").translate(_URL_SAFE)
    body = body[:-1] if len(body) % 4 == 1 else body
    return _read(base64.b64decode(body + "=" * (-len(body) % 4)))


def _read(raw: bytes) -> str:
    return visible_text(raw.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n"))
