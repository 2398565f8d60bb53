"""The types of what `blocking` gives, made by `python -m scripts.faces --write`.

Every method is the one of the same name, waited for; nothing here runs.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any, Protocol

from reverie import Memory
from reverie.session.compaction import Compacted
from reverie.session.rules import MatchedRule
from reverie.session.turn import Event, Turn, TurnEnding
from reverie.toolbox.toolset import Toolset
from reverie.wire.reply import Addable, Reply, ToolCall
from reverie.wire.request import Request


class BlockingSession(Protocol):
    """`Session` without a loop."""

    @property
    def id(self) -> str:
        """What `resume=` takes."""
        ...

    @property
    def memory(self) -> Memory | None:
        """The long-term memory of this session; None where there is none."""
        ...

    @property
    def tools(self) -> Toolset:
        """The tools that the session answers itself (`handle`)."""
        ...

    def add(self, *said: Addable) -> None:
        """Something new for the model: texts, results of its calls, messages of any of the three
        APIs. On disk when it returns; words of the user's end the turn before."""
        ...

    def adopt(self, messages: Sequence[object]) -> None:
        """Take a conversation in that was held elsewhere, in any of the three APIs' forms."""
        ...

    def prepare(self) -> Request:
        """The exact request to send now. One that is known to be too long is never given."""
        ...

    def observe(self, reply: object) -> Reply:
        """What came back: the SDK's object, its dict, or its stream, of any of the three APIs.
        With `client=`, calls that only read back are answered, and the model is asked again."""
        ...

    def ask(self) -> Reply:
        """`prepare`, send and `observe` in one, through `client=` or the model."""
        ...

    def end_turn(self, outcome: TurnEnding = "completed") -> None:
        """The turn is over. Who forgets it loses nothing."""
        ...

    def handle(self, call: object) -> Any:
        """The result of a call for one of `tools`, in the form the call came in; else None."""
        ...

    def rules(self, call: ToolCall) -> list[MatchedRule]:
        """The rules of memory that a call goes against, looked at before it runs; the call is
        still the caller's to make."""
        ...

    def too_long(self, error: Exception) -> Request:
        """The provider refused the last request as too long: what to send instead, once."""
        ...

    def compact(self, instructions: str = "") -> Compacted:
        """Put a summary in the place of the conversation so far; InvalidInput where writing one
        would cost more than it saves."""
        ...

    def rewind(self, to: str) -> None:
        """Go back to behind a message; what came after stays on record."""
        ...

    def set_head(
        self,
        *,
        system: str | Sequence[Mapping[str, Any]] | None = None,
        tools: Sequence[object] | Toolset | None = None,
        options: Mapping[str, Any] | None = None,
        reason: str = "asked for",
    ) -> None:
        """Another system prompt, other tools or options from the next request on."""
        ...

    def fork(self, prompt: str) -> Reply:
        """Ask something beside the conversation, on its cached prefix; it stays as it is."""
        ...

    def aclose(self) -> None:
        """End the turn, wait a bounded time for background work, close. Again: nothing."""
        ...


class BlockingAgent(Protocol):
    """`Agent` without a loop."""

    @property
    def session(self) -> BlockingSession:
        """The conversation, on record. It closes with the agent."""
        ...

    @property
    def memory(self) -> Memory | None:
        """The long-term memory of the project; None where there is none."""
        ...

    def run(self, prompt: str) -> Turn:
        """One turn, to its end."""
        ...

    def stream(self, prompt: str) -> Generator[Event | Turn]:
        """One turn as it happens: events, and last the `Turn`. Leaving early ends the turn."""
        ...
