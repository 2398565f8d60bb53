"""A fleet on PostgreSQL, and worker processes that end with the test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from reverie.fleet import FleetLedger
from reverie.testing import ManualClock
from tests.fleet.crew import Crew, Hire
from tests.fleet.fleet import Fleet


@pytest.fixture
def hand() -> ManualClock:
    return ManualClock(1_790_000_000.0)


@pytest.fixture
def postgres_ledger(postgres_url: str) -> Iterator[FleetLedger]:
    """The ledger of a fleet without jobs."""
    from reverie.fleet import init, open_fleet

    init(postgres_url)
    ledger = open_fleet(postgres_url)
    try:
        ledger.check()
        yield ledger
    finally:
        ledger.close()


@pytest.fixture
def fleet(postgres_url: str, tmp_path: Path) -> Iterator[Fleet]:
    made = Fleet(postgres_url, tmp_path)
    yield made
    made.ledger.close()


@pytest.fixture
def hire() -> Iterator[Hire]:
    """Hires crews; whatever becomes of the test, none of them is left."""
    crews: list[Crew] = []

    def hired(url: str, home: Path, count: int, body: str) -> Crew:
        crews.append(Crew(url, home, count, body))
        return crews[-1]

    yield hired
    for crew in crews:
        crew.end()
