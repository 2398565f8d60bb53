"""The power goes at any moment: what was acknowledged is there, and every file is whole."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from reverie.errors import StoreError
from reverie.settings import DEFAULTS
from reverie.store import ConsolidationLock, Folder, ForgottenWords, MemoryStore, Project, finish
from reverie.store import land as landing_land
from reverie.topics import OUTSIDE, ForgetWords, Origin, Trust
from tests.conftest import Scale
from tests.faults import Plan, quick_folder, shim
from tests.memory import test_growth as growth
from tests.memory.test_history import whole
from tests.memory.test_undo import AGENT, UNDO, opened, topic
from tests.power import Ack, power_states, recorded
from tests.tally import counted

pytestmark = [pytest.mark.spec("1.power")]

OLD, NEW, OTHER = topic("A", "old words"), topic("A", "new words"), topic("B", "other words")
Files = dict[str, bytes]


@dataclass(frozen=True, slots=True)
class Scenario:
    """What is there first, what is done, and what must hold wherever the power went."""

    begin: Callable[[Path], None]
    act: Callable[[Path, Ack], None]
    check: Callable[[Path, tuple[str, ...]], None]


def begin(base: Path) -> None:
    with opened(base) as memories:
        memories.save("a.md", topic("A", "first words"), AGENT)
        memories.save("a.md", OLD, AGENT)


def files(memories: MemoryStore) -> Files:
    keys = [key for key in memories.folder.all_keys() if not key.startswith(".")]
    return {key: memories.folder.bytes_of(key) for key in keys}


def looked(memories: MemoryStore) -> Files:
    """What the folder holds once it was opened again; its history is whole."""
    finish(memories)
    found = memories.look()
    assert all(version.origin.kind != OUTSIDE for version in found if version.after), found
    whole(memories)
    return files(memories)


# Saving, removing, taking back


def old_or_new(new: dict[str, bytes | None]) -> Callable[[Path, tuple[str, ...]], None]:
    """A file is as it was or as it became; acknowledged is acknowledged, with its pointer."""

    def check(base: Path, acked: tuple[str, ...]) -> None:
        with opened(base) as memories:
            found = looked(memories)
            pointed = {one.key for one in memories.folder.index().pointers}
            assert pointed <= set(found), "a pointer leads to nothing"
            for key, data in new.items():
                before = {"a.md": OLD}.get(key)
                assert found.get(key) in ([data] if acked else [before, data])
                assert not acked or (key in pointed) == (data is not None)

    return check


def acting(do: Callable[[MemoryStore], object]) -> Callable[[Path, Ack], None]:
    def act(base: Path, ack: Ack) -> None:
        with opened(base) as memories:
            do(memories)
            ack("done")

    return act


def check_undo(base: Path, acked: tuple[str, ...]) -> None:
    with opened(base) as memories:
        found = looked(memories)
        assert found["a.md"] in ([OLD] if acked else [OLD, NEW])
        memories.undo("", UNDO)
        assert memories.folder.bytes_of("a.md") == (
            OLD if found["a.md"] == NEW else topic("A", "first words")
        )


def check_landing(base: Path, acked: tuple[str, ...]) -> None:
    with opened(base) as memories:
        found = looked(memories)
        del found["MEMORY.md"]
        assert found in ([{"b.md": OTHER}] if acked else [{"a.md": OLD}, {"b.md": OTHER}])


def land(memories: MemoryStore) -> None:
    origin = Origin("dream", Trust.AGENT, session="d")
    landing_land(memories, {"a.md": None, "b.md": OTHER}, {"a.md": OLD}, origin)


# What others wrote


def check_outside(base: Path, acked: tuple[str, ...]) -> None:
    with opened(base) as memories:
        finish(memories)
        memories.look()
        whole(memories)
        kept = [memories.history.content(v.after) for v in memories.history.log("a.md")]
        assert b"by an editor\n" in kept
        if memories.folder.bytes_of("a.md") == NEW:
            assert memories.history.log("a.md")[-1].origin == AGENT
        else:
            assert not acked


def edit_and_save(base: Path, ack: Ack) -> None:
    with opened(base) as memories:
        memories.save("a.md", NEW, AGENT)
        ack("done")


def begin_edited(base: Path) -> None:
    begin(base)
    (base / "p" / "memory" / "a.md").write_bytes(b"by an editor\n")


def look_then_lose(base: Path, ack: Ack) -> None:
    """Once a look has returned, the editor's words are kept, whatever becomes of the file."""
    with opened(base) as memories:
        memories.look()
        ack("looked")


def check_looked(base: Path, acked: tuple[str, ...]) -> None:
    (base / "p" / "memory" / "a.md").write_bytes(OLD)
    with opened(base) as memories:
        memories.look()
        whole(memories)
        kept = [memories.history.content(v.after) for v in memories.history.log("a.md")]
        assert b"by an editor\n" in kept or not acked


# An index that is added to


def begin_long(base: Path) -> None:
    with growth.filled(base, 3) as memories:
        memories.save("a.md", growth.topic("A"), growth.AGENT)


def save_at_end(base: Path, ack: Ack) -> None:
    with growth.opened(base) as memories:
        memories.save("b.md", growth.topic("B"), growth.AGENT)
        ack("done")


def check_at_end(base: Path, acked: tuple[str, ...]) -> None:
    growth.check_growth(base, list(acked))


# A new home, forgotten words, the lock of a dream


def new_root(base: Path, ack: Ack) -> None:
    with Folder(base / "x" / "y" / "z") as folder:
        folder.write("d/e/a.md", OLD)
        ack("written")


def check_new_root(base: Path, acked: tuple[str, ...]) -> None:
    file = base / "x" / "y" / "z" / "d" / "e" / "a.md"
    assert not acked or file.read_bytes() == OLD
    assert not file.exists() or file.read_bytes() == OLD


def after_a_failed_sync(number: int) -> Callable[[Path, Ack], None]:
    """Somebody made folders, and the disk did not take one of their names."""

    def act(base: Path, ack: Ack) -> None:
        plan = Plan(number, errno.EIO, calls=("os.fsync",))
        with shim(plan) as seen, pytest.raises(StoreError):
            new_root(base, _nobody)
        assert seen.hit
        new_root(base, ack)

    return act


def after_a_death(*made: str) -> Callable[[Path, Ack], None]:
    """Somebody made folders, and died before their names were on the disk."""

    def act(base: Path, ack: Ack) -> None:
        for one in made:
            os.mkdir(base / one)
        new_root(base, ack)

    return act


def new_project(base: Path, ack: Ack) -> None:
    root = base / "project"
    with MemoryStore.of(
        Project.at(root, home=base / "home", environ={}, settings=DEFAULTS), now=lambda: 1.0
    ) as memories:
        memories.remember("The deploy key lives in the vault.", AGENT)
        ack("remembered")


def check_new_project(base: Path, acked: tuple[str, ...]) -> None:
    root = base / "project"
    with MemoryStore.of(
        Project.at(root, home=base / "home", environ={}, settings=DEFAULTS), now=lambda: 2.0
    ) as memories:
        memories.look()
        keys = memories.folder.keys()
        bodies = [memories.folder.read(key).body.strip() for key in keys]
        assert bodies in ([["The deploy key lives in the vault."]] + ([] if acked else [[]]))
        pointed = [one.key for one in memories.folder.index().pointers]
        assert not acked or tuple(pointed) == memories.folder.keys()
        memories.remember("The deploy key lives in the vault.", AGENT)
        pointed = [one.key for one in memories.folder.index().pointers]
        assert tuple(pointed) == memories.folder.keys()


WORDS = ForgetWords.of("Rumpelstiltskin of the mill")


def forget(base: Path, ack: Ack) -> None:
    words = ForgottenWords(base)
    words.add(WORDS, 1.0, done=True)
    ack("forgotten")


def check_forgotten(base: Path, acked: tuple[str, ...]) -> None:
    words = ForgottenWords(base)
    assert not acked or words.within("It was Rumpelstiltskin of the mill, again.")
    words.add(WORDS, 2.0, done=True)
    assert words.within("It was Rumpelstiltskin of the mill, again.")


def lock_of(base: Path, now: float) -> ConsolidationLock:
    return ConsolidationLock(base, now=lambda: now, stale_seconds=3600.0)


def begin_lock(base: Path) -> None:
    lock = lock_of(base, 1_000.0)
    with lock.landing(lock.take()):
        pass


def dream(base: Path, ack: Ack) -> None:
    lock = lock_of(base, 2_000.0)
    taken = lock.take()
    ack("taken")
    with lock.landing(taken):
        pass
    ack("landed")


def check_lock(base: Path, acked: tuple[str, ...]) -> None:
    seen = lock_of(base, 2_100.0).look()
    assert seen.state in ("free", "dead")  # what the process gave back is not held by it
    if "landed" in acked:
        assert (seen.state, seen.last) == ("free", 2_000.0)
    elif acked:
        assert seen.state == "dead" or seen.last == 2_000.0
    else:
        assert seen.last == 1_000.0
    again = lock_of(base, 10_000.0)
    with again.landing(again.take()):
        pass
    assert again.last() == 10_000.0


def failed_dream(base: Path, ack: Ack) -> None:
    lock = lock_of(base, 2_000.0)
    assert lock.give_back(lock.take())
    ack("given back")


def check_given_back(base: Path, acked: tuple[str, ...]) -> None:
    assert not acked or lock_of(base, 2_100.0).look().state == "never"


def _nobody(_: str) -> None:
    pass


SCENARIOS = {
    "save": Scenario(
        begin, acting(lambda m: m.save("b.md", OTHER, AGENT)), old_or_new({"b.md": OTHER})
    ),
    "edit": Scenario(
        begin, acting(lambda m: m.save("a.md", NEW, AGENT)), old_or_new({"a.md": NEW})
    ),
    "remove": Scenario(
        begin, acting(lambda m: m.remove("a.md", AGENT)), old_or_new({"a.md": None})
    ),
    "undo": Scenario(
        lambda base: (begin(base), acting(lambda m: m.save("a.md", NEW, AGENT))(base, _nobody))[0],
        acting(lambda m: m.undo("", UNDO)),
        check_undo,
    ),
    "at the end": Scenario(begin_long, save_at_end, check_at_end),
    "landing": Scenario(begin, acting(land), check_landing),
    "outside": Scenario(begin_edited, edit_and_save, check_outside),
    "look": Scenario(begin_edited, look_then_lose, check_looked),
    "new root": Scenario(lambda _: None, new_root, check_new_root),
    **{
        f"sync {n} fails": Scenario(lambda _: None, after_a_failed_sync(n), check_new_root)
        for n in range(1, 6)
    },
    "died at the root": Scenario(lambda _: None, after_a_death("x"), check_new_root),
    "died further down": Scenario(
        lambda base: (base / "x").mkdir(), after_a_death("x/y"), check_new_root
    ),
    "died below": Scenario(
        lambda base: (base / "x/y/z").mkdir(parents=True),
        after_a_death("x/y/z/d"),
        check_new_root,
    ),
    "new project": Scenario(
        lambda base: (base / "project").mkdir(), new_project, check_new_project
    ),
    "forget": Scenario(lambda _: None, forget, check_forgotten),
    "dream": Scenario(begin_lock, dream, check_lock),
    "failed dream": Scenario(lambda _: None, failed_dream, check_given_back),
}


def tried(one: Scenario, chance: Random, each: int, share: int, *, drawn: bool) -> tuple[int, int]:
    """Check every `share`th state of a scenario, and all of its end; states and operations."""
    with quick_folder() as stage:
        here = stage / "here"
        here.mkdir()
        one.begin(here)
        record = recorded(here, lambda ack: one.act(here, ack))
        assert record.acks
        shutil.rmtree(here)
        points = 0
        for number, state in enumerate(power_states(record, chance, each=each)):
            if number % share and state.cut < len(record.ops):
                continue
            state.build(here)
            try:
                one.check(here, state.acked)
            except BaseException as error:
                error.add_note(f"cut {state.cut} of {len(record.ops)}: {state.how}, {state.acked}")
                raise
            shutil.rmtree(here)
            points += 1
    counted("power-cut states", points, drawn=drawn)
    return points, len(record.ops)


@pytest.mark.parametrize("name", SCENARIOS)
def test_nothing_acknowledged_is_lost_when_the_power_goes(name: str, scale: Scale) -> None:
    chance = Random(f"{name}:{scale.seed}")
    # The same work with every seed, and little in it that is not synced: the same states.
    points, ops = tried(SCENARIOS[name], chance, scale.pick(1, 24), scale.pick(3, 1), drawn=False)
    print(f"{points} disk states of {name!r}, {ops} operations")
    assert points >= 3


# Whole lives, drawn by chance


class Life:
    """Some steps drawn by chance, and the files after each of them. The index is read for each
    save, or added to, as chance has it."""

    def __init__(self, chance: Random, steps: int) -> None:
        self._chance, self._steps = chance, steps
        self._opened = chance.choice([opened, growth.opened])
        self.states: list[Files] = []

    def scenario(self) -> Scenario:
        return Scenario(begin, self.act, self.check)

    def act(self, base: Path, ack: Ack) -> None:
        with self._opened(base) as memories:
            self.states.append(topics(memories))
            for number in range(self._steps):
                self._step(memories, number)
                self.states.append(topics(memories))
                ack(str(number))

    def _step(self, memories: MemoryStore, number: int) -> None:
        keys = memories.folder.keys()
        kind = self._chance.choice(["add", "edit", "remove", "undo"])
        if kind == "undo" and memories.history.log()[-1].undoes == ():
            memories.undo("", UNDO)
        elif kind == "remove" and keys:
            memories.remove(self._chance.choice(keys), AGENT)
        elif kind == "edit" and keys:
            memories.save(self._chance.choice(keys), topic("A", f"edit {number}"), AGENT)
        else:
            memories.save(f"new{number}.md", topic(f"New {number}", f"text {number}"), AGENT)

    def check(self, base: Path, acked: tuple[str, ...]) -> None:
        with self._opened(base) as memories:
            looked(memories)
            assert topics(memories) in self.states[len(acked) : len(acked) + 2]
            pointed = {one.key for one in memories.folder.index().pointers}
            assert pointed <= set(memories.folder.keys()), "a pointer leads to nothing"


def topics(memories: MemoryStore) -> Files:
    keys = memories.folder.keys()
    return {key: memories.folder.bytes_of(key) for key in keys}


def test_a_life_of_many_steps_loses_nothing_when_the_power_goes(scale: Scale) -> None:
    chance = Random(f"life:{scale.seed}")
    points, lives = 0, 0
    while points < scale.pick(100, 6_000):
        one = Life(chance, 6).scenario()
        points += tried(one, chance, 2, scale.pick(4, 1), drawn=True)[0]
        lives += 1
    print(f"{points} disk states of {lives} lives")


def test_the_recorder_sees_what_a_disk_would(tmp_path: Path) -> None:
    """A write without its syncs may be lost in every way; with them, in none."""
    (tmp_path / "old").write_bytes(b"old")

    def work(ack: Ack) -> None:
        fd = os.open(tmp_path / "new", os.O_WRONLY | os.O_CREAT)
        os.write(fd, b"whole")
        os.rename(tmp_path / "new", tmp_path / "old")
        ack("renamed")
        os.fsync(fd)
        os.close(fd)
        above = os.open(tmp_path, os.O_RDONLY)
        os.fsync(above)
        os.close(above)
        ack("synced")

    record = recorded(tmp_path, work)
    found: dict[tuple[str, ...], set[bytes]] = {}
    for number, state in enumerate(power_states(record, Random(1), each=30)):
        tree = state.build(tmp_path.parent / f"{tmp_path.name}-{number}")
        found.setdefault(state.acked, set()).add((tree / "old").read_bytes())
    assert found[()] == {b"old"}
    assert found["renamed",] == {b"old", b"", b"wh", b"whole"}
    assert found["renamed", "synced"] == {b"whole"}
