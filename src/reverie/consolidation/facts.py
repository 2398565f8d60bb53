"""Whether every fact of a memory folder is still in another state of it: the judge of a dream.

A fact is a sentence, a list item, a table row, a heading, a line of code or a value of the
frontmatter, but for what says which calls a memory is about (`branch` judges that). It is kept
where all its words stand in a row in one block of the new folder, whatever the case, the Markdown
or the line breaks, with every sign of its numbers, and where the sentence around them does not
turn them ("never", "unless", "no longer"). One word less or another word in its place is a loss.
A date that only the day of writing would tell may be written out. A line that the file still has
is never a loss.

Titles, descriptions and the lines of an index are no facts of their own: they are kept where one
file has their numbers and names and half of their words. Every (noun, id) pair of the old folder,
theirs too, must be named in the new one.

What is lost needs a reason that can be checked: the line that replaced it stands in the file that
is named and speaks of the same; a line says the same in other words; it should never have been
kept; a date that has passed; a pointer that led nowhere. That a fact was merged somewhere is no
reason: there it must stand.

The measure is the judge's own. It shares none with what makes repairs, and is the stricter one.
Pure: it compares what it is given, reads no file and no clock.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from reverie.consolidation.folder import Passage, PassageKind, one, passages
from reverie.consolidation.junk import junk
from reverie.consolidation.reasons import DropReason, RemovalReason, Tombstone
from reverie.consolidation.words import (
    JOINTS,
    TURNS,
    SubjectId,
    closing_id,
    same_in_other_words,
    subject_ids,
    words_of,
)
from reverie.light import dataclass
from reverie.rules.rule import APPLIES
from reverie.text.dates import latest, relative
from reverie.text.stems import is_german, stem
from reverie.text.tokens import SMALL, plain, split_terms
from reverie.topics import index as indexes
from reverie.topics.entry import INDEX, decode_text, is_cut, is_index, uncut
from reverie.topics.frontmatter import MAX_BYTES
from reverie.topics.frontmatter import parse_frontmatter as parse_head

SAME_SUBJECT = 0.5
"""Share of a fact's words, but for values, that the line which took its place must have. Of 137
cases of `tests/memory/test_facts.py` and `test_dream_changes.py` .35 judges 0 wrong, .65 one."""
HEAD_WORDS = 0.5
"""Share of a title's and description's words that one file must have; .35 to .65 judge the same
cases alike, and `python -m bench run hygiene` loses 0 of 126,952 facts."""
MAX_DATE = 6
"""Words that a date written out may have."""
_ANY_DAY = 86_400.0 * 10_000
_TITLES = frozenset({"name", "description"})
_NAMELESS = frozenset({"type", "metadata", "originSessionId", "node_type", "trust", APPLIES})
_OPEN_HEAD = re.compile(r"---[ \t]*\r?\n(?:[A-Za-z][\w-]*:(?: .*)?\r?\n|[ \t]+\S.*\r?\n)+")


@dataclass(frozen=True, slots=True)
class Fact:
    """One statement of a file: where, as it is written, and as it is compared."""

    file: str
    line: int
    text: str
    plain: str
    kind: PassageKind = "sentence"
    title: bool = False  # a title, a description or a line of an index
    about: str = ""  # the memory that a line of an index leads to


@dataclass(frozen=True, slots=True)
class LostFact:
    """A fact that is gone, and why no reason stands for it."""

    file: str
    line: int
    text: str
    note: str = "no reason is given"


# Facts


def facts_of(text: str, file: str = "") -> tuple[Fact, ...]:
    """Return every fact of a file's text. Of an index, what its lines say beside the link."""
    if is_index(file):
        return tuple(_of_index(text, file))
    pieces = passages(_close_frontmatter(text))
    stated = any(one.kind not in ("value", "heading") for one in pieces)
    titles = {plain(one.text) for one in pieces if one.kind == "value" and one.under == "name"}
    return tuple(
        Fact(file, one.line, one.text, plain(one.text), one.kind, _is_title(one, stated, titles))
        for one in pieces
        if plain(one.text) and not (one.kind == "value" and one.under in _NAMELESS)
    )


def _is_title(piece: Passage, stated: bool, titles: set[str]) -> bool:
    """Whether a passage is a title or a description of what its file states below."""
    if piece.kind == "heading":
        return plain(piece.text) in titles
    return stated and piece.kind == "value" and piece.under in _TITLES


def _close_frontmatter(text: str) -> str:
    """The text with its head closed: one that is not yet says the same once it is."""
    if parse_head(text[:MAX_BYTES].encode("utf-8", "replace")).present:
        return text
    found = _OPEN_HEAD.match(text)
    return f"{found[0]}---\n{text[found.end() :]}" if found else text


def _of_index(text: str, file: str) -> Iterator[Fact]:
    pointers = indexes.parse_index(text.encode("utf-8", "replace")).pointers
    by_line = {one.number: one for one in pointers}
    for number, row in enumerate(text.splitlines(), 1):
        pointer = by_line.get(number)
        said = row.strip() if pointer is None else f"{pointer.title} — {pointer.hook}".strip(" —")
        if plain(said):
            kind = "heading" if row.lstrip().startswith("#") else "item"
            about = file.removesuffix(INDEX) + pointer.key if pointer else ""
            yield Fact(file, number, said, plain(said), kind, pointer is not None, about)


# Comparing


@dataclass(frozen=True, slots=True)
class FactVerdict:
    """What became of the facts that do not stand in the new folder."""

    lost: tuple[LostFact, ...] = ()
    tombstones: tuple[Tombstone, ...] = ()


def fact_verdict(
    old: Mapping[str, bytes],
    new: Mapping[str, bytes],
    reasons: Sequence[RemovalReason] = (),
    *,
    now: float = 0.0,
) -> FactVerdict:
    """Return what is lost, and what is gone for a reason that holds."""
    changed = [key for key, data in sorted(old.items()) if new.get(key) != data]
    if not changed:
        return FactVerdict()
    kept = FolderFacts(new)
    by_file: dict[str, list[RemovalReason]] = {}
    for reason in reasons:
        by_file.setdefault(reason.file, []).append(reason)
    judge = _Judge(old, kept, by_file, now)
    missing: list[LostFact] = []
    graves: dict[str, list[Tombstone]] = {}
    stays: set[str] = set()  # files of which something is kept, or would have to be
    for key in sorted(changed, key=is_index):  # what a pointer tells went with its file
        rows = frozenset(decode_text(new.get(key, b"")).splitlines())
        lines = decode_text(old[key]).splitlines()
        for fact in sorted(facts_of(decode_text(old[key]), key), key=lambda fact: fact.title):
            height = fact.text.count("\n") + 1
            if rows.issuperset(lines[fact.line - 1 : fact.line - 1 + height]):
                continue  # the file still has these lines
            about = fact.about or key
            if fact.title and about not in new and about in graves and about not in stays:
                continue  # all that its memory said went for a reason
            gone = " ".join(one.fact for one in graves.get(about, ()))
            found = None if kept.has(fact, gone) else judge.of(fact)
            if isinstance(found, Tombstone):
                graves.setdefault(key, []).append(found)
            else:
                stays.add(key)
            if isinstance(found, str):
                missing.append(LostFact(fact.file, fact.line, fact.text, found))
    every = (one for key in sorted(graves) for one in graves[key])
    return FactVerdict(tuple(missing), tuple(every))


class FolderFacts:
    """A folder's texts, ready to be asked what they say."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.files = files
        self._blocks: list[tuple[str, str]] = []  # file, its words in a row, sentences by a bar
        self._by_word: dict[str, list[int]] = {}
        self._stems: dict[str, frozenset[str]] = {}  # the words of each topic
        for key, data in files.items():
            self._read(key, decode_text(data))

    def _read(self, key: str, text: str) -> None:
        groups: dict[int, list[str]] = {}
        if is_index(key):
            for number, fact in enumerate(facts_of(text, key)):
                groups[number] = [fact.text]
        else:
            for piece in passages(_close_frontmatter(text)):
                groups.setdefault(piece.block, []).append(piece.text)
        words: set[str] = set()
        for group in groups.values():
            rows = [" ".join(words_of(one)) for one in group]
            row = f" {' | '.join(filter(None, rows))} "
            words.update(row.split())
            for word in set(row.split()):
                self._by_word.setdefault(word, []).append(len(self._blocks))
            self._blocks.append((key, row))
        if not is_index(key):
            self._stems[key] = frozenset(words).union(map(stem, words))

    def has(self, fact: Fact, gone: str = "") -> bool:
        """Whether the folder says a fact; of a title, whether it has its ids and words, beside
        those of `gone`, facts of its file that went for a reason."""
        if not fact.title:
            return self.says(fact)
        told = subject_ids(fact.text) - subject_ids(gone)
        return all(map(self._names, told)) and self._covers(fact, gone)

    def _names(self, pair: SubjectId) -> bool:
        """Whether a block has a noun and its id side by side."""
        noun, name = pair
        noun, ids = noun[-1] if noun[-1] >= "\u2e80" else noun, words_of(name)
        for number in self._by_word.get(ids[0], ()) if ids else ():
            row = self._blocks[number][1].split()
            for at in (n for n in range(len(row)) if row[n : n + len(ids)] == ids):
                if noun in map(stem, (*row[max(0, at - 1) : at], *row[at + len(ids) :][:1])):
                    return True
        return not ids

    def _covers(self, fact: Fact, gone: str) -> bool:
        """Whether one topic has the numbers of a title and half of its words."""
        text = uncut(fact.text).rpartition(" ")[0] if is_cut(fact.text) else fact.text
        for when in reversed(relative(text, _ANY_DAY)):
            text = text[: when.start] + text[when.end :]
        without = set(words_of(gone))
        told = text.rpartition(" — ")[2]
        terms = split_terms(told)  # in a sentence, not in a Heading, a capital makes a name
        fixed = terms.hard if terms.soft and not is_german(text) else frozenset[str]()
        fixed |= split_terms(text, titled=True).numbers
        hard = {word for term in fixed for word in words_of(term)} - without
        soft = {stem(word) for word in words_of(text) if word not in SMALL | JOINTS} - hard
        least = HEAD_WORDS * len(soft) - len(soft & set(map(stem, without)))
        if least <= 0 and not hard:
            return True
        return any(hard <= own and len(soft & own) >= least for own in self._stems.values())

    def says(self, fact: Fact) -> bool:
        """Whether a block of the folder has the fact's words and does not turn them."""
        parts = _parts(fact)
        return not any(parts) or any(_stands(parts, row) for _, row in self._near(parts))

    def sentences(self, key: str, by: str = "") -> Iterator[str]:
        """Return the sentences of a file; with `by`, those of the blocks that have its words."""
        told = " ".join(words_of(by))
        for file, row in self._blocks:
            if file == key and (not told or f" {told} " in f" {row.replace(' | ', ' ').strip()} "):
                yield from (sentence.strip() for sentence in row.split("|"))

    def _near(self, parts: Sequence[str]) -> Iterator[tuple[str, str]]:
        words = {word for part in parts[::2] for word in part.split()}
        words = words or {word for part in parts for word in part.split()}
        rows = [self._by_word.get(word, []) for word in words]
        rarest = min(rows, key=len, default=list[int]())
        return (self._blocks[n] for n in rarest)


def _parts(fact: Fact) -> list[str]:
    """A fact's words in a row; where a date stands that may be written out, the words before,
    those of the date, those behind it and so on."""
    parts: list[str] = []
    at = 0
    for when in relative(fact.text, _ANY_DAY):
        before = fact.text[at : when.start]
        parts += [" ".join(words_of(before)), " ".join(words_of(when.words))]
        at = when.end
    return [*parts, " ".join(words_of(fact.text[at:]))]


def _stands(parts: Sequence[str], row: str) -> bool:
    """Whether the words stand in a row of a block, in a sentence that does not turn them."""
    flat = row.replace(" | ", " ")
    if f" {' '.join(filter(None, parts))} " not in flat and not _has_dates(parts, flat):
        return False
    own = {word for part in parts[::2] for word in part.split()}
    if not own:  # nothing but a date: "Yesterday"
        return True
    around = [set(one.split()) for one in row.split("|")]
    touched = [one for one in around if one & own]
    # Of a block with several sentences only those that hold the words can turn them.
    full = [one for one in touched if own <= one] or touched
    return any(not (one - own) & TURNS for one in full)


def _has_dates(parts: Sequence[str], flat: str) -> bool:
    """Whether the words stand there with each date written out."""
    if len(parts) == 1:
        return False
    date = rf"(?: \S+){{0,{MAX_DATE}}}? \S*\d\S*(?: \S+){{0,{MAX_DATE}}}?"
    said = [rf" {re.escape(part)}" if part else "" for part in parts[::2]]
    return re.search(rf"{date.join(said)}(?= )", flat) is not None


# Reasons


@dataclass(slots=True)
class _Judge:
    """Which reason stands for which fact."""

    old: Mapping[str, bytes]
    new: FolderFacts
    reasons: Mapping[str, Sequence[RemovalReason]]  # by file
    now: float

    def of(self, fact: Fact) -> Tombstone | str:
        """Return the tombstone of a fact that may be gone, else why it may not."""
        faults: list[str] = []
        for reason in self.reasons.get(fact.file, ()):
            found = _CHECKS[reason.why](self, reason, fact) if _is_about(reason, fact) else ""
            if isinstance(found, Tombstone):
                return found
            faults += [found] if found else []
        missing = "its numbers and names and half of its words stand in no one file"
        return next(iter(faults), missing if fact.title else LostFact("", 0, "").note)

    def replaced(self, reason: RemovalReason, fact: Fact) -> Tombstone | str:
        key = reason.target or reason.file
        if key not in self.new.files:
            return f"{reason.why} names {key}, which is not there"
        wanted = set(words_of(fact.text)) - JOINTS
        wanted = {word for word in wanted if not word[-1].isdigit()} or wanted
        best, most = "", SAME_SUBJECT
        for sentence in self.new.sentences(key, reason.by):
            share = len(wanted & set(sentence.split())) / max(1, len(wanted))
            if share >= most:
                best, most = sentence, share
        if not best:
            return f"{reason.why} names {key}, which says nothing like it"
        by = reason.by or best
        ends = closing_id(fact.text)
        mine = subject_ids(fact.text) - ({ends} if ends else set())
        theirs = subject_ids(by)
        other = {noun for noun, _ in mine - theirs} & {noun for noun, _ in theirs - mine}
        if other:
            return f"{reason.why} names a line about another {', '.join(sorted(other))}: both stay"
        return Tombstone(fact.file, fact.text, reason.why, key, by)

    def repeated(self, reason: RemovalReason, fact: Fact) -> Tombstone | str:
        """The same in other words: a sentence there has the same content words."""
        key = reason.target or reason.file
        if reason.by and any(self.new.sentences(key, reason.by)):
            if same_in_other_words(fact.text, reason.by):
                return Tombstone(fact.file, fact.text, reason.why, key, reason.by)
            return f"{reason.why} names a line whose words are not the same: keep both"
        return f"{reason.why} {key}, where its words do not stand, and no line by which it does"

    def moved(self, reason: RemovalReason, _: Fact) -> Tombstone | str:
        """Merged: then its words would stand there."""
        return f"{reason.why} {reason.target or reason.file}, where its words do not stand"

    def unkept(self, reason: RemovalReason, fact: Fact) -> Tombstone | str:
        """What should never have been saved: the sentence, or its whole memory."""
        whole = decode_text(self.old[fact.file])
        if junk(one(fact.file, fact.text, 0.0)) or junk(one(fact.file, whole, 0.0)):
            return Tombstone(fact.file, fact.text, reason.why)
        return "it is said to be nothing to keep, and does not read like that: leave it"

    def expired(self, reason: RemovalReason, fact: Fact) -> Tombstone | str:
        date = latest(fact.text)
        if date is None:
            return "it is said to be expired and has no date"
        if date >= self.now:
            return "it is said to be expired and its date has not passed"
        return Tombstone(fact.file, fact.text, "expired", reason.target, reason.by)

    def dangling(self, reason: RemovalReason, fact: Fact) -> Tombstone | str:
        if not is_index(fact.file):
            return "it is said to be a pointer and stands in no index"
        below = fact.file[: fact.file.rfind("/") + 1]
        pointers = indexes.parse_index(self.old[fact.file]).pointers
        found = next((pointer for pointer in pointers if pointer.number == fact.line), None)
        if found is None or (found.key and below + found.key in self.new.files):
            return "it is said to be a pointer to nothing and is none"
        return Tombstone(fact.file, fact.text, reason.why, found.target)


def _is_about(reason: RemovalReason, fact: Fact) -> bool:
    if not reason.fact:
        return True
    words = plain(reason.fact)
    return bool(words) and (f" {words} " in f" {fact.plain} " or f" {fact.plain} " in f" {words} ")


_Check: TypeAlias = Callable[[_Judge, RemovalReason, Fact], Tombstone | str]
_CHECKS: dict[DropReason, _Check] = {
    "merged_into": _Judge.moved,
    "duplicate_of": _Judge.repeated,
    "shortened": _Judge.moved,
    "superseded_by": _Judge.replaced,
    "contradicted_by": _Judge.replaced,
    "never_kept": _Judge.unkept,
    "expired": _Judge.expired,
    "pointer": _Judge.dangling,
}
