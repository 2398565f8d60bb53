"""Abilities of models, as data.

What each provider and model can do, as data.

One table, first row whose pattern fits the model's name; every row says where its
numbers come from. What a provider's own models endpoint says goes over the table. A
number that no source gives is left out, and SPEC §2's order finds the window. Prices are
those of `costs`; where a model has none there, its provider's usual ones against an input.

Sources:
  caching     Anthropic, "Prompt caching" (minimum lengths, 4 marks, 5 m and 1 h)
  sdk         anthropic 2.8.0 (`diagnostics` in messages.create; model names)
  compaction  anthropic 2.8.0, beta compact-2026-09-04: Opus and Sonnet 4.6 and later,
              Fable and Mythos 5, Haiku 5.5
  models      Anthropic, "Models overview": 1 M in and 128 K out for the 5 series,
              200 K and 64 K for the 4.5 series (Sonnet 4.5: 1 M by a beta, so no window)
  openai      OpenAI, "Models": the window less the output, where that is what is enforced
  simulator   reverie.simulator: `cache_edits` is its own
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from reverie.light import dataclass
from reverie.providers.costs import AUTOMATIC, price_of, relative
from reverie.settings.catalog import Settings
from reverie.transcript.blocks import Json
from reverie.transcript.messages import context_window, family
from reverie.transcript.records import Ttl
from reverie.world import Capabilities

LIFETIMES: tuple[Ttl, ...] = ("5m", "1h")
CLAUDE = Capabilities(
    marks=4,
    lifetimes=LIFETIMES,
    context_management=True,
    compaction=True,
    thinking_binding=True,
    diagnostics=True,
    min_cacheable=1024,
    thinking=("adaptive", "budget"),
    efforts=True,
)
FOURS = replace(CLAUDE, compaction=False, max_output=64_000, thinking=("budget",), efforts=False)
FIVES = replace(CLAUDE, window=1_000_000, max_output=128_000)
LIKE_CLAUDE = Capabilities(marks=4, lifetimes=LIFETIMES)  # other models behind the same API


PLAIN = Capabilities(prices=AUTOMATIC)
CLI_AGENT = Capabilities(  # an agent program of the user, started without its tools
    tools=False, images=False, window=200_000, max_output=8_000
)
REASONING = replace(PLAIN, efforts=True)


@dataclass(frozen=True, slots=True)
class ModelRow:
    """Models by a pattern over their names."""

    pattern: str
    capabilities: Capabilities
    sources: str


TABLE: tuple[ModelRow, ...] = (
    ModelRow(
        r"claude-(fable|mythos|opus)-5",
        replace(FIVES, min_cacheable=512),
        "caching sdk compaction models",
    ),
    ModelRow(r"claude-(sonnet|haiku)-5", FIVES, "caching sdk compaction models"),
    ModelRow(r"claude-mythos", replace(CLAUDE, min_cacheable=512), "caching sdk compaction"),
    ModelRow(r"claude-opus-4-8|claude-sonnet-4-6", CLAUDE, "caching sdk compaction"),
    ModelRow(r"claude-opus-4-7", replace(CLAUDE, min_cacheable=2048), "caching sdk compaction"),
    ModelRow(r"claude-opus-4-6", replace(CLAUDE, min_cacheable=4096), "caching sdk compaction"),
    ModelRow(r"claude-sonnet-4-5", FOURS, "caching sdk models"),
    ModelRow(
        r"claude-(opus|haiku)-4-5",
        replace(FOURS, window=200_000, min_cacheable=4096),
        "caching sdk models",
    ),
    ModelRow(r"claude", replace(CLAUDE, compaction=False, min_cacheable=4096), "caching sdk"),
    # From 5.4 on they take 922,000 tokens, but past 272,000 each costs twice as much.
    ModelRow(
        r"gpt-5(\.[1245])?(-|$)", replace(REASONING, window=272_000, max_output=128_000), "openai"
    ),
    ModelRow(r"gpt-4\.1", replace(PLAIN, window=1_047_576, max_output=32_768), "openai"),
    ModelRow(r"gpt-4o", replace(PLAIN, window=128_000, max_output=16_384), "openai"),
    ModelRow(
        r"o[134](-|$)|codex-mini", replace(REASONING, window=200_000, max_output=100_000), "openai"
    ),
)
_WINDOWS = (
    "max_input_tokens",  # Anthropic
    "max_model_len",  # vLLM
    "context_window",  # Groq and others
    "context_length",  # OpenRouter, Together
    "max_context_length",  # LM Studio
)
_OUTPUTS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
_SWITCHES = ("cache_edits", "context_management", "compaction")


def table_capabilities(model: str, other: Capabilities = PLAIN) -> Capabilities:
    """What the table says of a model, or `other` where it is silent."""
    name = family(model)
    found = next((r.capabilities for r in TABLE if re.match(r.pattern, name)), other)
    price = price_of(model)
    return found if price is None else replace(found, prices=relative(price, found.prices))


def merge_model_info(known: Capabilities, info: Json) -> Capabilities:
    """Capabilities with what a models endpoint says of the model on top."""
    if not isinstance(info, dict):
        return known
    window = next((n for k in _WINDOWS if (n := _positive(info.get(k)))), known.window)
    output = next((n for k in _OUTPUTS if (n := _positive(info.get(k)))), known.max_output)
    offered = info.get("capabilities")
    switches = {
        name: said
        for name in _SWITCHES
        if isinstance(offered, dict) and (said := _read_supported(offered.get(name))) is not None
    }
    return replace(known, window=window, max_output=output, **switches)


def _positive(value: Json) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _read_supported(value: Json) -> bool | None:
    found = value.get("supported") if isinstance(value, dict) else value
    return found if isinstance(found, bool) else None


def in_force(
    model: str,
    known: Capabilities,
    settings: Settings,
    *,
    betas: Iterable[str] = (),
    learned: int | None = None,
) -> Capabilities:
    """Capabilities whose window is the one that counts, in SPEC §2's order."""
    window = context_window(
        model,
        known=known.window,
        betas=betas,
        fallback=settings.fallback_window,
        learned=learned,
    )
    return replace(known, window=window)
