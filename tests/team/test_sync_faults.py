"""A sync that is killed, fails and loses power at any call: both sides still end with the same
words, the newest of one of them, and what lost is kept."""

from __future__ import annotations

import errno
import itertools
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from random import Random

import pytest

from reverie.store import MemoryStore, digest
from reverie.team import (
    DatabaseAway,
    EntryChange,
    EntryVersion,
    HttpRefusal,
    Offline,
    RemoteState,
    Stale,
    SyncMode,
    TeamStore,
    open_database,
    read_files,
    sync_memory,
)
from reverie.topics import Origin, Trust, new
from tests.breaking import SQLITE, Acked, attempted, cut, failed, killed
from tests.conftest import Scale
from tests.faults import Ack, run_with_error

from .conftest import HERE, draft
from .test_store_faults import writer

pytestmark = [pytest.mark.spec("1.courses")]
USER = Origin("save", Trust.USER, agent="user")


class Direct:
    """The server, in this process."""

    def __init__(self, store: TeamStore) -> None:
        self.url, self.repo = "http://team.test", HERE[1]
        self._store = store

    def state(self, known: str = "") -> RemoteState | None:
        found = self._store.contents(HERE)
        return None if found.tag == known else found

    def hashes(self, known: str = "") -> RemoteState | None:
        found = self._store.hashes(HERE)
        return None if found.tag == known else found

    def put(self, drafts: Sequence[EntryChange], expected: str) -> str:
        try:
            return self._store.put(HERE, drafts, expected, writer(self._store))
        except HttpRefusal as error:
            raise Stale(str(error)) from error
        except DatabaseAway as error:
            raise Offline(str(error)) from error

    def log(self, most: int = 100) -> list[EntryVersion]:
        return self._store.log(HERE, most)


def text_of(who: str, number: int) -> str:
    body = f"{who} {number}"
    return new("t.md", name="T", description="it", type="project", body=body).data.decode()


class SyncCourse:
    """Somebody here and a teammate write one file in turn, and syncs run between."""

    def __init__(self, chance: Random) -> None:
        self.steps = [chance.choice(["here", "there", "sync", "sync"]) for _ in range(4)]

    def begin(self, base: Path) -> None:
        with self.memories(base) as memories:
            store = self._store(base)
            memories.save("team/a.md", text_of("begun", 0).encode(), USER)
            sync_memory(memories, Direct(store), now=lambda: 1.0)
            store.close()

    def memories(self, base: Path) -> MemoryStore:
        return MemoryStore(base / "p" / "memory", base / "p" / "history", base, now=lambda: 1.0)

    def _store(self, base: Path) -> TeamStore:
        return TeamStore(open_database(str(base / "team.sqlite3")), now=lambda: 1.7e9)

    def act(self, base: Path, ack: Ack) -> None:
        store = self._store(base)
        for at, kind in enumerate([*self.steps, "sync"], start=1):
            attempted(self._step, base, store, kind, at, ack)
        store.close()
        ack("over")

    def _step(self, base: Path, store: TeamStore, kind: str, at: int, ack: Ack) -> None:
        if kind == "there":
            draft_ = draft("a.md", text_of("there", at))
            store.put(HERE, [draft_], store.tag(HERE), writer(store))
            ack(f"there {at}")
            return
        with self.memories(base) as memories:
            if kind == "here":
                memories.save("team/a.md", text_of("here", at).encode(), USER)
                ack(f"here {at}")
            else:
                sync_memory(memories, Direct(store), now=lambda: float(at))
                ack(f"synced {at}")

    def check(self, base: Path, acked: Acked) -> None:
        store = self._store(base)
        with self.memories(base) as memories:
            memories.look()
            sync_memory(memories, Direct(store), now=lambda: 99.0)
            here = memories.folder.bytes_of("team/a.md").decode()
            assert store.contents(HERE).contents["a.md"] == here, "the two sides differ"
            newest = {"here": 0, "there": 0, "synced": 0}
            for who, number in (one.split() for one in acked if " " in one):
                newest[who] = int(number)
                data = text_of(who, int(number)).encode()
                if who == "here":
                    assert memories.history.content(digest(data)) == data, "lost here"
                elif who == "there":
                    kept = [store.version(HERE, v.key, v.version) for v in store.log(HERE)]
                    assert data.decode() in kept, "lost there"
            assert here in self._expected(newest, acked), "an older text came back"
        store.close()

    def _expected(self, newest: Mapping[str, int], acked: Acked) -> set[str]:
        """The newest words of either side; ours not where they were agreed on and theirs came
        later. What was never acknowledged may be there too."""
        here, there, synced = newest["here"], newest["there"], newest["synced"]
        found = {text_of("there", there)} if there else set[str]()
        if here and (here > synced or here > there):
            found.add(text_of("here", here))
        steps = enumerate(self.steps, start=1)
        maybe = {text_of(kind, n) for n, kind in steps if f"{kind} {n}" not in acked}
        return (found or {text_of("begun", 0)}) | maybe


def test_a_sync_that_is_killed_ends_the_same(scale: Scale) -> None:
    killed(SyncCourse, Random(f"sync kills:{scale.seed}"), scale.pick(4, 250))


def test_a_sync_in_which_a_call_fails_ends_the_same(scale: Scale) -> None:
    failed(SyncCourse, Random(f"sync faults:{scale.seed}"), scale.pick(8, 800))


def test_a_sync_that_loses_power_ends_the_same(scale: Scale) -> None:
    cut(SyncCourse, Random(f"sync power:{scale.seed}"), scale.pick(8, 1_000), SQLITE)


def test_a_file_that_cannot_be_read_now_is_not_one_that_was_deleted(tmp_path: Path) -> None:
    course = SyncCourse(Random(0))
    course.begin(tmp_path)
    with course.memories(tmp_path) as memories:
        for n in range(1, 40):
            outcome = run_with_error(lambda: read_files(memories).sums, n, errno.EIO)
            assert outcome.error is not None or "a.md" in outcome.value, outcome.hit


def test_a_disk_that_fails_for_a_moment_leaves_no_text_behind(tmp_path: Path) -> None:
    """What could not land is not refused: the next round takes it, without a change there."""
    course, ticks = SyncCourse(Random(0)), itertools.count(1_700_000_000)
    course.begin(tmp_path)
    database = open_database(str(tmp_path / "team.sqlite3"))
    store = TeamStore(database, now=lambda: float(next(ticks)), tombstones=True)
    mode = SyncMode(deletions=True)
    for n in range(11, 18):
        text = text_of("there", n)
        store.put(HERE, [draft("a.md", text)], store.tag(HERE), writer(store))
        with course.memories(tmp_path) as memories:
            failing = partial(sync_memory, memories, Direct(store), now=lambda: 1.0, mode=mode)
            outcome = run_with_error(failing, n, errno.EIO, calls=["os.open"])
            assert store.contents(HERE).contents.get("a.md") == text, n
            sync_memory(memories, Direct(store), now=lambda: 2.0, mode=mode)
            assert memories.folder.bytes_of("team/a.md").decode() == text, n
        assert outcome.hit
    store.close()
