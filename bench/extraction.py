"""The embedded extraction against labelled turns: what it saves, and whether it should.

Each session is walked turn by turn, the memory folder growing as it would. As in the product, a
turn is looked at once it was answered: with everything the agent said up to the next typed turn.
Its answer is read as the product reads it. A turn counts as saved if its run wrote a topic file:
saves and labels are matched by turn, their types are compared apart. Junk is a save on a turn that
the labels call the task, the code, a recipe, an instruction file's, a secret or a duplicate.
Corrections are not looked for: how many of them are saved all the same is told without a limit.
Intervals are Wilson's, 95 %.

The rules were made with the half `tune` and the unlabelled turns of LoCoMo in sight and without
the texts of `test`, but for seven turns of one session that were seen before the rules stood; so
a share over both halves owes most to `tune`, and only `test` tells what turns unseen would get.
The synthetic sets were written by whoever wrote the rules, and the rules have seen all of them:
they show what is covered, not how well.

    python -m bench run asks
"""

from __future__ import annotations

import json
import math
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bench.figures import HERE, ROOT_SHARED, Figure, Row, at_least, at_most
from bench.labels import HALVES, Labelled, Turn, locomo, recorded, sessions, spoken, typed
from reverie.embedded import answer_extraction
from reverie.secrets import scan
from reverie.session import written_files
from reverie.topics import INDEX, TopicFile
from reverie.transcript import (
    EMPTY,
    AssistantMessage,
    Entry,
    ExtractTask,
    HeadSet,
    KnownMemory,
    Record,
    UserMessage,
    View,
    apply,
    text_block,
)
from reverie.wire import render

SYNTHETIC = HERE / "labels" / "synthetic.jsonl"
CORRECTIONS = HERE / "labels" / "synthetic_corrections.jsonl"
FOLDER = "/memory"
JUNK = ("task", "code", "recipe", "instruction_file", "secret", "duplicate")
RULES = ("correction", "standing_instruction")
PRECISION = 0.9
MAX_JUNK = 0.05


@dataclass
class Files:
    """A memory folder as texts."""

    texts: dict[str, str] = field(default_factory=dict)

    def known(self) -> tuple[KnownMemory, ...]:
        found = [TopicFile(k, t.encode()) for k, t in self.texts.items() if k != INDEX]
        return tuple(KnownMemory(one.key, one.type, one.name, one.description) for one in found)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the answer did with a turn: the types it saved, and texts it wrote."""

    types: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()


def put(view: View, record: Record, at: float = 0.0, ident: str = "") -> View:
    name = ident or f"b{len(view.entries)}"
    return apply(view, Entry(name, view.leaf, at, record))


def extracted(view: View, files: Files, task: ExtractTask) -> Outcome:
    """What one extraction over a conversation saves."""
    given = replace(task, folder=FOLDER, memories=files.known())
    view = put(view, UserMessage((text_block("Write what is worth keeping."),), "instruction"))
    (block,) = answer_extraction(replace(render(view), task=given))
    kept = [TopicFile(*one) for one in written_files(block.get("text"))]
    files.texts |= {one.key: one.text for one in kept}
    return Outcome(tuple(one.type for one in kept), tuple(one.text for one in kept))


def walk_sessions(shared: Path) -> dict[str, Outcome]:
    """Every typed turn of the recorded sessions, by id."""
    known = typed(shared)
    out: dict[str, Outcome] = {}
    for name, one in recorded(shared):
        said = [
            (f"{name}:{entry.id}", entry)
            for entry in one.entries
            if isinstance(entry.record, (UserMessage, AssistantMessage))
        ]
        out |= walk((ident, entry, ident in known) for ident, entry in said)
    return out


def walk_locomo(shared: Path, labels: Sequence[Labelled]) -> dict[str, Outcome]:
    """The labelled turns of LoCoMo, each session from its beginning, the speaker as the user."""
    turns: dict[str, list[tuple[str, Any]]] = defaultdict(list)
    for ident, turn in spoken(shared).items():
        turns[turn.session].append((ident, turn))
    out: dict[str, Outcome] = {}
    for session, speaker in dict.fromkeys((one.session, one.speaker) for one in labels):
        out |= walk(
            (ident, Entry(ident, "", turn.time, record), turn.speaker == speaker)
            for ident, turn in turns[session]
            for record in [_spoken(turn, turn.speaker == speaker)]
        )
    wanted = {one.id for one in labels}
    return {ident: found for ident, found in out.items() if ident in wanted}


def _spoken(turn: Turn, mine: bool) -> Record:
    blocks = (text_block(turn.text),)
    return UserMessage(blocks) if mine else AssistantMessage(blocks)


def walk(said: Iterable[tuple[str, Entry, bool]]) -> dict[str, Outcome]:
    """A conversation from its beginning: its messages, and which of them are looked at, each once
    the next comes or the conversation ends."""
    view, files, since = put(EMPTY, HeadSet("embedded")), Files(), ""
    out: dict[str, Outcome] = {}
    turn: tuple[str, Entry] | None = None
    for ident, entry, counts in (*said, ("", None, True)):
        if counts and turn is not None:
            task = ExtractTask(since=since, times=((turn[1].id, turn[1].at),))
            out[turn[0]] = extracted(view, files, task)
            since = view.leaf or ""
        if entry is not None:
            view = put(view, entry.record, entry.at, entry.id)
            turn = (ident, entry) if counts else turn
    return out


# Figures


def wilson(hits: int, of: int) -> tuple[float, float]:
    """The interval that holds a share with 95 %."""
    if not of:
        return 0.0, 1.0
    z, p = 1.96, hits / of
    middle = p + z * z / (2 * of)
    around = z * math.sqrt(p * (1 - p) / of + z * z / (4 * of * of))
    return (middle - around) / (1 + z * z / of), (middle + around) / (1 + z * z / of)


def share(hits: int, of: int) -> str:
    low, high = wilson(hits, of)
    return f"{hits}/{of} = {hits / of:.2f} [{low:.2f}, {high:.2f}]" if of else "0/0"


@dataclass(frozen=True, slots=True)
class Figures:
    """Counts over some labelled turns."""

    saved: int
    right: int
    typed: int
    wanted: int
    rules: tuple[int, int]
    junk: int
    turns: int

    @property
    def precision(self) -> float:
        return self.right / self.saved if self.saved else 1.0


def figures(labels: Iterable[Labelled], outcomes: dict[str, Outcome]) -> Figures:
    rows = [(one, outcomes[one.id]) for one in labels]
    saved = [(one, found) for one, found in rows if found.types]
    right = [(one, found) for one, found in saved if one.save]
    rules = [(one, found) for one, found in rows if one.save and one.kind in RULES]
    return Figures(
        saved=len(saved),
        right=len(right),
        typed=sum(one.type in found.types for one, found in right),
        wanted=sum(one.save for one, _ in rows),
        rules=(sum(bool(found.types) for _, found in rules), len(rules)),
        junk=sum(not one.save and one.why in JUNK for one, _ in saved),
        turns=len(rows),
    )


def rows_of(what: str, got: Figures, *, bar: bool) -> Iterator[Row]:
    met = got.precision >= PRECISION if bar and got.saved else None  # of nothing, nothing is known
    limit = f"{PRECISION}" if bar else ""
    yield f"{what}: precision, {got.turns} turns", share(got.right, got.saved), limit, met
    yield f"{what}: recall", share(got.right, got.wanted), "", None
    if got.right:
        yield f"{what}: of those, type as labelled", share(got.typed, got.right), "", None


def disagreements(labels: Iterable[Labelled], outcomes: dict[str, Outcome]) -> list[str]:
    """Turns that the label and the answer judge differently, without their texts."""
    out: list[str] = []
    for one in labels:
        found = outcomes[one.id].types
        if bool(found) != one.save:
            said = f"saved as {', '.join(found)}" if found else "not saved"
            label = f"{one.type}/{one.kind}" if one.save else f"none ({one.why})"
            out.append(f"| {one.half} | `{one.id}` | {label} | {said} |")
    return out


# The synthetic set


def synthetic(path: Path = SYNTHETIC) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def one_case(row: dict[str, Any]) -> Outcome:
    view = put(EMPTY, HeadSet("embedded"))
    if row.get("before"):
        view = put(view, UserMessage((text_block("go on"),)))
        view = put(view, AssistantMessage((text_block(row["before"]),)))
    view = put(view, UserMessage((text_block(row["text"]),)), row["time"], "said")
    if row.get("after"):
        view = put(view, AssistantMessage((text_block(row["after"]),)))
    return extracted(view, Files(), ExtractTask(times=(("said", row["time"]),)))


def case_rows() -> Iterator[Row]:
    rows = synthetic()
    found = {row["id"]: one_case(row) for row in rows}
    for language in ("en", "zh"):
        here = [row for row in rows if row["language"] == language]
        saved = [row for row in here if found[row["id"]].types]
        right = [row for row in saved if row["save"]]
        typed_right = sum(row["type"] in found[row["id"]].types for row in right)
        wanted = sum(row["save"] for row in here)
        what = f"synthetic, {language}"
        yield f"{what}: precision, {len(here)} cases", share(len(right), len(saved)), "", None
        yield f"{what}: recall", share(len(right), wanted), "", None
        yield f"{what}: of those, type as labelled", share(typed_right, len(right)), "", None
    held = [row for row in rows if row.get("says")]
    kept = sum(any(row["says"] in text for text in found[row["id"]].texts) for row in held)
    yield "synthetic: dates and reasons written as expected", share(kept, len(held)), "", None
    wrong = sum(bool(found[row["id"]].types) != row["save"] for row in rows)
    yield "synthetic: judged differently", str(wrong), "", None


def correction_rows() -> Iterator[Row]:
    """The synthetic corrections and their look-alikes, by half."""
    rows = synthetic(CORRECTIONS)
    found = {row["id"]: bool(one_case(row).types) for row in rows}
    for half in HALVES:
        here = [row for row in rows if row["half"] == half]
        saved = [row for row in here if found[row["id"]]]
        right = sum(row["save"] for row in saved)
        wanted = sum(row["save"] for row in here)
        what = f"synthetic corrections, {half}"
        yield f"{what}: precision, {len(here)} cases", share(right, len(saved)), "", None
        yield f"{what}: recall", share(right, wanted), "", None


def secrets_in(outcomes: Iterable[Outcome]) -> int:
    return sum(bool(scan(text)) for one in outcomes for text in one.texts)


def twins_in(outcomes: Iterable[Outcome]) -> int:
    """Texts that were written twice, word for word."""
    seen = [re.sub(r"\s+", " ", text) for one in outcomes for text in one.texts]
    return len(seen) - len(set(seen))


def session_rows(talk: Sequence[Labelled], outcomes: dict[str, Outcome]) -> Iterator[Row]:
    """Over all recorded sessions: how many rules were saved, and how much junk."""
    whole = figures(talk, outcomes)
    what = "sessions: corrections and standing instructions saved"
    yield what, share(*whole.rules), "", None
    for half in HALVES:
        part = figures([one for one in talk if one.half == half], outcomes)
        yield f"{what}, {half}", share(*part.rules), "", None
    junk = whole.junk / whole.saved if whole.saved else 0.0
    yield (
        "sessions: junk among the saves",
        share(whole.junk, whole.saved),
        "0.05",
        junk <= MAX_JUNK,
    )
    yield (
        "sessions: written twice",
        str(twins_in(outcomes.values())),
        "0",
        not twins_in(outcomes.values()),
    )


def told(got: Figures) -> Iterator[Figure]:
    """The half whose texts the rules were made without."""
    yield at_least(
        "extraction.precision",
        "labelled turns: saves of the embedded extraction that are worth a memory",
        got.precision,
        PRECISION,
        "share",
        got.saved,
    )
    yield at_least(
        "extraction.recall",
        "labelled turns worth a memory that the embedded extraction saves",
        got.right / max(1, got.wanted),
        0.5,
        "share",
        got.wanted,
        why="it saves what it is plainly told and guesses at nothing said in passing, for the sake "
        "of precision; a model in its place reads those",
    )


def measure(out: Path) -> Iterator[Figure | Row]:
    yield from case_rows()
    yield from correction_rows()
    if not (ROOT_SHARED / "data" / "sessions_dev").is_dir():
        yield "labelled turns", f"not found under {os.fspath(ROOT_SHARED.name)}", "", None
        return
    talk, lives = sessions(), locomo()
    outcomes = walk_sessions(ROOT_SHARED)
    lived = walk_locomo(ROOT_SHARED, lives)
    everything = {**outcomes, **lived}
    for half in HALVES:
        parts = {"sessions": talk, "locomo": lives, "both": [*talk, *lives]}
        for name, labels in parts.items():
            here = [one for one in labels if one.half == half]
            yield from rows_of(f"{name}, {half}", figures(here, everything), bar=half == "test")
    yield from session_rows(talk, outcomes)
    yield from told(figures([one for one in talk + lives if one.half == "test"], everything))
    whole = figures(talk, outcomes)
    yield at_most(
        "extraction.junk",
        "junk among what the embedded extraction saved of recorded sessions",
        whole.junk / max(1, whole.saved),
        MAX_JUNK,
        "share",
        whole.saved,
    )
    leaked = secrets_in(everything.values())
    yield "secrets in what was written", str(leaked), "0", leaked == 0
    head = ["# Judged differently", "", "| half | turn | label | answer |", "|---|---|---|---|"]
    page = "\n".join([*head, *disagreements([*talk, *lives], everything)]) + "\n"
    (out / "extraction-disagreements.md").write_text(page, encoding="utf-8")
