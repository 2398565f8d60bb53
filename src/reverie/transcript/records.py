"""What is written in a transcript: the closed union of records.

An `Entry` is one journal line: an id, its parent, a time, and a record. Records are
plain values; a layer returns them and the session stamps and appends them. Two scopes:
chain-scoped records count only on the chain that ends in the last leaf, session-scoped
ones always. Nothing here reads a clock or makes an id.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from itertools import groupby
from typing import Literal, TypeAlias, TypeVar, dataclass_transform

from reverie.light import dataclass, pattern
from reverie.transcript.blocks import Block

Role: TypeAlias = Literal["user", "assistant"]
Ttl: TypeAlias = Literal["5m", "1h"]


_T = TypeVar("_T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def unchanging(cls: type[_T]) -> type[_T]:
    """A value that nobody changes. The type checker sees to that: a frozen dataclass takes
    three times as long to make, and every round makes a dozen."""
    return dataclass(slots=True, unsafe_hash=True)(cls)


@unchanging
class Usage:
    """Tokens of one request, in the one form all providers are translated into."""

    uncached: int = 0
    read: int = 0
    written: int = 0
    output: int = 0
    written_1h: int = 0  # the part of `written` at the long lifetime

    @property
    def input(self) -> int:
        return self.uncached + self.read + self.written

    @property
    def total(self) -> int:
        """The context after the answer: what the next request starts from."""
        return self.input + self.output

    @property
    def hit_rate(self) -> float:
        return self.read / self.input if self.input else 0.0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.uncached + other.uncached,
            self.read + other.read,
            self.written + other.written,
            self.output + other.output,
            self.written_1h + other.written_1h,
        )


@unchanging
class Mark:
    """A cache mark: the block it stands on, counted within its part, and its lifetime."""

    part: Literal["tools", "system", "messages"]
    block: int
    ttl: Ttl


@unchanging
class Strip:
    """One block of a message that is no longer sent (thinking that an edit made invalid)."""

    message: str
    block: int


@unchanging
class Stand:
    """A message that stands in the place of others."""

    role: Role
    blocks: tuple[Block, ...]


# --- session scope: always folded


@unchanging
class Started:
    """The first record: which session this is, or which fork of which request."""

    session: str
    project: str
    cwd: str
    version: str
    source: str = "main"
    agent: str = ""  # set in the transcript of a fork or sub-agent
    forked_at: str = ""  # the parent's entry id the fork starts behind
    policy: str = ""  # how its context is kept small, however often it is resumed


@unchanging
class HeadSet:
    """All of a request that is not conversation, as the bytes that are sent.

    `system`, `tools` and `context` are JSON arrays, `options` a JSON object (max_tokens,
    thinking, betas …). `context` goes in front of the first user message: instruction
    files, memory index, environment, date. Stored once by hash beside the transcript.
    """

    model: str
    system: str = "[]"
    tools: str = "[]"
    context: str = "[]"
    options: str = "{}"
    reason: str = ""


@unchanging
class ResultDecided:
    """What becomes of one tool result, frozen: sent whole, stored, or cleared."""

    call: str
    action: Literal["kept", "stored", "cleared"]
    why: str = ""
    content: str = ""  # the JSON text that stands in for the result's content, if any
    path: str = ""
    size: int = 0
    sha256: str = ""
    strips: tuple[Strip, ...] = ()


@unchanging
class Parts:
    """Digests of a request by part, and how many message blocks it had."""

    model: str
    options: str
    tools: str
    system: str
    messages: str
    blocks: int


@unchanging
class Sent:
    """A request is about to leave: its parts, last entry and marks."""

    source: str
    last: str
    parts: Parts
    marks: tuple[Mark, ...] = ()


@unchanging
class RequestRefused:
    """The provider did not take the last request: what was new in it counts as not sent."""

    error: str = ""


@unchanging
class ForkEnded:
    """A fork or side query is over: what it cost, and how much its parent's cache gave."""

    source: str
    agent: str
    usage: Usage
    requests: int
    outcome: Literal["completed", "failed", "cancelled"]
    model: str = ""  # that answered; where none is named, it is reckoned as its session's


@unchanging
class Failed:
    """A layer or job failed alone; the session went on."""

    layer: str
    error: str
    where: str = ""


@unchanging
class TurnEnded:
    """The assistant answered without calling a tool, or the turn was cancelled."""

    outcome: Literal["completed", "cancelled", "limit", "refused", "truncated", "empty"] = (
        "completed"
    )


@unchanging
class NotesTaken:
    """The session notes now cover the conversation up to a message."""

    last: str
    tokens: int  # rough tokens of the conversation then
    sha256: str = ""  # of the notes as they landed


@unchanging
class Extracted:
    """Memory extraction has seen the conversation up to a message."""

    last: str
    outcome: Literal["written", "nothing", "skipped"] = "nothing"
    written: tuple[str, ...] = ()  # topic files
    why: str = ""


@unchanging
class Candidate:
    """A memory that recall looked at for a turn, and what became of it."""

    file: str
    score: float
    outcome: Literal["injected", "dropped", "left"]
    why: str = ""
    size: int = 0  # bytes that were injected


@unchanging
class Recalled:
    """The ledger of one turn's recall."""

    message: str  # the user's message it looked for
    considered: int
    candidates: tuple[Candidate, ...] = ()
    selector: str = "embedded"
    why: str = ""  # why nothing was looked for, or nothing chosen


@unchanging
class WordsRemoved:
    """Words were taken out of this transcript: what was sent before no longer stands."""

    count: int
    strips: tuple[Strip, ...] = ()


@unchanging
class Unknown:
    """A record of a later version or another program: kept, and of no effect."""

    type: str
    raw: str
    fault: str = ""


# --- chain scope: folded only on the chain of the last leaf


@unchanging
class UserMessage:
    """What a user or tool said. Several in a row are one message to the model."""

    blocks: tuple[Block, ...]
    origin: str = "user"


_NOBODY = ("tool", "interrupted", "go_on", "hook", "client", "agent")  # origins that are no person
_FRAMED = pattern(r"\s*<(?:system-reminder|task-notification|local-command-|command-|bash-)")
_NOTICE = pattern(
    r"(?s)\s*<(system-reminder|task-notification|local-command-\w+|bash-stdout|bash-stderr)>"
    r".*?(?:</\1>|\Z)"
)


def by_speaker(spoken: Iterable[tuple[Block, str]]) -> list[UserMessage]:
    """Messages of one speaker each, in the order of their blocks."""
    runs = groupby(spoken, lambda one: one[1])
    return [UserMessage(tuple([block for block, _ in run]), who) for who, run in runs]


def speaker(block: Block, origin: str = "user") -> str:
    """Who speaks in a block of a message that came from `origin`. A result is a tool's; what
    stands beside one in the same message is the user's."""
    if block.type == "tool_result":
        return "tool"
    return "user" if origin == "tool" else origin


def is_typed(text: str, origin: str = "user") -> bool:
    """Whether a text of a user's message is a person's, and no program's in their place. Clients
    put reminders, commands and what these printed there, each in a frame; where a client's frames
    are not known, its door tells them by their shape and names the client as the origin."""
    return origin.partition(":")[0] not in _NOBODY and not _FRAMED.match(text)


def user_words(text: str, origin: str = "user") -> str:
    """The words of a person in a text of a user's message, without what their client put in front
    of them. A command, or a line for the shell, is the wish of whoever gave it."""
    if origin.partition(":")[0] in _NOBODY:
        return ""
    start = 0
    while found := _NOTICE.match(text, start):
        start = found.end()
    return text[start:].lstrip() if start else text


@unchanging
class AssistantMessage:
    """A response, whole; `native` is the provider's own form where it is not ours."""

    blocks: tuple[Block, ...]
    model: str = ""
    provider: str = ""
    message_id: str = ""
    stop_reason: str = ""
    usage: Usage | None = None
    native: str = ""
    diagnostics: str = "null"  # what the provider said of its cache, as JSON
    applied_edits: str = "[]"  # what it cleared on its side, as JSON


@unchanging
class Attached:
    """Text that joins the newest user message not yet sent, behind its tool results."""

    blocks: tuple[Block, ...]
    kind: str


@unchanging
class Boundary:
    """What a compaction recorded about itself."""

    trigger: Literal["auto", "manual"] = "auto"
    tokens_before: int = 0
    tokens_after: int = 0
    tools: tuple[str, ...] = ()
    kept: tuple[str, str, str] = ("", "", "")  # head, anchor and tail ids
    fidelity: float | None = None
    missing: tuple[str, ...] = ()  # what the audit found in neither context nor reference
    calls: int = 0  # requests to a model that it took


@unchanging
class Replaced:
    """A range of messages, widened to whole rounds, and the bytes that stand for it."""

    first: str
    last: str
    by: tuple[Stand, ...]
    reason: str
    seals: bool = True  # whether its end deserves a long-lived mark
    strips: tuple[Strip, ...] = ()
    boundary: Boundary | None = None
    why: str = ""  # the calculation behind it, in a sentence


@unchanging
class Rewound:
    """Going back: its parent is the entry the conversation continues from."""

    reason: str = ""


SessionScoped: TypeAlias = (
    Started
    | HeadSet
    | ResultDecided
    | Sent
    | RequestRefused
    | ForkEnded
    | Failed
    | TurnEnded
    | NotesTaken
    | Extracted
    | Recalled
    | WordsRemoved
    | Unknown
)
ChainScoped: TypeAlias = UserMessage | AssistantMessage | Attached | Replaced | Rewound
Record: TypeAlias = SessionScoped | ChainScoped
CHAIN_SCOPED = frozenset({UserMessage, AssistantMessage, Attached, Replaced, Rewound})


@unchanging
class Entry:
    """One line of a transcript."""

    id: str
    parent: str
    at: float  # seconds since the epoch
    record: Record

    @property
    def on_chain(self) -> bool:
        return self.record.__class__ in CHAIN_SCOPED
