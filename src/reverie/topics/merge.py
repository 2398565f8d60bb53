"""Three-way merge of memory files: two people changed one text, and both keep their words.

`merge(key, base, ours, theirs)` is a pure function of texts. A side that changed nothing gives
way to the other; what both added is kept once; what one side deleted is gone only if the other
left it alone. Where both changed the same lines, both stay in the text, between HTML comments
that Markdown does not show and no tool takes for a heading. A topic file's frontmatter is
merged key by key, and never holds a comment. In an index a pointer is known by the file it
points to: two sides' pointers are a set, in the order that both kept.

No line is lost that no side deleted. Nothing is read or written, and bytes that are no text
pass through where they came in as surrogate escapes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from typing import TypeVar

from reverie.light import dataclass
from reverie.text.format import matching, union
from reverie.topics.entry import is_index

H = TypeVar("H", bound=Hashable)

OURS = "<!-- conflict: this side -->"
THEIRS = "<!-- conflict: other side -->"
END = "<!-- conflict: end -->"

_POINTER = re.compile(r"^\s*[-*+]\s+\[(?P<title>[^\]]*)\]\((?P<target>[^)\s]+)\)(?P<rest>.*)$")
_HOOK = re.compile(r"^\s*(?:—|–|--?|:)\s*")
_FENCE = re.compile(r"---[ \t]*")
_FIELD = re.compile(r"(?P<indent>[ ]*)(?P<key>[^\s:#\-][^:]*?)[ ]*:(?:[ ].*|)$")
_LATEST = frozenset({"modified", "updated", "updated_at"})


@dataclass(frozen=True, slots=True)
class Conflict:
    """Lines that both sides changed, each in its own way; both are in the merged text."""

    base: str
    ours: str
    theirs: str
    where: str = "body"


@dataclass(frozen=True, slots=True)
class MergeResult:
    """The merged text, and where a person should look."""

    text: str
    conflicts: tuple[Conflict, ...] = ()

    @property
    def clean(self) -> bool:
        return not self.conflicts


@dataclass(frozen=True, slots=True)
class Chunk:
    """A stretch of the three texts: unchanged lines, or what each side made of it."""

    base: tuple[str, ...]
    ours: tuple[str, ...]
    theirs: tuple[str, ...]

    @property
    def settled(self) -> tuple[str, ...] | None:
        """What both sides agree on, or None where they do not."""
        if self.theirs in (self.ours, self.base):
            return self.ours
        if self.ours == self.base:
            return self.theirs
        return None if self.base else union(self.ours, self.theirs)


def merge_file(key: str, base: str, ours: str, theirs: str) -> MergeResult:
    """Merge a memory file as what its name says it is."""
    if is_index(key):
        return merge_index(base, ours, theirs)
    return merge_topic(base, ours, theirs)


def merge_text(base: str, ours: str, theirs: str) -> MergeResult:
    """Merge by lines alone."""
    same = _trivial(base, ours, theirs)
    if same is not None:
        return MergeResult(same)
    ends = _Ends.of(base, ours, theirs)
    out: list[str] = []
    conflicts: list[Conflict] = []
    for chunk in chunks(*map(ends.split, (base, ours, theirs))):
        settled = chunk.settled
        if settled is None:
            conflicts.append(_conflict(chunk))
            settled = (ends.line(OURS), *chunk.ours, ends.line(THEIRS), *chunk.theirs)
            settled = (*settled, ends.line(END))
        out += settled
    return MergeResult(ends.join(out), tuple(conflicts))


def _trivial(base: str, ours: str, theirs: str) -> str | None:
    if theirs in (ours, base):
        return ours
    return theirs if ours == base else None


def _conflict(chunk: Chunk, where: str = "body") -> Conflict:
    return Conflict("".join(chunk.base), "".join(chunk.ours), "".join(chunk.theirs), where)


# Lines and their ends


def lines_of(text: str) -> list[str]:
    """A text's lines, each with its end; only a newline ends a line."""
    parts = text.split("\n")
    lines = [f"{part}\n" for part in parts[:-1]]
    return [*lines, parts[-1]] if parts[-1] else lines


@dataclass(frozen=True, slots=True)
class _Ends:
    """How lines end in the merged text; "" where the texts mix ends and each line keeps its own."""

    newline: str
    closed: bool

    @classmethod
    def of(cls, base: str, ours: str, theirs: str) -> _Ends:
        styles = [_style(text) for text in (base, ours, theirs)]
        known = [style for style in styles if style != "none"]
        newline = ""
        if "mixed" not in known:
            first = known[0] if known else "\n"
            old, left, right = (first if style == "none" else style for style in styles)
            newline = left if left != old else right
        was, left, right = (not text or text.endswith("\n") for text in (base, ours, theirs))
        return cls(newline, left if left != was else right)

    def split(self, text: str) -> list[str]:
        if not self.newline:
            lines = lines_of(text)
            return [*lines[:-1], lines[-1].rstrip("\n") + "\n"] if lines else lines
        return [line.rstrip("\n").removesuffix("\r") for line in lines_of(text)]

    def line(self, text: str) -> str:
        return text if self.newline else f"{text}\n"

    def join(self, lines: Sequence[str]) -> str:
        text = "".join(f"{line}{self.newline}" for line in lines)
        if self.closed or not text:
            return text
        return text.removesuffix("\n").removesuffix("\r" if self.newline == "\r\n" else "")


def _style(text: str) -> str:
    breaks = text.count("\n")
    if not breaks:
        return "none"
    windows = text.count("\r\n")
    return "\n" if not windows else "\r\n" if windows == breaks else "mixed"


# Aligning three texts


def chunks(base: Sequence[str], ours: Sequence[str], theirs: Sequence[str]) -> Iterator[Chunk]:
    """The three texts cut where all of them agree, unchanged stretches among them."""
    left, right = _matches(base, ours), _matches(base, theirs)
    at: int = 0
    a: int = 0
    b: int = 0
    while at < len(base) or a < len(ours) or b < len(theirs):
        steady = _steady(left, right, at, a, b)
        if steady:
            yield _chunk(base, ours, theirs, (at, at + steady), (a, a + steady), (b, b + steady))
            at, a, b = at + steady, a + steady, b + steady
            continue
        end = next((n for n in range(at, len(base)) if n in left and n in right), -1)
        upto: tuple[int, int, int] = (len(base), len(ours), len(theirs))
        if end >= 0:
            upto = (end, left[end], right[end])
        yield _chunk(base, ours, theirs, (at, upto[0]), (a, upto[1]), (b, upto[2]))
        at, a, b = upto


def _steady(left: dict[int, int], right: dict[int, int], at: int, a: int, b: int) -> int:
    count = 0
    while left.get(at + count) == a + count and right.get(at + count) == b + count:
        count += 1
    return count


def _chunk(
    base: Sequence[str],
    ours: Sequence[str],
    theirs: Sequence[str],
    old: tuple[int, int],
    left: tuple[int, int],
    right: tuple[int, int],
) -> Chunk:
    return Chunk(tuple(base[slice(*old)]), tuple(ours[slice(*left)]), tuple(theirs[slice(*right)]))


def _matches(base: Sequence[H], side: Sequence[H]) -> dict[int, int]:
    """Which line of a side each line of the base is; in order, so that none crosses another."""
    return {start + n: at + n for start, at, size in matching(base, side) for n in range(size)}


# An index


def merge_index(base: str, ours: str, theirs: str) -> MergeResult:
    """Merge an index: pointers as a set by the file they name, all else by lines."""
    same = _trivial(base, ours, theirs)
    if same is not None:
        return MergeResult(same)
    ends = _Ends.of(base, ours, theirs)
    tables = [_tokens(ends.split(text)) for text in (base, ours, theirs)]
    old, left, right = tables
    conflicts: list[Conflict] = []
    lines: dict[str, str | None] = {}
    for token in dict.fromkeys([*left, *right, *old]):
        lines[token], conflict = _pointer(old.get(token), left.get(token), right.get(token))
        conflicts += [conflict] if conflict else []
    order: list[str] = []
    for chunk in chunks(list(old), list(left), list(right)):
        settled = chunk.settled
        order += union(chunk.ours, chunk.theirs) if settled is None else settled
    seen = dict.fromkeys([*order, *(token for token in (*left, *right) if lines[token])])
    kept = (lines[token] for token in seen)
    return MergeResult(ends.join([line for line in kept if line is not None]), tuple(conflicts))


def _tokens(lines: Sequence[str]) -> dict[str, str]:
    """Each line under a name: a pointer under its target, a second one to it under its own."""
    seen: Counter[str] = Counter()
    out: dict[str, str] = {}
    for line in lines:
        found = _POINTER.match(line.rstrip("\r\n"))
        name = f"→{found['target']}" if found else f" {line}"
        seen[name] += 1
        out[f"{name}\0{seen[name]}"] = line
    return out


def _pointer(
    old: str | None, ours: str | None, theirs: str | None
) -> tuple[str | None, Conflict | None]:
    if theirs in (ours, old):
        return ours, None
    if ours == old:
        return theirs, None
    if ours is None or theirs is None:
        return ours or theirs, None
    return _join_pointers(ours, theirs), Conflict(old or "", ours, theirs, "index")


def _join_pointers(ours: str, theirs: str) -> str:
    """One pointer with both sides' words."""
    left, right = _POINTER.match(ours.rstrip("\r\n")), _POINTER.match(theirs.rstrip("\r\n"))
    if left is None or right is None:
        return ours
    end = ours[len(ours.rstrip("\r\n")) :]
    mine, other = (_HOOK.sub("", found["rest"]).strip() for found in (left, right))
    more = [] if other in mine else [other]
    more += [] if right["title"] in (left["title"], *more) else [right["title"]]
    if not more:
        return ours
    return f"{ours.rstrip()}{'; ' if mine else ' — '}{'; '.join(more)}{end}"


# A topic file


def merge_topic(base: str, ours: str, theirs: str) -> MergeResult:
    """Merge a topic file: its frontmatter key by key, its body by lines."""
    same = _trivial(base, ours, theirs)
    if same is not None:
        return MergeResult(same)
    heads = [_head(text) for text in (base, ours, theirs)]
    if not heads[1] or not heads[2]:
        return merge_text(base, ours, theirs)
    bodies = [text[len(head) :] for text, head in zip((base, ours, theirs), heads, strict=True)]
    body = merge_text(bodies[0], bodies[1], bodies[2])
    ends = _Ends.of(*heads)
    split = [ends.split(head) for head in heads]
    left_over: list[Conflict] = []
    old, left, right = (rows[1:-1] for rows in split)
    fields = _merge_fields(old, left, right, left_over)
    head = "".join(f"{row}{ends.newline}" for row in (split[1][0], *fields, split[1][-1]))
    text = body.text
    for one in left_over:
        text = _append_conflict(text, one, ends.newline or "\n")
    return MergeResult(head + text, (*left_over, *body.conflicts))


def _append_conflict(body: str, conflict: Conflict, newline: str) -> str:
    """The body, with what a key of the frontmatter is on the other side in a comment behind it."""
    said = " ".join(conflict.theirs.split()).replace("--", "-\\-")
    gap = "" if not body or body.endswith("\n") else newline
    return f"{body}{gap}<!-- conflict: other side: {said} -->{newline}"


def _head(text: str) -> str:
    """The frontmatter of a text with the lines that fence it, or nothing."""
    lines = lines_of(text)
    if not lines or not _FENCE.fullmatch(lines[0].removeprefix("\ufeff").rstrip("\r\n")):
        return ""
    for number, line in enumerate(lines[1:], 1):
        if _FENCE.fullmatch(line.rstrip("\r\n")):
            return "".join(lines[: number + 1])
    return ""


def _merge_fields(
    base: Sequence[str], ours: Sequence[str], theirs: Sequence[str], left_over: list[Conflict]
) -> list[str]:
    """The rows of a frontmatter, or of one key's nested rows, merged by key."""
    old, left, right = (_fields(rows) for rows in (base, ours, theirs))
    if old is None or left is None or right is None:
        return _merge_rows(base, ours, theirs, left_over)
    out: list[str] = []
    for key in dict.fromkeys([*left, *right]):
        values = (old.get(key), left.get(key), right.get(key))
        out += _merge_field(key, *values, left_over)
    return out


def _merge_field(
    key: str,
    old: tuple[str, ...] | None,
    ours: tuple[str, ...] | None,
    theirs: tuple[str, ...] | None,
    left_over: list[Conflict],
) -> Sequence[str]:
    if theirs in (ours, old):
        return ours or ()
    if ours == old:
        return theirs or ()
    if ours is None or theirs is None:
        return ours or theirs or ()
    if key in _LATEST and len(ours) == len(theirs) == 1:
        return max(ours, theirs)
    if len(ours) > 1 and len(theirs) > 1 and ours[0] == theirs[0]:
        return [ours[0], *_merge_fields((old or ("",))[1:], ours[1:], theirs[1:], left_over)]
    left_over.append(_conflict(Chunk(old or (), ours, theirs), f"frontmatter {key}"))
    return ours


def _merge_rows(
    base: Sequence[str], ours: Sequence[str], theirs: Sequence[str], left_over: list[Conflict]
) -> list[str]:
    out: list[str] = []
    for chunk in chunks(base, ours, theirs):
        settled = chunk.settled
        if settled is None:
            left_over.append(_conflict(chunk, "frontmatter"))
            settled = chunk.ours
        out += settled
    return out


def _fields(rows: Sequence[str]) -> dict[str, tuple[str, ...]] | None:
    """Rows by the key they belong to; None where they are not all keys of one depth, once each."""
    out: dict[str, list[str]] = {}
    depth: int | None = None
    last = ""
    for row in rows:
        found = _FIELD.match(row)
        indent = len(row) - len(row.lstrip(" "))
        if found and (depth is None or indent == depth):
            depth, last = indent, found["key"]
            if last in out:
                return None
            out[last] = []
        elif not last or (row.strip() and depth is not None and indent < depth):
            return None
        out[last].append(row)
    return {key: tuple(lines) for key, lines in out.items()}
