"""Many addresses in one process: few are open, threads lose nothing, a fork begins anew."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from reverie import Memory
from reverie.session import LIMIT, MemoryPool, shared_pool
from reverie.store import Project
from reverie.world import say_nothing
from tests.conftest import Scale

pytestmark = pytest.mark.spec("18.pool")


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs proc: it counts descriptors")
def test_a_thousand_addresses_stay_under_two_hundred_descriptors(home: Path, scale: Scale) -> None:
    before, most = descriptors(), 0
    for number in range(scale.pick(60, 1_000)):
        memory = Memory("shop", user=f"user {number}")
        memory.add(f"User {number} likes tea")
        if number % 20 == 0:
            assert [one.text for one in memory.search("tea")] == [f"User {number} likes tea"]
        most = max(most, descriptors() - before)
    assert most < 200
    assert len(shared_pool()) <= LIMIT


def part(home: Path, user: str) -> Project:
    return Project.at("shop", home=home, user=user)


def test_the_least_recently_used_is_closed_and_one_in_use_never(home: Path) -> None:
    pool = MemoryPool(2)
    one, two, three = (part(home, name) for name in "abc")
    with pool.lend(one, say_nothing) as held:
        with pool.lend(two, say_nothing) as first:
            pass
        with pool.lend(three, say_nothing):
            assert len(pool) == 2
        assert held.store.folder.keys() == ()
    with pool.lend(two, say_nothing) as again:
        assert again is not first
    with pool.lend(three, say_nothing) as kept, pool.lend(three, say_nothing) as same:
        assert kept is same


def test_six_threads_that_add_and_search_lose_nothing(home: Path, scale: Scale) -> None:
    each = scale.pick(3, 20)
    failed: list[BaseException] = []

    def work(number: int) -> None:
        try:
            memory = Memory("shop", user="ada")
            for n in range(each):
                memory.add(f"Zebra {number}-{n} is striped", name="zebra")
                assert any(
                    f"{number}-{n} " in one.text for one in memory.search("zebra", limit=999)
                )
                Memory("shop", user=f"u{number}").add(f"Own {n}")
        except BaseException as error:  # noqa: BLE001 - told below
            failed.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    found = {one.text for one in Memory("shop", user="ada").list()}
    assert found == {f"Zebra {number}-{n} is striped" for number in range(6) for n in range(each)}
    assert all(len(Memory("shop", user=f"u{number}").list()) == each for number in range(6))


PROCESS = """
import sys, reverie
memory = reverie.Memory("shop", user="ada")
for n in range(3):
    memory.add(f"Zebra {sys.argv[1]}-{n} is striped", name="zebra")
"""


def test_several_processes_that_add_lose_nothing(home: Path) -> None:
    running = [subprocess.Popen([sys.executable, "-c", PROCESS, str(n)]) for n in range(3)]
    assert [one.wait() for one in running] == [0, 0, 0]
    assert len(Memory("shop", user="ada").list()) == 9


FORK = """
import os, reverie
from reverie.session.open_memory import shared_pool
memory = reverie.Memory("shop")
memory.add("Before the fork")
known = shared_pool()
with known.lend(memory.__project__, print):  # its locks are held while the process forks
    child = os.fork()
    if not child:
        fresh = shared_pool() is not known and len(shared_pool()) == 0
        memory.add("In the child")
        os._exit(0 if fresh and len(memory.search("fork child")) == 2 else 1)
    ended = os.waitpid(child, 0)[1]
memory.add("In the parent")
assert ended == 0 and shared_pool() is known
assert len(memory.list()) == 3 and not memory.check().faults
"""


def test_a_fork_of_the_process_begins_anew_and_corrupts_nothing(home: Path) -> None:
    run = [sys.executable, "-c", FORK]
    done = subprocess.run(run, check=False, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_pool_is_one_for_the_process() -> None:
    assert shared_pool() is shared_pool()
    assert LIMIT == 32
