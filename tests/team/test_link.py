"""Two people on two networks, joined by a link that is cut and restored: both end up with the
same files, and nothing that anybody wrote is lost.

The networks are namespaces of this test's own, which go with it; the server is in a third one
between them. Each sync is a process within a network, over real TCP.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any

import pytest

from reverie.team import TeamStore, open_database
from tests.conftest import Scale
from tests.processes import running

from .conftest import HERE, REPO

pytestmark = [
    pytest.mark.spec("11.link"),
    pytest.mark.integration,
    pytest.mark.needs("ip"),
]
PORT = 8788
SYNC = """
import json, sys, time
from pathlib import Path
from reverie.store.memory_store import MemoryStore
from reverie.team.client import Offline, TeamClient
from reverie.team.sync import sync_memory
folder, url, token = Path(sys.argv[1]), *sys.argv[2:]
with MemoryStore(folder / "memory", folder / "history", folder, now=time.time) as memories:
    try:
        client = TeamClient(url, token, "acme/reader", seconds=2)
        print(json.dumps(sync_memory(memories, client, now=time.time).value()))
    except Offline as error:
        print(json.dumps({"offline": str(error)}))
"""


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, timeout=20)


class Network:
    """A namespace, and its link to the server's."""

    def __init__(self, name: str, hub: str, number: int) -> None:
        self.name, self.hub = name, hub
        self.near, self.far = f"{name}n", f"{name}f"
        self.server = f"192.0.2.{4 * number + 1}"
        ip("link", "add", self.near, "netns", name, "type", "veth", "peer", self.far, "netns", hub)
        ip("-n", name, "addr", "add", f"192.0.2.{4 * number + 2}/30", "dev", self.near)
        ip("-n", hub, "addr", "add", f"{self.server}/30", "dev", self.far)
        self.restore()

    def cut(self, *, here: bool) -> None:
        """At this end, where it is noticed, or at the other."""
        end = (self.name, self.near) if here else (self.hub, self.far)
        ip("-n", end[0], "link", "set", end[1], "down")

    def restore(self) -> None:
        ip("-n", self.name, "link", "set", self.near, "up")
        ip("-n", self.hub, "link", "set", self.far, "up")

    def line(self, *words: str) -> list[str]:
        return ["ip", "netns", "exec", self.name, sys.executable, *words]


class Person:
    """A folder in a network of its own."""

    def __init__(self, network: Network, folder: Path, token: str) -> None:
        self.network, self.folder, self.token = network, folder, token
        self.shared = folder / "memory" / "team"
        self.shared.mkdir(parents=True)
        self.owed: set[str] = set()

    def write(self, key: str, text: str) -> None:
        (self.shared / key).write_text(text, "utf-8")

    def syncing(self) -> AbstractContextManager[subprocess.Popen[str]]:
        url = f"http://{self.network.server}:{PORT}"
        return running(self.network.line("-c", SYNC, str(self.folder), url, self.token))

    def sync(self) -> dict[str, Any]:
        """One sync; what stood here when one went through must never be lost again."""
        here = self.files().values()
        with self.syncing() as process:
            done = answer(process)
        if "offline" not in done:
            self.owed.update(here)
        return done

    def sync_again(self) -> dict[str, Any]:
        """Restore the link, and try until it carries again."""
        self.network.restore()
        for _ in range(10):
            done = self.sync()
            if "offline" not in done:
                return done
        raise AssertionError("the link does not come back")

    def files(self) -> dict[str, str]:
        return {one.name: one.read_text("utf-8") for one in sorted(self.shared.iterdir())}

    def lost(self) -> list[str]:
        return [one.read_text("utf-8") for one in self.folder.glob("history/team-lost/*/*")]


def answer(process: subprocess.Popen[str]) -> dict[str, Any]:
    said, _ = process.communicate(timeout=90)
    assert process.returncode == 0
    return dict(json.loads(said))


@pytest.fixture
def networks() -> Iterator[list[Network]]:
    """Two networks, each with a link to a third; all three go with the test."""
    if os.geteuid() != 0:
        pytest.skip("needs root: only root makes networks")
    names = [f"rv{os.getpid()}{letter}" for letter in "hab"]
    with ExitStack() as stack:
        for name in names:
            try:
                ip("netns", "add", name)
            except subprocess.CalledProcessError as error:
                pytest.skip(f"needs netns: {error.stderr.decode().strip()}")
            stack.callback(ip, "netns", "del", name)
            ip("-n", name, "link", "set", "lo", "up")
        yield [Network(name, names[0], number) for number, name in enumerate(names[1:])]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[TeamStore]:
    made = TeamStore(open_database(str(tmp_path / "team.sqlite3")), now=time.time)
    yield made
    made.close()


@pytest.fixture
def server(networks: list[Network], store: TeamStore, tmp_path: Path) -> Iterator[int]:
    """The process that serves both networks."""
    words = ["team", "serve", "--host", "0.0.0.0", "--port", str(PORT), "--json"]
    command = [sys.executable, "-m", "reverie.apps.cli", *words]
    there = ["ip", "netns", "exec", networks[0].hub]
    with running([*there, *command, "--database", tmp_path / "team.sqlite3"]) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["url"].endswith(str(PORT))
        yield process.pid  # `ip netns exec` becomes what it runs


@pytest.fixture
def people(
    networks: list[Network], server: int, store: TeamStore, tmp_path: Path
) -> tuple[Person, Person]:
    assert server
    ines, tomas = (
        Person(network, tmp_path / name, store.create_token(org="acme", repo=REPO, author=name)[0])
        for network, name in zip(networks, ("ines", "tomas"), strict=True)
    )
    return ines, tomas


def reached(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until


def nothing_is_lost(store: TeamStore, *people: Person) -> None:
    """Every text stands in a version that the server keeps, or beside its writer's history."""
    kept = {store.version(HERE, one.key, one.version) for one in store.log(HERE, 100_000)}
    for one in people:
        assert one.owed <= {*kept, *one.lost()}
        assert one.files() == dict(store.contents(HERE).contents)


def test_a_link_that_is_cut_and_restored(people: tuple[Person, Person], store: TeamStore) -> None:
    ines, tomas = people
    ines.write("shared.md", "as it was\n")
    assert ines.sync()["pushed"] == ["shared.md"]
    assert tomas.sync()["pulled"] == ["shared.md"]
    for here in (True, False):
        tomas.network.cut(here=here)
        ines.write("shared.md", f"by ines {here}\n")
        tomas.write("shared.md", f"by tomas {here}\n")
        tomas.write(f"tomas-{here}.md", "only mine\n")
        assert ines.sync()["pushed"] == ["shared.md"]
        assert "does not answer" in tomas.sync()["offline"]
        assert tomas.files()["shared.md"] == f"by tomas {here}\n"
        done = tomas.sync_again()
        assert (done["conflicts"], done["pushed"]) == (["shared.md"], [f"tomas-{here}.md"])
        assert f"by tomas {here}\n" in tomas.lost()
        ines.sync()
        nothing_is_lost(store, ines, tomas)


def test_a_link_that_is_cut_in_the_middle_of_a_push(
    people: tuple[Person, Person], store: TeamStore, server: int
) -> None:
    """The server stands still when the link goes, so that an answer is surely on its way; a write
    that it had received lands, and whoever sent it does not know."""
    ines, tomas = people
    for n in range(15):
        tomas.write(f"n{n:02}.md", f"{n:02} " * 50_000)
    with tomas.syncing() as pushing:
        reached(lambda: len(store.log(HERE)) > 0)
        os.kill(server, signal.SIGSTOP)
        tomas.network.cut(here=False)
        os.kill(server, signal.SIGCONT)
        assert "offline" in answer(pushing)
    there = len(store.hashes(HERE).checksums)
    assert 0 < there < 15
    ines.sync()
    assert len(ines.files()) == there
    done = tomas.sync_again()
    assert 0 < len(done["pushed"]) <= 15 - there  # what was still on its way may have come since
    assert done["conflicts"] == []
    ines.sync()
    nothing_is_lost(store, ines, tomas)


def test_links_that_come_and_go(
    people: tuple[Person, Person], store: TeamStore, scale: Scale
) -> None:
    chance = random.Random(scale.seed)
    for turn in range(scale.pick(6, 60)):
        for number, one in enumerate(people):
            if chance.random() < 0.4:
                one.network.cut(here=chance.random() < 0.5)
            for _ in range(chance.randrange(3)):
                key = f"{chance.randrange(4)}.md"
                one.write(key, f"{number} in turn {turn}: {chance.random()}\n")
            if chance.random() < 0.3:
                (one.shared / f"{chance.randrange(4)}.md").unlink(missing_ok=True)
            if chance.random() < 0.7:
                one.sync()
            one.network.restore()
    for one in (*people, *people):
        one.sync_again()
    nothing_is_lost(store, *people)
