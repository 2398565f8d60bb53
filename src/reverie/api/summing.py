"""Summaries of a list, by a model that the caller hands in: asked where the window is full.

It is the compaction of a session, with its audit and its keep-list. What was asked once is not
asked again: a list that grew is played with the summary it got. Where none comes, old results go,
as without a summarizer, and that is said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from reverie.concurrency import alone, run
from reverie.layers import compaction
from reverie.transcript.records import Record
from reverie.transcript.view import View
from reverie.wire.reply import Reply
from reverie.wire.request import Request
from reverie.world import Model, Notice, World, complete


class Summaries:
    """The summaries of one conversation, by the message each was asked behind."""

    def __init__(self, model: Model, world: World) -> None:
        self._model = model
        self._world = replace(world, summariser=self._summariser, ask=self._ask)
        self.known: dict[str, tuple[Record, ...]] = {}

    def of(self, view: View) -> Sequence[Record]:
        """The records that put a summary in place of what was said."""
        if view.leaf not in self.known:
            self.known[view.leaf] = run(lambda: self._made(view))
        return self.known[view.leaf]

    async def _made(self, view: View) -> tuple[Record, ...]:
        none: tuple[Record, ...] = ()
        made, error = await alone(compaction.full(view, self._world), none)
        if error:
            text = f"no summary was made, so old results go instead: {error}"
            self._world.say(Notice("compaction", text, "warning"))
        return made

    async def _summariser(self) -> Model:
        return self._model

    async def _ask(self, request: Request, model: Model | None = None) -> Reply:
        return await complete(model or self._model, request)
