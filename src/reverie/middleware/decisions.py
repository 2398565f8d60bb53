"""What was decided, for good: by which key, and in which bytes.

A result is known by its call and its content, whatever becomes of the history around it; a
reminder by the thread and the chain at the block it follows. "Nothing" is a decision too. A line
of the log holds one decision; reading all lines again gives the same state. Pure values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any, cast

from reverie.light import dataclass
from reverie.transcript.blocks import Json


@dataclass(frozen=True, slots=True)
class Position:
    """How far a shadow session has taken a conversation in."""

    session: str
    entry: str


@dataclass(slots=True)
class Decisions:
    """Everything that was decided, in one home."""

    results: dict[tuple[str, str, str], str] = field(
        default_factory=dict[tuple[str, str, str], str]
    )
    """By tenant, call and content: the text in its place; "" where it stays as it is."""
    rules: dict[tuple[str, str, str], str] = field(default_factory=dict[tuple[str, str, str], str])
    """By tenant, call and content: what rules say to the call, behind its result; or ""."""
    reminders: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    """By chain, then by thread: what follows that block; "" where nothing does."""
    positions: dict[str, dict[str, Position]] = field(
        default_factory=dict[str, dict[str, Position]]
    )
    """By thread, then by chain."""
    owners: dict[str, str] = field(default_factory=dict[str, str])
    """Which thread was the last to be at a chain that the assistant spoke in."""
    sessions: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    """By thread: its shadow session, and the root of its project."""

    def take(self, line: Mapping[str, Json]) -> None:
        """One line of the log; the first decision about a thing stands."""
        value = cast("Mapping[str, Any]", line)
        match value.get("kind"):
            case "result" | "rule" as kind:
                key = (str(value["tenant"]), str(value["call"]), str(value["content"]))
                found = self.results if kind == "result" else self.rules
                found.setdefault(key, str(value["text"]))
            case "reminder":
                here = self.reminders.setdefault(str(value["chain"]), {})
                here.setdefault(str(value["thread"]), str(value["text"]))
            case "position":
                place = Position(str(value["session"]), str(value["entry"]))
                thread, at = str(value["thread"]), str(value["chain"])
                self.positions.setdefault(thread, {})[at] = place
                if value.get("spoken"):
                    self.owners[at] = thread
            case "session":
                self.sessions[str(value["thread"])] = (str(value["session"]), str(value["root"]))
            case _:  # of a later version
                pass

    def reminder(self, thread: str, chain: str, parent: str) -> str | None:
        """What follows a block in a thread: its own decision, else its parent's; None: not
        decided."""
        known = self.reminders.get(chain)
        if known is None:
            return None
        return known.get(thread, known.get(parent) if parent else None)

    def parent(self, thread: str, chains: Iterator[str], root: str) -> str:
        """The thread that was last where this one is, told by the deepest chain, newest first;
        none of another project."""
        found = next((self.owners[at] for at in chains if at in self.owners), thread)
        return found if self.sessions.get(found, ("", root))[1] == root else thread


def result_line(tenant: str, call: str, content: str, text: str) -> dict[str, Json]:
    return {"kind": "result", "tenant": tenant, "call": call, "content": content, "text": text}


def rule_line(tenant: str, call: str, content: str, text: str) -> dict[str, Json]:
    return {**result_line(tenant, call, content, text), "kind": "rule"}


def reminder_line(thread: str, chain: str, text: str) -> dict[str, Json]:
    return {"kind": "reminder", "thread": thread, "chain": chain, "text": text}


def position_line(thread: str, chain: str, place: Position, *, spoken: bool) -> dict[str, Json]:
    line: dict[str, Json] = {"kind": "position", "thread": thread, "chain": chain}
    return {**line, "session": place.session, "entry": place.entry, "spoken": spoken}


def session_line(thread: str, session: str, root: str) -> dict[str, Json]:
    return {"kind": "session", "thread": thread, "session": session, "root": root}
