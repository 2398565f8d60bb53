"""What fleet commands share and show.

What the commands of `reverie fleet` share: options, the ledger, the plan, the workshop.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reverie.apps.cli.output import Column, note, say, table
from reverie.errors import InvalidInput, NotAvailable
from reverie.fleet.plan import TENANT, checked_kinds, checked_tenant
from reverie.fleet.status import in_words
from reverie.providers.connection import extra
from reverie.settings.sources import environment
from reverie.store.project import Project
from reverie.text.format import age

if TYPE_CHECKING:
    from reverie.fleet.ledger import FleetLedger
    from reverie.fleet.plan import ClaimedJob, JobEnd, PlanRequest
    from reverie.fleet.worker import FleetTask, JobHandle, RunTotals, WorkerContext
    from reverie.memory.tasks import TaskOutcome
    from reverie.world import Model

DATABASE = "REVERIE_FLEET_DATABASE"

database_option = click.option(
    "--database",
    default="",
    metavar="URL",
    help="postgresql://…; else REVERIE_FLEET_DATABASE, else a file in home.",
)
tenant_option = click.option(
    "--tenant", default=TENANT, show_default=True, metavar="NAME", help="Whose jobs they are."
)
key_argument = click.argument("key", help="The job, as `fleet list` names it.")


def plan_options(command: Any) -> Any:
    """What a plan is asked for."""
    for option in (
        click.option(
            "--kind", "kinds", multiple=True, metavar="K", help="dream (default), learn, …"
        ),
        click.option("--night", default="", metavar="DAY", help="YYYY-MM-DD; else today (UTC)."),
        click.option("--all", "everything", is_flag=True, help="Also memories that are not due."),
        click.option(
            "--days", type=click.FloatRange(min=0), default=7.0, help="Sessions this young."
        ),
        click.option(
            "--root", "roots", multiple=True, type=click.Path(path_type=Path), help="These alone."
        ),
        click.option(
            "--team", multiple=True, metavar="OWNER/NAME", help="A memory of the team's server."
        ),
    ):
        command = option(command)
    return command


def database_url(database: str) -> str:
    return database or environment().get(DATABASE, "")


def must_be_named(url: str) -> str:
    if not url:
        raise InvalidInput(
            "No database is named",
            do=f"Set {DATABASE} or give --database; `reverie fleet run` works without one",
        )
    return url


def fleet_engine() -> Any:
    """The part that needs the extra; what is missing is said."""
    with extra("fleet", "A fleet past one host cannot run"):
        from reverie.fleet import engine
    return engine


def local_ledger() -> FleetLedger:
    from reverie.fleet.worker import open_local

    return open_local(Project.at(Path()).home)


@contextmanager
def open_ledger(url: str) -> Generator[FleetLedger]:
    ledger = fleet_engine().open_fleet(url) if url else local_ledger()
    try:
        check_made(ledger)
        yield ledger
    finally:
        ledger.close()


def check_made(ledger: FleetLedger) -> None:
    """A database in which nobody made the tables is named as that."""
    if ledger.database.kind != "postgresql":
        ledger.check()
        return
    from psycopg.errors import UndefinedTable

    try:
        ledger.check()
    except UndefinedTable:
        raise NotAvailable(
            "The fleet's tables are not in this database",
            do="Run `reverie fleet init` once, as the owner of the database",
        ) from None


def plan_request(
    ledger: FleetLedger,
    *,
    host: str,
    tenant: str,
    kinds: tuple[str, ...],
    night: str,
    everything: bool,
    days: float,
    roots: tuple[Path, ...],
    team: tuple[str, ...],
) -> PlanRequest:
    from reverie.fleet.plan import PlanRequest
    from reverie.store.home import canonical_root

    return PlanRequest(
        checked_kinds(kinds or ("dream",)),
        night or ledger.today(),
        checked_tenant(tenant),
        host,
        not everything,
        days,
        tuple(canonical_root(Path(os.path.abspath(root))) for root in roots),
        team,
    )


def chosen_model(place: Project, name: str) -> Model:
    from reverie.apps.cli.chat import model_named

    return model_named(place, name)


def workshop(
    ledger: FleetLedger, place: Project, model: Model, *, home_budget: bool = False
) -> WorkerContext:
    from reverie.fleet.worker import TASKS, WorkerContext
    from reverie.memory.tasks import daily_budget

    purse = daily_budget(place, model) if home_budget else None
    tasks: Mapping[str, FleetTask] = {**TASKS, "replay": _replay}
    purses = () if purse is None else (purse,)
    return WorkerContext(ledger, place, model, key=_key(place, model), tasks=tasks, purses=purses)


def _key(place: Project, model: Model) -> str:
    """The key of the provider as the ledger knows it."""
    from reverie.fleet.rates import key_name
    from reverie.providers.selection import ProviderKeys

    if model.capabilities.free:
        return ""
    access = ProviderKeys.of(place.environ)
    if type(model).__name__ == "AnthropicModel":
        url = access.anthropic_url or "api.anthropic.com"
        return key_name(url, access.anthropic_key or access.anthropic_token)
    return key_name(access.openai_url or "api.openai.com", access.openai_key)


async def _replay(work: JobHandle) -> TaskOutcome:
    """Play a session under the policy in use; the figures go into home."""
    from reverie.apps.cli.replay import course_of, policy_of
    from reverie.apps.replay.figures import measure_session
    from reverie.memory.tasks import TaskOutcome, session_size
    from reverie.store.files import Folder
    from reverie.world import Prices

    session = work.job.about
    there = session_size(work.place, session)  # a session of the project, and never a file
    if there < max(work.job.size, 1):
        code = "transcript-shrank" if there else "no-session"
        return TaskOutcome("passed over", code, "it has less than when planned")
    policy = policy_of("", work.place.settings, None, Prices())
    found = await measure_session(course_of(session, work.place), policy, file=session)
    with Folder(work.place.home) as home:
        data = json.dumps(found.figures.value(), indent=2).encode()
        home.write(f"fleet/replays/{session}.json", data)
    return TaskOutcome("done", "replayed", ident=session)


# --- What `reverie fleet` shows people: the status, jobs in rows, one job, the end of a run.
#
# Codes of jobs stand here in words; `--json` keeps the code.


def print_status(found: Mapping[str, Any]) -> None:
    """The status for people."""
    rows = [
        [r["tenant"], r["kind"], r["state"], str(r["jobs"]), f"{r['cost']:,.0f}"]
        for r in found["jobs"]
    ]
    if not rows:
        say("No job was planned yet.")
        return
    names = ("tenant", "kind", "state", "jobs", "cost")
    table([Column(name, right=name in ("jobs", "cost")) for name in names], rows)
    for state, words in (("dead", "dead"), ("later", "waiting until later")):
        codes = found[state]["codes"].items()
        why = ", ".join(f"{in_words(code)} ({count:,})" for code, count in codes)
        if why:
            say(f"{words}: {why}", "yellow")
    for name, about in found["tenants"].items():
        if about["paused"]:
            say(f"{name} is paused: `reverie fleet pause {name} --resume`", "yellow")
        if about["tokens"] is not None:
            used = about["spent"]["tokens"]
            say(f"{name}: {used:,.0f} of {about['tokens']:,.0f} price-weighted tokens today")


def print_jobs(found: Sequence[Mapping[str, Any]], now: float) -> None:
    """Jobs in rows."""
    names = ("key", "state", "why", "tries", "age", "root")
    rows = [
        [
            row["key"],
            row["state"],
            in_words(row["code"]),
            str(row["tries"]),
            age(now - (row["started"] or row["created"])),
            row["root"],
        ]
        for row in found
    ]
    wraps, cut = ("key", "why"), ("why", "root")
    table([Column(name, wraps=name in wraps, cut=name in cut) for name in names], rows)


def print_job(found: Mapping[str, Any]) -> None:
    """One job, by what is known of it."""
    for name, value in found.items():
        if value not in ("", None):
            said = in_words(str(value)) if name == "code" else value
            say(f"{name}: {value} ({said})" if said != value else f"{name}: {value}")
    if found["code"] and not found["reason"]:
        note(f"The words of the last try are in fleet/log.jsonl in the home of {found['worker']}")


def print_end(taken: ClaimedJob, end: JobEnd) -> None:
    """How a job of a run ended."""
    say(f"{end.state}  {taken.job.key}  {taken.job.root}  {in_words(end.code)}")


def print_totals(totals: RunTotals, why: Iterable[str]) -> None:
    """What a run came to, and why it was not more."""
    say(
        f"{totals.done} done, {totals.failed} failed, {totals.skipped} skipped,"
        f" {totals.waiting} waiting; cost {totals.cost:,.0f}"
    )
    for sentence in why:
        say(sentence, "yellow")
