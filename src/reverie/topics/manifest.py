"""What a model is sent of a memory folder: its index within limits, and the list of its files.

Within its limits an index is sent as it is. Over them the entries are ranked by age and type,
and as many are kept as fit, in the order of the file, with a line that says how many are
not shown. The newest entry is always among them. Where there is nothing to rank by, the cut is
plain: by lines, then at the last line end before the byte limit, never inside a character.
Either way a warning names the limit that was hit. The same input gives the same bytes: no
clock is read, and age counts from the newest entry.

A line of the list is `- [type] file.md (ISO time): description`, newest first, made from the
beginning of a file alone: frontmatter counts where it closes within the first lines. A
description cannot begin a second line, hide characters or grow without bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from reverie.light import dataclass
from reverie.settings.catalog import DEFAULTS, Settings
from reverie.text.format import plural
from reverie.text.safety import strip
from reverie.topics import frontmatter
from reverie.topics.entry import decode_text, stem, superseded_by, type_of
from reverie.topics.frontmatter import BOM
from reverie.topics.index import WIDTH, Index, current, parse_index, shorten

_DAY = 86_400
_FRESH_DAYS = 60
_PINNED = 1_000  # what had to be said again stays, whatever its age
_TYPE_POINTS = {"feedback": 30, "user": 30, "reference": 15, "project": 10}
_ADVICE = "Keep each line short and move detail into topic files."


@dataclass(frozen=True, slots=True)
class IndexLimits:
    """What of an index may be sent."""

    lines: int = 200
    bytes: int = 25_000
    width: int = WIDTH

    @classmethod
    def of(cls, settings: Settings = DEFAULTS) -> IndexLimits:
        return cls(settings.index_lines, settings.index_bytes, settings.index_line_characters)


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """What is known of a topic file that decides its rank."""

    modified: float
    type: str = ""
    said: int = 0  # times that it was said again


@dataclass(frozen=True, slots=True)
class SentIndex:
    """An index as it is sent; `hidden` counts the entries that are not in `text`."""

    text: str
    warning: str = ""
    shown: int = 0
    hidden: int = 0
    ranked: bool = False


@dataclass(frozen=True, slots=True)
class _IndexRow:
    """A line that may be kept: its place in the file, its text, and the heading it is under."""

    number: int
    text: str
    under: int
    key: str = ""
    pointer: bool = False


def count_lines(data: bytes) -> int:
    return len(data.splitlines())


def limits_hit(data: bytes, limits: IndexLimits) -> tuple[str, ...]:
    """Which limits an index is over, in words."""
    return over(count_lines(data), len(data), limits)


def over(lines: int, size: int, limits: IndexLimits) -> tuple[str, ...]:
    """Which limits an index of so many lines and bytes is over."""
    hit: list[str] = []
    if lines > limits.lines:
        hit.append(f"{lines:,} lines (limit {limits.lines:,})")
    if size > limits.bytes:
        hit.append(f"{size:,} bytes (limit {limits.bytes:,})")
    return tuple(hit)


def write_warning(hit: tuple[str, ...], name: str = "MEMORY.md") -> str:
    """What to tell whoever has just written an index that is over these limits, or ""."""
    if not hit:
        return ""
    return f"{name} is too large to be loaded whole: it has {' and '.join(hit)}. {_ADVICE}"


def render_index(
    data: bytes, limits: IndexLimits, facts: Mapping[str, TopicFacts] | None = None
) -> SentIndex:
    """What of an index is sent; without facts there is no ranking. Superseded memories are no
    part of it."""
    data = current(data)
    index = parse_index(data)
    hit = limits_hit(data, limits)
    if not hit:
        return SentIndex(decode_text(data), "", len(index.pointers))
    warning = f"WARNING: only a part of this index is loaded: it has {' and '.join(hit)}. {_ADVICE}"
    ranked = None if facts is None else _rank_entries(index, limits, facts)
    if ranked is not None:
        text, kept = ranked
        hidden = len(index.pointers) - kept
        return SentIndex(text, warning, kept, hidden, ranked=True)
    head = plain_cut(data, limits)
    kept = sum(one.end <= len(head) + 2 for one in index.pointers)
    return SentIndex(decode_text(head), warning, kept, len(index.pointers) - kept)


def plain_cut(data: bytes, limits: IndexLimits) -> bytes:
    """The first lines, then the last line end before the byte limit; whole characters only."""
    rows = data.splitlines(keepends=True)
    head = b"".join(rows[: limits.lines])
    if len(rows) > limits.lines:
        head = head.rstrip(b"\r\n")
    if len(head) <= limits.bytes:
        return head
    end = max(head.rfind(b"\n", 0, limits.bytes), head.rfind(b"\r", 0, limits.bytes))
    whole = head[: max(end, 0)].rstrip(b"\r")
    if whole:
        return whole
    return head[: limits.bytes].decode("utf-8", "ignore").encode()


# Ranking


def _rank_entries(
    index: Index, limits: IndexLimits, facts: Mapping[str, TopicFacts]
) -> tuple[str, int] | None:
    """The best part that fits and how many entries it has; None where ranking is no help."""
    rows, headings = _rows(index, limits.width)
    pointers = [row for row in rows if row.pointer]
    if not pointers:
        return None
    note = _note(len(pointers), len(pointers), len(rows))
    room = _Room(limits.lines - 1, limits.bytes - len(note.encode()) - 1, headings)
    kept = [row for row in _by_rank(pointers, facts) if room.take(row)]
    if not kept or kept[0].number != _newest(pointers, facts).number:
        return None
    hidden = len(pointers) - len(kept)
    others = [row for row in rows if not row.pointer]
    more = [row for row in others if not hidden and room.take(row)]
    left_out = len(others) - len(more)
    lines = {row.number: row.text for row in (*kept, *more)}
    lines |= {number: headings[number] for number in room.headings}
    text = [lines[number] for number in sorted(lines)]
    if hidden or left_out:
        text.append(_note(hidden, len(pointers), left_out))
    return "\n".join(text) + "\n", len(kept)


def _note(hidden: int, total: int, others: int) -> str:
    said: list[str] = []
    if hidden:
        said.append(f"{hidden:,} of {total:,} entries not shown")
    if others:
        said.append(f"{plural(others, 'line')} without a pointer not shown")
    return f"- ({'; '.join(said)}: search the files of this folder for the rest)"


def _rows(index: Index, width: int) -> tuple[list[_IndexRow], dict[int, str]]:
    """The lines that may be kept, shortened to the width, and the headings by line."""
    pointers = {one.number: one for one in index.pointers}
    rows: list[_IndexRow] = []
    headings: dict[int, str] = {}
    under = 0
    for number, raw in enumerate(index.data.removeprefix(BOM).splitlines(), 1):
        text = shorten(raw[: 4 * width + 4].decode("utf-8", "replace").rstrip(), width)
        found = pointers.get(number)
        if found is not None:
            rows.append(_IndexRow(number, text, under, found.key, pointer=True))
        elif text.startswith("#"):
            headings[number] = text
            under = number
        elif text.strip():
            rows.append(_IndexRow(number, text, under))
    return rows, headings


class _Room:
    """What is left of the limits; a row also needs room for its heading."""

    def __init__(self, lines: int, size: int, headings: Mapping[int, str]) -> None:
        self._lines = lines
        self._size = size
        self._texts = headings
        self.headings: set[int] = set()

    def take(self, row: _IndexRow) -> bool:
        texts = [row.text]
        if row.under and row.under not in self.headings:
            texts.append(self._texts[row.under])
        size = sum(len(text.encode()) + 1 for text in texts)
        if len(texts) > self._lines or size > self._size:
            return False
        self._lines -= len(texts)
        self._size -= size
        if row.under:
            self.headings.add(row.under)
        return True


def _by_rank(rows: Sequence[_IndexRow], facts: Mapping[str, TopicFacts]) -> list[_IndexRow]:
    """The newest, then the rest by points; among equals the later line goes first."""
    newest = _newest(rows, facts)
    start = _modified_time(newest, facts)

    def rank(row: _IndexRow) -> tuple[bool, int, float, int]:
        points = _points(facts.get(row.key), start)
        return row.number == newest.number, points, _modified_time(row, facts), row.number

    return sorted(rows, key=rank, reverse=True)


def _newest(rows: Sequence[_IndexRow], facts: Mapping[str, TopicFacts]) -> _IndexRow:
    return max(rows, key=lambda row: (_modified_time(row, facts), row.number))


def _modified_time(row: _IndexRow, facts: Mapping[str, TopicFacts]) -> float:
    known = facts.get(row.key)
    return float("-inf") if known is None else known.modified


def _points(known: TopicFacts | None, newest: float) -> int:
    if known is None:
        return -1
    days = int(max(newest - known.modified, 0.0) // _DAY)
    fresh = max(_FRESH_DAYS - days, 0)
    return fresh + _TYPE_POINTS.get(known.type, 0) + (_PINNED if known.said else 0)


HEADER_LINES = 30
SAID = "said"
"""The key under which a head keeps the days on which it was said again."""
MAX_FILES = 200
MAX_DESCRIPTION = 500


@dataclass(frozen=True, slots=True)
class ManifestLine:
    """One memory file as a scan sees it; `modified` is in seconds."""

    key: str
    modified: float
    type: str = ""
    name: str = ""
    description: str = ""
    size: int = 0
    fault: str = ""
    said: int = 0  # times that it was said again
    superseded: str = ""  # the file of the newer rule that holds in its place

    @property
    def facts(self) -> TopicFacts:
        return TopicFacts(self.modified, self.type, self.said)

    @property
    def line(self) -> str:
        kind = f"[{self.type}] " if self.type else ""
        about = shorten(" ".join(strip(self.description).split()), MAX_DESCRIPTION)
        start = f"- {kind}{self.key} ({iso_time(self.modified)})"
        return f"{start}: {about}" if about else start


def record(
    key: str, head: bytes, *, modified: float, size: int = 0, lines: int = HEADER_LINES
) -> ManifestLine:
    """What the beginning of a file says of it."""
    front = frontmatter.parse_frontmatter(head, lines=lines)
    return ManifestLine(
        key,
        modified,
        type_of(front),
        front.get("name") or stem(key),
        front.get("description"),
        size or len(head),
        front.fault,
        front.get(SAID).count(",") + 1 if front.get(SAID) else 0,
        superseded_by(front),
    )


def newest_first(records: Iterable[ManifestLine]) -> tuple[ManifestLine, ...]:
    return tuple(sorted(records, key=lambda one: (-one.modified, one.key)))


def iso_time(seconds: float) -> str:
    """A moment in UTC, to the second."""
    try:
        moment = datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError, ValueError):
        return "unknown time"
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
