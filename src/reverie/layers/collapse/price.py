"""When a seal pays: what reading the old rounds has cost against what a seal would cost.

Prices and lifetimes are those of the provider and model; the figures are recorded with the
edit. A cold cache, or a tail over its limit, decides at once. While nothing is sealed yet, a
cold cache seals only a tail that is worth it: a short session never costs more than one in
which everything is sent. Pure functions of a view and its world.
"""

from __future__ import annotations

from reverie.settings import Settings
from reverie.transcript.records import unchanging
from reverie.transcript.view import View
from reverie.world import World

FIRST_COLD = 6_000  # tokens of the tail from which a cold cache makes the first seal


@unchanging
class SealPrice:
    """The figures behind a seal, in input tokens."""

    held: float  # spent on reading old rounds since the last seal
    cost: float  # of writing the kept end anew; the lines cost the same whenever they come
    tail: int
    cold: bool

    @property
    def pays(self) -> bool:
        return self.held >= self.cost > 0

    def told(self, limit: int) -> str:
        if self.cold:
            return f"the cache was cold; the tail had {self.tail:,} tokens"
        if self.tail > limit:
            return f"the tail had {self.tail:,} of {limit:,} tokens"
        return f"reading cost {self.held:,.0f}, sealing costs {self.cost:,.0f}"


def priced(view: View, world: World, settings: Settings) -> SealPrice:
    """What the tail has cost since the last seal, and what sealing it would cost."""
    kept = kept_tokens(settings)
    prices = world.prices
    held = max(0, view.reread - view.answers * kept)
    cold = is_cold(view, world) and (bool(view.sealed) or view.live_tokens >= FIRST_COLD)
    return SealPrice(prices.read * held, prices.write * kept, view.live_tokens, cold)


def kept_tokens(settings: Settings) -> int:
    """What stays live at a seal: at most a tenth of the tail."""
    return min(settings.collapse_kept, settings.collapse_tail // 10)


def is_cold(view: View, world: World) -> bool:
    """Whether the tail's cache entries have run out, so that an edit is free."""
    if view.last_assistant_at is None:
        return False
    return world.clock.now() - view.last_assistant_at > world.prices.short


def is_due(view: View, world: World, price: SealPrice, limit: int) -> bool:
    if price.tail > limit:
        return True
    if not (price.pays or price.cold):
        return False
    return not world.unbound(view.items.since(view.live)) or _turn_begins(view)


def _turn_begins(view: View) -> bool:
    """Whether what is about to be sent is the user's own word, not a tool's."""
    unsent = view.unsent()
    return bool(unsent) and not any(i.results for i in unsent)
