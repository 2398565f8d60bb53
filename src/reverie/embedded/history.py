"""A request's messages as a conversation: who said what, which calls were made, what came.

Words are what people and the model said: tool results, pictures, the head and framed
reminders are none, so nothing that a tool or a file says is ever taken for a request.
Odd shapes are passed over. The calls that an answer asks for are made here too. Pure; nothing
here answers anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b

from reverie.errors import InvalidMessage
from reverie.text.format import cut_line
from reverie.text.safety import inside
from reverie.topics.frontmatter import parse_frontmatter
from reverie.topics.instructions import whole_memories
from reverie.transcript.blocks import Block, Json, Object, block_of, elements
from reverie.transcript.messages import HEAD, Message
from reverie.wire.request import Request

REMINDER = "<system-reminder>"
STANDS = (
    "[Earlier rounds of this conversation, sealed",
    "[sealed",
    "[folded",
    "[The conversation up to here was compacted",
    "[The conversation from here on was compacted",
    "[The beginning of the conversation, up to here, was compacted",
    "[The earlier part of this conversation was taken out",
    "<restored-file",
)
"""How texts that stand for earlier rounds begin: a provider gets them and what the user says
next as one message."""
STAND = "stand"
WIDTH = 160  # characters of a line that is quoted
LOOKED_AT = 8_000  # characters of a message that are read by rules
MAY_CHANGE = frozenset({"Bash", "Remember", "Forget"})


@dataclass(frozen=True, slots=True)
class SpokenText:
    """Words of one message; messages are numbered from 1."""

    role: str  # or STAND, where they stand for earlier rounds
    text: str
    message: int


@dataclass(frozen=True, slots=True)
class PastCall:
    """A tool call that was made."""

    id: str
    name: str
    input: Object
    message: int

    def get(self, key: str) -> str:
        found = self.input.get(key)
        return found if isinstance(found, str) else ""

    @property
    def path(self) -> str:
        return self.get("file_path") or self.get("path")


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """What came back from a call; a result without a known call has an empty one."""

    call: PastCall
    text: str
    error: bool
    message: int


@dataclass(frozen=True, slots=True)
class ConversationHistory:
    """A conversation, read once."""

    said: tuple[SpokenText, ...] = ()
    calls: tuple[PastCall, ...] = ()
    outcomes: tuple[CallOutcome, ...] = ()
    last: int = 0  # the number of the last message
    memories: tuple[tuple[str, str], ...] = ()  # file and body of what was recalled
    tools: frozenset[str] = frozenset()

    @property
    def newest(self) -> SpokenText:
        """The words the user said last."""
        mine = [s for s in self.said if s.role == "user"]
        return mine[-1] if mine else SpokenText("user", "", 0)

    @property
    def earlier(self) -> tuple[SpokenText, ...]:
        """Everything said before the newest words."""
        mine = [n for n, s in enumerate(self.said) if s.role == "user"]
        return self.said[: mine[-1]] if mine else ()

    @property
    def made(self) -> tuple[PastCall, ...]:
        """Calls made for the newest words."""
        return tuple(c for c in self.calls if c.message > self.newest.message)

    @property
    def fresh(self) -> tuple[CallOutcome, ...]:
        """Results that the last message brings."""
        return tuple(o for o in self.outcomes if o.message == self.last)


def read(request: Request) -> ConversationHistory:
    said: list[SpokenText] = []
    calls: dict[str, PastCall] = {}
    outcomes: list[CallOutcome] = []
    memories: dict[str, str] = {}
    number = 0
    for number, message in enumerate(request.messages(), 1):
        memories.update(_recalled_memories(message))
        said += [
            SpokenText(role, words, number) for role, words in _role_texts(message) if words.strip()
        ]
        for piece in message.pieces:
            block = piece.block
            if block.type == "tool_use" and block.call:
                value = block.value.get("input")
                known = value if isinstance(value, dict) else {}
                call = PastCall(block.call, block.get("name"), known, number)
                calls.setdefault(call.id, call)
            elif block.type == "tool_result":
                ident = block.call
                call = calls.get(ident) or PastCall(ident, "", {}, number)
                error = block.value.get("is_error") is True
                outcomes.append(CallOutcome(call, block.text, error, number))
    found = tuple(calls.values())
    recalled = tuple(memories.items())
    return ConversationHistory(
        tuple(said), found, tuple(outcomes), number, recalled, tools_of(request)
    )


def _recalled_memories(message: Message) -> Iterator[tuple[str, str]]:
    """Memories that the head holds whole or a reminder brought: the file, and its body."""
    for piece in message.pieces:
        text = piece.block.get("text") if piece.block.type == "text" else ""
        if piece.source == HEAD:
            yield from whole_memories(text)
        elif text.lstrip().startswith(REMINDER):
            for source, words in inside(text):
                data = words.encode("utf-8", "replace")
                yield (
                    source,
                    data[parse_frontmatter(data).body :].decode("utf-8", "replace").strip(),
                )


def _role_texts(message: Message) -> Iterator[tuple[str, str]]:
    """What stands for earlier rounds in a message, and what it says itself."""
    words = list(_words(message))
    stands = [text for text in words if text.startswith(STANDS)]
    yield STAND, "\n".join(stands)
    yield message.role, "\n".join(text for text in words if text not in stands)


def _words(message: Message) -> Iterator[str]:
    for piece in message.pieces:
        text = piece.block.get("text")
        if piece.block.type != "text" or piece.source == HEAD:
            continue
        if not text.lstrip().startswith((REMINDER, "<hook-context>")):
            yield text


def tools_of(request: Request) -> frozenset[str]:
    """The names of the tools that are really defined."""
    try:
        found = [value for _, value in elements(request.head.tools)]
    except InvalidMessage:
        return frozenset()
    names = [tool.get("name") for tool in found if isinstance(tool, dict)]
    return frozenset(name for name in names if isinstance(name, str))


def clip(text: str, width: int = WIDTH) -> str:
    """One line of a text, short enough to quote."""
    return cut_line(text[: width * 4], width)


@dataclass(frozen=True, slots=True)
class RequestedCall:
    """One tool call that an answer asks for."""

    tool: str
    input: dict[str, Json] = field(default_factory=dict[str, Json])

    @property
    def alone(self) -> bool:
        """Whether it may change something, and so waits for those before it."""
        return self.tool in MAY_CHANGE


def read_ask(path: str) -> RequestedCall:
    return RequestedCall("Read", {"file_path": path})


def call_block(request: Request, used: set[str], name: str, given: dict[str, Json]) -> Block:
    """A call with an id that no other call of the conversation has, and the same one
    for the same request. The entry the request was rendered at is part of it: a
    conversation that was taken back and repeated makes calls of its own."""
    chain = request.at(request.count - 1).chain if request.count else b""
    place = request.last.encode("utf-8", "replace")
    number = 0
    while True:
        seed = chain + place + b"%d" % number
        ident = f"toolu_{blake2b(seed, digest_size=12).hexdigest()}"
        if ident not in used:
            used.add(ident)
            return block_of({"type": "tool_use", "id": ident, "name": name, "input": given})
        number += 1
