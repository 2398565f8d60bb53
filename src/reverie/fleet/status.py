"""A fleet at a glance: jobs by tenant, kind and state, budgets, limits; for JSON and Prometheus.

Labels are tenants, kinds and states. No path, key or session is ever part of one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from reverie.fleet.ledger import FleetLedger
from reverie.fleet.rates import Rates, spent

PREFIX = "reverie_fleet"


def fleet_status(ledger: FleetLedger) -> dict[str, Any]:
    """Everything that `fleet status` shows."""
    day = ledger.today()
    tenants, used = ledger.tenants(), spent(ledger, day)
    return {
        "database": ledger.database.kind,
        "day": day,
        "jobs": ledger.counts(),
        "running": ledger.jobs(state="running"),
        "workers": ledger.running_workers(),
        "tenants": {
            name: {**about, "spent": used.get(name, {"tokens": 0.0, "calls": 0})}
            for name, about in tenants.items()
        },
        "limits": {name: asdict(one) for name, one in Rates(ledger).limits().items()},
    }


def metrics(ledger: FleetLedger) -> str:
    """The same for Prometheus, in its text form."""
    found = fleet_status(ledger)
    return "\n".join(_lines(found)) + "\n"


def _lines(found: dict[str, Any]) -> Iterator[str]:
    yield from _head("jobs", "gauge", "Jobs in the ledger.")
    for row in found["jobs"]:
        labels = _labels(tenant=row["tenant"], kind=row["kind"], state=row["state"])
        yield f"{PREFIX}_jobs{labels} {row['jobs']}"
    yield from _head("cost_tokens_total", "counter", "Price-weighted tokens that jobs used.")
    for row in found["jobs"]:
        labels = _labels(tenant=row["tenant"], kind=row["kind"], state=row["state"])
        yield f"{PREFIX}_cost_tokens_total{labels} {row['cost']:.2f}"
    yield from _head("spent_tokens", "gauge", "Price-weighted tokens reserved or spent today.")
    for name, about in found["tenants"].items():
        yield f"{PREFIX}_spent_tokens{_labels(tenant=name)} {about['spent']['tokens']:.2f}"
    yield from _head("budget_tokens", "gauge", "Price-weighted tokens allowed today.")
    for name, about in found["tenants"].items():
        if about["tokens"] is not None:
            yield f"{PREFIX}_budget_tokens{_labels(tenant=name)} {about['tokens']:.2f}"
    yield from _head("paused", "gauge", "Whether a tenant's jobs begin.")
    for name, about in found["tenants"].items():
        yield f"{PREFIX}_paused{_labels(tenant=name)} {int(about['paused'])}"
    yield from _head("workers", "gauge", "Processes that have a job.")
    yield f"{PREFIX}_workers {len(found['workers'])}"


def _head(name: str, kind: str, about: str) -> Iterator[str]:
    yield f"# HELP {PREFIX}_{name} {about}"
    yield f"# TYPE {PREFIX}_{name} {kind}"


def _labels(**given: object) -> str:
    parts = (f'{name}="{_escaped(str(value))}"' for name, value in given.items())
    return "{" + ",".join(parts) + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
