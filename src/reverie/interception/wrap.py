"""Public wrap: an SDK client fitted in place.

Memory and context in a loop one already has: `reverie.wrap`.

    client = reverie.wrap(anthropic.Anthropic(), memory=True)

The clients of Anthropic and OpenAI, blocking and async; everything of them stays as it is. Calls
of Messages, chat completions and responses are fitted, also streamed ones; all others pass, and so
does a request whose history lies with the provider. The model reads back what left the list by
itself, in rounds that the caller does not see. If anything here fails, the caller's own request
goes out; `extra_headers={"X-Reverie": "off"}` lets one pass as it is.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast
from weakref import WeakSet

from reverie.concurrency import isolate_sync
from reverie.context.fitter import Policy, fit
from reverie.context.renderer import Fitted
from reverie.errors import InvalidInput
from reverie.interception import decisions
from reverie.interception.hidden_rounds import HiddenRound, HiddenRounds, results_of, seen_of, whole
from reverie.interception.identity import SWITCH, caller_of
from reverie.interception.scan import LIST, RequestBody, ScanCache, scan_body
from reverie.light import dataclass
from reverie.toolbox.toolset import READ_BACK, reading_back
from reverie.transcript.blocks import dump, parse
from reverie.wire.forms import definition, tool_name, with_cache_mark
from reverie.wire.lists import Format
from reverie.wire.reply import as_reply
from reverie.world import Notice, Say

if TYPE_CHECKING:
    from reverie.interception.background_learner import BackgroundLearner
    from reverie.interception.decisions import OutgoingRequest
    from reverie.memory.memory import Memory
    from reverie.session.report import Report

C = TypeVar("C")
POLICIES = ("collapse", "classic", "off")


def wrap(
    client: C,
    *,
    memory: bool | Memory | None = None,
    policy: Policy = "collapse",
    learn: bool = True,
    tools: bool = True,
    on_notice: Callable[[Notice], object] | None = None,
) -> C:
    """An SDK client with context and memory. The one handed in stays as it is, and does the
    sending; wrap it once for each user.

    - `client`: of Anthropic's or OpenAI's SDK, blocking or async.
    - `memory`: None writes nothing anywhere; True is the memory of this folder; or a `Memory`.
    - `policy`: `collapse`, `classic` or `off`.
    - `learn`: whether turns are learned from, by fixed rules that cost nothing.
    - `tools`: whether the model gets `read_back`.
    - `on_notice`: is handed each notice; without it they are logged under `reverie`.
    """
    if policy not in POLICIES:
        do = "It is collapse, classic or off"
        raise InvalidInput("there is no such policy", where=str(policy)[:80], do=do)
    inner = _http_client(client)
    from reverie.world import notice_listener

    say = notice_listener(on_notice)
    wrapping = WrappedClient(WrapOptions(_memory(memory, on_notice), policy, learn, tools, say))
    made: Any = client
    return made.copy(http_client=_wrap_client(inner, wrapping))


def _memory(wanted: bool | Memory | None, say: Callable[[Notice], object] | None) -> Memory | None:
    if wanted is None or wanted is False:
        return None
    if wanted is True:
        from reverie.memory.memory import Memory

        return Memory(on_notice=say)
    return wanted


def _http_client(client: object) -> Any:
    """What a client sends with."""
    inner = getattr(client, "_client", None)
    speaks = hasattr(client, "messages") or hasattr(client, "chat") or hasattr(client, "responses")
    if not speaks or not callable(getattr(client, "copy", None)) or not hasattr(inner, "send"):
        raise InvalidInput(
            "this is no client that can be wrapped",
            where=type(client).__name__,
            do="Hand in Anthropic(), AsyncAnthropic(), OpenAI() or AsyncOpenAI()",
        )
    return inner


def _wrap_client(inner: Any, wrapping: Any) -> Any:
    """The same, with ours in between."""
    import httpx2

    from reverie.interception.transports import AsyncWrappedTransport, WrappedTransport

    if isinstance(inner, httpx2.AsyncClient):
        made: Any = httpx2.AsyncClient(
            transport=AsyncWrappedTransport(inner, wrapping), timeout=inner.timeout
        )
    else:
        made = httpx2.Client(transport=WrappedTransport(inner, wrapping), timeout=inner.timeout)
    made.__report__ = wrapping.report
    return made


# --- Behind `reverie.wrap`: a request of the caller's, fitted; its answer, with rounds it never
# sees.
#
# The same core as the proxy's, in this process. Without a memory nothing is written anywhere. What
# fails here is said, and the caller's own request goes out.


NAME = "wrap"
READS = 20
"""Times in a row that the model may only read back before its answer is handed out."""
ENDPOINTS: Mapping[str, Format] = {
    "/messages": "messages",
    "/chat/completions": "chat",
    "/responses": "responses",
}
ELSEWHERE = ("previous_response_id", "conversation", "thread")
"""Members of a body whose history lies with the provider."""


def form_of(method: str, path: str) -> Format | None:
    """The format of a request that is fitted; None where it passes."""
    if method != "POST":
        return None
    return next((form for end, form in ENDPOINTS.items() if path.endswith(end)), None)


@dataclass(frozen=True, slots=True)
class WrapOptions:
    """What a caller asked for."""

    memory: Memory | None
    policy: Policy
    learn: bool
    tools: bool
    say: Say


class WrappedClient:
    """One wrapped client and its copies; used from any thread."""

    def __init__(self, rules: WrapOptions) -> None:
        self.rules = rules
        self.hidden = HiddenRounds()
        self._turn = threading.Lock()
        self._learning: BackgroundLearner | None = None
        self.requests = self.tokens = self.saved = 0
        _wrapped.add(self)

    def begin_anew(self) -> None:
        """In a child that was forked: the loop behind the memory is its parent's."""
        self._turn = threading.Lock()
        self._learning = None

    def begin(
        self, form: Format, headers: Mapping[str, str], data: bytes
    ) -> WrappedExchange | None:
        """What goes out in place of a request; None: the request as it is."""
        if headers.get(SWITCH, "").strip().lower() == "off":
            return None
        found, error = isolate_sync(partial(self._begin_exchange, form, headers, data), None)
        if error:
            self.rules.say(Notice(NAME, f"a request passed as it is: {error}", "warning"))
        return found

    def _begin_exchange(
        self, form: Format, headers: Mapping[str, str], data: bytes
    ) -> WrappedExchange | None:
        value = decisions.as_value(parse(data.decode()))
        if any(value.get(name) for name in ELSEWHERE):
            return None
        seed = caller_of(headers).seed
        body = scan_body(data.decode(), form, seed, "", ScanCache())
        out = self.learning.asked(form, headers, data) if self.learning else None
        if out is not None:
            value = decisions.as_value(parse(out.body.decode()))
        messages = _list(value.get(LIST[form]))
        return self._fit_exchange(body, value, self.hidden.restored(body, messages), out, seed)

    def _fit_exchange(
        self,
        body: RequestBody,
        value: dict[str, Any],
        messages: list[Any],
        out: OutgoingRequest | None,
        seed: bytes,
    ) -> WrappedExchange:
        rules, form = self.rules, body.form
        offered = _list(value.get("tools"))
        ours = rules.tools and rules.policy != "off"
        if ours and READ_BACK not in map(tool_name, offered):
            about = reading_back(None)
            offered = [*offered, definition(about.name, about.description, about.schema, form)]
        fitted: Fitted[Any] | None = None
        marks = rules.policy != "off" and form == "messages" and not body.marks
        if rules.policy != "off":
            model = str(value.get("model") or "")
            fitted = fit(messages, model=model, tools=offered, policy=rules.policy, marks=marks)
        going = {**value, LIST[form]: list(fitted) if fitted is not None else messages}
        if offered:
            going["tools"] = offered
        if marks:
            going |= _marked_head(going)
        names = frozenset({READ_BACK} if ours else ())
        with self._turn:
            self.requests += 1
            self.tokens += fitted.tokens if fitted is not None else 0
            self.saved += fitted.saved if fitted is not None else 0
        return WrappedExchange(self, body, going, fitted, out, names, seed)

    @property
    def learning(self) -> BackgroundLearner | None:
        """Memory behind the conversations; begun when it is first needed."""
        if self.rules.memory is None:
            return None
        with self._turn:
            if self._learning is None:
                from reverie.interception.background_learner import BackgroundLearner

                self._learning = BackgroundLearner(
                    self.rules.memory, self.rules.say, learns=self.rules.learn
                )
            return self._learning

    def close(self) -> None:
        """Finish what is under way behind answers. May be called again."""
        with self._turn:
            learning, self._learning = self._learning, None
        if learning is not None:
            learning.close()

    def report(self, since: float) -> Report:
        """What `reverie.report` tells of it."""
        from dataclasses import replace

        from reverie.session.report import Report

        memory = self.rules.memory
        if memory is None:
            return Report(requests=self.requests, tokens=self.tokens, saved=self.saved)
        if self._learning is not None:
            self._learning.settle()
        return replace(memory.__report__(since), saved=self.saved)


_wrapped: WeakSet[WrappedClient] = WeakSet()


def _begin_anew() -> None:
    for one in list(_wrapped):
        one.begin_anew()


os.register_at_fork(after_in_child=_begin_anew)


def _list(found: object) -> list[Any]:
    if isinstance(found, str):
        return [{"role": "user", "content": found}]
    return cast("list[Any]", found) if isinstance(found, list) else []


def _marked_head(value: Mapping[str, Any]) -> dict[str, Any]:
    """The end of the system prompt, or of the tools where there is none, with a cache mark."""
    system = with_cache_mark({"content": value.get("system")})
    if system is not None:
        return {"system": system["content"]}
    tools = [*_list(value.get("tools"))]
    if tools and isinstance(tools[-1], dict):
        tools[-1] = {**tools[-1], decisions.MARK: {"type": "ephemeral"}}
        return {"tools": tools}
    return {}


class WrappedExchange:
    """One request of the caller's, and all that is asked for it."""

    def __init__(
        self,
        wrapping: WrappedClient,
        body: RequestBody,
        going: dict[str, Any],
        fitted: Fitted[Any] | None,
        out: OutgoingRequest | None,
        names: frozenset[str],
        seed: bytes,
    ) -> None:
        self._wrapping = wrapping
        self._body = body
        self._going = going
        self._fitted = fitted
        self._out = out
        self._seed = seed
        self._between: list[Sequence[Any]] = []
        self._results: Sequence[Any] = ()
        self.names = names
        self.form: Format = body.form
        self.rounds: list[HiddenRound] = []

    @property
    def data(self) -> bytes:
        """The body to send now."""
        return dump(self._going).encode()

    def took(self, one: HiddenRound) -> bool:
        """An answer came. True: it only reads back, and `data` is to be sent next."""
        self.rounds.append(one)
        handled = [self._fitted.handle(call) for call in one.own] if self._fitted else []
        if not one.is_hidden or len(self.rounds) > READS:
            self._results = handled
            return False
        self._between.append(handled)
        name = LIST[self.form]
        more = [*one.said, *results_of(self.form, handled)]
        self._going = {**self._going, name: [*self._going[name], *more]}
        return True

    def answer(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """The caller's answer, made of the last one that came in one piece."""
        return whole(self.form, value, self.rounds)

    def finish(self) -> None:
        """The caller has its answer."""
        _, error = isolate_sync(self._finish, None)
        if error:
            self._wrapping.rules.say(Notice(NAME, f"an answer was not kept: {error}", "warning"))

    def _finish(self) -> None:
        hidden = self._wrapping.hidden
        hidden.keep(self._body, self.rounds, self._between, self._results, self._seed)
        learning = self._wrapping.learning
        if learning is not None and self._out is not None:
            learning.answered(self._out, as_reply(self._visible_answer()))

    def _visible_answer(self) -> dict[str, Any]:
        """The answer as the caller has it, in the form of its API."""
        seen = seen_of(self.form, self.rounds)
        usage = self.rounds[-1].usage or None
        if self.form == "responses":
            return {"object": "response", "status": "completed", "output": seen, "usage": usage}
        if self.form == "chat":
            return {
                "choices": [{"index": 0, "message": seen[0], "finish_reason": "stop"}],
                "usage": usage,
            }
        content: list[Any] = seen[0]["content"] if seen else []
        return {"type": "message", "role": "assistant", "content": content, "usage": usage}

    def failed(self) -> None:
        """Nothing came of it."""
        learning = self._wrapping.learning
        if learning is not None and self._out is not None:
            learning.answered(self._out, None)
