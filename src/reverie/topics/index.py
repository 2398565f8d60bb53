"""The index `MEMORY.md`: one pointer a line, `- [Title](file.md) — hook`, and no content.

Reading keeps every byte; a change touches the one line it is about. What a pointer names is a
key below the index's own folder or nothing: a link that leads outside, by `..`, an absolute
path, an address or an encoding, is flagged and has no key, so nothing can follow it. Faults
are named; nothing is mended by itself.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterator, Sequence
from typing import Literal, TypeAlias

from reverie.light import dataclass, pattern
from reverie.text.markdown import MarkdownBlock, blocks
from reverie.text.safety import find, reveal, strip
from reverie.topics.frontmatter import BOM, newline

LOOKED_AT = 2_000
"""Bytes of one line that are looked at; a longer line is cut for that, never in the file."""
WIDTH = 150
DASH = " — "
SUPERSEDED = "superseded by "
"""How the hook of a memory begins in whose place a newer rule holds."""

IndexFaultKind: TypeAlias = Literal[
    "outside", "missing", "twice", "title", "long", "content", "hidden", "unlisted"
]

_LINE = pattern(
    r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+"
    r"\[(?P<title>(?:[^\[\]]|\[[^\[\]]*\])*)\]"
    r"\((?P<target><[^<>]*>|[^()\s]*(?:\([^()\s]*\)[^()\s]*)*)(?:[ \t]+\"[^\"]*\")?\)"
    r"(?P<hook>.*)"
)
_JOINT = pattern(r"[ \t]*(?:—|–|-|:|→)[ \t]*")
_SCHEME = pattern(r"[A-Za-z][A-Za-z0-9+.-]*:")
_PERCENT = pattern(rb"%([0-9A-Fa-f]{2})")
_LIKE_A_FILE = pattern(r"\S+\.[A-Za-z0-9]{1,8}|\S*[/\\]\S*|[A-Za-z][\w+.-]*:\S+")
_UNSAFE_IN_LINK = pattern(r"[\s()<>%]")
_KELVIN = "\u212a".encode()  # the one character outside ASCII that NFC makes a letter of ASCII


@dataclass(frozen=True, slots=True)
class Pointer:
    """One line of the index. `key` is the file it names, or "" where it names none of ours."""

    number: int
    start: int
    end: int
    title: str
    target: str
    hook: str
    key: str
    fault: str = ""


@dataclass(frozen=True, slots=True)
class IndexFault:
    """Something wrong with an index; `line` is 0 where it is about no line."""

    kind: IndexFaultKind
    line: int
    key: str
    reason: str


@dataclass(frozen=True, slots=True)
class Index:
    """An index file as it stands."""

    data: bytes
    pointers: tuple[Pointer, ...]

    def find(self, key: str) -> Pointer | None:
        """The first pointer to a file."""
        return next((one for one in self.pointers if one.key == key), None)


def put(data: bytes, key: str, title: str, hook: str, *, width: int = WIDTH) -> bytes:
    """The index with a pointer to `key`: its line replaced where there is one."""
    return put_line(data, find_pointer(data, key), line(key, title, hook, width=width))


def put_line(data: bytes, pointer: Pointer | None, text: str) -> bytes:
    """The index with a line in place of that of a pointer, or behind the last one."""
    if pointer is not None:
        return _replace_line(data, pointer, text.encode())
    return _add_line(data, _end_of_pointers(data), text.encode())


def ends_in_pointer(tail: bytes) -> bool:
    """Whether an index that ends like this may have a line more at its end."""
    *_, last, nothing = (b"\n", *tail.split(b"\n"))
    plain = not nothing and b"\r" not in tail
    return plain and _pointer(0, 1, last) is not None


def without(data: bytes, key: str) -> bytes:
    """The index without any line that points to `key`."""
    return _cut_out(data, pointers_to(data, key))


def current(data: bytes) -> bytes:
    """The index without the memories that newer rules superseded."""
    if SUPERSEDED.encode() not in data:
        return data
    found = pointers_with(data, SUPERSEDED.encode())
    return _cut_out(data, [one for one in found if one.hook.startswith(SUPERSEDED)])


def find_pointer(data: bytes, key: str) -> Pointer | None:
    """The first pointer to a file; its number is 0."""
    return next(iter(pointers_to(data, key)), None)


def pointers_to(data: bytes, key: str) -> list[Pointer]:
    """All pointers to a file, in their order; their numbers are 0.

    Only lines that may be one are read, so that the length of the index hardly counts.
    """
    plain = key.isascii() and "/" not in key
    needles = (key.encode(), b"%", _KELVIN) if plain else (b"](",)
    return [one for one in pointers_with(data, *needles) if one.key == key]


def pointers_with(data: bytes, *needles: bytes) -> list[Pointer]:
    """The pointers whose lines hold one of some bytes, in their order; their numbers are 0."""
    if _has_bare_returns(data):
        rows = [(one.start, one.end) for one in parse_index(data).pointers]
        found = {row for row in rows if any(needle in data[slice(*row)] for needle in needles)}
    else:
        found = {row for needle in needles for row in _rows_with(data, needle)}
    read = (_pointer(0, start, data[start:end]) for start, end in sorted(found))
    return [one for one in read if one is not None]


def _has_bare_returns(data: bytes) -> bool:
    """Whether a line may end in a `\\r` alone."""
    return b"\r" in data and data.count(b"\r") != data.count(b"\r\n")


def _rows_with(data: bytes, needle: bytes) -> Iterator[tuple[int, int]]:
    at = data.find(needle)
    while at >= 0:
        start, end = data.rfind(b"\n", 0, at) + 1, data.find(b"\n", at) + 1 or len(data)
        yield start, end
        at = data.find(needle, end)


def _end_of_pointers(data: bytes) -> int | None:
    """Where the last pointer's line ends."""
    if _has_bare_returns(data):
        pointers = parse_index(data).pointers
        return pointers[-1].end if pointers else None
    end = len(data)
    while end:
        start = data.rfind(b"\n", 0, end - 1) + 1
        if _pointer(0, start, data[start:end]) is not None:
            return end
        end = start
    return None


def parse_index(data: bytes) -> Index:
    """Read an index; what is no pointer is left alone."""
    pointers: list[Pointer] = []
    at = 0
    for number, row in enumerate(data.splitlines(keepends=True), 1):
        found = _pointer(number, at, row)
        if found is not None:
            pointers.append(found)
        at += len(row)
    return Index(data, tuple(pointers))


def _pointer(number: int, start: int, row: bytes) -> Pointer | None:
    bare = row.removeprefix(BOM) if start == 0 else row
    text = bare[:LOOKED_AT].rstrip(b"\r\n").decode("utf-8", "replace")
    found = _LINE.match(text)
    if found is None:
        return None
    target = found["target"].removeprefix("<").removesuffix(">")
    key, fault = resolve_link(target)
    hook = _JOINT.sub("", found["hook"], count=1).strip()
    return Pointer(
        number, start, start + len(row), found["title"].strip(), target, hook, key, fault
    )


def resolve_link(target: str) -> tuple[str, str]:
    """The key that a link names, or "" and why it names none below the index's folder."""
    if _SCHEME.match(target) or target.startswith(("/", "~", "//")):
        return "", "it leads out of the memory folder"
    once = _decode_percent(target.partition("#")[0])
    if once is None or "%" in once:
        return "", "its target is encoded in a way that hides where it leads"
    key = unicodedata.normalize("NFC", once)
    if unicodedata.normalize("NFKC", key) != key or not key.isprintable():
        return "", "its target has characters that hide what it names"
    if "\\" in key or _SCHEME.match(key) or key.startswith(("/", "~")):
        return "", "it leads out of the memory folder"
    names = [name for name in key.split("/") if name != "."]
    if ".." in names:
        return "", "it leads out of the memory folder"
    if not all(names) or not names:
        return "", "it names no file"
    return "/".join(names), ""


def _decode_percent(text: str) -> str | None:
    """The text with % signs decoded, once; None where that gives no text."""
    try:
        data = text.encode()
        return _PERCENT.sub(lambda one: bytes([int(one[1], 16)]), data).decode()
    except UnicodeError:
        return None


def line(key: str, title: str, hook: str, *, width: int = WIDTH) -> str:
    """One index line without its line end: nothing hidden, its hook shortened to the width. A hook
    that begins with the title says all, and stands alone in its place."""
    plain = _link_text(title) or key
    target = f"<{key}>" if _UNSAFE_IN_LINK.search(key) else key
    words = " ".join(strip(hook).split())
    told = _link_text(hook)
    if told.startswith(plain) and not told[len(plain) : len(plain) + 1].isalnum():
        room = max(width - len(f"- []({target})"), width // 2)
        return f"- [{shorten(told, room)}]({target})"
    if len(plain) > width // 2:
        plain = shorten(plain, width // 2)
    start = f"- [{plain}]({target})"
    if not words:
        return start
    return start + DASH + shorten(words, max(width - len(start) - len(DASH), 20))


def _link_text(text: str) -> str:
    return " ".join(strip(text).replace("[", "(").replace("]", ")").split())


def shorten(text: str, width: int) -> str:
    """A text of at most `width` characters, cut between words where that is possible."""
    if len(text) <= width:
        return text
    head = text[: max(width - 1, 0)]
    space = head.rfind(" ")
    return (head[:space] if space > width // 2 else head).rstrip() + "…"


def _replace_line(data: bytes, pointer: Pointer, text: bytes) -> bytes:
    """The data with one line's text changed: its indent and line end stay."""
    row = data[pointer.start : pointer.end]
    mark = BOM if pointer.start == 0 and row.startswith(BOM) else b""
    bare = row.removeprefix(mark)
    indent = bare[: len(bare) - len(bare.lstrip(b" \t"))]
    end = row[len(row.rstrip(b"\r\n")) :]
    return data[: pointer.start] + mark + indent + text + end + data[pointer.end :]


def _add_line(data: bytes, after: int | None, text: bytes) -> bytes:
    """The data with a line more, behind the last pointer or at the end."""
    end = newline(data)
    at = len(data) if after is None else after
    before = data[:at]
    gap = b"" if not before.removeprefix(BOM) or before.endswith((b"\n", b"\r")) else end
    return before + gap + text + end + data[at:]


def _cut_out(data: bytes, lines: Sequence[Pointer]) -> bytes:
    kept, at = b"", 0
    for one in sorted(lines, key=lambda pointer: pointer.start):
        mark = BOM if one.start == 0 and data.startswith(BOM) else b""
        kept += data[at : one.start] + mark
        at = one.end
    return kept + data[at:]


# Content


@dataclass(frozen=True, slots=True)
class IndexContent:
    """Lines of an index that belong into a topic: those of one section, with its heading where
    nothing else stands below it. Numbers count from 1."""

    title: str
    lines: tuple[int, ...]
    heading: int = 0


def contents(index: Index) -> tuple[IndexContent, ...]:
    """What stands in an index and is no pointer: lists, tables, code, and the text of sections
    that hold nothing else. Words beside pointers, and before the first section, introduce them
    and are left alone."""
    text = index.data.decode("utf-8", "replace").replace("\r\n", "\n").removeprefix("\ufeff")
    if len(index.pointers) >= len([row for row in text.split("\n") if row.strip()]):
        return ()
    return tuple(_contents(text, {one.number for one in index.pointers}))


def _contents(text: str, pointers: set[int]) -> Iterator[IndexContent]:
    every = blocks(text)
    tops = [one.level for one in every if one.kind == "heading"]
    top = min([level for level in tops if level > 1], default=2)
    groups: list[list[MarkdownBlock]] = [[]]
    for one in every:
        if one.kind == "heading" and one.level <= top:
            groups.append([])
        groups[-1].append(one)
    for group in groups:
        head = group[0] if group and group[0].kind == "heading" else None
        rest = group[1:] if head else group
        listed = any(number in pointers for one in rest for number in _numbers(one))
        section = head is not None and head.level > 1 and not listed
        wrong = [one for one in rest if _is_content(one, section, pointers)]
        if not any(one.kind != "heading" for one in wrong):
            continue
        whole = section and head is not None
        rows = [number for one in wrong for number in _numbers(one) if number not in pointers]
        if section:
            last = max(rows)
            rows = list(range(wrong[0].line, last + 1))
        title = text[head.start : head.end] if head is not None and head.level > 1 else ""
        yield IndexContent(title, tuple(rows), head.line if whole and head is not None else 0)


def _numbers(one: MarkdownBlock) -> range:
    return range(one.line, one.last + 1)


def _is_content(one: MarkdownBlock, section: bool, pointers: set[int]) -> bool:
    if section:
        return True
    return one.kind in ("item", "row", "code") and one.line not in pointers


# Faults


def check(index: Index, keys: Collection[str], *, width: int = WIDTH) -> tuple[IndexFault, ...]:
    """What is wrong with an index whose folder holds the topic files `keys`."""
    known = frozenset(keys)
    faults = _of_pointers(index, known)
    pointed = {one.key for one in index.pointers}
    numbers = {one.number for one in index.pointers}
    wrong = {number for one in contents(index) for number in one.lines}
    for number, row in enumerate(index.data.splitlines(), 1):
        text = row[: 4 * max(width, LOOKED_AT)].decode("utf-8", "replace")
        if find(text.removeprefix("\ufeff")):
            reason = f"the line hides characters: {reveal(text)[:LOOKED_AT]}"
            faults.append(IndexFault("hidden", number, "", reason))
        if len(text) > width and number in numbers:
            faults.append(IndexFault("long", number, "", f"the line is over {width} characters"))
        if number in wrong:
            faults.append(IndexFault("content", number, "", "the line is no pointer"))
    missing = [key for key in sorted(known) if key not in pointed]
    faults += [IndexFault("unlisted", 0, key, "no line of the index names it") for key in missing]
    return tuple(sorted(faults, key=lambda one: (one.line == 0, one.line)))


def _of_pointers(index: Index, keys: frozenset[str]) -> list[IndexFault]:
    faults: list[IndexFault] = []
    seen: set[str] = set()
    for one in index.pointers:
        if one.fault:
            faults.append(IndexFault("outside", one.number, "", one.fault))
            continue
        if one.key not in keys:
            faults.append(IndexFault("missing", one.number, one.key, "there is no such memory"))
        elif one.key in seen:
            faults.append(
                IndexFault("twice", one.number, one.key, "another line names the same file")
            )
        seen.add(one.key)
        if _LIKE_A_FILE.fullmatch(one.title) and resolve_link(one.title)[0] != one.key:
            reason = "the text names another file than the link"
            faults.append(IndexFault("title", one.number, one.key, reason))
    return faults
