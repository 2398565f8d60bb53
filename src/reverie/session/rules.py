"""Rules at the moment of action: the calls of an answer are looked at before any of them runs.

A rule that reminds holds a call once a turn: the model is shown the rule and makes the call again,
or another. One that blocks holds it every time; one that asks is shown at the permission prompt,
and where nobody can be asked, blocks. At most three rules are held for in a turn; what is matched
beyond that is shown beside the result, unless the call cannot be taken back: that is always held.
All calls of one answer are judged before any runs, and those behind a held one wait. What came of
it is counted in the ledger at the turn's end.

A held call is a result like any other, and so a record: what was sent is never changed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from anyio import to_thread

from reverie.errors import InvalidMessage
from reverie.light import dataclass
from reverie.rules.calls import CallContext
from reverie.rules.calls import parse as parse_call
from reverie.rules.match import (
    ASK,
    BLOCK,
    REMIND,
    WAITS,
    CompiledRule,
    is_irrevocable,
    rules_text,
)
from reverie.rules.rule_set import RuleSet, final_calls
from reverie.session.attachments import frame_text
from reverie.store import rules_ledger
from reverie.store.home import canonical_root
from reverie.store.memory_store import MemoryStore
from reverie.store.rules import RuleStore
from reverie.transcript.blocks import parse, text_block
from reverie.transcript.records import Attached
from reverie.wire.reply import ToolCall
from reverie.world import Notice, Say, say_nothing

MAX_HELD = 3
"""Rules that hold a call in one turn; a played turn against three of them cost 1.3 times the
price of one without (docs/rules.md), and each more is one round more."""
KIND = "rules"


@dataclass(frozen=True, slots=True)
class MatchedRule:
    """A rule of memory that a call goes against. `level` says what it asks for: `remind` (show it
    once, and run the call where the model makes it again), `ask` the user, or `block`; `reason` is
    the text for the model, in place of a result; `source` is whose rule it is."""

    name: str
    level: str
    text: str
    file: str
    source: str = ""
    reason: str = ""

    def __str__(self) -> str:
        return self.reason


def matched_rule(rule: CompiledRule) -> MatchedRule:
    """Return a rule as callers see it."""
    name, level, text, file, source = (
        str(rule.get(key, "")) for key in ("name", "level", "text", "file", "source")
    )
    return MatchedRule(name, level, text, file, source, rules_text([rule]))


class ProjectRules:
    """The rules that calls in one project are held against."""

    def __init__(self, memories: MemoryStore, root: Path, cwd: Path, user: str = "") -> None:
        self.store = RuleStore(memories, root)
        self._root = os.path.realpath(root)
        self._cwd = os.path.realpath(cwd)
        self._user = user or os.path.expanduser("~")
        self._books: tuple[RuleSet, RuleSet] | None = None

    async def refresh(self) -> None:
        """Read what changed since the last turn."""
        self._books = await to_thread.run_sync(self._read)

    def _read(self) -> tuple[RuleSet, RuleSet]:
        return self.store.book(), self.store.read_personal()

    def look(self, tool: str, given: object) -> list[CompiledRule]:
        """Return the rules that a call would break: the project's, where it acts in no other
        project, and the user's own, which hold everywhere."""
        book, personal = self._books if self._books is not None else self._read()
        place: dict[str, Any] = {"cwd": self._cwd, "root": self._root, "user": self._user}
        place["resolve"] = os.path.realpath
        found = book.look(tool, given, **place, project_of=_project_of)
        return found + personal.look(tool, given, **place)

    def is_irrevocable(self, tool: str, given: object) -> bool:
        """Say whether a call cannot be taken back."""
        return is_irrevocable(parse_call(tool, given, CallContext(self._cwd)), final_calls())

    def concern(self, tool: str, given: object) -> str:
        """Why a person is asked before this call, or ""."""
        asks = [rule for rule in self.look(tool, given) if rule.get("level") == ASK]
        return "your rule says to ask: " + "; ".join(_line(rule) for rule in asks) if asks else ""


def _project_of(path: str) -> str:
    """The root of the repository that a path is in, "" outside of one."""
    root = canonical_root(Path(path))
    return str(root) if os.path.lexists(root / ".git") else ""


def _line(rule: CompiledRule) -> str:
    text = " ".join(rule.get("text", "").split())
    return f"{text[:300]} ({rule.get('file', '')})"


@dataclass(slots=True)
class TurnRules:
    """What rules did in one turn so far."""

    rules: ProjectRules
    say: Say = say_nothing
    now: Callable[[], float] = float
    session: str = ""
    can_ask: bool = False  # whether the permission prompt knows of rules that ask
    shown: dict[str, int] = field(
        default_factory=dict[str, int]
    )  # rules held for, and broken after
    events: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    async def begin(self) -> None:
        await self.rules.refresh()

    def judge(self, calls: Sequence[ToolCall]) -> tuple[dict[str, str], tuple[Attached, ...]]:
        """The results of calls that do not run, by id; and what is shown beside those that do."""
        held: dict[str, str] = {}
        late: dict[str, CompiledRule] = {}
        fresh: dict[str, CompiledRule] = {}
        for call in calls:
            given = _call_input(call)
            found = self.rules.look(call.name, given)
            final = bool(found) and self.rules.is_irrevocable(call.name, given)
            known = dict(late)
            stops = [rule for rule in found if self._stops(rule, fresh, late, final)]
            if held and not stops:
                held[call.id], late = WAITS, known
                continue
            if stops:
                held[call.id] = rules_text(stops)
                names = ", ".join(rule.get("file", "") for rule in stops)
                self.say(Notice(KIND, f"held a call of {call.name}: {names}", "info"))
            self._count_rule(found, stops)
        self.shown.update(dict.fromkeys(fresh, 0))
        text = rules_text(list(late.values()), ran=True) if late else ""
        return held, (_rules_attachment(text),) if text else ()

    def _stops(
        self,
        rule: CompiledRule,
        fresh: dict[str, CompiledRule],
        late: dict[str, CompiledRule],
        final: bool,
    ) -> bool:
        """Whether a rule holds a call now; one that comes too late in the turn is noted."""
        file, level = rule.get("file", ""), rule.get("level", REMIND)
        if level == BLOCK or (level == ASK and not self.can_ask):
            return True
        if level != REMIND or file in self.shown:
            return False
        if file not in fresh and not final and len(self.shown) + len(fresh) >= MAX_HELD:
            late[file] = rule
            return False
        fresh[file] = rule
        return True

    def _count_rule(self, found: Iterable[CompiledRule], stops: Sequence[CompiledRule]) -> None:
        for rule in found:
            file, level = rule.get("file", ""), rule.get("level", REMIND)
            self.events.append((file, rules_ledger.MATCHED))
            if rule in stops:
                self.events.append(
                    (file, rules_ledger.HELD if level == REMIND else rules_ledger.BLOCKED)
                )
            elif level == ASK:
                self.events.append((file, rules_ledger.ASKED))
            elif not stops:  # it runs: held before, or too late in the turn
                self.events.append((file, rules_ledger.BROKEN))
                if file in self.shown:
                    self.shown[file] += 1

    async def ended(self) -> None:
        """The turn is over: what was held and not made again was changed."""
        changed = [
            (file, rules_ledger.CHANGED) for file, broken in self.shown.items() if not broken
        ]
        events, self.events, self.shown = [*self.events, *changed], [], {}
        if events:
            at, store = self.now(), self.rules.store
            await to_thread.run_sync(lambda: store.count(events, at, self.session))


def _call_input(call: ToolCall) -> object:
    try:
        return parse(call.raw)
    except InvalidMessage:
        return call.raw


def _rules_attachment(text: str) -> Attached:
    return Attached((text_block(frame_text("rules", text)),), KIND)
