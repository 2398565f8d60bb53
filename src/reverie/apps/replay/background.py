"""What runs beside a session in the background, and what that would cost.

Notes are taken when the product's own rule says so, extraction looks at each turn's end. Each
is a fork on the session's own prefix: it reads the context from the cache, writes its
instructions, and answers. How long an answer is no replay can know; the sizes here are those of
the prompts, and what answers to them usually measure. Sending everything has none of this.
Summaries at a fold need a model of their own and are none here.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from reverie.apps.replay.policies import ReplayPolicy
from reverie.layers.session_memory import growth
from reverie.transcript.records import NotesTaken
from reverie.transcript.view import View
from reverie.world import World

NOTES_PROMPT, NOTES_ANSWER = 1_500, 900  # tokens: instructions with the notes, and the edits
EXTRACTION_PROMPT, EXTRACTION_ANSWER = 1_000, 150


@dataclass(slots=True)
class BackgroundFigures:
    """Calls in the background, and their cost in input tokens."""

    notes: int = 0
    extractions: int = 0
    cost: int = 0


@dataclass(slots=True)
class Background:
    """The bill of what a policy has running beside a session."""

    policy: ReplayPolicy
    figures: BackgroundFigures = field(default_factory=BackgroundFigures)

    def after(self, view: View, world: World, context: int) -> NotesTaken | None:
        """What starts after an answer; a record where notes were taken."""
        if self.policy.name == "naive":
            return None
        if not view.open_calls and self.policy.settings.auto_memory_enabled:
            self.figures.extractions += 1
            self._bill(context, EXTRACTION_PROMPT, EXTRACTION_ANSWER)
        if not growth.due(view, world):
            return None
        self.figures.notes += 1
        self._bill(context, NOTES_PROMPT, NOTES_ANSWER)
        return NotesTaken(view.leaf, view.estimated)

    def _bill(self, context: int, prompt: int, answer: int) -> None:
        prices = self.policy.prices
        cost = context * prices.read + prompt * prices.write + answer * prices.output
        self.figures.cost += round(cost)
