"""How an answer ended, and what follows: another round, a shorter conversation, or the turn's end.

Every stop reason is read, in the words of the Messages API, which all wire formats are
translated into. An answer that was cut off is asked to go on, a pause is sent again as it is, an
empty answer is asked for once more, each a bounded number of times. What stays cut off or empty
is told as such, and so is a refusal: nothing here passes for an answer that is none.

A model that makes the same failing call in round after round is told so, and then stopped.
Values and counters alone; nothing here asks, writes or waits.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import field
from typing import Literal, TypeAlias

from reverie.light import dataclass
from reverie.transcript.blocks import Block
from reverie.transcript.records import AssistantMessage
from reverie.transcript.view import View
from reverie.wire.reply import Reply
from reverie.wire.stream import cut_name

GO_ON = "go_on"  # the origin of what the loop itself says to the model
CONTINUATIONS = 2  # of an answer that was cut off
RETRIES = 1  # of an empty answer, and of a conversation made shorter
PAUSES = 20  # of one turn; then the provider is not going on
TOLD_AT, STOPPED_AT = 3, 5  # rounds of the same failing calls

WINDOW = "model_context_window_exceeded"
ENDS = frozenset({"", "end_turn", "stop_sequence", "tool_use", "compaction"})
KNOWN = ENDS | {"max_tokens", "pause_turn", "refusal", WINDOW}

CUT_OFF = (
    "Your answer was cut off by the output limit. Go on where you were cut off, and repeat nothing."
)
CALL_CUT_OFF = (
    "Your call of {name} was cut off by the output limit, so it was not made. Make it again in "
    "smaller pieces."
)
EMPTY = "Your answer was empty. Go on, or say in a sentence that there is nothing left to do."
AGAIN = (
    "You have made the same call {count} times in a row, and it failed each time. It will fail "
    "again: do something else, or say what stands in the way."
)

Ending: TypeAlias = Literal["completed", "refused", "truncated", "empty"]


@dataclass(frozen=True, slots=True)
class TurnOver:
    """The turn is over."""

    outcome: Ending
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ContinueTurn:
    """Another round: after these words, or as it is; perhaps after making room."""

    words: str = ""
    make_room: bool = False


@dataclass(slots=True)
class StopTracker:
    """The stop reasons of one turn, counted."""

    cut: int = 0
    empty: int = 0
    full: int = 0
    pauses: int = 0

    def after(self, reply: Reply) -> ContinueTurn | TurnOver:
        """What follows an answer without calls."""
        match reply.stop_reason:
            case "refusal":
                return refusal_ending()
            case "pause_turn":
                return self._after_pause()
            case "max_tokens":
                return self._cut(reply.blocks)
            case "model_context_window_exceeded":
                return self._full(reply.blocks)
            case _:
                return self._after_text(reply)

    def _after_pause(self) -> ContinueTurn | TurnOver:
        self.pauses += 1
        if self.pauses <= PAUSES:
            return ContinueTurn()
        return TurnOver("truncated", f"the provider paused {self.pauses} times and did not finish")

    def _cut(self, blocks: Sequence[Block]) -> ContinueTurn | TurnOver:
        self.cut += 1
        if self.cut <= CONTINUATIONS:
            return ContinueTurn(cut_words(blocks) or CUT_OFF)
        return TurnOver("truncated", f"the answer was cut off by the output limit {self.cut} times")

    def _full(self, blocks: Sequence[Block]) -> ContinueTurn | TurnOver:
        self.full += 1
        if self.full <= RETRIES:
            return ContinueTurn(cut_words(blocks) or CUT_OFF, make_room=True)
        return TurnOver("truncated", "the answer does not fit the model's window")

    def _after_text(self, reply: Reply) -> ContinueTurn | TurnOver:
        if reply.text.strip():
            return TurnOver("completed")
        self.empty += 1
        if self.empty <= RETRIES:
            return ContinueTurn(EMPTY)
        return TurnOver("empty", f"the model answered with nothing {self.empty} times")


def refusal_ending() -> TurnOver:
    return TurnOver("refused", "the model refused to answer")


def unknown(stop_reason: str) -> str:
    """What a person is told of a stop reason that nothing is known about; else nothing."""
    if stop_reason in KNOWN:
        return ""
    return f"the provider ended an answer for a reason not known here: {stop_reason[:80]!r}"


def cut_words(blocks: Sequence[Block]) -> str:
    """What the model is told where its last call was cut off; nothing where none was."""
    name = cut_name(blocks)
    return CALL_CUT_OFF.format(name=name) if name else ""


def is_paused(view: View) -> bool:
    """Whether the newest message is an answer that the provider paused: it is sent as it is."""
    last = view.items.last
    entry = view.entries.find(last.id) if last is not None else None
    record = entry.record if entry is not None else None
    return isinstance(record, AssistantMessage) and record.stop_reason == "pause_turn"


@dataclass(frozen=True, slots=True)
class FailedCall:
    """A call that failed, and what was said of it."""

    name: str
    input: str
    answer: str


@dataclass(slots=True)
class FailedRounds:
    """Rounds in a row in which the same calls, or calls with the same answers, all failed."""

    count: int = 0
    _made: frozenset[tuple[str, str]] = field(default=frozenset())
    _told: frozenset[tuple[str, str]] = field(default=frozenset())

    def take(self, failed: Collection[FailedCall], calls: int) -> str:
        """One more round; what the model is told, if anything."""
        made = frozenset((f.name, f.input) for f in failed)
        answers = frozenset((f.name, f.answer) for f in failed)
        if len(failed) < calls:
            self.count = 0
        elif made == self._made or answers == self._told:
            self.count += 1
        else:
            self.count = 1
        self._made, self._told = made, answers
        return AGAIN.format(count=self.count) if self.count >= TOLD_AT else ""

    @property
    def hopeless(self) -> bool:
        return self.count >= STOPPED_AT
