"""Many conversations of one application: fitted, read back from, remembered and learned from.

What a framework's adapter needs of us, whatever the framework is. A conversation has a name; the
Fitter behind it is made when it is first seen and let go when many newer ones were: the caller's
full list is the store, so nothing is lost with it. Failures of ours are said and never stop a turn:
the list goes as it came, memory stays as it was. Only a list that cannot fit raises.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, TypedDict, TypeVar, cast

from reverie.api.dialects import Dialect, fit_in
from reverie.api.fitting import Fitter, Policy, Store
from reverie.errors import InvalidInput, PromptTooLong, ReverieError
from reverie.layers.own import OwnLayer
from reverie.settings import Settings
from reverie.tools.toolset import READ_BACK, Toolset, tools
from reverie.wire.forms import tool_name
from reverie.world import Model, Notice, notice_listener

if TYPE_CHECKING:
    from reverie.api.joining import Joining
    from reverie.api.memory import Memory
    from reverie.api.values import Saved

M = TypeVar("M")
AT_ONCE = 256
"""Conversations whose Fitters are held; older ones are made anew from their lists."""


class FitterOptions(TypedDict, total=False):
    """What every Fitter of an application is made with."""

    policy: Policy
    window: int | None
    store: Store
    layers: Sequence[OwnLayer] | None
    summarizer: Model | None
    settings: Settings | Mapping[str, object] | None


class Conversations(Generic[M]):
    """The conversations of one application, by name."""

    def __init__(
        self,
        dialect: Dialect[M] | None = None,
        *,
        memory: Memory | None = None,
        learns: bool = True,
        names: Mapping[str, str] | None = None,
        on_notice: Callable[[Notice], object] | None = None,
        options: FitterOptions | None = None,
    ) -> None:
        self.dialect = dialect
        self._memory = memory
        self._learns = learns and memory is not None
        self.say = notice_listener(on_notice)
        self._options: FitterOptions = options or {}
        self._fitters: OrderedDict[tuple[str, str], Fitter] = OrderedDict()
        self._joined: OrderedDict[str, Joining] = OrderedDict()
        self._lock = threading.Lock()
        self.tools: Toolset = tools(*([memory] if memory else []), names=names)
        self._via = (names or {}).get(READ_BACK, READ_BACK)

    def fit(
        self, name: str, messages: Sequence[M], *, model: str, own_tools: Sequence[object] = ()
    ) -> list[M]:
        """The list to send in place of this one."""
        fitter = self._fitter(name, model, own_tools)
        try:
            if self.dialect is None:
                return list(fitter.fit(messages))
            return fit_in(self.dialect, fitter, messages)
        except PromptTooLong:
            raise
        except ReverieError as error:
            self.say(Notice("fit", f"the list goes as it came: {error}", "warning"))
            return list(messages)

    def _fitter(self, name: str, model: str, own_tools: Sequence[object] = ()) -> Fitter:
        with self._lock:
            known = self._fitters.get((name, model))
            if known is None:
                known = Fitter(
                    model=model,
                    tools=[*self._others(own_tools), *self._described()],
                    via=self._via,
                    marks=False,  # the framework sets them
                    memory=self._memory,
                    on_notice=self.say,
                    **self._options,
                )
                self._fitters[name, model] = known
            self._fitters.move_to_end((name, model))
            while len(self._fitters) > AT_ONCE:
                self._fitters.popitem(last=False)
            return known

    def _others(self, own_tools: Sequence[object]) -> list[object]:
        return [tool for tool in own_tools if tool_name(tool) not in self.tools.names]

    def _described(self) -> list[Any]:
        return self.tools.responses() if self.dialect is None else self.tools.anthropic()

    def answer(self, name: str, messages: Sequence[M], call: Mapping[str, Any]) -> Any:
        """The `tool_result` of a call (a `tool_use` block) of one of our tools, else None. Where
        the conversation is not known any more, the list tells it again."""
        if call.get("name") != self._via:
            return self.tools.handle(call)
        with self._lock:
            known = [f for (of, _), f in self._fitters.items() if of == name]
        if not known:
            with suppress(PromptTooLong):  # too long to send, and yet it can be read from
                self.fit(name, messages, model="")
            return self.answer(name, messages, call)
        return known[-1].handle(call)

    def recall(self, name: str, words: str) -> str:
        """What memory has to say to words of the user's, each thing once in a conversation; for
        frameworks whose lists nobody sees."""
        if self._memory is None:
            raise InvalidInput("there is no memory to recall from", do="Give memory=")
        from reverie.api.joining import Joining

        with self._lock:
            known = self._joined.setdefault(name, Joining(self._memory, self.say))
            self._joined.move_to_end(name)
            while len(self._joined) > AT_ONCE:
                self._joined.popitem(last=False)
        known.look(words, words)
        return known.texts[words]

    def tell_anew(self, name: str) -> None:
        """Forget what `recall` told a conversation, which does not hold it any more."""
        with self._lock:
            self._joined.pop(name, None)

    def learn(self, messages: Sequence[M]) -> list[Saved]:
        """At a turn's end: keep what is worth keeping of a conversation, where there is a memory
        and nobody switched it off."""
        if not self._learns or self._memory is None:
            return []
        values = cast("Sequence[object]", messages)
        if self.dialect is not None:
            values = [value for one in messages for value in self.dialect.read(one)]
        try:
            return self._memory.learn(values)
        except ReverieError as error:
            self.say(Notice("extraction", f"nothing was learned: {error}", "warning"))
            return []

    @property
    def aio(self) -> Any:
        """The same methods for tasks, each through a worker thread."""
        from reverie.concurrency import Aio

        return Aio(self)
