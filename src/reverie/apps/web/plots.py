"""Plots as SVG text: no script, no style attribute, colours by class, drawn once wide, once narrow.

Each is an image with a sentence as its name; the list below a plot carries the same facts. More
requests than there is room for are drawn by stretches, the highest of each.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup, escape

from reverie.text.format import number, short_number

MAX_POINTS = 600
FAR_ABOVE = 3
"""Times the areas' height that a line over them may take."""
UNTOUCHED = "if nothing were done"
KIND_WORDS = {
    "head": "system and tools",
    "sealed": "sealed lines",
    "user": "you",
    "assistant": "assistant",
    "results": "tool results",
    "memory": "memory",
}
CACHE_WORDS = {"read": "read, a tenth of the price", "written": "written", "plain": "not cached"}


@dataclass(frozen=True, slots=True)
class PlotFrame:
    """The size of a plot, and the room around it."""

    name: str  # the class that says where it is seen
    width: int
    height: int
    left: int
    ticks: int

    @property
    def right(self) -> int:
        return self.width - (8 if self.width > 400 else 2)

    @property
    def base(self) -> int:
        return self.height - 28


@dataclass(frozen=True, slots=True)
class PlotMark:
    """A flag over a request: a shape and a colour, and what it says."""

    at: int
    shape: str  # seal, stored, compaction or break
    text: str


WIDE, NARROW = PlotFrame("at-wide", 1160, 300, 46, 6), PlotFrame("at-narrow", 362, 216, 36, 3)
LOW_WIDE, LOW_NARROW = (
    PlotFrame("at-wide", 1160, 180, 46, 6),
    PlotFrame("at-narrow", 362, 150, 36, 3),
)
_SHAPES = {
    "seal": ("k-sealed", "h10l-5 8z", -5),
    "stored": ("k-results", "h8v8h-8z", -4),
    "compaction": ("k-assistant", "m-4 4a4 4 0 108 0a4 4 0 10-8 0z", 0),
    "break": ("c-plain", "h2v12h-2zm2 0h8l-3 3 3 3h-8z", -1),
}


def stacked(
    rows: Sequence[Mapping[str, float]],
    classes: Mapping[str, str],
    label: str,
    *,
    low: bool = False,
    marks: Sequence[PlotMark] = (),
    at: int = 0,
    over: Sequence[float] = (),
) -> Markup:
    """Areas over each other, one step for each row; `at` is the request that is looked at, `over`
    a line of its own, which ends at the top where it is far above all areas."""
    frames = (LOW_WIDE, LOW_NARROW) if low else (WIDE, NARROW)
    parts = (_stacked(frame, rows, classes, label, marks, at, over) for frame in frames)
    return Markup("").join(parts)


def _stacked(
    frame: PlotFrame,
    rows: Sequence[Mapping[str, float]],
    classes: Mapping[str, str],
    label: str,
    marks: Sequence[PlotMark],
    at: int,
    over: Sequence[float],
) -> Markup:
    shown, places = _thinned(rows)
    top = max((sum(row.values()) for row in shown), default=0) or 1
    top = max(top, min(max(over, default=0), FAR_ABOVE * top))
    unit = (frame.right - frame.left) / max(1, len(shown))
    high = (frame.base - 32) / top

    def x_of(request: int) -> float:
        return frame.left + (places.get(request, 0) + 0.5) * unit

    parts = [_grid(frame, top, high), _numbers(frame, len(rows), x_of)]
    below = [0.0] * len(shown)
    for name, words in classes.items():
        above = [base + row.get(name, 0) for base, row in zip(below, shown, strict=True)]
        if above != below:
            parts.append(_area(frame, below, above, unit, high, name, words))
        below = above
    if over:
        heights = _highest(over)
        dots = (
            f"{frame.left + (n + 0.5) * unit:.1f},{frame.base - min(value, top) * high:.1f}"
            for n, value in enumerate(heights)
        )
        line = Markup('<polyline class="naive" points="{}"><title>{}</title></polyline>')
        parts.append(line.format(" ".join(dots), UNTOUCHED))
    parts += [_mark(x_of(mark.at), mark) for mark in marks]
    if at:
        parts.append(
            Markup('<path class="cursor" d="M{:.1f} 20V{}"/>').format(x_of(at), frame.base)
        )
    parts.append(
        Markup('<path class="base" d="M{} {}H{}"/>').format(frame.left, frame.base, frame.right)
    )
    return _svg(f"plot {frame.name}", frame.width, frame.height, label, parts)


def _thinned(
    rows: Sequence[Mapping[str, float]],
) -> tuple[list[Mapping[str, float]], dict[int, int]]:
    """At most so many rows, the highest of each stretch; and where each request stands now."""
    step = -(-len(rows) // MAX_POINTS) or 1
    groups = [rows[n : n + step] for n in range(0, len(rows), step)]
    shown = [max(group, key=lambda row: sum(row.values())) for group in groups]
    return shown, {n + 1: n // step for n in range(len(rows))}


def _highest(values: Sequence[float]) -> list[float]:
    step = -(-len(values) // MAX_POINTS) or 1
    return [max(values[n : n + step]) for n in range(0, len(values), step)]


def _area(
    frame: PlotFrame,
    below: Sequence[float],
    over: Sequence[float],
    unit: float,
    high: float,
    name: str,
    words: str,
) -> Markup:
    def y(value: float) -> str:
        return f"{frame.base - value * high:.1f}"

    path = [f"M{frame.left} {y(below[0])}"]
    path += [f"V{y(v)}H{frame.left + (n + 1) * unit:.1f}" for n, v in enumerate(over)]
    back = range(len(below) - 1, -1, -1)
    path += [f"V{y(below[n])}H{frame.left + n * unit:.1f}" for n in back]
    return Markup('<path class="{}" d="{}z"><title>{}</title></path>').format(
        name, "".join(path), words
    )


def _grid(frame: PlotFrame, top: float, high: float) -> Markup:
    out: list[Markup] = []
    step = _round(top / 3)
    value = 0.0
    while value <= top:
        y = frame.base - value * high
        out.append(
            Markup(
                '<path class="grid" d="M{} {:.1f}H{}"/>'
                '<text class="end" x="{}" y="{:.1f}">{}</text>'
            ).format(frame.left, y, frame.right, frame.left - 7, y + 4, short_number(value))
        )
        value += step
    return Markup("").join(out)


def _numbers(frame: PlotFrame, count: int, x_of: Any) -> Markup:
    wanted = _ticks(count, frame.ticks)
    return Markup("").join(
        Markup('<text class="mid" x="{:.1f}" y="{}">{}</text>').format(
            x_of(n), frame.base + 20, number(n)
        )
        for n in wanted
    )


def _ticks(count: int, most: int) -> list[int]:
    """Every request where there is room, else the first and every fifth, tenth and so on."""
    if count <= 2 * most:
        return list(range(1, count + 1))
    step = max(5, int(_round(count / most)))
    return [1, *range(step, count + 1, step)]


def _round(value: float) -> float:
    """1, 2 or 5 with noughts behind, not less than the value."""
    size = 1.0
    while size * 10 <= value:
        size *= 10
    return next((size * n for n in (1, 2, 5, 10) if size * n >= value), size * 10)


def _mark(x: float, mark: PlotMark) -> Markup:
    name, shape, shift = _SHAPES[mark.shape]
    return Markup('<path class="{}" d="M{:.1f} 8{}"><title>{}</title></path>').format(
        name, x + shift, shape, mark.text
    )


def scattered(frame: PlotFrame, points: Sequence[tuple[float, float]], label: str) -> Markup:
    """Points over a scale of tens, against a line at one."""
    xs = [x for x, _ in points]
    low, high = min(xs), max(*xs, min(xs) + 0.1)
    top = max(1.2, *(y for _, y in points))
    wide = (frame.right - frame.left - 12) / (high - low)
    tall = (frame.base - 12) / top
    parts: list[Markup] = []
    for value in (0.0, 0.25, 0.5, 0.75, 1.0):
        y, name = frame.base - value * tall, "lim" if value == 1 else "grid"
        row = '<path class="{}" d="M{} {:.1f}H{}"/><text class="end" x="{}" y="{:.1f}">{:g}</text>'
        given = (name, frame.left, y, frame.right, frame.left - 6, y + 4, value)
        parts.append(Markup(row).format(*given))
    for power in range(math.ceil(low), math.floor(high) + 1):
        x = frame.left + 6 + (power - low) * wide
        tick = Markup('<text class="mid" x="{:.1f}" y="{}">{}</text>')
        parts.append(tick.format(x, frame.base + 18, short_number(10.0**power)))
    for x, y in points:
        place = (frame.left + 6 + (x - low) * wide, frame.base - y * tall)
        dot = Markup('<circle class="{}" cx="{:.1f}" cy="{:.1f}" r="4" fill-opacity=".78"/>')
        parts.append(dot.format("warnf" if y > 1 else "acc", *place))
    return _svg("plot", frame.width, frame.height, label, parts)


def bar(parts: Iterable[tuple[str, float]], label: str, whole: float = 0) -> Markup:
    """A bar in pieces; `whole` is what its full width stands for."""
    given = list(parts)
    total = whole or sum(size for _, size in given) or 1
    out, left = [Markup('<rect class="ghost" width="100" height="12"/>')], 0.0
    for name, size in given:
        width = 100 * size / total
        if width > 0:
            out.append(
                Markup('<rect class="{}" x="{:.2f}" width="{:.2f}" height="12"/>').format(
                    name, left, width
                )
            )
        left += width
    body = Markup("").join(out)
    return Markup(
        '<svg class="bar" viewBox="0 0 100 12" preserveAspectRatio="none" role="img"'
        ' aria-label="{}">{}</svg>'
    ).format(label, body)


def spark(values: Sequence[float], label: str, name: str = "acc") -> Markup:
    """A small line of the last days."""
    if len(values) < 2:
        return Markup("")
    low, high = min(values), max(values)
    scale = 20 / (high - low) if high > low else 0
    step = 96 / (len(values) - 1)
    points = " ".join(f"{n * step:.1f},{22 - (v - low) * scale:.1f}" for n, v in enumerate(values))
    return Markup(
        '<svg class="spark {}" viewBox="0 0 96 24" role="img" aria-label="{}">'
        '<polyline class="line" points="{}"/></svg>'
    ).format(name, label, points)


def _svg(name: str, width: int, height: int, label: str, parts: Iterable[Markup]) -> Markup:
    return Markup('<svg class="{}" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>').format(
        name, width, height, escape(label), Markup("").join(parts)
    )
