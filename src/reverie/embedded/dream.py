"""The embedded dream: a copy of a memory folder, repaired with the tools of a background agent.

The task holds every file of the copy. Round by round it looks up in the repository what memories
name, writes the repairs, and ends with a summary: what each phase did, what is left for a person,
and a block of reasons that the judge of a dream can check. It is a pure function of the request.

A file is written only where its bytes are text; one that is to go is written empty. No file is
written twice, nothing outside the folder is touched, and what could not be read or written is
named. Without the tool it needs it says so and ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TypeAlias

from reverie.consolidation.edits import FixResult
from reverie.consolidation.fixes import files_after, fix_folder
from reverie.consolidation.folder import CheckInput, logs
from reverie.consolidation.lint import LintReport, check
from reverie.consolidation.reasons import reasons_block
from reverie.embedded import history
from reverie.embedded.history import ConversationHistory, PastCall, call_block
from reverie.errors import ScanFailed
from reverie.secrets.scanner import scan
from reverie.text.format import plural
from reverie.topics.claims import Claim, find_claims
from reverie.topics.entry import is_index, is_topic
from reverie.topics.manifest import IndexLimits
from reverie.transcript.blocks import Block, Json, text_block
from reverie.transcript.tasks import DreamTask
from reverie.wire.request import Request

ROUND_CHARACTERS = 150_000
"""Characters that the results of one round may have in all: less than a message may hold."""
ROUND_CALLS = 200
LOOKED_UP = 60
"""Paths that are looked up in the repository."""
SHOWN = 30
"""Issues that a summary lists."""
_PHASES = {"Glob": "gather: looking up", "Write": "consolidate: writing"}
_OF_RULES = ("rule", "calls")  # findings that are told of rules in doubt already
DreamCall: TypeAlias = tuple[str, dict[str, Json]]
"""A tool, and what it is called with."""


def answer_dream(request: Request) -> Sequence[Block]:
    """Return the next step of a dream."""
    task = request.task
    if not isinstance(task, DreamTask) or not task.folder:
        return (text_block("There is no folder to dream over."),)
    said = history.read(request)
    if "Write" not in said.tools:
        return (text_block("Nothing was done: Write cannot be used here."),)
    dream = _Dream(task, said)
    steps = dream.next()
    if not steps:
        return (text_block(dream.summary()),)
    used = {call.id for call in said.calls}
    words = text_block(f"{_PHASES[steps[0][0]]} {len(steps):,}")
    return (words, *(call_block(request, used, tool, given) for tool, given in steps))


class _Dream:
    """What the task and the conversation so far say of the folder."""

    def __init__(self, task: DreamTask, said: ConversationHistory) -> None:
        self.task = task
        self.said = said
        self.base = task.folder.rstrip("/")
        self.gone: dict[str, bool] = {}
        self.failed: dict[str, str] = {}
        self.written: set[str] = set()
        for outcome in said.outcomes:
            if outcome.call.name in _TAKES:
                _TAKES[outcome.call.name](self, outcome.call, outcome.text, outcome.error)

    # What the results say

    def looked_up(self, call: PastCall, text: str, error: bool) -> None:
        if not error:
            self.gone[call.get("pattern")] = text.strip() == "No files match"

    def wrote(self, call: PastCall, text: str, error: bool) -> None:
        key = call.path.removeprefix(self.base).strip("/")
        self.written.add(key)
        if error:
            self.failed[key] = text

    # What to do next

    def next(self) -> list[DreamCall]:
        """The calls of the next round; none once all is done."""
        return self._gather() or self._write()

    def _gather(self) -> list[DreamCall]:
        """Look up what the memories name in the repository, once; what the newest name first."""
        looked = any(call.name == "Glob" for call in self.said.calls)
        if not self.task.root or "Glob" not in self.said.tools or looked:
            return []
        times = {one.file: one.saved for one in self.task.memories}
        texts = sorted(self.texts().items(), key=lambda item: (-times.get(item[0], 0.0), item[0]))
        found = (one for key, data in texts if is_topic(key) for one in find_claims(data.decode()))
        paths = (one.text for one in found if one.kind == "path" and one.sure and "/" in one.text)
        ours = [p for p in dict.fromkeys(paths) if p[0] not in "/~." and not p.endswith("/")]
        return [("Glob", {"pattern": p, "path": self.task.root}) for p in ours[:LOOKED_UP]]

    def _write(self) -> list[DreamCall]:
        """The repairs: memories before indexes, so that no pointer comes before its file."""
        steps: list[DreamCall] = []
        room = ROUND_CHARACTERS
        order = sorted(
            self.done().files.items(), key=lambda f: (is_index(f[0]), f[1] is None, f[0])
        )
        for key, data in order:
            if key in self.written:
                continue
            content = "" if data is None else data.decode()
            room -= len(content)
            if steps and (room < 0 or len(steps) >= ROUND_CALLS):
                break
            steps.append(("Write", {"file_path": f"{self.base}/{key}", "content": content}))
        return steps

    # What was found

    def texts(self) -> dict[str, bytes]:
        """The files that are text."""
        return {
            k: data
            for k, data in self.task.files
            if "\ufffd" not in data.decode("utf-8", "replace")
        }

    def given(self) -> CheckInput:
        task, texts = self.task, self.texts()
        limits = IndexLimits(task.index_lines, task.index_bytes)
        times = {one.file: one.saved for one in task.memories}
        unread = frozenset(key for key, _ in task.files if key not in texts)
        present = self._present if self.gone else None
        lines = {one.file: one.lines for one in task.memories if one.lines}
        return CheckInput(texts, times, task.now, limits, present, unread=unread, lines=lines)

    def _present(self, claim: Claim) -> bool:
        return not self.gone.get(claim.text, False)

    def done(self) -> FixResult:
        """The repairs; none where an index is no text."""
        given = self.given()
        if any(map(is_index, given.unread)):
            return FixResult({})
        rows, times = tuple(sorted(given.files.items())), tuple(sorted(given.times.items()))
        return _worked_out(rows, times, given.now, given.limits, given.unread)

    # What is said

    def summary(self) -> str:
        done, given = self.done(), self.given()
        report = check(replace(given, files=files_after(given, done)))
        counts: dict[str, int] = {}
        for one in done.edits:
            counts[one.why] = counts.get(one.why, 0) + 1
        told = ", ".join(f"{why.replace('_', ' ')} {n:,}" for why, n in sorted(counts.items()))
        topics, daily = sum(map(is_topic, given.files)), plural(len(logs(given.files)), "daily log")
        rows = [
            f"orient: {plural(topics, 'memory', 'memories')} and {daily} read",
            f"gather: {sum(self.gone.values()):,} of {len(self.gone):,} paths they name are gone",
            f"consolidate: {told or 'nothing to mend'}",
            f"prune and index: {plural(len(done.files), 'file')} changed",
            *self._left(report),
            *(f"not done: {key}: {' '.join(why.split())[:200]}" for key, why in self._not_done()),
        ]
        reasons = [one for one in done.reasons if one.file not in self.failed]
        return "\n".join([*rows, "", reasons_block(reasons)])

    def _left(self, report: LintReport) -> Iterator[str]:
        for rule in self.task.rules:
            yield f"left: rule {rule.file}: {'; '.join(filter(None, (*rule.doubts, rule.did)))}"
        if self.task.rules:
            yield "`reverie memory edit FILE` mends one, `memory rules level FILE off` retires it"
        told = {rule.file for rule in self.task.rules}
        rest = [f for f in report.findings if f.rule not in _OF_RULES or f.file not in told]
        for one in rest[:SHOWN]:
            yield f"left: {one.kind} {one.file}:{one.line} {one.evidence}"
        if len(rest) > SHOWN:
            yield f"left: {len(rest) - SHOWN:,} more; `reverie memory check` lists them"

    def _not_done(self) -> Iterator[tuple[str, str]]:
        yield from sorted(self.failed.items())
        unread = self.given().unread
        if any(map(is_index, unread)):
            yield self.base, "an index is no text, so nothing was changed"
        yield from ((key, "it is no text") for key in sorted(unread))


_TAKES = {"Glob": _Dream.looked_up, "Write": _Dream.wrote}


@lru_cache(maxsize=2)
def _worked_out(
    files: tuple[tuple[str, bytes], ...],
    times: tuple[tuple[str, float], ...],
    now: float,
    limits: IndexLimits,
    unread: frozenset[str],
) -> FixResult:
    """The repairs of a folder: the same for the same texts, so not worked out every round."""
    clean = {key: data for key, data in files if not _has_secret(key, data)}
    left = unread | frozenset(key for key, _ in files if key not in clean)
    return fix_folder(CheckInput(clean, dict(times), now, limits, unread=left))


def _has_secret(key: str, data: bytes) -> bool:
    """A file with a secret is left as it lies: no repair carries it to another."""
    try:
        return bool(scan(data, key))
    except ScanFailed:
        return True
