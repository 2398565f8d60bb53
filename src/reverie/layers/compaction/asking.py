"""Asking for a summary: a fork that shares the cache, or a side query where that cannot be.

Tries are bounded: an answer that cannot be used is asked for once more, with what was wrong
with it; a request that is too long is made shorter a few times, by as much as the provider
names. What had to be left out is told. Nothing is written here, and nothing is lost by a
failure.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from reverie.errors import ForkRefused, NotAvailable, PromptTooLong, ReverieError
from reverie.layers.compaction import shortened, summary
from reverie.layers.compaction.ranges import Span
from reverie.layers.compaction.summary import Unusable
from reverie.transcript.tasks import SummaryTask
from reverie.transcript.view import View
from reverie.world import ForkSpec, World

SOURCE = "compact"


class CompactionFailed(ReverieError):
    """A compaction that came to nothing; the conversation is as it was."""


@dataclass(frozen=True, slots=True)
class Written:
    """A summary that can be used, and what it took."""

    text: str
    calls: int
    left_out: str = ""  # what was not in the request, with the user's words in it


async def written(view: View, world: World, span: Span, instructions: str) -> Written:
    """The summary of a range; CompactionFailed, or the provider's own error, where none came."""
    asking = _Asking(view, world, span, instructions)
    fault = ""
    for _ in range(world.settings.compact_tries):
        answer = await asking.once(fault)
        try:
            text = summary.read(answer, span.tokens)
        except Unusable as error:
            fault = error.what
        else:
            return Written(text, asking.calls, asking.left_out())
    tries = f"{world.settings.compact_tries} tries"
    raise CompactionFailed(
        f"the summariser gave no usable summary in {tries}; the last time {fault}",
        do="Nothing was changed; /compact tries again, /snip takes out what you name",
    )


class _Asking:
    """One summary being asked for, however many requests that takes."""

    def __init__(self, view: View, world: World, span: Span, instructions: str) -> None:
        self.view, self.world, self.span = view, world, span
        self.instructions = instructions
        self.calls = 0
        self.dropped = 0  # oldest rounds that the request leaves out
        self._retries = 0
        self._side = _better_anew(view, world, span)
        self._sent = view.head_tokens + view.estimated  # our estimate of the last request
        self._standing, self._rounds = shortened.rounds(view, span)

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
        self._sent = request.tokens
        self.calls += 1
        return (await self.world.ask(request)).text

    def _words(self, fault: str) -> str:
        return summary.instruction(self.span.scope, self._most(), self.instructions, fault)

    def _most(self) -> int:
        settings, window = self.world.settings, self.world.window
        return max(1, window - settings.effective_window(window))

    def _task(self) -> SummaryTask:
        return SummaryTask(
            first=self.span.gone[0].id,
            last=self.span.gone[-1].id,
            instructions=self.instructions,
            tokens=self._most(),
            dropped=f"the {self.dropped:,} oldest rounds" if self.dropped else "",
        )

    # --- a request that is too long

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
        target = self._sent * share
        size = self.view.head_tokens + sum(i.tokens for i in self._standing)
        size += sum(r.tokens for r in self._rounds)
        at = 0
        while at < len(self._rounds) and size > target:
            size -= self._rounds[at].tokens
            at += 1
        return max(at, self.dropped + 1) if self._retries > 1 else at

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


def _better_anew(view: View, world: World, span: Span) -> bool:
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
