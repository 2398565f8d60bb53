"""Numbers, sizes, ages, dates and long texts as people read them."""

from __future__ import annotations

from datetime import UTC, datetime

DAY = 86_400


# --- numbers


def plural(count: int, one: str, many: str = "", *, grouped: bool = True) -> str:
    """Return a count and its noun; thousands are grouped by commas."""
    number = f"{count:,}" if grouped else str(count)
    return f"{number} {one if count == 1 else many or one + 's'}"


def size(count: int) -> str:
    """Return bytes in a few characters."""
    amount = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000 or unit == "GB":
            break
        amount /= 1000
    return f"{amount:.0f} {unit}" if amount >= 10 or unit == "B" else f"{amount:.1f} {unit}"


def number(count: float | None) -> str:
    """Return a whole number, or a dash where there is none."""
    return "–" if count is None else f"{count:,.0f}"


def short_number(count: float | None) -> str:
    """Return a number of tokens in a few characters, or a dash where there is none."""
    if count is None:
        return "–"
    for unit, scale in (("M", 1e6), ("k", 1e3)):
        if abs(count) >= scale:
            amount = count / scale
            return f"{amount:,.0f} {unit}" if amount >= 100 else f"{amount:.3g} {unit}"
    return f"{count:,.0f}"


# --- times


def age(seconds: float) -> str:
    """Return how long ago, in the largest unit that fits."""
    left = max(0.0, seconds)
    for unit, length in (("d", DAY), ("h", 3_600), ("min", 60)):
        if left >= length:
            return f"{left / length:,.0f} {unit}"
    return f"{left:.0f} s"


def days_since(at: float, now: float) -> int:
    """Return the whole days since a moment; 0 for one that is still to come."""
    return max(0, int((now - at) // DAY))


def utc_day(at: float) -> str:
    """Return the day of a moment, such as 2026-03-01."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d")


def utc_minute(at: float) -> str:
    """Return the day and minute of a moment, such as 2026-03-01 12:30."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M")


# --- texts


def cut(text: str, limit: int) -> str:
    """Return a text of at most `limit` characters, `…` where it goes on."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def cut_line(text: str, limit: int) -> str:
    """Return a text on one line of at most `limit` characters."""
    return cut(" ".join(text.split()), limit)
