"""Asking for a summary, by model or provider, and reading it.

What the summariser is asked, how its answer is read, and the words that stand for a range.

An answer is good if it is whole, has the nine sections, and is shorter than what it stands
for; its drafting block never reaches the context. Text of a model stands in a frame that it
cannot close. Nothing here calls a model.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from math import ceil

from reverie.errors import ForkRefused, NotAvailable, PromptTooLong, ReverieError
from reverie.layers.compaction import ranges
from reverie.layers.compaction.ranges import ReplacedSpan
from reverie.light import dataclass
from reverie.transcript import tasks
from reverie.transcript.blocks import estimate
from reverie.transcript.mentions import reference
from reverie.transcript.messages import Item, context_window
from reverie.transcript.tasks import SummaryTask
from reverie.transcript.view import View
from reverie.world import ForkSpec, Model, Notice, World

OPEN, CLOSE = "<summary>", "</summary>"
DRAFTED = "</analysis>"
TAG = "conversation-summary"
LAST_CALLS = 10  # calls of the end that the stand names by reference
_HEADING = re.compile(r"^[ \t]{0,3}(?:#{1,6}[ \t]*|\*\*|\d{1,2}[.)][ \t]*)+(.+?)[ \t*:]*$", re.M)
_VARIABLE = re.compile(r"\{\{(scope|tokens|instructions|again)\}\}")


class Unusable(ReverieError, code="unusable"):
    """An answer of the summariser that cannot stand for anything."""


@cache
def _prompt() -> str:
    return (files("reverie.layers") / "prompts" / "compaction.md").read_text("utf-8")


def instruction(scope: str, tokens: int, instructions: str = "", fault: str = "") -> str:
    """What the summariser is told; `fault` is what was wrong with its last answer."""
    minded = ""
    if instructions.strip():
        minded = f"\nThe user asks you to mind this while you summarise:\n{instructions.strip()}\n"
    again = ""
    if fault:
        again = (
            f"\nYour last answer could not be used: {fault}. Write both parts once more, whole.\n"
        )
    values = {"scope": scope, "tokens": f"{tokens:,}", "instructions": minded, "again": again}
    return _VARIABLE.sub(lambda found: values[found[1]], _prompt()).rstrip() + "\n"


def read(answer: str, most: int) -> str:
    """The summary in an answer, without its draft; Unusable where it is not one."""
    end = answer.find(DRAFTED)
    said = answer[end + len(DRAFTED) :] if end >= 0 else answer
    start = said.find(OPEN)
    if start < 0:
        raise Unusable("it has no <summary>" if answer.strip() else "it is empty")
    stop = said.rfind(CLOSE)
    if stop < start:
        raise Unusable("its <summary> is never closed")
    text = said[start + len(OPEN) : stop].strip()
    missing = _missing(text)
    if missing:
        raise Unusable(f"sections are missing: {', '.join(missing)}")
    size = estimate(text)
    if size >= most:
        raise Unusable(f"it has {size:,} tokens and stands for {most:,}")
    return text


def _missing(text: str) -> list[str]:
    headings = [found[1].lower() for found in _HEADING.finditer(text)]
    return [name for name in tasks.SUMMARY if not any(h.startswith(name.lower()) for h in headings)]


def stand(
    text: str,
    *,
    where: str,
    gone: Sequence[Item],
    left_out: str,
    keep: str,
    goes_on: bool,
    reader: str = "ReadBack",
) -> str:
    """The words that stand for the messages `gone`; `reader` is the tool that takes references."""
    inside = re.sub(rf"<(?=/?{TAG}\b)", "&lt;", text, flags=re.IGNORECASE)
    head = f"{where} This summary stands for it"
    if reader:
        head += (
            "; the transcript keeps every word. By a reference, which is r: and six signs, "
            f"{reader} gives a call and its result whole"
        )
    parts = [
        f"[{head}.]",
        f"<{TAG}>\n{inside}\n</{TAG}>",
        left_out,
        keep,
        _last_calls(gone) if reader else "",
    ]
    if goes_on:
        parts.append(
            "[The work was under way. Go on with it as if there had been no break: greet nobody, "
            "repeat nothing, and ask nothing that is answered above.]"
        )
    return "\n\n".join(filter(None, parts))


def _last_calls(gone: Sequence[Item]) -> str:
    """The newest calls by name and reference, the last one last."""
    calls = [
        f"{p.block.get('name')} {reference(p.block.get('id'))}"
        for item in gone
        for p in item.pieces
        if p.block.type == "tool_use"
    ]
    return f"The last calls: {', '.join(calls[-LAST_CALLS:])}" if calls else ""


# --- Asking for a summary: a fork that shares the cache, or a side query where that cannot be.
#
# Where a setting names another model, that one is asked first: by a side query, since it has no
# cache to share, and with no more than its own window takes. Where it writes no summary, the
# session's own model does, and that is said.
#
# Tries are bounded: an answer that cannot be used is asked for once more, with what was wrong with
# it; a request that is too long is made shorter a few times, by as much as the provider names.
# What had to be left out is told; a secret in a summary is taken out of it. Nothing is written
# here, and nothing is lost by a failure.


NAME = "compaction"
SOURCE = "compact"


class CompactionFailed(ReverieError, code="compaction_failed"):
    """A compaction that came to nothing; the conversation is as it was."""


@dataclass(frozen=True, slots=True)
class SummaryResult:
    """A summary that can be used, and what it took."""

    text: str
    calls: int
    left_out: str = ""  # what was not in the request, with the user's words in it


async def write_summary(
    view: View, world: World, span: ReplacedSpan, instructions: str
) -> SummaryResult:
    """The summary of a range; CompactionFailed, or the provider's own error, where none came."""
    made, calls = await _by_another(view, world, span, instructions)
    if made is None:
        made = await _usable(_SummaryQuery(view, world, span, instructions))
    return replace(made, calls=made.calls + calls)


async def _by_another(
    view: View, world: World, span: ReplacedSpan, instructions: str
) -> tuple[SummaryResult | None, int]:
    """What the model wrote that a setting names; None, and the calls that were in vain, where
    there is none, or it wrote nothing of use, which is said: the session's own takes over."""
    asking: _SummaryQuery | None = None
    try:
        model = await world.summariser() if world.summariser is not None else None
        if model is None or (world.model is not None and model.name == world.model.name):
            return None, 0  # a fork of the session's own reads its cache
        asking = _SummaryQuery(view, world, span, instructions, model)
        return await _usable(asking), 0
    except ReverieError as error:
        text = f"the model of the setting summaryModel wrote no summary: {error}"
        world.say(Notice(NAME, f"{text}; the session's own is asked instead", "warning"))
        return None, asking.calls if asking else 0


async def _usable(asking: _SummaryQuery) -> SummaryResult:
    """Ask until the answer can be used, a few times."""
    settings, fault = asking.world.settings, ""
    for _ in range(settings.compact_tries):
        answer = await asking.once(fault)
        try:
            text = read(answer, asking.span.tokens)
        except Unusable as error:
            fault = error.what
        else:
            return SummaryResult(_clean(text, asking.world), asking.calls, asking.left_out())
    tries = f"{settings.compact_tries} tries"
    raise CompactionFailed(
        f"the summariser gave no usable summary in {tries}; the last time {fault}",
        do="Nothing was changed; /compact tries again, /snip takes out what you name",
    )


def _clean(text: str, world: World) -> str:
    """A summary without secrets: what it says of them goes on, what they are does not."""
    from reverie.secrets.scanner import remove_secrets  # due once there is a summary

    text, rules = remove_secrets(text)
    if rules:
        told = f"secrets were taken out of the summary: {', '.join(rules)}"
        world.say(Notice(NAME, told, "warning"))
    return text


class _SummaryQuery:
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
        self._standing, self._rounds = ranges.rounds(view, span)
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
        request = ranges.request(
            self.view, self._standing, kept, self.dropped, self._words(fault), self._task()
        )
        if self.model is not None:
            request = ranges.for_model(request, self.model.name)
        self._sent, self._anew = request.tokens, True
        self.calls += 1
        return (await self.world.ask(request, self.model)).text

    def _words(self, fault: str) -> str:
        return instruction(self.span.scope, self._most(), self.instructions, fault)

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
        said = [_quote_user(text) for one in gone for text in one.words]
        text = (
            f"[The {len(gone):,} oldest rounds did not fit the request for this summary and are "
            "not in it."
        )
        return text + ("]" if not said else " What the user said in them:]\n" + "\n".join(said))


def _quote_user(text: str) -> str:
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
    if world.model is None or not ranges.has_media(span.gone):
        return False
    return not world.model.capabilities.images or _cold(view, world)


def _cold(view: View, world: World) -> bool:
    if view.last_assistant_at is None:
        return True
    idle = world.clock.now() - view.last_assistant_at
    return idle > world.settings.cache_short_minutes * 60
