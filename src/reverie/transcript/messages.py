"""Items, messages, usage and window sizes.

Items and messages: what a view holds, between records and a request.

An `Item` is what one record puts into the conversation. A `Message` is a run of items
of one role as the provider reads it, with its JSON text, size and chained digest worked
out once. Pure values and functions; nothing here decides anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from hashlib import blake2b
from typing import cast

from reverie.light import dataclass
from reverie.transcript.blocks import Block, Json, block_of, text_block
from reverie.transcript.records import Role, Usage, unchanging

INTERRUPTED = "[No result: the call was interrupted before it finished]"
MISSING_START = "[The conversation before this point is not in this transcript]"
HEAD = "head"


@unchanging
class SentBlock:
    """A block that is sent, and where it comes from."""

    block: Block
    source: str  # entry id
    index: int  # place among the record's blocks


@dataclass(slots=True, unsafe_hash=True)
class Item:
    """What one record (or one replaced range) puts into the conversation. Never changed
    once made; not frozen, since a frozen value takes longer to make."""

    id: str
    role: Role
    pieces: tuple[SentBlock, ...]
    kind: str = "message"  # message, attached, replaced, synthetic or head
    covers: frozenset[str] = frozenset()
    seals: bool = False
    reason: str = ""  # why a range was replaced
    tokens: int = field(init=False, compare=False)
    calls: tuple[str, ...] = field(init=False, compare=False)  # ids of the calls in it
    results: tuple[str, ...] = field(init=False, compare=False)  # ids of the calls it answers

    def __post_init__(self) -> None:
        tokens, calls, results = 0, (), ()
        for piece in self.pieces:
            block = piece.block
            tokens += block.tokens
            if block.type == "tool_use":
                calls += (block.call,)
            elif block.type == "tool_result":
                results += (block.call,)
        self.tokens, self.calls, self.results = tokens, calls, results

    def holds(self, entry: str) -> bool:
        return entry == self.id or entry in self.covers


class Message:
    """One message of a request. Never changed once made; its text and chained digest are
    worked out when they are first asked for."""

    __slots__ = ("_before", "_chain", "_text", "end", "pieces", "role")

    def __init__(self, role: Role, pieces: tuple[SentBlock, ...], before: Message | None) -> None:
        self.role: Role = role
        self.pieces = pieces
        self.end = len(pieces) + (before.end if before else 0)  # blocks of the request so far
        self._before = before
        self._chain = b""
        self._text = ""

    @property
    def start(self) -> int:
        return self.end - len(self.pieces)

    @property
    def tokens(self) -> int:
        return sum([p.block.tokens for p in self.pieces])

    @property
    def text(self) -> str:
        """Its JSON text."""
        if not self._text:
            self._text = message_text(self.role, [p.block.raw for p in self.pieces])
        return self._text

    @property
    def chain(self) -> bytes:
        """A digest of all blocks of the request up to here."""
        todo: list[Message] = []
        at: Message | None = self
        while at is not None and not at._chain:
            todo.append(at)
            at = at._before
        chain = at._chain if at else b""
        for one in reversed(todo):
            for piece in one.pieces:
                chain = link(chain, one.role, piece.block)
            one._chain, one._before = chain, None
        return chain

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Message):
            return False
        return (self.role, self.pieces, self.chain) == (other.role, other.pieces, other.chain)

    def __hash__(self) -> int:
        return hash(self.chain)

    def __repr__(self) -> str:
        return f"Message({self.role!r}, {self.pieces!r})"


def link(chain: bytes, role: Role, block: Block) -> bytes:
    return blake2b(chain + role.encode() + block.digest, digest_size=16).digest()


def message_text(role: Role, blocks: Iterable[str]) -> str:
    return f'{{"role":"{role}","content":[{",".join(blocks)}]}}'


def message(run: Sequence[Item], before: Message | None) -> Message:
    """A run of items of one role as one message; results stand before everything else."""
    role = run[0].role
    pieces = run[0].pieces
    if len(run) > 1:
        pieces = tuple([p for item in run for p in item.pieces])
    if role == "user" and len(pieces) > 1 and any(item.results for item in run):
        results = [p for p in pieces if p.block.type == "tool_result"]
        if len(results) < len(pieces):
            pieces = (*results, *[p for p in pieces if p.block.type != "tool_result"])
    return Message(role, pieces, before)


def interrupted_item(calls: Sequence[str], after: str) -> Item:
    """Results for calls that never got one, so that no request has an orphan."""
    return Item(
        f"{after}:interrupted",
        "user",
        tuple(
            SentBlock(interrupted_result(call), f"{after}:interrupted", i)
            for i, call in enumerate(calls)
        ),
        "synthetic",
    )


def interrupted_result(call: str) -> Block:
    return block_of(
        {"type": "tool_result", "tool_use_id": call, "content": INTERRUPTED, "is_error": True}
    )


def missing_start() -> Item:
    return Item("start", "user", (SentBlock(text_block(MISSING_START), "start", 0),), "synthetic")


# --- Tools of clients that read one file, or a range of it, by its path; no shell, and none of
# MCP.
#
# What such a tool gives was asked for. Pure.


TOOLS: Mapping[str, tuple[str, ...]] = {
    "Read": ("file_path", "filepath"),  # Claude Code; Continue
    "NotebookRead": ("notebook_path",),  # Claude Code, older
    "read": ("filePath", "path"),  # opencode; pi
    # qwen and codex; gemini, older; cline and Zed; Continue; Copilot; Cursor
    "read_file": ("file_path", "absolute_path", "path", "filepath", "filePath", "target_file"),
    "view": ("file_path", "path"),  # crush; Copilot
}
"""By tool: the members of its input that name a file, each as one client or another has it."""
_NUMBER = re.compile(r"( *)([0-9]{1,9})(→|\t|\| |: )")
_AROUND = re.compile(
    r"(?>(?s:<system-reminder>.*?</system-reminder>)|<(\w+)>[^\n<]*</\1>|</?\w+>|\([^\n]*\)|\n)*+"
)
"""What clients put around the lines of a file."""


def reads_file(tool: str, given: object) -> bool:
    """Whether a call reads a file by its path."""
    members = TOOLS.get(tool, ()) if isinstance(given, Mapping) else ()
    value = cast("Mapping[str, object]", given)
    return any(isinstance(value.get(name), str) and value[name] for name in members)


def stays_whole(tool: str, given: object, text: str, limit: int) -> bool:
    """Whether a result is a file read by its path, of so many bytes at most."""
    return reads_file(tool, given) and len(text.encode("utf-8", "replace")) <= limit


def strip_line_numbers(tool: str, given: object, text: str) -> str:
    """What a read gave without the numbers that the tool put before each line; as it is where
    that is not certain."""
    around = _AROUND.match(text)
    begin = around.end() if around else 0
    first = _NUMBER.match(text, begin)
    if first is None or not reads_file(tool, given) or not _is_certain(tool, given, first):
        return text
    lines = text[begin:].split("\n")
    for at, line in enumerate(lines):
        found = _NUMBER.match(line)
        if found is None or found[3] != first[3] or int(found[2]) != int(first[2]) + at:
            if _AROUND.fullmatch("\n".join(lines[at:])) is None:
                return text
            break
        lines[at] = line[found.end() :]
    return text[:begin] + "\n".join(lines)


def _is_certain(tool: str, given: object, first: re.Match[str]) -> bool:
    """Whether numbers are a tool's: some files have a column of them, so the form has to tell."""
    pad, digits, sign = first.groups()
    if sign == "\t":
        return tool == "Read" or bool(pad)
    if sign == ": ":
        return tool == "read" and "filePath" in cast("Mapping[str, object]", given)
    return sign == "→" or len(digits) > 4


# --- How large a model's window is, first answer wins; and what a model's name says.


MILLION = 1_000_000
SUFFIX = "[1m]"
BETA_PREFIX = "context-1m-"


def context_window(
    model: str,
    *,
    known: int | None = None,
    betas: Iterable[str] = (),
    fallback: int,
    learned: int | None = None,
) -> int:
    """The window of a model; a limit learned from a provider's error caps every answer."""
    if model.endswith(SUFFIX):
        window = MILLION
    elif known:
        window = known
    elif any(b.startswith(BETA_PREFIX) for b in betas):
        window = MILLION
    else:
        window = fallback
    return min(window, learned) if learned else window


def bare(model: str) -> str:
    """A model's name as the provider knows it: without the suffix that asks for 1 M."""
    return model.removesuffix(SUFFIX)


def family(model: str) -> str:
    """A model's name without its vendor and in small letters, for the table."""
    return bare(model).lower().rpartition("/")[2].removeprefix("anthropic.")


# --- What a provider of the Messages API says of its tokens, in our form.


def usage_of(value: Mapping[str, Json]) -> Usage:
    """The Messages API's usage in our form."""
    created = value.get("cache_creation")
    long = created.get("ephemeral_1h_input_tokens") if isinstance(created, dict) else 0
    return Usage(
        uncached=count(value.get("input_tokens")),
        read=count(value.get("cache_read_input_tokens")),
        written=count(value.get("cache_creation_input_tokens")),
        output=count(value.get("output_tokens")),
        written_1h=count(long),
    )


def count(value: Json) -> int:
    """A number of tokens, whatever was sent in its place."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
