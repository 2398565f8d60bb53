"""Taking back is all or nothing, and the next time the next thing is taken back."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from reverie.errors import ReverieError
from reverie.store import MemoryStore, transaction
from reverie.topics import Origin, Trust, new
from tests.conftest import Scale
from tests.faults import (
    Ack,
    Death,
    Outcome,
    copies,
    every_error,
    every_kill,
    in_copies,
    quick_folder,
)
from tests.memory.folders import opened

pytestmark = [pytest.mark.spec("B3.undo")]

AGENT = Origin("save", Trust.AGENT, agent="main", session="s1")
UNDO = Origin("undo", Trust.USER)
State = dict[str, tuple[bytes, int]]


def topic(name: str, text: str) -> bytes:
    return new("t.md", name=name, description="about it", type="project", body=text).data


STEPS: tuple[Callable[[MemoryStore], object], ...] = (
    lambda m: m.save("a.md", topic("A", "first"), AGENT),
    lambda m: m.save("a.md", topic("A", "second"), AGENT),
    lambda m: m.save("b.md", topic("B", "other"), AGENT),
    lambda m: m.remove("a.md", AGENT),
)


def seen(base: Path) -> State:
    """Every file of the folder with its bytes and its time."""
    found = (base / "p" / "memory").rglob("[!.]*")
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in found}


class Stage:
    """A memory that a number of steps were made in, and how it was after each."""

    def __init__(self, base: Path, steps: int) -> None:
        self.states: list[State] = []
        with opened(base / "first") as memories:
            for step in STEPS[:steps]:
                step(memories)
                self.states.append(seen(base / "first"))
        self.fresh = copies(base / "first")

    def check(self, home: Path, *, done: bool = False) -> None:
        """All of it was taken back or nothing, and the next one takes back the next."""
        with opened(home) as memories:
            pointed = {one.key for one in memories.folder.index().pointers}
            assert pointed <= set(memories.folder.keys()), "a pointer leads to nothing"
            transaction.finish(memories)
            found = seen(home)
            assert found in (self.states[-1], self.states[-2])
            assert not done or found == self.states[-2]
            memories.undo("", UNDO)
            assert seen(home) == self.states[self.states.index(found) - 1]
            assert memories.look() == ()


def take_back(home: Path, ack: Ack = lambda _: None) -> None:
    with opened(home) as memories:
        memories.undo("", UNDO)
        ack("done")


@pytest.mark.parametrize("steps", [3, 4])
def test_an_undo_that_fails_anywhere_is_whole_or_not_there(steps: int, scale: Scale) -> None:
    with quick_folder() as base:
        stage = Stage(base, steps)

        def check(home: Path, outcome: Outcome) -> None:
            assert outcome.error is None or isinstance(outcome.error, ReverieError), outcome
            stage.check(home)

        codes, calls = scale.pick((28,), (28, 5, 30, 13)), scale.pick(SOME, MANY)
        tried = in_copies(stage.fresh, take_back, check)
        points = every_error(*tried, codes=codes, calls=calls)
        print(f"{points} error points in an undo")
        assert points > 40


SOME = ("os.write", "os.fsync", "os.rename", "os.unlink", "os.utime")
MANY = (*SOME, "os.open", "os.close", "os.mkdir", "os.read", "os.fstat", "fcntl.flock")


@pytest.mark.parametrize("steps", [3, 4])
def test_an_undo_that_is_killed_anywhere_is_whole_or_not_there(steps: int, scale: Scale) -> None:
    with quick_folder() as base:
        stage = Stage(base, steps)

        def check(home: Path, death: Death) -> None:
            stage.check(home, done=bool(death.acked))

        points = every_kill(*in_copies(stage.fresh, take_back, check), stride=scale.pick(11, 1))
        print(f"{points} kill points in an undo")
        assert points > 12


def test_a_file_that_comes_back_has_its_old_time(tmp_path: Path) -> None:
    stage = Stage(tmp_path, 4)
    home = stage.fresh()
    with opened(home) as memories:
        for state in reversed([{"MEMORY.md": (b"", 0)}, *stage.states[:-1]]):
            memories.undo("", UNDO)
            if state in stage.states:
                assert seen(home) == state


def cut_off_undo(memories: MemoryStore) -> None:
    """An undo that is planned durably and fails before its first step."""

    def fails(*_: object) -> None:
        raise ReverieError("cut off")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transaction, "_step", fails)
        with pytest.raises(ReverieError, match="cut off"):
            memories.undo("", UNDO)


@pytest.mark.parametrize(
    ("step", "left"),
    [
        (lambda m: m.save("c.md", topic("C", "third"), AGENT), ("a.md", "c.md")),
        (lambda m: m.remove("a.md", AGENT), ()),
        (lambda m: m.undo("", UNDO), ("a.md",)),
        (lambda m: m.revert("kind", "save", UNDO), ()),
    ],
    ids=["save", "remove", "undo", "revert"],
)
def test_a_step_after_an_undo_that_was_cut_off_sees_it_through_first(
    tmp_path: Path, step: Callable[[MemoryStore], object], left: tuple[str, ...]
) -> None:
    stage = Stage(tmp_path, 3)
    home = stage.fresh()
    with opened(home) as memories:
        cut_off_undo(memories)
        assert seen(home) == stage.states[2]
        step(memories)
        assert memories.folder.keys() == left
        assert b"b.md" not in memories.folder.index_data()


def test_what_is_remembered_after_an_undo_that_was_cut_off_is_there(tmp_path: Path) -> None:
    """The undo takes the file out that holds these words; whoever says them again keeps them."""
    with opened(tmp_path) as memories:
        first = memories.remember("The mill stands by the river.", AGENT)
        cut_off_undo(memories)
        again = memories.remember("The mill stands by the river.", AGENT)
        assert (again.key, again.outcome) == (first.key, "saved")
        assert memories.folder.keys() == (again.key,)
        assert again.key.encode() in memories.folder.bytes_of("MEMORY.md")


def test_a_plan_for_what_is_a_link_by_now_leaves_the_link_alone(tmp_path: Path) -> None:
    stage = Stage(tmp_path, 3)
    home = stage.fresh()
    with opened(home) as memories:
        plan = tmp_path / "plan"
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(transaction, "_carry_out", lambda _: "")
            memories.undo("", UNDO)
        shutil.copy(memories.beside.root / transaction.PLAN, plan)
        (home / "p" / "memory" / "b.md").unlink()
        (home / "p" / "memory" / "b.md").symlink_to(plan)
        transaction.finish(memories)
        assert not transaction.is_planned(memories)
        assert (home / "p" / "memory" / "b.md").is_symlink()
