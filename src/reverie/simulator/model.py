"""The simulated provider as a `world.Model`, without a wire between.

A request's own bytes go to the engine and the answer's own blocks come back, so what a
layer sends is checked, cached and billed as a server would. Several models may share
one engine and its cache. It never retries and never sleeps.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field

from reverie.errors import PromptTooLong, ProviderError
from reverie.simulator.answers import SimulatedResponse
from reverie.simulator.engine import Engine
from reverie.simulator.ledger import Bill
from reverie.simulator.profiles import ModelSpec, TooLong
from reverie.simulator.prompt_cache import loads
from reverie.simulator.validation import ANYBODY, needed_betas
from reverie.transcript.blocks import Json, Object, dump
from reverie.transcript.messages import usage_of
from reverie.transcript.records import Ttl
from reverie.wire.reply import Delta, Reply
from reverie.wire.request import Request
from reverie.world import Capabilities, Event

PROVIDER = "simulator"
SESSION = "x-reverie-session-id"


@dataclass(eq=False)
class SimulatedModel:
    """An in-process twin of a provider and its client."""

    engine: Engine = field(default_factory=Engine)
    name: str = "claude-opus-5-5"
    session: str = "main"
    key: str = "simulated"
    max_tokens: int = 32_000  # for requests that do not say
    cache_edits: bool = True
    betas: tuple[str, ...] = ()
    window: int | None = None  # for a model the catalogue does not know
    minimum: int | None = None

    def __post_init__(self) -> None:
        known = self.engine.models.by_name().get(self.name)
        if known is None or self.window or self.minimum is not None:
            base = known or ModelSpec(self.name)
            self.engine.models.add(
                ModelSpec(
                    self.name,
                    window=self.window or base.window,
                    output=base.output,
                    minimum=base.minimum if self.minimum is None else self.minimum,
                    compaction=base.compaction,
                )
            )

    @property
    def capabilities(self) -> Capabilities:
        spec = self.engine.models.find(self.name)
        rules = self.engine.profile
        marked = rules.caching == "marks"
        lifetimes: tuple[Ttl, ...] = ("5m", "1h") if marked else ()
        return Capabilities(
            marks=rules.marks if marked else 0,
            lifetimes=lifetimes,
            cache_edits=self.cache_edits,
            context_management=True,
            compaction=spec.compaction,
            thinking_binding=rules.binding == "prefix",
            diagnostics=True,
            window=spec.window,
            max_output=spec.output,
            min_cacheable=spec.minimum if rules.minimum is None else rules.minimum,
        )

    @property
    def bill(self) -> Bill:
        """What this session has cost so far."""
        return self.engine.bills.get(self.session) or Bill(self.session)

    def headers(self, body: Object) -> Mapping[str, str]:
        given = body.get("betas")
        betas = [*self.betas, *needed_betas(body), *(given if isinstance(given, list) else [])]
        named = ",".join(dict.fromkeys(str(b) for b in betas))
        return {**ANYBODY, "x-api-key": self.key, SESSION: self.session, "anthropic-beta": named}

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        """The answer as it comes; the last event is the whole reply."""
        text = request.body()
        body = loads(text)
        headers = self.headers(body)
        if not body.get("model"):
            body["model"] = self.name
        body.setdefault("max_tokens", self.max_tokens)
        body.pop("betas", None)
        body.pop("stream", None)
        try:
            outcome = await self.engine.messages(body, headers, request=request, original=text)
        except TooLong as error:
            raise PromptTooLong(
                error.message, needed=error.needed, allowed=error.allowed, where=self.name
            ) from error
        if outcome.fault is not None and outcome.fault.kind in ("cut", "garbled", "raw"):
            raise ProviderError("the stream ended before the answer did", where=self.name)
        for block in outcome.response.content:
            if delta := _delta(block.type, block.text):
                yield delta
        yield reply_of(outcome.response)


def _delta(kind: str, text: str) -> Delta | None:
    match kind:
        case "text":
            return Delta("text", text)
        case "thinking":
            return Delta("thinking", text)
        case "tool_use":
            return Delta("tool", text)
        case _:
            return None


def reply_of(response: SimulatedResponse) -> Reply:
    """A response in the form all providers are translated into."""
    managed = response.extra.get("context_management")
    edits: Json = managed.get("applied_edits") if isinstance(managed, dict) else []
    return Reply(
        response.content,
        usage_of(response.usage),
        response.stop_reason,
        response.model,
        PROVIDER,
        response.id,
        applied_edits=dump(edits),
        diagnostics=dump(response.extra.get("diagnostics")),
    )
