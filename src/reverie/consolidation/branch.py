"""A dream's branch: what it changed, what is wrong with it, and its merge with later writes.

Three states of a folder as plain maps from key to bytes: `base`, which the dream began with;
`work`, what it made of it; `here`, what the folder holds by now. `judged_once` says why `work` may
not be applied: a fact is gone without a reason that holds, the index is broken or over its limits,
a secret or an instruction came in, the folder grew out of proportion, a file is none of ours, a
rule was changed. `merge_work` merges it with what others wrote. Nothing here writes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

from reverie.consolidation.facts import Fact, LostFact, fact_verdict, facts_of
from reverie.consolidation.folder import CheckInput, TrustIn
from reverie.consolidation.reasons import RemovalReason, Tombstone
from reverie.errors import SecretFound
from reverie.light import dataclass
from reverie.rules import rule
from reverie.secrets.scanner import check_clean, tellable
from reverie.topics import index as indexes
from reverie.topics import manifest
from reverie.topics.entry import INDEX, TopicFile, decode_text, index_of, is_index, is_topic
from reverie.topics.frontmatter import parse_frontmatter as parse_head
from reverie.topics.manifest import IndexLimits
from reverie.topics.merge import merge_file
from reverie.topics.trust import CommandEvidence, Trust, reads_like_instruction

FolderFiles: TypeAlias = Mapping[str, bytes]
FaultKind: TypeAlias = Literal[
    "fact lost", "index", "limits", "secret", "instruction", "size", "name", "log", "rule"
]
FROM = 0.6
"""Share of a line's words that a line of the folder must have to be what it was made from; .4 to .8
judge all 35 cases of `test_dream_changes.py` and `test_dream_rules.py` right."""
_HOSTILE = frozenset({"override", "secrecy", "role", "exfiltration", "secrets", "hidden"})
GROWS = 1.5
"""How many times larger a dream may leave the folder, beside `ROOM` bytes."""
ROOM = 16_384


@dataclass(frozen=True, slots=True)
class BranchFault:
    """One reason why a dream's change is not applied."""

    kind: FaultKind
    file: str
    text: str
    line: int = 0
    about: str = ""  # the memory that a fault of an index is about

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.line else self.file
        return f"{self.kind}: {where}: {self.text}"


def without_emptied(work: FolderFiles, base: FolderFiles) -> dict[str, bytes]:
    """Return a dream's folder, where a file it emptied counts as removed."""
    return {key: data for key, data in work.items() if data.strip() or not base.get(key, data)}


def changed_keys(base: FolderFiles, work: FolderFiles) -> tuple[str, ...]:
    """Return the files that differ, sorted."""
    return tuple(key for key in sorted({*base, *work}) if base.get(key) != work.get(key))


@dataclass(frozen=True, slots=True)
class BranchDiff:
    """What one look at a dream's work finds."""

    faults: tuple[BranchFault, ...] = ()
    tombstones: tuple[Tombstone, ...] = ()


def judged_once(
    given: CheckInput,
    work: FolderFiles,
    reasons: Sequence[RemovalReason] = (),
    doubted: Collection[str] = (),
) -> BranchDiff:
    """Return everything that is wrong with a dream's work on a folder, and what went for a reason.
    `doubted` are the rules whose `applies_to` it may change."""
    base, trust = given.files, given.trust
    keys = changed_keys(base, work)
    if not keys:
        return BranchDiff()
    facts = fact_verdict(base, work, reasons, now=given.now)
    wrong = (
        *_names(base, work, keys),
        *(_loss_fault(base, one) for one in facts.lost),
        *_indexes(base, work, given.limits),
        *_brought_in(base, work, keys, trust),
        *_size(base, work),
        *(BranchFault("rule", *one) for one in _rule_losses(base, work, doubted, trust)),
    )
    return BranchDiff(wrong, facts.tombstones)


def _loss_fault(base: FolderFiles, one: LostFact) -> BranchFault:
    text = f"{one.text[:160]} ({one.note})"
    pointers = indexes.parse_index(base[one.file]).pointers if is_index(one.file) else ()
    key = next((pointer.key for pointer in pointers if pointer.number == one.line), "")
    about = one.file.removesuffix(INDEX) + key if key else ""
    return BranchFault("fact lost", one.file, text, one.line, about)


def _names(base: FolderFiles, work: FolderFiles, keys: Sequence[str]) -> Iterator[BranchFault]:
    """Files that are none of ours, and those that only got another name: whatever points to the
    old one would lose it."""
    bodies = {_body(base[key]): key for key in keys if key in base and key not in work}
    for key in keys:
        if key.startswith("logs/"):
            yield BranchFault("log", key, "a daily log is never rewritten")
        elif key not in base and not (is_topic(key) or is_index(key)):
            yield BranchFault("name", key, "this is no memory file")
        elif key in work and is_topic(key) and _lost_its_head(base.get(key), work[key]):
            yield BranchFault("name", key, "the head with name, description and type is missing")
        if key not in base and (old := bodies.get(_body(work[key]), "")):
            yield BranchFault("name", key, f"this is {old} by another name; keep the name it has")


def _body(data: bytes) -> bytes:
    return data[parse_head(data).body :].strip() or data


def _lost_its_head(before: bytes | None, after: bytes) -> bool:
    had = before is None or parse_head(before).present
    return had and not parse_head(after).present


def _indexes(base: FolderFiles, work: FolderFiles, limits: IndexLimits) -> Iterator[BranchFault]:
    """New faults of indexes. A line for each memory is never too much: over the limits the index
    is sent ranked. What else a dream adds may not bring it there."""
    for key in sorted(key for key in {*base, *work} if is_index(key)):
        before, after = base.get(key, b""), work.get(key, b"")
        if before == after and _below(base, key) == _below(work, key):
            continue
        known = {row for _, row in _index_faults(key, before, base, limits)}
        for fault, row in _index_faults(key, after, work, limits):
            if row not in known:
                told = f"{fault.key}: {fault.reason}" if fault.key else fault.reason
                about = key.removesuffix(INDEX) + fault.key if fault.key else ""
                yield BranchFault("index", key, told, fault.line, about)
        if manifest.limits_hit(after, limits) and not manifest.limits_hit(before, limits):
            pointers = indexes.parse_index(after).pointers
            known_rows, numbers = before.splitlines(), {one.number for one in pointers}
            rows = (row for n, row in enumerate(after.splitlines(), 1) if n not in numbers)
            other = any(row.strip() and row not in known_rows for row in rows)
            if other or len({one.key for one in pointers}) < len(pointers):
                told = f"{len(after):,} bytes are over what is sent of an index"
                yield BranchFault("limits", key, told)


def _below(state: FolderFiles, index: str) -> frozenset[str]:
    return frozenset(key for key in state if is_topic(key) and index_of(key) == index)


def _index_faults(
    key: str, data: bytes, state: FolderFiles, limits: IndexLimits
) -> Iterator[tuple[indexes.IndexFault, tuple[str, str, bytes]]]:
    """What is wrong with an index, each with what tells it from another fault."""
    below, rows = key.removesuffix(INDEX), data.splitlines()
    own = {name.removeprefix(below) for name in _below(state, key)}
    for fault in indexes.check(indexes.parse_index(data), own, width=limits.width):
        yield fault, (fault.kind, fault.key, rows[fault.line - 1] if fault.line else b"")


def _brought_in(
    base: FolderFiles, work: FolderFiles, keys: Sequence[str], trust: TrustIn
) -> Iterator[BranchFault]:
    """Secrets, and text that reads like an instruction, in lines that are new to the folder. A
    rule made of one that the user or the agent wrote is judged by that one."""
    known = {line for data in base.values() for line in data.splitlines()}
    old = [one for key, data in base.items() for one in facts_of(decode_text(data), key)]
    said = {one.plain for one in old}
    for key in keys:
        fresh = b"\n".join(line for line in work.get(key, b"").splitlines() if line not in known)
        try:
            check_clean(fresh, key)
        except SecretFound as error:
            yield BranchFault("secret", tellable(key, fresh) or "a file", error.what, 0, key)
        seen = reads_like_instruction(fresh.decode("utf-8", "replace"))
        every = facts_of(decode_text(work.get(key, b"")), key)
        novel = [one for one in every if one.plain not in said]
        rules = reads_like_instruction("\n".join(one.text for one in novel))
        if rules and not any(one.rule in _HOSTILE for one in rules):
            rules = tuple(rule for one in novel for rule in _unfounded(one, old, trust))
        for found in (*(one for one in seen if one.rule == "hidden"), *rules):
            yield BranchFault("instruction", key, f"{found.rule}: {found.words[:80]}")


def _unfounded(one: Fact, old: Sequence[Fact], trust: TrustIn) -> tuple[CommandEvidence, ...]:
    """Rules in a new line that no line of a trusted file was the source of."""
    rules, words = reads_like_instruction(one.text), set(one.plain.split())
    founded = rules and any(
        len(words & set(source.plain.split())) >= FROM * len(words)
        and trust(source.file) is not Trust.UNTRUSTED
        for source in old
    )
    return () if founded else rules


def _size(base: FolderFiles, work: FolderFiles) -> Iterator[BranchFault]:
    before, after = (sum(map(len, state.values())) for state in (base, work))
    if after > before * GROWS + ROOM:
        yield BranchFault("size", ".", f"the folder would grow from {before:,} to {after:,} bytes")


def _rule_losses(
    base: FolderFiles, work: FolderFiles, doubted: Collection[str], trust: TrustIn
) -> Iterator[tuple[str, str]]:
    """What a dream does to rules on calls that it may not. One that asks or blocks at the user's
    word stays as it is. Of any other `level` stays, and `applies_to` changes only where something
    is known against the rule; a file that goes leaves its `applies_to` to another."""
    marks = (rule.APPLIES.encode(), rule.LEVEL.encode())
    for key, before in base.items():
        after = work.get(key)
        told = any(mark in before or mark in (after or b"") for mark in marks)
        if after == before or not told or not is_topic(key):
            continue
        was = TopicFile(key, before)
        if rule.is_firm(was.front) and trust(key) is not Trust.UNTRUSTED:
            yield key, "it asks or blocks, which only the user changes: put the file back"
        elif after is None:
            head = rule.read(was.front)
            others = (TopicFile(k, data).front for k, data in work.items() if marks[0] in data)
            if key not in doubted and head.given and head not in map(rule.read, others):
                yield key, "it says which calls it is about; what takes its place must say the same"
        else:
            yield from ((key, text) for text in _rule_faults(was, TopicFile(key, after), doubted))


def _rule_faults(was: TopicFile, now: TopicFile, doubted: Collection[str]) -> Iterator[str]:
    if was.front.get(rule.LEVEL) != now.front.get(rule.LEVEL):
        yield "`level` is the user's to set: put it back as it was"
    if rule.read(was.front) == rule.read(now.front):
        return
    if was.key not in doubted:
        yield "nothing is known against its `applies_to`: put it back as it was"
    for fault in rule.faults_in(now.front, now.type):
        yield f"`applies_to` cannot be used so: {fault}"


# Merging with what others wrote


@dataclass(frozen=True, slots=True)
class MergedBranch:
    """Each file's new bytes, None for a removal; and what a person should look at."""

    changes: Mapping[str, bytes | None]
    conflicts: tuple[str, ...] = ()


def merge_work(base: FolderFiles, work: FolderFiles, here: FolderFiles) -> MergedBranch:
    """Merge a dream's work with what the folder holds by now. Nobody's words are dropped: what
    was changed on both sides has both, and what was edited meanwhile is not removed."""
    changes: dict[str, bytes | None] = {}
    conflicts: list[str] = []
    for key in changed_keys(base, work):
        old, mine, now = base.get(key), work.get(key), here.get(key)
        if now == mine:
            continue
        if now == old:
            changes[key] = mine
        elif mine is None or now is None:
            conflicts.append(key)  # changed on one side, removed on the other: it stays as it is
            if now is None and mine is not None:
                changes[key] = mine
        else:
            found = merge_file(key, *map(_text, (old or b"", mine, now)))
            changes[key] = found.text.encode("utf-8", "surrogateescape")
            conflicts += [key] if found.conflicts else []
    _keep_pointers(changes, here)
    return MergedBranch(changes, tuple(conflicts))


def _keep_pointers(changes: dict[str, bytes | None], here: FolderFiles) -> None:
    """A file that stays keeps its pointer, though the dream took it out."""
    for key, given in list(changes.items()):
        if not is_index(key) or given is None:
            continue
        data = given
        for pointer in indexes.parse_index(here.get(key, b"")).pointers:
            name = key.removesuffix(INDEX) + pointer.key
            stays = is_topic(name) and name in here and name not in changes
            if pointer.key and stays and indexes.parse_index(data).find(pointer.key) is None:
                data = indexes.put(data, pointer.key, pointer.title, pointer.hook)
        changes[key] = data


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
