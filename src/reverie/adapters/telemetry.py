"""OpenTelemetry, GenAI conventions.

OpenTelemetry: spans and metrics of sessions, by the GenAI conventions. Off unless asked for.

    from reverie.adapters import telemetry
    telemetry.enable()                       # to the providers that the process has

It is made of what a session writes down anyway: a turn, each request of it, the layers that did
something, the agents behind it and background work. Nothing that was said, asked or answered is in
it, unless `texts=True`. An exporter that fails or raises never reaches a turn.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opentelemetry import metrics, trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

import reverie
from reverie import observer
from reverie.errors import NotAvailable
from reverie.observer import ObservedConversation, WorkKind
from reverie.session.budget import weight
from reverie.transcript.blocks import Block, text_of
from reverie.transcript.records import (
    AssistantMessage,
    Entry,
    ForkEnded,
    HeadSet,
    RequestRefused,
    Sent,
    TurnEnded,
    Usage,
    UserMessage,
)

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation
    from opentelemetry.trace import TracerProvider

__all__ = ["Telemetry", "enable", "from_environment"]

COST = "reverie.cost"
HIT_RATE = "reverie.cache.hit_rate"
POLLUTION = "reverie.memory.pollution"
SOURCE = "reverie.source"


def enable(
    *,
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
    texts: bool = False,
) -> Telemetry:
    """Begin to tell; `disable` of what is returned ends it."""
    made = Telemetry(
        trace.get_tracer("reverie", reverie.__version__, tracer_provider),
        metrics.get_meter("reverie", reverie.__version__, meter_provider),
        texts,
    )
    observer.put(made)
    return made


def from_environment(wanted: str) -> Telemetry:
    """What `REVERIE_TELEMETRY` asks for: `on`, or `texts`. Where the process has no provider yet,
    OpenTelemetry makes one from its own variables (OTEL_TRACES_EXPORTER and so on)."""
    from opentelemetry.sdk._configuration import (
        _OTelSDKConfigurator,  # pyright: ignore[reportPrivateUsage]
    )

    if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        configurator: Any = _OTelSDKConfigurator()
        try:
            configurator.configure()
        except (RuntimeError, ValueError, ImportError) as error:
            do = "Install the exporter's package, or set OTEL_TRACES_EXPORTER=none"
            raise NotAvailable(f"OpenTelemetry cannot be set up: {error}", do=do) from error
    return enable(texts=wanted == "texts")


@dataclass
class _ConversationSpans:
    """What is going on in one conversation."""

    span: Span | None = None  # its turn, or the agent's whole life
    sent: float = 0.0
    last: float = 0.0
    said: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    model: str = ""  # that is asked
    calls: dict[str, tuple[str, float]] = field(default_factory=dict[str, tuple[str, float]])


class Telemetry:
    """Watches, and tells OpenTelemetry."""

    def __init__(self, tracer: trace.Tracer, meter: metrics.Meter, texts: bool) -> None:
        self._tracer, self._texts = tracer, texts
        self._open: dict[tuple[str, str], _ConversationSpans] = {}
        self._projects: set[str] = set()
        about = "Number of input and output tokens used"
        self._tokens = meter.create_histogram(GEN_AI_CLIENT_TOKEN_USAGE, "{token}", about)
        about = "How long a request took"
        self._duration = meter.create_histogram(GEN_AI_CLIENT_OPERATION_DURATION, "s", about)
        about = "What requests cost, in input tokens"
        self._cost = meter.create_counter(COST, "{token}", about)
        about = "The part of a request that was read from the prompt cache"
        self._hits = meter.create_histogram(HIT_RATE, "1", about)
        about = "The part of a project's memories that should not be there, as last checked"
        meter.create_observable_gauge(POLLUTION, [self._pollution], "1", about)

    def disable(self) -> None:
        observer.take_away(self)

    # --- what a watcher is told

    def saw(self, of: ObservedConversation, entries: Sequence[Entry]) -> None:
        if of.project:
            self._projects.add(of.project)
        known = self._open.setdefault((of.session, of.agent), _ConversationSpans())
        for entry in entries:
            known.last = entry.at
            self._entry(of, known, entry)

    def _entry(self, of: ObservedConversation, known: _ConversationSpans, entry: Entry) -> None:
        if known.sent and isinstance(entry.record, Sent | TurnEnded):
            self._record_failure(of, known, "", entry.at)
        match entry.record:
            case UserMessage() as said:
                if known.span is None and (of.agent or said.origin == "user"):
                    known.span = self._began(of, entry.at)
                self._record_results(known, said.blocks, entry.at)
                if self._texts:
                    known.said.append({"role": "user", "parts": list(_parts(said.blocks))})
            case HeadSet() as head:
                known.model = head.model
            case Sent():
                known.sent = entry.at
            case AssistantMessage() as answer:
                self._record_answer(of, known, answer, entry.at)
            case RequestRefused() as refused:
                self._record_failure(of, known, refused.error, entry.at)
            case TurnEnded() as ended if known.span is not None:
                known.span.set_attribute("reverie.turn.outcome", ended.outcome)
                self._end_span(known, entry.at)
            case ForkEnded() as ended if (of.session, ended.agent) not in self._open:
                self._record_usage(ended.usage, of, {GEN_AI_OPERATION_NAME: "chat"}, ended.source)
            case _:
                pass

    def closed(self, of: ObservedConversation, at: float) -> None:
        known = self._open.pop((of.session, of.agent), None)
        if known is not None:
            ended = known.last if of.agent else at
            if known.sent:
                self._record_failure(of, known, "", ended)
            self._end_span(known, ended)

    def ran(
        self,
        kind: WorkKind,
        name: str,
        session: str,
        times: tuple[float, float],
        error: str,
    ) -> None:
        begun, ended = times
        about = {f"reverie.{kind}.name": name, GEN_AI_CONVERSATION_ID: session}
        span = self._span(f"reverie.{kind} {name}", self._open.get((session, "")), begun, about)
        if error:
            span.set_attribute(ERROR_TYPE, error.partition(":")[0] if self._texts else "failed")
            span.set_status(Status(StatusCode.ERROR))
        span.end(_ns(ended))

    # --- spans

    def _span(
        self,
        name: str,
        within: _ConversationSpans | None,
        at: float,
        about: dict[str, Any],
        kind: SpanKind = SpanKind.INTERNAL,
    ) -> Span:
        above = within.span if within else None
        context = trace.set_span_in_context(above) if above is not None else None
        return self._tracer.start_span(name, context, kind, about, start_time=_ns(at))

    def _began(self, of: ObservedConversation, at: float) -> Span:
        """A turn of the session's own, or an agent behind it."""
        name = of.source if of.agent else "reverie"
        about: dict[str, Any] = {
            GEN_AI_OPERATION_NAME: "invoke_agent",
            GEN_AI_AGENT_NAME: name,
            GEN_AI_CONVERSATION_ID: of.session,
        }
        if of.agent:
            about[GEN_AI_AGENT_ID] = of.agent
        main = self._open.get((of.session, "")) if of.agent else None
        return self._span(f"invoke_agent {name}", main, at, about)

    def _end_span(self, known: _ConversationSpans, at: float) -> None:
        if known.span is not None:
            known.span.end(_ns(at))
            known.span = None

    def _record_answer(
        self,
        of: ObservedConversation,
        known: _ConversationSpans,
        answer: AssistantMessage,
        at: float,
    ) -> None:
        about: dict[str, Any] = {
            GEN_AI_OPERATION_NAME: "chat",
            GEN_AI_PROVIDER_NAME: answer.provider or "unknown",
            GEN_AI_RESPONSE_MODEL: answer.model or "unknown",
        }
        usage, begun = answer.usage or Usage(), known.sent or at
        span = self._round(of, known, about, begun)
        span.set_attributes(
            {
                GEN_AI_RESPONSE_ID: answer.message_id,
                GEN_AI_RESPONSE_FINISH_REASONS: (answer.stop_reason,),
                GEN_AI_USAGE_INPUT_TOKENS: usage.input,
                GEN_AI_USAGE_OUTPUT_TOKENS: usage.output,
                GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS: usage.read,
                GEN_AI_USAGE_CACHE_CREATION_INPUT_TOKENS: usage.written,
            }
        )
        if self._texts:
            said = [{"role": "assistant", "parts": list(_parts(answer.blocks))}]
            span.set_attribute(GEN_AI_INPUT_MESSAGES, _json(known.said))
            span.set_attribute(GEN_AI_OUTPUT_MESSAGES, _json(said))
            known.said = []
        span.end(_ns(at))
        calls = [one for one in answer.blocks if one.type == "tool_use"]
        known.calls = {one.call: (one.get("name"), at) for one in calls}
        known.sent = 0.0
        self._duration.record(max(0.0, at - begun), {**about, SOURCE: of.source})
        self._record_usage(usage, of, about, of.source)

    def _record_results(
        self, known: _ConversationSpans, blocks: Iterable[Block], at: float
    ) -> None:
        """A tool ran from the answer that called it to the message with its result."""
        for block in blocks:
            called = known.calls.pop(block.call, None) if block.type == "tool_result" else None
            if called is not None:
                about = {GEN_AI_OPERATION_NAME: "execute_tool", GEN_AI_TOOL_NAME: called[0]}
                about[GEN_AI_TOOL_CALL_ID] = block.call
                self._span(f"execute_tool {called[0]}", known, called[1], about).end(_ns(at))

    def _record_failure(
        self, of: ObservedConversation, known: _ConversationSpans, error: str, at: float
    ) -> None:
        about: dict[str, Any] = {GEN_AI_OPERATION_NAME: "chat"}
        span = self._round(of, known, about, known.sent or at)
        span.set_attribute(ERROR_TYPE, error if self._texts and error else "refused")
        span.set_status(Status(StatusCode.ERROR))
        span.end(_ns(at))
        known.sent = 0.0

    def _round(
        self,
        of: ObservedConversation,
        known: _ConversationSpans,
        about: dict[str, Any],
        begun: float,
    ) -> Span:
        model = known.model or about.get(GEN_AI_RESPONSE_MODEL, "")
        more = {**about, GEN_AI_CONVERSATION_ID: of.session, SOURCE: of.source}
        more[GEN_AI_REQUEST_MODEL] = model or "unknown"
        return self._span(f"chat {model}".strip(), known, begun, more, SpanKind.CLIENT)

    # --- metrics

    def _record_usage(
        self, usage: Usage, of: ObservedConversation, about: dict[str, Any], source: str
    ) -> None:
        known = {**about, SOURCE: source}
        for kind, count in (("input", usage.input), ("output", usage.output)):
            self._tokens.record(count, {**known, GEN_AI_TOKEN_TYPE: kind})
        self._cost.add(weight(usage, of.settings), known)
        if usage.input:
            self._hits.record(usage.hit_rate, known)

    def _pollution(self, options: CallbackOptions) -> Iterable[Observation]:
        """As it was last checked; nothing is checked here."""
        del options
        from opentelemetry.metrics import Observation

        from reverie.reports.stats import last_checked
        from reverie.store.project import Project

        for project in sorted(self._projects):
            known = last_checked(Project.at(Path(project)))
            if known is not None:
                yield Observation(known.pollution, {"reverie.project": project})


def _ns(at: float) -> int:
    return int(at * 1_000_000_000)


def _parts(blocks: Iterable[Block]) -> Iterator[dict[str, Any]]:
    """Blocks in the form of the conventions' messages."""
    for block in blocks:
        match block.type:
            case "tool_use":
                known = {"id": block.call, "name": block.get("name")}
                yield {"type": "tool_call", **known, "arguments": block.value.get("input")}
            case "tool_result":
                text = text_of(block.value.get("content"))
                yield {"type": "tool_call_response", "id": block.call, "response": text}
            case "thinking":
                yield {"type": "reasoning", "content": block.get("thinking")}
            case _:
                yield {"type": "text", "content": block.text}


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


# --- Names of OpenTelemetry's GenAI conventions that we use; a test holds them to those installed.


GEN_AI_AGENT_ID = "gen_ai.agent.id"
GEN_AI_AGENT_NAME = "gen_ai.agent.name"
GEN_AI_CONVERSATION_ID = "gen_ai.conversation.id"
GEN_AI_INPUT_MESSAGES = "gen_ai.input.messages"
GEN_AI_OPERATION_NAME = "gen_ai.operation.name"
GEN_AI_OUTPUT_MESSAGES = "gen_ai.output.messages"
GEN_AI_PROVIDER_NAME = "gen_ai.provider.name"
GEN_AI_REQUEST_MODEL = "gen_ai.request.model"
GEN_AI_RESPONSE_FINISH_REASONS = "gen_ai.response.finish_reasons"
GEN_AI_RESPONSE_ID = "gen_ai.response.id"
GEN_AI_RESPONSE_MODEL = "gen_ai.response.model"
GEN_AI_TOOL_CALL_ID = "gen_ai.tool.call.id"
GEN_AI_TOOL_NAME = "gen_ai.tool.name"
GEN_AI_TOKEN_TYPE = "gen_ai.token.type"
GEN_AI_USAGE_CACHE_CREATION_INPUT_TOKENS = "gen_ai.usage.cache_creation.input_tokens"
GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS = "gen_ai.usage.cache_read.input_tokens"
GEN_AI_USAGE_INPUT_TOKENS = "gen_ai.usage.input_tokens"
GEN_AI_USAGE_OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
GEN_AI_CLIENT_TOKEN_USAGE = "gen_ai.client.token.usage"
GEN_AI_CLIENT_OPERATION_DURATION = "gen_ai.client.operation.duration"
ERROR_TYPE = "error.type"
