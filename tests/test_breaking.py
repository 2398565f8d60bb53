"""The harnesses that break courses find what is wrong with a careless one."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from reverie.errors import StoreError
from tests.breaking import OS, SQLITE, Acked, cut, failed, killed
from tests.faults import Ack

pytestmark = [pytest.mark.spec("1.courses")]


Driver = Callable[..., int]


@pytest.fixture(autouse=True)
def _counts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Courses that are there to be found out are no work of ours."""
    monkeypatch.delenv("REVERIE_TALLY", raising=False)


class Careless:
    """Writes a file in place, believes every count, and syncs nothing."""

    def __init__(self, chance: Random) -> None:
        self.text = b"new words " * chance.randint(2, 9)

    def begin(self, base: Path) -> None:
        (base / "a.txt").write_bytes(b"old words")

    def act(self, base: Path, ack: Ack) -> None:
        try:
            fd = os.open(base / "a.txt", os.O_WRONLY | os.O_TRUNC)
            os.write(fd, self.text)
            os.close(fd)
        except OSError as error:
            raise StoreError(str(error)) from error
        ack("written")

    def check(self, base: Path, acked: Acked) -> None:
        found = (base / "a.txt").read_bytes()
        assert found in ([self.text] if acked else [b"old words", self.text])


class Loose:
    """A database that does not wait for the disk."""

    def __init__(self, chance: Random) -> None:
        self.count = chance.randint(1, 3)

    def begin(self, base: Path) -> None:
        self._open(base).close()

    def _open(self, base: Path) -> sqlite3.Connection:
        made = sqlite3.connect(base / "a.sqlite3", isolation_level=None)
        made.execute("PRAGMA journal_mode=WAL")
        made.execute("PRAGMA synchronous=OFF")
        made.execute("CREATE TABLE IF NOT EXISTS t (n)")
        return made

    def act(self, base: Path, ack: Ack) -> None:
        connection = self._open(base)
        for number in range(self.count):
            connection.execute("INSERT INTO t VALUES (?)", (number,))
            ack(str(number))
        connection.close()

    def check(self, base: Path, acked: Acked) -> None:
        connection = self._open(base)
        found = [str(row[0]) for row in connection.execute("SELECT n FROM t ORDER BY n")]
        connection.close()
        assert found[: len(acked)] == list(acked)


@pytest.mark.parametrize("driver", [killed, failed, cut])
def test_a_careless_writer_is_found_by_each(driver: Driver) -> None:
    with pytest.raises(AssertionError) as found:
        driver(Careless, Random(1), 60, OS)
    assert any("acknowledged" in note for note in found.value.__notes__)


def test_a_database_that_does_not_sync_is_found_by_a_power_cut() -> None:
    killed(Loose, Random(1), 6, SQLITE)
    with pytest.raises((AssertionError, sqlite3.DatabaseError)):
        cut(Loose, Random(1), 60, SQLITE)
