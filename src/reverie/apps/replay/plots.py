"""Plots as inline SVG: text in, text out, no script, no network, nothing to install.

Colours are classes, so that a page's style decides them in light and dark. Every mark has
a `title` that tells its figure when it is pointed at.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10

WIDTH, HEIGHT = 560, 250
LEFT, RIGHT, TOP, BOTTOM = 52, 14, 18, 34
POINTS = 600  # a longer line is thinned to so many points
ROW = 20
NAMES = 84


@dataclass(frozen=True, slots=True)
class Series:
    """Values by round, with a name and the class of its colour."""

    name: str
    kind: str
    values: Sequence[float]


@dataclass(frozen=True, slots=True)
class PlotMark:
    """Something that happened at a round."""

    at: int
    kind: str
    text: str


def short(value: float) -> str:
    """A number in few signs."""
    for size, sign in ((1e9, "G"), (1e6, "M"), (1e3, "K")):
        if abs(value) >= size:
            return f"{value / size:.3g}{sign}"
    return f"{value:.3g}"


def steps(top: float, count: int = 4) -> list[float]:
    """Round numbers from 0 up to about `top`."""
    if top <= 0:
        return [0.0]
    rough = top / count
    base = 10 ** floor(log10(rough))
    size = next(base * n for n in (1, 2, 2.5, 5, 10) if base * n >= rough)
    return [size * n for n in range(floor(top / size + 1e-9) + 1)]


def thinned(values: Sequence[float]) -> list[tuple[int, float]]:
    """The values with their rounds; of a long row, the highest of each stretch."""
    stride = ceil(len(values) / POINTS) if values else 1
    out: list[tuple[int, float]] = []
    for start in range(0, len(values), stride):
        best = max(range(start, min(start + stride, len(values))), key=lambda at: values[at])
        out.append((best, values[best]))
    return out


@dataclass(frozen=True, slots=True)
class Frame:
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
            y = self.y(value)
            yield f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>'
            yield f'<text class="end" x="{LEFT - 6}" y="{y + 4:.1f}">{short(value)}</text>'
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


def _svg(body: str, label: str, height: int = HEIGHT) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(label)}">{body}</svg>'
    )


def lines(
    label: str, series: Sequence[Series], *, limit: float = 0, flags: Sequence[PlotMark] = ()
) -> str:
    """Lines over rounds; a limit, where it is near, as a line of its own."""
    rounds = max((len(s.values) for s in series), default=0)
    highest = max((max(s.values, default=0) for s in series), default=0)
    show_limit = 0 < limit <= highest * 1.5
    frame = Frame(rounds, max(highest, limit if show_limit else 0) * 1.04)
    body = [*frame.axes(), *frame.flags(flags)]
    if show_limit:
        y = frame.y(limit)
        body.append(f'<path class="limit" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>')
        body.append(f'<text class="note" x="{LEFT + 4}" y="{y - 4:.1f}">window</text>')
    for one in series:
        points = " ".join(f"{frame.x(at):.1f},{frame.y(v):.1f}" for at, v in thinned(one.values))
        body.append(f'<polyline class="{one.kind}" points="{points}"/>')
        body += _ends(frame, one)
    return _svg("".join(body), label)


def _ends(frame: Frame, one: Series) -> list[str]:
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
    kept = [at for at, _ in thinned(totals)]
    frame = Frame(rounds, max(totals, default=0) * 1.04)
    body = list(frame.axes())
    floor_of = dict.fromkeys(kept, 0.0)
    for one in series:
        top_of = {at: floor_of[at] + one.values[at] for at in kept}
        up = [f"{frame.x(at):.1f} {frame.y(top_of[at]):.1f}" for at in kept]
        down = [f"{frame.x(at):.1f} {frame.y(floor_of[at]):.1f}" for at in reversed(kept)]
        told = f"<title>{escape(one.name)}: {sum(one.values):,.0f} in all</title>"
        body.append(f'<path class="fill {one.kind}" d="M{"L".join([*up, *down])}Z">{told}</path>')
        floor_of = top_of
    return _svg("".join([*body, *frame.flags(flags)]), label)


def shares(label: str, rows: Sequence[tuple[str, Sequence[tuple[str, str, int]]]]) -> str:
    """Bars of parts of a whole, one a row: (name, [(part, class, count)])."""
    room = WIDTH - NAMES - RIGHT - 44
    body: list[str] = []
    for number, (name, parts) in enumerate(rows):
        y = number * (ROW + 6) + 4
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
    return _svg("".join(body), label, len(rows) * (ROW + 6) + 6)


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
    for number, (name, dots) in enumerate(rows):
        y = number * ROW + 14
        body.append(f'<text class="end" x="{NAMES - 6}" y="{y + 4}">{escape(name)}</text>')
        for order, (what, kind, value) in enumerate(dots):
            radius = max(2.0, 5.5 - 1.5 * order)  # what lies beneath still shows
            x = NAMES + room * value / top
            told = f"<title>{escape(name)}, {escape(what)}: {value:.3f}</title>"
            body.append(
                f'<circle class="{kind}" cx="{x:.1f}" cy="{y}" r="{radius}">{told}</circle>'
            )
    return _svg("".join(body), label, height)
