"""Whether every fact of a memory folder is still in another state of it: the judge of a dream.

A fact is a sentence, a list item, a table row, a heading, a line of code or a value of the
frontmatter, but for what says which calls a memory is about (`branch_rules` judges that). It is
kept where all its words stand in a row in one block of the new folder, whatever the case, the
Markdown or the line breaks, with every sign of its numbers, and where the sentence around them
does not turn them ("never", "unless", "no longer"). One word less or another word in its place is
a loss. A date that only the day of writing would tell may be written out.

What is lost needs a reason that can be checked: the line that replaced it stands in the file that
is named and speaks of the same; a date that has passed; a pointer that led nowhere. That a fact was
merged somewhere is no reason: there it must stand.

The measure is the judge's own. It shares none with what makes repairs, and is the stricter one.
Pure: it compares what it is given, reads no file and no clock.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal, TypeAlias, get_args

from reverie.consolidation.folder import Passage, PassageKind, passages
from reverie.errors import InvalidMessage
from reverie.light import dataclass
from reverie.rules.rule import APPLIES
from reverie.text.dates import latest, relative
from reverie.text.safety import strip
from reverie.text.tokens import plain
from reverie.topics import index as indexes
from reverie.topics.entry import decode_text, is_cut, is_index, uncut
from reverie.topics.frontmatter import MAX_BYTES
from reverie.topics.frontmatter import parse_frontmatter as parse_head
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

SAME_SUBJECT = 0.5
"""Share of a fact's words, but for values, that the line which took its place must have."""
MAX_DATE = 6
"""Words that a date written out may have."""
_ANY_DAY = 86_400.0 * 10_000
_NAMELESS = frozenset({"type", "metadata", "originSessionId", "node_type", "trust", APPLIES})
_OPEN_HEAD = re.compile(r"---[ \t]*\r?\n(?:[A-Za-z][\w-]*:(?: .*)?\r?\n|[ \t]+\S.*\r?\n)+")
_MARK = re.compile(r"[*_`~]+(?=\S)|(?<=\S)[*_`~]+|\s{0,2}\(passed\)")
_LINK = re.compile(r"\]\((?![A-Za-z][\w+.-]*:)[^()\s]*\.md(?:#[^()\s]*)?\)")
_WORD = re.compile(
    "[\u2e80-\u2fff\u3005-\u3007\u3040-\u9fff\uac00-\ud7af]"
    r"|[-+±~≈<>≤≥$€£¥]?\d[\d.,:/]*(?<=\d)[%‰°]?"
    "|[^\\W\u2e80-\u9fff\uac00-\ud7af\u3040-\u30ff]+"
)
_TURNS = frozenset(
    re.findall(
        r"\S+",
        """not no never none neither nor without cannot nothing nobody nowhere unless except until
        formerly previously longer stop stopped avoid instead rather outdated obsolete wrong false
        t don doesn didn isn aren wasn weren won wouldn shouldn mustn hasn haven hadn couldn
        nicht kein keine keinen keinem keiner keines nie niemals ohne außer weder früher
        ehemals statt falsch 不 没 無 无 未 勿 别 非 禁 除 曾""",
    )
)
"""Words that turn the sentence they stand in."""
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


@dataclass(frozen=True, slots=True)
class RemovalReason:
    """Why a fact of a file is no longer there; without a fact it is about the whole file."""

    why: DropReason
    file: str
    target: str = ""
    fact: str = ""
    by: str = ""  # the line that stands in its place


@dataclass(frozen=True, slots=True)
class Tombstone:
    """A fact that is gone for a reason that holds, and the line that replaces it."""

    file: str
    fact: str
    why: DropReason
    target: str = ""
    by: str = ""


@dataclass(frozen=True, slots=True)
class LostFact:
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
    return _of_passages(passages(_close_frontmatter(text)), file)


def _close_frontmatter(text: str) -> str:
    """The text with its head closed: one that is not yet says the same once it is."""
    if parse_head(text[:MAX_BYTES].encode("utf-8", "replace")).present:
        return text
    found = _OPEN_HEAD.match(text)
    return f"{found[0]}---\n{text[found.end() :]}" if found else text


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
    pointers = {
        one.number: one for one in indexes.parse_index(text.encode("utf-8", "replace")).pointers
    }
    for number, row in enumerate(text.splitlines(), 1):
        pointer = pointers.get(number)
        parts = (row,) if pointer is None else (pointer.title, pointer.hook)
        for said in parts:
            words = plain(said)
            if words:
                kind = "heading" if row.lstrip().startswith("#") else "item"
                yield Fact(file, number, said.strip(), words, kind)


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
    """What is lost, and what is gone for a reason that holds."""
    changed = [key for key, data in sorted(old.items()) if new.get(key) != data]
    if not changed:
        return FactVerdict()
    kept = FolderFacts(new)
    gone = [
        one for key in changed for one in facts_of(decode_text(old[key]), key) if not kept.says(one)
    ]
    judge = _Judge(old, kept, reasons, now)
    missing: list[LostFact] = []
    graves: list[Tombstone] = []
    for one in gone:
        found = judge.of(one)
        if isinstance(found, Tombstone):
            graves.append(found)
        else:
            missing.append(LostFact(one.file, one.line, one.text, found))
    return FactVerdict(tuple(missing), tuple(graves))


def words_of(text: str) -> list[str]:
    """The words of a text as the judge compares them: all of them, numbers with their signs."""
    seen = unicodedata.normalize("NFKC", strip(_LINK.sub("] ", _MARK.sub("", text))))
    return [one.lower() for one in _WORD.findall(seen)]


class FolderFacts:
    """A folder's texts, ready to be asked what they say."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.files = files
        self._blocks: list[tuple[str, str]] = []  # file, its words in a row, sentences by a bar
        self._by_word: dict[str, list[int]] = {}
        for key, data in files.items():
            self._read(key, decode_text(data))

    def _read(self, key: str, text: str) -> None:
        groups: dict[int, list[str]] = {}
        if is_index(key):
            for number, one in enumerate(facts_of(text, key)):
                groups[number] = [one.text]
        else:
            for piece in passages(_close_frontmatter(text)):
                groups.setdefault(piece.block, []).append(piece.text)
        for group in groups.values():
            rows = [" ".join(words_of(one)) for one in group]
            row = f" {' | '.join(filter(None, rows))} "
            for word in set(row.split()):
                self._by_word.setdefault(word, []).append(len(self._blocks))
            self._blocks.append((key, row))

    def says(self, fact: Fact) -> bool:
        """Whether a block of the folder has the fact's words and does not turn them."""
        parts = _parts(fact)
        cut = is_cut(fact.text)  # what would turn it may be what was cut off
        return not any(parts) or any(_stands(parts, row, cut) for _, row in self._near(parts))

    def replaces(self, key: str, fact: Fact, by: str = "") -> str:
        """The line of a file that speaks of what a fact spoke of, or nothing."""
        wanted = set(words_of(fact.text)) - _JOINTS
        wanted = {one for one in wanted if not one[-1].isdigit()} or wanted
        told = " ".join(words_of(by))
        best, most = "", SAME_SUBJECT
        for file, row in self._blocks:
            if file != key or (told and f" {told} " not in f" {row.replace('|', '').strip()} "):
                continue
            for sentence in row.split("|"):
                share = len(wanted & set(sentence.split())) / max(1, len(wanted))
                if share >= most:
                    best, most = sentence.strip(), share
        return (by or best) if best else ""

    def _near(self, parts: Sequence[str]) -> Iterator[tuple[str, str]]:
        words = {word for part in parts[::2] for word in part.split()}
        words = words or {word for part in parts for word in part.split()}
        rows = [self._by_word.get(word, []) for word in words]
        rarest = min(rows, key=len, default=list[int]())
        return (self._blocks[n] for n in rarest)


_JOINTS = frozenset(
    re.findall(
        r"\S+",
        """
        a an the of to in on at by for and or is are was be der die das 的
        """,
    )
)


def _parts(fact: Fact) -> list[str]:
    """A fact's words in a row; where a date stands that may be written out, the words before,
    those of the date, those behind it and so on."""
    text = fact.text
    if fact.kind in ("value", "item") and is_cut(text):
        text = uncut(text).rpartition(" ")[0] or text
    parts: list[str] = []
    at = 0
    for when in relative(text, _ANY_DAY):
        parts += [" ".join(words_of(text[at : when.start])), " ".join(words_of(when.words))]
        at = when.end
    return [*parts, " ".join(words_of(text[at:]))]


def _stands(parts: Sequence[str], row: str, cut: bool) -> bool:
    """Whether the words stand in a row of a block, in a sentence that does not turn them."""
    flat = row.replace(" | ", " ")
    if f" {' '.join(filter(None, parts))} " not in flat and not _has_dates(parts, flat):
        return False
    if cut:
        return True
    own = {word for part in parts[::2] for word in part.split()}
    around = [set(one.split()) for one in row.split("|")]
    touched = [one for one in around if one & own]
    # Of a block with several sentences only those that hold the words can turn them.
    full = [one for one in touched if own <= one] or touched
    return any(not (one - own) & _TURNS for one in full)


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
    reasons: Sequence[RemovalReason]
    now: float
    _by_file: dict[str, list[RemovalReason]] | None = None

    def of(self, fact: Fact) -> Tombstone | str:
        """The tombstone of a fact that may be gone, else why it may not."""
        if self._by_file is None:
            self._by_file = {}
            for one in self.reasons:
                self._by_file.setdefault(one.file, []).append(one)
        mine = [one for one in self._by_file.get(fact.file, ()) if _about(one, fact)]
        faults: list[str] = []
        for reason in mine:
            found = _CHECKS[reason.why](self, reason, fact)
            if isinstance(found, Tombstone):
                return found
            faults.append(found)
        return faults[0] if faults else LostFact("", 0, "").note

    def replaced(self, reason: RemovalReason, fact: Fact) -> Tombstone | str:
        key = reason.target or reason.file
        if key not in self.new.files:
            return f"{reason.why} names {key}, which is not there"
        by = self.new.replaces(key, fact, reason.by)
        if by:
            return Tombstone(fact.file, fact.text, reason.why, key, by)
        return f"{reason.why} names {key}, which says nothing like it"

    def moved(self, reason: RemovalReason, _: Fact) -> Tombstone | str:
        """Merged or repeated: then its words would stand there."""
        return f"{reason.why} {reason.target or reason.file}, where its words do not stand"

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
        found = next((one for one in pointers if one.number == fact.line), None)
        if found is None or (found.key and below + found.key in self.new.files):
            return "it is said to be a pointer to nothing and is none"
        return Tombstone(fact.file, fact.text, reason.why, found.target)


def _about(reason: RemovalReason, fact: Fact) -> bool:
    if not reason.fact:
        return True
    words = plain(reason.fact)
    return bool(words) and (f" {words} " in f" {fact.plain} " or f" {fact.plain} " in f" {words} ")


_Check: TypeAlias = Callable[[_Judge, RemovalReason, Fact], Tombstone | str]
_CHECKS: dict[DropReason, _Check] = {
    "merged_into": _Judge.moved,
    "duplicate_of": _Judge.moved,
    "shortened": _Judge.moved,
    "superseded_by": _Judge.replaced,
    "contradicted_by": _Judge.replaced,
    "dated": _Judge.replaced,
    "expired": _Judge.expired,
    "pointer": _Judge.dangling,
}


# Reasons as text


def reasons_block(reasons: Iterable[RemovalReason]) -> str:
    """Reasons as a fenced block that `reasons_in` reads, one JSON object a line."""
    rows = [dump(_value(one)) for one in reasons]
    return "\n".join(["```reasons", *rows, "```"])


def _value(one: RemovalReason) -> dict[str, str]:
    value = {"file": one.file, "reason": one.why, "target": one.target, "fact": one.fact}
    value |= {"by": one.by}
    return {name: text for name, text in value.items() if text}


def reasons_in(text: str) -> tuple[RemovalReason, ...]:
    """The reasons that a text gives in such blocks; a line that is none is passed over."""
    found: list[RemovalReason] = []
    for block in _BLOCK.finditer(text):
        for row in block[1].splitlines()[:_MOST_REASONS]:
            one = _reason(row)
            if one is not None:
                found.append(one)
    return tuple(found)


def _reason(row: str) -> RemovalReason | None:
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
    rest = (given.get(name, "") for name in ("target", "fact", "by"))
    return RemovalReason(why, given["file"], *rest)
