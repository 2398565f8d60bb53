"""The rules of a project, as doors show them: what each speaks of, what it may do, what it did.

What is wrong with one is told with it: a head that cannot be read, a rule that can never hold or
would always, one that another contradicts, one that asks for more than it may do.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from reverie.errors import InvalidInput, NotFound, StoreError
from reverie.light import dataclass
from reverie.memory.rules import reading
from reverie.memory.rules.faults import contradictions, faults_in
from reverie.memory.rules.ledger import MATCHED, RuleCounts
from reverie.memory.rules.match import LEVELS, OFF, REMIND, CompiledRule
from reverie.memory.versions import Origin
from reverie.store.memories import Memories
from reverie.store.rules import RuleStore

IDLE_DAYS = 90
"""Days without a call that a rule speaks of, from which on that is told."""
CONDITIONS = ("tools", "commands", "has", "lacks", "paths", "spared", "types", "words")


@dataclass(frozen=True, slots=True)
class RuleRow:
    """One rule as it is shown."""

    rule: CompiledRule
    counts: RuleCounts | None = None
    notes: tuple[str, ...] = ()
    idle: str = ""  # since when no call was matched, where that is long ago; one of the notes

    def value(self) -> dict[str, Any]:
        rule = self.rule
        return {
            "file": rule.get("file", ""),
            "name": rule.get("name", ""),
            "level": rule.get("level", ""),
            "source": rule.get("source", ""),
            "said": rule.get("said", 1),
            "read_from": rule.get("read", ""),
            "applies_to": applies(rule),
            "counts": self.counts.value() if self.counts else {},
            "notes": list(self.notes),
        }


def applies(rule: CompiledRule) -> dict[str, list[str]]:
    """What a rule speaks of, in words."""
    found: dict[str, list[str]] = {}
    for key in CONDITIONS:
        value = rule.get(key)
        if value:
            found[key] = [_words(one) for one in value]  # pyright: ignore[reportGeneralTypeIssues, reportUnknownVariableType, reportUnknownArgumentType]
    return found


def _words(value: Any) -> str:
    if isinstance(value, str):
        return value
    parts: list[Any] = list(value)
    if parts and isinstance(parts[0], str):
        return " ".join(parts)
    return " or ".join(_words(one) for one in parts)


def list_rules(memories: Memories, root: Path) -> list[RuleRow]:
    """Every rule, and every memory whose head speaks of calls and cannot be used."""
    store = RuleStore(memories, root)
    book, counts = store.book(), store.counts()
    against = contradictions(book.rules)
    rows: list[RuleRow] = []
    for rule in book.rules:
        did = counts.get(rule.get("file", ""))
        idle = _idle(memories, rule, did)
        notes = [*_notes(memories, rule, did, against), *filter(None, (idle,))]
        rows.append(RuleRow(rule, did, tuple(notes), idle))
    known = {row.rule.get("file") for row in rows}
    return rows + [row for row in _faulty(memories) if row.rule.get("file") not in known]


def _notes(
    memories: Memories,
    rule: CompiledRule,
    counts: RuleCounts | None,
    against: dict[str, list[str]],
) -> list[str]:
    file = rule.get("file", "")
    found = [f"contradicts {other}" for other in against.get(file, ())]
    if counts is not None and counts.note:
        found.append(counts.note)
    try:
        asked = reading.level_of(memories.folder.read(file).front)
    except (NotFound, StoreError):
        return found
    if asked != rule.get("level"):
        do = f"`reverie memory rules level {file} {asked}`"
        found.append(f"asks to {asked}, and you have not said so: {do}")
    return found


def _idle(memories: Memories, rule: CompiledRule, counts: RuleCounts | None) -> str:
    """What is told of a rule that no call has gone against for long."""
    days: Mapping[str, Mapping[str, int]] = counts.days if counts is not None else {}
    last = max((day for day, did in days.items() if did.get(MATCHED)), default="")
    since = _day(memories.now() - IDLE_DAYS * 86_400)
    if rule.get("level") == OFF or last > since:
        return ""
    try:
        began = next((_day(one.at) for one in memories.history.log(rule.get("file", ""))), "")
    except (NotFound, StoreError):
        return ""
    if not began or began > since:
        return ""
    told = f"no call has gone against it since {last or began}"
    return f"{told}: either it is kept, or it names the wrong calls (`reverie memory rules test`)"


def _day(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d")


def _faulty(memories: Memories) -> list[RuleRow]:
    found: list[RuleRow] = []
    for key in list(memories.folder.keys()):
        try:
            one = memories.folder.read(key)
        except (NotFound, StoreError):
            continue
        faults = faults_in(one.front, one.type)
        if faults:
            rule: CompiledRule = {"file": key, "name": one.name, "level": "off", "read": "head"}
            found.append(RuleRow(rule, None, tuple(faults)))
    return found


def matches(
    memories: Memories, root: Path, cwd: Path, tool: str, given: object
) -> list[CompiledRule]:
    """The rules that a call would break, were it made now."""
    book = RuleStore(memories, root).book()
    return book.look(
        tool,
        given,
        cwd=os.path.realpath(cwd),
        root=os.path.realpath(root),
        user=os.path.expanduser("~"),
        resolve=os.path.realpath,
    )


def set_level(memories: Memories, name: str, level: str, origin: Origin) -> str:
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
