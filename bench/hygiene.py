"""The memory check and the embedded dream against planted faults, and against real documents.

500 documents are made into memories and faults planted by a seed (`bench/planted.py`); then the
documents are looked at as they are. What the check says of those is judged one by one in
`hygiene_alarms.md`; an alarm that is not in that file, or is judged false there, counts as false.
Needs the memory documents (`REVERIE_SHARED`).
"""

from __future__ import annotations

import os
import posixpath
import re
import resource
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import anyio

from bench.figures import ROOT_SHARED, Figure, Row, at_least, at_most, code, once
from bench.lost import losses
from bench.planted import INDEX, NOW, Fault, Planted, documents, memory, planted, untouched
from reverie.consolidation import (
    CheckInput,
    LintFinding,
    LintReport,
    change_verdict,
    check,
    reasons_in,
)
from reverie.embedded import answer_dream
from reverie.observer import SystemClock
from reverie.settings import DEFAULTS
from reverie.toolbox import (
    Guard,
    GuardLimits,
    ReadLog,
    Sandbox,
    ToolContext,
    UnconfinedFiles,
    standard,
)
from reverie.topics import is_index
from reverie.transcript import (
    EMPTY,
    AssistantMessage,
    Block,
    DreamTask,
    Entry,
    HeadSet,
    KnownMemory,
    Record,
    UserMessage,
    View,
    apply,
    dump,
    text_block,
)
from reverie.wire import Request, ToolCall, render
from reverie.world import Notice

TOOLS = ("Read", "Grep", "Glob", "List", "Edit", "Write")
MAX_ROUNDS = 100


@dataclass
class Dreaming:
    """One dream under way on `folder`."""

    folder: Path
    task: DreamTask
    tools: tuple[str, ...] = TOOLS
    view: View = EMPTY
    number: int = 0
    rounds: list[list[ToolCall]] = field(default_factory=list[list[ToolCall]])
    notices: list[Notice] = field(default_factory=list[Notice])
    text: str = ""

    def put(self, record: Record) -> None:
        self.number += 1
        entry = Entry(f"n{self.number}", self.view.leaf, float(self.number), record)
        self.view = apply(self.view, entry)

    def guard(self) -> Guard:
        root = Path(self.task.root or self.folder)
        context = ToolContext(
            root=root,
            cwd=root,
            files=UnconfinedFiles(root, str(root)),
            clock=SystemClock(),
            reads=ReadLog(),
            settings=DEFAULTS,
            say=self.notices.append,
            environ=dict(os.environ),
            stored=None,
        )
        limits = GuardLimits(frozenset(self.tools), (root, self.folder), (str(self.folder),))
        return Guard(standard(), context, limits, Sandbox("none"), "dream")

    def request(self) -> Request:
        return render(self.view, "dream", self.task)

    async def run(self) -> str:
        defined = [d for d in standard().definitions() if d["name"] in self.tools]
        self.put(HeadSet("embedded", '[{"type":"text","text":"x"}]', dump(defined)))
        self.put(UserMessage((text_block("Dream."),), "instruction"))
        guard = self.guard()
        guard.note_files(self.folder, dict(self.task.files))
        try:
            for _ in range(MAX_ROUNDS):
                blocks = tuple(answer_dream(self.request()))
                self.put(AssistantMessage(blocks))
                calls = [_call(one) for one in blocks if one.type == "tool_use"]
                if not calls:
                    self.text = "\n".join(one.text for one in blocks)
                    return self.text
                self.rounds.append(calls)
                results = [await guard.run(one) for one in calls]
                found = tuple(block for one in results for block in one.blocks)
                self.put(UserMessage(found, "tool"))
        finally:
            guard.close()
        raise AssertionError("the dream does not end")


def _call(block: Block) -> ToolCall:
    return ToolCall(block.get("id"), block.get("name"), dump(block.value["input"]))


def written(folder: Path, files: Mapping[str, bytes]) -> None:
    for key, data in files.items():
        path = folder / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def state(folder: Path) -> dict[str, bytes]:
    """The folder as a landing takes it: a file left empty is gone."""
    paths = sorted(path for path in folder.rglob("*.md") if path.is_file())
    found = {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
    return {key: data for key, data in found.items() if data.strip() or is_index(key)}


def task_of(
    folder: Path, times: Mapping[str, float], now: float, root: Path | None = None
) -> DreamTask:
    known = tuple(KnownMemory(key, saved=at) for key, at in sorted(times.items()))
    files = tuple(sorted(state(folder).items()))
    place = str(root) if root else ""
    return DreamTask(folder=str(folder), files=files, root=place, now=now, memories=known)


# The check


ALARMS = Path(__file__).with_name("hygiene_alarms.md")
SEEDS = (101, 102, 103)  # 1 to 10 are for whoever works on it
DOCUMENTS = 500
_KINDS = {
    "duplicate": "duplicate",
    "contradiction": "contradiction",
    "stale": "stale_date",
    "pointer": "index",
    "link": "link",
    "form": "form",
    "junk": "junk",
}
_FOR_PEOPLE = ("junk", "form-conflict", "duplicate", "stale", "contradiction")
"""Kinds that a dream without a model names and leaves: it mends form, and says nothing of truth."""


def is_ours(fault: Fault) -> bool:
    """Whether a dream without a model is to mend a fault."""
    return not fault.kind.startswith(_FOR_PEOPLE)


def given(made: Planted, files: Mapping[str, bytes] | None = None) -> CheckInput:
    return CheckInput(files or made.files, made.times, NOW.timestamp())


def line_of(text: str, words: str) -> int:
    at = text.find(words)
    return text.count("\n", 0, at) + 1 if at >= 0 else 0


def is_found(fault: Fault, report: LintReport, made: Planted) -> bool:
    """Whether the check names the fault, in the right place."""
    kind = _KINDS[fault.kind.partition("-")[0]]
    return any(_names(one, fault, made) for one in report.findings if one.kind == kind)


def _names(one: LintFinding, fault: Fault, made: Planted) -> bool:
    if fault.kind in ("duplicate", *_ODDS):
        return {one.file, one.with_file} == {fault.file, fault.with_file}
    if fault.kind == "junk":
        return one.file == fault.file
    if fault.kind.startswith("form-"):
        return one.file == fault.file and one.rule == fault.kind.partition("-")[2]
    if fault.kind == "pointer-unlisted":
        return one.rule == "unlisted" and one.file == fault.file
    rows = made.files[fault.file].decode().splitlines()
    if fault.file == INDEX:
        same = [n for n, row in enumerate(rows, 1) if row == fault.line]
        return one.rule == fault.kind.partition("-")[2] and one.line in same
    return one.file == fault.file and one.line == line_of("\n".join(rows), fault.line)


_ODDS = (
    *("contradiction-value", "contradiction-denial", "contradiction-date"),
    *("contradiction-words", "contradiction-name", "contradiction-weekday"),
)


def is_repaired(fault: Fault, new: Mapping[str, bytes]) -> bool:
    """Whether a fault is gone from the folder and what had to stay is there."""
    every = {key: _flat(data) for key, data in new.items()}
    stays = all(any(_flat(one) in text for text in every.values()) for one in fault.wanted)
    text = every.get(fault.file, "")
    if fault.kind == "link":
        return f"]({fault.line})" not in text and _leads(fault, new)
    if fault.kind.startswith("form-"):
        return stays and _well_formed(fault, new.get(fault.file, b"").decode())
    rows = new[INDEX].decode().splitlines()
    about = fault.file if fault.kind == "pointer-unlisted" else fault.with_file
    mine = [row for row in rows if f"]({about})" in row]
    if fault.kind == "pointer-missing":
        return not mine
    return stays and len(mine) == 1 and len(mine[0]) <= 150


def _well_formed(fault: Fault, text: str) -> bool:
    head, closed, body = text.partition("\n---\n")
    if fault.kind == "form-type":
        return "\ntype: reference" in head and fault.line not in text
    if fault.kind == "form-head":
        return bool(closed) and head.startswith("---\n")
    return body.split("\n").count(fault.line) == 1


def _flat(text: str | bytes) -> str:
    return " ".join((text if isinstance(text, str) else text.decode()).split())


def _leads(fault: Fault, new: Mapping[str, bytes]) -> bool:
    below = posixpath.dirname(fault.file)
    links = re.findall(r"\]\(([^)#\s]+)", new[fault.file].decode())
    return fault.with_file in {posixpath.normpath(posixpath.join(below, one)) for one in links}


def lost_facts(made: Planted, new: Mapping[str, bytes]) -> list[str]:
    """Planted statements of which no line of the folder has all the words."""
    lines = [set(_words(row)) for data in new.values() for row in data.decode().splitlines()]
    return [one for one in made.facts if not any(set(_words(one)) <= row for row in lines)]


def _words(text: str) -> list[str]:
    return re.findall(r"[\w-]+", text.lower())


def measure(out: Path) -> Iterator[Figure | Row]:
    if not (ROOT_SHARED / "data" / "memory_docs_dev.jsonl.gz").is_file():
        yield "memory documents", "not found", "", None
        return
    docs = documents(ROOT_SHARED)
    yield from _alarms(untouched(docs), out)
    shares: dict[str, list[float]] = {}
    measured = code("planted", "paraphrase", "hygiene", "lost")
    for seed in SEEDS:
        found = once(f"hygiene {seed}", measured, lambda n=seed: of_seed(docs, n))
        if found is None:
            yield f"seed {seed}", "not run: the time was over", "", None
            continue
        yield from map(tuple, found["rows"])
        for name, values in found["shares"].items():
            shares.setdefault(name, []).extend(values)
    if shares:
        yield from summed(shares)
    yield from map(tuple, once("hygiene growth", measured, lambda: list(_growing(docs))) or ())


def of_seed(docs: Sequence[dict[str, Any]], seed: int) -> dict[str, Any]:
    """What is found and mended of one draw of faults."""
    shares: dict[str, list[float]] = {}
    made = planted(Random(seed).sample(docs, DOCUMENTS), seed)
    rows = [*_finding(made, seed, shares), *_mending(made, seed, shares)]
    return {"rows": rows, "shares": shares}


def summed(shares: Mapping[str, Sequence[float]]) -> Iterator[Figure]:
    """The worst of the seeds, in each respect."""
    faults = int(shares["faults"][0])
    yield at_least(
        "hygiene.found",
        f"planted faults that the check finds, the least of {len(shares['found'])} seeds",
        min(shares["found"]),
        0.95,
        "share",
        faults,
    )
    yield at_least(
        "hygiene.repaired",
        "planted faults of form that the embedded dream repairs, the least of them",
        min(shares["repaired"]),
        0.9,
        "share",
        faults,
    )
    lost = sum(shares["lost"])
    what = "facts of these folders that a dream loses, by a judge of its own"
    sentences = int(sum(shares["sentences"]))
    yield Figure("hygiene.lost", what, lost, 0.0, "none", "lower", n=sentences)
    what = "files that a second dream changes"
    yield Figure(
        "hygiene.again", what, sum(shares["again"]), 0.0, "none", "lower", n=len(shares["again"])
    )


def _growing(docs: Sequence[dict[str, Any]]) -> Iterator[Row]:
    """What four times as many memories cost, made from paragraphs of the documents."""
    small, large = (_cpu(_notes(docs, count)) for count in (2_500, 10_000))
    yield "CPU for 10,000 memories of 700 bytes", f"{large:.0f} s", "", None
    yield "10,000 memories against 2,500", f"{large / small:.1f} x", "8 x", large <= 8 * small


def _notes(docs: Sequence[dict[str, Any]], count: int) -> CheckInput:
    chance = Random(count)
    blocks = [one for doc in docs for one in doc["body"].split("\n\n") if len(one) > 80]
    files = {
        f"m{n}.md": memory(f"Note {n}", f"Note {n}", "\n\n".join(chance.sample(blocks, 2)))
        for n in range(count)
    }
    rows = "".join(f"- [Note {n}](m{n}.md)\n" for n in range(count))
    return CheckInput(files | {INDEX: rows.encode()}, {}, NOW.timestamp())


def _cpu(look: CheckInput) -> float:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    check(look)
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime - before


def _finding(made: Planted, seed: int, shares: dict[str, list[float]]) -> Iterator[Row]:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    report = check(given(made))
    took = resource.getrusage(resource.RUSAGE_SELF).ru_utime - before
    hit = {n: is_found(fault, report, made) for n, fault in enumerate(made.faults)}
    share = sum(hit.values()) / len(hit)
    shares.setdefault("found", []).append(share)
    shares.setdefault("faults", []).append(len(hit))
    yield f"seed {seed}: found of {len(hit)} planted faults", f"{share:.1%}", "95 %", share >= 0.95
    for name, numbers in sorted(groups(made.faults).items()):
        got = sum(hit[n] for n in numbers)
        yield f"seed {seed}: found, {name}", f"{got} of {len(numbers)}", "", None
    yield f"seed {seed}: CPU for {report.memories} memories", f"{took:.1f} s", "", None


def _mending(made: Planted, seed: int, shares: dict[str, list[float]]) -> Iterator[Row]:
    look = given(made)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "memory"
        written(folder, made.files)
        text = anyio.run(Dreaming(folder, task_of(folder, made.times, look.now)).run)
        new = state(folder)
        again = Path(name) / "again"
        written(again, new)
        anyio.run(Dreaming(again, task_of(again, made.times, look.now)).run)
        same = sum(new.get(key) != data for key, data in state(again).items())
    ours = [(n, one) for n, one in enumerate(made.faults) if is_ours(one)]
    mended = {n: is_repaired(fault, new) for n, fault in ours}
    share = sum(mended.values()) / len(mended)
    shares.setdefault("repaired", []).append(share)
    shares.setdefault("again", []).append(same)
    yield (
        f"seed {seed}: repaired by a dream, of {len(mended)}",
        f"{share:.1%}",
        "90 %",
        share >= 0.9,
    )
    for name, numbers in sorted(groups(made.faults).items()):
        got = sum(mended.get(n, False) for n in numbers)
        yield f"seed {seed}: repaired, {name}", f"{got} of {len(numbers)}", "", None
    gone = len(lost_facts(made, new))
    yield f"seed {seed}: lost of {len(made.facts)} planted facts", f"{gone}", "0", not gone
    found = change_verdict(look, new, reasons_in(text))
    yield f"seed {seed}: changes left out", f"{len(found.left)}", "", None
    judged = losses(made.files, found.work, text)
    shares.setdefault("lost", []).append(gone + len(judged.atoms) + len(judged.words))
    shares.setdefault("sentences", []).append(judged.sentences)
    for what, lost in (("atoms", judged.atoms), ("words", judged.words)):
        told = f"seed {seed}: of {judged.sentences:,} sentences, {what} lost"
        yield told, f"{len(lost)}", "0", not lost
    yield f"seed {seed}: facts with a tombstone", f"{judged.tombstones}", "", None
    yield f"seed {seed}: files that a second dream changes", f"{same}", "0", not same


def _alarms(made: Planted, out: Path) -> Iterator[Figure | Row]:
    """What the check says of documents that nothing was done to, against the judged list."""
    found = once("hygiene alarms", code("planted", "paraphrase"), lambda: alarms(made))
    if found is None:
        return
    judged = dict(
        re.findall(r"(?m)^\| `([^`]+)` \|.*\| (real|false) \|", ALARMS.read_text("utf-8"))
    )
    verdicts = {name: judged.get(name, "not judged") for name in found["names"]}
    rows = [f"| `{name}` | {verdict} |" for name, verdict in sorted(verdicts.items())]
    (out / "hygiene_alarms.md").write_text("\n".join(rows) + "\n", encoding="utf-8")
    wrong = [name for name, verdict in verdicts.items() if verdict != "real"]
    files = {name.split(":")[1] for name in wrong}
    share = len(files) / found["memories"]
    yield f"alarms on {found['memories']} untouched documents", f"{len(verdicts)}", "", None
    yield "of them judged real", f"{len(verdicts) - len(wrong)}", "", None
    what = "untouched documents with a false alarm"
    count = found["memories"]
    yield at_most("hygiene.alarms", what, share, 0.02, "share", count)


def alarms(made: Planted) -> dict[str, Any]:
    report = check(given(made))
    return {"names": [ident(one) for one in report.findings], "memories": report.memories}


def ident(one: LintFinding) -> str:
    """A finding by kind, file and line, without its text."""
    rule = f"/{one.rule}" if one.rule else ""
    return f"{one.kind}{rule}:{one.file}:{one.line}"


def groups(faults: Sequence[Fault]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for number, fault in enumerate(faults):
        split = fault.kind == "duplicate" or fault.kind in _ODDS
        name = f"{fault.kind} ({fault.half} operators)" if split else fault.kind
        found.setdefault(name, []).append(number)
    return found
