"""Changes enter a memory folder whole or not at all, and are light to ask for."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from reverie.errors import SecretFound
from reverie.settings import DEFAULTS
from reverie.store import PLAN, Changed, MemoryStore, Project, digest, is_planned, land
from reverie.testing import ManualClock
from reverie.topics import ABSENT, ForgetWords, Origin, Trust, Version, encode
from reverie.world import Notice
from tests.conftest import Scale
from tests.faults import Ack, Death, every_kill, quick_folder

pytestmark = pytest.mark.spec("9")

BY = Origin("check", Trust.USER, agent="user", note="merged")
OLD = {
    "a.md": b"The a is 1.\n",
    "b.md": b"The b is 2.\n",
    "MEMORY.md": b"- [a](a.md)\n- [b](b.md)\n",
}
CHANGES: dict[str, bytes | None] = {
    "a.md": b"The a is 1.\n\nThe b is 2.\n",
    "b.md": None,
    "MEMORY.md": b"- [a](a.md)\n",
    "c.md": b"The c.\n",
}
NEW = {key: data for key, data in CHANGES.items() if data is not None}


def opened(base: Path, said: list[Notice] | None = None) -> MemoryStore:
    heard: list[Notice] = [] if said is None else said
    clock = ManualClock(1_790_000_000.0)
    (base / "project").mkdir(parents=True, exist_ok=True)
    project = Project.at(base / "project", home=base / "home", environ={}, settings=DEFAULTS)
    return MemoryStore.of(project, now=clock.now, say=heard.append)


def filled(base: Path) -> MemoryStore:
    memories = opened(base)
    with memories.history.by(BY):
        for key, data in OLD.items():
            memories.folder.write(key, data)
    return memories


def files(memories: MemoryStore) -> dict[str, bytes]:
    root = memories.folder.root
    return {path.name: path.read_bytes() for path in root.glob("*.md")}


@pytest.fixture
def memories(tmp_path: Path) -> Iterator[MemoryStore]:
    with filled(tmp_path) as made:
        yield made


def cut_off(memories: MemoryStore, changes: Mapping[str, bytes | None]) -> None:
    """What a process leaves that died when the plan was on the disk."""
    here, rows = files(memories), list[str]()
    for key, data in changes.items():
        before = digest(here[key]) if key in here else ABSENT
        after = ABSENT if data is None else memories.history.put(data)
        rows.append(encode(Version("", key, before, after, 0.0, BY)) + "\n")
    memories.history.files.write(PLAN, "".join(rows).encode())


def test_all_lands_as_one_step_that_undo_takes_back(memories: MemoryStore) -> None:
    group = land(memories, CHANGES, files(memories), BY)
    assert files(memories) == NEW
    steps = [v for v in memories.history.log() if v.group == group]
    assert sorted(v.key for v in steps) == sorted(CHANGES)
    assert {v.origin for v in steps} == {BY}
    assert not is_planned(memories)
    memories.undo("", BY)
    assert files(memories) == OLD


def test_what_somebody_changed_meanwhile_stops_it(memories: MemoryStore) -> None:
    here = files(memories)
    (memories.folder.root / "b.md").write_bytes(b"Mine.\n")
    with pytest.raises(Changed):
        land(memories, CHANGES, here, BY)
    assert files(memories) == {**OLD, "b.md": b"Mine.\n"}
    assert not is_planned(memories)


def test_one_file_with_a_secret_stops_it(memories: MemoryStore) -> None:
    key = "AKIA" + "QYLPMN5HFIQR7XYA"
    with pytest.raises(SecretFound):
        land(memories, {**CHANGES, "d.md": f"Key: {key}\n".encode()}, OLD, BY)
    assert files(memories) == OLD
    assert not is_planned(memories)


def test_one_that_was_cut_off_is_carried_out_by_who_opens_it(tmp_path: Path) -> None:
    with filled(tmp_path) as memories:
        cut_off(memories, CHANGES)
    with opened(tmp_path) as memories:
        assert files(memories) == NEW
        assert memories.history.log()[-1].origin == BY


def test_one_that_was_cut_off_is_not_replaced_by_the_next(memories: MemoryStore) -> None:
    cut_off(memories, CHANGES)
    land(memories, {"d.md": b"The d.\n"}, {}, BY)
    assert files(memories) == {**NEW, "d.md": b"The d.\n"}


def test_who_wrote_after_the_plan_keeps_their_words(tmp_path: Path) -> None:
    with filled(tmp_path) as memories:
        cut_off(memories, CHANGES)
        (memories.folder.root / "b.md").write_bytes(b"Mine.\n")
    with opened(tmp_path) as memories:
        assert files(memories) == {**NEW, "b.md": b"Mine.\n"}


def test_a_plan_with_forgotten_words_is_given_up_and_removes_nothing(tmp_path: Path) -> None:
    with filled(tmp_path) as memories:
        cut_off(memories, {**CHANGES, "a.md": b"The zanzibar protocol.\n"})
        memories.forgotten.add(ForgetWords.of("zanzibar protocol"), 0.0, done=True)
    said: list[Notice] = []
    with opened(tmp_path, said) as memories:
        assert files(memories) == OLD
        assert not is_planned(memories)
    assert "forgotten" in said[0].text


@pytest.mark.parametrize("plan", [b"", b"{", b"\xff\n", b'{"v":1,"type":"other"}\n'])
def test_a_plan_that_cannot_be_read_was_never_begun(tmp_path: Path, plan: bytes) -> None:
    with filled(tmp_path) as memories:
        memories.history.files.write(PLAN, plan)
    with opened(tmp_path) as memories:
        assert files(memories) == OLD
        assert not is_planned(memories)


def test_a_kill_at_any_step_leaves_the_old_or_the_new(scale: Scale) -> None:
    with quick_folder() as where:
        count = itertools.count()
        base = where

        def attempt() -> Callable[[Ack], object]:
            nonlocal base
            base = where / f"run{next(count)}"
            filled(base).close()
            memories = opened(base)
            return lambda ack: ack(land(memories, CHANGES, OLD, BY))

        def look(death: Death) -> None:
            with opened(base) as memories:
                assert files(memories) == NEW if death.acked else files(memories) in (OLD, NEW)

        points = every_kill(attempt, look, stride=scale.pick(41, 1))
    assert points >= scale.pick(6, 200)


@pytest.mark.parametrize("module", ["reverie.store.memory_store", "reverie.session.session"])
def test_what_judges_a_memory_is_not_imported_to_open_one(module: str) -> None:
    heavy = ("hygiene", "repair", "facts", "branch")
    names = tuple(f"reverie.memory.{name}" for name in heavy)
    code = f"import sys, {module};print([m for m in sys.modules if m.startswith({names!r})])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
