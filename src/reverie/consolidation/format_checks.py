"""Issues of a memory's form: its frontmatter, its headings, and what edits by hand leave behind.

A type outside the four loads as untyped, and frontmatter that is never closed is none. A heading
that stands twice in one place splits its section in two. Marks of a merge that was never settled
and a line that stands twice in a row are leftovers. Where a repair loses no word it is offered: the
type that was meant, the missing fence, the second of two equal lines, the second part of a section
put behind the first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches

from reverie.consolidation.folder import ParsedTopic
from reverie.rules.rule import APPLIES, LEVEL, faults_in
from reverie.text.markdown import Section, blocks, sections
from reverie.topics import frontmatter
from reverie.topics.entry import TYPES, type_of
from reverie.topics.frontmatter import Frontmatter

_KEY = re.compile(r"[A-Za-z][\w-]*:(?:[ \t].*)?\Z")
_FENCE = "---"
_MARKS = (re.compile(r"<{7}(?: |\Z)"), re.compile(r"={7}\Z"), re.compile(r">{7}(?: |\Z)"))
_MEANT = {"preference": "user", "person": "user", "rule": "feedback", "correction": "feedback"}
_CLOSE = 0.75  # how alike a type is to the one that was meant: 24 of 24 planted misspellings
_DOUBLED = 12  # letters of a line that does not stand twice by chance: 24 of 24 planted


@dataclass(frozen=True, slots=True)
class FormFault:
    """What is wrong, where, and the stretch of the text that would repair it."""

    rule: str
    line: int
    words: str
    start: int = -1
    end: int = -1
    new: str = ""


def form_faults(memory: ParsedTopic) -> Iterator[FormFault]:
    """Yield everything that is wrong with how a memory is written."""
    text = memory.text
    front = frontmatter.parse_frontmatter(text.encode("utf-8", "surrogatepass"))
    if front.present:
        yield from _type(text, front)
        found = front.find(APPLIES) or front.find(LEVEL)
        for words in faults_in(front, type_of(front)) if found else ():
            yield FormFault("rule", text.count("\n", 0, found.start if found else 0) + 1, words)
    else:
        yield from _unclosed(text, front)
    body = body_start(text, front)
    first = text.count("\n", 0, body)
    code = {
        first + number
        for one in blocks(text[body:])
        if one.kind in ("code", "row")
        for number in range(one.line, one.last + 1)
    }
    yield from _leftovers(text, first, code)
    seen: set[tuple[str, ...]] = set()
    for section, place in _places(sections(text, body)):
        if place in seen:
            line = text.count("\n", 0, section.start) + 1
            yield FormFault("heading", line, f"“{section.title[:80]}” stands twice in one place")
            return
        seen.add(place)


def body_start(text: str, front: Frontmatter) -> int:
    """Return where the body begins, in characters."""
    return _characters(text, front.body) if front.present else 0


def _characters(text: str, size: int) -> int:
    return len(text.encode("utf-8", "surrogatepass")[:size].decode("utf-8", "surrogatepass"))


def _type(text: str, front: Frontmatter) -> Iterator[FormFault]:
    for found in filter(None, (front.find("type"), front.find("metadata", "type"))):
        said = found.value.strip()
        if not said or said in TYPES:
            continue
        low = said.casefold().rstrip("s")
        near = get_close_matches(low, TYPES, 1, _CLOSE)
        meant = _MEANT.get(low, near[0] if near else "")
        start, end = _characters(text, found.start), _characters(text, found.end)
        line = text.count("\n", 0, start) + 1
        told = f"“{said[:40]}” is none of {', '.join(TYPES)}"
        if meant:
            yield FormFault("type", line, f"{told}: {meant} is meant", start, end, f" {meant}")
        else:
            yield FormFault("type", line, told)


def _unclosed(text: str, front: Frontmatter) -> Iterator[FormFault]:
    rows = text.split("\n")
    if rows[0].rstrip("\r \t") != _FENCE:
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


def _leftovers(text: str, first: int, code: set[int]) -> Iterator[FormFault]:
    """`<<<<<<<`, `=======` and `>>>>>>>` in this order, and lines that stand twice in a row."""
    end = wanted = start = gap = 0
    before = ""
    for number, row in enumerate(text.split("\n"), 1):
        end = min(len(text), end + len(row) + 1)
        bare = row.strip()
        if number <= first or number in code:
            before, gap = "", end
            continue
        if _MARKS[wanted].match(row.rstrip("\r")):
            start = start or number
            wanted += 1
        if wanted == len(_MARKS):
            yield FormFault("conflict", start, "marks of a merge that was never settled")
            wanted, start = 0, 0
        if bare:
            if bare == before and len(re.findall(r"\w", bare)) >= _DOUBLED:
                last = end - (end == len(text) and not text.endswith("\n"))
                yield FormFault("doubled", number, bare, gap, last, "")
            before, gap = bare, end


def _places(every: tuple[Section, ...]) -> Iterator[tuple[Section, tuple[str, ...]]]:
    """Each section with the headings above it; every sign of a heading counts: C is not C++."""
    path: list[tuple[int, str]] = []
    for one in every:
        if one.title:
            path = [step for step in path if step[0] < one.level]
            path.append((one.level, " ".join(one.title.split()).lower()))
            yield one, tuple(f"{level} {title}" for level, title in path)


def joined_sections(text: str, body: int) -> str:
    """Return the text with each section that stands in two parts in one piece."""
    every = sections(text, body)
    places = {id(one): place for one, place in _places(every)}
    first: dict[tuple[str, ...], list[str]] = {}
    parts: list[list[str]] = []
    for one in every:
        place = places.get(id(one), ())
        if place in first:
            first[place].append(text[one.body : one.end])
            continue
        parts.append([text[one.start : one.end]])
        if place:
            first[place] = parts[-1]
    made = "".join(map(_together, parts))
    joined = any(len(part) > 1 for part in parts)
    return text[:body] + (made.rstrip("\n") + "\n" if joined else made)


def _together(part: list[str]) -> str:
    more = [one.strip("\r\n") for one in part[1:] if one.strip()]
    return "\n\n".join([part[0].rstrip(), *more]) + "\n\n" if more else part[0]
