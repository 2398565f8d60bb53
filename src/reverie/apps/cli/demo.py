"""`reverie demo`: a session from end to end, and what each layer did in it, in numbers.

It works in a temporary folder with a home of its own, needs no key and no network, and
leaves nothing unless `--keep` is given. The agent's course is scripted, and it says so;
tools, transcript, layers and bills are real.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reverie.apps.cli.show import Column, Json, document, note, plural, say, table

if TYPE_CHECKING:
    from reverie.apps.cli.demo_course import Course

INTRODUCTION = """\
A sample project, an agent with real tools, and the layers at work. The agent's words and calls are
scripted; what it calls is run, what is stored is stored, and a simulated provider with a prompt
cache checks and bills every request. No key, no network."""


def demo(
    keep: Annotated[bool, typer.Option("--keep", help="Keep project and transcript.")] = False,
    as_json: Json = False,
) -> None:
    """See each layer at work; no key, no network."""
    folder = Path(tempfile.mkdtemp(prefix="reverie-demo-"))
    try:
        found = _run(folder, as_json)
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)
    if as_json:
        document({**measured(found), "folder": str(folder) if keep else None})
    else:
        _report(found)
        if keep:
            say(f"Kept in {folder}; look at the session with:")
            say(f"  cd {folder}/orders && REVERIE_HOME={folder}/home reverie sessions show ID")
    failed = [name for name, good in found.checks.items() if not good]
    if failed:
        note(f"reverie: the demo did not show that {'; '.join(failed)}")
        raise typer.Exit(1)


def _run(folder: Path, quiet: bool) -> Course:
    import anyio

    from reverie.apps.cli import demo_course
    from reverie.apps.cli.screens import Lines, Printed

    screen = Printed() if quiet else Lines()
    if not quiet:
        say(INTRODUCTION)

    def tell(text: str) -> None:
        if not quiet:
            say()
            say(text, "bold")
            sys.stdout.flush()

    return anyio.run(demo_course.run, folder, screen.event, tell, screen.notice)


def measured(found: Course) -> dict[str, Any]:
    """The run in the form that `--json` gives."""
    fork = found.fork
    return {
        "scripted": True,
        "rounds": found.rounds,
        "layers": {
            "tool_results": {
                "count": len(found.stored),
                "characters": found.characters,
                "over_their_own_limit": found.for_itself,
                "over_their_message": found.for_its_message,
                "read_back": found.read_back,
            },
            "microcompaction": {
                "count": len(found.cleared),
                "characters": found.cleared_characters,
            },
            "agents": {"count": 1 if fork else 0},
        },
        "fork": {
            "requests": fork.requests if fork else 0,
            "hit_rate": round(fork.usage.hit_rate, 4) if fork else 0.0,
        },
        "hit_rate": round(found.hit_rate, 4),
        "cost": round(found.cost, 1),
        "naive_cost": round(found.naive_cost, 1),
        "checks": found.checks,
    }


def _report(found: Course) -> None:
    value = measured(found)
    layer = value["layers"]["tool_results"]
    say()
    say("What each layer did", "bold")
    did = (
        f"{plural(layer['count'], 'result')} stored, {layer['characters']:,} characters: "
        f"{layer['over_their_own_limit']} over the limit of one result, "
        f"{layer['over_their_message']} to make a message fit; read back {layer['read_back']} times"
    )
    small = value["layers"]["microcompaction"]
    cleared = (
        f"{plural(small['count'], 'old result')} cleared after the pause, "
        f"{small['characters']:,} characters; the newest stay"
    )
    rows = [
        ["1", "tool-result storage", did],
        ["2", "microcompaction", cleared],
        ["7", "fork", f"cache hit rate {value['fork']['hit_rate']:.0%} on its parent's prompt"],
    ]
    table([Column("layer", right=True), Column("name"), Column("what", wraps=True)], rows)
    share = found.cost / found.naive_cost if found.naive_cost else 0.0
    say(
        f"{plural(found.rounds, 'round')}; cost {found.cost:,.0f} price-weighted tokens, "
        f"with every result whole {found.naive_cost:,.0f} ({share:.0%}); "
        f"cache hit rate {found.hit_rate:.0%}"
    )
    for name, good in found.checks.items():
        say(f"  {'✓' if good else '✗'} {name}", "green" if good else "red")
