"""Pictures of figures as SVG, made of nothing but text: bars for contestants, lines for growth."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

OURS, OTHER, BOUND = "#2b6cb0", "#a0aec0", "#718096"
COLOURS = ("#2b6cb0", "#c05621", "#2f855a", "#6b46c1", "#b83280", "#4a5568", "#975a16", "#2c7a7b")
WIDTH, VALUE, LETTER = 760, 80, 6.6  # a picture's width, the room of a value, of a letter
LONGEST = 60  # letters of a name
DASHES = ("", "6 3", "2 3")  # where the colours are used up


def _svg(height: float, parts: Sequence[str]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height:.0f}"'
        f' viewBox="0 0 {WIDTH} {height:.0f}" font-family="sans-serif" font-size="12">'
    )
    back = f'<rect width="{WIDTH}" height="{height:.0f}" fill="#fff"/>'
    return "\n".join([head, back, *parts, "</svg>"]) + "\n"


def bars(title: str, values: Mapping[str, float], told: Mapping[str, str], better: str) -> str:
    """One bar for each contestant, the best first; ours is coloured."""
    order = sorted(values, key=lambda name: values[name], reverse=better == "higher")
    most = max(values.values()) or 1.0
    names = {name: name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…" for name in order}
    left = 16 + LETTER * max(map(len, names.values()))
    room = WIDTH - left - VALUE
    parts = [f'<text x="8" y="18">{escape(title)} ({better} is better)</text>']
    for n, name in enumerate(order):
        y, width = 32 + 21 * n, max(1.0, room * values[name] / most)
        colour = OURS if name.startswith("Reverie") else OTHER
        parts += [
            f'<text x="{left - 8:.1f}" y="{y + 12}" text-anchor="end">{escape(names[name])}</text>',
            f'<rect x="{left:.1f}" y="{y}" width="{width:.1f}" height="15" fill="{colour}"/>',
            f'<text x="{left + width + 6:.1f}" y="{y + 12}">{escape(told[name])}</text>',
        ]
    return _svg(42 + 21 * len(order), parts)


def lines(title: str, courses: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    """Cost by size on two logarithmic scales, each as a multiple of its first point."""
    scaled = {
        name: [(math.log10(x / pts[0][0]), math.log10(max(y, 1e-12) / max(pts[0][1], 1e-12)))
               for x, y in pts]
        for name, pts in courses.items()
    }  # fmt: skip
    top = max([2.0, *(y for pts in scaled.values() for _, y in pts)])
    low = min([0.0, *(y for pts in scaled.values() for _, y in pts)])
    left, right, above, below = 60, 430, 34, 300

    def place(x: float, y: float) -> str:
        across = left + (right - left) * x / 2
        return f"{across:.1f},{below - (below - above) * (y - low) / (top - low):.1f}"

    parts = [f'<text x="8" y="18">{escape(title)}</text>']
    for power in range(math.floor(low), math.ceil(top) + 1):
        if low <= power <= top:
            across, y = place(0, power).split(",")
            parts += [
                f'<line x1="{across}" y1="{y}" x2="{right}" y2="{y}" stroke="#e2e8f0"/>',
                f'<text x="{left - 6}" y="{y}" text-anchor="end">× {10**power:g}</text>',
            ]
    for power in range(3):
        x = place(power, low).split(",")[0]
        parts.append(f'<text x="{x}" y="{below + 18}" text-anchor="middle">× {10**power}</text>')
    line = 'stroke="{}" stroke-width="2" stroke-dasharray="{}"'
    for n, (name, pts) in enumerate(scaled.items()):
        colour, dash = COLOURS[n % len(COLOURS)], DASHES[n // len(COLOURS) % len(DASHES)]
        y = above + 5 + 19 * n
        drawn = " ".join(place(x, y) for x, y in pts)
        parts += [
            f'<polyline points="{drawn}" fill="none" {line.format(colour, dash)}/>',
            f'<path d="M {right + 14} {y} h 24" {line.format(colour, dash)}/>',
            f'<text x="{right + 44}" y="{y + 4}">{escape(name)}</text>',
        ]
    return _svg(max(330, above + 19 * len(scaled) + 10), parts)
