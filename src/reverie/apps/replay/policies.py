"""Policies, the meter, bound thinking.

The policies a session can be replayed under.

`naive` (the policy `off`) sends every message, with the marks a plain client sets: on the head
and on the last three user messages, all for five minutes. `store` puts large results into files as
they arrive; `classic` and `collapse` are our own layers as they are, with the marks they come with.
Values alone; nothing runs here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Literal, TypeAlias, get_args

from reverie.apps.replay.course import OWN, Interface, RecordedCourse
from reverie.interception.engine import CHARACTERS, PREVIEW
from reverie.layers import collapse, microcompaction, tool_results
from reverie.settings.catalog import DEFAULTS, Settings
from reverie.simulator.profiles import CACHESIM
from reverie.simulator.prompt_cache import CachedBlock, Charge, PromptCache
from reverie.simulator.thinking_signatures import ThinkingSigner, link
from reverie.toolbox.toolset import Toolset, reading_back
from reverie.topics import prompt
from reverie.transcript.blocks import Block, Object, dump, elements, parse, text_block
from reverie.transcript.messages import Message
from reverie.transcript.messages import link as messages_link
from reverie.transcript.records import HeadSet, Mark
from reverie.transcript.view import head_blocks
from reverie.wire.request import SHORT, Request, digest
from reverie.world import Layer, Prices, overridden

PolicyName: TypeAlias = Literal["naive", "store", "classic", "collapse"]
POLICIES: tuple[PolicyName, ...] = get_args(PolicyName)
INTERFACES: tuple[Interface, ...] = get_args(Interface)
MARKED = 3  # user messages that a plain client marks

WHEN_ADDED: tuple[Layer, ...] = (tool_results.per_result,)
BEFORE_A_REQUEST: tuple[Layer, ...] = (
    tool_results.per_message,
    microcompaction.by_time,
    collapse.seal,
)


@dataclass(frozen=True, slots=True)
class ReplayPolicy:
    """A policy by name, the settings it goes by, and the interface a session would have used.

    A `session` adds the tool that reads back and the section about memory to the head, sets its
    own cache marks, and asks its own model in the background. The `proxy` adds nothing to the
    head, leaves the client's marks, knows no time, and by default its background work is done by
    rules that cost nothing."""

    name: PolicyName
    settings: Settings = DEFAULTS
    prices: Prices = field(default_factory=Prices)
    through: Interface = "session"

    @classmethod
    def of(
        cls,
        name: PolicyName,
        settings: Settings = DEFAULTS,
        tail: int | None = None,
        prices: Prices | None = None,
        through: Interface = "session",
    ) -> ReplayPolicy:
        kept = "collapse" if name == "collapse" else "classic"
        tokens = settings.collapse_tail if tail is None else tail
        chosen = replace(settings, context_policy=kept, collapse_tail=tokens)
        return cls(name, chosen, overridden(prices or Prices(), settings), through)

    def under(self, name: PolicyName) -> ReplayPolicy:
        """Another policy at the same settings and prices."""
        return ReplayPolicy.of(name, self.settings, prices=self.prices, through=self.through)

    @property
    def tail(self) -> int:
        return self.settings.collapse_tail

    @property
    def when_added(self) -> tuple[Layer, ...]:
        return () if self.name == "naive" else WHEN_ADDED

    @property
    def before_a_request(self) -> tuple[Layer, ...]:
        return BEFORE_A_REQUEST if self.name in ("classic", "collapse") else ()

    @property
    def applied(self) -> Settings:
        """The settings that layers go by: the proxy has limits of its own for results."""
        if self.through == "session":
            return self.settings
        return replace(self.settings, result_characters=CHARACTERS, result_preview_bytes=PREVIEW)

    @property
    def is_session(self) -> bool:
        """Whether a session of ours sends the requests, and its model works behind them."""
        return self.name != "naive" and self.through == "session"

    def marks(self, request: Request) -> tuple[Mark, ...]:
        """Where the cache marks of a request stand."""
        return request.marks if self.is_session else plain_marks(request)

    def head(self, course: RecordedCourse) -> HeadSet:
        """The head that is sent: what a session adds to another program's, once."""
        known = course.head
        if not self.is_session or course.program == OWN:
            return known
        section = prompt.section(prompt.PromptOptions(MEMORY, by_itself=True))
        system = [*(raw for raw, _ in elements(known.system)), text_block(section).raw]
        reader = map(dump, Toolset([reading_back(None)]).anthropic())
        tools = [*(raw for raw, _ in elements(known.tools)), *reader]
        return replace(known, tools=f"[{','.join(tools)}]", system=f"[{','.join(system)}]")


MEMORY = "/home/user/.reverie/projects/-home-user-project/memory"  # as long as such paths are


def plain_marks(request: Request) -> tuple[Mark, ...]:
    """The head, and the ends of the last user messages."""
    users = (m for m in map(request.at, reversed(range(request.count))) if m.role == "user")
    ends = [message.end - 1 for message in islice(users, MARKED)]
    system = len(head_blocks(request.head.system))
    tools = len(head_blocks(request.head.tools))
    head = [Mark("system", system - 1, SHORT)] if system else []
    head = head or ([Mark("tools", tools - 1, SHORT)] if tools else [])
    return (*head, *(Mark("messages", end, SHORT) for end in reversed(ends)))


# --- Thinking bound to what precedes it: which requests a provider would refuse.
#
# Each recorded thinking block is bound, by the simulator's own binder, to the request it answered
# in the replay, as it would have been when it was made. A request that carries a block behind
# anything else is refused. Requests that only grow are not walked again.


MODEL = "replayed"


class BoundThinking:
    """The bound thinking of one replayed session."""

    def __init__(self) -> None:
        self._binder = ThinkingSigner()
        self._last: Request | None = None
        self._chain = b""
        self._refused = False

    def refuses(self, request: Request) -> bool:
        """Whether this request would be refused; the next answer is bound to it."""
        last, self._last = self._last, request
        if last is None or not request.extends(last):
            bound = self._binder.verify(_body(request), MODEL)
            self._chain, self._refused = bound.chain, bool(bound.mismatches)
        else:
            self._chain = _extend_chain(self._chain, last.blocks, request)
        return self._refused

    def answered(self, blocks: Sequence[Block]) -> None:
        """Bind the thinking of an answer to the last request."""
        chain = self._chain
        for block in blocks:
            if block.thinking:
                self._binder.adopt_block(block.value, chain)
            chain = link(chain, "assistant", block.value)


def _extend_chain(chain: bytes, known: int, request: Request) -> bytes:
    """The chain of a request whose first `known` blocks it already covers."""
    at = request.count
    while at and request.at(at - 1).end > known:
        at -= 1
    for index in range(at, request.count):
        message = request.at(index)
        for piece in message.pieces[max(0, known - message.start) :]:
            chain = link(chain, message.role, piece.block.value)
    return chain


def _body(request: Request) -> Object:
    """The request as a value, without marks; the blocks are not copied."""
    return {
        "system": parse(request.head.system),
        "tools": parse(request.head.tools),
        "messages": [
            {"role": m.role, "content": [p.block.value for p in m.pieces]}
            for m in request.messages()
        ],
    }


# --- What a request costs: the simulated prompt cache, fed from requests as they are.
#
# Rules are those of the simulator's `cachesim` profile; what they come to is priced by the policy's
# prices. Thinking counts by its words. A message is measured once, however often it is sent. The
# meter never looks at a clock.


MINIMUM = CACHESIM.minimum or 0


def tokens(block: Block) -> int:
    """A block's tokens; thinking by its text, without its signature."""
    return block.tokens if block.thinking else CACHESIM.tokens(block.value)


class Meter:
    """The cache of one replayed session, and its bill."""

    def __init__(self, head: HeadSet) -> None:
        self._cache = PromptCache(CACHESIM)
        self._sizes: dict[bytes, int] = {}
        self._messages: dict[tuple[bytes, int], tuple[CachedBlock, ...]] = {}
        self._places = {"tools": 0, "system": 0, "messages": 0}
        self._head = self._head_parts(head)

    def _head_parts(self, head: HeadSet) -> tuple[CachedBlock, ...]:
        out: list[CachedBlock] = []
        chain = digest(head.model).encode()
        for role, array in (("tools", head.tools), ("system", head.system)):
            self._places[role] = len(out)
            for block in head_blocks(array):
                chain = messages_link(chain, "user", block)
                end = (out[-1].end if out else 0) + self.tokens(block)
                out.append(CachedBlock(role, chain, self.tokens(block), end))
        self._places["messages"] = len(out)
        return tuple(out)

    def tokens(self, block: Block) -> int:
        found = self._sizes.get(block.digest)
        if found is None:
            found = self._sizes[block.digest] = tokens(block)
        return found

    def charge(self, request: Request, marks: tuple[Mark, ...], now: float) -> Charge:
        """Bill one request at this time, and keep what its marks say."""
        parts = list(self._head)
        before = b""
        for message in request.messages():
            parts += self._parts(message, before, parts[-1].end if parts else 0)
            before = message.chain
        for mark in marks:
            at = self._places[mark.part] + mark.block
            parts[at] = replace(parts[at], ttl=mark.ttl)
        return self._cache.charge(parts, now, MINIMUM)

    def _parts(self, message: Message, chain: bytes, end: int) -> tuple[CachedBlock, ...]:
        """A message's parts. Its chain tells all before it, so its ends are the same too."""
        key = (message.chain, len(message.pieces))
        found = self._messages.get(key)
        if found is None:
            out: list[CachedBlock] = []
            for piece in message.pieces:
                size = self.tokens(piece.block)
                chain, end = messages_link(chain, message.role, piece.block), end + size
                out.append(CachedBlock(message.role, chain, size, end))
            found = self._messages[key] = tuple(out)
        return found
