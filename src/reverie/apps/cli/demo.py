"""`demo`: its course in numbers, its sample project.

`reverie demo`: sessions from end to end, and what each layer did in them, in numbers.

It works in a temporary folder with a home of its own, needs no key and no network, and
leaves nothing unless `--keep` is given. The first session's agent follows a script, in the
later ones the embedded model answers, and it says so; tools, transcripts, layers, memory and
bills are real.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reverie import programs
from reverie.apps.cli.app import json_option
from reverie.apps.cli.output import document, note, say, waiting
from reverie.settings.sources import environment
from reverie.text.format import plural
from reverie.text.safety import line

if TYPE_CHECKING:
    from reverie.apps.cli.demo_course import DemoCourse
    from reverie.apps.cli.demo_sessions import DemoTotals
    from reverie.transcript.records import Boundary

INTRODUCTION = """\
A sample project, an agent with real tools, and the layers at work. First the agent's words and
calls are scripted, then the embedded model answers; what it calls is run, what is stored is stored,
and a simulated provider with a prompt cache checks and bills every request. No key, no network."""


@click.command()
@click.option("--keep", is_flag=True, help="Keep the demo's project and transcripts.")
@click.option("--verbose", is_flag=True, help="Show every layer as it happens.")
@json_option
def demo(keep: bool, verbose: bool, as_json: bool) -> None:
    """Watch each layer at work; needs no key and no network."""
    folder = Path(tempfile.mkdtemp(prefix="reverie-demo-"))
    try:
        with waiting("sessions in a sample project"):
            first, later = _run(folder, as_json or not verbose)
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)
    value = run_figures(first, later)
    if as_json:
        document({**value, "folder": str(folder) if keep else None})
    else:
        _report(value, verbose)
        say("Where to look next", "bold")
        say("  reverie demo --verbose   the same, turn by turn")
        say("  reverie                  talk to it here; /help lists the commands")
        say("  reverie doctor           checks this set-up and says how to mend it")
        if keep:
            say(f"Kept in {folder}; look at a session with:")
            say(f"  cd {folder}/orders && REVERIE_HOME={folder}/home reverie sessions show ID")
    failed = [name for name, good in value["checks"].items() if not good]
    if failed:
        note(f"reverie: the demo did not show that {'; '.join(failed)}")
        raise click.exceptions.Exit(1)


def _run(folder: Path, quiet: bool) -> tuple[DemoCourse, DemoTotals]:
    import anyio

    from reverie.apps.cli import demo_course, demo_sessions
    from reverie.apps.cli.screens import AnswerScreen, LineScreen

    screen = AnswerScreen() if quiet else LineScreen()
    if not quiet:
        say(INTRODUCTION)

    def tell(text: str) -> None:
        if not quiet:
            say()
            say(text, "bold")
            sys.stdout.flush()

    async def all_of_them() -> tuple[DemoCourse, DemoTotals]:
        shown = (folder, screen.event, tell, screen.notice)
        return await demo_course.run(*shown), await demo_sessions.run(*shown)

    return anyio.run(all_of_them)


# --- in numbers


def run_figures(first: DemoCourse, later: DemoTotals) -> dict[str, Any]:
    """The run in the form that `--json` gives."""
    fork = first.fork
    return {
        "scripted": True,
        "rounds": first.rounds,
        "window": later.window,
        "layers": {**_of_the_first(first), **_of_the_later(later), **_of_memory(later)},
        "fork": {
            "requests": fork.requests if fork else 0,
            "hit_rate": round(fork.usage.hit_rate, 4) if fork else 0.0,
        },
        "hit_rate": round(first.hit_rate, 4),
        "question": later.question,
        "answer_without_memory": later.without,
        "answer_with_memory": later.answer,
        "cost": round(first.cost, 1),
        "naive_cost": round(first.naive_cost, 1),
        "checks": {**first.checks, **later.checks},
    }


def _of_the_first(found: DemoCourse) -> dict[str, Any]:
    return {
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
        "agents": {"count": 1 if found.fork else 0},
    }


def _of_the_later(found: DemoTotals) -> dict[str, Any]:
    return {
        "collapse": {
            "count": found.sealed,
            "messages": found.sealed_messages,
            "tokens_before": found.sealed_tokens,
            "tokens_after": found.line_tokens,
        },
        "session_memory": {
            "count": found.updates,
            "updates": found.updates,
            "requests": found.notes.requests,
            "hit_rate": round(found.notes.hit_rate, 4),
            "covered": found.covered,
            "messages": found.messages,
        },
        "compaction": {
            "count": sum(one.tokens_before > 0 for one in (found.by_notes, found.asked_for)),
            "by_notes": _boundary(found.by_notes),
            "asked_for": _boundary(found.asked_for),
        },
    }


def _of_memory(found: DemoTotals) -> dict[str, Any]:
    dream = found.dream
    return {
        "extraction": {
            "count": len(found.extracted),
            "files": list(found.extracted),
            "requests": found.extraction.requests,
            "hit_rate": round(found.extraction.hit_rate, 4),
        },
        "recall": {
            "count": len({*found.in_head, *(one.file for one in found.injected)}),
            "joined": len(found.injected),
            "considered": found.considered,
            "head": list(found.in_head),
            "files": [one.file for one in found.injected],
            "bytes": sum(one.size for one in found.injected),
        },
        "dreaming": {
            "count": int(dream is not None and dream.status == "completed"),
            "trigger": dream.trigger if dream else "",
            "requests": dream.requests if dream else 0,
            "memories_before": found.before,
            "memories_after": found.after,
            "changed": list(dream.changed) if dream else [],
            "undone": found.undone,
        },
    }


def _boundary(found: Boundary) -> dict[str, Any]:
    return {
        "tokens_before": found.tokens_before,
        "tokens_after": found.tokens_after,
        "fidelity": found.fidelity,
        "calls": found.calls,
    }


# --- for people


MODEL = "claude-opus-5-5"  # whose price stands beside the tokens
ROOM = 68


def _report(value: dict[str, Any], verbose: bool) -> None:
    _before_and_after(value)
    say("What each layer did", "bold")
    done = value["layers"]
    rows = [
        ("1", "tool-result storage", _describe_storage(done["tool_results"])),
        ("2", "microcompaction", _describe_clearing(done["microcompaction"])),
        ("2b", "collapse", _describe_collapse(done["collapse"])),
        ("3", "session memory", _describe_notes(done["session_memory"])),
        ("4", "compaction", _describe_compaction(done["compaction"])),
        ("5", "memory extraction", _describe_extraction(done["extraction"])),
        ("", "recall", _describe_recall(done["recall"])),
        ("6", "dreaming", _dreamt(done["dreaming"])),
        ("7", "fork", f"cache hit rate {value['fork']['hit_rate']:.0%} on its parent's prompt"),
    ]
    for number, name, told in rows:
        say(f"  {number:>2}  {name:<20} {told}")
    say()
    checks = value["checks"]
    held = sum(map(bool, checks.values()))
    say(f"{held} of {len(checks)} checks hold{'' if verbose else '; --verbose names them'}.")
    for name, good in checks.items():
        if verbose or not good:
            say(f"  {'✓' if good else '✗'} {name}", "green" if good else "red")
    say()


def _before_and_after(value: dict[str, Any]) -> None:
    cost, naive = value["cost"], value["naive_cost"]
    saved = 1 - cost / naive if naive else 0.0
    say("Before and after", "bold")
    say(f"  An agent mends a bug and looks through logs, {plural(value['rounds'], 'round')}:")
    say(f"    before  {naive:,.0f} price-weighted tokens{_money(naive)}: every result sent whole")
    say(f"    after   {cost:,.0f} price-weighted tokens{_money(cost)}: {saved:.0%} less")
    say(f"  A new session is asked: {value['question']}")
    _answer("before", value["answer_without_memory"])
    _answer("after", value["answer_with_memory"].split(NEWLINE)[-1].strip(" -"))
    say()
    say("The first agent follows a script, then the embedded model answers; tools,", "dim")
    say(f"files, memory and bills are real. Dollars are what {MODEL} would ask.", "dim")
    say()


NEWLINE = "\n"


def _answer(when: str, text: str) -> None:
    first, *more = textwrap.wrap(line(text, 400), ROOM) or [""]
    say(f"    {when:<7} {first}")
    for row in more:
        say(" " * 12 + row)


def _money(weighted: float) -> str:
    from reverie.providers.costs import price_of

    price = price_of(MODEL)
    return "" if price is None else f", ${weighted * price.input / 1e6:.2f}"


def _describe_storage(found: dict[str, Any]) -> str:
    return (
        f"{plural(found['count'], 'result')}, {found['characters']:,} characters; "
        f"read back {plural(found['read_back'], 'time')}"
    )


def _describe_clearing(found: dict[str, Any]) -> str:
    return (
        f"{plural(found['count'], 'old result')} after a pause, {found['characters']:,} characters"
    )


def _describe_collapse(found: dict[str, Any]) -> str:
    return (
        f"{plural(found['messages'], 'old message')} became lines: "
        f"{found['tokens_before']:,} tokens, now {found['tokens_after']:,}"
    )


def _describe_notes(found: dict[str, Any]) -> str:
    times = plural(found["updates"], "time")
    return f"notes kept {times}, {found['hit_rate']:.0%} of that from the cache"


def _describe_compaction(found: dict[str, Any]) -> str:
    by_notes, asked_for = found["by_notes"], found["asked_for"]
    return (
        f"{by_notes['tokens_before']:,} tokens to {by_notes['tokens_after']:,}, no call; "
        f"/compact to {asked_for['tokens_after']:,}"
    )


def _describe_extraction(found: dict[str, Any]) -> str:
    return f"{plural(found['count'], 'memory', 'memories')} from what the user said"


def _describe_recall(found: dict[str, Any]) -> str:
    whole = plural(len(found["head"]), "young memory", "young memories")
    joined = (
        f"; {found['joined']} of {found['considered']} joined a question, {found['bytes']:,} bytes"
    )
    return f"{whole} sent whole to a later session{joined if found['joined'] else ''}"


def _dreamt(found: dict[str, Any]) -> str:
    return (
        f"{plural(found['memories_before'], 'memory', 'memories')} became "
        f"{found['memories_after']} unasked; "
        f"{'undone, byte for byte' if found['undone'] else 'not taken back'}"
    )


# --- The repository that the demo works on: a small project with one fault and long logs.
#
# Made of nothing but the text here, the same bytes every time. Only the folder that is handed in
# is written to.


PRICING = '''"""Prices of an order."""


def discount(total, percent):
    """The total after a discount in percent."""
    return total - total * percent / 10


def with_tax(total, rate=0.19):
    return round(total * (1 + rate), 2)
'''
FAULT = "total * percent / 10"
MENDED = "total * percent / 100"
TESTS = '''"""Tests of the prices."""

import unittest

from orders.pricing import discount, with_tax


class Prices(unittest.TestCase):
    def test_a_discount_is_taken_off(self):
        self.assertEqual(discount(200, 15), 170)

    def test_tax_is_added(self):
        self.assertEqual(with_tax(100), 119.0)
'''
README = "# orders\n\nPrices of a small shop. `python -m unittest` runs the tests.\n"
LOG_LINES = 1_500
SERVICES = ("checkout", "billing", "search", "mail", "stock")
SERVICE_CHARACTERS = 45_000
LONGEST = "checkout"  # the one that is stored to make room for the others


def service_log() -> str:
    """A log of more than 50,000 characters in which three lines matter."""
    lines: list[str] = []
    for n in range(LOG_LINES):
        clock = f"{n // 3600:02}:{n // 60 % 60:02}:{n % 60:02}"
        if n in (411, 902, 1_307):
            lines.append(f"{clock} ERROR pricing order {n}: discount of 15 % gave a negative total")
        else:
            lines.append(f"{clock} INFO  pricing order {n}: priced in {n * 7 % 40 + 3} ms, sent on")
    return "\n".join(lines) + "\n"


def other_log(name: str) -> str:
    """One of five logs, each below a result's own limit, together above a message's."""
    lines: list[str] = []
    size = n = 0
    while size < SERVICE_CHARACTERS + (1_000 if name == LONGEST else 0):
        slow = "TIMEOUT after 3000 ms" if n % 331 == 330 else f"answered in {n * 11 % 90 + 5} ms"
        lines.append(f"{name} request {n:06}: {slow}")
        size += len(lines[-1]) + 1
        n += 1
    return "\n".join(lines) + "\n"


def make(folder: Path) -> None:
    """Write the repository into an empty folder."""
    files = {
        "README.md": README,
        "orders/__init__.py": "",
        "orders/pricing.py": PRICING,
        "tests/__init__.py": "",
        "tests/test_pricing.py": TESTS,
        "service.log": service_log(),
        **{f"logs/{name}.log": other_log(name) for name in SERVICES},
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    git = shutil.which("git")
    if git is not None:
        programs.run([git, "init", "-q", str(folder)], environment(), folder, seconds=60)
