"""The rules that a dream may mend or retire: those that something is known against.

What the check and the ledger tell, with the rule's words and counts. A rule that asks or blocks is
the user's own matter and is not among them, nor is one that is off, or the team's.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from reverie.errors import NotFound, StoreError
from reverie.memory.rules import reading
from reverie.memory.rules.book import sentence_of
from reverie.memory.rules.ledger import BROKEN, CHANGED, HELD, MATCHED, RuleCounts
from reverie.memory.rules.match import REMIND
from reverie.store.memories import Memories
from reverie.store.rule_rows import RuleRow, applies, list_rules
from reverie.transcript.tasks import DoubtedRule

MAX_RULES = 12
MAX_WORDS = 300
_DID = {
    MATCHED: "calls matched",
    HELD: "held",
    BROKEN: "made again all the same",
    CHANGED: "kept to",
}


def doubted(memories: Memories, root: Path, keys: Collection[str]) -> tuple[DoubtedRule, ...]:
    """The rules among these files that are doubted; those that do harm before those that lie
    idle."""
    rows = [row for row in list_rules(memories, root) if row.doubts]
    rows.sort(key=lambda row: (len(row.doubts) == 1 and bool(row.idle), row.rule.get("file", "")))
    found = (_doubted(memories, row) for row in rows if row.rule.get("file") in keys)
    return tuple(filter(None, found))[:MAX_RULES]


def _doubted(memories: Memories, row: RuleRow) -> DoubtedRule | None:
    file = row.rule.get("file", "")
    try:
        one = memories.folder.read(file)
    except (NotFound, StoreError):
        return None
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
