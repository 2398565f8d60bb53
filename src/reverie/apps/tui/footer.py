"""How a session stands, in one line: from the left the model, the context, the cache, the money,
and at the right what runs in the background. What has no room is left out from the right.
"""

from __future__ import annotations

from dataclasses import dataclass

WIDE, SHORT, TINY = 100, 40, 20
COMPACTION, SEAL = "compaction", "a seal"


@dataclass(frozen=True, slots=True)
class Status:
    """What is known of a session; a share that is not known is None."""

    model: str = ""
    used: float | None = None  # share of the window
    left: int = 0
    until: str = COMPACTION
    cache: float | None = None
    money: str = ""
    pill: str = ""


def footer(status: Status, width: int) -> str:
    """The line, as wide as the terminal at most."""
    if width < TINY:
        return ""
    pill = f"● {status.pill}" if status.pill else "/help"
    parts = [status.model, _context(status, width), _cache(status), status.money]
    between = "  ·  " if width >= WIDE else "  "
    while width >= SHORT and len(parts) > 1:
        left = between.join(part for part in parts if part)
        if len(left) + len(pill) + 2 <= width:
            return left + " " * (width - len(left) - len(pill)) + pill
        parts.pop()
    both = f"{_context(status, width)}  {pill if status.pill else ''}".rstrip()
    return (both if len(both) <= width else _context(status, width))[:width]


def spoken(status: Status) -> str:
    """The same in words, for a mode in which nothing moves."""
    parts = [] if status.used is None else [f"context {status.used * 100:.0f} percent"]
    if status.used is not None:
        parts.append(f"{status.left:,} tokens until {status.until}")
    if status.cache is not None:
        parts.append(f"cache {status.cache * 100:.0f} percent")
    parts += [f"cost {status.money}"] if status.money else []
    parts += [status.pill] if status.pill else []
    return f"status: {', '.join(parts)}"


def _context(status: Status, width: int) -> str:
    if status.used is None:
        return "loading"
    if width >= WIDE:
        return f"context {status.used:.0%}, {status.left:,} left until {status.until}"
    left = f"{status.left // 1_000}k" if status.left >= 1_000 else str(status.left)
    return f"ctx {status.used:.0%}, {left} {'to seal' if status.until == SEAL else 'left'}"


def _cache(status: Status) -> str:
    return "cache –" if status.cache is None else f"cache {status.cache:.0%}"
