"""Findings turned into edits; daily logs distilled.

A memory folder mended: from what a check finds to edits with reasons.

Only what cannot be wrong is changed: form (heads, headings, doubled lines, links, pointers, long
index lines), and files that are equal become one. Daily logs are distilled. No word of a memory is
changed or removed: contradictions, stale dates, junk, near-duplicates, drifted memories, secrets
and orders are left for the report.

It is repeated until a check finds nothing more to mend, so that mending what was mended changes
nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field, replace

from reverie.consolidation.edits import FixResult, Pointers, TopicEdit, all_indexes
from reverie.consolidation.folder import ParsedTopic, logs, passages, read
from reverie.consolidation.format_checks import joined_sections
from reverie.consolidation.lint import CheckInput, LintFinding, LintReport, check
from reverie.consolidation.text_checks import equals, passing, relink_text, same_words, weights
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
"""How often a folder is looked at again; what is not mended by then stays as it is."""


def fix_folder(given: CheckInput) -> FixResult:
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
    return FixResult(changed, tuple(work.settled()))


@dataclass(slots=True)
class _Work:
    """A folder while it is mended."""

    files: dict[str, bytes]
    given: CheckInput
    edits: list[TopicEdit] = field(default_factory=list[TopicEdit])
    moved: dict[str, str] = field(default_factory=dict[str, str])

    def round(self) -> None:
        report = check(replace(self.given, files=self.files, guarded=False))
        self._texts(report)
        self._sections(report)
        self._merge()
        if daily := logs(self.files):
            topics = read(self.files, self.given.times)
            self.edits += distill_logs(self.files, topics, daily, self.given.limits.width)
        for key in list(all_indexes(self.files)):
            mend = Pointers(key, self.files, self.moved, self.given.limits, self.given.unread)
            self.edits += mend.mend()

    def settled(self) -> list[TopicEdit]:
        """The edits, each naming where its target went in the end."""
        return [replace(one, target=self._went(one.target)) for one in self.edits]

    def _went(self, key: str) -> str:
        while key in self.moved:
            key = self.moved[key]
        return key

    # Words in place

    def _texts(self, report: LintReport) -> None:
        by_file: dict[str, list[LintFinding]] = {}
        for one in report.findings:
            if one.fix is not None and one.fix.start >= 0:
                by_file.setdefault(one.file, []).append(one)
        for key, found in by_file.items():
            self._in_place(key, found)

    def _in_place(self, key: str, found: list[LintFinding]) -> None:
        data = self.files[key]
        text = decode_text(data)
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
            self.edits.append(TopicEdit(key, said, fix.new, fix.why, fix.target or key))
        self.files[key] = text.encode()

    def _sections(self, report: LintReport) -> None:
        """A section that stands in two parts is put together."""
        for key in dict.fromkeys(one.file for one in report.of("form") if one.rule == "heading"):
            text = decode_text(self.files[key])
            if text.encode() != self.files[key] or "\r" in text:
                continue
            front = frontmatter.parse_frontmatter(self.files[key])
            body = len(self.files[key][: front.body].decode()) if front.present else 0
            made = joined_sections(text, body)
            if made != text:
                self.files[key] = made.encode()
                self.edits.append(TopicEdit(key, "", made, "merged_into", key))

    # Duplicates

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
        self._relink()

    def _mergeable(self, keep: str, key: str) -> bool:
        """Only files that are plain text are merged, never one of the team's with ours, one that
        waits to be confirmed with one that does not, and no rule into what is about other calls,
        or does something else about them."""
        plain = all(decode_text(self.files[one]).encode() == self.files[one] for one in (keep, key))
        kept, goes = (frontmatter.parse_frontmatter(self.files[one]) for one in (keep, key))
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
            text = decode_text(data)
            made = relink_text(key, text, self.moved)
            if made != text and text.encode() == data:
                self.files[key] = made.encode()


def _place(one: LintFinding) -> int:
    return one.fix.start if one.fix is not None else -1


def _line(text: str, start: int, end: int) -> str:
    """The line or lines that a place is in."""
    low = text.rfind("\n", 0, start) + 1
    high = text.find("\n", end)
    return text[low : len(text) if high < 0 else high].strip()


def files_after(given: CheckInput, done: FixResult) -> Mapping[str, bytes]:
    """The folder as it is after a repair."""
    files = {key: data for key, data in given.files.items() if key not in done.files}
    return files | {key: data for key, data in done.files.items() if data is not None}


# --- Daily logs distilled: what they tell goes into topics, by subject, with its day behind it.
#
# A log itself is never rewritten. A line that a topic already says is passed over, and so is what
# should not be kept at all: the state of a task, progress, an error that is mended, what the code
# says, a secret, orders to whoever reads it. A line joins the topic that speaks of most of it;
# lines that no topic speaks of become topics of their own, those on one subject together.


JOINS = 0.5
"""Weight of a line's words that a topic must have for the line to join it."""
TOGETHER = 0.34
"""The same for lines that begin a topic together."""
_CLOCK = re.compile(
    r"\A\W*(?:\d{4}-\d\d-\d\d[T ]?)?(?:\d{1,2}:\d\d(?::\d\d)?Z?)?[\W_]{0,4}(?=[\w`\"“*])"
)
_DONE = re.compile(
    r"(?:i |we )?(?:just |now |also |then )?(?:fixed|implemented|added|refactored|merged|pushed|"
    r"committed|renamed|updated|removed|deleted|ran|re-?ran|wrote|finished|completed|started|began|"
    r"bumped|tested|debugged|moved|cleaned|extracted|reviewed|opened|closed)\b",
    re.IGNORECASE,
)
_WORK = re.compile(
    r"\b(?:tests?|imports?|build|lint\w*|types?|pars\w+|functions?|modules?|files?|bugs?|errors?|"
    r"failures?|commits?|prs?|pull requests?|branch|class|methods?|endpoints?|fixtures?|ci|suite|"
    r"refactor\w*|code|handlers?|components?|migrations?|docs?)\b|`",
    re.IGNORECASE,
)
_MENDED = re.compile(
    r"\b(?:tests?|build|ci|suite)\b[^.;]{0,30}\b(?:pass(?:es|ed)?|green|works?)\b"
    r"|\b(?:error|bug|failure|exception|crash|problem|issue)\b[^.;]{0,40}"
    r"\b(?:is |was |are |were )?(?:fixed|gone|solved|resolved|mended)\b",
    re.IGNORECASE,
)
_IN_CODE = re.compile(
    r"`[\w./-]+(?:\(\))?`\s+(?:is (?:defined|implemented|declared) in|lives in|calls|returns|"
    r"imports|defines|has the (?:function|class|method))\b",
    re.IGNORECASE,
)
_WHY = re.compile(
    r"[,;]?\s{1,3}(?:because|since|as otherwise|weil|denn)\s{1,3}(?P<why>[^.;]{8,200})",
    re.IGNORECASE,
)
_HOW = re.compile(
    r"(?:\bhow(?: to apply)?:|\binstead,?|\bso)\s{1,3}(?P<how>[^.;]{8,200})", re.IGNORECASE
)
_LEAST = 2
_HOSTILE = frozenset({"override", "secrecy", "persona", "role", "exfiltration", "hidden"})


@dataclass(frozen=True, slots=True)
class LogLine:
    """One thing that a log tells, and the day it was told."""

    file: str
    raw: str
    text: str
    day: str


def lines(logs: Mapping[str, ParsedTopic]) -> list[LogLine]:
    """What is worth keeping of the logs, the oldest first."""
    found: list[LogLine] = []
    for log in logs.values():
        day = day_of(log.written)
        for piece in log.passages:
            if piece.kind not in ("item", "sentence"):
                continue
            text = " ".join(_CLOCK.sub("", piece.text, count=1).split())
            if len(split_terms(text)) >= _LEAST and not _kept_out(text):
                found.append(LogLine(log.key, piece.text, text, str(day or "")))
    return found


def _kept_out(text: str) -> bool:
    try:
        hidden = bool(scan(text))
    except ScanFailed:
        return True
    orders = {one.rule for one in reads_like_instruction(text)}
    return hidden or _is_passing(text) or bool(orders & _HOSTILE)


def _is_passing(text: str) -> bool:
    """Whether a line tells how work went, of an error that is mended, or what the code says."""
    done = _DONE.match(text) is not None and _WORK.search(text) is not None
    return passing(text) or done or bool(_MENDED.search(text) or _IN_CODE.search(text))


def distill_logs(
    files: dict[str, bytes],
    topics: Mapping[str, ParsedTopic],
    logs: Mapping[str, ParsedTopic],
    width: int,
) -> list[TopicEdit]:
    """Put what the logs tell into topics; `files` is changed, the edits say how."""
    texts = (one.text for key in topics for one in passages(decode_text(files[key])))
    said = {same_words(text) for text in texts}
    fresh = [
        one
        for one in lines(logs)
        if not said & {same_words(one.text), same_words(f"{one.text} ({one.day})")}
    ]
    sets = {key: topics[key].all for key in sorted(topics) if key in files}
    weight = weights(sets.values())
    edits: list[TopicEdit] = []
    rest: list[LogLine] = []
    for one in fresh:
        home = _home(split_terms(one.text).all, sets, weight)
        if home:
            _append(files, home, one)
            edits.append(TopicEdit(one.file, one.raw, one.text, "merged_into", home))
        else:
            rest.append(one)
    return edits + _start_topics(files, rest, width)


def _home(
    wanted: frozenset[str], sets: Mapping[str, frozenset[str]], weight: Mapping[str, float]
) -> str:
    """The topic that has most of the words, where it has enough of them."""
    alone = max(weight.values(), default=1.0)  # of a word that no topic has
    whole = sum(weight.get(term, alone) for term in wanted) or 1.0
    best, most = "", JOINS
    for key, own in sets.items():
        shared = wanted & own
        share = sum(weight[term] for term in shared) / whole
        if share > most and len(shared) >= _LEAST:
            best, most = key, share
    return best


def _reason_lines(group: list[LogLine], kind: str) -> Iterator[str]:
    """Why, and how to apply it, where a line of a rule or a plan gives them."""
    if kind not in ("feedback", "project"):
        return
    for label, pattern in (("Why", _WHY), ("How to apply", _HOW)):
        for one in group:
            if found := pattern.search(one.text):
                yield f"\n**{label}:** {found[1].strip()}"
                break


def _append(files: dict[str, bytes], key: str, line: LogLine) -> None:
    """Put the line behind what the topic says."""
    text = files[key].decode("utf-8", "surrogateescape")
    gap = "\n" if text.rstrip().rpartition("\n")[2].startswith("- ") else "\n\n"
    made = f"{text.rstrip()}{gap}- {line.text} ({line.day})\n"
    files[key] = made.encode("utf-8", "surrogateescape")


def _start_topics(files: dict[str, bytes], rest: list[LogLine], width: int) -> list[TopicEdit]:
    groups: list[tuple[set[str], list[LogLine]]] = []
    for one in rest:
        own = split_terms(one.text).all
        joined = next((g for g in groups if len(own & g[0]) >= TOGETHER * len(own)), None)
        if joined is None:
            groups.append((set(own), [one]))
        else:
            joined[0].update(own)
            joined[1].append(one)
    edits: list[TopicEdit] = []
    for _, group in groups:
        first = group[0].text
        title, kind = title_of(first), sort_of(first)
        key = key_for(title, kind, frozenset(files))
        body = "\n".join(
            [*(f"- {one.text} ({one.day})" for one in group), *_reason_lines(group, kind)]
        )
        newest = shorten(group[-1].text, width)
        made = new(key, name=title, description=newest, type=kind, body=body)
        files[key] = made.data
        edits += [TopicEdit(one.file, one.raw, one.text, "merged_into", key) for one in group]
    return edits
