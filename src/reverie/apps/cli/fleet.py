"""`reverie fleet`: the background work of many projects, on one host or on many.

Without a database it works in this process, with a file in home; with `--database` or
REVERIE_FLEET_DATABASE the same plan is worked by any number of hosts.
"""

from __future__ import annotations

import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reverie.apps.cli.app import CommandGroup, json_option, model_option
from reverie.apps.cli.fleet_options import (
    check_made,
    chosen_model,
    database_option,
    database_url,
    fleet_engine,
    key_argument,
    local_ledger,
    must_be_named,
    open_ledger,
    plan_options,
    plan_request,
    tenant_option,
    workshop,
)
from reverie.apps.cli.output import document, note, say
from reverie.fleet.plan import TENANT, checked_tenant
from reverie.store.project import Project
from reverie.text.format import plural

if TYPE_CHECKING:
    from reverie.fleet.ledger import FleetLedger
    from reverie.fleet.plan import ClaimedJob, JobEnd, PlanRequest


@click.group(cls=CommandGroup, no_args_is_help=True)
def app() -> None:
    """Run background work over many projects, on one host or on many."""


@app.command()
@click.option("--login", default="", metavar="NAME", help="Also make a login for workers.")
@database_option
@json_option
def init(login: str, database: str, as_json: bool) -> None:
    """Make the tables, and on PostgreSQL the role of workers."""
    url = database_url(database)
    if url:
        fleet_engine().init(url, login)
    else:
        local_ledger().close()
    where = "PostgreSQL" if url else "this host"
    _answer(as_json, {"made": where}, f"The fleet's tables are ready on {where}")


@app.command()
@click.option("--dry-run", is_flag=True, help="Show the plan, and change nothing.")
@click.option(
    "--shared", is_flag=True, help="Every host reaches these folders, not this one alone."
)
@tenant_option
@plan_options
@database_option
@json_option
def plan(dry_run: bool, shared: bool, database: str, as_json: bool, **given: Any) -> None:
    """Queue the jobs that are due; one that is queued already is not queued twice."""
    from reverie.fleet.plan import home_id

    url = database_url(database)
    with open_ledger(url) as ledger:
        bound = "" if shared or not url else home_id(Project.at(Path()).home)
        asked = plan_request(ledger, host=bound, **given)
        _run_plan(ledger, asked, url=url, dry_run=dry_run, as_json=as_json)


@app.command("run")
@click.option(
    "--workers",
    type=click.IntRange(1, 256),
    default=4,
    show_default=True,
    help="Jobs at the same time.",
)
@tenant_option
@plan_options
@model_option
@json_option
def run_here(workers: int, model: str, as_json: bool, **given: Any) -> None:
    """Plan and work here, in this process; goes on where it was stopped."""
    import anyio

    from reverie.apps.cli.fleet_options import print_end, print_totals
    from reverie.fleet.plan import plan_jobs as make_plan
    from reverie.fleet.status import why_idle, why_waiting
    from reverie.fleet.worker import run_local

    place = Project.at(Path())
    with open_ledger("") as ledger:
        asked = plan_request(ledger, host="", **given)
        found = make_plan(place, asked, time.time)
        ledger.add(found.jobs)
        chosen = chosen_model(place, model)
        shop = workshop(ledger, place, chosen, home_budget=True)
        totals = anyio.run(run_local, shop, workers, _quiet if as_json else print_end)
        if totals.ended:
            why = why_waiting(ledger) if totals.waiting else []
        else:
            why = why_idle(ledger, place.home, asked, found)
    if as_json:
        document({**asdict(totals), "why": why})
    else:
        print_totals(totals, why)
    if totals.failed:
        raise click.exceptions.Exit(1)


@app.command()
@click.option(
    "--workers",
    type=click.IntRange(1, 256),
    default=4,
    show_default=True,
    help="Jobs at the same time.",
)
@click.option("--tenant", "tenants", multiple=True, metavar="NAME", help="These alone.")
@click.option(
    "--lease",
    type=click.FloatRange(min=2),
    default=60.0,
    show_default=True,
    help="Seconds without a sign of life after which a worker's jobs go to others.",
)
@click.option("--until-done", is_flag=True, help="End when no job is open.")
@model_option
@database_option
def work(
    workers: int,
    tenants: tuple[str, ...],
    lease: float,
    until_done: bool,
    model: str,
    database: str,
) -> None:
    """Work jobs of the fleet until stopped; what is under way comes to its end."""
    import anyio

    url = must_be_named(database_url(database))
    engine = fleet_engine()
    place = Project.at(Path())
    names = tuple(map(checked_tenant, tenants))
    ledger = engine.open_fleet(url, names)
    try:
        check_made(ledger)
        shop = workshop(ledger, place, chosen_model(place, model))
        poll = min(5.0, lease / 4)
        options = engine.WorkerOptions(workers, names, lease, until_done, poll)
        anyio.run(_until_stopped, engine.FleetWorker(url, shop, options))
    finally:
        ledger.close()


async def _until_stopped(worker: Any) -> None:
    import signal

    import anyio

    async def stops() -> None:
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as received:
            async for _ in received:
                note("Stopping when the jobs under way have ended")
                worker.stop()

    async with anyio.create_task_group() as group:
        group.start_soon(stops)
        await worker.run()
        group.cancel_scope.cancel()


@app.command()
@click.option("--watch", is_flag=True, help="Show it again every two seconds, until Ctrl-C.")
@click.option("--metrics", "as_metrics", is_flag=True, help="Print it for Prometheus.")
@database_option
@json_option
def status(watch: bool, as_metrics: bool, database: str, as_json: bool) -> None:
    """Show what runs, what waits, and what it cost."""
    from reverie.apps.cli.fleet_options import print_status
    from reverie.fleet.status import metrics, seen_status

    home = Project.at(Path()).home
    with open_ledger(database_url(database)) as ledger:
        while True:
            if as_metrics:
                sys.stdout.write(metrics(ledger))
            elif as_json:
                document(seen_status(ledger, home))
            else:
                print_status(seen_status(ledger, home))
            if not watch:
                return
            sys.stdout.flush()
            time.sleep(2)


@app.command("list")
@click.option("--state", default="", help="queued, running, done, skipped, dead or cancelled.")
@click.option("--kind", default="", help="Jobs of this kind alone.")
@click.option("--tenant", default="", metavar="NAME", help="Jobs of this tenant alone.")
@click.option(
    "-n",
    "most",
    type=click.IntRange(1, 100_000),
    default=50,
    show_default=True,
    help="Rows to show.",
)
@database_option
@json_option
def list_jobs(state: str, kind: str, tenant: str, most: int, database: str, as_json: bool) -> None:
    """List jobs, those that began last first."""
    from reverie.apps.cli.fleet_options import print_jobs
    from reverie.fleet.status import with_reasons

    with open_ledger(database_url(database)) as ledger:
        found = ledger.jobs(tenant=tenant, state=state, kind=kind, most=most)
    if as_json:
        document(with_reasons(found, Project.at(Path()).home))
        return
    print_jobs(found, time.time())


@app.command()
@key_argument
@tenant_option
@database_option
@json_option
def show(key: str, tenant: str, database: str, as_json: bool) -> None:
    """Show one job: where it stands, its tries, its cost."""
    from reverie.apps.cli.fleet_options import print_job
    from reverie.fleet.status import with_reasons

    with open_ledger(database_url(database)) as ledger:
        (found,) = with_reasons([ledger.job(tenant, key)], Project.at(Path()).home)
    if as_json:
        document(found)
    else:
        print_job(found)


@app.command()
@key_argument
@tenant_option
@database_option
@json_option
def cancel(key: str, tenant: str, database: str, as_json: bool) -> None:
    """Ask a job to stop; its memory is free once it has."""
    with open_ledger(database_url(database)) as ledger:
        state = ledger.cancel(tenant, key)
    said = "The job will stop" if state == "running" else f"The job is {state}"
    _answer(as_json, {"key": key, "state": state}, said)


@app.command()
@key_argument
@tenant_option
@database_option
@json_option
def retry(key: str, tenant: str, database: str, as_json: bool) -> None:
    """Queue a job again that is dead, cancelled or skipped."""
    url = database_url(database)
    with open_ledger(url) as ledger:
        state = ledger.retry(tenant, key)
        if url:
            fleet_engine().enqueue(ledger)
    _answer(as_json, {"key": key, "state": state}, f"The job is {state}")


@app.command()
@click.argument("tenant", default=TENANT, help="Whose jobs.")
@click.option("--resume", is_flag=True, help="Let them begin again.")
@database_option
@json_option
def pause(tenant: str, resume: bool, database: str, as_json: bool) -> None:
    """Begin no more jobs of a tenant; those that run come to their end."""
    with open_ledger(database_url(database)) as ledger:
        ledger.pause(checked_tenant(tenant), not resume)
    said = f"Jobs of {tenant} {'begin again' if resume else 'do not begin until --resume'}"
    _answer(as_json, {"tenant": tenant, "paused": not resume}, said)


@app.command()
@click.argument("name", default="*", help="The key's name; * for all of them.")
@click.option("--requests", type=click.FloatRange(min=0), help="Requests a minute; 0 = no limit.")
@click.option("--input", "input_", type=click.FloatRange(min=0), help="Input tokens a minute.")
@click.option("--output", type=click.FloatRange(min=0), help="Output tokens a minute.")
@database_option
@json_option
def limits(
    name: str,
    requests: float | None,
    input_: float | None,
    output: float | None,
    database: str,
    as_json: bool,
) -> None:
    """Show or set what a provider's key may be asked for in a minute; `*` is for every key."""
    from reverie.fleet.rates import Limits, Rates

    with open_ledger(database_url(database)) as ledger:
        rates = Rates(ledger)
        if (requests, input_, output) != (None, None, None):
            old = rates.of(name)
            parts = zip((requests, input_, output), asdict(old).values(), strict=True)
            rates.set_limits(name, Limits(*(was if new is None else new for new, was in parts)))
        found = {one: asdict(value) for one, value in rates.limits().items()}
    if as_json:
        document(found)
        return
    for one, value in found.items():
        parts = (f"{number:,.0f} {part}" for part, number in value.items() if number)
        say(f"{one}: {', '.join(parts) or 'no limit'}")
    if not found:
        say("No limit is set.")


@app.command()
@click.argument("tenant", default=TENANT, help="Whose jobs.")
@click.option("--tokens", type=click.FloatRange(min=0), help="Price-weighted tokens a day.")
@click.option("--calls", type=click.IntRange(min=0), help="Calls a day.")
@click.option("--none", "lift", is_flag=True, help="No limit.")
@database_option
@json_option
def budget(
    tenant: str, tokens: float | None, calls: int | None, lift: bool, database: str, as_json: bool
) -> None:
    """Show or set what a tenant may spend in a day (UTC)."""
    from reverie.fleet.rates import set_budget
    from reverie.fleet.status import fleet_status

    with open_ledger(database_url(database)) as ledger:
        if lift or tokens is not None or calls is not None:
            set_budget(ledger, checked_tenant(tenant), tokens, calls)
        found = fleet_status(ledger)["tenants"].get(tenant, {})
    if as_json:
        document({"tenant": tenant, **found})
        return
    most = found.get("tokens")
    used = found.get("spent", {}).get("tokens", 0.0)
    limit = "no limit" if most is None else f"{most:,.0f}"
    say(f"{tenant}: {used:,.0f} of {limit} price-weighted tokens today")


def _run_plan(
    ledger: FleetLedger, asked: PlanRequest, *, url: str, dry_run: bool, as_json: bool
) -> None:
    from reverie.fleet.plan import plan_jobs as make_plan
    from reverie.fleet.status import why_idle

    place = Project.at(Path())
    found = make_plan(place, asked, time.time)
    known = ledger.states(found.jobs)
    is_new = any((job.tenant, job.key) not in known for job in found.jobs)
    new = [] if dry_run else ledger.add(found.jobs)
    if url and not dry_run:
        fleet_engine().enqueue(ledger)
    why = [] if is_new else why_idle(ledger, place.home, asked, found)
    if as_json:
        document({**found.value(), "dry_run": dry_run, "new": len(new), "why": why})
        return
    for job in found.jobs if dry_run else ():
        say(f"{job.key}  {job.root}")
    for root, reason in found.passed:
        say(f"passed over: {root}: {reason}")
    told = "would be queued" if dry_run else f"planned, {len(new)} of them new"
    say(f"{plural(len(found.jobs), 'job')} {told}")
    for sentence in why:
        say(sentence, "yellow")


def _quiet(taken: ClaimedJob, end: JobEnd) -> None:
    del taken, end


def _answer(as_json: bool, value: dict[str, Any], text: str) -> None:
    if as_json:
        document(value)
    else:
        say(text)
