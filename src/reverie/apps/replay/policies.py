"""The policies a session can be replayed under.

`naive` sends every message, with the marks a plain client sets: on the head and on the
last three user messages, all for five minutes. `classic` and `collapse` are our own
layers as they are, with the marks they come with. Values alone; nothing runs here.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Literal, TypeAlias, get_args

from reverie.layers import collapse, microcompaction, tool_results
from reverie.settings import DEFAULTS, Settings
from reverie.transcript.records import Mark
from reverie.transcript.view import head_blocks
from reverie.wire.request import SHORT, Request
from reverie.world import Layer, Prices, overridden

PolicyName: TypeAlias = Literal["naive", "classic", "collapse"]
POLICIES: tuple[PolicyName, ...] = get_args(PolicyName)
MARKED = 3  # user messages that a plain client marks

WHEN_ADDED: tuple[Layer, ...] = (tool_results.per_result,)
BEFORE_A_REQUEST: tuple[Layer, ...] = (
    tool_results.per_message,
    microcompaction.by_time,
    collapse.seal,
)


@dataclass(frozen=True, slots=True)
class ReplayPolicy:
    """A policy by name, and the settings it goes by."""

    name: PolicyName
    settings: Settings = DEFAULTS
    prices: Prices = field(default_factory=Prices)

    @classmethod
    def of(
        cls,
        name: PolicyName,
        settings: Settings = DEFAULTS,
        tail: int | None = None,
        prices: Prices | None = None,
    ) -> ReplayPolicy:
        kept = "collapse" if name == "collapse" else "classic"
        tokens = settings.collapse_tail if tail is None else tail
        chosen = replace(settings, context_policy=kept, collapse_tail=tokens)
        return cls(name, chosen, overridden(prices or Prices(), settings))

    def under(self, name: PolicyName) -> ReplayPolicy:
        """Another policy at the same settings and prices."""
        return ReplayPolicy.of(name, self.settings, prices=self.prices)

    @property
    def tail(self) -> int:
        return self.settings.collapse_tail

    @property
    def when_added(self) -> tuple[Layer, ...]:
        return () if self.name == "naive" else WHEN_ADDED

    @property
    def before_a_request(self) -> tuple[Layer, ...]:
        return () if self.name == "naive" else BEFORE_A_REQUEST

    def marks(self, request: Request) -> tuple[Mark, ...]:
        """Where the cache marks of a request stand."""
        return plain_marks(request) if self.name == "naive" else request.marks


def plain_marks(request: Request) -> tuple[Mark, ...]:
    """The head, and the ends of the last user messages."""
    users = (m for m in map(request.at, reversed(range(request.count))) if m.role == "user")
    ends = [message.end - 1 for message in islice(users, MARKED)]
    system = len(head_blocks(request.head.system))
    tools = len(head_blocks(request.head.tools))
    head = [Mark("system", system - 1, SHORT)] if system else []
    head = head or ([Mark("tools", tools - 1, SHORT)] if tools else [])
    return (*head, *(Mark("messages", end, SHORT) for end in reversed(ends)))
