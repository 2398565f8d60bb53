"""Many writers on several server processes, cut off, killed and paused: no update is lost.

Clients write to one repository through real server processes on one database, each from what it
read. Connections are cut in the middle, requests sent twice, servers killed and started again, or
stopped for a while. What every client saw is recorded, and a checker that knows nothing of the
server looks for what cannot be.
"""

from __future__ import annotations

import json
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress

import httpx2
import pytest

from reverie.team import TeamStore, open_database
from tests import tally
from tests.conftest import Scale
from tests.processes import end

from .checker import Done, faults
from .conftest import HERE, REPO

pytestmark = [pytest.mark.spec("11.linearizable")]


class Fleet:
    """Server processes on one database."""

    def __init__(self, database: str, count: int) -> None:
        self.database = database
        self.running: list[subprocess.Popen[bytes]] = []
        self.ports: list[int] = []
        try:
            for at in range(count):
                self.ports.append(self._start(at, 0))
        except BaseException:
            self.close()
            raise

    def _start(self, at: int, port: int) -> int:
        """On this port, or on one that is free; which one it is."""
        words = ["team", "serve", "--port", str(port), "--database", self.database, "--json"]
        process = subprocess.Popen(
            [sys.executable, "-m", "reverie.apps.cli", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.running[at:] = [process, *self.running[at + 1 :]]
        assert process.stdout is not None
        return int(json.loads(process.stdout.readline())["url"].rpartition(":")[2])

    def kill(self, at: int) -> None:
        self.running[at].kill()
        end(self.running[at])
        assert self._start(at, self.ports[at]) == self.ports[at]

    @contextmanager
    def paused(self, at: int) -> Iterator[None]:
        process = self.running[at]
        process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        for one in self.running:
            one.kill()
            end(one)


class Client(threading.Thread):
    """Reads, changes, writes, and writes down what it saw."""

    def __init__(self, name: str, ports: list[int], token: str, writes: int, seed: int) -> None:
        super().__init__(daemon=True)
        self.who = name
        self.ports = ports
        self.headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self.writes = writes
        self.chance = random.Random(seed)
        self.history: list[Done] = []
        self.acknowledged = 0

    def run(self) -> None:
        until = time.monotonic() + 240
        number = 0
        while self.acknowledged < self.writes and time.monotonic() < until:
            state = self.get()
            if state is None:
                continue
            tag, _ = state
            number += 1
            key = f"{self.chance.randrange(4)}.md"
            self.put(tag, {key: f"{self.who} {number}"})

    def _url(self) -> str:
        return f"http://127.0.0.1:{self.chance.choice(self.ports)}/api/team_memory?repo={REPO}"

    def get(self) -> tuple[str, dict[str, str]] | None:
        began = time.monotonic()
        try:
            answer = httpx2.get(self._url(), headers=self.headers, timeout=5)
        except httpx2.HTTPError:
            return None
        if answer.status_code != 200:
            return None
        texts = answer.json()["entries"]
        tag = answer.headers["etag"]
        self.history.append(Done("get", began, time.monotonic(), "", tag, texts))
        return tag, texts

    def put(self, tag: str, texts: dict[str, str]) -> None:
        began = time.monotonic()
        body = json.dumps({"entries": texts}).encode()
        headers = {**self.headers, "If-Match": tag}
        what = self.chance.random()
        if what < 0.05:
            self._cut(headers, body)
            self.history.append(Done("put", began, time.monotonic(), tag, "", texts))
            return
        made = ""
        try:
            answer = httpx2.put(self._url(), content=body, headers=headers, timeout=5)
            if answer.status_code == 200:
                made = answer.headers["etag"]
                self.acknowledged += 1
            elif answer.status_code in (412, 429):
                return  # surely not taken
        except httpx2.HTTPError:
            pass
        self.history.append(Done("put", began, time.monotonic(), tag, made, texts))
        if what > 0.95:  # the same once more, as a client does that did not hear the answer
            with suppress(httpx2.HTTPError):
                again = httpx2.put(self._url(), content=body, headers=headers, timeout=5)
                if again.status_code == 200:  # only right where the first was never taken
                    self.history.append(
                        Done("put", began, time.monotonic(), tag, again.headers["etag"], texts)
                    )

    def _cut(self, headers: dict[str, str], body: bytes) -> None:
        """Send a request and go away, sometimes in the middle of it."""
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        head = (
            f"PUT /api/team_memory?repo={REPO} HTTP/1.1\r\nHost: 127.0.0.1\r\n{lines}"
            f"Content-Length: {len(body)}\r\n\r\n"
        ).encode()
        whole = head + body
        sent = whole[: self.chance.choice([len(whole), len(whole) - 1, len(head), 20])]
        with (
            suppress(OSError),
            socket.create_connection(("127.0.0.1", self.chance.choice(self.ports)), 5) as link,
        ):
            link.sendall(sent)


def course(
    database: str, servers: int, clients: int, writes: int, kills: int, seed: int
) -> tuple[list[Done], dict[str, str], int]:
    """Let them all loose; what was seen, what is there in the end, and how many writes counted."""
    with closing(TeamStore(open_database(database), now=time.time)) as store:
        return _course(store, database, servers, clients, writes, kills, seed)


def _course(
    store: TeamStore,
    database: str,
    servers: int,
    clients: int,
    writes: int,
    kills: int,
    seed: int,
) -> tuple[list[Done], dict[str, str], int]:
    tokens = [store.create_token(org="acme", repo=REPO, author=f"c{n}")[0] for n in range(clients)]
    fleet = Fleet(database, servers)
    chance = random.Random(seed)
    people = [
        Client(f"c{n}", fleet.ports, tokens[n], writes, seed * 1000 + n) for n in range(clients)
    ]
    try:
        for one in people:
            one.start()
        for _ in range(kills):
            time.sleep(0.3)
            at = chance.randrange(servers)
            if chance.random() < 0.5:
                fleet.kill(at)
                tally.counted("kills", drawn=True)
            else:
                with fleet.paused(at):
                    time.sleep(0.3)
                tally.counted("stops", drawn=True)
        for one in people:
            one.join(300)
    finally:
        fleet.close()
    state = store.contents(HERE)
    moment = time.monotonic()
    history = [done for one in people for done in one.history]
    history.append(Done("get", moment, moment, "", state.tag, dict(state.contents)))
    return history, dict(state.contents), sum(one.acknowledged for one in people)


def sqlite_url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue("tmp_path") / "team.sqlite3")


def postgres_url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue("postgres_url"))


@pytest.mark.integration
@pytest.mark.parametrize(
    ("url", "servers", "clients"),
    [(postgres_url, 3, 16), (sqlite_url, 1, 8)],
    ids=["postgresql", "sqlite"],
)
def test_no_update_is_lost_and_one_order_explains_all(
    request: pytest.FixtureRequest,
    scale: Scale,
    url: Callable[[pytest.FixtureRequest], str],
    servers: int,
    clients: int,
) -> None:
    clients = scale.pick(clients, clients * 2)
    writes, kills = scale.pick(4, 25), scale.pick(4, 40)
    history, _, counted = course(url(request), servers, clients, writes, kills, scale.seed + 1)
    assert faults(history) == []
    assert counted == clients * writes


# The checker itself


def put(on: str, made: str, at: float, **texts: str) -> Done:
    return Done("put", at, at + 0.5, on, made, texts)


def get(made: str, at: float, **texts: str) -> Done:
    return Done("get", at, at + 0.5, "", made, texts)


GOOD = [
    put('"0"', '"n-1"', 1, a="1"),
    get('"n-1"', 2, a="1"),
    put('"n-1"', "", 3, a="2"),  # never answered, and taken
    put('"n-1"', "", 3, a="3"),  # never answered, and not taken
    get('"n-2"', 4, a="2"),
    put('"n-2"', '"n-3"', 5, b="x"),
    get('"n-3"', 6, a="2", b="x"),
]


def test_the_checker_accepts_what_can_be() -> None:
    assert faults(GOOD) == []


@pytest.mark.parametrize(
    ("seeded", "why"),
    [
        ([put('"n-2"', '"n-3"', 5.1, b="y")], "lost update"),
        ([put('"n-2"', '"n-4"', 5.1, b="y")], "made"),
        ([get('"n-3"', 7, a="2")], "no write explains"),
        ([get('"n-2"', 4.1, a="3")], "no write explains"),
        ([get('"n-1"', 8, a="1")], "went back"),
        ([get('"n-5"', 8, a="2")], "made by nobody"),
    ],
)
def test_the_checker_sees_seeded_faults(seeded: list[Done], why: str) -> None:
    found = faults([*GOOD, *seeded])
    assert any(why in one for one in found), found
