"""What requests cost: prices of models, and the bill of a session.

One table, first row whose pattern fits the model's name, in dollars for a million tokens. A model
that is not in it has no price here: nothing is guessed, and an answer without a price says so.
Prices change; these are what the providers' own pages said in November 2026.

A `SessionBill` counts everything that a session pays for under a policy: its own requests, reading
back and finding again what left them, and the model calls behind them. `replay`, the savings page
and the benches take their figures from it; `Prices.cost` is the one formula.

Sources:
  anthropic  Anthropic, "Models & pricing" (5 m and 1 h writes cost 1.25 and 2 inputs)
  openai     OpenAI, "Pricing" (a read costs a tenth of an input, for older models more)
"""

from __future__ import annotations

import re
from dataclasses import replace

from reverie.light import dataclass
from reverie.transcript.messages import family
from reverie.transcript.records import Usage
from reverie.world import Prices

MILLION = 1_000_000
MARKED = Prices()  # Anthropic's, and what holds where a provider tells nothing
AUTOMATIC = Prices(write=1.0, write_long=1.0, short=600)  # caches by itself: writing is free
LOCAL = Prices(read=0.0, write=1.0, write_long=1.0, output=1.0, short=3600)  # only time is spent
KINDS = {"anthropic": MARKED, "openai": AUTOMATIC, "local": LOCAL}


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars for a million tokens."""

    input: float
    output: float
    read: float
    written: float = 0.0  # at the short lifetime of a cache entry
    written_1h: float = 0.0


def _claude(given: float, output: float, read: float) -> Price:
    return Price(given, output, read, given * 1.25, given * 2)


def _openai(given: float, output: float, read: float) -> Price:
    return Price(given, output, read, given, given)


PRICES: tuple[tuple[str, Price], ...] = (
    (r"claude-fable-5", _claude(10, 50, 1)),
    (r"claude-opus-5-5", _claude(4, 20, 0.2)),
    (r"claude-opus-5(-\d{8}|$)", _claude(5, 25, 0.5)),
    (r"claude-sonnet-5", _claude(2, 10, 0.2)),
    (r"claude-opus-4-5", _claude(5, 25, 0.5)),
    (r"claude-sonnet-4-5", _claude(3, 15, 0.3)),
    (r"claude-haiku-4-5", _claude(1, 5, 0.1)),
    (r"gpt-5\.5(-\d{4}-\d{2}-\d{2}|$)", _openai(5, 30, 0.5)),
    (r"gpt-5\.4(-\d{4}-\d{2}-\d{2}|$)", _openai(2.5, 15, 0.25)),
    (r"gpt-5(\.1)?(-\d{4}-\d{2}-\d{2}|$)", _openai(1.25, 10, 0.125)),
    (r"gpt-4\.1(-\d{4}-\d{2}-\d{2}|$)", _openai(2, 8, 0.5)),
    (r"gpt-4o(-\d{4}-\d{2}-\d{2}|$)", _openai(2.5, 10, 1.25)),
)


def price_of(model: str) -> Price | None:
    """The price of a model, by its name; None where none is known."""
    name = family(model.rpartition(":")[2])
    return next((price for pattern, price in PRICES if re.match(pattern, name)), None)


def relative(price: Price, other: Prices) -> Prices:
    """The same in units of one input token; lifetimes as `other` has them."""
    return replace(
        other,
        read=round(price.read / price.input, 4),
        write=round(price.written / price.input, 4),
        write_long=round(price.written_1h / price.input, 4),
        output=round(price.output / price.input, 4),
    )


def dollars(model: str, usage: Usage, *, free: bool = False) -> float | None:
    """What the tokens cost; None where the model's price is not known."""
    if free:
        return 0.0
    price = price_of(model)
    return None if price is None else price.input * relative(price, MARKED).cost(usage) / MILLION


def money(amount: float) -> str:
    """An amount as people write it, with as many digits as it needs."""
    return f"${amount:,.2f}" if amount >= 1 else f"${amount:.4f}"


# --- the bill of a session


@dataclass(slots=True)
class SessionBill:
    """What a session costs under a policy, in units of one input token, part by part."""

    requests: float = 0.0  # of the conversation
    recovery: float = 0.0  # reading back, or running again, what left the requests
    refind: float = 0.0  # finding again what nothing leads back to
    extraction: float = 0.0
    notes: float = 0.0
    folds: float = 0.0  # summaries of folded lines, where a model writes them

    @property
    def background(self) -> float:
        """The model calls behind the conversation."""
        return self.extraction + self.notes + self.folds

    @property
    def total(self) -> float:
        return self.requests + self.recovery + self.refind + self.background


def fork_usage(context: int, new: int, answer: int) -> Usage:
    """Return what one call on a conversation's own prefix uses: it stands on the cache marks that
    were sent, so that the context is read, and what is new is not written."""
    return Usage(uncached=new, read=context, output=answer)
