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
        "ledger": "BEGUN FleetLedger TRIES",
        "plan": "ClaimedJob ID Job JobEnd LOCK PlanRequest Progress TEAM at_work checked_kinds "
        "checked_tenant home_id lives memory_id nightly of_session plan_jobs",
        "rates": "Limits MeteredModel RateUse Rates TenantBudget WINDOW key_name set_budget "
        "spent_by_tenant until_tomorrow",
        "status": "REASONS in_words",
        "tables": "AT_ONCE KEPT_DAYS MIGRATIONS STEPS seeing",
        "worker": "BACKOFF FILE FleetTask JobHandle LOG RunTotals TASKS WorkerContext "
        "dream_shared job_end open_local run_local",
    },
)
