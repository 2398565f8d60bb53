"""The simulated provider, in process.

A request goes in as text or as a value, with headers; a `SimulatedResponse` or an `ApiError`
comes out, as the real provider would answer by its written rules. The engine holds the
caches, the binding, the log and the bills; time, answers and faults are handed in. It
opens no socket, sleeps never, and takes no answer from a request it refused.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b

from reverie.errors import InvalidMessage, ReverieError
from reverie.simulator import answers
from reverie.simulator.answers import (
    Answerer,
    Given,
    Script,
    SimulatedAnswer,
    SimulatedResponse,
    answer,
    ask_answerer,
)
from reverie.simulator.context_management import (
    EffectiveRequest,
    check_compaction,
    effective_request,
    summary,
)
from reverie.simulator.faults import FaultPlan, InjectedFault
from reverie.simulator.ledger import Bill, Ledger, LoggedRequest, public, session_of
from reverie.simulator.profiles import (
    ANTHROPIC,
    CATALOGUE,
    ApiError,
    Models,
    ModelSpec,
    Profile,
    TooLong,
    bad,
)
from reverie.simulator.prompt_cache import (
    AutomaticCache,
    Charge,
    PromptBlocks,
    PromptCache,
    RecentRequests,
    body_of,
    fingerprint,
    loads,
    prompt,
)
from reverie.simulator.thinking_signatures import (
    MODEL,
    THINKING,
    UNBOUND,
    BindingCheck,
    Mismatch,
    ThinkingSigner,
    link,
)
from reverie.simulator.validation import (
    ANYBODY,
    BINDING_BETA,
    betas_of,
    check,
    check_betas,
    check_options,
    key_of,
    lowercase_headers,
    options_of,
    salt_of,
)
from reverie.transcript.blocks import Block, Json, Object, block_of, dump
from reverie.wire.request import Request

MESSAGES = "/v1/messages"
NOT_JSON = "The request body is nested too deeply, or holds what JSON cannot"
OK = Script((), "ok")


@dataclass(frozen=True, slots=True)
class AcceptedRequest:
    """A request that was found good, before it is answered."""

    body: Object
    shown: EffectiveRequest
    prompt: PromptBlocks
    bound: BindingCheck
    model: ModelSpec
    rules: Profile
    betas: frozenset[str]
    now: float
    options: bytes
    number: int
    entry: LoggedRequest
    fault: InjectedFault | None = None
    dropped: tuple[Mismatch, ...] = ()


@dataclass(frozen=True, slots=True)
class SimulatedExchange:
    """An answered request; `fault` is what the wire must still do to it."""

    response: SimulatedResponse
    logged: LoggedRequest
    fault: InjectedFault | None = None


@dataclass(eq=False)
class Engine:
    """The provider. All members may be set before the first request."""

    answerer: Answerer = OK
    clock: Callable[[], float] = time.time
    profile: Profile = ANTHROPIC
    models: Models = field(default_factory=lambda: Models(CATALOGUE))
    keys: Iterable[str] | None = None  # None: any key that is not empty
    faults: FaultPlan = field(default_factory=FaultPlan)
    ledger: Ledger = field(default_factory=Ledger)
    binder: ThinkingSigner = field(default_factory=ThinkingSigner)
    seed: str = "sim"

    def __post_init__(self) -> None:
        self._caches: dict[str, PromptCache | AutomaticCache] = {}
        self._diagnosis = RecentRequests()
        self._count = 0
        self._ids = 0

    # --- what people look at

    @property
    def log(self) -> list[LoggedRequest]:
        return self.ledger.log

    @property
    def bills(self) -> dict[str, Bill]:
        return self.ledger.bills

    def adopt(self, history: str | bytes | Mapping[str, Json] | Request) -> int:
        """Bind each thinking block of a recorded history to what precedes it there."""
        given = history.body(marked=False) if isinstance(history, Request) else history
        return self.binder.adopt(body_of(given))

    # --- the Messages API

    async def messages(
        self,
        given: str | bytes | Mapping[str, Json],
        headers: Mapping[str, str] = ANYBODY,
        *,
        request: Request | None = None,
        original: str = "",
    ) -> SimulatedExchange:
        """Answer one request of the Messages API."""
        received = self.receive(given, headers, original=original)
        return await self.answered(received, request)

    async def answered(
        self, received: AcceptedRequest, request: Request | None = None
    ) -> SimulatedExchange:
        try:
            said = await ask_answerer(self.answerer, received.shown.body, request)
        except ApiError as error:
            raise self._log_refusal(received.entry, error) from None
        except ReverieError as error:
            failed = ApiError(500, f"the answerer failed: {error}")
            raise self._log_refusal(received.entry, failed) from error
        return self.finish(received, said)

    def respond(
        self,
        given: str | bytes | Mapping[str, Json],
        said: Given = "ok",
        headers: Mapping[str, str] = ANYBODY,
    ) -> SimulatedExchange:
        """The same with the answer handed in, without waiting for anything."""
        return self.finish(self.receive(given, headers), answer(said))

    def count_tokens(
        self,
        given: str | bytes | Mapping[str, Json],
        headers: Mapping[str, str] = ANYBODY,
        *,
        rules: Profile | None = None,
    ) -> Object:
        """`/v1/messages/count_tokens`: nothing is billed, cached or answered."""
        headers = lowercase_headers(headers)
        entry = self._entry(given, headers, MESSAGES + "/count_tokens")
        try:
            body, rules = body_of(given), rules or self.profile
            received = self._receive_request(body, headers, entry, rules, counting=True)
        except ApiError as error:
            raise self._log_refusal(entry, error) from None
        except (InvalidMessage, RecursionError):
            raise self._log_refusal(entry, bad(NOT_JSON)) from None
        self.ledger.add(entry)
        found: Object = {"input_tokens": received.prompt.tokens}
        if received.shown.asked:
            original = prompt(received.body, received.rules).tokens
            found["context_management"] = {"original_input_tokens": original}
        return found

    # --- receiving

    def receive(
        self,
        given: str | bytes | Mapping[str, Json],
        headers: Mapping[str, str] = ANYBODY,
        *,
        path: str = MESSAGES,
        rules: Profile | None = None,
        original: str = "",
    ) -> AcceptedRequest:
        """Check a request, and work out what the model is shown. `original` is what
        the client sent, where that was in another wire format."""
        headers = lowercase_headers(headers)
        entry = self._entry(original or given, headers, path)
        try:
            body = body_of(given)
            entry = replace(entry, session=session_of(body, headers, key_of(headers)))
            fault = self.faults.take(body)
            if fault and (error := fault.raised()):
                raise error
            received = self._receive_request(body, headers, entry, rules or self.profile)
        except ApiError as error:
            raise self._log_refusal(entry, error) from None
        except (InvalidMessage, RecursionError):
            raise self._log_refusal(entry, bad(NOT_JSON)) from None
        return replace(received, fault=fault)

    def _entry(
        self, given: str | bytes | Mapping[str, Json], headers: Mapping[str, str], path: str
    ) -> LoggedRequest:
        self._count += 1
        key = key_of(headers)
        return LoggedRequest(
            self._count,
            self.clock(),
            path,
            session_of({}, headers, key),
            self.ledger.kept(given),
            public(headers),
        )

    def _log_refusal(self, entry: LoggedRequest, error: ApiError) -> ApiError:
        self.ledger.add(replace(entry, status=error.status, error=error.message))
        return error

    def _receive_request(
        self,
        body: Object,
        headers: Mapping[str, str],
        entry: LoggedRequest,
        rules: Profile,
        *,
        counting: bool = False,
    ) -> AcceptedRequest:
        self._authenticate(key_of(headers))
        betas = betas_of(headers)
        check_options({**body, "max_tokens": 1} if counting else body)
        model = self.models.find(str(body["model"]), betas)
        check_betas(body, betas)
        check(body, rules)
        check_compaction(body, model)
        bound = self._verify_binding(body, model, rules)
        dropped = self._dropped_blocks(body, bound, rules)
        seen = effective_request(body, rules.tokens, [(m.message, m.block) for m in dropped])
        options = options_of(body)
        salt = salt_of(body, key_of(headers), model, rules)
        made = prompt(seen.body, rules, salt=salt, turn_salt=options if rules.apart else b"")
        if made.tokens > model.window and not counting:
            raise TooLong(made.tokens, model.window)
        return AcceptedRequest(
            body=body,
            shown=seen,
            prompt=made,
            bound=bound,
            model=model,
            rules=rules,
            betas=betas,
            now=entry.at,
            options=options,
            number=entry.number,
            entry=entry,
            dropped=dropped,
        )

    def _authenticate(self, key: str) -> None:
        if not key:
            raise ApiError(401, "x-api-key header is required")
        if self.keys is not None and key not in self.keys:
            raise ApiError(401, "invalid x-api-key")

    def _verify_binding(self, body: Object, model: ModelSpec, rules: Profile) -> BindingCheck:
        match rules.binding:
            case "prefix":
                return self.binder.verify(body, model.id)
            case "signature":
                return self.binder.genuine(body, model.id)
            case _:
                return BindingCheck(UNBOUND)

    def _dropped_blocks(
        self, body: Object, bound: BindingCheck, rules: Profile
    ) -> tuple[Mismatch, ...]:
        """What is left out of the prompt; a mismatch that may not be dropped is refused."""
        thinking = body.get("thinking")
        binding = thinking.get("block_binding") if isinstance(thinking, dict) else None
        drop = isinstance(binding, dict) and binding.get("prefix_mismatch_behavior") == "drop_block"
        for one in bound.mismatches:
            if rules.binding == "signature":
                raise bad("The encrypted content of a reasoning item could not be verified.")
            if not one.reason:
                raise bad(f"{one.path}: Invalid `signature` in `{one.kind}` block")
            if one.reason != MODEL and not drop:
                raise bad(
                    f"{one.path}: Invalid `signature` in `{one.kind}` block. "
                    "The block is bound to a different conversation."
                )
        return bound.mismatches

    # --- answering

    def finish(self, received: AcceptedRequest, said: SimulatedAnswer) -> SimulatedExchange:
        """Bill a request that was received, and make its response."""
        fault = received.fault or said.fault
        if said.fault and (error := said.fault.raised()):
            raise self._log_refusal(received.entry, error)
        compacting = "compaction" in received.body
        content, stop = self._content(received, said)
        charge = self._charge(received)
        output = sum(received.rules.tokens(b.value) for b in content)
        thinking = answers.thinking_tokens(content)
        done = SimulatedResponse(
            id=self._id("msg"),
            model=str(received.body["model"]),
            content=content,
            stop_reason=stop,
            usage=answers.usage_of(charge, output, thinking, compacting=compacting),
            extra=self._extra(received, charge),
        )
        seen = fingerprint(
            received.model.id,
            str(received.body.get("speed") or ""),
            received.options,
            received.prompt,
        )
        self._diagnosis.keep(done.id, seen)
        logged = replace(
            received.entry,
            message_id=done.id,
            charge=charge,
            output=output,
            cost=charge.cost(received.rules, output),
            fault=fault.kind if fault else "",
        )
        self.ledger.add(logged)
        return SimulatedExchange(done, logged, fault)

    def _charge(self, received: AcceptedRequest) -> Charge:
        rules = received.rules
        cache = self._caches.get(rules.name)
        if cache is None:
            cache = AutomaticCache(rules) if rules.caching == "automatic" else PromptCache(rules)
            self._caches[rules.name] = cache
        minimum = received.model.minimum if rules.minimum is None else rules.minimum
        return cache.charge(received.prompt.parts, received.now, minimum)

    def _content(
        self, received: AcceptedRequest, said: SimulatedAnswer
    ) -> tuple[tuple[Block, ...], str]:
        if "compaction" in received.body:
            made = self.binder.compacted(summary(said), received.body, received.bound.chain)
            return (block_of(made),), "compaction"
        limit = received.body["max_tokens"]
        content, whole = answers.fit_blocks(said.content, limit if isinstance(limit, int) else 0)
        calls = any(b.type == "tool_use" for b in content)
        stop = said.stop_reason or ("tool_use" if calls else "end_turn")
        return self._sign_blocks(received, content), stop if whole and limit else "max_tokens"

    def _sign_blocks(
        self, received: AcceptedRequest, content: tuple[Block, ...]
    ) -> tuple[Block, ...]:
        """The blocks with ids and signatures; each signature covers all that precedes it."""
        chain = received.bound.chain
        out: list[Block] = []
        for block in content:
            done = self._complete_block(block, chain, received.model.id)
            out.append(done)
            chain = link(chain, "assistant", loads(done.raw))
        return tuple(out)

    def _complete_block(self, block: Block, chain: bytes, model: str) -> Block:
        if block.type in THINKING:
            name = "signature" if block.type == "thinking" else "data"
            if block.get(name):
                self.binder.adopt_block(loads(block.raw), chain)
                return block
            return block.with_member(
                name, dump(self.binder.sign(block.get("thinking"), chain, model))
            )
        if block.type == "tool_use" and not block.call:
            return block.with_member("id", dump(self._id("toolu")))
        return block

    def _extra(self, received: AcceptedRequest, charge: Charge) -> Object:
        extra: Object = {}
        if received.shown.asked:
            extra["context_management"] = {"applied_edits": list(received.shown.applied)}
        asked_for = received.body.get("diagnostics")
        if isinstance(asked_for, dict):
            previous = asked_for.get("previous_message_id")
            extra["diagnostics"] = self._compare_previous(received, charge, previous)
        if BINDING_BETA in received.betas:
            extra["input_transformations"] = [
                {"type": "thinking_dropped", "path": m.path, "reason": m.reason}
                for m in received.dropped
            ]
        return extra

    def _compare_previous(self, received: AcceptedRequest, charge: Charge, previous: Json) -> Json:
        if not isinstance(previous, str):
            return None
        speed = str(received.body.get("speed") or "")
        now = fingerprint(received.model.id, speed, received.options, received.prompt)
        return self._diagnosis.compare(previous, now, charge)

    def _id(self, kind: str) -> str:
        self._ids += 1
        made = blake2b(f"{self.seed} {kind} {self._ids}".encode(), digest_size=12)
        return f"{kind}_{made.hexdigest()}"
