"""What is wrong with the memory of a project, with evidence and a score, and fixing it.

It needs no model, and looking changes nothing. The fixes are those that lose nothing: dates
written out, duplicates merged, contradictions settled for the newer statement, links and pointers
led right. They land as one step of the history, whole or not at all, so that an undo takes them
back together. What was merged is as trusted as the least trusted part of it. Secrets, junk and
orders are named and left: what becomes of them is for a person to say.

Files anywhere are searched for secrets alone, by line and rule. That changes nothing, follows no
link, never hangs on a pipe, and never gives the secret back: a file whose very name holds one is
told by its number. What a rule may do is set here too.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reverie.embedded.exclusions import never
from reverie.embedded.sentences import ExtractedFact
from reverie.errors import InvalidInput, NotFound, ReverieError, ScanFailed, SecretFound, StoreError
from reverie.rules import rule as reading
from reverie.rules.match import LEVELS, OFF, REMIND
from reverie.secrets.scanner import SecretHit, scan
from reverie.session.recall.project_index import written_times
from reverie.store import transaction
from reverie.store.files import Changed
from reverie.store.fs import digest, read_plain
from reverie.store.memory_store import MemoryStore
from reverie.store.project import Project
from reverie.store.transaction import JobFence
from reverie.topics.entry import MAX_READ, decode_text, is_topic
from reverie.topics.trust import Trust
from reverie.topics.versions import Origin, Version, trust_in

if TYPE_CHECKING:
    from reverie.consolidation.edits import FixResult
    from reverie.consolidation.folder import CheckInput, Present, TrustIn
    from reverie.consolidation.lint import LintFinding, LintReport
    from reverie.topics.claims import Claim
    from reverie.topics.entry import TopicFile

SECONDS = 20.0
"""Time for looking up in the repository what all memories name."""
LARGEST = 16 << 20
"""Bytes that a file may have; a larger one is not searched, and says so."""


@dataclass(frozen=True, slots=True)
class MemoryFix:
    """What was fixed, and what could not be."""

    files: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    edits: Mapping[str, int] | None = None
    group: str = ""
    failed: str = ""
    left: tuple[str, ...] = ()  # changes that were not made, each with its reason
    dropped: tuple[dict[str, str], ...] = ()  # facts that gave way, and to what

    def value(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "files": list(self.files),
            "removed": list(self.removed),
            "edits": dict(self.edits or {}),
            "version": self.group,
            "failed": self.failed,
            "left": list(self.left),
            "dropped": list(self.dropped),
        }


def check_memory(memories: MemoryStore | None, place: Project) -> LintReport:
    """The faults of a project's memory, and its score."""
    from reverie.consolidation.folder import CheckInput
    from reverie.consolidation.lint import check

    return check(CheckInput({}) if memories is None else _input(memories, place))


def report_value(report: LintReport) -> dict[str, Any]:
    """A report for JSON."""
    return {
        "score": report.score,
        "memories": report.memories,
        "counts": report.counts,
        "not_looked_for": list(report.unlooked),
        "findings": [_finding(one) for one in report.findings],
    }


def _finding(one: LintFinding) -> dict[str, Any]:
    found = {"kind": one.kind, "file": one.file, "line": one.line, "evidence": one.evidence}
    found |= {"with": one.with_file, "rule": one.rule, "fixable": one.fixable}
    texts = {"text": one.text, "with_line": one.with_line, "with_text": one.with_text}
    return found | (texts if one.text else {})


TO_DECIDE = ("contradiction", "duplicate", "stale_date", "junk")
"""Issues that rules cannot decide: a person or a model does."""


def undecided(memories: MemoryStore) -> list[dict[str, Any]]:
    """Return the issues that wait for a decision, of two memories with both texts."""
    from reverie.consolidation.lint import check

    found = check(_input(memories, None)).findings
    return [_finding(one) for one in found if one.kind in TO_DECIDE and not one.fixable]


# --- looking


def _input(memories: MemoryStore, place: Project | None) -> CheckInput:
    """The folder as a check sees it, and the repository where there is one to look at."""
    from reverie.consolidation.folder import CheckInput

    files: dict[str, bytes] = {}
    unread: set[str] = set()
    for key in memories.folder.all_keys():
        if not key.lower().endswith(".md"):
            continue
        try:
            data = memories.folder.bytes_of(key, MAX_READ + 1)
        except (NotFound, StoreError):
            unread.add(key)
            continue
        if len(data) > MAX_READ:
            unread.add(key)
            continue
        files[key] = data
    known = written_times(memories, files, time.time())
    present, late = _present(files, place) if place else (None, ())
    return CheckInput(
        files,
        known.files,
        time.time(),
        memories.folder.limits,
        present,
        _trust(memories),
        unread=frozenset(unread),
        lines=known.lines,
        unlooked=late,
    )


def _trust(memories: MemoryStore) -> TrustIn:
    """The trust in each memory, from one look at the history."""
    steps: dict[str, list[Version]] = {}
    for version in memories.history.log():
        steps.setdefault(version.key, []).append(version)

    def trust(key: str) -> Trust:
        return trust_in(steps.get(key, ()), key)

    return trust


def _present(files: Mapping[str, bytes], place: Project) -> tuple[Present | None, tuple[str, ...]]:
    """Whether the repository has what the memories name, and what there was no time to look for;
    nobody to ask where there is no repository."""
    if not (place.root / ".git").exists():
        return None, ()
    from reverie.session.recall.verification import LATE, Repository
    from reverie.topics.claims import find_claims

    every = (
        one
        for key, data in files.items()
        if is_topic(key)
        for one in find_claims(decode_text(data))
    )
    wanted = list(dict.fromkeys(one for one in every if one.stated))
    found = Repository(place.root, seconds=SECONDS).check(wanted)
    gone = {one.claim for one in found if one.status == "gone"}
    late = tuple(one.claim.text for one in found if one.why == LATE)

    def present(claim: Claim) -> bool:
        return claim not in gone

    return present, late


# --- fixing


@dataclass(frozen=True, slots=True)
class FixPlan:
    """The repairs that would be made, and those by which a fact would be lost, which are not."""

    given: CheckInput
    done: FixResult
    left: tuple[str, ...] = ()
    dropped: tuple[dict[str, str], ...] = ()

    @property
    def edits(self) -> dict[str, int]:
        """How many of each kind."""
        counts: dict[str, int] = {}
        for one in self.done.edits:
            counts[one.why] = counts.get(one.why, 0) + 1
        return counts

    @property
    def changes(self) -> list[tuple[str, bytes | None, bytes | None]]:
        """Each file with its bytes before and after."""
        given, files = self.given.files, self.done.files
        return [(key, given.get(key), files[key]) for key in sorted(files)]

    @property
    def mark(self) -> str:
        """What tells one plan from another."""
        parts = (f"{key} {_mark(was)} {_mark(now)}" for key, was, now in self.changes)
        return digest("\n".join(parts).encode("utf-8", "surrogateescape"))

    def value(self) -> dict[str, Any]:
        """For JSON."""
        texts = {"left": list(self.left), "dropped": list(self.dropped)}
        files = [
            {"file": key, "before": _decode_content(was), "after": _decode_content(now)}
            for key, was, now in self.changes
        ]
        return {"files": files, "edits": self.edits, "plan": self.mark, **texts}


def _mark(data: bytes | None) -> str:
    return "-" if data is None else digest(data)


def _decode_content(data: bytes | None) -> str | None:
    return None if data is None else decode_text(data)


def plan_fix(memories: MemoryStore, place: Project) -> FixPlan:
    """The repairs that would be made now; nothing is changed."""
    from reverie.consolidation.changes import change_verdict
    from reverie.consolidation.fixes import files_after, fix_folder

    given = _input(memories, place)
    barred = frozenset(
        key for key, data in given.files.items() if not _is_allowed(memories, key, data)
    )
    rest = {key: data for key, data in given.files.items() if key not in barred}
    given = replace(given, files=rest, unread=given.unread | barred)
    done = fix_folder(given)
    if not done.files:
        return FixPlan(given, done)
    found = change_verdict(given, files_after(given, done), done.reasons)
    files = {
        key: found.work.get(key)
        for key in {*given.files, *found.work}
        if given.files.get(key) != found.work.get(key)
    }
    edits = tuple(one for one in done.edits if one.file in files or one.target in files)
    graves = tuple(
        {"file": one.file, "fact": one.fact, "why": one.why, "target": one.target, "by": one.by}
        for one in found.tombstones
    )
    made = replace(done, files=files, edits=edits)
    return FixPlan(given, made, tuple(map(str, found.left)), graves)


def fix_memory(
    memories: MemoryStore,
    place: Project,
    origin: Origin,
    fence: JobFence | None = None,
    *,
    expect: str = "",
) -> MemoryFix:
    """Make the repairs as one step, but for those by which a fact would be lost.

    `expect` is the mark of the plan that was looked at: where it would be another now, nothing
    is made, and `Changed` says so.
    """
    with memories.folder.locked():
        memories.look()
    found = plan_fix(memories, place)
    if expect and found.mark != expect:
        raise Changed(
            "What can be mended has changed since it was shown",
            do="Look at it again",
        )
    files = found.done.files
    if not files:
        failed = f"nothing was fixed: {found.left[0]}" if found.left else ""
        return MemoryFix(failed=failed, left=found.left)
    try:
        group = _land(memories, found.given, found.done, origin, fence)
    except ReverieError as error:
        later = "cut off while it landed, which goes on when the memory is next opened: "
        return MemoryFix(failed=f"{later if transaction.is_planned(memories) else ''}{error}")
    written = tuple(sorted(key for key, data in files.items() if data is not None))
    gone = tuple(sorted(key for key, data in files.items() if data is None))
    return MemoryFix(written, gone, found.edits, group, left=found.left, dropped=found.dropped)


def _is_allowed(memories: MemoryStore, key: str, data: bytes) -> bool:
    """Whether a file could be written as it is: one with a secret is left as it lies."""
    try:
        memories.allow(key, data)
    except (SecretFound, ScanFailed, InvalidInput):
        return False
    return True


def _land(
    memories: MemoryStore,
    given: CheckInput,
    done: FixResult,
    origin: Origin,
    fence: JobFence | None,
) -> str:
    """Put the repairs into the folder; whatever somebody changed meanwhile stops it."""
    why = "; ".join(dict.fromkeys(f"{one.why} {one.target}" for one in done.edits))[:400]
    moved = [one for one in done.edits if one.target not in ("", one.file)]
    drawn_on = {key for one in moved for key in (one.file, one.target) if is_topic(key)}
    there = sorted(drawn_on & given.files.keys())
    trust = transaction.least_trusted(memories, there, Trust.USER)
    by = replace(origin, trust=trust, note=why)
    return transaction.land(memories, done.files, given.files, by, fence=fence)


# --- files that hold a secret


@dataclass(frozen=True, slots=True)
class SecretPlace:
    """Where a secret is; line 0 is the file's name, or the whole file if it could not be read."""

    file: str
    line: int
    rule: str


def scan_files(path: Path) -> tuple[int, list[SecretPlace]]:
    """The number of files at or below the path, and the secrets in them."""
    if not os.path.lexists(path):
        raise NotFound("There is nothing to scan", where=str(path))
    files = sorted(_files(path))
    return len(files), [one for n, file in enumerate(files, 1) for one in _secrets(path, file, n)]


def _files(path: Path) -> Iterator[Path]:
    """The files at or below the path; links are not followed."""
    if path.is_symlink() or not path.is_dir():
        yield path
        return
    for folder, _, names in os.walk(path):
        yield from (Path(folder, name) for name in names)


def _secrets(root: Path, file: Path, number: int) -> Iterator[SecretPlace]:
    name = file.name if file == root else file.relative_to(root).as_posix()
    try:
        data = _read(file)
        hits = () if data is None else scan(data, name)
    except (OSError, ReverieError):
        hits = (SecretHit("scan-failed", 0),)
        name = name if _is_clean(name) else f"[name withheld, file {number}]"
    if any(not hit.line and hit.rule != "scan-failed" for hit in hits):
        name = f"[name withheld, file {number}]"
    yield from (SecretPlace(name, hit.line, hit.rule) for hit in hits)


def _is_clean(name: str) -> bool:
    try:
        return not scan("", name)
    except ScanFailed:
        return False


def _read(file: Path) -> bytes | None:
    """The file's bytes; none where it is a link, a pipe or the like."""
    if not stat.S_ISREG(file.lstat().st_mode):
        return None
    data = read_plain(file, LARGEST)
    if data is not None and len(data) > LARGEST:
        raise ScanFailed("The file is too large to be searched")
    return data


# --- rules at the user's word


def set_level(memories: MemoryStore, name: str, level: str, origin: Origin) -> str:
    """Let a rule do more or less, at the user's word; gives its file."""
    if level not in LEVELS:
        do = f"It is {', '.join(LEVELS)}"
        raise InvalidInput("There is no such level", where=level[:80], do=do)
    one = memories.find(name)
    data = one.with_value(level, reading.LEVEL).data
    if data == one.data:  # somebody else wrote it there: now it is the user's word
        again = one.with_value(OFF if level != OFF else REMIND, reading.LEVEL).data
        memories.save(one.key, again, origin, reviewed=True)
    memories.save(one.key, data, origin, reviewed=True)
    return one.key


FRAGMENT = 40
"""Characters of a body up to which a few words are all there is."""
MAX_STATED = 1_000
"""Characters of a memory in which its first paragraph is looked for."""


def unworthy(memory: TopicFile) -> str:
    """Why a memory should never have been saved, in a word; nothing where it may be one.

    What it states is held against the rules for what is never kept: an order or a number of one
    task, a question, a fragment, how far some work is, what the code or git tells.
    """
    body = next(filter(None, (part.strip() for part in memory.body[:MAX_STATED].split("\n\n"))), "")
    stated = (memory.description or body).strip().removeprefix("In the user's words: ")
    if stated.endswith(("?", "？")):
        return "question"
    found = ExtractedFact("request", memory.type or "project", stated)
    why = never(found)
    return "" if why == "fragment" and len(memory.body.strip()) > FRAGMENT else why
