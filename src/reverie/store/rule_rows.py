"""The rules of a project one by one: what each speaks of, may do and did, and what is known
against it.

What is told of a rule is told of it as it stands: what calls did before it was last made to name
other calls does not count. A head that cannot be read, a rule that can never hold or would
always, one that another excludes, one that is overridden every time or that no call goes against,
one that asks for more than it may do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from reverie.errors import NotFound, ReverieError, StoreError
from reverie.light import dataclass
from reverie.memory.format.entry import TopicFile
from reverie.memory.rules import reading
from reverie.memory.rules.book import CONDITIONS, conditions_of
from reverie.memory.rules.faults import contradictions, faults_in
from reverie.memory.rules.ledger import MATCHED, RuleCounts
from reverie.memory.rules.match import OFF, CompiledRule
from reverie.store.memories import Memories
from reverie.store.rules import RuleStore
from reverie.text.format import utc_day

IDLE_DAYS = 90
"""Days without a call that a rule speaks of, from which on that is told."""
OVERRIDDEN = "held and overridden every time"
_IDLE = "either it is kept, or it names the wrong calls (`reverie memory rules test`)"


@dataclass(frozen=True, slots=True)
class RuleRow:
    """One rule as it is shown."""

    rule: CompiledRule
    counts: RuleCounts | None = None
    doubts: tuple[str, ...] = ()  # what is known against it
    notes: tuple[str, ...] = ()  # the same and what else a person should know, with what to do
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
        file = rule.get("file", "")
        rows.append(_row(memories, rule, counts.get(file), against.get(file, ())))
    known = {row.rule.get("file") for row in rows}
    return rows + [row for row in _faulty(memories) if row.rule.get("file") not in known]


def _row(
    memories: Memories, rule: CompiledRule, counts: RuleCounts | None, against: Sequence[str]
) -> RuleRow:
    doubts = [f"contradicts {other}" for other in against]
    notes = list(doubts)
    if _is_overridden(memories, rule, counts):
        doubts.append(OVERRIDDEN)
        notes.append(f"{OVERRIDDEN}: mend it, raise its level, or turn it off")
    notes += _asks(memories, rule)
    since, idle = _idle(memories, rule, counts), ""
    if since:
        doubts.append(f"no call has gone against it since {since}")
        idle = f"{doubts[-1]}: {_IDLE}"
        notes.append(idle)
    return RuleRow(rule, counts, tuple(doubts), tuple(notes), idle)


def _asks(memories: Memories, rule: CompiledRule) -> list[str]:
    """What is told of a rule whose head asks for more than it may do."""
    file = rule.get("file", "")
    try:
        asked = reading.level_of(memories.folder.read(file).front)
    except (NotFound, StoreError):
        return []
    if asked == rule.get("level"):
        return []
    do = f"`reverie memory rules level {file} {asked}`"
    return [f"asks to {asked}, and you have not said so: {do}"]


def _is_overridden(memories: Memories, rule: CompiledRule, counts: RuleCounts | None) -> bool:
    if counts is None or not counts.is_overridden:
        return False
    since, named_others = _named_since(memories, rule.get("file", ""))
    return not named_others or counts.after(since).is_overridden


def _idle(memories: Memories, rule: CompiledRule, counts: RuleCounts | None) -> str:
    """The day since which no call has gone against a rule, where that is long ago."""
    days: Mapping[str, Mapping[str, int]] = counts.days if counts is not None else {}
    last = max((day for day, did in days.items() if did.get(MATCHED)), default="")
    before = utc_day(memories.now() - IDLE_DAYS * 86_400)
    file = rule.get("file", "")
    if rule.get("level") == OFF or last > before or not _is_older(memories, file, before):
        return ""
    began, _ = _named_since(memories, file)
    return max(last, began) if began and began <= before else ""


def _is_older(memories: Memories, key: str, day: str) -> bool:
    """Whether a memory was there on a day; of a young one no version has to be read."""
    try:
        return any(utc_day(one.at) <= day for one in memories.history.log(key)[:1])
    except ReverieError:
        return False


def _named_since(memories: Memories, key: str) -> tuple[str, bool]:
    """The day since which a memory names the calls it names, "" where nobody knows; and whether
    it named others before."""
    day, others, known = "", False, dict[str, Any]()
    try:
        for version in memories.history.log(key):
            data = memories.history.content(version.after) if version.after else b""
            named = conditions_of(TopicFile(key, data))
            if not day or named != known:
                day, others, known = utc_day(version.at), bool(day), named
    except ReverieError:
        return "", False
    return day, others


def _faulty(memories: Memories) -> list[RuleRow]:
    found: list[RuleRow] = []
    for key in list(memories.folder.keys()):
        try:
            one = memories.folder.read(key)
        except (NotFound, StoreError):
            continue
        faults = tuple(faults_in(one.front, one.type))
        if faults:
            rule: CompiledRule = {"file": key, "name": one.name, "level": "off", "read": "head"}
            found.append(RuleRow(rule, None, faults, faults))
    return found
