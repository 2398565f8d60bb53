"""The Messages API, through the official SDK's connection.

What leaves is the request's own text: its options without what is ours, its blocks with
their marks, and behind them what is no part of any hash (`max_tokens` where none is set,
`diagnostics`, `stream`). `betas` of the options become the header. What comes back is
read from the event lines. A reply is yielded once, whole, and last; a stream that breaks
off is tried again from the start. The environment is never read here.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from dataclasses import field
from urllib.parse import quote

from reverie.errors import AuthFailed, InvalidMessage, PromptTooLong, ProviderError
from reverie.light import dataclass
from reverie.providers.capabilities import (
    LIKE_CLAUDE,
    in_force,
    merge_model_info,
    table_capabilities,
)
from reverie.providers.connection import (
    NO_KEY,
    TIMEOUT,
    Connection,
    Retries,
    connect,
    exchange,
    persist,
    whole,
)
from reverie.settings.catalog import DEFAULTS, Settings
from reverie.transcript.blocks import add_member, dump, members, parse
from reverie.transcript.messages import bare, count
from reverie.wire.failures import FailedAttempt, malformed_answer
from reverie.wire.messages import MessagesAssembler
from reverie.wire.openai import without_foreign
from reverie.wire.reply import Reply
from reverie.wire.request import OURS, Request, betas_of, with_model_name
from reverie.world import Capabilities, Event

BASE_URL = "https://api.anthropic.com"
COUNT_BETA = "token-counting-2024-11-01"
COUNTED = frozenset(
    {"cache_control", "context_management", "output_config", "thinking", "tool_choice"}
)
REMEMBERED = 64  # query sources whose last answer is known, for diagnostics


@dataclass(slots=True)
class AnthropicModel:
    """A model behind the Messages API; one for each session."""

    name: str
    connection: Connection
    retries: Retries
    settings: Settings = DEFAULTS
    streaming: bool = True
    limit: int | None = None  # a window learned from an error caps every answer
    known: Capabilities | None = None
    _betas: tuple[str, ...] = ()
    _looked_up: bool = False
    _answers: OrderedDict[str, str] = field(default_factory=OrderedDict[str, str])

    @property
    def capabilities(self) -> Capabilities:
        known = self.known or table_capabilities(self.name, LIKE_CLAUDE)
        return in_force(self.name, known, self.settings, betas=self._betas, learned=self.limit)

    async def look_up(self) -> Capabilities:
        """Ask the models endpoint once; where it does not answer, the table stands."""
        if not self._looked_up:
            self._looked_up = True
            try:
                info = parse(
                    await self.connection.get(f"/v1/models/{quote(bare(self.name), safe='')}")
                )
            except (FailedAttempt, InvalidMessage):
                return self.capabilities
            self.known = merge_model_info(
                self.known or table_capabilities(self.name, LIKE_CLAUDE), info
            )
        return self.capabilities

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        sent = without_foreign(request)
        betas = betas_of(sent)
        self._betas = betas
        body = self._body(sent).encode()

        def attempt() -> AsyncGenerator[Event, None]:
            answer = MessagesAssembler(self.connection.where)
            return exchange(self.connection, "/v1/messages", body, _headers(betas), answer)

        try:
            async for event in persist(attempt, self.retries):
                if isinstance(event, Reply):
                    self._remember(request.source, event.message_id)
                yield event
        except PromptTooLong as error:
            if error.allowed:
                self.limit = min(error.allowed, self.limit or error.allowed)
            raise

    async def count_tokens(self, request: Request) -> int:
        """What the provider counts for a request; nothing is generated."""
        sent = without_foreign(request)
        betas = betas_of(sent)
        kept = {k: raw for k, (raw, _) in members(sent.head.options).items() if k in COUNTED}
        body = with_model_name(sent, kept).body(marked=False).encode()
        headers = _headers((*betas, COUNT_BETA) if betas else ())
        try:
            async with self.connection.post("/v1/messages/count_tokens", body, headers) as found:
                text = await whole(found, self.connection.where)
            answer = parse(text)
        except FailedAttempt as failed:
            raise failed.error from failed.__cause__
        except InvalidMessage as error:
            raise malformed_answer(error.what, self.connection.where).error from error
        if not isinstance(answer, dict) or "input_tokens" not in answer:
            raise ProviderError("the token count has no number", where=self.connection.where)
        return count(answer["input_tokens"])

    async def aclose(self) -> None:
        await self.connection.close()

    def _body(self, request: Request) -> str:
        options = {k: raw for k, (raw, _) in members(request.head.options).items()}
        text = with_model_name(
            request, {k: raw for k, raw in options.items() if k not in OURS}
        ).body()
        known = self.capabilities
        if "max_tokens" not in options:
            most = self.settings.max_output_tokens
            text = add_member(text, "max_tokens", str(min(known.max_output or most, most)))
        if known.diagnostics and "diagnostics" not in options:
            previous = self._answers.get(request.source)
            text = add_member(text, "diagnostics", dump({"previous_message_id": previous}))
        return add_member(text, "stream", "true") if self.streaming else text

    def _remember(self, source: str, message_id: str) -> None:
        self._answers[source] = message_id
        self._answers.move_to_end(source)
        while len(self._answers) > REMEMBERED:
            self._answers.popitem(last=False)


def _headers(betas: Iterable[str]) -> dict[str, str]:
    header = ",".join(betas)
    return {"anthropic-beta": header} if header else {}


def anthropic_model(
    name: str,
    *,
    retries: Retries,
    key: str = "",
    token: str = "",
    base_url: str = BASE_URL,
    settings: Settings = DEFAULTS,
    streaming: bool = True,
    timeout: float = TIMEOUT,
) -> AnthropicModel:
    """A model of Anthropic's, or of a server that speaks its API."""
    if not (key or token) and base_url.rstrip("/") == BASE_URL:
        raise AuthFailed(
            "no key for Anthropic is configured",
            where=name,
            do="Set ANTHROPIC_API_KEY, or use the embedded model",
        )
    credentials = {"auth_token": token} if token and not key else {"api_key": key or NO_KEY}
    connection = connect(
        "anthropic",
        "AsyncAnthropic",
        base_url=base_url,
        credentials=credentials,
        timeout=timeout,
    )
    return AnthropicModel(name, connection, retries, settings, streaming)
