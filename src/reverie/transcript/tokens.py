"""How large a model's window is, first answer wins; and what a model's name says."""

from __future__ import annotations

from collections.abc import Iterable

MILLION = 1_000_000
SUFFIX = "[1m]"
BETA_PREFIX = "context-1m-"


def context_window(
    model: str,
    *,
    known: int | None = None,
    betas: Iterable[str] = (),
    fallback: int,
    learned: int | None = None,
) -> int:
    """The window of a model; a limit learned from a provider's error caps every answer."""
    if model.endswith(SUFFIX):
        window = MILLION
    elif known:
        window = known
    elif any(b.startswith(BETA_PREFIX) for b in betas):
        window = MILLION
    else:
        window = fallback
    return min(window, learned) if learned else window


def bare(model: str) -> str:
    """A model's name as the provider knows it: without the suffix that asks for 1 M."""
    return model.removesuffix(SUFFIX)


def family(model: str) -> str:
    """A model's name without its vendor and in small letters, for the table."""
    return bare(model).lower().rpartition("/")[2].removeprefix("anthropic.")
