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
from reverie.simulator import response
from reverie.simulator.answers import Answerer, Given, Script, SimulatedAnswer, answer, asked
from reverie.simulator.binding import MODEL, THINKING, UNBOUND, Binder, Bound, Mismatch, link
from reverie.simulator.cache import AutomaticCache, Charge, PromptCache
from reverie.simulator.catalogue import CATALOGUE, Models, ModelSpec
from reverie.simulator.checks import check, check_options
from reverie.simulator.compaction import check_compaction, summary
from reverie.simulator.diagnosis import RecentRequests, fingerprint
from reverie.simulator.edits import ShownRequest, shown
from reverie.simulator.envelope import (
    ANYBODY,
    BINDING_BETA,
    betas_of,
    check_betas,
    key_of,
    lowered,
    options_of,
    salt_of,
)
from reverie.simulator.faults import FaultPlan, InjectedFault
from reverie.simulator.ledger import Bill, Ledger, Logged, public, session_of
from reverie.simulator.profiles import ANTHROPIC, Profile
from reverie.simulator.prompt import Prompt, body_of, loads, prompt
from reverie.simulator.refusals import ApiError, TooLong, bad
from reverie.simulator.response import SimulatedResponse
from reverie.transcript.blocks import Block, Json, Object, block_of, dump
from reverie.wire.request import Request

MESSAGES = "/v1/messages"
NOT_JSON = "The request body is nested too deeply, or holds what JSON cannot"
OK = Script((), "ok")


@dataclass(frozen=True, slots=True)
class Received:
    """A request that was found good, before it is answered."""

    body: Object
    shown: ShownRequest
    prompt: Prompt
    bound: Bound
    model: ModelSpec
    rules: Profile
    betas: frozenset[str]
    now: float
    options: bytes
    number: int
    entry: Logged
    fault: InjectedFault | None = None
    dropped: tuple[Mismatch, ...] = ()


@dataclass(frozen=True, slots=True)
class Answered:
    """An answered request; `fault` is what the wire must still do to it."""

    response: SimulatedResponse
    logged: Logged
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
    binder: Binder = field(default_factory=Binder)
    seed: str = "sim"

    def __post_init__(self) -> None:
        self._caches: dict[str, PromptCache | AutomaticCache] = {}
        self._diagnosis = RecentRequests()
        self._count = 0
        self._ids = 0

    # --- what people look at

    @property
    def log(self) -> list[Logged]:
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
    ) -> Answered:
        """Answer one request of the Messages API."""
        received = self.receive(given, headers, original=original)
        return await self.answered(received, request)

    async def answered(self, received: Received, request: Request | None = None) -> Answered:
        try:
            said = await asked(self.answerer, received.shown.body, request)
        except ApiError as error:
            raise self._refused(received.entry, error) from None
        except ReverieError as error:
            failed = ApiError(500, f"the answerer failed: {error}")
            raise self._refused(received.entry, failed) from error
        return self.finish(received, said)

    def respond(
        self,
        given: str | bytes | Mapping[str, Json],
        said: Given = "ok",
        headers: Mapping[str, str] = ANYBODY,
    ) -> Answered:
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
        headers = lowered(headers)
        entry = self._entry(given, headers, MESSAGES + "/count_tokens")
        try:
            body, rules = body_of(given), rules or self.profile
            received = self._received(body, headers, entry, rules, counting=True)
        except ApiError as error:
            raise self._refused(entry, error) from None
        except (InvalidMessage, RecursionError):
            raise self._refused(entry, bad(NOT_JSON)) from None
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
    ) -> Received:
        """Check a request, and work out what the model is shown. `original` is what
        the client sent, where that was in another wire format."""
        headers = lowered(headers)
        entry = self._entry(original or given, headers, path)
        try:
            body = body_of(given)
            entry = replace(entry, session=session_of(body, headers, key_of(headers)))
            fault = self.faults.take(body)
            if fault and (error := fault.raised()):
                raise error
            received = self._received(body, headers, entry, rules or self.profile)
        except ApiError as error:
            raise self._refused(entry, error) from None
        except (InvalidMessage, RecursionError):
            raise self._refused(entry, bad(NOT_JSON)) from None
        return replace(received, fault=fault)

    def _entry(
        self, given: str | bytes | Mapping[str, Json], headers: Mapping[str, str], path: str
    ) -> Logged:
        self._count += 1
        key = key_of(headers)
        return Logged(
            self._count,
            self.clock(),
            path,
            session_of({}, headers, key),
            self.ledger.kept(given),
            public(headers),
        )

    def _refused(self, entry: Logged, error: ApiError) -> ApiError:
        self.ledger.add(replace(entry, status=error.status, error=error.message))
        return error

    def _received(
        self,
        body: Object,
        headers: Mapping[str, str],
        entry: Logged,
        rules: Profile,
        *,
        counting: bool = False,
    ) -> Received:
        self._authenticate(key_of(headers))
        betas = betas_of(headers)
        check_options({**body, "max_tokens": 1} if counting else body)
        model = self.models.find(str(body["model"]), betas)
        check_betas(body, betas)
        check(body, rules)
        check_compaction(body, model)
        bound = self._bound(body, model, rules)
        dropped = self._dropped(body, bound, rules)
        seen = shown(body, rules.tokens, [(m.message, m.block) for m in dropped])
        options = options_of(body)
        salt = salt_of(body, key_of(headers), model, rules)
        made = prompt(seen.body, rules, salt=salt, turn_salt=options if rules.apart else b"")
        if made.tokens > model.window and not counting:
            raise TooLong(made.tokens, model.window)
        return Received(
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

    def _bound(self, body: Object, model: ModelSpec, rules: Profile) -> Bound:
        match rules.binding:
            case "prefix":
                return self.binder.verify(body, model.id)
            case "signature":
                return self.binder.genuine(body, model.id)
            case _:
                return Bound(UNBOUND)

    def _dropped(self, body: Object, bound: Bound, rules: Profile) -> tuple[Mismatch, ...]:
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

    def finish(self, received: Received, said: SimulatedAnswer) -> Answered:
        """Bill a request that was received, and make its response."""
        fault = received.fault or said.fault
        if said.fault and (error := said.fault.raised()):
            raise self._refused(received.entry, error)
        compacting = "compaction" in received.body
        content, stop = self._content(received, said)
        charge = self._charge(received)
        output = sum(received.rules.tokens(b.value) for b in content)
        thinking = response.thinking_tokens(content)
        done = SimulatedResponse(
            id=self._id("msg"),
            model=str(received.body["model"]),
            content=content,
            stop_reason=stop,
            usage=response.usage_of(charge, output, thinking, compacting=compacting),
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
        return Answered(done, logged, fault)

    def _charge(self, received: Received) -> Charge:
        rules = received.rules
        cache = self._caches.get(rules.name)
        if cache is None:
            cache = AutomaticCache(rules) if rules.caching == "automatic" else PromptCache(rules)
            self._caches[rules.name] = cache
        minimum = received.model.minimum if rules.minimum is None else rules.minimum
        return cache.charge(received.prompt.parts, received.now, minimum)

    def _content(self, received: Received, said: SimulatedAnswer) -> tuple[tuple[Block, ...], str]:
        if "compaction" in received.body:
            made = self.binder.compacted(summary(said), received.body, received.bound.chain)
            return (block_of(made),), "compaction"
        limit = received.body["max_tokens"]
        content, whole = response.fitted(said.content, limit if isinstance(limit, int) else 0)
        calls = any(b.type == "tool_use" for b in content)
        stop = said.stop_reason or ("tool_use" if calls else "end_turn")
        return self._signed(received, content), stop if whole and limit else "max_tokens"

    def _signed(self, received: Received, content: tuple[Block, ...]) -> tuple[Block, ...]:
        """The blocks with ids and signatures; each signature covers all that precedes it."""
        chain = received.bound.chain
        out: list[Block] = []
        for block in content:
            done = self._completed(block, chain, received.model.id)
            out.append(done)
            chain = link(chain, "assistant", loads(done.raw))
        return tuple(out)

    def _completed(self, block: Block, chain: bytes, model: str) -> Block:
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

    def _extra(self, received: Received, charge: Charge) -> Object:
        extra: Object = {}
        if received.shown.asked:
            extra["context_management"] = {"applied_edits": list(received.shown.applied)}
        asked_for = received.body.get("diagnostics")
        if isinstance(asked_for, dict):
            previous = asked_for.get("previous_message_id")
            extra["diagnostics"] = self._compared(received, charge, previous)
        if BINDING_BETA in received.betas:
            extra["input_transformations"] = [
                {"type": "thinking_dropped", "path": m.path, "reason": m.reason}
                for m in received.dropped
            ]
        return extra

    def _compared(self, received: Received, charge: Charge, previous: Json) -> Json:
        if not isinstance(previous, str):
            return None
        speed = str(received.body.get("speed") or "")
        now = fingerprint(received.model.id, speed, received.options, received.prompt)
        return self._diagnosis.compare(previous, now, charge)

    def _id(self, kind: str) -> str:
        self._ids += 1
        made = blake2b(f"{self.seed} {kind} {self._ids}".encode(), digest_size=12)
        return f"{kind}_{made.hexdigest()}"
