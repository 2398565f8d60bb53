"""Writes RESULTS.md and its pictures from what the parts left. It measures nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.figures import shown, slug, written
from bench.parts import PARTS
from bench.plots import bars, lines

HEAD = """\
# Results

Written by `python -m bench report` from `bench/results`; `make bench` measures all of it anew,
`make bench QUICK=1` a part in five minutes. Every figure stands beside a peer or a bound of the
same run: a peer is another program, with its own code, on the same work; a bound is a limit that
we set ourselves, or what no program can do without. Costs of sessions are billed by a simulated
prompt cache, without thinking and without background model calls (extraction, notes), unless a row
says otherwise. A replay's course is fixed: it shows what is missing from a request, not whether a
model would have thought better or worse.

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
    """Damages done to the code by a program, and whether a test noticed."""
    yield "## Whether the tests bite\n"
    yield "Damages drawn by chance, each one edit of one module. Those that change nothing that"
    yield "anybody could see are explained one by one, and count neither way (bound 90 %).\n"
    yield "| seed | drawn | noticed | explained | survived | noticed of the others |"
    yield "|---|--:|--:|--:|--:|--:|"
    for seed in sorted({row["seed"] for row in found}):
        rows = [row for row in found if row["seed"] == seed]
        drawn, killed, explained = (
            sum(row[name] for row in rows) for name in ("drawn", "killed", "explained")
        )
        left = drawn - explained
        share = 100 * killed / max(1, left)
        yield f"| {seed} | {drawn} | {killed} | {explained} | {left - killed} | {share:.1f} % |"
    yield "\n| module | seed | drawn | noticed | explained | survived | commit |"
    yield "|---|---|--:|--:|--:|--:|---|"
    for row in found:
        yield (
            f"| {row['module']} | {row['seed']} | {row['drawn']} | {row['killed']} |"
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
