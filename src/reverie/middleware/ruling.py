"""Rules where calls only pass: a call has left already when it is seen, so what a rule says joins
that call's result, before the next step.

Decided once for a call and its result, as everything here; a rule is told once a turn.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from reverie.memory.rules import ledger
from reverie.memory.rules.match import CompiledRule
from reverie.memory.rules.telling import quoted, told
from reverie.middleware.decisions import Decisions, rule_line
from reverie.middleware.log import Line
from reverie.middleware.outgoing import Asked
from reverie.middleware.scanning import ScannedPart
from reverie.session.attachments import framed
from reverie.session.rules import ProjectRules
from reverie.transcript.blocks import text_of

TAG = "system-reminder"


class CallRules:
    """The rules of one project, for calls of a conversation that a client holds."""

    def __init__(self, rules: ProjectRules, session: str) -> None:
        self._rules = rules
        self._session = session

    def decided(
        self, asked: Asked, parts: Sequence[ScannedPart], decisions: Decisions
    ) -> list[Line]:
        """What joins some results; "" is a decision too. Reads files: call it in a thread."""
        known = ""
        events: list[tuple[str, str]] = []
        out: list[Line] = []
        for part in parts:
            found = self._rules.look(*asked.body.called(part))
            known = known or (told_before(asked, decisions) if found else "")
            text = _told(found, known, events)
            known += text
            out.append(rule_line(asked.tenant, part.call, part.key, text))
        if events:
            self._rules.store.count(events, time.time(), self._session)
        return out


def _told(found: Sequence[CompiledRule], known: str, events: list[tuple[str, str]]) -> str:
    fresh: list[CompiledRule] = []
    for rule in found:
        again = quoted(rule) in known
        events.append((rule.get("file", ""), ledger.BROKEN if again else ledger.MATCHED))
        fresh += [] if again else [rule]
    return framed(TAG, told(fresh, ran=True)) if fresh else ""


def told_before(asked: Asked, decisions: Decisions) -> str:
    """What rules were told in this turn already: here, or by a hook in a result of its own."""
    found: list[str] = []
    for part in reversed(asked.body.parts):
        if part.kind == "text" and asked.thread in decisions.reminders.get(part.chain.hex(), {}):
            break  # the prompt that began it
        if part.kind == "tool_result" and part.inner != (0, 0):
            found.append(decisions.rules.get((asked.tenant, part.call, part.key), ""))
            found.append(text_of(asked.body.content(part)))
    return "\n".join(found)
