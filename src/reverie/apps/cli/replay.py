"""`reverie replay`: recorded sessions run again under a policy, and what that would cost.

Files of Claude Code, pi and our own, packed or plain, or a session of this project by its
id. They are only read, and nothing is kept but the page that was asked for. A file that
cannot be replayed is named, and the others go on.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import anyio
import click

from reverie.apps.cli.app import json_option, project_option, session_files
from reverie.apps.cli.output import PATIENCE, Column, console, document, note, say, table
from reverie.apps.replay.course import Interface, RecordedCourse, of_entries, of_lines
from reverie.apps.replay.figures import (
    CAVEAT,
    MeasuredSession,
    ReplayFigures,
    measure_session,
    plays,
)
from reverie.apps.replay.page import page_text
from reverie.apps.replay.policies import INTERFACES, POLICIES, PolicyName, ReplayPolicy
from reverie.errors import InvalidInput, InvalidMessage, NotFound, ReverieError
from reverie.providers.costs import KINDS, price_of, relative
from reverie.session import transfer
from reverie.session.library import SessionLibrary, find_session
from reverie.settings.catalog import Settings
from reverie.store.files import Folder
from reverie.store.journal import unseal
from reverie.store.project import Project
from reverie.text.format import plural
from reverie.transcript.codec import decode
from reverie.transcript.recordings import is_ours
from reverie.transcript.records import Entry
from reverie.world import Prices

if TYPE_CHECKING:
    from rich.progress import Progress

MAX_PRICE = 1_000
_COSTS = (
    *("session", "requests", "cost", "naive", "recovery", "refind", "background"),
    *("of naive", "thinking", "hits", "peak"),
)
_KEPT = ("session", "breaks", "announced", "refused", "faults", "facts", "near", "far", "shown")


@click.command()
@session_files
@click.option(
    "--policy", default="", help="off, store, classic or collapse. Default: contextPolicy."
)
@click.option(
    "--tail", type=click.IntRange(min=1), metavar="N", help="Tokens in the live tail of collapse."
)
@click.option(
    "--prices",
    default="",
    metavar="NAME|LIST",
    help="Whose prices: anthropic, openai, local, a model's name, or read=0.1,write=1.25,"
    "write_long=2,output=5 in input tokens.",
)
@click.option(
    "--through",
    type=click.Choice(["", *INTERFACES]),
    default="",
    help="What sends the requests: the proxy, or a session, whose own model works in the "
    "background. Default: session for sessions of Reverie, proxy for others.",
)
@click.option(
    "--html", type=click.Path(path_type=Path), metavar="OUT", help="Write an HTML page with plots."
)
@click.option(
    "--rounds", is_flag=True, help="With --json: the tokens of each request too, by policy."
)
@json_option
@project_option
def replay(
    files: tuple[str, ...],
    policy: str,
    tail: int | None,
    prices: str,
    through: Interface | Literal[""],
    html: Path | None,
    rounds: bool,
    as_json: bool,
    project: Project,
) -> None:
    """Replay recorded sessions under a policy: cost, cache, breaks, and what stays in context."""
    chosen = policy_of(policy, project.settings, tail, prices_of(prices))
    sessions, failed = _all(files, project, chosen, through, every=html is not None)
    if not sessions and failed:
        raise failed[0][1]
    if html is not None and sessions:
        _write(html, page_text(sessions))
    figures = [s.figures for s in sessions]
    if as_json and rounds:
        document([s.figures.value() | _rounds(s) for s in sessions])
    elif as_json:
        document([f.value() for f in figures])
    else:
        _tell(figures, chosen, html)
    for given, error in failed:
        note(f"{given}: {error}")
    if failed:
        raise click.exceptions.Exit(failed[-1][1].exit_code)


def _rounds(session: MeasuredSession) -> dict[str, dict[str, list[int]]]:
    played = session.played.items()
    return {"rounds": {name: [one.tokens for one in run.rounds] for name, run in played}}


def _all(
    files: Sequence[str],
    project: Project,
    policy: ReplayPolicy,
    through: Interface | Literal[""],
    *,
    every: bool,
) -> tuple[list[MeasuredSession], list[tuple[str, ReverieError]]]:
    """What was measured, and what could not be."""
    sessions: list[MeasuredSession] = []
    failed: list[tuple[str, ReverieError]] = []
    with ProgressLine() as watching:
        for given in transfer.expand_folders(files):
            try:
                course = course_of(given, project)
                used = replace(policy, through=through or course.interface)
                sessions.append(_measure_course(course, used, given, every, watching))
            except ReverieError as error:
                failed.append((given, error))
    return sessions, failed


def prices_of(given: str) -> Prices:
    """The prices of a kind of provider, of a model, or as they are listed."""
    if not given:
        return Prices()
    if given in KINDS:
        return KINDS[given]
    if "=" in given:
        return _parse_prices(given)
    price = price_of(given)
    if price is None:
        raise InvalidInput(
            "No price is known of this model",
            where=given,
            do=f"Use {', '.join(KINDS)}, or a list such as read=0.1,write=1.25",
        )
    return relative(price, Prices())


def _parse_prices(given: str) -> Prices:
    known = ("read", "write", "write_long", "output")
    found: dict[str, float] = {}
    for part in given.split(","):
        name, _, value = part.strip().partition("=")
        try:
            number = float(value)
        except ValueError:
            number = -1.0
        if name not in known or not 0 <= number <= MAX_PRICE:
            do = f"Use {', '.join(known)}, each a number from 0 to {MAX_PRICE:,}"
            raise InvalidInput("This is no price", where=part, do=do)
        found[name] = number
    return replace(Prices(), **found)


ALIASES = {"off": "naive"}
"""The name of a policy everywhere else, and what figures call it."""


def policy_of(name: str, settings: Settings, tail: int | None, prices: Prices) -> ReplayPolicy:
    """The policy of this name, or without one that of the settings."""
    wanted = name or settings.context_policy
    found: PolicyName | None = next((p for p in POLICIES if p == ALIASES.get(wanted, wanted)), None)
    if found is None:
        do = f"Use {', '.join((*ALIASES, *POLICIES[1:]))}"
        raise InvalidInput("There is no such policy", where=wanted, do=do)
    return ReplayPolicy.of(found, settings, tail, prices)


def _measure_course(
    course: RecordedCourse, policy: ReplayPolicy, given: str, every: bool, watching: ProgressLine
) -> MeasuredSession:
    also = POLICIES if every else ()
    tick = watching.begin(course.session, plays(policy, also, course))

    async def work() -> MeasuredSession:
        return await measure_session(course, policy, file=given, also=also, tick=tick)

    return anyio.run(work)


def _write(out: Path, text: str) -> None:
    target = out.absolute()
    with Folder(target.parent) as folder:
        folder.write(target.name, text.encode("utf-8", "replace"))


# --- what is to be replayed


def course_of(given: str, project: Project) -> RecordedCourse:
    """The course of a file, or of a session of this project."""
    path = Path(given)
    if path.exists():
        return _of_file(path)
    if path.name.endswith(transfer.ENDINGS) or len(path.parts) > 1:
        raise NotFound("There is no such file", where=given)
    library = SessionLibrary.find(project)
    try:
        session = find_session(library, given)
    except InvalidInput as error:
        raise NotFound(
            "There is no such file, and no session of this project with that id",
            where=given,
            do="`reverie sessions list` shows those there are",
        ) from error
    assert library is not None
    return _of_session(library, session)


def _of_file(path: Path) -> RecordedCourse:
    lines, faults = transfer.lines_of(path)
    if not lines or not is_ours(lines[0]):
        return _with_faults(of_lines(lines, _stem(path)), faults)
    parcel = transfer.parcel_of(path)
    beside = path.parent / _stem(path)

    def read_parcel_file(key: str) -> bytes | None:
        found = parcel.files.get(key)
        if found is not None or ".." in Path(key).parts:
            return found
        place = beside / key
        return place.read_bytes() if place.is_file() else None

    def blob(name: str) -> str | None:
        data = read_parcel_file(f"blobs/{name}.json")
        return None if data is None else data.decode("utf-8", "replace")

    entries: list[Entry] = []
    for text in parcel.lines:
        found = unseal(text)
        try:
            entries.append(decode((found[0] if found else text).decode(), blob))
        except InvalidMessage:
            continue  # the parcel's faults name it
    return _with_faults(of_entries(entries, read_parcel_file, _stem(path)), parcel.faults)


def _of_session(library: SessionLibrary, session: str) -> RecordedCourse:
    found = library.read(session)

    def read_session_file(key: str) -> bytes | None:
        try:
            return library.folder.read(f"{session}/{key}")
        except ReverieError:
            return None

    return _with_faults(of_entries(found.entries, read_session_file, session), found.faults)


def _stem(path: Path) -> str:
    return path.name.removesuffix(".gz").removesuffix(".jsonl")


def _with_faults(course: RecordedCourse, faults: Sequence[str]) -> RecordedCourse:
    return replace(course, notes=(*faults, *course.notes)) if faults else course


# --- what a person sees


def _tell(figures: Sequence[ReplayFigures], policy: ReplayPolicy, html: Path | None) -> None:
    tail = f", tail {policy.tail:,}" if policy.name == "collapse" else ""
    say(f"{policy.name}{tail}: {plural(len(figures), 'session')}", "bold")
    say("Costs are in input tokens; “of naive” counts everything, “thinking” with thinking sent.")
    short = _unique([f.session for f in figures])
    named = [(f.session[:short], f) for f in figures]
    costs = [_costs(name, [f]) for name, f in named]
    kept = [_retention_row(name, [f]) for name, f in named]
    if len(figures) > 1:
        costs.append(_costs("all", figures))
        kept.append(_retention_row("all", figures))
    table([Column(name, right=name != "session") for name in _COSTS], costs)
    say("near and far: names that later steps used, as here/by reference/rerun/lost.")
    table([Column(name, right=name != "session") for name in _KEPT], kept)
    say(_background(figures))
    for name, f in named:
        for told in f.told():
            say(f"{name}: {told}.")
    say(CAVEAT)
    if html is not None:
        say(f"The page with plots is {html}")


def _background(of: Sequence[ReplayFigures]) -> str:
    """What would run behind the sessions."""
    notes = plural(sum(f.background.notes for f in of), "update") + " of notes"
    looks = plural(sum(f.background.extractions for f in of), "extraction")
    cost = sum(f.background.cost for f in of)
    if all(f.through == "proxy" for f in of):
        return "Through the proxy, background work is done by rules and costs nothing."
    return f"In the background, billed: {notes}, {looks}, about {cost:,}."


def _unique(names: Sequence[str]) -> int:
    """How much of a name tells these sessions apart."""
    wanted = len(set(names))
    longest = max(map(len, names), default=8)
    return next((n for n in range(8, longest) if len({s[:n] for s in names}) == wanted), longest)


def _costs(name: str, of: Sequence[ReplayFigures]) -> list[str]:
    naive = sum(f.naive_cost for f in of)
    thought = [f.thinking for f in of if f.thinking.blocks]
    whole = sum(t.naive_cost for t in thought)
    sent = sum(f.read + f.written + f.plain for f in of)
    return [
        name,
        f"{sum(f.requests for f in of):,}",
        f"{sum(f.cost for f in of):,}",
        f"{naive:,}",
        f"{sum(f.recovery for f in of):,}",
        f"{sum(f.refind for f in of):,}",
        f"{sum(f.background.cost for f in of):,}",
        f"{sum(f.billed for f in of) / naive:.3f}" if naive else "-",
        f"{sum(t.billed for t in thought) / whole:.3f}" if whole else "-",
        f"{sum(f.read for f in of) / sent:.1%}" if sent else "-",
        f"{max(f.peak for f in of):,}",
    ]


def _retention_row(name: str, of: Sequence[ReplayFigures]) -> list[str]:
    def format_counts(distance: str) -> str:
        parts = ("here", "by_reference", "rerun", "lost")
        return "/".join(f"{sum(getattr(getattr(f, distance), p) for f in of)}" for p in parts)

    shown = sum(f.shown for f in of)
    results = sum(f.results for f in of)
    return [
        name,
        f"{sum(f.breaks for f in of):,}",
        f"{sum(f.announced for f in of):,}",
        f"{sum(f.thinking.refused for f in of):,}",
        f"{sum(f.pairing_faults for f in of):,}",
        f"{sum(f.facts_here for f in of):,} of {sum(f.facts for f in of):,}",
        format_counts("near"),
        format_counts("far"),
        f"{shown / results:.1%}" if results else "-",
    ]


class ProgressLine:
    """Progress on a terminal, once a second has passed; elsewhere nothing."""

    def __init__(self) -> None:
        self._bar: Progress | None = None
        self._started = time.monotonic()
        self._what = ""
        self._done = self._total = 0

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(self, *ended: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def begin(self, what: str, total: int) -> Callable[[], None]:
        """A session of so many steps; what is given back is called at each."""
        self._what, self._done, self._total = what[:8], 0, total
        if self._bar is not None:
            self._bar.reset(self._bar.task_ids[0], total=total, description=self._what)
        return self._tick

    def _tick(self) -> None:
        self._done += 1
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=self._done)
        elif sys.stderr.isatty() and time.monotonic() - self._started > PATIENCE:
            from rich.progress import Progress

            self._bar = Progress(console=console(sys.stderr), transient=True)
            self._bar.add_task(self._what, total=self._total, completed=self._done)
            self._bar.start()
