"""Words to be forgotten, found in whatever form a file holds them.

Two texts are the same words if they agree once normalised (NFKC), case-folded, freed of hidden
characters and with every stretch of white space as one space. They are also found where the
text spells them with JSON escapes, up to three deep, over line breaks, and as a file's name made
from them (`the_launch_code`). What is found is replaced in place, all other characters stay.

In JSON only texts are looked at: never a key, an id, a hash or the name of a type, so that a
transcript stays one. Nothing here reads a file or keeps the words.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence

from reverie.errors import InvalidInput
from reverie.light import dataclass
from reverie.text.safety import strip

MARKS = ("[forgotten]", "[removed]", "[…]")
SHORTEST = 4
LONGEST = 4_096
_DEPTH = 3
_ROUNDS = 8
_PIECE = 4_096

_SPACE = re.compile(r"\s+")
_TOKEN = re.compile(r"[^\W_]+")
_ESCAPE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\[\"\\/bfnrt]"
)
_SIMPLE = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_JSON = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]', re.DOTALL)
# Members whose values say what a record is or which, wherever they stand outside a tool's input.
_STRUCTURE = frozenset(
    re.findall(
        r"\w+",
        """
        v id parent at type sum role tool_use_id call action sha256 blob session agent message_id
        stop_reason signature before after key media_type ttl first last forked_at group undoes
        path project cwd version trust kind name source messages
        """,
    )
)
_FREE = frozenset({"input"})


@dataclass(frozen=True, slots=True)
class ForgetWords:
    """What is to be forgotten: the words as they are compared, and as a file's name has them."""

    needles: tuple[str, ...]
    mark: str

    @classmethod
    def of(cls, text: str) -> ForgetWords:
        folded = fold(text).strip()
        wide = sum(2 if ord(c) >= 0x2E80 else 1 for c in folded if not c.isspace())
        if wide < SHORTEST:
            raise InvalidInput(
                "So few letters would take much more with them than is meant",
                do=f"Give at least {SHORTEST} letters, or a longer phrase",
            )
        if len(folded) > LONGEST:
            raise InvalidInput(f"More than {LONGEST:,} characters cannot be forgotten at once")
        tokens = _TOKEN.findall(folded)
        slugs = [join.join(tokens) for join in "_-"] if len(tokens) > 1 else []
        needles = tuple(dict.fromkeys([folded, *slugs]))
        mark = next((m for m in MARKS if not any(n in m for n in needles)), MARKS[-1])
        return cls(needles, mark)

    @property
    def folded(self) -> str:
        return self.needles[0]

    def count(self, text: str) -> int:
        """How often the words stand in a text, in any of the forms they are known in."""
        return max(
            sum(seen.count(needle) for needle in self.needles)
            for seen in map(fold, unescaped_forms(text))
        )

    def within(self, text: str) -> bool:
        return any(n in seen for seen in map(fold, unescaped_forms(text)) for n in self.needles)

    def replaced(self, text: str) -> tuple[str, int]:
        """The text without the words, and how many times they stood there."""
        count = 0
        for _ in range(_ROUNDS):
            if not self.within(text):
                return text, count
            spans = self._spans(text) or self._spans_in(text)
            if not spans:  # written in a way that only the whole text's normal form shows
                text = unicodedata.normalize("NFKC", strip(text))
                spans = self._spans_in(text)
            count += len(spans)
            for start, end in reversed(spans):
                text = text[:start] + self.mark + text[end:]
        return (self.mark, count + 1) if self.within(text) else (text, count)

    def replaced_in_json(self, raw: str) -> tuple[str, int]:
        """JSON text without the words: string by string, all other bytes as they are."""
        out: list[str] = []
        last, count = 0, 0
        for start, end in _texts(raw):
            inside, times = self.replaced(raw[start:end])
            if times:
                out += [raw[last:start], inside]
                last, count = end, count + times
        return ("".join([*out, raw[last:]]), count) if count else (raw, 0)

    def names(self, stem: str) -> bool:
        """Whether a file's name, without its ending, is made from the words or their beginning."""
        folded = fold(stem)
        if any(needle in folded for needle in self.needles):
            return True
        joined = "_".join(_TOKEN.findall(folded))
        slug = "_".join(_TOKEN.findall(self.folded))
        rest = joined.partition("_")[2]
        return any(len(one) >= 12 and slug.startswith(one) for one in (joined, rest))

    def _spans(self, text: str) -> list[tuple[int, int]]:
        """Where the words stand; a long text is looked at closely only around them."""
        around = 16 * max(map(len, self.needles)) + 64
        found: list[tuple[int, int]] = []
        for start in range(0, len(text), _PIECE):
            piece = text[start : start + _PIECE + around]
            if self.within(piece):
                found += [(start + low, start + high) for low, high in self._spans_in(piece)]
        return _apart(sorted(found))

    def _spans_in(self, text: str) -> list[tuple[int, int]]:
        """Where the words stand, as stretches of the text that do not overlap."""
        found: list[tuple[int, int]] = []
        view = _View(text, [(n, n + 1) for n in range(len(text))])
        for depth in range(_DEPTH + 1):
            if depth:
                view = view.unescaped()
            folded = view.folded()
            for needle in self.needles:
                at = folded.text.find(needle)
                while at >= 0:
                    found.append((folded.at[at][0], folded.at[at + len(needle) - 1][1]))
                    at = folded.text.find(needle, at + len(needle))
            if "\\" not in view.text:
                break
        return _apart(sorted(_whole_escapes(text, found)))


def fold(text: str) -> str:
    """The text as words are compared."""
    if text.isascii():
        return _SPACE.sub(" ", strip(text)).lower()
    seen = unicodedata.normalize("NFKC", strip(text)).casefold()
    return _SPACE.sub(" ", strip(unicodedata.normalize("NFKC", seen)))


def unescaped_forms(text: str) -> Iterator[str]:
    """The text, and what it says with its JSON escapes read, up to three deep."""
    yield text
    for _ in range(_DEPTH):
        if "\\" not in text:
            return
        text = _ESCAPE.sub(lambda m: _meaning(m[0]), text)
        yield text


def _meaning(escape: str) -> str:
    if escape[1] != "u":
        return _SIMPLE.get(escape[1], escape[1])
    if len(escape) == 12:
        high, low = int(escape[2:6], 16), int(escape[8:12], 16)
        return chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))
    return chr(int(escape[2:], 16))


@dataclass(frozen=True, slots=True)
class _View:
    """A text made from another, with the stretch of that other one behind each character."""

    text: str
    at: Sequence[tuple[int, int]]

    def unescaped(self) -> _View:
        out: list[str] = []
        at: list[tuple[int, int]] = []
        last = 0
        for found in _ESCAPE.finditer(self.text):
            out.append(self.text[last : found.start()])
            at += self.at[last : found.start()]
            out.append(_meaning(found[0]))
            at.append((self.at[found.start()][0], self.at[found.end() - 1][1]))
            last = found.end()
        return _View("".join([*out, self.text[last:]]), [*at, *self.at[last:]])

    def folded(self) -> _View:
        out: list[str] = []
        at: list[tuple[int, int]] = []
        for start, end in _clusters(self.text):
            made = fold(self.text[start:end])
            if made == " " and out and out[-1] == " ":
                at[-1] = (at[-1][0], self.at[end - 1][1])
                continue
            out += made
            at += [(self.at[start][0], self.at[end - 1][1])] * len(made)
        return _View("".join(out), at)


def _clusters(text: str) -> Iterator[tuple[int, int]]:
    """Each character with the marks and jamo behind it, which normalising may join to it."""
    start = 0
    for n in range(1, len(text) + 1):
        if n < len(text) and not text[n].isascii():
            mark = unicodedata.combining(text[n]) or unicodedata.category(text[n])[0] == "M"
            if mark or "\u1160" <= text[n] <= "\u11ff" or text[n] in "\uff9e\uff9f":
                continue
        yield start, n
        start = n


def _whole_escapes(text: str, spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The stretches, none of which begins or ends inside an escape."""
    if not spans or "\\" not in text:
        return list(spans)
    inside = {
        n: (found.start(), found.end())
        for found in _ESCAPE.finditer(text)
        for n in range(found.start() + 1, found.end())
    }
    out: list[tuple[int, int]] = []
    for start, end in spans:
        out.append((inside.get(start, (start, 0))[0], inside.get(end, (0, end))[1]))
    return out


def _apart(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    out: list[tuple[int, int]] = []
    for start, end in spans:
        if out and start < out[-1][1]:
            out[-1] = (out[-1][0], max(out[-1][1], end))
        else:
            out.append((start, end))
    return out


@dataclass(slots=True)
class _Level:
    """A container being read: its last key, and whether all of it is somebody's text."""

    is_object: bool
    free: bool
    key: str = ""
    value: bool = False  # whether the next string is a value of `key`


def _texts(raw: str) -> Iterator[tuple[int, int]]:
    """Where texts stand in JSON: strings that are values, and no part of its structure."""
    levels: list[_Level] = [_Level(False, False)]
    for found in _JSON.finditer(raw):
        token, top = found[0], levels[-1]
        if token in ("{", "["):
            free = top.free or (top.is_object and top.key in _FREE)
            levels.append(_Level(token == "{", free, "" if token == "{" else top.key))
        elif token in ("}", "]"):
            if len(levels) > 1:
                levels.pop()
        elif token == ":":
            top.value = True
        elif token == ",":
            top.value = False
        elif top.is_object and not top.value:
            top.key = token[1:-1]
            if top.free:
                yield found.start() + 1, found.end() - 1
        elif top.free or top.key not in _STRUCTURE:
            yield found.start() + 1, found.end() - 1
