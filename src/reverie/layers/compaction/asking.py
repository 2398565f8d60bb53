"""Asking for a summary: a fork that shares the cache, or a side query where that cannot be.

Where a setting names another model, that one is asked first: by a side query, since it has no
cache to share, and with no more than its own window takes. Where it writes no summary, the
session's own model does, and that is said.

Tries are bounded: an answer that cannot be used is asked for once more, with what was wrong
with it; a request that is too long is made shorter a few times, by as much as the provider
names. What had to be left out is told; a secret in a summary is taken out of it. Nothing is
written here, and nothing is lost by a failure.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil

from reverie.errors import ForkRefused, NotAvailable, PromptTooLong, ReverieError
from reverie.layers.compaction import shortened, summary
from reverie.layers.compaction.ranges import ReplacedSpan
from reverie.layers.compaction.summary import Unusable
from reverie.light import dataclass
from reverie.transcript.blocks import estimate
from reverie.transcript.tasks import SummaryTask
from reverie.transcript.tokens import context_window
from reverie.transcript.view import View
from reverie.world import ForkSpec, Model, Notice, World

NAME = "compaction"
SOURCE = "compact"


class CompactionFailed(ReverieError, code="compaction_failed"):
    """A compaction that came to nothing; the conversation is as it was."""


@dataclass(frozen=True, slots=True)
class Written:
    """A summary that can be used, and what it took."""

    text: str
    calls: int
    left_out: str = ""  # what was not in the request, with the user's words in it


async def written(view: View, world: World, span: ReplacedSpan, instructions: str) -> Written:
    """The summary of a range; CompactionFailed, or the provider's own error, where none came."""
    made, calls = await _by_another(view, world, span, instructions)
    if made is None:
        made = await _usable(_Asking(view, world, span, instructions))
    return replace(made, calls=made.calls + calls)


async def _by_another(
    view: View, world: World, span: ReplacedSpan, instructions: str
) -> tuple[Written | None, int]:
    """What the model wrote that a setting names; None, and the calls that were in vain, where
    there is none, or it wrote nothing of use, which is said: the session's own takes over."""
    asking: _Asking | None = None
    try:
        model = await world.summariser() if world.summariser is not None else None
        if model is None or (world.model is not None and model.name == world.model.name):
            return None, 0  # a fork of the session's own reads its cache
        asking = _Asking(view, world, span, instructions, model)
        return await _usable(asking), 0
    except ReverieError as error:
        text = f"the model of the setting summaryModel wrote no summary: {error}"
        world.say(Notice(NAME, f"{text}; the session's own is asked instead", "warning"))
        return None, asking.calls if asking else 0


async def _usable(asking: _Asking) -> Written:
    """Ask until the answer can be used, a few times."""
    settings, fault = asking.world.settings, ""
    for _ in range(settings.compact_tries):
        answer = await asking.once(fault)
        try:
            text = summary.read(answer, asking.span.tokens)
        except Unusable as error:
            fault = error.what
        else:
            return Written(_clean(text, asking.world), asking.calls, asking.left_out())
    tries = f"{settings.compact_tries} tries"
    raise CompactionFailed(
        f"the summariser gave no usable summary in {tries}; the last time {fault}",
        do="Nothing was changed; /compact tries again, /snip takes out what you name",
    )


def _clean(text: str, world: World) -> str:
    """A summary without secrets: what it says of them goes on, what they are does not."""
    from reverie.memory.secrets import removed  # due once there is a summary

    text, rules = removed(text)
    if rules:
        told = f"secrets were taken out of the summary: {', '.join(rules)}"
        world.say(Notice(NAME, told, "warning"))
    return text


class _Asking:
    """One summary being asked for, however many requests that takes."""

    def __init__(
        self,
        view: View,
        world: World,
        span: ReplacedSpan,
        instructions: str,
        model: Model | None = None,  # None: the session's own
    ) -> None:
        self.view, self.world, self.span = view, world, span
        self.instructions = instructions
        self.model = model
        self.calls = 0
        self.dropped = 0  # oldest rounds that the request leaves out
        self._retries = 0
        self._anew = False  # whether the last request was a side query
        self._side = model is not None or _better_anew(view, world, span)
        self._sent = view.head_tokens + view.estimated  # our estimate of the last request
        self._standing, self._rounds = shortened.rounds(view, span)
        if model is not None:
            self._fit(model)

    async def once(self, fault: str) -> str:
        if not self._side:
            try:
                return await self._by_fork(fault)
            except ForkRefused:
                self._side = True
            except PromptTooLong as error:
                self._side = True
                self._shorten(error)
        while True:
            try:
                return await self._by_side_query(fault)
            except PromptTooLong as error:
                self._shorten(error)

    async def _by_fork(self, fault: str) -> str:
        if self.world.fork is None:
            raise NotAvailable("there is no model to write a summary", where=self.view.session)
        spec = ForkSpec(SOURCE, self._words(fault), self._task())
        self.calls += 1
        return (await self.world.fork(spec)).text

    async def _by_side_query(self, fault: str) -> str:
        if self.world.ask is None:
            raise NotAvailable("there is no model to write a summary", where=self.view.session)
        kept = self._rounds[self.dropped :]
        request = shortened.request(
            self.view, self._standing, kept, self.dropped, self._words(fault), self._task()
        )
        if self.model is not None:
            request = shortened.for_model(request, self.model.name)
        self._sent, self._anew = request.tokens, True
        self.calls += 1
        return (await self.world.ask(request, self.model)).text

    def _words(self, fault: str) -> str:
        return summary.instruction(self.span.scope, self._most(), self.instructions, fault)

    def _most(self) -> int:
        """Tokens that the summary may have: what the window keeps free for it, and what
        another model can write."""
        known = [self.world.window]
        if self.model is not None:
            known.append(_window(self.model, self.world))
        most = min(window - self.world.settings.effective_window(window) for window in known)
        can = self.model.capabilities.max_output if self.model else None
        return max(1, min(most, can or most))

    def _task(self) -> SummaryTask:
        return SummaryTask(
            first=self.span.gone[0].id,
            last=self.span.gone[-1].id,
            instructions=self.instructions,
            tokens=self._most(),
            dropped=f"the {self.dropped:,} oldest rounds" if self.dropped else "",
        )

    # --- a request that is too long

    def _fit(self, model: Model) -> None:
        """Leave out the oldest rounds that another model's window has no room for."""
        window = _window(model, self.world)
        room = self.world.settings.effective_window(window) / max(1.0, ratio(self.view))
        self.dropped = self._over(room)
        if self.dropped >= len(self._rounds):
            raise CompactionFailed(
                f"not even the newest round fits its window of {window:,} tokens",
                where=model.name,
                do="Name a model with a larger window",
            )

    def _shorten(self, error: PromptTooLong) -> None:
        """Leave out more of the oldest rounds; CompactionFailed where that cannot go on."""
        settings = self.world.settings
        self._retries += 1
        before = self.dropped
        if error.needed and error.allowed:
            self.dropped = self._fitting(error.allowed / error.needed)
        else:
            share = ceil(len(self._rounds) * settings.compact_dropped_share)
            self.dropped += max(1, share)
        if self._retries > settings.compact_too_long_retries or self.dropped >= len(self._rounds):
            self.dropped = before
            raise CompactionFailed(
                "the conversation is too long even for the request that would summarise it, "
                f"after {self._retries - 1} shorter tries",
                where=str(error),
                do="/snip takes out what you name, /undo the last turn; nothing is lost",
            ) from error

    def _fitting(self, share: float) -> int:
        """How many of the oldest rounds go so that no more than a share of the last request
        is left; at least one more than before, once the request was made anew."""
        at = self._over(self._sent * share)
        return max(at, self.dropped + 1) if self._anew else at

    def _over(self, target: float) -> int:
        """How many of the oldest rounds are too many for so many tokens."""
        size = self.view.head_tokens + estimate(self._words(""))
        size += sum(i.tokens for i in self._standing)
        size += sum(r.tokens for r in self._rounds)
        at = 0
        while at < len(self._rounds) and size > target:
            size -= self._rounds[at].tokens
            at += 1
        return at

    def left_out(self) -> str:
        """What was left out of the range, in words, with what the user said there."""
        gone = [one for one in self._rounds[: self.dropped] if one.gone]
        if not gone:
            return ""
        said = [_quoted(text) for one in gone for text in one.words]
        text = (
            f"[The {len(gone):,} oldest rounds did not fit the request for this summary and are "
            "not in it."
        )
        return text + ("]" if not said else " What the user said in them:]\n" + "\n".join(said))


def _quoted(text: str) -> str:
    return "user: " + text.replace("\n", "\nuser: ")


def ratio(view: View) -> float:
    """Counted tokens for one that we estimate."""
    return (view.tokens - view.head_tokens) / view.estimated if view.estimated else 1.0


def _window(model: Model, world: World) -> int:
    """The tokens that another model takes."""
    known = model.capabilities.window
    return context_window(model.name, known=known, fallback=world.settings.fallback_window)


def _better_anew(view: View, world: World, span: ReplacedSpan) -> bool:
    """Whether the conversation is sent anew from the start: it has pictures or documents, and
    no cache would be read, or the model cannot take them."""
    if world.model is None or not shortened.has_media(span.gone):
        return False
    return not world.model.capabilities.images or _cold(view, world)


def _cold(view: View, world: World) -> bool:
    if view.last_assistant_at is None:
        return True
    idle = world.clock.now() - view.last_assistant_at
    return idle > world.settings.cache_short_minutes * 60
