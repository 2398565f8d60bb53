"""What a person is offered where a rule had to be said too often: that it may do more.

A rule that reminds may ask, one that asks may block. Whoever declined is not offered it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from reverie.light import dataclass
from reverie.memory.rules.ledger import DECLINED, RuleCounts
from reverie.memory.rules.match import ASK, BLOCK, REMIND, CompiledRule
from reverie.memory.rules.telling import USER

OFFERED = 3
"""Times from which on the next level is offered."""
_NEXT = {REMIND: ASK, ASK: BLOCK}


@dataclass(frozen=True, slots=True)
class RuleOffer:
    """A level that a rule of the user's could have."""

    file: str
    times: int
    text: str
    level: str

    @property
    def question(self) -> str:
        does = "Be asked before calls" if self.level == ASK else "Block calls"
        return f"Said {self.times} times: {self.text} {does} that break it?"


def offer_of(rule: CompiledRule, counts: RuleCounts | None) -> RuleOffer | None:
    """What is offered of a rule, or nothing."""
    times, level = rule.get("said", 1), _NEXT.get(rule.get("level", REMIND), "")
    if times < OFFERED or not level or rule.get("source", USER) != USER:
        return None
    if counts is not None and counts.of(DECLINED):
        return None
    text = " ".join(rule.get("text", "").partition("\n\n")[0].split())
    ended = text if text.endswith((".", "!", "?")) else f"{text}."
    return RuleOffer(rule.get("file", ""), times, ended, level)


def offers(rules: Iterable[CompiledRule], counts: Mapping[str, RuleCounts]) -> list[RuleOffer]:
    """What is offered of all rules, the one that was said most often first."""
    found = [offer_of(rule, counts.get(rule.get("file", ""))) for rule in rules]
    return sorted((one for one in found if one), key=lambda one: (-one.times, one.file))
