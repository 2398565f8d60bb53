"""Frontmatter as `key: string` lines, read within bounds and rewritten byte by byte.

A block is read only after its size is known to be small, in one pass that cannot recurse.
What is read is text: no types, no dates, no aliases, anchors or tags. A bare `*.py` can be no
alias, and is text. Anything that is not such a block, is not closed, is too deep or names a key
twice, is the body of the file, and the reason stands beside it. Nothing here raises for what a
file holds.

An edit changes the bytes of one value and no others: order, comments, unknown keys, line
ends and bytes that are no UTF-8 stay as they are.
"""

from __future__ import annotations

import re
from dataclasses import field

from reverie.errors import InvalidInput
from reverie.light import dataclass, pattern

MAX_BYTES = 8 * 1024
MAX_DEPTH = 4
BOM = b"\xef\xbb\xbf"

Names = tuple[str, ...]

_FENCE = pattern(rb"---[ \t]*\Z")
_KEY = pattern(rb"""(["']?)([^\s"'#&*!?|>%@`\[\]{},:<-][^\s"':]{0,127})\1[ \t]*:(?=[ \t]|\Z)""")
_ITEM = pattern(rb"(?:-(?:[ \t]+|\Z))+")
_BLOCK = pattern(rb"[|>][+1-9-]{0,2}[ \t]*(?:#.*)?\Z")
_COMMENT = pattern(rb"(?:\A|[ \t]+)#")
_INSIDE = rb"[\[{,:][ \t]*"
_ALIAS = rb"&|\*[\w-]+(?:[\s,\]}]|\Z)"
_MARK, _MARKED = pattern(_ALIAS + rb"|!"), pattern(_INSIDE + rb"(?:" + _ALIAS + rb"|!)")
_GLOBBED = "applies_to"
"""Below this key a value is a path: `!tests/` spares it, and is no tag."""
_TAG, _TAGGED = pattern(_ALIAS + rb"|![!<]"), pattern(_INSIDE + rb"(?:" + _ALIAS + rb"|![!<])")
_FOREIGN = (b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")
_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf"})
_ESCAPE = pattern(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))")
_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "e": "\x1b", "_": "\xa0", "N": "\x85"}


@dataclass(frozen=True, slots=True)
class FrontmatterField:
    """One key by the names that lead to it, its text, and the bytes that hold its value."""

    names: Names
    value: str
    start: int
    end: int
    indent: int = 0


@dataclass(frozen=True, slots=True)
class Frontmatter:
    """What stands before a file's body; `fault` says why a block was not taken as one."""

    fields: tuple[FrontmatterField, ...] = ()
    inside: tuple[int, int] = (0, 0)  # the bytes between the two fences
    body: int = 0  # where the body begins
    fault: str = ""
    closed: bool = True

    @property
    def present(self) -> bool:
        return self.inside[0] > 0

    def find(self, *names: str) -> FrontmatterField | None:
        return next((one for one in self.fields if one.names == names), None)

    def get(self, *names: str) -> str:
        """The text of a key, or "" where it is not there."""
        found = self.find(*names)
        return "" if found is None else found.value


def parse_frontmatter(data: bytes, *, lines: int | None = None) -> Frontmatter:
    """The frontmatter at the beginning of a file; `lines` bounds where it must be closed."""
    start = len(BOM) if data.startswith(BOM) else 0
    rows = _rows(data[: start + MAX_BYTES], start)
    if not rows or not _FENCE.match(_text(data, rows[0])):
        return Frontmatter(body=start)
    whole = rows if len(data) <= start + MAX_BYTES else rows[:-1]
    shut = (n for n, row in enumerate(whole[:lines]) if n and _FENCE.match(_text(data, row)))
    last = next(shut, None)
    if last is None:
        bound = f"{MAX_BYTES:,} bytes" if lines is None else f"{lines} lines"
        told = f"the frontmatter is not closed within {bound}"
        return Frontmatter(body=start, fault=told, closed=False)
    reader = _FenceReader(data)
    for row in rows[1:last]:
        if fault := reader.take(row):
            return Frontmatter(body=start, fault=fault)
    fields = tuple(value.done() for value in reader.values)
    return Frontmatter(fields, (rows[0][1], rows[last][0]), rows[last][1])


def _rows(data: bytes, start: int) -> list[tuple[int, int]]:
    """Where each line begins and ends, its line end included."""
    rows: list[tuple[int, int]] = []
    at = start
    for line in data[start:].splitlines(keepends=True):
        rows.append((at, at + len(line)))
        at += len(line)
    return rows


def _text(data: bytes, row: tuple[int, int]) -> bytes:
    return data[row[0] : row[1]].rstrip(b"\r\n")


@dataclass(slots=True)
class _Value:
    """A value while its lines come in. `kind`: empty, text, block, lines (a list) or map."""

    names: Names
    indent: int
    start: int
    end: int
    kind: str
    joint: bytes = b" "
    parts: list[bytes] = field(default_factory=list)

    def done(self) -> FrontmatterField:
        raw = self.joint.join(self.parts)
        text = _unquote(raw) if self.kind == "text" else raw.decode("utf-8", "replace")
        return FrontmatterField(self.names, text, self.start, self.end, self.indent)


class _FenceReader:
    """One pass over the lines between the fences; `take` answers with a fault or ""."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.values: list[_Value] = []
        self.around: list[_Value] = []  # the maps that a line stands in
        self.seen: set[Names] = set()

    def take(self, row: tuple[int, int]) -> str:
        line = _text(self.data, row)
        text = line.lstrip(b" ")
        indent = len(line) - len(text)
        last = self.values[-1] if self.values else None
        if not text.strip():
            return ""
        if last is not None and indent > last.indent and last.kind == "block":
            return self._more(last, text, row)
        if text.startswith(b"#"):
            return ""
        if text.startswith(b"\t"):
            return "a line of the frontmatter begins with a tab"
        if last is not None and self._belongs(last, text, indent):
            return self._more(last, text, row)
        return self._key(text, indent, row)

    def _belongs(self, last: _Value, text: bytes, indent: int) -> bool:
        """Whether a line goes on with the last value."""
        item = _ITEM.match(text) is not None
        if indent > last.indent:
            return last.kind in ("text", "lines") or item or not _KEY.match(text)
        return item and indent == last.indent and last.kind in ("empty", "lines")

    def _more(self, last: _Value, text: bytes, row: tuple[int, int]) -> str:
        item = _ITEM.match(text)
        if last.kind == "empty":
            last.kind, last.joint = ("lines", b"\n") if item else ("text", b" ")
        last.parts.append(text.strip())
        last.end = row[0] + len(_text(self.data, row))
        if last.kind == "block":
            return ""
        if item and item[0].count(b"-") > MAX_DEPTH:
            return _too_deep()
        if last.kind == "text" and last.parts[0][:1] not in b"[{":
            return ""
        if last.kind == "text":
            return _refusal(last.names, b" ".join(last.parts))
        return _refusal(last.names, text[item.end() :] if item else text)

    def _key(self, text: bytes, indent: int, row: tuple[int, int]) -> str:
        found = _KEY.match(text)
        if found is None:
            return "a line of the frontmatter is not `key: text`"
        while self.around and self.around[-1].indent >= indent:
            self.around.pop()
        if indent and not self.around:
            return "a line of the frontmatter is indented below nothing"
        above = self.around[-1].names if self.around else ()
        names = (*above, found[2].decode("utf-8", "replace"))
        if len(names) > MAX_DEPTH:
            return _too_deep()
        if names in self.seen:
            return f"the frontmatter names `{'.'.join(names)}` twice"
        self.seen.add(names)
        if self.around:
            self.around[-1].kind = "map"
        value = _value(names, text, found.end(), row[0] + indent, indent)
        self.values.append(value)
        self.around.append(value)
        return _refusal(names, value.parts[0]) if value.kind == "text" else ""


def _value(names: Names, text: bytes, at: int, start: int, indent: int) -> _Value:
    """The value that begins on the line of its key."""
    raw = text[at:]
    bare = raw.strip(b" \t")
    if _BLOCK.match(bare):
        joint = b"\n" if bare[:1] == b"|" else b" "
        return _Value(names, indent, start + at, start + len(text), "block", joint)
    kept = _without_comment(raw)
    end = start + at + len(kept.rstrip(b" \t"))
    kind = "text" if kept.strip(b" \t") else "empty"
    parts = [kept.strip(b" \t")] if kind == "text" else []
    return _Value(names, indent, start + at, max(end, start + at), kind, b" ", parts)


def _without_comment(raw: bytes) -> bytes:
    """A value's bytes up to a comment; a `#` inside quotes is none."""
    bare = raw.lstrip(b" \t")
    quote = bare[:1]
    after = 0
    if quote in (b'"', b"'"):
        shut = _closing(bare, quote)
        after = 0 if shut is None else len(raw) - len(bare) + shut + 1
        if shut is None:
            return raw
    found = _COMMENT.search(raw, after)
    return raw if found is None else raw[: found.start()]


def _closing(text: bytes, quote: bytes) -> int | None:
    """Where the quotation that begins a text ends."""
    at = 1
    while at < len(text):
        one = text[at : at + 1]
        if one == b"\\" and quote == b'"':
            at += 1
        elif one == quote:
            if quote == b'"' or text[at + 1 : at + 2] != quote:
                return at
            at += 1
        at += 1
    return None


def _refusal(names: Names, value: bytes) -> str:
    """Why a value is not read: an alias, anchor or tag, or brackets too deep."""
    mark, inside = (_TAG, _TAGGED) if names[0] == _GLOBBED else (_MARK, _MARKED)
    if mark.match(value):
        return "the frontmatter has an alias, an anchor or a tag"
    if value[:1] not in (b"[", b"{"):
        return ""
    if inside.search(value):
        return "the frontmatter has an alias, an anchor or a tag"
    depth = 0
    for byte in value:
        depth += (byte in b"[{") - (byte in b"]}")
        if depth > MAX_DEPTH:
            return _too_deep()
    return ""


def _too_deep() -> str:
    return f"the frontmatter is more than {MAX_DEPTH} deep"


def _unquote(raw: bytes) -> str:
    """The text of a value as YAML would give it for a string."""
    quote = raw[:1]
    text = raw.decode("utf-8", "replace")
    if quote not in (b'"', b"'") or _closing(raw, quote) != len(raw) - 1:
        return text
    inside = text[1:-1]
    return inside.replace("''", "'") if quote == b"'" else _ESCAPE.sub(_unescape, inside)


def _unescape(found: re.Match[str]) -> str:
    code = found[1] or found[2] or found[3]
    if not code:
        return _LETTERS.get(found[4], found[4])
    number = int(code, 16)
    return "\ufffd" if number > 0x10FFFF or 0xD800 <= number < 0xE000 else chr(number)


# Writing


def scalar(text: str) -> str:
    """A string as a value that every YAML reader takes for that string."""
    plain = (
        text[:1].isalpha()
        and text.isprintable()
        and text == text.strip()
        and ": " not in text
        and " #" not in text
        and not text.endswith(":")
        and text.lower() not in _WORDS
    )
    return text if plain else '"' + "".join(map(_escape_letter, text)) + '"'


def _escape_letter(letter: str) -> str:
    if letter in '"\\':
        return "\\" + letter
    if letter.isprintable():
        return letter
    short = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(letter)
    number = ord(letter)
    return short or (f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}")


def newline(data: bytes) -> bytes:
    """The line end that a file uses first; LF where it has none."""
    found = re.search(rb"\r\n|\n|\r", data)
    return b"\n" if found is None else found[0]


def edit(data: bytes, names: Names, value: str) -> bytes:
    """The file with one key set to a text; every byte outside that value stays."""
    front = parse_frontmatter(data)
    if front.fault or data.startswith(_FOREIGN):
        raise _uneditable(front.fault or "the file is not UTF-8 text")
    new = _edit_value(data, front, names, scalar(value).encode())
    if parse_frontmatter(new).get(*names) != value:
        raise _uneditable(f"`{'.'.join(names)}` does not fit there")
    return new


def remove(data: bytes, name: str) -> bytes:
    """The file without the lines of one key."""
    front = parse_frontmatter(data)
    found = front.find(name)
    if found is None:
        return data
    last = max(one.end for one in front.fields if one.names[0] == name)
    start = max(data.rfind(b"\n", 0, found.start), data.rfind(b"\r", 0, found.start)) + 1
    row = next(row for row in _rows(data[: front.body], last) if row[1] > last)
    return data[:start] + data[row[1] :]


def _edit_value(data: bytes, front: Frontmatter, names: Names, value: bytes) -> bytes:
    found = front.find(*names)
    if found is not None:
        if any(one.names[: len(names)] == names and one is not found for one in front.fields):
            raise _uneditable(f"`{'.'.join(names)}` holds other keys")
        return data[: found.start] + b" " + value + data[found.end :]
    end = newline(data)
    if not front.present:
        lines = _lines(names, 0, value, end)
        gap = b"" if data[front.body :][:1] in (b"\n", b"\r", b"") else end
        head = b"---" + end + lines + b"---" + end + gap
        return data[: front.body] + head + data[front.body :]
    below = [one for one in front.fields if one.names[:1] == names[:1]]
    if not below:
        at = front.inside[1]
        return data[:at] + _lines(names, 0, value, end) + data[at:]
    if len(names) != 2 or below[0].value:
        raise _uneditable(f"`{'.'.join(names[:-1])}` holds no keys")
    indent = below[1].indent if len(below) > 1 else 2
    at = below[-1].end
    line = end + b" " * indent + names[-1].encode() + b": " + value
    return data[:at] + line + data[at:]


def _lines(names: Names, indent: int, value: bytes, end: bytes) -> bytes:
    key, *rest = names
    start = b" " * indent + key.encode() + b":"
    if not rest:
        return start + b" " + value + end
    return start + end + _lines(tuple(rest), indent + 2, value, end)


def _uneditable(why: str) -> InvalidInput:
    return InvalidInput(
        "The frontmatter cannot be edited", where=why, do="Open the file and fix it by hand"
    )
