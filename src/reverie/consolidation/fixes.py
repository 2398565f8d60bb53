"""A memory folder repaired: form, equal files, indexes; daily logs taken up into topics.

Only what cannot be wrong is changed: form (frontmatter, headings, doubled lines, links, pointers,
long index lines), and files that are equal become one. No word of a memory is changed or removed:
contradictions, stale dates, junk, near-duplicates, drifted memories, secrets and orders are left
for the report.

It is repeated until nothing is left to repair, so that a second run changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field, replace

from reverie.consolidation.edits import FixResult, Pointers, TopicEdit, all_indexes
from reverie.consolidation.folder import CheckInput, ParsedTopic, logs, passages, read
from reverie.consolidation.format_checks import (
    FormFault,
    body_start,
    form_faults,
    joined_sections,
)
from reverie.consolidation.junk import is_passing
from reverie.consolidation.text_checks import (
    broken_links,
    equals,
    relink_text,
    same_words,
    weights,
)
from reverie.errors import ScanFailed
from reverie.light import dataclass
from reverie.rules.rule import APPLIES, LEVEL, is_firm_file, level_of
from reverie.rules.rule import read as read_rule
from reverie.secrets.scanner import scan
from reverie.text.dates import day_of
from reverie.text.tokens import split_terms
from reverie.topics import frontmatter
from reverie.topics.entry import TopicFile, decode_text, is_index, key_for, new, sort_of, title_of
from reverie.topics.index import shorten
from reverie.topics.trust import reads_like_instruction

ROUNDS = 5
"""How often a folder is looked at again; what is not repaired by then stays as it is."""


def fix_folder(given: CheckInput) -> FixResult:
    """Repair a folder as far as that is safe. What asks or blocks stays as it is."""
    firm = frozenset(key for key, data in given.files.items() if is_firm_file(data))
    free = {key: data for key, data in given.files.items() if key not in firm}
    given = replace(given, files=free, unread=given.unread | firm)
    work = _Repair(dict(given.files), given)
    for _ in range(ROUNDS):
        before = dict(work.files)
        work.round()
        if work.files == before:
            break
    changed: dict[str, bytes | None] = {
        key: data for key, data in work.files.items() if given.files.get(key) != data
    }
    changed |= {key: None for key in given.files if key not in work.files}
    return FixResult(changed, tuple(work.settled()))


def files_after(given: CheckInput, done: FixResult) -> Mapping[str, bytes]:
    """Return the folder as it is after a repair."""
    files = {key: data for key, data in given.files.items() if key not in done.files}
    return files | {key: data for key, data in done.files.items() if data is not None}


@dataclass(slots=True)
class _Repair:
    """A folder while it is repaired."""

    files: dict[str, bytes]
    given: CheckInput
    edits: list[TopicEdit] = field(default_factory=list[TopicEdit])
    moved: dict[str, str] = field(default_factory=dict[str, str])

    def round(self) -> None:
        memories = read(self.files, self.given.times)
        there = memories.keys() | self.given.unread
        for key, memory in memories.items():
            if memory.text.encode() == self.files[key]:  # else its places are not its bytes'
                links = broken_links(memories, memory, there)
                led = [FormFault("link", 0, "", x.start, x.end, x.meant) for x in links if x.meant]
                self._form(memory, [*form_faults(memory), *led])
        self._merge()
        if daily := logs(self.files):
            topics = read(self.files, self.given.times)
            self.edits += distill_logs(self.files, topics, daily, self.given.limits.width)
        for key in list(all_indexes(self.files)):
            index = Pointers(key, self.files, self.moved, self.given.limits, self.given.unread)
            self.edits += index.repair()

    def settled(self) -> list[TopicEdit]:
        """The edits, each naming where its target went in the end."""
        return [replace(one, target=self._went(one.target)) for one in self.edits]

    def _went(self, key: str) -> str:
        while key in self.moved:
            key = self.moved[key]
        return key

    def _form(self, memory: ParsedTopic, found: list[FormFault]) -> None:
        """Repair the form of one file: what has a place in it, then headings that stand twice."""
        key, text = memory.key, memory.text
        last = len(text) + 1
        placed = (one for one in found if one.start >= 0)
        for one in sorted(placed, key=lambda one: one.start, reverse=True):
            if one.end <= last:
                said = _lines(text, one.start, one.end)
                text = text[: one.start] + one.new + text[one.end :]
                last = one.start
                why = "pointer" if one.rule == "link" else "duplicate_of"
                self.edits.append(TopicEdit(key, said, one.new, why, key))
        if any(one.rule == "heading" for one in found) and "\r" not in text:
            made = joined_sections(
                text, body_start(text, frontmatter.parse_frontmatter(text.encode()))
            )
            if made != text:
                self.edits.append(TopicEdit(key, "", made, "merged_into", key))
            text = made
        self.files[key] = text.encode()

    # Equal files

    def _merge(self) -> None:
        """Files that are equal become one: the oldest, with each wording that is not its own."""
        for first, *others in equals(read(self.files, self.given.times).values()):
            for other in others:
                keep, key = first.key, other.key
                if not self._mergeable(keep, key):
                    continue
                text = decode_text(self.files[keep])
                known = {same_words(one.text, frozenset()) for one in passages(text)}
                rows = [one.text for one in passages(other.text) if one.kind == "sentence"]
                fresh = [row for row in rows if same_words(row, frozenset()) not in known]
                if fresh:
                    end = "\r\n" if "\r\n" in text else "\n"
                    text = f"{text.rstrip()}{end * 2}{(end * 2).join(fresh)}{end}"
                self.files[keep] = text.encode("utf-8", "replace")
                del self.files[key]
                self.moved[key] = keep
                self.edits.append(TopicEdit(key, "", None, "merged_into", keep))
        names = {key.rpartition("/")[2].encode() for key in self.moved}
        for key, data in self.files.items():
            text = decode_text(data)
            if not is_index(key) and any(name in data for name in names) and text.encode() == data:
                self.files[key] = relink_text(key, text, self.moved).encode()

    def _mergeable(self, keep: str, key: str) -> bool:
        """Only files that are plain text are merged, never one of the team's with ours, one that
        waits to be confirmed with one that does not, and no rule into what is about other calls,
        or does something else about them."""
        plain = all(decode_text(self.files[one]).encode() == self.files[one] for one in (keep, key))
        kept, goes = (frontmatter.parse_frontmatter(self.files[one]) for one in (keep, key))
        same = not any(map(goes.find, (APPLIES, LEVEL))) or (
            read_rule(kept) == read_rule(goes) and level_of(kept) == level_of(goes)
        )
        waits = {TopicFile(one, self.files[one]).is_unverified for one in (keep, key)}
        ours = keep.startswith("team/") == key.startswith("team/")
        return plain and same and ours and len(waits) == 1


def _lines(text: str, start: int, end: int) -> str:
    """The line or lines that a place is in."""
    low = text.rfind("\n", 0, start) + 1
    high = text.find("\n", end)
    return text[low : len(text) if high < 0 else high].strip()


# --- Daily logs taken up: each line goes into a topic as it was written, with its day behind it.
#
# A log itself is never rewritten. Left out are lines that a topic already says, the state of a
# task, secrets, and orders to whoever reads it. A line joins the topic that speaks of most of it;
# one that no topic speaks of becomes a topic.


JOINS = 0.5
"""Share of the weight of a line's words that a topic must have for the line to join it: most of it.
No figure: a line that joins none becomes a topic, and no word is lost either way."""
_CLOCK = re.compile(
    r"\A\W*(?:\d{4}-\d\d-\d\d[T ]?)?(?:\d{1,2}:\d\d(?::\d\d)?Z?)?[\W_]{0,4}(?=[\w`\"“*])"
)
_LEAST = 2
_HOSTILE = frozenset({"override", "secrecy", "persona", "role", "exfiltration", "hidden"})


def distill_logs(
    files: dict[str, bytes],
    topics: Mapping[str, ParsedTopic],
    logs: Mapping[str, ParsedTopic],
    width: int,
) -> list[TopicEdit]:
    """Put the lines of logs into topics; `files` is changed, the edits say how."""
    said = {same_words(one.text) for topic in topics.values() for one in topic.passages}
    sets = {key: topic.all for key, topic in topics.items()}
    weight = weights(sets.values())
    edits: list[TopicEdit] = []
    for log, raw, text, day in _log_lines(logs):
        row = f"{text} ({day})"
        if said & {same_words(text), same_words(row)}:
            continue
        said.add(same_words(row))
        terms = split_terms(text).all
        home = _home(terms, sets, weight)
        if home:
            known = files[home].decode("utf-8", "surrogateescape").rstrip()
            gap = "\n" if known.rpartition("\n")[2].startswith("- ") else "\n\n"
            files[home] = f"{known}{gap}- {row}\n".encode("utf-8", "surrogateescape")
        else:
            title, kind = title_of(text), sort_of(text)
            home = key_for(title, kind, frozenset(files))
            about = shorten(text, width)
            files[home] = new(home, name=title, description=about, type=kind, body=f"- {row}").data
            sets[home] = terms
        edits.append(TopicEdit(log, raw, text, "merged_into", home))
    return edits


def _log_lines(logs: Mapping[str, ParsedTopic]) -> Iterator[tuple[str, str, str, str]]:
    """Each line of the logs that may be kept, the oldest first: file, line, words and day."""
    for log in logs.values():
        for piece in log.passages:
            text = " ".join(_CLOCK.sub("", piece.text, count=1).split())
            said = piece.kind in ("item", "sentence") and len(split_terms(text)) >= _LEAST
            if said and not is_passing(text) and not _is_barred(text):
                yield log.key, piece.text, text, str(day_of(log.written) or "")


def _is_barred(text: str) -> bool:
    try:
        hidden = bool(scan(text))
    except ScanFailed:
        return True
    return hidden or bool({one.rule for one in reads_like_instruction(text)} & _HOSTILE)


def _home(
    wanted: frozenset[str], sets: Mapping[str, frozenset[str]], weight: Mapping[str, float]
) -> str:
    """The topic that has most of the words, where it has enough of them."""
    alone = max(weight.values(), default=1.0)  # of a word that no topic has
    whole = sum(weight.get(term, alone) for term in wanted) or 1.0
    best, most = "", JOINS
    for key, own in sets.items():
        shared = wanted & own
        share = sum(weight.get(term, alone) for term in shared) / whole
        if share > most and len(shared) >= _LEAST:
            best, most = key, share
    return best
