"""Background work past one machine: a plan of jobs, worked by any number of hosts.

On one host `local` works the plan in this process, with a SQLite file and no server. Past it the
jobs go through procrastinate on PostgreSQL (`engine`): the engine schedules and retries, and the
landing in the memory has the last word. Nothing of the extra is imported before it is used.
"""

from __future__ import annotations

from reverie.lazy import offered

__getattr__ = offered(
    __name__,
    {
        "engine": "FleetWorker WorkerOptions enqueue init open_fleet",
        "here": "ID LOCK at_work home_id lives",
        "jobs": "Job JobEnd Progress TEAM TakenJob checked_kinds checked_tenant memory_id nightly "
        "of_session",
        "ledger": "BEGUN FleetLedger TRIES",
        "local": "FILE RunTotals open_local run_local",
        "planning": "PlanRequest plan",
        "rates": "Limits MeteredModel Rates Share TenantPurse WINDOW key_name set_budget spent "
        "until_tomorrow",
        "tables": "AT_ONCE KEPT_DAYS",
        "words": "REASONS in_words",
        "work": "BACKOFF FleetTask JobWork LOG TASKS Workshop ended",
    },
)
