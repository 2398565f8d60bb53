"""Sixteen workers and one key: rates and budget, judged by the provider's own log.

The judge reads what arrived at the simulated provider and when, and shares no code with the
ledger.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from reverie.fleet import FleetLedger, Limits, Rates, set_budget, spent_by_tenant
from reverie.simulator import Engine, error, serving
from tests.conftest import ROOT, Scale
from tests.fleet.stage import jobs_for, make_memories
from tests.processes import end

pytestmark = [pytest.mark.spec("9.fleet-paid"), pytest.mark.integration]
PROCESSES, EACH = 4, 4
REQUESTS, INPUT, OUTPUT = 120.0, 400_000.0, 60_000.0  # a minute
MOST = 1_000  # tokens of an answer


def most_in(events: list[tuple[float, float]], seconds: float) -> float:
    return max(sum(n for at, n in events if b <= at <= b + seconds) for b, _ in events)


def allowed(limit: float, seconds: float) -> float:
    """What may arrive in so many seconds: a share of a minute, a burst, and what travelled."""
    return limit * min(1.0, (seconds + 8.0 + 2.0) / 70.0)


def test_rates_and_budget_hold_at_the_provider(
    postgres_ledger: FleetLedger, postgres_url: str, tmp_path: Path, scale: Scale
) -> None:
    from reverie.fleet import enqueue

    home, ledger = tmp_path / "home", postgres_ledger
    count = scale.pick(36, 400)
    roots = make_memories(home, tmp_path, count)
    Rates(ledger).set_limits("*", Limits(REQUESTS, INPUT, OUTPUT))
    budget = scale.pick(30, 300) * 6_000.0
    set_budget(ledger, "default", budget, None)
    ledger.add(jobs_for(roots, 1))
    enqueue(ledger)
    asked: list[float] = []

    def answer(_: Mapping[str, Any]) -> Any:
        asked.append(time.time())
        if len(asked) == 5:
            return error(429, retry_after=4)
        return "Nothing is to be changed."

    engine = Engine(answer)
    with serving(engine) as address:
        workers = [_worker(postgres_url, home, address) for _ in range(PROCESSES)]
        try:
            _until_only_the_budget_is_left(ledger)
            for one in workers:
                one.terminate()
            codes = [one.wait(60) for one in workers]
        finally:
            for one in workers:
                end(one)
        log = list(engine.ledger.log)
    assert codes == [0] * PROCESSES
    done = [row for row in ledger.jobs(most=1_000) if row["state"] == "done"]
    assert 10 < len(done) < count  # the budget ended first
    whole = [one for one in log if one.path.endswith("/messages")]
    read = [
        (one.at, one.charge.read + one.charge.plain + one.charge.written_5m + one.charge.written_1h)
        for one in whole
    ]
    for seconds in (1.0, 5.0, 15.0, 30.0, 60.0):
        assert most_in([(one.at, 1.0) for one in whole], seconds) <= allowed(REQUESTS, seconds)
        assert most_in([(at, float(n)) for at, n in read], seconds) <= allowed(INPUT, seconds)
        sent = [(one.at, float(one.output)) for one in whole]
        assert most_in(sent, seconds) <= allowed(OUTPUT, seconds)
    used = sum(one.cost for one in whole)
    assert used <= budget
    assert spent_by_tenant(ledger)["default"]["tokens"] == pytest.approx(used, rel=0.02)
    refused = asked[4]
    assert not [at for at in asked if refused + 1.0 < at < refused + 4.0]  # it was left alone


def _worker(url: str, home: Path, provider_url: str) -> subprocess.Popen[bytes]:
    environ = {
        **os.environ,
        "REVERIE_HOME": str(home),
        "REVERIE_FLEET_DATABASE": url,
        "REVERIE_MAX_OUTPUT_TOKENS": str(MOST),
        "ANTHROPIC_BASE_URL": provider_url,
        "ANTHROPIC_API_KEY": "sk-ant-test",
    }
    line = [sys.executable, "-m", "reverie.apps.cli", "fleet", "work", "--workers", str(EACH)]
    line += ["--lease", "8"]
    with (home.parent / "workers.log").open("ab") as out:
        return subprocess.Popen(line, env=environ, cwd=ROOT, stderr=out, stdout=out)


def _until_only_the_budget_is_left(ledger: FleetLedger) -> None:
    until = time.monotonic() + 240
    while True:
        left = [row for row in ledger.jobs(most=1_000) if row["state"] in ("queued", "running")]
        if left and all(row["code"] == "budget" for row in left):
            return
        assert left, "all jobs were done before the budget ended"
        assert time.monotonic() < until, left
        time.sleep(0.25)
