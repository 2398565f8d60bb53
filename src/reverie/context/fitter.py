"""Context management over a list one already has: `fit`, and a `Fitter` that remembers.

    sent = reverie.fit(messages, model="gpt-5.6", tools=my_tools + kit.openai())

Messages, chat completions and responses; dicts or SDK objects. What comes out:

1. The caller's list and messages are never changed; one left alone is the same object.
2. It is valid in the form that went in: every call has its result; ids, names, unknown
   members and the caller's cache marks survive.
3. The same list and settings give the same result, in any process. Between two seals
   each result begins with the one before.
4. It fits the window, or `PromptTooLong` is raised.
5. No network, no disk, no clock, unless `store=`, `memory=` or `summarizer=` asks for it.
6. The text of whatever left can be read back whole by its reference; a picture cannot.
7. Where the model cannot read back, nothing leaves before the window forces it, and then
   one warning says so.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from reverie.context.renderer import (
    Fitted,
    ListCursor,
    ListRenderer,
    check_messages,
    describe_decisions,
    lets_go,
    render_list,
    with_marks,
)
from reverie.context.replay import (
    ReplayedList,
    apply_layers,
    play,
    rules_of,
    tool_values,
    way_back_of,
    world_of,
)
from reverie.errors import InvalidInput, PromptTooLong, StoreError
from reverie.layers.custom import OwnLayer
from reverie.settings.catalog import DEFAULTS, Settings
from reverie.settings.sources import override
from reverie.toolbox.toolset import READ_BACK, ListOriginals, Original, Toolset, reading_back
from reverie.transcript.mentions import REFERENCE, reference
from reverie.transcript.view import View
from reverie.wire.lists import AdoptedList, AdoptedMessage, adopt
from reverie.world import Model, Notice, Say

if TYPE_CHECKING:
    from reverie.context.async_fitter import AsyncFitter
    from reverie.context.conversations import FitterStore
    from reverie.memory.memory import Memory
    from reverie.memory.values import Saved
    from reverie.session.report import Report

__all__ = ["Fitted", "Fitter", "Policy", "fit"]

T = TypeVar("T")
Policy: TypeAlias = Literal["collapse", "classic", "off"]
Store: TypeAlias = "str | os.PathLike[str] | bool | None"
_told: set[str] = set()  # what a process was told once


def fit(
    messages: Sequence[T],
    *,
    model: str,
    tools: Sequence[object] | Toolset = (),
    policy: Policy = "collapse",
    window: int | None = None,
    store: Store = None,
    via: str = READ_BACK,
    marks: bool = True,
    layers: Sequence[OwnLayer] | None = None,
) -> Fitted[T]:
    """The list to send in place of this one; PromptTooLong where it cannot be made to fit.

    - `messages`: of the Messages API, chat completions or responses; dicts, or the SDKs' objects.
    - `model`: a name, which tells the window; `window` says it where the name is not known.
    - `tools`: the definitions that the model is offered. With `reverie.tools()` among them it can
      read back what leaves the list; `via` names a tool of yours that does.
    - `policy`: `collapse` (old rounds become lines), `classic` (old results go when the window is
      full) or `off`. `layers` is a policy of your own.
    - `store`: keeps the originals beyond this process: True for the project's folder, or a path.
    - `marks`: whether a Messages list without cache marks gets two, on copies.
    """
    fitter = Fitter(
        model=model,
        tools=tools,
        policy=policy,
        window=window,
        store=store,
        via=via,
        marks=marks,
        layers=layers,
        on_notice=_tell_once,
    )
    return fitter.fit(messages)


def _tell_once(notice: Notice) -> None:
    if notice.text not in _told:
        _told.add(notice.text)
        _log(notice)


class Fitter:
    """`fit` for one conversation: it looks at what is new alone, and knows its own last
    list again where a framework wrote that over the caller's. Calls wait for one another.

    It takes what `fit` takes, and beside that:

    - `memory`: its index and what fits join the newest message of the user's.
    - `summarizer`: a model whose summary takes the place of the conversation when the window is
      full.
    - `names`: names of your own for its tools, such as `{"read_back": "fetch_result"}`.
    - `settings`, `on_notice`: as for `Memory`.
    """

    def __init__(
        self,
        *,
        model: str,
        tools: Sequence[object] | Toolset = (),
        policy: Policy = "collapse",
        window: int | None = None,
        store: Store = None,
        via: str = READ_BACK,
        marks: bool = True,
        layers: Sequence[OwnLayer] | None = None,
        memory: Memory | None = None,
        summarizer: Model | None = None,
        names: Mapping[str, str] | None = None,
        settings: Settings | Mapping[str, object] | None = None,
        on_notice: Callable[[Notice], object] | None = None,
    ) -> None:
        self._say = _once(on_notice or _log)
        self._model = model
        self._via = (names or {}).get(READ_BACK, via)
        self._marks = marks
        self._own = layers is not None
        self._offered = tool_values(tools)
        self._telling = [] if isinstance(tools, Toolset) else self._offered  # of the form
        self._memory, self._summarizer = memory, summarizer
        self._shelf = _shelf_of(store)
        folder = str(self._shelf.root) if self._shelf else ""
        way_back = way_back_of(self._offered, self._via, folder)
        wanted = override(DEFAULTS, settings, {})
        world = world_of(model, window, wanted, policy, way_back, self._say)
        self._base = rules_of(world, self._offered, policy, layers)
        self._turn = threading.RLock()
        self._closed = False
        self._requests = self._tokens = self._saved = 0
        self._list = ListCursor(self._telling, model)
        self._begin()

    def _begin(self) -> None:
        """Another conversation: nothing is decided yet, and nothing joined it."""
        self._played = ReplayedList()  # what is settled
        self._adoption = AdoptedList((), {})
        self._rules = self._base
        if self._memory is not None:
            from reverie.context.replay import MemoryInjector

            self._joining = MemoryInjector(self._memory, self._say)
            self._rules = replace(self._rules, joined=self._joining.texts)
        if self._summarizer is not None:
            from reverie.context.replay import Summaries

            self._summaries = Summaries(self._summarizer, self._base.world)
            self._rules = replace(self._rules, summarize=self._summaries.of)
        if self._shelf is not None:
            self._shelf.anew()

    def fit(self, messages: Sequence[T]) -> Fitted[T]:
        """The list to send in place of this one."""
        with self._turn:
            self._must_be_open()
            self._hear(check_messages(messages))
            if self._list.is_fitted and not self._came_back(messages):
                return self._as_it_is()
            return self._fit()

    def _hear(self, messages: Sequence[Any]) -> None:
        how = self._list.take(messages)
        if how == "another":
            self._begin()
        elif how == "tells":  # the same list in another form
            self._played = ReplayedList()

    def _fit(self) -> Fitted[Any]:
        self._adoption = adopt(self._list.heard, self._list.form)
        parts, settled = self._adoption.parts, self._adoption.settled()
        self._played = play(self._played, parts[self._played.parts : settled], self._rules)
        self._recall(parts[settled:])
        all_of_it = play(self._played, parts[settled:], self._rules)
        closed = apply_layers(all_of_it, self._rules)
        self._check(closed.tokens(self._rules))
        made = self._build_fitted(closed)
        self._keep(made, closed.view)
        return made

    def _build_fitted(self, closed: ReplayedList) -> Fitted[Any]:
        going = self._render(closed.view, self._adoption)
        out = going.out
        if self._list.form == "messages" and self._marks:
            out = with_marks(going)
        if not self._rules.reads_back and lets_go(closed.view):
            self._warn_of_loss()
        made = Fitted(
            going.alternating(out),
            tokens=closed.tokens(self._rules),
            before=self._before(),
            changes=describe_decisions(closed.view),
            stable=self._stable(going.alternating(going.out), closed.asked),
            tools=self._tools_of(self._adoption),
        )
        self._requests += 1
        self._tokens += made.tokens
        self._saved += made.saved
        return made

    def _render(self, view: View, adoption: AdoptedList) -> ListRenderer:
        known = self._list
        return render_list(view, known.messages, known.heard, adoption, known.form)

    def _came_back(self, messages: Sequence[Any]) -> bool:
        """Whether the store knows this list, and so what it was made from."""
        known = self._shelf.known(messages) if self._shelf else None
        if known is None:
            return False
        kept, count = known
        self._begin()
        if self._memory is not None:
            self._joining.texts.update(kept.joined)
        if self._summarizer is not None:
            self._summaries.known.update(kept.summaries)
        self._list = ListCursor(self._telling, self._model)
        self._list.take([*kept.messages, *messages[count:]])
        return not self._list.is_fitted

    def _as_it_is(self) -> Fitted[Any]:
        self._say(
            Notice(
                "fit",
                "this list was fitted before and its originals are not known here, so it is sent "
                "as it is. Keep the full list and fit that, hold on to one Fitter, or pass store=",
                "warning",
            )
        )
        size = self._before()
        self._check(size)
        out, tools = self._list.messages, self._tools_of(self._adoption)
        self._list.handed(out)
        return Fitted(out, tokens=size, before=size, changes=(), stable=len(out), tools=tools)

    # --- what outlives the list

    def _recall(self, parts: Sequence[AdoptedMessage]) -> None:
        """Let memory join the newest message of the user's."""
        newest = next((p for p in reversed(parts) if p.part == "user"), None)
        if self._memory is None or newest is None:
            return
        words = "\n".join(b.get("text") for b in newest.blocks if b.type == "text").strip()
        if words:
            self._joining.look(newest.id, words)

    def _keep(self, made: Fitted[Any], view: View) -> None:
        """Keep what a list that is written over would lose, and what a reader may ask for."""
        differs = self._list.handed(made)
        if self._shelf is None:
            return
        if self._rules.world.way_back.folder:
            self._put_files(view)
        if differs:
            joined = self._joining.texts if self._memory else {}
            summaries = self._summaries.known if self._summarizer else {}
            self._shelf.keep(self._list.messages, made, joined, summaries)

    def _put_files(self, view: View) -> None:
        assert self._shelf is not None  # the caller has seen to it
        originals = ListOriginals(self._adoption, plain=True)
        pieces = (piece.block for item in view.items for piece in item.pieces)
        cited = [name for block in pieces for name in REFERENCE.findall(block.raw)]
        stubs = [reference(call) for call, made in view.decisions.items() if made.content]
        for name in dict.fromkeys([*stubs, *cited]):
            found = originals.find(name)
            if found is not None:
                self._shelf.put(f"{name.removeprefix('r:')}.txt", found.text)

    def learn(self, messages: Sequence[object], *, model: Model | None = None) -> list[Saved]:
        """What a turn's end does in a session: keep what is worth keeping, in this memory."""
        with self._turn:
            self._must_be_open()
            if self._memory is None:
                raise InvalidInput("this Fitter has no memory", do="Make it with memory=")
            return self._memory.learn(self._list.originals(check_messages(messages)), model=model)

    # --- figures

    def _before(self) -> int:
        return self._rules.head + self._list.tokens

    def _check(self, tokens: int) -> None:
        if tokens > self._rules.allowed:
            raise PromptTooLong(
                "the list is too long for the model's window, and nothing more can leave it",
                needed=tokens,
                allowed=self._rules.allowed,
                where=self._model,
                do="Shorten the longest message, or choose a model with a larger window",
            )

    def _stable(self, out: Sequence[Any], asked: View | None) -> int:
        if asked is None:
            return 0
        settled = self._adoption.parts[: self._adoption.settled()]
        known = AdoptedList(settled, self._adoption.theirs)  # what the last request knew
        going = self._render(asked, known)
        before = going.alternating(going.out)
        count = 0
        for old, new in zip(before, out, strict=False):
            if old is not new and old != new:
                break
            count += 1
        return count

    def _warn_of_loss(self) -> None:
        forced = "the window is full and old results were left out"
        what = "your own layers let results go" if self._own else forced
        self._say(
            Notice(
                "fit",
                f"{what}; the model has no tool to read them back. Offer reverie.tools() among "
                f"tools= (a tool called {self._via})",
                "warning",
            )
        )

    def __report__(self, since: float) -> Report:
        """What `reverie.report` tells of it; requests have no times here."""
        del since
        from reverie.session.report import Report

        with self._turn:
            return Report(requests=self._requests, tokens=self._tokens, saved=self._saved)

    # --- reading back

    def _tools_of(self, adoption: AdoptedList) -> Toolset:
        return Toolset([reading_back(ListOriginals(adoption), self._via, self._rules.settings)])

    @property
    def tools(self) -> Toolset:
        """The tool that reads back what left the newest list."""
        return Toolset([reading_back(_Newest(self), self._via, self._rules.settings)])

    def handle(self, call: object) -> Any:
        """The result of a call that reads back, in the form it came in; else None."""
        with self._turn:
            return self.tools.handle(call)

    # --- the Fitter itself

    @property
    def aio(self) -> AsyncFitter:
        """The same methods for tasks, each through a worker thread."""
        from reverie.concurrency import AsyncFacade

        face: Any = AsyncFacade(self)
        return face

    def close(self) -> None:
        """End it: from now on it fits no more. May be called again."""
        self._closed = True

    def _must_be_open(self) -> None:
        if self._closed:
            raise StoreError("This Fitter was closed", do="Make another one")

    def __enter__(self) -> Fitter:
        return self

    def __exit__(self, *ended: object) -> None:
        self.close()


class _Newest:
    """The originals behind the list that a Fitter fitted last, whenever it is asked."""

    def __init__(self, fitter: Fitter) -> None:
        self._fitter = fitter

    def find(self, wanted: str) -> Original | None:
        return ListOriginals(self._fitter._adoption).find(wanted)  # pyright: ignore[reportPrivateUsage]


def _shelf_of(store: Store) -> FitterStore | None:
    if not store:
        return None
    from reverie.context.conversations import FitterStore, folder_of

    return FitterStore(folder_of(store))


def _log(notice: Notice) -> None:
    from reverie.world import log_notice

    log_notice(notice)


def _once(say: Callable[[Notice], object]) -> Say:
    """A `Say` that says each thing once."""
    known: set[str] = set()

    def tell(notice: Notice) -> None:
        if notice.text not in known:
            known.add(notice.text)
            say(notice)

    return tell
