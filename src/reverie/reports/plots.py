"""Plots as SVG text: no script, no style attribute, no network, colours by class.

Each is an image with a sentence as its name, and every mark has a `title` that tells its figure.
More values than there is room for are drawn by stretches, the highest of each. The pages of the
web are drawn once wide, once narrow (`stack_chart`), that of a replay at one width (`lines`,
`areas`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10

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
WIDTH, HEIGHT = 560, 250
LEFT, RIGHT, TOP, BOTTOM = 52, 14, 18, 34
ROW = 20
NAMES = 84


@dataclass(frozen=True, slots=True)
class PlotMark:
    """A flag over a round: the class of its shape or colour, and what it says."""

    at: int
    kind: str
    text: str


def short(value: float) -> str:
    """A number in few signs."""
    for size, sign in ((1e9, "G"), (1e6, "M"), (1e3, "K")):
        if abs(value) >= size:
            return f"{value / size:.3g}{sign}"
    return f"{value:.3g}"


def _round_up(value: float, sizes: Sequence[float] = (1, 2, 5, 10)) -> float:
    """Return the least of these numbers, with noughts behind, that is not below the value."""
    base = 10 ** floor(log10(value))
    return next(base * n for n in sizes if base * n >= value)


def steps(
    top: float, count: int = 4, sizes: Sequence[float] = (1, 2, 2.5, 5, 10), least: float = 0
) -> list[float]:
    """Round numbers from 0 up to about `top`."""
    if top <= 0:
        return [0.0]
    size = _round_up(max(top / count, least), sizes)
    return [size * n for n in range(floor(top / size + 1e-9) + 1)]


def thin_values(values: Sequence[float]) -> list[tuple[int, float]]:
    """The values with their rounds; of a long row, the highest of each stretch."""
    stride = ceil(len(values) / MAX_POINTS) if values else 1
    out: list[tuple[int, float]] = []
    for start in range(0, len(values), stride):
        best = max(range(start, min(start + stride, len(values))), key=lambda at: values[at])
        out.append((best, values[best]))
    return out


def _svg(body: str, label: str, width: int = WIDTH, height: int = HEIGHT, name: str = "") -> str:
    kind = f'class="{name}" ' if name else ""
    shown = f'viewBox="0 0 {width} {height}" role="img" aria-label="{escape(label)}"'
    return f"<svg {kind}{shown}>{body}</svg>"


def _level(left: int, right: int, y: float, text: str, gap: int = 6, name: str = "grid") -> str:
    """Draw a line across the plot with its number on the left."""
    line = f'<path class="{name}" d="M{left} {y:.1f}H{right}"/>'
    return f'{line}<text class="end" x="{left - gap}" y="{y + 4:.1f}">{text}</text>'


def _titled_path(name: str, path: str, title: str) -> str:
    return f'<path class="{name}" d="{path}"><title>{escape(title)}</title></path>'


# --- the pages of the web


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


def stack_chart(
    rows: Sequence[Mapping[str, float]],
    classes: Mapping[str, str],
    label: str,
    *,
    low: bool = False,
    marks: Sequence[PlotMark] = (),
    at: int = 0,
    over: Sequence[float] = (),
) -> str:
    """Areas over each other, one step for each row; `at` is the request that is looked at, `over`
    a line of its own, which ends at the top where it is far above all areas."""
    frames = (LOW_WIDE, LOW_NARROW) if low else (WIDE, NARROW)
    return "".join(_stack_paths(frame, rows, classes, label, marks, at, over) for frame in frames)


def _stack_paths(
    frame: PlotFrame,
    rows: Sequence[Mapping[str, float]],
    classes: Mapping[str, str],
    label: str,
    marks: Sequence[PlotMark],
    at: int,
    over: Sequence[float],
) -> str:
    shown = [rows[n] for n, _ in thin_values([sum(row.values()) for row in rows])]
    stride = ceil(len(rows) / MAX_POINTS) or 1
    top = max((sum(row.values()) for row in shown), default=0) or 1
    top = max(top, min(max(over, default=0), FAR_ABOVE * top))
    unit = (frame.right - frame.left) / max(1, len(shown))
    high = (frame.base - 32) / top

    def x_of(request: int) -> float:
        place = (request - 1) // stride if 0 < request <= len(rows) else 0
        return frame.left + (place + 0.5) * unit

    parts = [
        _level(frame.left, frame.right, frame.base - value * high, short_number(value), 7)
        for value in steps(top, 3, (1, 2, 5, 10), 1)
    ]
    parts += _numbers(frame, len(rows), x_of)
    below = [0.0] * len(shown)
    for name, words in classes.items():
        above = [base + row.get(name, 0) for base, row in zip(below, shown, strict=True)]
        if above != below:
            parts.append(_area(frame, below, above, unit, high, name, words))
        below = above
    if over:
        dots = (
            f"{frame.left + (n + 0.5) * unit:.1f},{frame.base - min(value, top) * high:.1f}"
            for n, (_, value) in enumerate(thin_values(over))
        )
        title = f"<title>{UNTOUCHED}</title>"
        parts.append(f'<polyline class="naive" points="{" ".join(dots)}">{title}</polyline>')
    parts += [_flag(x_of(mark.at), mark) for mark in marks]
    if at:
        parts.append(f'<path class="cursor" d="M{x_of(at):.1f} 20V{frame.base}"/>')
    parts.append(f'<path class="base" d="M{frame.left} {frame.base}H{frame.right}"/>')
    return _svg("".join(parts), label, frame.width, frame.height, f"plot {frame.name}")


def _area(
    frame: PlotFrame,
    below: Sequence[float],
    over: Sequence[float],
    unit: float,
    high: float,
    name: str,
    words: str,
) -> str:
    def y(value: float) -> str:
        return f"{frame.base - value * high:.1f}"

    path = [f"M{frame.left} {y(below[0])}"]
    path += [f"V{y(v)}H{frame.left + (n + 1) * unit:.1f}" for n, v in enumerate(over)]
    back = range(len(below) - 1, -1, -1)
    path += [f"V{y(below[n])}H{frame.left + n * unit:.1f}" for n in back]
    return _titled_path(name, "".join([*path, "z"]), words)


def _numbers(frame: PlotFrame, count: int, x_of: Callable[[int], float]) -> Iterator[str]:
    for n in _ticks(count, frame.ticks):
        yield f'<text class="mid" x="{x_of(n):.1f}" y="{frame.base + 20}">{number(n)}</text>'


def _ticks(count: int, most: int) -> list[int]:
    """Every request where there is room, else the first and every fifth, tenth and so on."""
    if count <= 2 * most:
        return list(range(1, count + 1))
    step = max(5, int(_round_up(count / most)))
    return [1, *range(step, count + 1, step)]


def _flag(x: float, mark: PlotMark) -> str:
    name, shape, shift = _SHAPES[mark.kind]
    return _titled_path(name, f"M{x + shift:.1f} 8{shape}", mark.text)


def scatter_chart(frame: PlotFrame, points: Sequence[tuple[float, float]], label: str) -> str:
    """Points over a scale of tens, against a line at one."""
    xs = [x for x, _ in points]
    low, high = min(xs), max(*xs, min(xs) + 0.1)
    top = max(1.2, *(y for _, y in points))
    wide = (frame.right - frame.left - 12) / (high - low)
    tall = (frame.base - 12) / top
    parts: list[str] = []
    for value in (0.0, 0.25, 0.5, 0.75, 1.0):
        y, name = frame.base - value * tall, "lim" if value == 1 else "grid"
        parts.append(_level(frame.left, frame.right, y, f"{value:g}", name=name))
    for power in range(ceil(low), floor(high) + 1):
        x = frame.left + 6 + (power - low) * wide
        text = short_number(10.0**power)
        parts.append(f'<text class="mid" x="{x:.1f}" y="{frame.base + 18}">{text}</text>')
    for x, y in points:
        place = f'cx="{frame.left + 6 + (x - low) * wide:.1f}" cy="{frame.base - y * tall:.1f}"'
        kind = "warnf" if y > 1 else "acc"
        parts.append(f'<circle class="{kind}" {place} r="4" fill-opacity=".78"/>')
    return _svg("".join(parts), label, frame.width, frame.height, "plot")


def bar(parts: Iterable[tuple[str, float]], label: str, whole: float = 0) -> str:
    """A bar in pieces; `whole` is what its full width stands for."""
    given = list(parts)
    total = whole or sum(size for _, size in given) or 1
    out, left = ['<rect class="ghost" width="100" height="12"/>'], 0.0
    for name, size in given:
        width = 100 * size / total
        if width > 0:
            place = f'x="{left:.2f}" width="{width:.2f}"'
            out.append(f'<rect class="{escape(name)}" {place} height="12"/>')
        left += width
    return (
        '<svg class="bar" viewBox="0 0 100 12" preserveAspectRatio="none" role="img"'
        f' aria-label="{escape(label)}">{"".join(out)}</svg>'
    )


def spark(values: Sequence[float], label: str, name: str = "acc") -> str:
    """A small line of the last days."""
    if len(values) < 2:
        return ""
    low, high = min(values), max(values)
    scale = 20 / (high - low) if high > low else 0
    step = 96 / (len(values) - 1)
    points = " ".join(f"{n * step:.1f},{22 - (v - low) * scale:.1f}" for n, v in enumerate(values))
    return _svg(f'<polyline class="line" points="{points}"/>', label, 96, 24, f"spark {name}")


# --- the page of a replay


@dataclass(frozen=True, slots=True)
class Series:
    """Values by round, with a name and the class of its colour."""

    name: str
    kind: str
    values: Sequence[float]


@dataclass(frozen=True, slots=True)
class PlotArea:
    """The plane of a plot: rounds to the right, amounts up."""

    rounds: int
    top: float

    def x(self, at: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * at / max(1, self.rounds - 1)

    def y(self, value: float) -> float:
        room = HEIGHT - TOP - BOTTOM
        return TOP + room * (1 - value / self.top if self.top else 1)

    def axes(self) -> Iterator[str]:
        for value in steps(self.top):
            yield _level(LEFT, WIDTH - RIGHT, self.y(value), short(value))
        for value in steps(self.rounds, 6):
            if value == int(value):
                x = self.x(value)
                yield f'<text class="mid" x="{x:.1f}" y="{HEIGHT - 16}">{int(value)}</text>'
        yield f'<text class="mid" x="{(LEFT + WIDTH) / 2:.0f}" y="{HEIGHT - 2}">round</text>'

    def flags(self, found: Sequence[PlotMark]) -> Iterator[str]:
        for flag in found:
            x = self.x(flag.at)
            shape = f"M{x:.1f} {TOP - 2}l-3.5 -7h7z"
            line = f"M{x:.1f} {TOP}V{HEIGHT - BOTTOM}"
            yield f'<g class="{flag.kind}"><path class="line" d="{line}"/><path d="{shape}"/>'
            yield f"<title>round {flag.at}: {escape(flag.text)}</title></g>"


def lines(
    label: str, series: Sequence[Series], *, limit: float = 0, flags: Sequence[PlotMark] = ()
) -> str:
    """Lines over rounds; a limit, where it is near, as a line of its own."""
    rounds = max((len(s.values) for s in series), default=0)
    highest = max((max(s.values, default=0) for s in series), default=0)
    show_limit = 0 < limit <= highest * 1.5
    frame = PlotArea(rounds, max(highest, limit if show_limit else 0) * 1.04)
    body = [*frame.axes(), *frame.flags(flags)]
    if show_limit:
        y = frame.y(limit)
        body.append(f'<path class="limit" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>')
        body.append(f'<text class="note" x="{LEFT + 4}" y="{y - 4:.1f}">window</text>')
    for one in series:
        points = " ".join(
            f"{frame.x(at):.1f},{frame.y(v):.1f}" for at, v in thin_values(one.values)
        )
        body.append(f'<polyline class="{one.kind}" points="{points}"/>')
        body += _ends(frame, one)
    return _svg("".join(body), label)


def _ends(frame: PlotArea, one: Series) -> list[str]:
    """The last point of a line, with its figure."""
    if not one.values:
        return []
    at, value = len(one.values) - 1, one.values[-1]
    x, y = frame.x(at), frame.y(value)
    told = f"<title>{escape(one.name)}: {value:,.0f} at round {at}</title>"
    return [f'<circle class="{one.kind}" cx="{x:.1f}" cy="{y:.1f}" r="3.5">{told}</circle>']


def areas(label: str, series: Sequence[Series], flags: Sequence[PlotMark] = ()) -> str:
    """Amounts by round, stacked; long rows by the highest of each stretch."""
    rounds = max((len(s.values) for s in series), default=0)
    totals = [sum(s.values[at] for s in series) for at in range(rounds)]
    kept = [at for at, _ in thin_values(totals)]
    frame = PlotArea(rounds, max(totals, default=0) * 1.04)
    body = list(frame.axes())
    floor_of = dict.fromkeys(kept, 0.0)
    for one in series:
        top_of = {at: floor_of[at] + one.values[at] for at in kept}
        up = [f"{frame.x(at):.1f} {frame.y(top_of[at]):.1f}" for at in kept]
        down = [f"{frame.x(at):.1f} {frame.y(floor_of[at]):.1f}" for at in reversed(kept)]
        told = f"{one.name}: {sum(one.values):,.0f} in all"
        body.append(_titled_path(f"fill {one.kind}", f"M{'L'.join([*up, *down])}Z", told))
        floor_of = top_of
    return _svg("".join([*body, *frame.flags(flags)]), label)


def shares(label: str, rows: Sequence[tuple[str, Sequence[tuple[str, str, int]]]]) -> str:
    """Bars of parts of a whole, one a row: (name, [(part, class, count)])."""
    room = WIDTH - NAMES - RIGHT - 44
    body: list[str] = []
    for index, (name, parts) in enumerate(rows):
        y = index * (ROW + 6) + 4
        total = sum(count for _, _, count in parts)
        body.append(f'<text class="end" x="{NAMES - 6}" y="{y + 14}">{escape(name)}</text>')
        x = float(NAMES)
        for part, kind, count in parts:
            width = room * count / total if total else 0
            if not count:
                continue
            told = f"<title>{escape(part)}: {count:,} of {total:,}</title>"
            size = f'x="{x:.1f}" y="{y}" width="{max(width, 1):.1f}" height="{ROW}"'
            body.append(f'<rect class="{kind}" {size}>{told}</rect>')
            x += width
        end = f'x="{NAMES + room + 6}" y="{y + 14}"'
        body.append(f'<text class="start" {end}>{total:,}</text>')
    return _svg("".join(body), label, height=len(rows) * (ROW + 6) + 6)


def ratios(label: str, rows: Sequence[tuple[str, Sequence[tuple[str, str, float]]]]) -> str:
    """Dots on a line, one row each: (name, [(what, class, ratio)]); 1 is marked."""
    top = max([1.2, *(value for _, dots in rows for _, _, value in dots)]) * 1.04
    height = len(rows) * ROW + 34
    room = WIDTH - NAMES - RIGHT
    body: list[str] = []
    for value in steps(top, 6):
        x = NAMES + room * value / top
        kind = "limit" if value == 1 else "grid"
        body.append(f'<path class="{kind}" d="M{x:.1f} 4V{height - 26}"/>')
        body.append(f'<text class="mid" x="{x:.1f}" y="{height - 10}">{value:g}</text>')
    for index, (name, dots) in enumerate(rows):
        y = index * ROW + 14
        body.append(f'<text class="end" x="{NAMES - 6}" y="{y + 4}">{escape(name)}</text>')
        for order, (what, kind, value) in enumerate(dots):
            radius = max(2.0, 5.5 - 1.5 * order)  # what lies beneath still shows
            x = NAMES + room * value / top
            told = f"<title>{escape(name)}, {escape(what)}: {value:.3f}</title>"
            body.append(
                f'<circle class="{kind}" cx="{x:.1f}" cy="{y}" r="{radius}">{told}</circle>'
            )
    return _svg("".join(body), label, height=height)
