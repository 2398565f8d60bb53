"""Context management over a list one already has: `fit`, and a `Fitter` that remembers.

    sent = reverie.fit(messages, model="gpt-5.6", tools=my_tools + kit.openai())

Messages, chat completions and responses; dicts or SDK objects. What comes out:

1. The caller's list and messages are never changed; one left alone is the same object.
2. It is valid in the form that went in: every call has its result; ids, names, unknown
   members and the caller's cache marks survive.
3. The same list and settings give the same result, in any process. Between two seals
   each result begins with the one before.
4. It fits the window, or `PromptTooLong` is raised.
5. No network, no disk, no clock.
6. Whatever left can be read back whole by its reference.
7. Where the model cannot read back, nothing leaves before the window forces it, and then
   one warning says so.
"""

from __future__ import annotations

import logging
import marshal
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Generic, Literal, SupportsIndex, TypeAlias, TypeVar, cast

from reverie.api.originals import Originals
from reverie.api.playing import PlayedList, decided, play
from reverie.api.rendering import rendered, with_marks
from reverie.api.rules import rules_of, tool_values, world_of
from reverie.api.toolset import READ_BACK, Toolset, reading_back
from reverie.errors import InvalidMessage, PromptTooLong
from reverie.layers import collapse, tool_results
from reverie.settings import DEFAULTS, Settings
from reverie.transcript.blocks import Block, dump, text_of
from reverie.transcript.names import reference
from reverie.transcript.records import Replaced, ResultDecided
from reverie.transcript.view import View
from reverie.wire.adopting import Adoption, adopt
from reverie.wire.reading import Format, Heard, format_of, heard, plain, value_of
from reverie.world import Layer, Notice, Say

T = TypeVar("T")
Policy: TypeAlias = Literal["collapse", "classic", "off"]
_LOG = logging.getLogger("reverie.fit")
_told: set[str] = set()  # what a process was told once
_SEALED = collapse.INTRO.partition("{tool}")[0]
_STORED = f"<{tool_results.TAG}>\n"


class Fitted(list[T], Generic[T]):
    """The list to send in place of the caller's, and what became of it."""

    __slots__ = ("before", "changes", "stable", "tokens", "tools")

    def __init__(
        self,
        messages: Sequence[T],
        *,
        tokens: int,
        before: int,
        changes: tuple[str, ...],
        stable: int,
        tools: Toolset,
    ) -> None:
        super().__init__(messages)
        self.tokens = tokens  # rough, with the tools
        self.before = before  # of the caller's list
        self.changes = changes  # what was decided, one sentence each
        self.stable = stable  # messages at the front that the request before had too
        self.tools = tools

    @property
    def saved(self) -> int:
        return self.before - self.tokens

    def handle(self, call: object) -> Any:
        """The result of a call that reads back, in the form it came in; else None."""
        return self.tools.handle(call)

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[type, tuple[list[T]]]:
        """A copy is a plain list: who handles calls is no part of it."""
        del protocol
        return list, (list(self),)

    def __repr__(self) -> str:
        return f"Fitted({len(self)} messages, {self.tokens:,} of {self.before:,} tokens)"


def fit(
    messages: Sequence[T],
    *,
    model: str,
    tools: Sequence[object] | Toolset = (),
    policy: Policy = "collapse",
    window: int | None = None,
    via: str = READ_BACK,
    marks: bool = True,
    layers: Sequence[Layer] | None = None,
) -> Fitted[T]:
    """The list to send in place of this one."""
    fitter = Fitter(
        model=model,
        tools=tools,
        policy=policy,
        window=window,
        via=via,
        marks=marks,
        layers=layers,
        on_notice=_tell_once,
    )
    return fitter.fit(messages)


def _tell_once(notice: Notice) -> None:
    if notice.text not in _told:
        _told.add(notice.text)
        _LOG.warning(notice.text)


class Fitter:
    """`fit` for one conversation: it looks at what is new alone, and knows its own last
    list again where a framework wrote that over the caller's."""

    def __init__(
        self,
        *,
        model: str,
        tools: Sequence[object] | Toolset = (),
        policy: Policy = "collapse",
        window: int | None = None,
        via: str = READ_BACK,
        marks: bool = True,
        layers: Sequence[Layer] | None = None,
        names: Mapping[str, str] | None = None,
        settings: Settings = DEFAULTS,
        on_notice: Say | None = None,
    ) -> None:
        self._say = _once(on_notice or _log)
        self._model = model
        self._via = (names or {}).get(READ_BACK, via)
        self._marks = marks
        self._offered = tool_values(tools)
        world = world_of(model, window, settings, policy, self._via, self._say)
        self._rules = rules_of(world, self._offered, policy, self._via, layers)
        self._start()

    def _start(self) -> None:
        self._messages: list[Any] = []
        self._prints: list[bytes] = []
        self._heard: list[Heard] = []
        self._form: Format | None = None
        self._tells = False  # whether the list itself says which form it has
        self._played = PlayedList()  # what is settled
        self._adoption = Adoption((), {})
        self._out: list[bytes] = []  # the last result, as it was handed out

    def fit(self, messages: Sequence[T]) -> Fitted[T]:
        """The list to send in place of this one."""
        self._hear(_checked(messages))
        form: Format = self._form or "chat"
        if self._is_fitted_elsewhere():
            return self._as_it_is()
        self._adoption = adopt(self._heard, form)
        parts, settled = self._adoption.parts, self._adoption.settled()
        self._played = play(self._played, parts[self._played.parts : settled], self._rules)
        all_of_it = play(self._played, parts[settled:], self._rules)
        closed = decided(all_of_it, self._rules)
        self._check(closed.tokens(self._rules))
        return self._fitted(closed, form)

    def _fitted(self, closed: PlayedList, form: Format) -> Fitted[Any]:
        going = rendered(closed.view, self._messages, self._heard, self._adoption, form)
        out = going.out
        if form == "messages" and self._marks:
            out = with_marks(going)
        changes = _changes(closed.view)
        if changes and not self._rules.reads_back:
            self._warn_of_loss()
        made = Fitted(
            out,
            tokens=closed.tokens(self._rules),
            before=self._before(),
            changes=changes,
            stable=self._stable(going.out, closed.asked, form),
            tools=self.tools,
        )
        self._out = [_fingerprint(m) for m in made]
        return made

    # --- what went in

    def _hear(self, messages: Sequence[Any]) -> None:
        """Take in what is new of a list; another list is begun anew."""
        prints = [_fingerprint(m) for m in messages]
        if _begins(prints, self._prints):
            new, at = list(messages), len(self._prints)
        elif self._out and _begins(prints, self._out):  # our own list came back
            new, at = [*self._messages, *messages[len(self._out) :]], len(self._prints)
            prints = [*self._prints, *prints[len(self._out) :]]
        else:
            self._start()
            new, at = list(messages), 0
        values = [value_of(m) for m in new[at:]]
        form = self._form
        if form is None or not self._tells:
            whole = values if not at else [value_of(m) for m in new]
            form, self._tells = format_of(whole, self._offered, self._model)
        if form != self._form and at:
            self._start()
            values, at = [value_of(m) for m in new], 0
        self._form = form
        self._heard += [heard(v, form) for v in values]
        self._messages, self._prints = new, prints

    def _is_fitted_elsewhere(self) -> bool:
        """Whether the list holds words of ours whose originals nobody here knows."""
        return any(_is_ours(b) for h in self._heard if h.speaker == "user" for b in h.blocks)

    def _as_it_is(self) -> Fitted[Any]:
        self._say(
            Notice(
                "fit",
                "this list was fitted before and its originals are not known here, so it is sent "
                "as it is. Keep the full list and fit that, or hold on to one Fitter",
                "warning",
            )
        )
        size = self._before()
        self._check(size)
        out, self._out = list(self._messages), list(self._prints)
        return Fitted(out, tokens=size, before=size, changes=(), stable=len(out), tools=self.tools)

    # --- figures

    def _before(self) -> int:
        return self._rules.head + sum([h.tokens for h in self._heard])

    def _check(self, tokens: int) -> None:
        if tokens > self._rules.allowed:
            raise PromptTooLong(
                "the list is too long for the model's window, and nothing more can leave it",
                needed=tokens,
                allowed=self._rules.allowed,
                where=self._model,
                do="Shorten the longest message, or choose a model with a larger window",
            )

    def _stable(self, out: Sequence[Any], asked: View | None, form: Format) -> int:
        if asked is None:
            return 0
        before = rendered(asked, self._messages, self._heard, self._upto(asked), form).out
        count = 0
        for old, new in zip(before, out, strict=False):
            if old is not new and old != new:
                break
            count += 1
        return count

    def _upto(self, view: View) -> Adoption:
        """The parts that the last request knew: those before the last message of the model's."""
        del view
        parts = self._adoption.parts[: self._adoption.settled()]
        return Adoption(parts, self._adoption.theirs)

    def _warn_of_loss(self) -> None:
        self._say(
            Notice(
                "fit",
                "the window is full and old results were left out; the model has no tool to read "
                f"them back. Offer reverie.tools() among tools= (a tool called {self._via})",
                "warning",
            )
        )

    # --- reading back

    @property
    def tools(self) -> Toolset:
        """The tool that reads back what left the list fitted last."""
        originals = Originals(self._adoption)
        return Toolset([reading_back(originals, self._via, self._rules.settings)])

    def handle(self, call: object) -> Any:
        """The result of a call that reads back, in the form it came in; else None."""
        return self.tools.handle(call)


def _checked(messages: object) -> Sequence[Any]:
    if isinstance(messages, (str, bytes, Mapping)) or not isinstance(messages, Sequence):
        raise InvalidMessage(
            "a list of messages is wanted",
            where=type(cast("object", messages)).__name__,
            do='For one message, hand in [{"role": "user", "content": ...}]',
        )
    return cast("Sequence[Any]", messages)


def _is_ours(block: Block) -> bool:
    """Whether a block says what only we say: lines, or a stub with its own call's reference."""
    if block.type == "tool_result":
        text = text_of(block.value.get("content"))
        return text.startswith(_STORED) and f" with {reference(block.call)} " in text[:500]
    return block.get("text").startswith(_SEALED)


def _begins(prints: Sequence[bytes], known: Sequence[bytes]) -> bool:
    return len(prints) >= len(known) and all(a == b for a, b in zip(prints, known, strict=False))


def _fingerprint(message: Any) -> bytes:
    """Of a message's contents, all of them: callers change old messages in place."""
    try:
        data = marshal.dumps(message, 0)  # the plain format: the same for equal values
    except ValueError:
        data = dump(plain(message)).encode()
    return blake2b(data, digest_size=16).digest()


def _changes(view: View) -> tuple[str, ...]:
    return tuple(told for entry in view.entries if (told := _change(entry.record, view)))


def _change(record: object, view: View) -> str:
    if isinstance(record, ResultDecided) and record.content:
        call = view.calls.get(record.call)
        name = call.name if call else ""
        return f"{record.action} the result of {name} {reference(record.call)}: {record.why}"
    if isinstance(record, Replaced):
        return f"{record.reason}: {record.why}"
    return ""


def _log(notice: Notice) -> None:
    _LOG.warning(notice.text)


def _once(say: Callable[[Notice], None]) -> Say:
    """A `Say` that says each thing once."""
    told: set[str] = set()

    def tell(notice: Notice) -> None:
        if notice.text not in told:
            told.add(notice.text)
            say(notice)

    return tell
