"""The day's budget: counted before, settled after, shared between processes."""

from __future__ import annotations

import multiprocessing
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from reverie.errors import BudgetExceeded
from reverie.session import Budget, MeteredRetries, ask, weight
from reverie.settings import DEFAULTS
from reverie.store import Folder
from reverie.testing import ManualClock, reply
from reverie.transcript import Task, Usage
from reverie.wire import Request, so_far
from reverie.world import Capabilities, Event, ForkSpec, RetryNotice, complete

from .doors import opened

pytestmark = pytest.mark.spec("B18.budget")


def test_the_price_of_a_request():
    assert weight(Usage(100, 1_000, 200, 10, 80), DEFAULTS) == pytest.approx(
        100 + 100 + 120 * 1.25 + 80 * 2 + 50
    )


def test_a_reservation_counts_until_it_is_settled(tmp_path: Path):
    budget = Budget(Folder(tmp_path), DEFAULTS, ManualClock())
    one = budget.reserve("dream", 1_000)
    assert (budget.spent().weighted, budget.spent().calls) == (1_000, 1)
    budget.settle(one, Usage(10, 0, 0, 2))
    assert (budget.spent().weighted, budget.spent().calls) == (20, 1)


def test_at_the_limit_it_stops_and_says_so(tmp_path: Path):
    clock = ManualClock()
    budget = Budget(Folder(tmp_path), replace(DEFAULTS, background_tokens_per_day=100), clock)
    budget.reserve("dream", 100)
    with pytest.raises(BudgetExceeded, match="100 of 100 price-weighted tokens") as error:
        budget.reserve("dream", 1)
    assert "background_tokens_per_day" in str(error.value)
    assert budget.spent().calls == 1
    clock.time += 86_400
    budget.reserve("dream", 100)


@pytest.mark.parametrize("price", ["-1000000", "-0.01", "1e400", "NaN"])
def test_a_price_that_no_request_has_gives_nothing_back(tmp_path: Path, price: str):
    budget = Budget(Folder(tmp_path), DEFAULTS, ManualClock())
    one = budget.reserve("dream", 5)
    (file,) = (tmp_path / "usage").iterdir()
    line = f'{{"id": "{one.id}", "source": "dream", "spent": {price}}}\n'
    file.write_bytes(file.read_bytes() + line.encode())
    assert (budget.spent().weighted, budget.spent().calls) == (5, 1)


def test_a_garbage_line_in_the_ledger_is_no_reason_to_stop(tmp_path: Path):
    budget = Budget(Folder(tmp_path), DEFAULTS, ManualClock())
    budget.reserve("dream", 5)
    (file,) = (tmp_path / "usage").iterdir()
    file.write_bytes(file.read_bytes() + b"\x00garbage\n[1]\n")
    budget.reserve("dream", 5)
    assert budget.spent().calls == 2


def test_whatever_a_line_of_the_ledger_holds_is_no_reason_to_stop(tmp_path: Path):
    budget = Budget(Folder(tmp_path), DEFAULTS, ManualClock())
    budget.reserve("dream", 5)
    (file,) = (tmp_path / "usage").iterdir()
    lines = [
        b"[" * 100_000,
        b'{"id":"a","spent":1' + b"0" * 400 + b"}",
        b'{"id":"b","spent":1e999}',
    ]
    file.write_bytes(file.read_bytes() + b"\n".join(lines) + b"\n")
    assert budget.spent().calls == 1


class Stumbling:
    """A provider that tries three times."""

    name = "m1"
    capabilities = Capabilities()

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        for attempt in (1, 2):
            yield RetryNotice(attempt, 0.0, "overloaded")
        yield reply("done")


@pytest.mark.spec("B18.tries")
async def test_each_try_of_a_provider_counts(home: Path, tmp_path: Path):
    (tmp_path / "work").mkdir()
    async with opened(home, tmp_path / "work", model=Stumbling()) as s:
        await s.add("go")
        await s.prepare()
        await s.observe(reply("an answer"))
        await s.run_fork(ForkSpec("notes", "write notes", Task("notes")))
        assert s.budget is not None
        assert s.budget.spent().calls == 3
        await ask(s, so_far(s.view))
        assert s.budget.spent().calls == 6
        limit = replace(DEFAULTS, background_calls_per_day=8)
        tight = Budget(Folder(home), limit, s.world.clock)
        request = so_far(s.view)
        tight.reserve("notes", 1)
        with pytest.raises(BudgetExceeded):
            await complete(MeteredRetries(Stumbling(), tight, limit), request)
        assert tight.spent().calls == 8


def reserve_many(root: str, tries: int, queue) -> None:
    budget = Budget(Folder(root), replace(DEFAULTS, background_calls_per_day=20), ManualClock())
    won = 0
    for _ in range(tries):
        try:
            budget.reserve("x", 1)
            won += 1
        except BudgetExceeded:
            pass
    queue.put(won)


def test_processes_share_one_limit(tmp_path: Path):
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    workers = [
        context.Process(target=reserve_many, args=(str(tmp_path), 10, queue)) for _ in range(4)
    ]
    for worker in workers:
        worker.start()
    won = [queue.get(timeout=60) for _ in workers]
    for worker in workers:
        worker.join(60)
    assert sum(won) == 20
