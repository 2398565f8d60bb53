"""The embedded dream: a copy of a memory folder, mended with the tools at hand.

Round by round: the folder is listed, everything in it read, what the memories name looked up in
the repository, then the repairs written, and at the end the summary said: what each phase did,
what is left for a person, and a block of reasons that whoever lands the dream can check. It is a
pure function of the request: each round reads what the earlier calls brought, and the repairs are
worked out from the files as they were read, before any write.

A file is written only where its text was read byte for byte, as its size tells (a lone carriage
return is taken for a missing last line end); one that is to go is written empty. No file is
written twice, nothing outside the folder is touched, and what could not be read or written is
named. Without the tools it needs it says so and ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from reverie.consolidation.edits import FixResult
from reverie.consolidation.fixes import files_after, fix_folder
from reverie.consolidation.folder import CheckInput, logs
from reverie.consolidation.lint import LintReport, check
from reverie.consolidation.reasons import RemovalReason, reasons_block
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
_NEEDED = ("List", "Read", "Write")
_ROW = re.compile(r"(?P<name>.+?)(?:(?P<folder>/)| \((?P<size>[\d,]+) bytes\))\Z")
_MORE = re.compile(r"\[([\d,]+) more\]\Z")
_NUMBERED = re.compile(r" *(\d+)\t(.*)\Z", re.DOTALL)
_ON = re.compile(r"\[.* Read on with offset (\d+)\]\Z")
_CUT = re.compile(r" \[…[\d,]+ more bytes in this line\]\Z")
_EMPTY = "(the file is empty)"
_OF_RULES = ("rule", "calls")  # findings that are told of rules in doubt already


def answer_dream(request: Request) -> Sequence[Block]:
    """The next step of a dream."""
    task = request.task
    if not isinstance(task, DreamTask) or not task.folder:
        return (text_block("There is no folder to dream over."),)
    said = history.read(request)
    missing = [name for name in _NEEDED if name not in said.tools]
    if missing:
        return (text_block(f"Nothing was done: {', '.join(missing)} cannot be used here."),)
    dream = _Dream(task, said)
    steps = dream.next()
    if not steps:
        return (text_block(dream.summary()),)
    used = {call.id for call in said.calls}
    words = text_block(dream.phase(steps))
    return (words, *(call_block(request, used, step.tool, step.given) for step in steps))


@dataclass(frozen=True, slots=True)
class DreamCall:
    """A call to make."""

    tool: str
    given: dict[str, Json]


@dataclass(slots=True)
class _PartialFile:
    """A file as far as it was read."""

    size: int
    lines: list[str] = field(default_factory=list[str])
    next: int = 1  # the first line that was not read; 0 where all were
    fault: str = ""

    def text(self) -> str | None:
        """Its text, where that is known byte for byte."""
        if self.fault or self.next:
            return None
        joined = "\n".join(self.lines)
        bare = len(joined.encode("utf-8", "replace"))
        breaks = len(self.lines)
        if "\ufffd" in joined:
            return None
        if bare == self.size or not self.lines:
            return joined
        if bare + 1 == self.size:
            return joined + "\n"
        if bare + 2 * breaks - (breaks - 1) == self.size:
            return joined.replace("\n", "\r\n") + "\r\n"
        return None


class _Dream:
    """What a conversation so far says of the folder."""

    def __init__(self, task: DreamTask, said: ConversationHistory) -> None:
        self.task = task
        self.said = said
        self.base = task.folder.rstrip("/")
        self.folders: dict[str, bool] = {"": False}  # listed or not
        self.files: dict[str, _PartialFile] = {}
        self.unseen = 0
        self.gone: dict[str, bool] = {}
        self.failed: dict[str, str] = {}
        self.written: set[str] = set()
        for outcome in said.outcomes:
            if outcome.call.name in _TAKES:
                _TAKES[outcome.call.name](self, outcome.call, outcome.text, outcome.error)

    def key(self, path: str) -> str:
        return path.removeprefix(self.base).strip("/")

    # What the results say

    def listed(self, call: PastCall, text: str, error: bool) -> None:
        below = self.key(call.path)
        self.folders[below] = True
        if error:
            self.failed[below or "the folder"] = text
            return
        for row in text.splitlines():
            more = _MORE.match(row)
            if more is not None:
                self.unseen += int(more[1].replace(",", ""))
            found = _ROW.match(row)
            if found is None or found["name"].startswith("."):
                continue
            key = f"{below}/{found['name']}" if below else found["name"]
            if found["folder"]:
                self.folders.setdefault(key, False)
            elif key.lower().endswith(".md"):
                self.files.setdefault(key, _PartialFile(int(found["size"].replace(",", ""))))

    def was_read(self, call: PastCall, text: str, error: bool) -> None:
        seen = self.files.get(self.key(call.path))
        if seen is None or not seen.next:
            return
        if error:
            seen.fault, seen.next = text or "it could not be read", 0
            return
        rows = [] if text == _EMPTY else text.split("\n")
        seen.next = 0
        for row in rows:
            more, numbered = _ON.match(row), _NUMBERED.match(row)
            if more is not None:
                seen.next = int(more[1])
            elif numbered is None or int(numbered[1]) != len(seen.lines) + 1:
                seen.fault = "its lines could not be told apart"
            elif _CUT.search(numbered[2]):
                seen.fault = "a line of it is too long"
            else:
                seen.lines.append(numbered[2])

    def looked_up(self, call: PastCall, text: str, error: bool) -> None:
        if not error:
            self.gone[call.get("pattern")] = text.strip() == "No files match"

    def wrote(self, call: PastCall, text: str, error: bool) -> None:
        key = self.key(call.path)
        self.written.add(key)
        if error:
            self.failed[key] = text

    # What to do next

    def next(self) -> list[DreamCall]:
        """The calls of the next round; none once all is done."""
        if not self.written:
            steps = self._orient() or self._read() or self._gather()
            if steps:
                return steps
        return self._write()

    def _orient(self) -> list[DreamCall]:
        open_ = [key for key, done in self.folders.items() if not done]
        return [DreamCall("List", {"path": self._path(key)}) for key in open_[:ROUND_CALLS]]

    def _path(self, key: str) -> str:
        return f"{self.base}/{key}" if key else self.base

    def _read(self) -> list[DreamCall]:
        steps: list[DreamCall] = []
        room = ROUND_CHARACTERS
        for key, seen in sorted(self.files.items()):
            if not seen.next or len(steps) >= ROUND_CALLS:
                continue
            cost = min(seen.size + seen.size // 4 + 400, 50_000)
            if steps and cost > room:
                break
            room -= cost
            given: dict[str, Json] = {"file_path": self._path(key)}
            if seen.next > 1:
                given["offset"] = seen.next
            steps.append(DreamCall("Read", given))
        return steps

    def _gather(self) -> list[DreamCall]:
        """Look up what the memories name in the repository, once."""
        if not self.task.root or "Glob" not in self.said.tools or self.gone:
            return []
        if any(call.name == "Glob" for call in self.said.calls):
            return []
        paths = self._named_paths()[:LOOKED_UP]
        return [DreamCall("Glob", {"pattern": path, "path": self.task.root}) for path in paths]

    def _named_paths(self) -> list[str]:
        """The paths that memories name, those of the newest first."""
        times = {one.file: one.saved for one in self.task.memories}
        texts = sorted(self.texts().items(), key=lambda item: (-times.get(item[0], 0.0), item[0]))
        found = (one for key, data in texts if is_topic(key) for one in find_claims(data.decode()))
        paths = (one.text for one in found if one.kind == "path" and one.sure and "/" in one.text)
        return [p for p in dict.fromkeys(paths) if p[0] not in "/~." and not p.endswith("/")]

    def _write(self) -> list[DreamCall]:
        steps: list[DreamCall] = []
        room = ROUND_CHARACTERS
        for key, data in sorted(self.done().files.items(), key=_files_first):
            if key in self.written:
                continue
            content = "" if data is None else data.decode()
            room -= len(content)
            if steps and (room < 0 or len(steps) >= ROUND_CALLS):
                break
            steps.append(DreamCall("Write", {"file_path": self._path(key), "content": content}))
        return steps

    # What was found

    def texts(self) -> dict[str, bytes]:
        """The files that were read byte for byte."""
        found = {key: seen.text() for key, seen in self.files.items()}
        return {key: text.encode() for key, text in found.items() if text is not None}

    def given(self) -> CheckInput:
        task = self.task
        limits = IndexLimits(task.index_lines, task.index_bytes)
        times = {one.file: one.saved for one in task.memories}
        texts = self.texts()
        unread = frozenset(key for key in self.files if key not in texts)
        present = self._present if self.gone else None
        lines = {one.file: one.lines for one in task.memories if one.lines}
        return CheckInput(texts, times, task.now, limits, present, unread=unread, lines=lines)

    def _present(self, claim: Claim) -> bool:
        return not self.gone.get(claim.text, False)

    def done(self) -> FixResult:
        """The repairs; none where the folder could not be seen whole."""
        given = self.given()
        if self.blind():
            return FixResult({})
        rows = tuple(sorted(given.files.items()))
        times = tuple(sorted(given.times.items()))
        return _worked_out(rows, times, given.now, given.limits, given.unread)

    def blind(self) -> str:
        """Why nothing may be concluded: a part of the folder was not seen."""
        if self.unseen:
            return f"{plural(self.unseen, 'file')} could not be listed"
        unread = [key for key, seen in self.files.items() if seen.text() is None]
        if any(map(is_index, unread)):
            return "the index could not be read whole"
        return ""

    # What is said

    def phase(self, steps: Sequence[DreamCall]) -> str:
        names = {"List": "orient: listing", "Read": "orient: reading"}
        names |= {"Glob": "gather: looking up", "Write": "consolidate: writing"}
        return f"{names[steps[0].tool]} {len(steps):,}"

    def summary(self) -> str:
        done = self.done()
        given = self.given()
        after = files_after(given, done)
        report = check(replace(given, files=after))
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
        return "\n".join([*rows, "", reasons_block(self._reasons(done))])

    def _reasons(self, done: FixResult) -> tuple[RemovalReason, ...]:
        return tuple(one for one in done.reasons if one.file not in self.failed)

    def _left(self, report: LintReport) -> Iterator[str]:
        for rule in self.task.rules:
            yield f"left: rule {rule.file}: {'; '.join(filter(None, (*rule.doubts, rule.did)))}"
        if self.task.rules:
            yield "`reverie memory edit FILE` mends one, `memory rules level FILE off` retires it"
        told = {rule.file for rule in self.task.rules}
        rest = [f for f in report.findings if f.rule not in _OF_RULES or f.file not in told]
        for one in rest[:30]:
            yield f"left: {one.kind} {one.file}:{one.line} {one.evidence}"
        if len(rest) > 30:
            yield f"left: {len(rest) - 30:,} more; `reverie memory check` lists them"

    def _not_done(self) -> Iterator[tuple[str, str]]:
        yield from sorted(self.failed.items())
        if self.blind():
            yield self.base, self.blind()
        for key, seen in sorted(self.files.items()):
            if seen.text() is None:
                yield key, seen.fault or "its text is not known byte for byte"


_TAKES = {
    "List": _Dream.listed,
    "Read": _Dream.was_read,
    "Glob": _Dream.looked_up,
    "Write": _Dream.wrote,
}


def _files_first(item: tuple[str, bytes | None]) -> tuple[bool, bool, str]:
    """Memories before indexes, so that no pointer is ever written before its file."""
    return is_index(item[0]), item[1] is None, item[0]


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
