"""A plan becomes rows of the ledger: what nobody planned before, in the order of its turn.

Jobs are found by their names: a ledger with a long past is not gone through.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reverie.fleet.jobs import Job
from reverie.team.database import SqlValue, Transaction

COLUMNS = "tenant, key, kind, root, night, about, size, host, due"
_CHUNK = 500


def take_in(within: Transaction, jobs: Sequence[Job], now: str) -> list[Job]:
    """Add the jobs that are new, and give them; `now` is the time as it stands in a statement."""
    known = known_states(within, jobs)
    new = [job for job in jobs if (job.tenant, job.key) not in known]
    ranks: dict[str, int] = {}
    for some in _chunks(new):
        _insert(within, some, ranks, now)
    return new


def known_states(within: Transaction, jobs: Sequence[Job]) -> dict[tuple[str, str], str]:
    """Where jobs stand, by tenant and key; those that nobody planned are left out."""
    found: dict[tuple[str, str], str] = {}
    for tenant in dict.fromkeys(job.tenant for job in jobs):
        for some in _chunks([job for job in jobs if job.tenant == tenant]):
            rows = within.rows(
                "SELECT key, state FROM fleet_jobs WHERE tenant = ?"
                f" AND key IN ({', '.join('?' for _ in some)})",
                (tenant, *(job.key for job in some)),
            )
            found |= {(tenant, str(key)): str(state) for key, state in rows}
    return found


def _chunks(jobs: Sequence[Job]) -> Iterator[Sequence[Job]]:
    return (jobs[begin : begin + _CHUNK] for begin in range(0, len(jobs), _CHUNK))


def _insert(within: Transaction, jobs: Sequence[Job], ranks: dict[str, int], now: str) -> None:
    """Add jobs, each behind its tenant's last."""
    values: list[SqlValue] = []
    for job in jobs:
        if job.tenant not in ranks:
            ranks[job.tenant] = _rank(within, job.tenant)
        ranks[job.tenant] += 1
        values += [job.tenant, job.key, job.kind, job.root, job.night, job.about, job.size]
        values += [job.host, int(job.due), job.memory, ranks[job.tenant]]
    row = (
        "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'queued', '', 0, 0, '',"
        f" 0, {now}, 0, 0, '', 0, 0, 0, 0, '', 0)"
    )
    within.rows(
        f"INSERT INTO fleet_jobs ({COLUMNS}, memory, rank, state, code, tries, fence,"
        " worker, after, created, started, ended, phase, rounds, files, requests, cost,"
        f" ident, cancel) VALUES {', '.join(row for _ in jobs)}",
        values,
    )


def _rank(within: Transaction, tenant: str) -> int:
    """Where a tenant's next job stands: behind its own, and not before what everybody else has
    reached. So tenants take turns, however many jobs one of them has."""
    within.rows(
        "INSERT INTO fleet_tenants (tenant, paused) VALUES (?, 0) ON CONFLICT DO NOTHING",
        (tenant,),
    )
    reached = within.rows("SELECT MIN(rank) FROM fleet_jobs WHERE state = 'queued'")[0][0]
    own = within.rows(
        "SELECT MAX(rank) FROM fleet_jobs WHERE tenant = ? AND state = 'queued'", (tenant,)
    )[0][0]
    return max(int(own or 0), int(reached or 1) - 1)
