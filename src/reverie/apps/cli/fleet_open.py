"""What the commands of `reverie fleet` share: options, the ledger, the plan, the workshop."""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reverie.errors import InvalidInput, NotAvailable
from reverie.fleet.jobs import TENANT, checked_kinds, checked_tenant
from reverie.providers.extras import extra
from reverie.settings import environment
from reverie.store.project import Project

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reverie.fleet.ledger import FleetLedger
    from reverie.fleet.planning import PlanRequest
    from reverie.fleet.work import FleetTask, JobWork, Workshop
    from reverie.upkeep.tasks import TaskOutcome
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
    from reverie.fleet.local import open_local

    return open_local(Project.at(Path()).home)


@contextmanager
def opened(url: str) -> Generator[FleetLedger]:
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
    from reverie.fleet.planning import PlanRequest
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
) -> Workshop:
    from reverie.fleet.work import TASKS, Workshop
    from reverie.upkeep.tasks import daily_budget

    purse = daily_budget(place, model) if home_budget else None
    tasks: Mapping[str, FleetTask] = {**TASKS, "replay": _replay}
    purses = () if purse is None else (purse,)
    return Workshop(ledger, place, model, key=_key(place, model), tasks=tasks, purses=purses)


def _key(place: Project, model: Model) -> str:
    """The key of the provider as the ledger knows it."""
    from reverie.fleet.rates import key_name
    from reverie.providers.choose import Access

    if model.capabilities.free:
        return ""
    access = Access.of(place.environ)
    if type(model).__name__ == "AnthropicModel":
        url = access.anthropic_url or "api.anthropic.com"
        return key_name(url, access.anthropic_key or access.anthropic_token)
    return key_name(access.openai_url or "api.openai.com", access.openai_key)


async def _replay(work: JobWork) -> TaskOutcome:
    """Play a session under the policy in use; the figures go into home."""
    from reverie.apps.cli.replay import course_of, policy_of
    from reverie.apps.replay import measured
    from reverie.store.files import Folder
    from reverie.upkeep.tasks import TaskOutcome, session_size
    from reverie.world import Prices

    session = work.job.about
    there = session_size(work.place, session)  # a session of the project, and never a file
    if there < max(work.job.size, 1):
        code = "transcript-shrank" if there else "no-session"
        return TaskOutcome("passed over", code, "it has less than when planned")
    policy = policy_of("", work.place.settings, None, Prices())
    found = await measured(course_of(session, work.place), policy, file=session)
    with Folder(work.place.home) as home:
        data = json.dumps(found.figures.value(), indent=2).encode()
        home.write(f"fleet/replays/{session}.json", data)
    return TaskOutcome("done", "replayed", ident=session)
