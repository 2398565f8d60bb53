"""The rules that a dream may mend or retire: those that something is known against.

What the check and the ledger tell, with the rule's words and counts. A rule that asks or blocks is
the user's own matter and is not among them, nor is one that is off, or the team's.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from reverie.memory.format.entry import TopicFile
from reverie.memory.rules import reading
from reverie.memory.rules.book import sentence_of
from reverie.memory.rules.ledger import BROKEN, CHANGED, HELD, MATCHED, RuleCounts
from reverie.memory.rules.match import REMIND
from reverie.store.memories import Memories
from reverie.store.rule_rows import RuleRow, applies, list_rules
from reverie.store.rules import RuleStore
from reverie.transcript.tasks import DoubtedRule

MAX_RULES = 12
MAX_WORDS = 300
_DID = {
    MATCHED: "calls matched",
    HELD: "held",
    BROKEN: "made again all the same",
    CHANGED: "kept to",
}


def doubted(memories: Memories, root: Path, files: Mapping[str, bytes]) -> tuple[DoubtedRule, ...]:
    """The rules among these files that are doubted; those that do harm before those that lie
    idle. Where no head names calls and no rule did anything yet, there is nothing to look at."""
    mark = reading.APPLIES.encode()
    if not any(mark in data for data in files.values()) and not RuleStore(memories, root).counts():
        return ()
    rows = [row for row in list_rules(memories, root) if row.doubts]
    rows.sort(key=lambda row: (len(row.doubts) == 1 and bool(row.idle), row.rule.get("file", "")))
    pairs = ((row, files.get(row.rule.get("file", ""))) for row in rows)
    found = (_doubted(row, data) for row, data in pairs if data is not None)
    return tuple(one for one in found if one is not None)[:MAX_RULES]


def _doubted(row: RuleRow, data: bytes) -> DoubtedRule | None:
    file = row.rule.get("file", "")
    one = TopicFile(file, data)
    if reading.level_of(one.front) != REMIND:
        return None
    told = "; ".join(f"{key} {', '.join(texts)}" for key, texts in applies(row.rule).items())
    source = "" if row.rule.get("read") == "head" else " (read from its sentence)"
    words = " ".join((one.body.strip() or sentence_of(one)).split())[:MAX_WORDS]
    return DoubtedRule(file, words, f"{told}{source}" if told else "", _did(row.counts), row.doubts)


def _did(counts: RuleCounts | None) -> str:
    if counts is None:
        return ""
    return ", ".join(f"{told} {counts.of(event)}" for event, told in _DID.items())
