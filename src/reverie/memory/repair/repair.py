"""A memory folder mended: from what a check finds to edits with reasons.

Only what cannot be wrong is changed: form (heads, headings, doubled lines, links, pointers, long
index lines), and files that are equal become one. Daily logs are distilled. No word of a memory is
changed or removed: contradictions, stale dates, junk, near-duplicates, drifted memories, secrets
and orders are left for the report.

It is repeated until a check finds nothing more to mend, so that mending what was mended changes
nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

from reverie.light import dataclass
from reverie.memory.format import frontmatter
from reverie.memory.format.entry import TopicFile, is_index, shown
from reverie.memory.hygiene.check import CheckInput, Finding, HygieneReport, check
from reverie.memory.hygiene.faults import equals, relinked, same_words
from reverie.memory.hygiene.form import joined_sections
from reverie.memory.hygiene.reading import logs, passages, read
from reverie.memory.repair.daily import distilled
from reverie.memory.repair.edits import Edit, Pointers, Repaired, all_indexes
from reverie.memory.rules.reading import APPLIES, LEVEL, is_firm_file, level_of
from reverie.memory.rules.reading import read as read_rule

ROUNDS = 5
"""How often a folder is looked at again; what is not mended by then stays as it is."""


def repaired(given: CheckInput) -> Repaired:
    """The folder mended as far as that is safe. What asks or blocks stays as it lies."""
    firm = frozenset(key for key, data in given.files.items() if is_firm_file(data))
    free = {key: data for key, data in given.files.items() if key not in firm}
    given = replace(given, files=free, unread=given.unread | firm)
    work = _Work(dict(given.files), given)
    for _ in range(ROUNDS):
        before = dict(work.files)
        work.round()
        if work.files == before:
            break
    changed: dict[str, bytes | None] = {
        key: data for key, data in work.files.items() if given.files.get(key) != data
    }
    changed |= {key: None for key in given.files if key not in work.files}
    return Repaired(changed, tuple(work.settled()))


@dataclass(slots=True)
class _Work:
    """A folder while it is mended."""

    files: dict[str, bytes]
    given: CheckInput
    edits: list[Edit] = field(default_factory=list[Edit])
    moved: dict[str, str] = field(default_factory=dict[str, str])

    def round(self) -> None:
        report = check(replace(self.given, files=self.files, guarded=False))
        self._texts(report)
        self._sections(report)
        self._merge()
        if daily := logs(self.files):
            topics = read(self.files, self.given.times)
            self.edits += distilled(self.files, topics, daily, self.given.limits.width)
        for key in list(all_indexes(self.files)):
            mend = Pointers(key, self.files, self.moved, self.given.limits, self.given.unread)
            self.edits += mend.mend()

    def settled(self) -> list[Edit]:
        """The edits, each naming where its target went in the end."""
        return [replace(one, target=self._went(one.target)) for one in self.edits]

    def _went(self, key: str) -> str:
        while key in self.moved:
            key = self.moved[key]
        return key

    # Words in place

    def _texts(self, report: HygieneReport) -> None:
        by_file: dict[str, list[Finding]] = {}
        for one in report.findings:
            if one.fix is not None and one.fix.start >= 0:
                by_file.setdefault(one.file, []).append(one)
        for key, found in by_file.items():
            self._in_place(key, found)

    def _in_place(self, key: str, found: list[Finding]) -> None:
        data = self.files[key]
        text = shown(data)
        if text.encode() != data:
            return  # no plain UTF-8: its places are not those of its bytes
        last = len(text) + 1
        for one in sorted(found, key=_place, reverse=True):
            fix = one.fix
            if fix is None or fix.end > last:
                continue
            said = _line(text, fix.start, fix.end)
            text = text[: fix.start] + fix.new + text[fix.end :]
            last = fix.start
            self.edits.append(Edit(key, said, fix.new, fix.why, fix.target or key))
        self.files[key] = text.encode()

    def _sections(self, report: HygieneReport) -> None:
        """A section that stands in two parts is put together."""
        for key in dict.fromkeys(one.file for one in report.of("form") if one.rule == "heading"):
            text = shown(self.files[key])
            if text.encode() != self.files[key] or "\r" in text:
                continue
            front = frontmatter.parse(self.files[key])
            body = len(self.files[key][: front.body].decode()) if front.present else 0
            made = joined_sections(text, body)
            if made != text:
                self.files[key] = made.encode()
                self.edits.append(Edit(key, "", made, "merged_into", key))

    # Duplicates

    def _merge(self) -> None:
        """Files that are equal become one: the oldest, with each wording that is not its own."""
        for first, *others in equals(read(self.files, self.given.times).values()):
            for other in others:
                keep, key = first.key, other.key
                if not self._mergeable(keep, key):
                    continue
                text = shown(self.files[keep])
                known = {same_words(one.text, frozenset()) for one in passages(text)}
                rows = [one.text for one in passages(other.text) if one.kind == "sentence"]
                fresh = [row for row in rows if same_words(row, frozenset()) not in known]
                if fresh:
                    end = "\r\n" if "\r\n" in text else "\n"
                    text = f"{text.rstrip()}{end * 2}{(end * 2).join(fresh)}{end}"
                self.files[keep] = text.encode("utf-8", "replace")
                del self.files[key]
                self.moved[key] = keep
                self.edits.append(Edit(key, "", None, "merged_into", keep))
        self._relink()

    def _mergeable(self, keep: str, key: str) -> bool:
        """Only files that are plain text are merged, never one of the team's with ours, one that
        waits to be confirmed with one that does not, and no rule into what is about other calls,
        or does something else about them."""
        plain = all(shown(self.files[one]).encode() == self.files[one] for one in (keep, key))
        kept, goes = (frontmatter.parse(self.files[one]) for one in (keep, key))
        ruled = (APPLIES, LEVEL)
        same = not any(map(goes.find, ruled)) or (
            read_rule(kept) == read_rule(goes) and level_of(kept) == level_of(goes)
        )
        waits = {TopicFile(one, self.files[one]).is_unverified for one in (keep, key)}
        ours = keep.startswith("team/") == key.startswith("team/")
        return plain and same and ours and len(waits) == 1

    def _relink(self) -> None:
        names = {key.rpartition("/")[2] for key in self.moved}
        for key, data in self.files.items():
            if is_index(key) or not any(name.encode() in data for name in names):
                continue
            text = shown(data)
            made = relinked(key, text, self.moved)
            if made != text and text.encode() == data:
                self.files[key] = made.encode()


def _place(one: Finding) -> int:
    return one.fix.start if one.fix is not None else -1


def _line(text: str, start: int, end: int) -> str:
    """The line or lines that a place is in."""
    low = text.rfind("\n", 0, start) + 1
    high = text.find("\n", end)
    return text[low : len(text) if high < 0 else high].strip()


def kept(given: CheckInput, done: Repaired) -> Mapping[str, bytes]:
    """The folder as it is after a repair."""
    files = {key: data for key, data in given.files.items() if key not in done.files}
    return files | {key: data for key, data in done.files.items() if data is not None}
