"""Behind `reverie.wrap`: a request of the caller's, fitted; its answer, with rounds it never sees.

The same core as the proxy's, in this process. Without a memory nothing is written anywhere. What
fails here is said, and the caller's own request goes out.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakSet

from reverie.api.fitting import Fitted, Policy, fit
from reverie.concurrency import tried
from reverie.light import dataclass
from reverie.middleware import chain
from reverie.middleware.callers import SWITCH, caller_of
from reverie.middleware.hidden import HiddenRound, HiddenRounds, results_of, seen_of, whole
from reverie.middleware.scanning import LIST, Body, Known, scan
from reverie.tools.toolset import READ_BACK, reading_back
from reverie.transcript.blocks import dump, parse
from reverie.wire.forms import definition, tool_name
from reverie.wire.reading import Format
from reverie.wire.reply import as_reply
from reverie.world import Notice, Say

if TYPE_CHECKING:
    from reverie.api.learning import Learning
    from reverie.api.memory import Memory
    from reverie.middleware.engine import Outgoing
    from reverie.session.report import Report

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
class WrapRules:
    """What a caller asked for."""

    memory: Memory | None
    policy: Policy
    learn: bool
    tools: bool
    say: Say


class Wrapping:
    """One wrapped client and its copies; used from any thread."""

    def __init__(self, rules: WrapRules) -> None:
        self.rules = rules
        self.hidden = HiddenRounds()
        self._turn = threading.Lock()
        self._learning: Learning | None = None
        self.requests = self.tokens = self.saved = 0
        _wrapped.add(self)

    def begin_anew(self) -> None:
        """In a child that was forked: the loop behind the memory is its parent's."""
        self._turn = threading.Lock()
        self._learning = None

    def begin(self, form: Format, headers: Mapping[str, str], data: bytes) -> Exchange | None:
        """What goes out in place of a request; None: the request as it is."""
        if headers.get(SWITCH, "").strip().lower() == "off":
            return None
        found, error = tried(partial(self._begun, form, headers, data), None)
        if error:
            self.rules.say(Notice(NAME, f"a request passed as it is: {error}", "warning"))
        return found

    def _begun(self, form: Format, headers: Mapping[str, str], data: bytes) -> Exchange | None:
        value = chain.as_value(parse(data.decode()))
        if any(value.get(name) for name in ELSEWHERE):
            return None
        seed = caller_of(headers).seed
        body = scan(data.decode(), form, seed, "", Known())
        out = self.learning.asked(form, headers, data) if self.learning else None
        if out is not None:
            value = chain.as_value(parse(out.body.decode()))
        messages = _list(value.get(LIST[form]))
        return self._fitted(body, value, self.hidden.restored(body, messages), out, seed)

    def _fitted(
        self,
        body: Body,
        value: dict[str, Any],
        messages: list[Any],
        out: Outgoing | None,
        seed: bytes,
    ) -> Exchange:
        rules, form = self.rules, body.form
        offered = _list(value.get("tools"))
        ours = rules.tools and rules.policy != "off"
        if ours and READ_BACK not in map(tool_name, offered):
            about = reading_back(None)
            offered = [*offered, definition(about.name, about.description, about.schema, form)]
        fitted: Fitted[Any] | None = None
        if rules.policy != "off":
            marks = form == "messages" and not _is_marked(value)
            model = str(value.get("model") or "")
            fitted = fit(messages, model=model, tools=offered, policy=rules.policy, marks=marks)
        going = {**value, LIST[form]: list(fitted) if fitted is not None else messages}
        if offered:
            going["tools"] = offered
        names = frozenset({READ_BACK} if ours else ())
        with self._turn:
            self.requests += 1
            self.tokens += fitted.tokens if fitted is not None else 0
            self.saved += fitted.saved if fitted is not None else 0
        return Exchange(self, body, going, fitted, out, names, seed)

    @property
    def learning(self) -> Learning | None:
        """Memory behind the conversations; begun when it is first needed."""
        if self.rules.memory is None:
            return None
        with self._turn:
            if self._learning is None:
                from reverie.api.learning import Learning

                self._learning = Learning(
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


_wrapped: WeakSet[Wrapping] = WeakSet()


def _begin_anew() -> None:
    for one in list(_wrapped):
        one.begin_anew()


os.register_at_fork(after_in_child=_begin_anew)


def _list(found: object) -> list[Any]:
    if isinstance(found, str):
        return [{"role": "user", "content": found}]
    return cast("list[Any]", found) if isinstance(found, list) else []


def _is_marked(value: Mapping[str, Any]) -> bool:
    head = {k: value.get(k) for k in ("system", "tools", chain.MARK)}
    return chain.MARK in value or f'"{chain.MARK}"' in dump(head)


class Exchange:
    """One request of the caller's, and all that is asked for it."""

    def __init__(
        self,
        wrapping: Wrapping,
        body: Body,
        going: dict[str, Any],
        fitted: Fitted[Any] | None,
        out: Outgoing | None,
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
        _, error = tried(self._finished, None)
        if error:
            self._wrapping.rules.say(Notice(NAME, f"an answer was not kept: {error}", "warning"))

    def _finished(self) -> None:
        hidden = self._wrapping.hidden
        hidden.keep(self._body, self.rounds, self._between, self._results, self._seed)
        learning = self._wrapping.learning
        if learning is not None and self._out is not None:
            learning.answered(self._out, as_reply(self._seen()))

    def _seen(self) -> dict[str, Any]:
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
