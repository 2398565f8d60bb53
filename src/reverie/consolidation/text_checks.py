"""Faults that a memory's text shows: it says what another says, is junk, or points to nothing.

Two files are equal where their sentences are, in any order, but for case, marks and English
articles: numbers, ids, flags, names and the order of words are part of what they say. A file with
a list, a heading, a table or code is equal only to the letter. Only equal files are ever joined.

Two files are near-duplicates where most of what is rare in either is in both: terms weigh by how
few files have them, so that what a project's memories all speak of counts little. Only files that
share several of their rarest terms are compared at all; the work grows with the number of files.

Junk is what should never have been saved (SPEC §7): empty ones, templates nobody filled in, the
state of a task that has passed since, recipes for one error, and copies of what the code or git
already says: listings, logs, code with nothing said about it. In doubt a memory is none of these:
whoever looks at the list must be able to trust it.

A link that leads out of the memory folder is not ours to judge. One that leads inside it and to
nothing is broken; where exactly one memory has the file name, and is called what the link says,
the link was meant for that one. Whether a path or a symbol is still in the repository is asked of
whoever knows; without anyone to ask nothing is said of it.
"""

from __future__ import annotations

import math
import posixpath
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
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
from reverie.topics.claims import Claim, find_claims
from reverie.topics.entry import is_cut, uncut

K = TypeVar("K", bound=Hashable)

SAME = 0.5
"""Share of the weight of two files' terms that both must have to be duplicates."""
LEAST_TERMS = 5
"""Files with fewer terms are too short to be told apart from another by them."""
_PROBES = 24  # of a file's terms, the rarest, by which others are found
_CROWD = 40  # files with one term, beyond which it tells nothing
_SHARED = 3  # rarest terms that two files must share to be compared


def weights(sets: Iterable[frozenset[str]]) -> dict[str, float]:
    """How much each term tells: the fewer have it, the more."""
    counts: Counter[str] = Counter()
    number = 0
    for one in sets:
        number += 1
        counts.update(one)
    return {term: math.log(1 + number / count) for term, count in counts.items()}


def overlap(a: frozenset[str], b: frozenset[str], weight: Mapping[str, float]) -> float:
    """The weight of the terms that both have, as a share of that of all."""
    shared = sum(weight.get(term, 1.0) for term in a & b)
    return shared / (shared + sum(weight.get(term, 1.0) for term in a ^ b) or 1.0)


def candidates(
    sets: Mapping[K, frozenset[str]],
    weight: Mapping[str, float],
    *,
    probes: int = _PROBES,
    crowd: int = _CROWD,
    shared: int = _SHARED,
) -> Iterator[tuple[K, K]]:
    """Pairs that share several of their rarest terms."""
    holders: dict[str, list[K]] = {}
    for key, own in sets.items():
        for term in sorted(own, key=lambda term: (-weight[term], term))[:probes]:
            holders.setdefault(term, []).append(key)
    counts: Counter[tuple[K, K]] = Counter()
    for keys in holders.values():
        if 1 < len(keys) <= crowd:
            counts.update(combinations(keys, 2))
    for pair, number in counts.items():
        least = min(len(sets[pair[0]]), len(sets[pair[1]]), probes)
        if number >= min(shared, max(2, least // 3)):
            yield pair


def near(
    sets: Mapping[K, frozenset[str]],
    weight: Mapping[str, float],
    *,
    probes: int = 7,
    crowd: int = _CROWD,
) -> Iterator[tuple[K, K]]:
    """Pairs of short sets that share two of their rarest terms."""
    holders: dict[tuple[str, str], list[K]] = {}
    for key, own in sets.items():
        rare = sorted(own, key=lambda term: (-weight[term], term))[:probes]
        for pair in combinations(sorted(rare), 2):
            holders.setdefault(pair, []).append(key)
    seen: set[tuple[K, K]] = set()
    for keys in holders.values():
        if 1 < len(keys) <= crowd:
            for found in combinations(keys, 2):
                if found not in seen:
                    seen.add(found)
                    yield found


_ARTICLES = frozenset({"a", "an", "the"})
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
    """Groups of memories that say the same, the oldest of each first."""
    groups: dict[Hashable, list[ParsedTopic]] = {}
    for one in sorted(memories, key=lambda one: (one.written, one.key)):
        if one.body.strip():
            groups.setdefault(_matter(one), []).append(one)
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
    """Pairs of near-duplicates, the older file first, with how alike they are."""
    sets = {n: one.all for n, one in enumerate(memories)}
    sets = {n: own for n, own in sets.items() if len(own) >= LEAST_TERMS}
    weight = weights(sets.values())
    found: list[tuple[ParsedTopic, ParsedTopic, float]] = []
    for a, b in candidates(sets, weight):
        share = overlap(sets[a], sets[b], weight)
        if share >= SAME and not are_parallel(memories[a], memories[b]):
            pair = sorted((memories[a], memories[b]), key=lambda one: (one.written, one.key))
            found.append((pair[0], pair[1], share))
    return sorted(found, key=lambda pair: (pair[0].key, pair[1].key))


def are_parallel(one: ParsedTopic, other: ParsedTopic) -> bool:
    """Whether two files say alike of two things: hardly a statement is the same, and most differ
    by a word or two in the same place. "Releases of the reader need two days" is no duplicate of
    what another file says of the portal."""
    mine, theirs = _bodies(one), _bodies(other)
    same = len(mine & theirs)
    rest = sorted(mine - theirs)[:_LOOKED_AT], sorted(theirs - mine)[:_LOOKED_AT]
    long = min(len(mine), len(theirs)) > _SHORT
    if long or 2 * same >= min(len(mine), len(theirs)) or not all(rest):
        return False
    few, many = sorted(rest, key=len)
    alike = sum(any(_differ_in_place(a, b) for b in many) for a in few)
    return 2 * alike >= len(few)


_LOOKED_AT = 40  # statements of each file
_SHORT = 8  # statements of a file that may be on one thing
_IN_PLACE = 3  # words that may differ in one place, and places


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


_BLANK = re.compile(
    r"\W*(?:tbd|todo|to be (?:done|written|filled in)|fill (?:this )?in|placeholder|lorem ipsum|"
    r"n/?a|none|coming soon|work in progress|wip|empty|test|asdf|待补充|待定|占位)\b.{0,40}",
    re.IGNORECASE | re.DOTALL,
)
_STATE = re.compile(
    r"\b(?:(?:i'?m|i am|we'?re|we are|currently|right now|at the moment)[ ,]+"
    r"(?:now |currently |just )?(?:working on|debugging|fixing|implementing|refactoring|"
    r"looking (?:at|into)|about to|going to|in the middle of|waiting (?:for|on)|testing|running)"
    r"|next steps?\s*(?:is|are|:)|still (?:need|have|left) to|left off|picking up where|wip\b"
    r"|in progress[:.]|(?:tests?|build|ci) (?:is|are) (?:currently |still |now )*"
    r"(?:failing|passing|red|green)"
    r"|\d+ of \d+ (?:tests?|steps?|tasks?|files?) (?:done|pass\w*|complete\w*|left|remaining))"
    r"|正在(?:处理|调试|修复|实现|重构)|下一步(?:是|：|:)|还(?:需要|没)",
    re.IGNORECASE,
)
_TASK = re.compile(r"^[ \t]*[-*+][ \t]+\[[ xX]\]", re.MULTILINE)
_TRACE = re.compile(
    r"^(?:Traceback \(most recent call last\)|[ \t]+File \"[^\"\n]+\", line \d+|"
    r"[ \t]+at [\w.$<>]+ ?\(.+:\d+|"
    r"\w*(?:Error|Exception)\b: |thread '.*' panicked at|[ \t]+\d+: 0x[0-9a-f]+)",
    re.MULTILINE,
)
_RECIPE = re.compile(
    r"\b(?:to (?:fix|resolve|get rid of|work around) (?:this|the|that)\b.{0,60}"
    r"\b(?:error|failure|exception|crash|problem)|(?:error|failure|exception|crash) "
    r"(?:went away|is gone|disappeared|was fixed)"
    r"|(?:fixed|solved|resolved) (?:it )?by "
    r"(?:re-?running|re-?starting|clearing|deleting|re-?installing))\b",
    re.IGNORECASE | re.DOTALL,
)
_COMMIT = re.compile(r"^[ \t*|/\\-]*`?[0-9a-f]{7,40}`? \S", re.MULTILINE)
_TREE = re.compile(r"^[ \t]*(?:[│├└]|[|`+\\]--)[│├└─ \t|`+\\-]*\S", re.MULTILINE)
_PATH = re.compile(r"[ \t>*+-]*`?[\w.@-]*(?:/[\w.@-]+)+/?`?[ \t]*(?:[(#:—-].{0,60})?")
_MOSTLY = 0.7  # share of the lines that make a memory a copy of a listing
_FEW = 4  # statements up to which one of them can make a memory junk


@dataclass(frozen=True, slots=True)
class Junk:
    """Why a memory is junk, and the line that shows it."""

    rule: str
    line: int
    words: str


def junk(memory: ParsedTopic) -> Junk | None:
    """Why a memory should not have been saved, or None."""
    body = memory.body
    bare = re.sub(r"(?m)^[ ]{0,3}#.*$", "", body).strip()
    first = next((one for one in memory.passages if one.kind != "value"), None)
    line = first.line if first else 1
    if not re.search(r"\w", bare):
        return Junk("empty", line, "there is nothing in it")
    if _BLANK.fullmatch(bare) and len(bare) < 120:
        return Junk("boilerplate", line, bare)
    return _state(memory, body) or _recipe(memory, body) or _derivable(memory, body, memory.type)


def passing(text: str) -> bool:
    """Whether a sentence tells how far some work is."""
    return _STATE.search(text) is not None


def _state(memory: ParsedTopic, body: str) -> Junk | None:
    said = [one for one in statements(memory) if one.passage.kind != "value"]
    hits = [one for one in said if passing(one.passage.text)]
    tasks = len(_TASK.findall(body))
    if hits and (len(said) <= _FEW or 2 * len(hits) >= len(said)):
        return Junk("task state", hits[0].passage.line, hits[0].passage.text)
    if tasks >= 3 and len(said) <= tasks + 1:
        return Junk("task state", said[0].passage.line if said else 1, f"a list of {tasks} tasks")
    return None


def _recipe(memory: ParsedTopic, body: str) -> Junk | None:
    said = [one for one in statements(memory) if one.passage.kind != "value"]
    rows = [row for row in body.splitlines() if row.strip()]
    traces = len(_TRACE.findall(body))
    if traces >= 2 and 2 * traces >= len(rows) - len(said):
        found = _TRACE.search(memory.text)
        line = memory.text.count("\n", 0, found.start()) + 1 if found else 1
        return Junk("debugging recipe", line, "an error's own output")
    hits = [one for one in said if _RECIPE.search(one.passage.text)]
    if hits and len(said) <= _FEW:
        return Junk("debugging recipe", hits[0].passage.line, hits[0].passage.text)
    return None


def _derivable(memory: ParsedTopic, body: str, kind: str) -> Junk | None:
    if kind in ("user", "feedback"):
        return None
    rows = [row for row in body.splitlines() if row.strip() and not row.lstrip().startswith("#")]
    rows = [row for row in rows if not row.lstrip().startswith("```")]
    if len(rows) < 3:
        return None
    start = next((one.line for one in memory.passages if one.kind not in ("value", "heading")), 1)
    for rule, pattern in (("git log", _COMMIT), ("file tree", _TREE)):
        if len(pattern.findall("\n".join(rows))) >= _MOSTLY * len(rows):
            return Junk("code-derivable", start, f"a copy of a {rule}")
    if sum(_PATH.fullmatch(row) is not None for row in rows) >= _MOSTLY * len(rows):
        return Junk("code-derivable", start, "a list of paths")
    code = [one for one in memory.passages if one.kind == "code"]
    said = [one for one in statements(memory) if one.passage.kind != "value"]
    told = said or any(one.kind == "row" for one in memory.passages)
    if len(code) >= 5 and not told:
        return Junk("code-derivable", code[0].line, "code with nothing said about it")
    return None


Present = Callable[[Claim], bool]
"""Whether the repository has what a memory names; in doubt, yes."""

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
    memory: ParsedTopic, keys: Collection[str], names: Mapping[str, Sequence[ParsedTopic]]
) -> Iterator[Reference]:
    """Links to memories that are not there; `names` gives the memories of each file name."""
    below = posixpath.dirname(memory.key)
    seen = without_code(memory.text)
    for found in _LINK.finditer(seen):
        raw = found["target"].strip("<>")
        target, _, anchor = raw.partition("#")
        if not target.lower().endswith(".md") or _SCHEME.match(target) or target[0] in "/~":
            continue
        key = posixpath.normpath(posixpath.join(below, target))
        outside = key.startswith("..") or any(part[:1] == "." for part in key.split("/"))
        if outside or key in keys or posixpath.normpath(target) in keys:
            continue
        meant = names.get(posixpath.basename(key).casefold(), ())
        said = memory.text[found.start("text") : found.end("text")]
        fits = len(meant) == 1 and names_subject(said, meant[0].subject)
        to = posixpath.relpath(meant[0].key, below or ".") if fits else ""
        to = f"{to}#{anchor}" if to and anchor else to
        line = memory.text.count("\n", 0, found.start()) + 1
        yield Reference(raw, line, *found.span("target"), to)


def linked_files(key: str, text: str) -> set[str]:
    """The files that a text links to, by their keys."""
    below = posixpath.dirname(key)
    found = (one["target"].strip("<>").partition("#")[0] for one in _LINK.finditer(text))
    return {posixpath.normpath(posixpath.join(below, one)) for one in found if one}


def names_subject(text: str, subject: frozenset[str]) -> bool:
    """Whether words name a memory that is called so: they share half of the fewer words."""
    words = split_terms(text, titled=True).all
    return 2 * len(words & subject) >= min(len(words), len(subject)) > 0


def relink_text(key: str, text: str, moved: Mapping[str, str]) -> str:
    """A text whose links to files that were merged lead to where they went."""
    below = posixpath.dirname(key)
    seen = without_code(text)
    for found in reversed(list(_LINK.finditer(seen))):
        target, mark, anchor = found["target"].strip("<>").partition("#")
        went = moved.get(posixpath.normpath(posixpath.join(below, target)))
        if went:
            to = posixpath.relpath(went, below or ".") + mark + anchor
            start, end = found.span("target")
            text = text[:start] + to + text[end:]
    return text


def missing_claims(memory: ParsedTopic, present: Present) -> Iterator[Claim]:
    """What a memory names of the repository and the repository does not have."""
    return (one for one in find_claims(memory.text) if one.stated and not present(one))
