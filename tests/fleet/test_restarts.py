"""A database that is restarted while jobs run, reached by socket and by TCP: all of them land."""

from __future__ import annotations

import socket
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Scale
from tests.fleet.crew import Hire, until
from tests.fleet.stage import jobs_for, make_memories, wrong
from tests.fleet.test_trial import states
from tests.postgres import restart

pytestmark = [pytest.mark.spec("9.fleet-restart"), pytest.mark.integration]


class Server:
    """A PostgreSQL of the test's own, on a socket and on a port."""

    def __init__(self, postgres: Any) -> None:
        self.postgres, self.data = postgres, Path(postgres.pgdata)
        postgres.psql("CREATE DATABASE fleet")
        hba = self.data / "pg_hba.conf"
        hba.write_text(hba.read_text() + "\nhost all all 127.0.0.1/32 trust\n")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        self.restart("fast")

    def restart(self, how: str) -> None:
        restart(self.postgres, how, f"-h 127.0.0.1 -p {self.port}")

    def url(self, way: str) -> str:
        place = f"127.0.0.1:{self.port}" if way == "tcp" else ""
        more = "" if way == "tcp" else f"?host={self.data}&port={self.port}"
        return f"postgresql://postgres@{place}/fleet{more}"


@pytest.fixture
def server(own_postgres: Any) -> Server:
    return Server(own_postgres)


@pytest.mark.parametrize(("way", "how"), [("socket", "fast"), ("tcp", "immediate")])
def test_all_jobs_land_over_a_restart(
    way: str, how: str, server: Server, hire: Hire, tmp_path: Path, scale: Scale
) -> None:
    """`immediate` is what a crash leaves: the server recovers from its log."""
    from reverie.fleet import enqueue, init, open_fleet

    url, home = server.url(way), tmp_path / "home"
    nights = scale.pick(3, 20)
    roots = make_memories(home, tmp_path, 8)
    init(url)
    with closing(open_fleet(url)) as ledger:
        ledger.check()
        ledger.add(jobs_for(roots, nights))
        enqueue(ledger)
        crew = hire(url, home, 2, "0.7")
        until(lambda: bool(ledger.jobs(state="running")), crew)
        for _ in range(scale.pick(2, 10)):
            time.sleep(1.0)
            server.restart(how)
        assert ledger.patient(ledger.open_jobs) > 0  # they were at work
        until(lambda: not ledger.patient(ledger.open_jobs), crew, scale.pick(240.0, 900.0))
        assert all(one.wait(120) == 0 for one in crew.all), crew.said()
        assert states(ledger) == {"done": len(roots) * nights}
    assert wrong(home, roots, nights) == (0, 0)
