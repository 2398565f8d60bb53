"""`collapse` and `classic`; answers observed in passing.

Old rounds of a long conversation, sealed: the policies `collapse` and `classic`.

What `reverie.fit` does to a list, done to a request after all else was decided; what leaves lies
in files that the client's own tool reads. The same history gives the same bytes, whenever and by
whichever process it is asked for. What the client says before the first prompt, its user's standing
instructions among it, never leaves; and where the client itself sums up, nothing more does.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterable, Iterable, Sequence
from pathlib import Path
from typing import Any, cast

import httpx2

from reverie.context.fitter import Fitter, Policy
from reverie.errors import InvalidMessage, ReverieError
from reverie.interception import decisions
from reverie.interception.decisions import Seal
from reverie.interception.identity import is_notice
from reverie.interception.scan import LIST
from reverie.light import dataclass
from reverie.transcript.blocks import dump, parse
from reverie.wire.chat import ChatAssembler
from reverie.wire.failures import FailedAttempt
from reverie.wire.lists import Format
from reverie.wire.messages import MessagesAssembler
from reverie.wire.reply import Reply, as_reply
from reverie.wire.responses import ResponsesAssembler
from reverie.wire.stream import BadStream, EventParser

Message = dict[str, Any]
FOLDER = "tool-results/sealed"
"""In a session's folder, where clients that were installed may read."""
ASIDE = ("system", "developer")
MOST = 24
"""Conversations that are known at once; one that comes back later is read anew."""


def sealing(policy: Policy) -> Seal:
    """How a request's text becomes one whose old rounds are sealed."""
    fitters: OrderedDict[tuple[Path, str, str], Fitter] = OrderedDict()

    def fitter(key: tuple[Path, str, str], tools: list[Any]) -> Fitter:
        found = fitters.pop(key, None) or Fitter(
            model=key[1],
            tools=tools,
            policy=policy,
            store=key[0] / FOLDER,
            via=key[2],
            marks=False,
        )
        fitters[key] = found
        if len(fitters) > MOST:
            fitters.popitem(last=False)[1].close()
        return found

    def seal(
        form: Format, text: str, reader: str, folder: Path, *, summing: bool = False
    ) -> str | None:
        value = decisions.as_value(parse(text))
        messages: Any = value[LIST[form]]
        if not isinstance(messages, list):
            return None
        head, rest = _split_at_prompt(cast("list[Message]", messages))
        end = _last_answer(rest) if summing else len(rest)
        if not end:
            return None
        key = (folder, str(value.get("model") or ""), reader)
        made = fitter(key, value.get("tools") or []).fit(rest[:end])
        if not made.changes:
            return None
        return dump({**value, LIST[form]: [*_join_messages(head, list(made), form), *rest[end:]]})

    return seal


def _split_at_prompt(messages: list[Message]) -> tuple[list[Message], list[Message]]:
    """What stands before the first prompt, and the rest; a message that has both is parted."""
    for at, message in enumerate(messages):
        if message.get("role") in ASIDE:
            continue
        if message.get("role") != "user":
            return messages[:at], messages[at:]
        blocks = _blocks(message)
        count = next((n for n, one in enumerate(blocks) if not _is_notice(one)), len(blocks))
        if count < len(blocks):
            own = [{**message, "content": blocks[:count]}] if count else []
            parted = {**message, "content": blocks[count:]} if count else message
            return [*messages[:at], *own], [parted, *messages[at + 1 :]]
    return messages, []


def _blocks(message: Message) -> list[Any]:
    content = message.get("content")
    return cast("list[Any]", content) if isinstance(content, list) else [content]


def _is_notice(block: object) -> bool:
    text = block if isinstance(block, str) else decisions.as_value(block).get("text")
    return isinstance(text, str) and is_notice(text)


def _last_answer(messages: Sequence[Message]) -> int:
    """The end of what was asked last, before this request."""
    spoken = (n for n, one in enumerate(messages) if one.get("role") == "assistant")
    return max(spoken, default=0)


def _join_messages(head: list[Message], rest: list[Message], form: Format) -> list[Message]:
    """Both again as one list, blocks of one speaker in one message."""
    if form != "messages" or not head or not rest or head[-1].get("role") != "user":
        return [*head, *rest]
    if rest[0].get("role") != "user":
        return [*head, *rest]
    both = [_text_block(one) for m in (head[-1], rest[0]) for one in _blocks(m)]
    return [*head[:-1], {**rest[0], "content": both}, *rest[1:]]


def _text_block(block: object) -> object:
    return {"type": "text", "text": block} if isinstance(block, str) else block


# --- An answer read on its way past: put together for the shadow session, never held back.
#
# What cannot be read is no answer for the shadow, and passes to the client all the same.


LARGEST = 64 * 1024 * 1024
WHERE = "the provider's answer"


class StreamObserver:
    """One answer, in one piece or as a stream of events."""

    def __init__(self, form: Format, *, streamed: bool) -> None:
        self._events = EventParser() if streamed else None
        self._taken = _assembly(form)
        self._whole = bytearray()
        self._lost = False

    def take(self, piece: bytes) -> None:
        """A few bytes that passed."""
        if self._lost:
            return
        try:
            if self._events is None:
                self._whole += piece
                self._lost = len(self._whole) > LARGEST
                return
            for event in self._events.feed(piece):
                self._taken.take(event.data)
        except (BadStream, InvalidMessage, ReverieError, FailedAttempt, KeyError, ValueError):
            self._lost = True

    @property
    def is_whole(self) -> bool:
        """Whether a stream ended as one does that was not cut; True where nobody can tell."""
        return self._events is None or self._lost or self._taken.done or self._taken.ended()

    def reply(self) -> Reply | None:
        """The answer, where it is whole."""
        if self._lost:
            return None
        try:
            if self._events is None:
                return as_reply(self._whole.decode())
            return self._taken.reply() if self.is_whole else None
        except (InvalidMessage, ReverieError, FailedAttempt, UnicodeDecodeError, KeyError):
            return None


def _assembly(form: Format) -> MessagesAssembler | ChatAssembler | ResponsesAssembler:
    if form == "chat":
        return ChatAssembler(None, WHERE)
    return ResponsesAssembler(None, WHERE) if form == "responses" else MessagesAssembler(WHERE)


# --- The provider behind the proxy: requests up, answers down, byte by byte.
#
# Nothing is buffered, asked again or unpacked on the way. Headers that belong to one connection
# stay on it, and so do ours; no other is dropped or added but that the answer comes unpacked. A
# key passes and is kept nowhere.


CONNECT_SECONDS = 10.0
REACH_SECONDS = 3.0
_OF_ONE_CONNECTION = frozenset(
    {
        *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te"),
        *("trailer", "transfer-encoding", "upgrade", "proxy-connection", "host"),
    }
)
_CHANGED = frozenset({"accept-encoding", "content-length"})
OURS = "x-reverie"
Headers = list[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class Upstreams:
    """Where each kind of request goes."""

    anthropic: str = "https://api.anthropic.com"
    openai: str = "https://api.openai.com"

    def base(self, name: str) -> str:
        return (self.openai if name == "openai" else self.anthropic).rstrip("/")


def upwards(
    headers: Iterable[tuple[bytes, bytes]], *, length: bool, packed: bool = True
) -> Headers:
    """The headers that go up: the length only where the body is the client's own, unread, and how
    it is packed only where it still is."""
    out: Headers = [(b"accept-encoding", b"identity")]
    for name, value in headers:
        key = name.decode("latin-1").lower()
        if key == "content-encoding" and not packed:
            continue
        kept = length and key == "content-length"
        if not kept and (key in _OF_ONE_CONNECTION or key in _CHANGED or key.startswith(OURS)):
            continue
        out.append((name, value))
    return out


def downwards(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    """The headers that come down."""
    return [(n, v) for n, v in headers if n.decode("latin-1").lower() not in _OF_ONE_CONNECTION]


def client() -> httpx2.AsyncClient:
    """One client for all requests; a provider may think as long as it likes."""
    patience = httpx2.Timeout(None, connect=CONNECT_SECONDS)
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=64)
    return httpx2.AsyncClient(timeout=patience, limits=limits, follow_redirects=False)


def request(
    to: httpx2.AsyncClient,
    method: str,
    url: str,
    headers: Headers,
    body: bytes | AsyncIterable[bytes] | None,
) -> httpx2.Request:
    made = to.build_request(method, url, content=body)
    length = made.headers.get("content-length")
    names = {name.lower() for name, _ in headers}
    kept = [(b"host", made.headers["host"].encode())]
    if length is not None and b"content-length" not in names:
        kept.append((b"content-length", length.encode()))
    if body is not None and length is None and b"content-length" not in names:
        kept.append((b"transfer-encoding", b"chunked"))
    made.headers = httpx2.Headers([*kept, *headers])
    return made


async def is_reachable(to: httpx2.AsyncClient, url: str) -> bool:
    """Whether anybody listens there, whatever it says."""
    try:
        await to.head(url, timeout=REACH_SECONDS)
    except (httpx2.ConnectError, httpx2.ConnectTimeout):
        return False
    except httpx2.HTTPError:
        return True
    return True
