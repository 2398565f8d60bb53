"""Models behind OpenAI's wire formats: OpenAI itself, Ollama, vLLM and the like.

One class for both formats; which one is a value. Such providers have no cache marks:
every request of a session and its forks carries the same `prompt_cache_key`, and its
bytes begin with those of the request before. A reply is yielded once, whole, and last.
The environment is never read here.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import replace
from typing import Literal, TypeAlias
from urllib.parse import quote, urlsplit

from reverie.errors import AuthFailed, InvalidMessage, PromptTooLong
from reverie.light import dataclass
from reverie.providers.capabilities import PLAIN, in_force, merge_model_info, table_capabilities
from reverie.providers.connection import (
    NO_KEY,
    TIMEOUT,
    Connection,
    Retries,
    connect,
    exchange,
    persist,
)
from reverie.providers.costs import LOCAL
from reverie.settings.catalog import DEFAULTS, Settings
from reverie.transcript.blocks import Json, add_member, members, parse
from reverie.transcript.messages import bare
from reverie.wire import chat as openai_chat
from reverie.wire import responses as openai_responses
from reverie.wire.failures import FailedAttempt
from reverie.wire.openai import cache_key
from reverie.wire.request import Request
from reverie.world import Capabilities, Event

BASE_URL = "https://api.openai.com/v1"
HERE = ("localhost", "127.0.0.1", "::1")
WireFormat: TypeAlias = Literal["chat", "responses"]


@dataclass(slots=True)
class OpenAIModel:
    """A model that speaks chat completions or responses; one for each session."""

    name: str
    connection: Connection
    retries: Retries
    format: WireFormat = "responses"
    settings: Settings = DEFAULTS
    streaming: bool = True
    official: bool = True  # OpenAI's own names for options, not those of local servers
    cache_key: str = ""
    local: bool = False  # its server runs on this machine
    limit: int | None = None  # a window learned from an error caps every answer
    known: Capabilities | None = None
    _looked_up: bool = False

    @property
    def capabilities(self) -> Capabilities:
        known = self.known or self._known_capabilities()
        return in_force(self.name, known, self.settings, learned=self.limit)

    async def look_up(self) -> Capabilities:
        """Ask the models endpoint once; where it says nothing, the table stands."""
        if not self._looked_up:
            self._looked_up = True
            self.known = merge_model_info(
                self.known or self._known_capabilities(), await self._info()
            )
        return self.capabilities

    def _known_capabilities(self) -> Capabilities:
        """What the table says; a server on this machine takes no money, only time."""
        known = table_capabilities(self.name, PLAIN)
        return replace(known, prices=LOCAL) if self.local else known

    async def _info(self) -> Json:
        """The model as its server describes it, alone or in the list of all, or None."""
        name = bare(self.name)
        for path in (f"/models/{quote(name, safe='')}", "/models"):
            try:
                found = parse(await self.connection.get(path))
            except (FailedAttempt, InvalidMessage):
                continue
            listed = found.get("data") if isinstance(found, dict) else None
            for one in listed if isinstance(listed, list) else [found]:
                if isinstance(one, dict) and one.get("id") == name:
                    return one
        return None

    def body(self, request: Request) -> str:
        """What would be sent."""
        request = self._with_output_limit(_with_model_name(request))
        key = cache_key(request, self.cache_key)
        if self.format == "responses":
            return openai_responses.body(request, key=key, streaming=self.streaming)
        return openai_chat.body(request, key=key, streaming=self.streaming, official=self.official)

    def _with_output_limit(self, request: Request) -> Request:
        """The request with its output limit. Where nothing is known of the model and the setting
        says no less than usual, its server knows better."""
        most, can = self.settings.max_output_tokens, self.capabilities.max_output
        silent = can is None and most >= DEFAULTS.max_output_tokens
        options = request.head.options
        if silent or "max_tokens" in members(options):
            return request
        limited = add_member(options, "max_tokens", str(min(can or most, most)))
        return replace(request, head=replace(request.head, options=limited))

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        request = _with_model_name(request)
        body = self.body(request).encode()
        where = self.connection.where

        def attempt() -> AsyncGenerator[Event, None]:
            if self.format == "responses":
                answer = openai_responses.ResponsesAssembler(request, where)
                return exchange(self.connection, openai_responses.PATH, body, {}, answer)
            return exchange(
                self.connection,
                openai_chat.PATH,
                body,
                {},
                openai_chat.ChatAssembler(request, where),
            )

        try:
            async for event in persist(attempt, self.retries):
                yield event
        except PromptTooLong as error:
            if error.allowed:
                self.limit = min(error.allowed, self.limit or error.allowed)
            raise

    async def aclose(self) -> None:
        await self.connection.close()


def _with_model_name(request: Request) -> Request:
    """The request with the model's name as the provider knows it."""
    return replace(request, head=replace(request.head, model=bare(request.head.model)))


def openai_model(
    name: str,
    *,
    retries: Retries,
    key: str = "",
    base_url: str = BASE_URL,
    wire: WireFormat | None = None,
    settings: Settings = DEFAULTS,
    streaming: bool = True,
    cache_key: str = "",
    timeout: float = TIMEOUT,
) -> OpenAIModel:
    """A model of OpenAI's, or of a server that speaks one of its formats."""
    official = base_url.rstrip("/") == BASE_URL
    if not key and official:
        raise AuthFailed(
            "no key for OpenAI is configured",
            where=name,
            do="Set OPENAI_API_KEY; another provider's is named anthropic:NAME or ollama:NAME; "
            "--model embedded needs no key",
        )
    connection = connect(
        "openai",
        "AsyncOpenAI",
        base_url=base_url,
        credentials={"api_key": key or NO_KEY},
        timeout=timeout,
    )
    return OpenAIModel(
        name,
        connection,
        retries,
        wire or ("responses" if official else "chat"),
        settings,
        streaming,
        official,
        cache_key,
        urlsplit(base_url).hostname in HERE,
    )
