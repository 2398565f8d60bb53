"""Daily logs distilled: what they tell goes into topics, by subject and with its day.

A log itself is never rewritten. A line that a topic already says is passed over, and so is what
should not be kept at all: the state of a task, a secret, orders to whoever reads it. A line joins
the topic that speaks of most of it; lines that no topic speaks of become topics of their own,
those on one subject together.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from reverie.errors import ScanFailed
from reverie.light import dataclass
from reverie.memory import secrets
from reverie.memory.facts import Fact, FolderFacts
from reverie.memory.format.entry import key_for, new, sort_of, title_of
from reverie.memory.format.index import shorten
from reverie.memory.hygiene.faults import passing, weights
from reverie.memory.hygiene.reading import ReadMemory
from reverie.memory.repair.edits import Edit
from reverie.memory.trust import reads_like_instruction
from reverie.text.dates import day_of, relative
from reverie.text.terms import plain, terms

JOINS = 0.5
"""Weight of a line's words that a topic must have for the line to join it."""
TOGETHER = 0.34
"""The same for lines that begin a topic together."""
_CLOCK = re.compile(
    r"\A\W*(?:\d{4}-\d\d-\d\d[T ]?)?(?:\d{1,2}:\d\d(?::\d\d)?Z?)?[\W_]{0,4}(?=[\w`\"“*])"
)
_LEAST = 2
_HOSTILE = frozenset({"override", "secrecy", "persona", "role", "exfiltration", "hidden"})


@dataclass(frozen=True, slots=True)
class LogLine:
    """One thing that a log tells, with its dates absolute, and the day it was told."""

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
            for when in reversed(relative(text, log.written)):
                text = text[: when.start] + when.meant + text[when.end :]
            if len(terms(text)) >= _LEAST and not _kept_out(text):
                found.append(LogLine(log.key, piece.text, text, str(day or "")))
    return found


def _kept_out(text: str) -> bool:
    try:
        hidden = bool(secrets.scan(text))
    except ScanFailed:
        return True
    orders = {one.rule for one in reads_like_instruction(text)}
    return hidden or passing(text) or bool(orders & _HOSTILE)


def distilled(
    files: dict[str, bytes],
    topics: Mapping[str, ReadMemory],
    logs: Mapping[str, ReadMemory],
    width: int,
) -> list[Edit]:
    """Put what the logs tell into topics; `files` is changed, the edits say how."""
    folder = FolderFacts({key: files[key] for key in topics if key in files})
    fresh = [one for one in lines(logs) if not _said(folder, one.text)]
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


def _said(folder: FolderFacts, text: str) -> bool:
    return folder.says(Fact("", 0, text, plain(text)))


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


def _append(files: dict[str, bytes], key: str, line: LogLine) -> None:
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
        body = "\n".join(f"- {one.text} ({one.day})" for one in group)
        made = new(key, name=title, description=shorten(first, width), type=kind, body=body)
        files[key] = made.data
        edits += [Edit(one.file, one.raw, one.text, "merged_into", key) for one in group]
    return edits
