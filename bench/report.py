"""Writes RESULTS.md and its pictures from what the parts left. It measures nothing.

Whether the numbers that a text cites are those that were measured.

A number is cited by `<!-- figure: KEY -->` right before it; KEY is one of `python -m bench keys`.
It is held against the results at the precision it is shown with: 87 % stands for .865 to .875, and
21,300 for 21,250 to 21,350. In the columns of a table whose head begins with "measured", and
between `<!-- claims -->` and `<!-- /claims -->`, every number has to be cited; code, links and
comments are not looked at.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from bench.figures import PARTS, shown, slug, written

HEAD = """\
# Results

Written by `python -m bench report` from `bench/results`; `make bench` measures all of it anew,
`make bench QUICK=1` a part in five minutes. Every figure stands beside a peer or a bound of the
same run: a peer is another program, with its own code, on the same work; a bound is a limit that
we set ourselves, or what no program can do without. Costs of sessions are billed by a simulated
prompt cache. What they are billed with everything counted (background model calls, thinking, what
a session adds to the head) has a part of its own; other costs leave these out. A replay's course
is fixed: it shows what is missing from a request, not whether a model would have thought better or
worse.

| sign | meaning |
|---|---|
| yes | Reverie is as good as the best peer that ran, or better; or keeps to the bound |
| **no** | it is not; the reason stands beside it |
| - | nothing ran that it could be held against |
"""
POINTS = frozenset(["kills", "native cancels", "power-cut states", "fault points"])
SIGNS = {True: "yes", False: "**no**", None: "-"}
END = "#where-reverie-leads-and-where-it-does-not"


def write(folder: Path, target: Path) -> int:
    """RESULTS.md in `target` from the results in `folder`, with pictures beside these."""
    parts = [(one.name, one.title, found) for one in PARTS if (found := written(one.name, folder))]
    missing = [one.name for one in PARTS if not written(one.name, folder)]
    below = folder.relative_to(target).as_posix()
    pages = [f"{HEAD}\n{summary(parts)}: [the whole table]({END}).\n"]
    for old in folder.glob("*.svg"):
        old.unlink()
    for name, title, found in parts:
        pages.append("\n".join(section(name, title, found, folder, below)))
    if hours := written("endurance", folder):
        pages.append("\n".join(endurance(hours)))
    if damages := written("mutants", folder):
        pages.append("\n".join(mutants(damages["rows"])))
    pages.append("\n".join(last_table(parts, missing)))
    (target / "RESULTS.md").write_text("\n".join(pages), encoding="utf-8")
    print(f"{(target / 'RESULTS.md').name}: {summary(parts)}")
    return 0


def summary(parts: Sequence[tuple[str, str, Mapping[str, Any]]]) -> str:
    rows = [row for _, _, found in parts for row in found.get("rows", ())]
    counts = [sum(row.get("leads") is sign for row in rows) for sign in (True, False, None)]
    return f"{len(rows)} figures, leads in {counts[0]}, not in {counts[1]}, {counts[2]} alone"


# One part


def section(
    name: str, title: str, found: Mapping[str, Any], folder: Path, below: str
) -> Iterator[str]:
    yield f"## {title}\n"
    if "failed" in found:
        tried = found["tried"]
        yield f"The last try, at commit {tried['commit']}, failed: `{last(found['failed'])}`."
        yield "What follows was measured before.\n" if found.get("rows") else ""
    if found.get("rows") is None:
        return
    yield f"`{found['command']}`, commit {found['commit']}, {found['seconds']:,.0f} s.\n"
    yield from figures(found["rows"])
    yield from pictures(name, title, found["rows"], folder, below)
    if found.get("details"):
        yield "<details><summary>details</summary>\n"
        yield "| what | measured | limit | met |\n|---|---|---|---|"
        for what, got, limit, met in found["details"]:
            yield f"| {cell(what)} | {cell(got)} | {cell(limit)} | {_met(met)} |"
        yield "\n</details>\n"


def figures(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield "| figure | ours | against | whose | ratio | n | leads |\n|---|--:|--:|---|--:|--:|---|"
    for row in rows:
        unit = row.get("unit", "")
        yield (
            f"| {cell(row['what'])} | {shown(row['ours'], unit)} |"
            f" {shown(row.get('against'), unit)} | {cell(row['peer'])} |"
            f" {ratio(row)} | {row.get('n', 1):,} | {SIGNS[row.get('leads')]} |"
        )
    yield ""


def ratio(row: Mapping[str, Any]) -> str:
    got = row.get("ratio")
    return "-" if got is None else f"{got:.2f}"


def cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def last(text: str) -> str:
    lines_ = [line for line in text.splitlines() if line.strip()]
    return cell(lines_[-1].strip().replace("`", "'")) if lines_ else ""


def _met(met: bool | None) -> str:
    return {True: "yes", False: "**no**", None: ""}[met]


def pictures(
    name: str, title: str, rows: Sequence[Mapping[str, Any]], folder: Path, below: str
) -> Iterator[str]:
    """A picture for every figure with several contestants, and one for all that grow."""
    courses = {row["what"].partition(": ")[0]: row["points"] for row in rows if row.get("points")}
    if courses:
        file = f"{name}.svg"
        (folder / file).write_text(lines(title, courses), encoding="utf-8")
        yield f"![{title}]({below}/{file})\n"
    for row in rows:
        others = row.get("others", {})
        if len(others) > 2:
            file = f"{slug(row['key'])}.svg"
            told = {one: shown(value, row.get("unit", "")) for one, value in others.items()}
            picture = bars(row["what"], others, told, row["better"])
            (folder / file).write_text(picture, encoding="utf-8")
            yield f"![{cell(row['what'])}]({below}/{file})\n"


# What ran for hours


def endurance(found: Mapping[str, Any]) -> Iterator[str]:
    """What was tried to break it: counts, and how many of them went wrong."""
    yield "## What was tried to break it\n"
    rows = found.get("rows", ())
    points = sum(row["count"] for row in rows if row["what"] in POINTS)
    yield f"In all {points:,} kills, cancels, power cuts and failed calls. Each is another one:"
    yield "what every seed repeats counts once. Bad are tests that failed, mended those that had"
    yield "failed with a seed that is clean now.\n"
    yield "| what | tried | bad | mended | a minute | seconds | seed | command | commit |"
    yield "|---|--:|--:|--:|--:|--:|---|---|---|"
    for row in rows:
        seconds = float(row.get("seconds") or 0)
        rate = row.get("rate") or (60 * row["count"] / seconds if seconds else 0)
        yield (
            f"| {cell(str(row.get('what') or row.get('part') or row.get('key')))} |"
            f" {row['count']:,} | {row['bad']:,} | {row.get('mended', 0):,} |"
            f" {rate:,.0f} | {seconds:,.0f} |"
            f" {row.get('seed', '')} | `{cell(str(row.get('command', '')))}` |"
            f" {row.get('commit', '')} |"
        )
    yield ""


def mutants(found: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Mutants drawn from each room, and whether a test killed them."""
    yield "## Whether the tests bite\n"
    yield "Mutants drawn by chance, each one edit of one module. Those that change nothing that"
    yield "anybody could see are explained one by one, and count neither way (bound 88 %).\n"
    yield "| seed | drawn | killed | explained | survived | killed of the others |"
    yield "|---|--:|--:|--:|--:|--:|"
    for seed in sorted({row["seed"] for row in found}):
        rows = [row for row in found if row["seed"] == seed]
        drawn, killed, explained = (
            sum(row[name] for row in rows) for name in ("drawn", "killed", "explained")
        )
        left = drawn - explained
        share = 100 * killed / max(1, left)
        yield f"| {seed} | {drawn} | {killed} | {explained} | {left - killed} | {share:.1f} % |"
    yield "\n| room | seed | drawn | killed | explained | survived | commit |"
    yield "|---|---|--:|--:|--:|--:|---|"
    for row in found:
        yield (
            f"| {row['room']} | {row['seed']} | {row['drawn']} | {row['killed']} |"
            f" {row['explained']} | {len(row['survived'])} | {row['commit']} |"
        )
    yield ""


# The end


def last_table(
    parts: Sequence[tuple[str, str, Mapping[str, Any]]], missing: Sequence[str]
) -> Iterator[str]:
    yield f"## Where Reverie leads, and where it does not\n\n{summary(parts)}.\n"
    yield "| figure | ours | against | whose | leads | why not |\n|---|--:|--:|---|---|---|"
    for _, _, found in parts:
        for row in found.get("rows", ()):
            unit = row.get("unit", "")
            why = cell(row.get("why", "")) if row.get("leads") is False else ""
            yield (
                f"| {cell(row['what'])} | {shown(row['ours'], unit)} |"
                f" {shown(row.get('against'), unit)} | {cell(row['peer'])} |"
                f" {SIGNS[row.get('leads')]} | {why} |"
            )
    for name, title, found in parts:
        if "failed" in found:
            why = f"`python -m bench run {name}`: {last(found['failed'])}"
            yield f"| {title} | failed | | | - | {why} |"
    for name in missing:
        yield f"| {name} | not run | | | - | `python -m bench run {name}` measures it |"
    yield ""


# Pictures as SVG, made of nothing but text: bars for contestants, lines for growth


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


# Numbers that a text cites


NUMBER = r"-?(?:\d[\d,]*(?:\.\d+)?|\.\d+)"
_CITED = re.compile(rf"<!-- figure: ([\w./-]+) -->({NUMBER})?(\s?%)?")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_ASIDE = re.compile(r"`[^`]*`|\]\([^)]*\)|https?://\S+")
_CLAIMS = re.compile(r"<!-- claims -->(.*?)<!-- /claims -->", re.DOTALL)
_ANY = re.compile(rf"(?<![\w.]){NUMBER}(?!\w)")


def faults(text: str, known: Mapping[str, float]) -> list[str]:
    """What is wrong with the figures of a text; nothing where all is well."""
    return [*_wrong(text, known), *_bare(text)]


def _wrong(text: str, known: Mapping[str, float]) -> Iterator[str]:
    for found in _CITED.finditer(text):
        key, shown, percent = found.groups()
        if key not in known:
            yield f"{key}: no such figure; `python -m bench keys` lists them"
        elif shown is None:
            yield f"{key}: no number stands behind the mark"
        else:
            value = known[key] * (100 if percent else 1)
            if not agrees(shown, value):
                yield f"{key}: the text says {shown}, measured is {value:.6g}"


def agrees(shown: str, value: float) -> bool:
    """Whether a number is the value at the precision it is shown with."""
    plain = shown.replace(",", "")
    _, point, digits = plain.partition(".")
    step = 10.0 ** -len(digits)
    if not point and abs(float(plain)) >= 1_000:
        step = 10.0 ** (len(plain) - len(plain.rstrip("0")))
    return abs(float(plain) - value) <= step / 2 + 1e-9


def _bare(text: str) -> Iterator[str]:
    """Numbers that have to be cited and are not."""
    for place in (*_claimed(text), *_measured(text)):
        rest = _COMMENT.sub(" ", _ASIDE.sub(" ", _CITED.sub(" ", place)))
        for number in _ANY.findall(rest):
            yield f"{number} is not cited in: {' '.join(rest.split())[:80]}"


def _claimed(text: str) -> list[str]:
    return [found.group(1) for found in _CLAIMS.finditer(text)]


def _measured(text: str) -> Iterator[str]:
    """The cells below a head that begins with "measured"."""
    columns: list[int] = []
    for line in text.splitlines():
        if not line.startswith("|"):
            columns = []
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not columns:
            columns = [n for n, cell in enumerate(cells) if cell.lower().startswith("measured")]
            continue
        if set(line) <= set("|-: "):
            continue
        yield from (cells[n] for n in columns if n < len(cells))
