"""What memories say of each other: equal files, near-duplicates, and links between them.

Two files are equal where their sentences are, in any order, but for case, marks and articles:
numbers, ids, flags, names and the order of words are part of what they say. A file with a list, a
heading, a table or code is equal only to the letter. Only equal files are ever joined.

Two files are near-duplicates where most of what is rare in either is in both: terms weigh by how
few files have them, so that what a project's memories all speak of counts little. Only files that
share several of their rarest terms are compared at all; the work grows with the number of files.

A link that leads out of the memory folder is not ours to judge. One that leads inside it and to
nothing is broken; where exactly one memory has the file name, and is called what the link says,
the link was meant for that one.
"""

from __future__ import annotations

import math
import posixpath
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import combinations
from typing import TypeVar

from reverie.consolidation.folder import ParsedTopic, statements
from reverie.light import dataclass
from reverie.rules.rule import APPLIES
from reverie.text.dates import relative
from reverie.text.markdown import without_code
from reverie.text.tokens import plain, split_terms
from reverie.topics import frontmatter
from reverie.topics.entry import is_cut, uncut

K = TypeVar("K", bound=Hashable)

SAME = 0.5
"""Share of the weight of two files' terms that both must have to be duplicates: finds 119 of 120
planted ones; the two most alike of 642 documents have 0.4 (`bench/hygiene_alarms.md`)."""
LEAST_TERMS = 5
"""Files with fewer terms are too short to be told apart from another by them."""
_CROWD = 40  # files with one term, beyond which it tells nothing


def weights(sets: Iterable[frozenset[str]]) -> dict[str, float]:
    """Return how much each term tells: the fewer have it, the more."""
    every = list(sets)
    counts = Counter(term for terms in every for term in terms)
    return {term: math.log(1 + len(every) / count) for term, count in counts.items()}


def overlap(a: frozenset[str], b: frozenset[str], weight: Mapping[str, float]) -> float:
    """Return the weight of the terms that both have, as a share of that of all."""
    shared = sum(weight.get(term, 1.0) for term in a & b)
    return shared / (shared + sum(weight.get(term, 1.0) for term in a ^ b) or 1.0)


def candidates(
    sets: Mapping[K, frozenset[str]], weight: Mapping[str, float], probes: int, together: int
) -> Iterator[tuple[K, K]]:
    """Yield pairs that share three of their rarest terms, or, with `together` 2, a pair of them."""
    holders: dict[tuple[str, ...], list[K]] = {}
    for key, terms in sets.items():
        rare = sorted(terms, key=lambda term: (-weight[term], term))[:probes]
        for group in combinations(sorted(rare), together):
            holders.setdefault(group, []).append(key)
    counts: Counter[tuple[K, K]] = Counter()
    for keys in holders.values():
        if 1 < len(keys) <= _CROWD:
            counts.update(combinations(keys, 2))
    for pair, number in counts.items():
        least = min(len(sets[pair[0]]), len(sets[pair[1]]), probes)
        if together > 1 or number >= min(3, max(2, least // 3)):
            yield pair


_ARTICLES = frozenset({"a", "an", "the"})  # of English alone: a German one tells who does what
_WIDE_MARKS = re.compile("[。，、；：！（）《》「」『』]+")
_NO_MATTER = frozenset({"type", "metadata", "trust", "node_type", "originSessionId", APPLIES})
"""Fields that say something of their file and not of its matter."""


def same_words(text: str, left_out: frozenset[str] = _ARTICLES) -> str:
    """Return the words that make a sentence what it is: all of them, in their order."""
    seen = unicodedata.normalize("NFC", text).replace("’", "'")
    loud = seen.isupper()
    out: list[str] = []
    for word in _WIDE_MARKS.sub(" ", seen).split():
        bare = word.strip('"“”„«»()`').rstrip(".,;:!")
        bare = bare if bare[:1].isalnum() else word
        if bare.lower() in left_out and (loud or not out or bare.islower()):
            continue
        spelled = bare.replace("-", "").replace("'", "").isalpha() and len(bare) > 1
        plain_word = spelled and (loud or bare[1:].islower())  # no id, flag or acronym
        out.append(bare.lower() if plain_word else bare)
    return " ".join(out)


def equals(memories: Iterable[ParsedTopic]) -> list[list[ParsedTopic]]:
    """Return groups of memories that say the same, the oldest of each first."""
    groups: dict[Hashable, list[ParsedTopic]] = {}
    for memory in sorted(memories, key=lambda memory: (memory.written, memory.key)):
        if memory.body.strip():
            groups.setdefault(_matter(memory), []).append(memory)
    return [group for group in groups.values() if len(group) > 1]


def _matter(memory: ParsedTopic) -> Hashable:
    """Return what a memory says: equal for two that may be joined."""
    pieces = [one for one in memory.passages if one.kind != "value"]
    rows = [same_words(one.text) for one in pieces]
    plain_text = all(one.kind == "sentence" for one in pieces)
    body = tuple(sorted(rows)) if plain_text else memory.body.strip()
    told = f" {' '.join(rows)} "
    head: list[tuple[str, str]] = []
    for one in frontmatter.parse_frontmatter(memory.text.encode("utf-8", "replace")).fields:
        words = same_words(uncut(one.value))
        if (
            one.names[0] not in _NO_MATTER
            and f" {words}{'' if is_cut(one.value) else ' '}" not in told
        ):
            head.append((".".join(one.names), words))
    days = tuple(when.meant for when in relative(memory.body, memory.written))
    return body, tuple(sorted(head)), days


def duplicates(memories: Sequence[ParsedTopic]) -> list[tuple[ParsedTopic, ParsedTopic, float]]:
    """Return pairs of near-duplicates, the older file first, with how alike they are."""
    sets = {n: one.all for n, one in enumerate(memories)}
    sets = {n: own for n, own in sets.items() if len(own) >= LEAST_TERMS}
    weight = weights(sets.values())
    found: list[tuple[ParsedTopic, ParsedTopic, float]] = []
    for a, b in candidates(sets, weight, probes=24, together=1):
        share = overlap(sets[a], sets[b], weight)
        if share >= SAME and not are_parallel(memories[a], memories[b]):
            pair = sorted((memories[a], memories[b]), key=lambda one: (one.written, one.key))
            found.append((pair[0], pair[1], share))
    return sorted(found, key=lambda pair: (pair[0].key, pair[1].key))


# Without `are_parallel` 39 instead of 37 of 40 planted duplicates are found (seed 1 of
# `bench/planted.py`), and files that say alike of two things are listed as duplicates.
_SHORT = 8  # statements of a file that may be on one thing
_IN_PLACE = 3  # words that may differ in one place, and places


def are_parallel(one: ParsedTopic, other: ParsedTopic) -> bool:
    """Whether two short files say alike of two things: hardly a statement is the same, and most
    differ by a word or two in the same place. "Releases of the reader need two days" is no
    duplicate of what another file says of the portal."""
    mine, theirs = _bodies(one), _bodies(other)
    least = min(len(mine), len(theirs))
    rest = sorted((sorted(mine - theirs), sorted(theirs - mine)), key=len)
    if least > _SHORT or 2 * len(mine & theirs) >= least or not rest[0]:
        return False
    alike = sum(any(_differ_in_place(a, b) for b in rest[1]) for a in rest[0])
    return 2 * alike >= len(rest[0])


def _bodies(memory: ParsedTopic) -> set[tuple[str, ...]]:
    said = (one.passage for one in statements(memory) if one.passage.kind != "value")
    return {tuple(_signs(one.text)) for one in said}


def _signs(text: str) -> Iterator[str]:
    for word in plain(text).split():
        yield from word if word[0] >= "\u2e80" else (word,)


def _differ_in_place(a: Sequence[str], b: Sequence[str]) -> bool:
    if abs(len(a) - len(b)) > _IN_PLACE or 2 * len(set(a) & set(b)) < len(set(a)):
        return False
    steps = SequenceMatcher(None, a, b, autojunk=False).get_opcodes()
    apart = [step for step in steps if step[0] != "equal"]
    small = all(max(s[2] - s[1], s[4] - s[3]) <= _IN_PLACE for s in apart)
    return small and len(apart) <= _IN_PLACE and all(step[0] == "replace" for step in apart)


# Links

_LINK = re.compile(
    r"\[(?P<text>[^\[\]\n]*)\]\((?P<target><[^<>\n]+>|[^()\s]+)(?:[ \t]+\"[^\"\n]*\")?\)"
)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


@dataclass(frozen=True, slots=True)
class Reference:
    """Something a memory names: the words, their line and place, and where it was meant to lead."""

    words: str
    line: int
    start: int
    end: int
    meant: str = ""


def broken_links(
    memories: Mapping[str, ParsedTopic], memory: ParsedTopic, keys: Collection[str]
) -> Iterator[Reference]:
    """Yield the links of a memory to memories that are not there."""
    below = posixpath.dirname(memory.key)
    for found in _LINK.finditer(without_code(memory.text)):
        raw = found["target"].strip("<>")
        target, _, anchor = raw.partition("#")
        if not target.lower().endswith(".md") or _SCHEME.match(target) or target[0] in "/~":
            continue
        key = posixpath.normpath(posixpath.join(below, target))
        outside = key.startswith("..") or any(part[:1] == "." for part in key.split("/"))
        if outside or key in keys or posixpath.normpath(target) in keys:
            continue
        name = posixpath.basename(key).casefold()
        meant = [one for one in memories.values() if posixpath.basename(one.key).casefold() == name]
        said = memory.text[found.start("text") : found.end("text")]
        fits = len(meant) == 1 and names_subject(said, meant[0].subject)
        to = posixpath.relpath(meant[0].key, below or ".") if fits else ""
        to = f"{to}#{anchor}" if to and anchor else to
        line = memory.text.count("\n", 0, found.start()) + 1
        yield Reference(raw, line, *found.span("target"), to)


def names_subject(text: str, subject: frozenset[str]) -> bool:
    """Whether words name a memory that is called so: they share half of the fewer words."""
    words = split_terms(text, titled=True).all
    return 2 * len(words & subject) >= min(len(words), len(subject)) > 0


def relink_text(key: str, text: str, moved: Mapping[str, str]) -> str:
    """Return a text whose links to files that were merged lead to where they went."""
    below = posixpath.dirname(key)
    for found in reversed(list(_LINK.finditer(without_code(text)))):
        target, mark, anchor = found["target"].strip("<>").partition("#")
        went = moved.get(posixpath.normpath(posixpath.join(below, target)))
        if went:
            to = posixpath.relpath(went, below or ".") + mark + anchor
            start, end = found.span("target")
            text = text[:start] + to + text[end:]
    return text
