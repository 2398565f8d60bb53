"""The check: every fault of a memory folder, with evidence and what would mend it, and one score.

It works on texts that it is given and calls no model. Its work grows with the size of the folder,
not with its square. It changes nothing and drops nothing: what it says is for a person, for
`memory check --fix` or for a dream to act on. A fault of one file never hides those of others.

Text that reads like an instruction is a fault in a memory from an untrusted source; in one that
the user or the agent wrote, rules are what memories are for, and only what no honest memory says
counts: hidden words, or an attack by two rules at once.

The score is 100 for a folder without a fault. Each fault takes points by its kind (`POINTS`), and
the sum is set against the number of memories, so that one fault in ten memories weighs what ten
weigh in a hundred: `100 - 100 * points / (points + memories)`, rounded down. It is 0 only for a
folder of nothing but faults, and never depends on a clock or on the order of files.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Literal, TypeAlias

from reverie.consolidation import contradictions as odds
from reverie.consolidation.facts import DropReason
from reverie.consolidation.folder import ParsedTopic, Passage, logs, read
from reverie.consolidation.format_checks import form_faults
from reverie.consolidation.text_checks import (
    Present,
    broken_links,
    duplicates,
    equals,
    junk,
    missing_claims,
)
from reverie.errors import ScanFailed
from reverie.light import dataclass
from reverie.rules.rule import APPLIES, is_firm_file
from reverie.secrets.scanner import scan
from reverie.text.dates import expired_deadlines, relative
from reverie.topics import index as indexes
from reverie.topics.entry import INDEX, TopicFile, index_of, is_index, is_topic
from reverie.topics.manifest import IndexLimits, limits_hit
from reverie.topics.trust import Trust, reads_like_instruction

FindingKind: TypeAlias = Literal[
    "junk",
    "duplicate",
    "contradiction",
    "stale_date",
    "stale_reference",
    "secret",
    "instruction_like",
    "index",
    "link",
    "form",
]
POINTS: dict[FindingKind, float] = {
    "secret": 5.0,
    "instruction_like": 3.0,
    "contradiction": 2.0,
    "duplicate": 1.0,
    "junk": 1.0,
    "stale_date": 1.0,
    "stale_reference": 0.5,
    "index": 0.5,
    "link": 0.25,
    "form": 0.5,
}


@dataclass(frozen=True, slots=True)
class LintFix:
    """What would mend a fault: other words for a stretch of the file, or a file to merge into."""

    why: DropReason
    target: str = ""
    start: int = -1
    end: int = -1
    new: str = ""


@dataclass(frozen=True, slots=True)
class LintFinding:
    """One fault: where it is, what shows it, the other file where two are at odds."""

    kind: FindingKind
    file: str
    line: int
    evidence: str
    with_file: str = ""
    fix: LintFix | None = None
    rule: str = ""
    with_line: int = 0


@dataclass(frozen=True, slots=True)
class LintReport:
    """All that a check found, in the order of the files; `memories` is how many it looked at."""

    findings: tuple[LintFinding, ...]
    memories: int
    unlooked: tuple[str, ...] = ()  # what there was no time to look for in the repository

    @property
    def score(self) -> int:
        points = sum(POINTS[one.kind] for one in self.findings)
        if not points:
            return 100
        return int(100 - 100 * points / (points + max(1, self.memories)))

    @property
    def counts(self) -> dict[str, int]:
        """How many of each kind, the most first."""
        found = Counter(one.kind for one in self.findings)
        return dict(sorted(found.items(), key=lambda pair: (-pair[1], pair[0])))

    def of(self, kind: FindingKind) -> tuple[LintFinding, ...]:
        return tuple(one for one in self.findings if one.kind == kind)


TrustIn = Callable[[str], Trust]

_SHOWN = 160
_HOSTILE = frozenset({"override", "secrecy", "persona", "role", "exfiltration", "secrets"})
_PROSE = frozenset({"sentence", "item", "value"})


def by_agent(_: str) -> Trust:
    return Trust.AGENT


@dataclass(frozen=True, slots=True)
class CheckInput:
    """A folder as it is looked at. `files` are all its files, indexes and logs among them."""

    files: Mapping[str, bytes]
    times: Mapping[str, float] = field(default_factory=dict[str, float])
    now: float = 0.0
    limits: IndexLimits = field(default_factory=IndexLimits)
    present: Present | None = None
    trust: TrustIn = by_agent
    guarded: bool = True  # whether to look for secrets and instructions too
    unread: frozenset[str] = frozenset()  # files that are there and whose text is not known
    lines: Mapping[str, tuple[float, ...]] = field(default_factory=dict[str, tuple[float, ...]])
    unlooked: tuple[str, ...] = ()  # what there was no time to look for in the repository


def check(given: CheckInput) -> LintReport:
    """Everything that is wrong with a memory folder."""
    memories = read(given.files, given.times, given.lines)
    every = list(memories.values())
    found: list[LintFinding] = []
    there = memories.keys() | given.unread
    names: dict[str, list[ParsedTopic]] = {}
    for one in every:
        names.setdefault(posixpath.basename(one.key).casefold(), []).append(one)
    for one in every:
        found += _of_one(one, given)
        found += _links(one, there, names)
    found += [hit for log in logs(given.files).values() for hit in _guard_findings(log, given)]
    same = {
        (group[0].key, one.key): (group[0], one) for group in equals(every) for one in group[1:]
    }
    found += [_duplicate(a, b, 1.0, LintFix("merged_into", a.key)) for a, b in same.values()]
    twins = duplicates(every)
    found += [_duplicate(*twin) for twin in twins if (twin[0].key, twin[1].key) not in same]
    pairs = frozenset((a.key, b.key) for a, b, _ in twins)
    found += [_odds(one) for one in odds.contradictions(every, pairs)]
    found += _rules(given)
    found += _indexes(given, memories)
    firm = {key for key, data in given.files.items() if is_firm_file(data)}
    found = [_left(one) if firm & {one.file, one.with_file} else one for one in found]
    order = sorted(found, key=lambda one: (one.file, one.line, one.kind, one.evidence))
    return LintReport(tuple(order), len(every), given.unlooked)


def _left(one: LintFinding) -> LintFinding:
    """A fault of a file that only the user changes; its pointer is not that file."""
    return one if one.kind == "index" else replace(one, fix=None)


def _rules(given: CheckInput) -> Iterator[LintFinding]:
    """Rules whose heads speak of calls and exclude each other, each pair once."""
    mark = APPLIES.encode()
    topics = [(k, data) for k, data in given.files.items() if is_topic(k) and mark in data]
    if len(topics) < 2:
        return
    from reverie.rules.rule import contradictions
    from reverie.rules.rule_set import RuleSet

    for file, others in contradictions(RuleSet.of(topics).rules).items():
        for other in others:
            if file < other:
                words = f"it forbids what {other} demands, or the other way round"
                yield LintFinding("contradiction", file, 1, words, with_file=other, rule="calls")


# One memory


def _of_one(memory: ParsedTopic, given: CheckInput) -> Iterator[LintFinding]:
    yield from _guard_findings(memory, given)
    spoilt = junk(memory)
    if spoilt is not None:
        evidence = f"{spoilt.rule}: {_cut(spoilt.words)}"
        yield LintFinding("junk", memory.key, spoilt.line, evidence, rule=spoilt.rule)
    yield from _form(memory)
    yield from _dates(memory, given.now)
    if given.present is not None:
        for one in missing_claims(memory, given.present):
            yield LintFinding(
                "stale_reference", memory.key, one.line, f"{one.kind} {_cut(one.text)} is gone"
            )


def _form(memory: ParsedTopic) -> Iterator[LintFinding]:
    for one in form_faults(memory):
        fix = (
            LintFix("duplicate_of", memory.key, one.start, one.end, one.new)
            if one.start >= 0
            else None
        )
        if one.rule == "heading":
            fix = LintFix("merged_into", memory.key)
        words = f"{one.rule}: {_cut(one.words)}"
        yield LintFinding("form", memory.key, one.line, words, fix=fix, rule=one.rule)


def _guard_findings(memory: ParsedTopic, given: CheckInput) -> Iterator[LintFinding]:
    """What must not be in a memory at all: secrets, and orders to whoever reads it."""
    if not given.guarded:
        return
    try:
        hits = scan(given.files[memory.key], memory.key)
    except ScanFailed:
        yield LintFinding("secret", memory.key, 1, "it could not be searched for secrets")
        hits = ()
    for hit in hits:
        yield LintFinding("secret", memory.key, hit.line, f"rule {hit.rule}", rule=hit.rule)
    evidence = reads_like_instruction(memory.text)
    rules = {one.rule for one in evidence}
    trusted = given.trust(memory.key) is not Trust.UNTRUSTED
    if trusted and "hidden" not in rules and len(rules & _HOSTILE) < 2:
        return
    for one in evidence:
        if not trusted or one.rule in _HOSTILE or one.rule == "hidden":
            words = f"{one.rule}: {_cut(one.words)}"
            yield LintFinding("instruction_like", memory.key, one.line, words, rule=one.rule)


def _dates(memory: ParsedTopic, now: float) -> Iterator[LintFinding]:
    for piece in memory.passages:
        if piece.kind not in _PROSE:
            continue
        first, last = _inside(memory.text, piece)
        raw = memory.text[first:last]
        written = memory.when(piece.line)
        for when in relative(raw, written or now):
            meant = when.meant if written else "nobody knows when it was written"
            words = f"“{when.words}” says nothing later: {meant}"
            line = piece.line + raw.count("\n", 0, when.start)
            yield LintFinding("stale_date", memory.key, line, words, rule="relative")
        for _, end, day in expired_deadlines(raw, now):
            words = f"{day} has passed: {_cut(piece.text)}"
            line = piece.line + raw.count("\n", 0, end)
            yield LintFinding("stale_date", memory.key, line, words, rule="deadline")


def _inside(text: str, piece: Passage) -> tuple[int, int]:
    """Where the words of a passage stand: of a value, what is inside its quotes."""
    raw = text[piece.start : piece.end]
    if piece.kind != "value":
        return piece.start, piece.end
    bare = raw.strip(" \t")
    shift = len(raw) - len(raw.lstrip(" \t"))
    quoted = len(bare) > 1 and bare[0] in "\"'" and bare[-1] == bare[0]
    start = piece.start + shift + quoted
    return start, start + len(bare) - 2 * quoted


def _links(
    memory: ParsedTopic, keys: Collection[str], names: Mapping[str, Sequence[ParsedTopic]]
) -> Iterator[LintFinding]:
    for one in broken_links(memory, keys, names):
        fix = LintFix("pointer", "", one.start, one.end, one.meant) if one.meant else None
        words = f"the link to {_cut(one.words)} leads to no memory"
        yield LintFinding("link", memory.key, one.line, words, one.meant, fix)


# Two memories


def _duplicate(
    older: ParsedTopic, newer: ParsedTopic, share: float, fix: LintFix | None = None
) -> LintFinding:
    words = f"{share:.0%} of what it says is also in {older.key}"
    return LintFinding("duplicate", newer.key, 1, words, older.key, fix)


def _odds(one: odds.Contradiction) -> LintFinding:
    older, newer = one.older, one.newer
    words = f"{one.how}: “{_cut(older.passage.text)}” against “{_cut(newer.passage.text)}”"
    return LintFinding(
        "contradiction",
        older.memory.key,
        older.passage.line,
        words,
        newer.memory.key,
        rule=one.how,
        with_line=newer.passage.line,
    )


# Indexes


def _indexes(given: CheckInput, memories: Mapping[str, ParsedTopic]) -> Iterator[LintFinding]:
    topics = sorted(memories.keys() | set(filter(is_topic, given.unread)))
    known = {key for key in given.files if is_index(key)} | {index_of(key) for key in topics}
    for key in sorted(known):
        below = key.removesuffix(INDEX)
        own = [one.removeprefix(below) for one in topics if index_of(one) == key]
        data = given.files.get(key, b"")
        for found in _index(key, below, data, own, given.limits):
            if found.rule != "unlisted" or not _is_unverified(given, found.file):
                yield found
        if given.guarded:
            yield from _index_secrets(key, data)


def _is_unverified(given: CheckInput, key: str) -> bool:
    """Whether a file has no pointer for a reason: it waits for somebody to confirm it."""
    return TopicFile(key, given.files.get(key, b"")).is_unverified


def _index(
    key: str, below: str, data: bytes, own: Sequence[str], limits: IndexLimits
) -> Iterator[LintFinding]:
    for fault in indexes.check(indexes.parse_index(data), own, width=limits.width):
        about = below + fault.key if fault.key else ""
        fixable = fault.kind in ("outside", "missing", "twice", "unlisted", "long", "content")
        fix = (
            LintFix("shortened" if fault.kind == "long" else "pointer", about) if fixable else None
        )
        evidence = f"{fault.kind}: {_cut(fault.reason)}"
        where = about if fault.kind == "unlisted" else key
        yield LintFinding("index", where, fault.line, evidence, about, fix, fault.kind)
    for words in limits_hit(data, limits):
        yield LintFinding("index", key, 0, f"over its limits: {words}", rule="limits")


def _index_secrets(key: str, data: bytes) -> Iterator[LintFinding]:
    try:
        hits = scan(data, key)
    except ScanFailed:
        yield LintFinding("secret", key, 1, "it could not be searched for secrets")
        return
    for hit in hits:
        yield LintFinding("secret", key, hit.line, f"rule {hit.rule}", rule=hit.rule)


def _cut(text: str) -> str:
    return indexes.shorten(" ".join(text.split()), _SHOWN)
