"""The check: every issue of a memory folder with its evidence, and one score.

It works on texts that it is given and calls no model. Its work grows with the size of the folder,
not with its square. It changes nothing and drops nothing: what it says is for a person, for
`memory check --fix` or for a dream to act on. An issue of one file never hides those of others.

Text that reads like an instruction is an issue in a memory from an untrusted source; in one that
the user or the agent wrote, rules are what memories are for, and only what no honest memory says
counts: hidden words, or an attack by two rules at once.

The score is 100 for a folder without an issue. Each issue takes points by its kind (`POINTS`), and
the sum is set against the number of memories, so that one issue in ten memories weighs what ten
weigh in a hundred: `100 - 100 * points / (points + memories)`, rounded down.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Literal, TypeAlias

from reverie.consolidation import contradictions as odds
from reverie.consolidation.folder import CheckInput, ParsedTopic, Passage, logs, read
from reverie.consolidation.format_checks import form_faults
from reverie.consolidation.junk import junk
from reverie.consolidation.text_checks import broken_links, duplicates, equals
from reverie.errors import ScanFailed
from reverie.light import dataclass
from reverie.rules.rule import APPLIES, is_firm_file
from reverie.secrets.scanner import scan
from reverie.text.dates import expired_deadlines, relative
from reverie.topics import index as indexes
from reverie.topics.claims import find_claims
from reverie.topics.entry import INDEX, TopicFile, index_of, is_index, is_topic
from reverie.topics.manifest import limits_hit
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
class LintFinding:
    """One issue: where it is, what shows it; of two memories, the other and both texts."""

    kind: FindingKind
    file: str
    line: int
    evidence: str
    with_file: str = ""
    fixable: bool = False
    rule: str = ""
    with_line: int = 0
    text: str = ""
    with_text: str = ""


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


_SHOWN = 160
_HOSTILE = frozenset({"override", "secrecy", "persona", "role", "exfiltration", "secrets"})
_PROSE = frozenset({"sentence", "item", "value"})
_FIXED = frozenset({"outside", "missing", "twice", "unlisted", "long", "content"})


def check(given: CheckInput) -> LintReport:
    """Return everything that is wrong with a memory folder."""
    memories = read(given.files, given.times, given.lines)
    every = list(memories.values())
    there = memories.keys() | given.unread
    found: list[LintFinding] = []
    for one in every:
        found += _of_one(one, given)
        for link in broken_links(memories, one, there):
            words = f"the link to {_cut(link.words)} leads to no memory"
            fixable = bool(link.meant)
            found.append(LintFinding("link", one.key, link.line, words, link.meant, fixable))
    found += [hit for log in logs(given.files).values() for hit in _guard(log.key, log.text, given)]
    found += _pairs(every)
    found += _rules(given)
    found += _indexes(given, memories)
    firm = {key for key, data in given.files.items() if is_firm_file(data)}
    found = [_left(one) if firm & {one.file, one.with_file} else one for one in found]
    order = sorted(found, key=lambda one: (one.file, one.line, one.kind, one.evidence))
    return LintReport(tuple(order), len(every), given.unlooked)


def _left(one: LintFinding) -> LintFinding:
    """An issue of a file that only the user changes; its pointer is not that file."""
    return one if one.kind == "index" else replace(one, fixable=False)


# Two memories


def _pairs(every: list[ParsedTopic]) -> Iterator[LintFinding]:
    same = {
        (group[0].key, one.key): (group[0], one, 1.0)
        for group in equals(every)
        for one in group[1:]
    }
    near = {(a.key, b.key): (a, b, share) for a, b, share in duplicates(every)}
    for pair, (older, newer, share) in (near | same).items():
        words = f"{share:.0%} of what it says is also in {older.key}"
        texts = (" ".join(newer.body.split()), " ".join(older.body.split()))
        yield LintFinding(
            "duplicate", newer.key, 1, words, older.key, pair in same, "", 1, *map(_cut, texts)
        )
    for odd in odds.contradictions(every):
        older, newer = odd.older.passage, odd.newer.passage
        texts = (_cut(older.text), _cut(newer.text))
        words = f"{odd.how}: “{texts[0]}” against “{texts[1]}”"
        file, other = odd.older.memory.key, odd.newer.memory.key
        yield LintFinding(
            "contradiction", file, older.line, words, other, False, odd.how, newer.line, *texts
        )


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
    key = memory.key
    yield from _guard(key, memory.text, given)
    if spoilt := junk(memory):
        words = f"{spoilt.rule}: {_cut(spoilt.words)}"
        yield LintFinding("junk", key, spoilt.line, words, rule=spoilt.rule)
    for one in form_faults(memory):
        fixable = one.start >= 0 or one.rule == "heading"
        words = f"{one.rule}: {_cut(one.words)}"
        yield LintFinding("form", key, one.line, words, fixable=fixable, rule=one.rule)
    yield from _dates(memory, given.now)
    for claim in find_claims(memory.text) if given.present else ():
        if claim.stated and given.present and not given.present(claim):
            words = f"{claim.kind} {_cut(claim.text)} is gone"
            yield LintFinding("stale_reference", key, claim.line, words)


def _guard(key: str, text: str, given: CheckInput) -> Iterator[LintFinding]:
    """What must not be in a memory at all: secrets, and orders to whoever reads it."""
    yield from _secrets(key, given.files[key])
    evidence = reads_like_instruction(text)
    rules = {one.rule for one in evidence}
    trusted = given.trust(key) is not Trust.UNTRUSTED
    if trusted and "hidden" not in rules and len(rules & _HOSTILE) < 2:
        return
    for one in evidence:
        if not trusted or one.rule in _HOSTILE or one.rule == "hidden":
            words = f"{one.rule}: {_cut(one.words)}"
            yield LintFinding("instruction_like", key, one.line, words, rule=one.rule)


def _secrets(key: str, data: bytes) -> Iterator[LintFinding]:
    try:
        hits = scan(data, key)
    except ScanFailed:
        yield LintFinding("secret", key, 1, "it could not be searched for secrets")
        return
    for hit in hits:
        yield LintFinding("secret", key, hit.line, f"rule {hit.rule}", rule=hit.rule)


def _dates(memory: ParsedTopic, now: float) -> Iterator[LintFinding]:
    for piece in memory.passages:
        if piece.kind not in _PROSE:
            continue
        raw = _said(memory.text, piece)
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


def _said(text: str, piece: Passage) -> str:
    """The words of a passage as they stand: of a value, what is inside its quotes."""
    raw = text[piece.start : piece.end]
    bare = raw.strip(" \t")
    quoted = piece.kind == "value" and len(bare) > 1 and bare[0] in "\"'" and bare[-1] == bare[0]
    return bare[1:-1] if quoted else raw


# Indexes


def _indexes(given: CheckInput, memories: Mapping[str, ParsedTopic]) -> Iterator[LintFinding]:
    topics = sorted(memories.keys() | set(filter(is_topic, given.unread)))
    known = {key for key in given.files if is_index(key)} | {index_of(key) for key in topics}
    for key in sorted(known):
        below, data = key.removesuffix(INDEX), given.files.get(key, b"")
        own = [one.removeprefix(below) for one in topics if index_of(one) == key]
        for fault in indexes.check(indexes.parse_index(data), own, width=given.limits.width):
            about = below + fault.key if fault.key else ""
            where = about if fault.kind == "unlisted" else key
            if fault.kind == "unlisted" and _is_unverified(given, about):
                continue
            words = f"{fault.kind}: {_cut(fault.reason)}"
            fixable = fault.kind in _FIXED
            yield LintFinding("index", where, fault.line, words, about, fixable, fault.kind)
        for words in limits_hit(data, given.limits):
            yield LintFinding("index", key, 0, f"over its limits: {words}", rule="limits")
        yield from _secrets(key, data)


def _is_unverified(given: CheckInput, key: str) -> bool:
    """Whether a file has no pointer for a reason: it waits for somebody to confirm it."""
    return TopicFile(key, given.files.get(key, b"")).is_unverified


def _cut(text: str) -> str:
    return indexes.shorten(" ".join(text.split()), _SHOWN)
