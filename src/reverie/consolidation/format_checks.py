"""Faults of a memory's form: its head, its headings, and what edits by hand leave behind.

A type outside the four loads as untyped, a head that is never closed is no head, and what stands
in a second one is never read. A heading that stands twice in one place splits its section in two.
Marks of a merge that was never settled and a line that stands twice in a row are leftovers. Where
mending loses no word it is offered: the type that was meant, the missing fence, the second of two
equal lines, the second part of a section put behind the first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from reverie.consolidation.folder import ParsedTopic
from reverie.rules.rule import APPLIES, LEVEL, faults_in
from reverie.text.markdown import MarkdownBlock, Section, blocks, sections
from reverie.topics import frontmatter
from reverie.topics.entry import TYPES, type_of

_KEY = re.compile(r"[A-Za-z][\w-]*:(?:[ \t].*)?\Z")
_FENCE = "---"
_MARKS = (re.compile(r"<{7}(?: |\Z)"), re.compile(r"={7}\Z"), re.compile(r">{7}(?: |\Z)"))
_MEANT = {"preference": "user", "person": "user", "rule": "feedback", "correction": "feedback"}
_CLOSE = 0.75
_DOUBLED = 12  # letters of a line that does not stand twice by chance


@dataclass(frozen=True, slots=True)
class FormFault:
    """What is wrong, where, and the stretch of the text that would mend it."""

    rule: str
    line: int
    words: str
    start: int = -1
    end: int = -1
    new: str = ""


def form_faults(memory: ParsedTopic) -> Iterator[FormFault]:
    """Everything that is wrong with how a memory is written."""
    text = memory.text
    front = frontmatter.parse_frontmatter(text.encode("utf-8", "surrogatepass"))
    if front.present:
        yield from _type(text, front)
        yield from _rule(text, front)
        yield from _second_head(text, front)
    else:
        yield from _unclosed_heads(text, front)
    body = _body_start(text, front)
    every = blocks(text[body:])
    code = {body_line for one in every if one.kind in ("code", "row") for body_line in _lines(one)}
    first = text.count("\n", 0, body)
    yield from _conflicts(text, first, code)
    yield from _doubled_lines(text, first, code)
    yield from _repeated_headings(text, body)


def _rule(text: str, front: frontmatter.Frontmatter) -> Iterator[FormFault]:
    """A head that speaks of calls, and could never hold one, or would hold all."""
    found = front.find(APPLIES) or front.find(LEVEL)
    for words in faults_in(front, type_of(front)) if found else ():
        line = text.count("\n", 0, found.start if found else 0) + 1
        yield FormFault("rule", line, words)


def _lines(one: MarkdownBlock) -> range:
    return range(one.line, one.last + 1)


def _body_start(text: str, front: frontmatter.Frontmatter) -> int:
    data = text.encode("utf-8", "surrogatepass")
    return len(data[: front.body].decode("utf-8", "surrogatepass")) if front.present else 0


# The head


def _type(text: str, front: frontmatter.Frontmatter) -> Iterator[FormFault]:
    for names in (("type",), ("metadata", "type")):
        found = front.find(*names)
        if found is None or not found.value.strip() or found.value.strip() in TYPES:
            continue
        said = found.value.strip()
        low = said.casefold().rstrip("s")
        near = get_close_matches(low, TYPES, 1, _CLOSE)
        meant = _MEANT.get(low, near[0] if near else "")
        data = text.encode("utf-8", "surrogatepass")
        start = len(data[: found.start].decode("utf-8", "surrogatepass"))
        end = len(data[: found.end].decode("utf-8", "surrogatepass"))
        line = text.count("\n", 0, start) + 1
        told = f"“{said[:40]}” is none of {', '.join(TYPES)}"
        if meant:
            yield FormFault("type", line, f"{told}: {meant} is meant", start, end, f" {meant}")
        else:
            yield FormFault("type", line, told)


def _second_head(text: str, front: frontmatter.Frontmatter) -> Iterator[FormFault]:
    start = _body_start(text, front)
    rest = text[start:]
    shift = len(rest) - len(rest.lstrip("\r\n"))
    second = frontmatter.parse_frontmatter(rest[shift:].encode("utf-8", "surrogatepass"))
    if not second.present or not second.fields:
        return
    line = text.count("\n", 0, start + shift) + 1
    size = len(
        rest[shift:]
        .encode("utf-8", "surrogatepass")[: second.body]
        .decode("utf-8", "surrogatepass")
    )
    same = all(front.get(*one.names) == one.value for one in second.fields if one.value)
    told = "a second head stands below the first, and is not read as one"
    if same:
        yield FormFault("head", line, told, start, start + shift + size, "")
    else:
        yield FormFault("head", line, told)


def _unclosed_heads(text: str, front: frontmatter.Frontmatter) -> Iterator[FormFault]:
    rows = text.split("\n")
    if not rows or rows[0].rstrip("\r \t") != _FENCE:
        return
    last = 0
    for number, row in enumerate(rows[1:], 1):
        bare = row.rstrip("\r")
        if not _KEY.match(bare) and not (bare[:1] in " \t" and bare.strip() and last):
            break
        last = number
    told = f"the head is not read: {front.fault or 'it is not closed'}"
    if not last or (front.fault and front.closed):
        yield FormFault("head", 1, told)
        return
    end = sum(len(row) + 1 for row in rows[: last + 1])
    stop = "\r\n" if rows[0].endswith("\r") else "\n"
    yield FormFault("head", 1, told, end, end, f"{_FENCE}{stop}")


# The body


def _conflicts(text: str, first: int, code: set[int]) -> Iterator[FormFault]:
    """`<<<<<<<`, `=======` and `>>>>>>>` in this order: a merge that nobody settled."""
    wanted, start = 0, 0
    for number, row in enumerate(text.split("\n")[first:], 1):
        if number in code:
            continue
        if _MARKS[wanted].match(row.rstrip("\r")):
            start = start or number
            wanted += 1
        if wanted == len(_MARKS):
            yield FormFault("conflict", first + start, "marks of a merge that was never settled")
            wanted, start = 0, 0


def _doubled_lines(text: str, first: int, code: set[int]) -> Iterator[FormFault]:
    rows = text.split("\n")
    at = sum(len(row) + 1 for row in rows[:first])
    before, gap = "", at
    for number, row in enumerate(rows[first:], 1):
        end = min(len(text), at + len(row) + 1)
        bare = row.strip()
        if bare and number not in code:
            if bare == before and len(re.findall(r"\w", bare)) >= _DOUBLED:
                yield FormFault(
                    "doubled", first + number, bare, gap, end - (end == len(text) and row != ""), ""
                )
            before, gap = bare, end
        elif number in code:
            before = ""
        at = end


def _repeated_headings(text: str, body: int) -> Iterator[FormFault]:
    """A heading that stands twice under the same one: its section is in two parts."""
    every = sections(text, body)
    titles = [one for one in every if one.title]
    if len({(one.level, _heading(one.title)) for one in titles}) == len(titles):
        return
    known: dict[tuple[str, ...], Section] = {}
    path: list[tuple[int, str]] = []
    told = False
    for one in titles:
        path = [step for step in path if step[0] < one.level]
        path.append((one.level, _heading(one.title)))
        place = tuple(f"{level} {title}" for level, title in path)
        if place not in known:
            known[place] = one
        elif not told:
            told = True
            line = text.count("\n", 0, one.start) + 1
            yield FormFault("heading", line, f"“{one.title[:80]}” stands twice in one place")


def _heading(title: str) -> str:
    """Return a heading as it is compared: every sign of it, since C is not C++."""
    return " ".join(title.split()).lower()


def joined_sections(text: str, body: int) -> str:
    """The text with each section that stands in two parts in one piece."""
    every = sections(text, body)
    path: list[tuple[int, str]] = []
    first: dict[tuple[str, ...], int] = {}
    parts: list[list[str]] = []
    last: Mapping[tuple[str, ...], int] = first
    for one in every:
        piece = text[one.start : one.end]
        if not one.title:
            parts.append([piece])
            continue
        path = [step for step in path if step[0] < one.level]
        path.append((one.level, _heading(one.title)))
        place = tuple(f"{level} {title}" for level, title in path)
        at = last.get(place)
        if at is None:
            first[place] = len(parts)
            parts.append([piece])
        else:
            parts[at].append(text[one.body : one.end])
    return text[:body] + _put_together(parts)


def _put_together(parts: list[list[str]]) -> str:
    rows: list[str] = []
    for part in parts:
        more = [one.strip("\r\n") for one in part[1:] if one.strip()]
        if not more:
            rows.append(part[0])
            continue
        rows.append("\n\n".join([part[0].rstrip(), *more]) + "\n\n")
    made = "".join(rows)
    return made.rstrip("\n") + "\n" if any(len(part) > 1 for part in parts) else made
