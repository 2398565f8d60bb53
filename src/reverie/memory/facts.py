"""Whether every fact of a memory folder is still in another state of it.

A fact is a sentence, a list item, a table row, a heading, a line of code or a value of the
frontmatter. It is kept where its words stand in a row anywhere in the new folder, whatever the
case, the Markdown or the line breaks, and also where one passage says it in other words: then all
its numbers, names and identifiers are there, most of its other words, and it denies what it
denied. Anything else is lost, unless a reason stands for it that can be checked: a reason that
names a file which does not say anything like it, or an expiry that has not come, is no reason.
A name or description is about its whole file: what it only repeats is no fact of its own, and
the file it was merged into may say the rest of it anywhere. Of one that was cut, the last word
may be no word.

Pure: it compares what it is given, reads no file and no clock, and judges no text to be wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal, TypeAlias, get_args

from reverie.errors import InvalidMessage
from reverie.light import dataclass
from reverie.memory.format import index as indexes
from reverie.memory.format.entry import is_cut, is_index, shown, uncut
from reverie.memory.hygiene.reading import Passage, PassageKind, passages
from reverie.text.dates import latest, undated
from reverie.text.terms import Terms, plain, terms
from reverie.transcript.blocks import dump, parse

DropReason: TypeAlias = Literal[
    "merged_into",
    "superseded_by",
    "contradicted_by",
    "expired",
    "duplicate_of",
    "dated",
    "pointer",
    "shortened",
]
WHYS: tuple[DropReason, ...] = get_args(DropReason)
_WHY: dict[str, DropReason] = {why: why for why in WHYS}

MAX_SOFT = 0.75
"""Share of a fact's other words that a passage must have to say the same."""
SAME_SUBJECT = 0.5
"""Share of a fact's words, but for numbers, that one passage of a file must have to be what
took its place."""
SAME_MATTER = 0.6
"""Share of a fact's words that one passage must have, beside all its numbers, names and
identifiers, to be what it was merged into."""
_TOGETHER = 3  # sentences that are looked at as one passage
_CANDIDATES = 40
_RARE = 4
_NAMELESS = frozenset({"type", "metadata", "originSessionId", "node_type"})
_BLOCK = re.compile(r"^```reasons[ \t]*\n(.*?)^```[ \t]*$", re.DOTALL | re.MULTILINE)
_MOST_REASONS = 20_000


@dataclass(frozen=True, slots=True)
class Fact:
    """One statement of a file: where, as it is written, and as it is compared."""

    file: str
    line: int
    text: str
    plain: str
    kind: PassageKind = "sentence"

    @property
    def terms(self) -> Terms:
        """What it says, but for dates that only the day of writing would tell."""
        said = undated(self.text)
        if self.kind == "value" and is_cut(said):
            said = uncut(said).rpartition(" ")[0] or said
        return terms(said, titled=self.kind in ("heading", "value"))


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a fact of a file is no longer there; without a fact it is about the whole file."""

    why: DropReason
    file: str
    target: str = ""
    fact: str = ""


@dataclass(frozen=True, slots=True)
class Lost:
    """A fact that is gone, and why no reason stands for it."""

    file: str
    line: int
    text: str
    note: str = "no reason is given"


# Facts


def facts_of(text: str, file: str = "") -> tuple[Fact, ...]:
    """Every fact of a file's text. Of an index, what its lines say beside the link."""
    if is_index(file):
        return tuple(_of_index(text, file))
    return _of_passages(passages(text), file)


def _of_passages(pieces: Sequence[Passage], file: str) -> tuple[Fact, ...]:
    found: list[Fact] = []
    body = " ".join(plain(one.text) for one in pieces if one.kind != "value")
    for one in pieces:
        words = plain(one.text)
        told = one.kind == "value" and (one.under in _NAMELESS or repeats(words, body))
        if words and not told:
            found.append(Fact(file, one.line, one.text, words, one.kind))
    return tuple(found)


def repeats(words: str, body: str) -> bool:
    """Whether a name or description only repeats its own file's words. The last may be cut, but a
    number that goes on is another number."""
    end = " " if words[-1:].isdecimal() else ""
    return f" {words}{end}" in f" {body} "


def _of_index(text: str, file: str) -> Iterator[Fact]:
    pointers = {one.number: one for one in indexes.parse(text.encode("utf-8", "replace")).pointers}
    for number, row in enumerate(text.splitlines(), 1):
        pointer = pointers.get(number)
        said = row if pointer is None else pointer.hook
        words = plain(said)
        if words:
            kind = "heading" if row.lstrip().startswith("#") else "item"
            yield Fact(file, number, said.strip(), words, kind)


# Comparing


def lost(
    old: Mapping[str, bytes],
    new: Mapping[str, bytes],
    reasons: Sequence[Reason] = (),
    *,
    now: float = 0.0,
) -> tuple[Lost, ...]:
    """The facts of `old` that are neither in `new` nor have a reason that holds."""
    gone: list[Fact] = []
    changed = [key for key, data in sorted(old.items()) if new.get(key) != data]
    kept = FolderFacts(new) if changed else None
    for key in changed:
        facts = facts_of(shown(old[key]), key)
        gone += [one for one in facts if kept is not None and not kept.says(one)]
    if not gone or kept is None:
        return ()
    judge = _Judge(old, kept, reasons, now)
    found = ((one, judge.fault(one)) for one in gone)
    return tuple(Lost(one.file, one.line, one.text, note) for one, note in found if note)


@dataclass(frozen=True, slots=True)
class _NewPassage:
    """A passage of the new folder, with those beside it in the same block."""

    file: str
    terms: Terms


class FolderFacts:
    """A folder's texts, ready to be asked what they say."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.files = files
        self._plain: dict[str, str] = {}
        self._exact: set[str] = set()
        self._said: list[_NewPassage] = []
        self._by_word: dict[str, list[int]] = {}
        self._by_part: dict[str, set[str]] = {}
        for key, data in files.items():
            self._read(key, shown(data))

    def _read(self, key: str, text: str) -> None:
        if is_index(key):
            found = facts_of(text, key)
            pieces = [Passage("item", one.line, 0, 0, one.text, one.line) for one in found]
        else:
            pieces = list(passages(text))
            found = _of_passages(pieces, key)
        self._exact.update(one.plain for one in found)
        words = f" {' '.join(one.plain for one in found)} "
        self._plain[key] = words
        for word in set(words.split()):
            self._by_part.setdefault(word, set()).add(key)
        self._passages(key, pieces)

    def _passages(self, key: str, pieces: Sequence[Passage]) -> None:
        single = [terms(one.text) for one in pieces]
        for at, one in enumerate(pieces):
            group = [single[at]]
            self._put(key, single[at])
            for other in range(at + 1, min(at + _TOGETHER, len(pieces))):
                if pieces[other].block != one.block:
                    break
                group.append(single[other])
                self._put(key, joined(group))

    def _put(self, key: str, found: Terms) -> None:
        number = len(self._said)
        self._said.append(_NewPassage(key, found))
        for word in found.all:
            self._by_word.setdefault(word, []).append(number)

    def says(self, fact: Fact) -> bool:
        """Whether the folder says this, in these words or in others."""
        if fact.plain in self._exact or self._in_a_row(fact.plain):
            return True
        wanted = fact.terms
        return any(_covers(said.terms, wanted) for said in self._near(wanted))

    def in_file(self, key: str, wanted: Terms, share: float, *, turned: bool = False) -> bool:
        """Whether one passage of a file has all hard terms and this share of all terms."""
        near = (said.terms for said in self._near(wanted, key))
        return not wanted.all or any(_alike(said, wanted, share, turned=turned) for said in near)

    def about(self, key: str, wanted: Terms, share: float) -> bool:
        """The same of a file as a whole: for what a head says, which is about all of it."""
        own = [said.terms for said in self._said if said.file == key]
        return _alike(joined(own), wanted, share, turned=not wanted.denies)

    def _in_a_row(self, words: str) -> bool:
        keys = [self._by_part.get(word, set[str]()) for word in set(words.split())]
        rarest = min(keys, key=len, default=set[str]())
        return any(f" {words} " in self._plain[key] for key in rarest)

    def _near(self, wanted: Terms, key: str = "") -> list[_NewPassage]:
        """Passages that share the rarest words, those with the most of them first."""
        rows = sorted((self._by_word.get(w, []) for w in wanted.all), key=len)
        counts: dict[int, int] = {}
        for row in [row for row in rows if row][: _RARE if not key else None]:
            for number in row:
                if not key or self._said[number].file == key:
                    counts[number] = counts.get(number, 0) + 1
        best = sorted(counts, key=lambda n: (-counts[n], n))[:_CANDIDATES]
        return [self._said[n] for n in best]


def joined(group: Sequence[Terms]) -> Terms:
    """The terms of several passages as one."""
    none: frozenset[str] = frozenset()
    return Terms(
        none.union(*(one.hard for one in group)),
        none.union(*(one.soft for one in group)),
        any(one.denies for one in group),
        none.union(*(one.numbers for one in group)),
    )


def _covers(said: Terms, wanted: Terms) -> bool:
    if said.denies != wanted.denies or not wanted.hard <= said.all:
        return False
    soft = wanted.soft
    return len(soft & said.all) >= MAX_SOFT * len(soft) and bool(len(wanted))


def _alike(said: Terms, wanted: Terms, share: float, *, turned: bool) -> bool:
    """All hard terms and a share of all; the other meaning counts only where it may be `turned`."""
    words = wanted.all
    same = turned or said.denies == wanted.denies
    return same and wanted.hard <= said.all and len(words & said.all) >= share * len(words)


# Reasons


@dataclass(slots=True)
class _Judge:
    """Which reason stands for which fact."""

    old: Mapping[str, bytes]
    new: FolderFacts
    reasons: Sequence[Reason]
    now: float
    _by_file: dict[str, list[Reason]] | None = None

    def fault(self, fact: Fact) -> str:
        """Why the loss of a fact stands; "" where a reason covers it."""
        if self._by_file is None:
            self._by_file = {}
            for one in self.reasons:
                self._by_file.setdefault(one.file, []).append(one)
        mine = [one for one in self._by_file.get(fact.file, ()) if _about(one, fact)]
        if not mine:
            return Lost("", 0, "").note
        faults = [self._checked(one, fact) for one in mine]
        return "" if "" in faults else faults[0]

    def _checked(self, reason: Reason, fact: Fact) -> str:
        return _CHECKS[reason.why](self, reason, fact)

    def replaced(self, reason: Reason, fact: Fact, share: float) -> str:
        key = reason.target
        if not key or key not in self.new.files:
            return f"{reason.why} names {key or 'no file'}, which is not there"
        own = fact.terms
        turned = reason.why in ("superseded_by", "contradicted_by")
        wanted = Terms(frozenset(), own.all - own.numbers, own.denies) if turned else own
        if self.new.in_file(key, wanted, share, turned=turned):
            return ""
        merged = reason.why in ("merged_into", "duplicate_of") and fact.kind == "value"
        if merged and self.new.about(key, own, share):
            return ""
        return f"{reason.why} names {key}, which says nothing like it"

    def expired(self, fact: Fact) -> str:
        date = latest(fact.text)
        if date is None:
            return "it is said to be expired and has no date"
        return "" if date < self.now else "it is said to be expired and its date has not passed"

    def dangling(self, fact: Fact) -> str:
        if not is_index(fact.file):
            return "it is said to be a pointer and stands in no index"
        below = fact.file[: fact.file.rfind("/") + 1]
        pointers = indexes.parse(self.old[fact.file]).pointers
        found = next((one for one in pointers if one.number == fact.line), None)
        if found is None or (found.key and below + found.key in self.new.files):
            return "it is said to be a pointer to nothing and is none"
        return ""


def _about(reason: Reason, fact: Fact) -> bool:
    if not reason.fact:
        return True
    words = plain(reason.fact)
    return bool(words) and (f" {words} " in f" {fact.plain} " or f" {fact.plain} " in f" {words} ")


_Check: TypeAlias = Callable[[_Judge, Reason, Fact], str]
_CHECKS: dict[DropReason, _Check] = {
    "merged_into": lambda judge, reason, fact: judge.replaced(reason, fact, SAME_MATTER),
    "duplicate_of": lambda judge, reason, fact: judge.replaced(reason, fact, SAME_MATTER),
    "superseded_by": lambda judge, reason, fact: judge.replaced(reason, fact, SAME_SUBJECT),
    "contradicted_by": lambda judge, reason, fact: judge.replaced(reason, fact, SAME_SUBJECT),
    "dated": lambda judge, reason, fact: judge.replaced(
        Reason("dated", reason.file, reason.target or reason.file), fact, SAME_MATTER
    ),
    "shortened": lambda judge, reason, fact: judge.replaced(
        Reason("shortened", reason.file, reason.target or reason.file), fact, SAME_MATTER
    ),
    "expired": lambda judge, _, fact: judge.expired(fact),
    "pointer": lambda judge, _, fact: judge.dangling(fact),
}


# Reasons as text


def reasons_block(reasons: Iterable[Reason]) -> str:
    """Reasons as a fenced block that `reasons_in` reads, one JSON object a line."""
    rows = [dump(_value(one)) for one in reasons]
    return "\n".join(["```reasons", *rows, "```"])


def _value(one: Reason) -> dict[str, str]:
    value = {"file": one.file, "reason": one.why, "target": one.target, "fact": one.fact}
    return {name: text for name, text in value.items() if text}


def reasons_in(text: str) -> tuple[Reason, ...]:
    """The reasons that a text gives in such blocks; a line that is none is passed over."""
    found: list[Reason] = []
    for block in _BLOCK.finditer(text):
        for row in block[1].splitlines()[:_MOST_REASONS]:
            one = _reason(row)
            if one is not None:
                found.append(one)
    return tuple(found)


def _reason(row: str) -> Reason | None:
    try:
        value = parse(row)
    except InvalidMessage:
        return None
    if not isinstance(value, dict):
        return None
    given = {name: text for name, text in value.items() if isinstance(text, str)}
    why = _WHY.get(given.get("reason", ""))
    if why is None or not given.get("file"):
        return None
    return Reason(why, given["file"], given.get("target", ""), given.get("fact", ""))
