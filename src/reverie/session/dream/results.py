"""Dreams listed, shown and taken back.

What a person can do about dreams: look, compare, accept, drop, kill, take back.

Every function works on what is on the disk, so it makes no difference which process dreams or
dreamt. Accepting judges the branch once more against the folder as it is now.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from reverie.consolidation import branch as branches
from reverie.errors import InvalidInput, NotFound
from reverie.rules import rule
from reverie.rules.match import REMIND
from reverie.rules.rule_set import sentence_of
from reverie.session.dream.branch import (
    Dream,
    DreamBranch,
    DreamChanges,
    Standing,
    applied_files,
    dreams,
    dreams_folder,
    land,
    sources_of,
)
from reverie.settings.catalog import DEFAULTS
from reverie.store.consolidation_lock import ConsolidationLock
from reverie.store.lock import alive
from reverie.store.memory_store import MemoryStore, UndoOutcome
from reverie.store.rules import RuleRow, RuleStore, applies, list_rules
from reverie.store.rules_ledger import BROKEN, CHANGED, HELD, MATCHED, RuleCounts
from reverie.text.format import plural
from reverie.topics.entry import TopicFile
from reverie.topics.trust import Trust
from reverie.topics.versions import Origin
from reverie.transcript.tasks import DoubtedRule

if TYPE_CHECKING:
    from collections.abc import Sequence


def list_dreams(memories: MemoryStore) -> list[Dream]:
    """All dreams of a project, the newest first; one whose process is gone counts as killed,
    or as completed where it had landed or was landed since."""
    found = dreams(dreams_folder(memories))
    least = memories.now() - DEFAULTS.dream_stale_lock_minutes * 60
    running = [one for one in found if one.status == "running"]
    lost = {one.id for one in running if not alive(one.pid) or one.began < least}
    return [_without_process(memories, one) if one.id in lost else one for one in found]


def _without_process(memories: MemoryStore, dream: Dream) -> Dream:
    if keys := applied_files(memories, dream.id):
        return replace(dream, status="completed", changed=keys)
    if alive(dream.pid):
        return replace(dream, status="dropped", reason="it was not closed in time")
    return replace(dream, status="killed", reason="its process is gone")


def find(memories: MemoryStore, name: str, *standing: Standing) -> Dream:
    """A dream by the beginning of its id, or the newest one that stands so."""
    found = [
        dream
        for dream in list_dreams(memories)
        if dream.id.startswith(name.lower()) and (not standing or dream.status in standing)
    ]
    if not found or (name and len(found) > 1):
        what = " or ".join(standing) or "known"
        many = (
            "Several dreams have ids that begin like this"
            if found
            else f"There is no dream that is {what}"
        )
        code = "ambiguous" if found else ""
        raise NotFound(many, where=name, do="List the dreams to see their ids", code=code)
    return found[0]


def dream_changes(
    memories: MemoryStore, dream: Dream
) -> list[tuple[str, bytes | None, bytes | None]]:
    """The files that a branch changes, each as it was and as it would be; None is not there."""
    with DreamBranch(dreams_folder(memories), dream.id) as branch:
        base = branch.state("base")
        work = branches.without_emptied(branch.state("work"), base)
    return [(key, base.get(key), work.get(key)) for key in branches.changed_keys(base, work)]


def file_diff(key: str, before: bytes | None, after: bytes | None) -> Iterator[str]:
    """One file's unified diff."""
    old, new = ((side or b"").decode("utf-8", "replace") for side in (before, after))
    rows = old.splitlines(), new.splitlines()
    yield from difflib.unified_diff(*rows, f"a/{key}", f"b/{key}", lineterm="")


def accept(
    memories: MemoryStore,
    dream: Dream,
    now: Callable[[], float],
    stale_seconds: float,
    only: Collection[str] | None = None,
) -> DreamChanges:
    """Land a branch that waited, or only some files of it. What is wrong with it was said when
    it ended."""
    if dream.status != "waiting":
        raise InvalidInput(f"This dream is {dream.status}, it does not wait", where=dream.id)
    lock = ConsolidationLock(memories.root, now=now, stale_seconds=stale_seconds)
    taken = lock.take()
    try:
        with DreamBranch(dreams_folder(memories), dream.id) as branch:
            base = branch.state("base")
            work = branches.without_emptied(branch.state("work"), base)
            if only is not None:
                work = _only(base, work, only)
            with lock.landing(taken):
                done = land(memories, branch, base, work, sources_of(dream))
            branch.write(replace(dream, status="completed", changed=done.changed, reason=""))
            branch.drop_copies()
            return done
    finally:
        lock.give_back(taken)


def _only(
    base: branches.FolderFiles, work: branches.FolderFiles, only: Collection[str]
) -> branches.FolderFiles:
    """The work without the changes of files that were not chosen."""
    changed = branches.changed_keys(base, work)
    unknown = [key for key in only if key not in changed]
    if unknown or not only:
        what = "The dream does not change this file" if unknown else "No file was chosen"
        raise InvalidInput(what, where=", ".join(unknown), do="Look at its diff")
    left = {key for key in changed if key not in only}
    kept = {key: data for key, data in work.items() if key not in left}
    return {**kept, **{key: base[key] for key in left if key in base}}


def drop(memories: MemoryStore, dream: Dream) -> None:
    """Throw a branch away; the memory folder is as it was."""
    if not dream.over:
        raise InvalidInput("This dream still runs", where=dream.id, do="Kill it first")
    with DreamBranch(dreams_folder(memories), dream.id) as branch:
        branch.write(replace(dream, status="dropped"))
        branch.drop_copies()


def kill(memories: MemoryStore, dream: Dream) -> None:
    """Ask the process that dreams it to stop; it gives the lock back itself."""
    with DreamBranch(dreams_folder(memories), dream.id) as branch:
        branch.kill()


def undo(memories: MemoryStore, dream: Dream) -> UndoOutcome:
    """Take back what a dream changed; what others wrote since stays."""
    origin = Origin("undo", Trust.USER, agent="user", note=f"dream {dream.id[:8]}")
    done = memories.revert("session", dream.id, origin)
    with DreamBranch(dreams_folder(memories), dream.id) as branch:
        branch.write(replace(dream, status="undone"))
    return done


# --- The rules that a dream may mend or retire: those that something is known against.
#
# What the check and the ledger tell, with the rule's words and counts. A rule that asks or blocks
# is the user's own matter and is not among them, nor is one that is off, or the team's.


MAX_RULES = 12
MAX_WORDS = 300
_DID = {
    MATCHED: "calls matched",
    HELD: "held",
    BROKEN: "made again all the same",
    CHANGED: "kept to",
}


def doubted_rules(
    memories: MemoryStore, root: Path, files: Mapping[str, bytes]
) -> tuple[DoubtedRule, ...]:
    """The rules among these files that are doubted; those that do harm before those that lie
    idle. Where no head names calls and no rule did anything yet, there is nothing to look at."""
    mark = rule.APPLIES.encode()
    if not any(mark in data for data in files.values()) and not RuleStore(memories, root).counts():
        return ()
    rows = [row for row in list_rules(memories, root) if row.doubts]
    rows.sort(key=lambda row: (len(row.doubts) == 1 and bool(row.idle), row.rule.get("file", "")))
    pairs = ((row, files.get(row.rule.get("file", ""))) for row in rows)
    found = (_doubted_rule(row, data) for row, data in pairs if data is not None)
    return tuple(one for one in found if one is not None)[:MAX_RULES]


def _doubted_rule(row: RuleRow, data: bytes) -> DoubtedRule | None:
    file = row.rule.get("file", "")
    one = TopicFile(file, data)
    if rule.level_of(one.front) != REMIND:
        return None
    told = "; ".join(f"{key} {', '.join(texts)}" for key, texts in applies(row.rule).items())
    source = "" if row.rule.get("read") == "head" else " (read from its sentence)"
    words = " ".join((one.body.strip() or sentence_of(one)).split())[:MAX_WORDS]
    return DoubtedRule(file, words, f"{told}{source}" if told else "", _did(row.counts), row.doubts)


def _did(counts: RuleCounts | None) -> str:
    if counts is None:
        return ""
    return ", ".join(f"{told} {counts.of(event)}" for event, told in _DID.items())


MAX_NAMED = 8


def describe_dream(dream: Dream) -> str:
    """How a dream ended, in a sentence that names the files."""
    files = f"{plural(len(dream.changed), 'file')} ({_format_keys(dream.changed)})"
    match dream.status:
        case "completed" if dream.changed:
            more = f"; look at {', '.join(dream.conflicts)}" if dream.conflicts else ""
            left = f"; {plural(len(dream.left_out), 'change')} left out" if dream.left_out else ""
            then = f"; {dream.reason}" if dream.reason else ""
            return f"a dream changed {files}{more}{left}; it can be undone{then}"
        case "completed":
            return "a dream found nothing to change"
        case "waiting":
            return f"a dream would change {files}: look at it, then accept or drop it"
        case "undone" | "dropped":
            return f"a dream was {dream.status}"
        case "running":
            return f"a dream is under way: {dream.phase}"
        case _:
            how = "was killed" if dream.status == "killed" else "failed"
            return f"a dream {how}: {dream.reason or dream.status}"


def _format_keys(keys: Sequence[str]) -> str:
    more = f" and {len(keys) - MAX_NAMED:,} more" if len(keys) > MAX_NAMED else ""
    return ", ".join(keys[:MAX_NAMED]) + more
