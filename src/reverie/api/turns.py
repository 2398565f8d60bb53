"""What a turn of an agent gives: events while it runs, and the turn once it is over."""

from __future__ import annotations

from dataclasses import field
from typing import Literal, TypeAlias

from reverie.light import dataclass
from reverie.session.turn import ToolEnded, ToolStarted, TurnEvent, TurnResult
from reverie.transcript.records import Usage
from reverie.wire.reply import Delta, ToolCall
from reverie.world import Retrying

Kind: TypeAlias = Literal["text", "thinking", "call", "result", "retry"]


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn that is over. `outcome` is `completed`, or why it ended early, with the `reason`;
    `cost` is in price-weighted tokens."""

    text: str
    outcome: str
    stop_reason: str = ""
    cost: float = 0.0
    usage: Usage = field(default_factory=Usage)
    rounds: int = 0
    reason: str = ""

    def __str__(self) -> str:
        return self.text

    @classmethod
    def of(cls, done: TurnResult, *, free: bool = False) -> Turn:
        """A turn as callers see it; a free model costs nothing."""
        return cls(
            done.text,
            done.outcome,
            done.stop_reason,
            0.0 if free else done.weighted,
            done.usage,
            done.rounds,
            done.reason,
        )


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened while a turn ran: a piece of text or thinking, a call, its result,
    or another try. `call` is there for calls and results."""

    kind: Kind
    text: str
    call: ToolCall | None = None
    is_error: bool = False

    def __str__(self) -> str:
        return self.text

    @classmethod
    def of(cls, event: TurnEvent) -> Event | None:
        """An event as people see it; None for what is told otherwise."""
        match event:
            case Delta(kind="text" | "thinking" as kind, text=text):
                return cls(kind, text)
            case ToolStarted(call=call):
                return cls("call", f"{call.name} {call.raw}", call)
            case ToolEnded(call=call):
                return cls("result", event.text, call, event.is_error)
            case Retrying(reason=reason):
                return cls("retry", reason, is_error=True)
            case _:
                return None
