"""A request as the clients of three APIs take it: the arguments of their own calls.

`client.messages.create(**request.anthropic())`, `client.responses.create(**request.responses())`,
`client.chat.completions.create(**request.openai())`: each can be sent as it is. What a client has
no name for goes into `extra_headers` and `extra_body`, which every version of the SDKs takes.
The bytes that enter the provider's prompt cache are those that our own connection would send.
"""

from __future__ import annotations

import re
from dataclasses import field, fields, replace
from typing import Any, cast

from reverie.light import dataclass
from reverie.transcript import request as requests
from reverie.transcript.blocks import Object, added, joined, members, parse
from reverie.transcript.tokens import bare
from reverie.wire import chat, responses
from reverie.wire.native import without_foreign
from reverie.wire.openai import cache_key

LONG_BETA = "context-1m-2025-08-07"
MANAGEMENT_BETA = "context-management-2025-06-27"
COMPACTION_BETA = "compact-2026-09-04"
BINDING_BETA = "thinking-binding-controls-2026-08-01"
OURS = frozenset({"betas", "openai", "prompt_cache_key", "stream"})
"""Options that are for us, and no part of a request to the Messages API."""
_NAMED = frozenset(
    {
        *("model", "max_tokens", "messages", "system", "tools", "tool_choice", "metadata"),
        *("stop_sequences", "temperature", "top_p", "top_k", "thinking", "service_tier"),
    }
)
UNSTREAMED, OLDEST = 21_000, 8_192
"""Output tokens at most where nobody says how many: for more the client wants a stream."""
_OLDEST = re.compile(r"claude-(opus-4(-[01]\b|@|-2025|$)|4-opus)")


@dataclass(slots=True, unsafe_hash=True)
class Request(requests.Request):
    """One request to a model. Never changed once it is made."""

    limit: int = field(default=0, compare=False)  # output tokens, where the options name none

    @classmethod
    def of(cls, request: requests.Request, limit: int = 0) -> Request:
        """The same request, as this class."""
        known = {one.name: getattr(request, one.name) for one in fields(requests.Request)}
        return cls(**known, limit=limit)

    def anthropic(self) -> dict[str, Any]:
        """The arguments of `client.messages.create` and `client.messages.stream`."""
        sent = without_foreign(self)
        options = {k: raw for k, (raw, _) in members(self.head.options).items() if k not in OURS}
        options.setdefault("max_tokens", str(self._unstreamed()))
        whole = _object(requests.Request.body(named(sent, options)))
        found = {key: value for key, value in whole.items() if key in _NAMED}
        other = {key: value for key, value in whole.items() if key not in _NAMED}
        if other:
            found["extra_body"] = other
        betas = ",".join(betas_of(sent))
        if betas:
            found["extra_headers"] = {"anthropic-beta": betas}
        return found

    def openai(self) -> dict[str, Any]:
        """The arguments of `client.chat.completions.create`."""
        return self.chat(official=True)

    def chat(self, *, official: bool) -> dict[str, Any]:
        """The same for a server that is not OpenAI's own, where `official` is false."""
        sent, key = self._limited(), cache_key(self)
        return _object(chat.body(sent, key=key, streaming=False, official=official))

    def responses(self) -> dict[str, Any]:
        """The arguments of `client.responses.create`."""
        return _object(responses.body(self._limited(), key=cache_key(self), streaming=False))

    def value(self) -> Object:
        """Another name of `anthropic()`, until 1.0."""
        return self.anthropic()

    def _unstreamed(self) -> int:
        most = OLDEST if _OLDEST.search(self.head.model) else UNSTREAMED
        return min(self.limit or most, most)

    def _limited(self) -> requests.Request:
        options = self.head.options
        if self.limit and "max_tokens" not in members(options):
            options = added(options, "max_tokens", str(self.limit))
        return named(self, {k: raw for k, (raw, _) in members(options).items()})


def _object(text: str) -> dict[str, Any]:
    return cast("dict[str, Any]", parse(text))


def betas_of(request: requests.Request) -> tuple[str, ...]:
    """The betas a request's options name, and those that what it carries is refused without."""
    options = {k: value for k, (_, value) in members(request.head.options).items()}
    given = options.get("betas")
    names = [str(b) for b in given] if isinstance(given, list) else []
    if request.head.model != bare(request.head.model):
        names.append(LONG_BETA)
    if "context_management" in options:
        names.append(MANAGEMENT_BETA)
    blocks = (p.block for m in request.messages() for p in m.pieces)
    if "compaction" in options or any(b.type == "compaction" for b in blocks):
        names.append(COMPACTION_BETA)
    thinking = options.get("thinking")
    if isinstance(thinking, dict) and "block_binding" in thinking:
        names.append(BINDING_BETA)
    return tuple(dict.fromkeys(names))


def named(request: requests.Request, options: dict[str, str]) -> requests.Request:
    """The request with these options and the model's name as the provider knows it."""
    head = replace(request.head, model=bare(request.head.model), options=joined(options))
    return replace(request, head=head)
