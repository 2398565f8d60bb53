"""Asking, between two turns, whether a rule that had to be said too often may do more.

A rule is asked about once a session; a no is kept, and then it is not asked about again.
"""

from __future__ import annotations

from functools import partial
from typing import Protocol

from anyio import to_thread

from reverie.apps.cli.desk import Desk
from reverie.apps.cli.memory_open import by_user
from reverie.memory.rules import ledger
from reverie.memory.rules.offers import RuleOffer, offers
from reverie.session.rules import ProjectRules
from reverie.store.memories import Memories
from reverie.upkeep.check import set_level


class AsksAPerson(Protocol):
    """A screen with a person before it."""

    def line(self, text: str, style: str = "") -> None: ...
    def confirm(self, question: str) -> bool | str: ...


class RuleOffers:
    """What was asked in one session."""

    def __init__(self, screen: AsksAPerson) -> None:
        self._screen = screen
        self._asked: set[str] = set()

    def ask(self, desk: Desk) -> None:
        """One question, where there is one to ask."""
        agent = desk.agent
        rules, memories = agent.rules, agent.memories
        if rules is None or memories is None or not agent.session.world.flags.get("rules"):
            return
        waiting = desk.call(lambda: to_thread.run_sync(_waiting, rules))
        offer = next((one for one in waiting if one.file not in self._asked), None)
        if offer is None:
            return
        self._asked.add(offer.file)
        wanted = self._screen.confirm(offer.question)
        if isinstance(wanted, str):
            if wanted:  # typed ahead: it is for the agent
                agent.inbox.put(wanted)
            return
        now = agent.session.world.clock.now()
        done = partial(_raised, memories) if wanted else partial(_declined, rules, now=now)
        self._screen.line(desk.call(lambda: to_thread.run_sync(done, offer)), "dim")


def _waiting(rules: ProjectRules) -> list[RuleOffer]:
    book = rules.store.book()
    if not any(offers(book.rules, {})):  # most turns: the ledger is not read
        return []
    return offers(book.rules, rules.store.counts())


def _raised(memories: Memories, offer: RuleOffer) -> str:
    set_level(memories, offer.file, offer.level, by_user("edit", "the level of a rule"))
    return (
        f"{offer.file}: {offer.level}. `reverie memory rules level {offer.file} remind` undoes it"
    )


def _declined(rules: ProjectRules, offer: RuleOffer, *, now: float) -> str:
    rules.store.count([(offer.file, ledger.DECLINED)], now)
    return f"{offer.file} stays as it is: `reverie memory rules level` changes it at any time"
