"""A database that dies and comes back while people write: nothing acknowledged is lost."""

from __future__ import annotations

import json
import sys
import tempfile
import threading
import time
from contextlib import closing
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import pytest

from reverie.team import DatabaseAway, HttpRefusal, TeamStore, open_database
from tests.conftest import Scale
from tests.postgres import restart
from tests.processes import running

from .conftest import HERE, draft

pytestmark = [pytest.mark.spec("11.restart"), pytest.mark.integration]


class Writer(threading.Thread):
    """Writes one file after another, and remembers what was answered."""

    def __init__(self, store: TeamStore, name: str, count: int) -> None:
        super().__init__(daemon=True)
        self.store, self.who, self.count = store, name, count
        self.token = store.create_token(org="acme", repo="acme/reader", author=name)[1]
        self.acknowledged: dict[str, str] = {}
        self.failures = 0
        self.refused: set[int] = set()

    def run(self) -> None:
        until = time.monotonic() + 120
        number = 0
        while len(self.acknowledged) < self.count and time.monotonic() < until:
            number += 1
            key, text = f"{self.who}-{number}.md", f"{self.who} {number}"
            try:
                tag = self.store.tag(HERE)
                self.store.put(HERE, [draft(key, text)], tag, self.token)
                self.acknowledged[key] = text
            except DatabaseAway:
                self.failures += 1
            except HttpRefusal as error:
                self.refused.add(error.status)
                time.sleep(0.05)


@pytest.mark.parametrize("how", ["fast", "immediate"])
def test_a_restart_in_the_middle_loses_nothing(how: str, own_postgres: Any, scale: Scale) -> None:
    """`immediate` is what a crash leaves: the server recovers from its log."""
    own_postgres.psql("CREATE DATABASE team")
    url = own_postgres.get_uri(database="team")
    with closing(TeamStore(open_database(url), now=time.time)) as store:
        writers = [Writer(store, f"w{n}", scale.pick(60, 200)) for n in range(4)]
        for one in writers:
            one.start()
        for _ in range(scale.pick(2, 10)):
            time.sleep(0.4)
            restart(own_postgres, how)
        assert any(one.is_alive() for one in writers)  # they were at work
        for one in writers:
            one.join(150)
        found = store.contents(HERE).contents
        for one in writers:
            assert len(one.acknowledged) == one.count
            assert one.refused <= {412, 429}
            assert {key: found[key] for key in one.acknowledged} == one.acknowledged


class Reader(threading.Thread):
    """Asks the server over HTTP without pause, and remembers what it answered."""

    def __init__(self, url: str, token: str) -> None:
        super().__init__(daemon=True)
        self.url, self.token = url, token
        self.answers: set[tuple[int, str | None]] = set()
        self.over = False

    def run(self) -> None:
        where = urlsplit(self.url)
        while not self.over:
            with closing(HTTPConnection(where.hostname or "", where.port, timeout=60)) as line:
                head = {"Authorization": f"Bearer {self.token}"}
                line.request("GET", "/api/team_memory?repo=acme/reader&view=hashes", headers=head)
                answer = line.getresponse()
                answer.read()
                self.answers.add((answer.status, answer.headers["Retry-After"]))


def test_a_restart_is_answered_503_and_logged_in_one_line(own_postgres: Any) -> None:
    own_postgres.psql("CREATE DATABASE team")
    url = own_postgres.get_uri(database="team")
    with closing(TeamStore(open_database(url), now=time.time)) as store:
        token, _ = store.create_token(org="acme", repo="acme/reader", author="reader")
    line = [sys.executable, "-m", "reverie.apps.cli", "team", "serve", "--port", "0", "--json"]
    with (
        tempfile.TemporaryFile("w+") as told,
        running([*line, "--database", url], stderr=told) as server,
    ):
        assert server.stdout is not None
        ready = json.loads(server.stdout.readline())
        readers = [Reader(ready["url"], token) for _ in range(4)]
        for one in readers:
            one.start()
        time.sleep(0.5)
        restart(own_postgres, "immediate", pause=12)
        time.sleep(1)
        for one in readers:
            one.over = True
            one.join(60)
        told.seek(0)
        lines = told.read().splitlines()
    answers = set[tuple[int, str | None]]().union(*(one.answers for one in readers))
    assert answers == {(200, None), (503, "5")}
    (said,) = lines  # neither a traceback nor a line for each attempt
    assert "The database does not answer" in said
