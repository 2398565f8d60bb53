"""A dream's branch: difference, faults, merge.

A dream's branch: what it changed, what is wrong with it, and how it joins what came meanwhile.

Three states of a folder as plain maps from key to bytes: `base`, which the dream began with;
`work`, what it made of it; `here`, what the folder holds by now. `faults` says why `work` may not
land: a fact is gone without a reason that holds, the index is broken or over its limits, a secret
or an instruction came in, the folder grew out of proportion, a file is none of ours. `merge_work`
merges it with what others wrote. Nothing is decided by a model, and nothing here writes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

from reverie.consolidation.facts import Fact, LostFact, fact_verdict, facts_of
from reverie.consolidation.folder import TrustIn, by_agent
from reverie.consolidation.reasons import RemovalReason, Tombstone
from reverie.errors import SecretFound
from reverie.light import dataclass
from reverie.rules import rule
from reverie.rules.rule import faults_in
from reverie.secrets.scanner import check_clean, tellable
from reverie.topics import entry as entries
from reverie.topics import index as indexes
from reverie.topics import manifest
from reverie.topics.entry import TopicFile, decode_text, is_index, is_topic
from reverie.topics.frontmatter import parse_frontmatter as parse_head
from reverie.topics.manifest import IndexLimits
from reverie.topics.merge import merge_file
from reverie.topics.trust import CommandEvidence, Trust, reads_like_instruction

FolderFiles: TypeAlias = Mapping[str, bytes]
FaultKind: TypeAlias = Literal[
    "fact lost", "index", "limits", "secret", "instruction", "size", "name", "log", "rule"
]
FROM = 0.6
"""Share of a line's words that a line of the folder must have to be what it was made from."""
_HOSTILE = frozenset({"override", "secrecy", "role", "exfiltration", "secrets", "hidden"})
GROWS = 1.5
"""How many times larger a dream may leave the folder, beside a little room."""
ROOM = 16_384


@dataclass(frozen=True, slots=True)
class BranchFault:
    """One thing that keeps a dream from landing."""

    kind: FaultKind
    file: str
    text: str
    line: int = 0
    about: str = ""  # the memory that a fault of an index is about

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.line else self.file
        return f"{self.kind}: {where}: {self.text}"


def without_emptied(work: FolderFiles, base: FolderFiles) -> dict[str, bytes]:
    """A dream's folder, where a file it emptied counts as removed."""
    return {key: data for key, data in work.items() if data.strip() or not base.get(key, data)}


def changed_keys(base: FolderFiles, work: FolderFiles) -> tuple[str, ...]:
    """Files that differ, sorted."""
    keys = sorted({*base, *work})
    return tuple(key for key in keys if base.get(key) != work.get(key))


@dataclass(frozen=True, slots=True)
class BranchDiff:
    """What one look at a dream's work finds."""

    faults: tuple[BranchFault, ...] = ()
    tombstones: tuple[Tombstone, ...] = ()


def judged_once(
    base: FolderFiles,
    work: FolderFiles,
    reasons: Sequence[RemovalReason] = (),
    *,
    limits: IndexLimits,
    now: float,
    trust: TrustIn = by_agent,
    doubted: Collection[str] = (),
) -> BranchDiff:
    """Everything that is wrong with a dream's work, and what went for a reason. `doubted` are
    the rules whose heads it may change."""
    keys = changed_keys(base, work)
    if not keys:
        return BranchDiff()
    facts = fact_verdict(base, work, reasons, now=now)
    wrong = (
        *_names(base, work, keys),
        *(_loss_fault(base, one) for one in facts.lost),
        *_indexes(base, work, limits),
        *_brought_in(base, work, keys, trust),
        *_size(base, work),
        *(BranchFault("rule", *one) for one in rule_losses(base, work, doubted, trust)),
    )
    return BranchDiff(wrong, facts.tombstones)


def _loss_fault(base: FolderFiles, one: LostFact) -> BranchFault:
    text = f"{one.text[:160]} ({one.note})"
    about = ""
    if is_index(one.file):
        found = [p for p in indexes.parse_index(base[one.file]).pointers if p.number == one.line]
        about = one.file.removesuffix(entries.INDEX) + found[0].key if found else ""
    return BranchFault("fact lost", one.file, text, one.line, about)


def _names(base: FolderFiles, work: FolderFiles, keys: Sequence[str]) -> Iterator[BranchFault]:
    for key in keys:
        if key.startswith("logs/"):
            yield BranchFault("log", key, "a daily log is never rewritten")
        elif key not in base and not (entries.is_topic(key) or is_index(key)):
            yield BranchFault("name", key, "this is no memory file")
        elif key in work and entries.is_topic(key) and _lost_its_head(base.get(key), work[key]):
            yield BranchFault("name", key, "the head with name, description and type is missing")
    yield from _renames(base, work, keys)


def _renames(base: FolderFiles, work: FolderFiles, keys: Sequence[str]) -> Iterator[BranchFault]:
    """A file that only got another name: whatever points to the old one would lose it."""
    bodies = {_body(base[key]): key for key in keys if key in base and key not in work}
    for key in keys:
        if key not in base and bodies.get(_body(work[key]), ""):
            old = bodies[_body(work[key])]
            yield BranchFault("name", key, f"this is {old} by another name; keep the name it has")


def _body(data: bytes) -> bytes:
    return data[parse_head(data).body :].strip() or data


def _lost_its_head(before: bytes | None, after: bytes) -> bool:
    had = before is None or parse_head(before).present
    return had and not parse_head(after).present


def _indexes(base: FolderFiles, work: FolderFiles, limits: IndexLimits) -> Iterator[BranchFault]:
    for key in sorted(key for key in {*base, *work} if is_index(key)):
        before, after = base.get(key, b""), work.get(key, b"")
        if before == after and _below(base, key) == _below(work, key):
            continue
        known = {row for _, row in _index_faults(key, before, base, limits)}
        for fault, row in _index_faults(key, after, work, limits):
            if row not in known:
                told = f"{fault.key}: {fault.reason}" if fault.key else fault.reason
                about = key.removesuffix(entries.INDEX) + fault.key if fault.key else ""
                yield BranchFault("index", key, told, fault.line, about)
        if manifest.limits_hit(after, limits) and not manifest.limits_hit(before, limits):
            yield from _limits(key, before, after)


def _limits(key: str, before: bytes, after: bytes) -> Iterator[BranchFault]:
    """A line for each memory is never too much: over the limits the index is sent ranked. What
    else a dream adds may not bring it there."""
    pointers = indexes.parse_index(after).pointers
    lines = {one.number for one in pointers}
    known = frozenset(before.splitlines())
    other = [
        row
        for number, row in enumerate(after.splitlines(), 1)
        if number not in lines and row.strip() and row not in known
    ]
    if other or len({one.key for one in pointers}) < len(pointers):
        yield BranchFault("limits", key, f"{len(after):,} bytes are over what is sent of an index")


def _below(state: FolderFiles, index: str) -> frozenset[str]:
    return frozenset(k for k in state if entries.is_topic(k) and entries.index_of(k) == index)


def _index_faults(
    key: str, data: bytes, state: FolderFiles, limits: IndexLimits
) -> Iterator[tuple[indexes.IndexFault, tuple[str, str, bytes]]]:
    """What is wrong with an index, each with what tells it from another fault."""
    below, rows = key.removesuffix(entries.INDEX), data.splitlines()
    own = {name.removeprefix(below) for name in _below(state, key)}
    for fault in indexes.check(indexes.parse_index(data), own, width=limits.width):
        row = rows[fault.line - 1] if fault.line else b""
        yield fault, (fault.kind, fault.key, row)


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
        every = facts_of(decode_text(work.get(key, b"")), key)
        novel = "\n".join(one.text for one in every if one.plain not in said)
        hidden = [
            one
            for one in reads_like_instruction(fresh.decode("utf-8", "replace"))
            if one.rule == "hidden"
        ]
        rules = reads_like_instruction(novel)
        if rules and not any(one.rule in _HOSTILE for one in rules):
            rules = _unfounded_rules([one for one in every if one.plain not in said], old, trust)
        for found in (*hidden, *rules):
            yield BranchFault("instruction", key, f"{found.rule}: {found.words[:80]}")


def _unfounded_rules(
    novel: Sequence[Fact], old: Sequence[Fact], trust: TrustIn
) -> tuple[CommandEvidence, ...]:
    """Rules among new lines that no line of a trusted file was the source of."""
    found: list[CommandEvidence] = []
    for one in novel:
        rules = reads_like_instruction(one.text)
        words = set(one.plain.split())
        if rules and not any(
            len(words & set(source.plain.split())) >= FROM * len(words)
            and trust(source.file) is not Trust.UNTRUSTED
            for source in old
        ):
            found += rules
    return tuple(found)


def _size(base: FolderFiles, work: FolderFiles) -> Iterator[BranchFault]:
    before, after = (sum(map(len, state.values())) for state in (base, work))
    if after > before * GROWS + ROOM:
        yield BranchFault("size", ".", f"the folder would grow from {before:,} to {after:,} bytes")


# --- joining


@dataclass(frozen=True, slots=True)
class MergedBranch:
    """What lands: each file's new bytes, None for a removal; and what a person should look at."""

    changes: Mapping[str, bytes | None]
    conflicts: tuple[str, ...] = ()


def merge_work(base: FolderFiles, work: FolderFiles, here: FolderFiles) -> MergedBranch:
    """A dream's work, merged with what the folder holds by now. Nobody's words are dropped:
    what was changed on both sides has both, and what was edited meanwhile is not removed."""
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
            found = merge_file(key, _text(old or b""), _text(mine), _text(now))
            changes[key] = found.text.encode("utf-8", "surrogateescape")
            conflicts += [key] if found.conflicts else []
    _keep_pointers(changes, here)
    return MergedBranch(changes, tuple(conflicts))


def _keep_pointers(changes: dict[str, bytes | None], here: FolderFiles) -> None:
    """A file that stays keeps its pointer, though the dream took it out."""
    kept = {k for k in here if entries.is_topic(k) and changes.get(k, here[k]) is not None}
    for key in [k for k, data in changes.items() if is_index(k) and data is not None]:
        data, below = changes[key] or b"", key.removesuffix(entries.INDEX)
        before = indexes.parse_index(here.get(key, b""))
        for pointer in before.pointers:
            name = below + pointer.key
            gone = indexes.parse_index(data).find(pointer.key) is None
            if pointer.key and gone and name in kept and name not in changes:
                data = indexes.put(data, pointer.key, pointer.title, pointer.hook)
        changes[key] = data


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


# --- What a dream may not do to rules on calls: the judge of their heads.
#
# A memory that asks or blocks at the user's word stays as it is, byte for byte. Of any other,
# `level` stays as it is, and `applies_to` changes only where something is known against the rule,
# into what can be used. A file that goes leaves its `applies_to` to another, unless it was in
# doubt. Words are judged elsewhere, as those of every memory. Pure.


_MARKS = (rule.APPLIES.encode(), rule.LEVEL.encode())
RuleLoss: TypeAlias = tuple[str, str]
"""A file, and what is wrong with what became of its rule."""


def rule_losses(
    base: Mapping[str, bytes],
    work: Mapping[str, bytes],
    doubted: Collection[str],
    trust: Callable[[str], Trust],
) -> Iterator[RuleLoss]:
    """What a dream's work does to rules that it may not."""
    for key, before in base.items():
        after = work.get(key)
        told = any(mark in before or mark in (after or b"") for mark in _MARKS)
        if after == before or not told or not is_topic(key):
            continue
        was = TopicFile(key, before)
        if rule.is_firm(was.front) and trust(key) is not Trust.UNTRUSTED:
            yield key, "it asks or blocks, which only the user changes: put the file back"
        elif after is None:
            if key not in doubted and not _stands(was, work):
                yield key, "it says which calls it is about; what takes its place must say the same"
        else:
            yield from ((key, text) for text in _rule_faults(was, TopicFile(key, after), doubted))


def _rule_faults(was: TopicFile, now: TopicFile, doubted: Collection[str]) -> Iterator[str]:
    if was.front.get(rule.LEVEL) != now.front.get(rule.LEVEL):
        yield "`level` is the user's to set: put it back as it was"
    old, new = rule.read(was.front), rule.read(now.front)
    if old == new:
        return
    if was.key not in doubted:
        yield "nothing is known against its `applies_to`: put it back as it was"
    for fault in faults_in(now.front, now.type):
        yield f"`applies_to` cannot be used so: {fault}"


def _stands(was: TopicFile, work: Mapping[str, bytes]) -> bool:
    """Whether another file is about the same calls as one that goes, if it is about any."""
    head = rule.read(was.front)
    if not head.given:
        return True
    mark = rule.APPLIES.encode()
    others = (TopicFile(key, data) for key, data in work.items() if mark in data)
    return any(rule.read(one.front) == head for one in others)
