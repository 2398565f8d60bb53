"""The list that is sent in place of the caller's, and how lists are told apart.

A `Fitted` is a plain list with figures beside it. Lists are known again by fingerprints of their
messages' whole contents: callers change old messages in place, and frameworks copy them.
"""

from __future__ import annotations

import marshal
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any, Generic, SupportsIndex, TypeVar, cast

from reverie.errors import InvalidMessage
from reverie.layers import collapse, tool_results
from reverie.text.format import plural
from reverie.tools.toolset import Toolset
from reverie.transcript.blocks import Block, dump, text_of
from reverie.transcript.names import reference
from reverie.transcript.records import Replaced, ResultDecided
from reverie.transcript.view import View
from reverie.wire.reading import plain

T = TypeVar("T")
_STORED = f"<{tool_results.TAG}>\n"


class Fitted(list[T], Generic[T]):
    """The list to send in place of the caller's, and what became of it."""

    __slots__ = ("before", "changes", "stable", "tokens", "tools")

    def __init__(
        self,
        messages: Sequence[T],
        *,
        tokens: int,
        before: int,
        changes: tuple[str, ...],
        stable: int,
        tools: Toolset,
    ) -> None:
        super().__init__(messages)
        self.tokens = tokens  # rough, with the tools
        self.before = before  # of the caller's list
        self.changes = changes  # what was decided, one sentence each
        self.stable = stable  # messages at the front that the request before had too
        self.tools = tools

    @property
    def saved(self) -> int:
        """Tokens that do not go out because of it."""
        return self.before - self.tokens

    def handle(self, call: object) -> Any:
        """The result of a call that reads back, in the form it came in; else None."""
        return self.tools.handle(call)

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[type, tuple[list[T]]]:
        """A copy is a plain list: who handles calls is no part of it."""
        del protocol
        return list, (list(self),)

    def __repr__(self) -> str:
        return f"Fitted({plural(len(self), 'message')}, {self.tokens:,} of {self.before:,} tokens)"


def checked(messages: object) -> Sequence[Any]:
    """Refuse what is no list of messages."""
    if isinstance(messages, (str, bytes, Mapping)) or not isinstance(messages, Sequence):
        raise InvalidMessage(
            "a list of messages is wanted",
            where=type(cast("object", messages)).__name__,
            do='For one message, hand in [{"role": "user", "content": ...}]',
        )
    return cast("Sequence[Any]", messages)


def is_ours(block: Block) -> bool:
    """Whether a block says what only we say: lines, or a stub with its own call's reference."""
    if block.type == "tool_result":
        text = text_of(block.value.get("content"))
        name = reference(block.call)
        cited = f" with {name} " in text[:500] or f"/{name.removeprefix('r:')}.txt\n" in text[:2000]
        return text.startswith(_STORED) and cited
    return block.get("text").startswith(collapse.INTRO)


def begins(prints: Sequence[bytes], known: Sequence[bytes]) -> bool:
    """Whether one list begins with another."""
    return len(prints) >= len(known) and all(a == b for a, b in zip(prints, known, strict=False))


def fingerprint(message: Any) -> bytes:
    """Of a message's contents, all of them."""
    try:
        data = marshal.dumps(message, 0)  # the plain format: the same for equal values
    except ValueError:
        data = dump(plain(message)).encode()
    return blake2b(data, digest_size=16).digest()


def chains(messages: Sequence[Any]) -> list[str]:
    """For each message what it and all before it come to, the same in any process and however
    the messages are held."""
    found: list[str] = []
    known = b""
    for message in messages:
        data = dump(plain(message)).encode("utf-8", "surrogatepass")
        known = blake2b(known + data, digest_size=16).digest()
        found.append(known.hex())
    return found


def told(view: View) -> tuple[str, ...]:
    """What was decided of a list, one sentence each."""
    return tuple(one for entry in view.entries if (one := _change(entry.record, view)))


def lets_go(view: View) -> bool:
    """Whether a result's content was cleared or stored."""
    decided = (one.record for one in view.entries if isinstance(one.record, ResultDecided))
    return any(one.content and one.action != "kept" for one in decided)


def _change(record: object, view: View) -> str:
    if isinstance(record, ResultDecided) and record.content:
        call = view.calls.get(record.call)
        name = call.name if call else ""
        why = f": {record.why}" if record.why else ""
        return f"{record.action} the result of {name} {reference(record.call)}{why}"
    if isinstance(record, Replaced):
        return f"{record.reason}{f': {record.why}' if record.why else ''}"
    return ""
