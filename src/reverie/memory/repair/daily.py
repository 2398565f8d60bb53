"""Daily logs distilled: what they tell goes into topics, by subject, with its day behind it.

A log itself is never rewritten. A line that a topic already says is passed over, and so is what
should not be kept at all: the state of a task, progress, an error that is mended, what the code
says, a secret, orders to whoever reads it. A line joins
the topic that speaks of most of it; lines that no topic speaks of become topics of their own,
those on one subject together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from reverie.errors import ScanFailed
from reverie.light import dataclass
from reverie.memory import secrets
from reverie.memory.format.entry import key_for, new, shown, sort_of, title_of
from reverie.memory.format.index import shorten
from reverie.memory.hygiene.faults import passing, same_words, weights
from reverie.memory.hygiene.reading import ReadMemory, passages
from reverie.memory.repair.edits import Edit
from reverie.memory.trust import reads_like_instruction
from reverie.text.dates import day_of
from reverie.text.terms import terms

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


def lines(logs: Mapping[str, ReadMemory]) -> list[LogLine]:
    """What is worth keeping of the logs, the oldest first."""
    found: list[LogLine] = []
    for log in logs.values():
        day = day_of(log.written)
        for piece in log.passages:
            if piece.kind not in ("item", "sentence"):
                continue
            text = " ".join(_CLOCK.sub("", piece.text, count=1).split())
            if len(terms(text)) >= _LEAST and not _kept_out(text):
                found.append(LogLine(log.key, piece.text, text, str(day or "")))
    return found


def _kept_out(text: str) -> bool:
    try:
        hidden = bool(secrets.scan(text))
    except ScanFailed:
        return True
    orders = {one.rule for one in reads_like_instruction(text)}
    return hidden or _is_passing(text) or bool(orders & _HOSTILE)


def _is_passing(text: str) -> bool:
    """Whether a line tells how work went, of an error that is mended, or what the code says."""
    done = _DONE.match(text) is not None and _WORK.search(text) is not None
    return passing(text) or done or bool(_MENDED.search(text) or _IN_CODE.search(text))


def distilled(
    files: dict[str, bytes],
    topics: Mapping[str, ReadMemory],
    logs: Mapping[str, ReadMemory],
    width: int,
) -> list[Edit]:
    """Put what the logs tell into topics; `files` is changed, the edits say how."""
    texts = (one.text for key in topics for one in passages(shown(files[key])))
    said = {same_words(text) for text in texts}
    fresh = [
        one
        for one in lines(logs)
        if not said & {same_words(one.text), same_words(f"{one.text} ({one.day})")}
    ]
    sets = {key: topics[key].all for key in sorted(topics) if key in files}
    weight = weights(sets.values())
    edits: list[Edit] = []
    rest: list[LogLine] = []
    for one in fresh:
        home = _home(terms(one.text).all, sets, weight)
        if home:
            _append(files, home, one)
            edits.append(Edit(one.file, one.raw, one.text, "merged_into", home))
        else:
            rest.append(one)
    return edits + _begun(files, rest, width)


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


def _told(group: list[LogLine], kind: str) -> Iterator[str]:
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


def _begun(files: dict[str, bytes], rest: list[LogLine], width: int) -> list[Edit]:
    groups: list[tuple[set[str], list[LogLine]]] = []
    for one in rest:
        own = terms(one.text).all
        joined = next((g for g in groups if len(own & g[0]) >= TOGETHER * len(own)), None)
        if joined is None:
            groups.append((set(own), [one]))
        else:
            joined[0].update(own)
            joined[1].append(one)
    edits: list[Edit] = []
    for _, group in groups:
        first = group[0].text
        title, kind = title_of(first), sort_of(first)
        key = key_for(title, kind, frozenset(files))
        body = "\n".join([*(f"- {one.text} ({one.day})" for one in group), *_told(group, kind)])
        newest = shorten(group[-1].text, width)
        made = new(key, name=title, description=newest, type=kind, body=body)
        files[key] = made.data
        edits += [Edit(one.file, one.raw, one.text, "merged_into", key) for one in group]
    return edits
