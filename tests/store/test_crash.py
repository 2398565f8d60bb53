"""Every call of every write protocol fails, or is the last one the process makes.

A failed run must leave the old contents or, where an error says so, the new; a killed one the
state that was acknowledged or the one it was working on. Both must leave nothing that stops
the next run.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from reverie.errors import ReverieError, StoreError, WriteFailed
from reverie.store import BadLine, FileLock, Folder, Journal, Line, digest, is_temporary
from tests.conftest import Scale
from tests.faults import (
    WRITES,
    Ack,
    Death,
    Outcome,
    When,
    every_error,
    every_kill,
    open_files,
    quick_folder,
    run_with_error,
    run_with_kill,
)
from tests.tally import counted

pytestmark = pytest.mark.spec("1.store")

State = dict[str, bytes]


@pytest.fixture
def stage() -> Iterator[Path]:
    with quick_folder() as path:
        yield path


def state(root: Path) -> State:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and not is_temporary(path.name)
    }


def temps(root: Path) -> list[Path]:
    return [path for path in root.rglob("*") if is_temporary(path.name)]


# -- one operation, every call, every error --------------------------------------------


@dataclass(frozen=True, slots=True)
class Operation:
    """What is done to a folder, and which states it may leave: before, after."""

    do: Callable[[Folder], Any]
    after: State


BEFORE: State = {"a.md": b"old a", "d/b.md": b"old b", "log": b"one\n"}
OPERATIONS = {
    "new": Operation(lambda f: f.write("n.md", b"new" * 99), BEFORE | {"n.md": b"new" * 99}),
    "replace": Operation(lambda f: f.write("a.md", b"new"), BEFORE | {"a.md": b"new"}),
    "empty": Operation(lambda f: f.write("a.md", b""), BEFORE | {"a.md": b""}),
    "below": Operation(lambda f: f.write("x/y/z.md", b"new"), BEFORE | {"x/y/z.md": b"new"}),
    "light": Operation(
        lambda f: f.write("d/b.md", b"new", durable=False), BEFORE | {"d/b.md": b"new"}
    ),
    "compared": Operation(
        lambda f: f.write("a.md", b"new", expect=digest(b"old a")), BEFORE | {"a.md": b"new"}
    ),
    "exclusive": Operation(
        lambda f: f.write("e.md", b"new", exclusive=True), BEFORE | {"e.md": b"new"}
    ),
    "remove": Operation(
        lambda f: f.remove("d/b.md"), {"a.md": BEFORE["a.md"], "log": BEFORE["log"]}
    ),
    "undo": Operation(
        lambda f: f.remove("a.md", expect=digest(b"old a")),
        {"d/b.md": BEFORE["d/b.md"], "log": BEFORE["log"]},
    ),
    "line": Operation(lambda f: f.append_line("log", b"two"), BEFORE | {"log": b"one\ntwo\n"}),
    "new line": Operation(lambda f: f.append_line("l/l", b"x"), BEFORE | {"l/l": b"x\n"}),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_row_31_each_call_of_an_operation_fails_once_and_for_good(name: str, stage: Path) -> None:
    operation = OPERATIONS[name]
    count = itertools.count()
    held: list[Folder] = []
    root = stage

    def attempt() -> Callable[[], Any]:
        nonlocal root
        root = stage / str(next(count))
        folder = Folder(root)
        for key, data in BEFORE.items():
            folder.write(key, data, durable=False)
        held[:] = [folder]
        return lambda: operation.do(folder)

    def check(outcome: Outcome) -> None:
        folder = held[0]
        now = state(root)
        if outcome.error is None:
            assert now == operation.after, outcome
        else:
            assert isinstance(outcome.error, StoreError), outcome
            assert isinstance(outcome.error, WriteFailed) or outcome.hit == "fcntl.flock"
            assert root.name in str(outcome.error)
            # An empty file that was to be added to may have been made.
            now = {key: data for key, data in now.items() if data or key in operation.after}
            made = {key: b"" for key in operation.after if key not in BEFORE and key == "l/l"}
            assert now in (BEFORE, BEFORE | made, operation.after), outcome
            if now == operation.after:
                assert outcome.hit in ("os.fsync", "os.close"), outcome
        folder.sweep(older_than=0)
        assert temps(root) == []
        folder.write("again.md", b"x", durable=False)
        assert folder.read("again.md") == b"x"
        folder.close()

    before = open_files()
    points = every_error(attempt, check)
    print(f"{points} error points in {name!r}")
    assert points > 100
    held.clear()
    assert open_files() == before


def test_row_31_a_short_write_is_finished(stage: Path) -> None:
    with Folder(stage) as folder:
        outcome = run_with_error(
            lambda: folder.write("a.md", b"0123456789"), 1, None, short=True, calls=["os.write"]
        )
        assert outcome.error is None
        assert outcome.calls.count("os.write") == 2
        assert folder.read("a.md") == b"0123456789"


def test_row_31_opening_a_folder_or_lock_fails_cleanly(stage: Path) -> None:
    count = itertools.count()

    def check(outcome: Outcome) -> None:
        assert outcome.error is None or isinstance(outcome.error, ReverieError), outcome

    def open_folder() -> Callable[[], Any]:
        root = stage / f"f{next(count)}" / "deep"
        return lambda: Folder(root).close()

    def open_lock() -> Callable[[], Any]:
        lock = FileLock(stage / f"l{next(count)}")
        return lambda: (lock.acquire(), lock.release())

    before = open_files()
    assert every_error(open_folder, check) > 30
    assert every_error(open_lock, check) > 30
    assert open_files() == before


# -- the journal, every call, every error ----------------------------------------------


def test_row_31_each_call_of_a_journals_life_fails_once_and_for_good(stage: Path) -> None:
    count = itertools.count()
    acked: list[str] = []
    tried: list[str] = []
    keys: list[str] = []

    with Folder(stage) as folder:

        def attempt() -> Callable[[], Any]:
            keys.append(f"s{next(count)}/j.jsonl")
            acked.clear()
            tried.clear()
            return lambda: live(folder, keys[-1], acked, tried)

        def check(outcome: Outcome) -> None:
            assert outcome.error is None or isinstance(outcome.error, StoreError), outcome
            look(folder, keys[-1], acked, tried)

        before = open_files()
        points = every_error(attempt, check)
        print(f"{points} error points in a journal's life")
        assert points > 300
        assert open_files() == before


def live(folder: Folder, key: str, acked: list[str], tried: list[str]) -> None:
    """Append and sync; go on after a failed append, open again after a failed sync."""
    journal = Journal.open(folder, key)
    try:
        for round_ in range(3):
            batch = [f'{{"r":{round_},"n":{n},"x":"{"é" * n * 9}"}}' for n in range(3)]
            tried.extend(batch)
            try:
                journal.append(batch)
            except WriteFailed:
                continue
            acked.extend(batch)
            try:
                journal.sync()
            except WriteFailed:
                journal.close()
                journal = Journal.open(folder, key)
    finally:
        journal.close()


def look(folder: Folder, key: str, acked: list[str], tried: list[str]) -> None:
    """Nothing acknowledged is lost, nothing is there that was not tried, and it goes on."""
    with Journal.open(folder, key) as journal:
        journal.append(['{"next":1}'])
        journal.sync()
        found = list(journal.read())
    texts = [one.text for one in found if isinstance(one, Line)]
    assert texts.pop() == '{"next":1}'
    rest = iter(texts)
    assert all(text in rest for text in acked), (acked, texts)
    attempts = iter(tried)
    assert all(text in attempts for text in texts), (tried, texts)
    assert sum(isinstance(one, BadLine) for one in found) <= len(set(tried)) // 3


# -- kill -9 ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Script:
    """A seeded run of folder operations, and the state after each of them."""

    steps: tuple[tuple[str, str, bytes], ...]
    states: tuple[State, ...]

    @classmethod
    def of(cls, seed: int, length: int) -> Script:
        chance = random.Random(seed)
        now: State = {}
        steps: list[tuple[str, str, bytes]] = []
        states: list[State] = [{}]
        for number in range(length):
            key = chance.choice(["a.md", "b.md", "d/c.md", "d/e/f.md", "log"])
            data = f"{seed}:{number}:".encode() * chance.choice([0, 1, 40, 4000])
            if key == "log":
                step = ("line", key, f"{seed}:{number}".encode())
                now = now | {key: now.get(key, b"") + step[2] + b"\n"}
            elif key in now and chance.random() < 0.25:
                step = ("remove", key, b"")
                now = {other: held for other, held in now.items() if other != key}
            else:
                step = (chance.choice(["write", "light", "compared"]), key, data)
                now = now | {key: data}
            steps.append(step)
            states.append(now)
        return cls(tuple(steps), tuple(states))

    def run(self, root: Path, ack: Ack) -> None:
        with Folder(root) as folder:
            for number, (kind, key, data) in enumerate(self.steps):
                if kind == "remove":
                    folder.remove(key)
                elif kind == "line":
                    folder.append_line(key, data)
                else:
                    before = self.states[number].get(key)
                    compared = kind == "compared" and before is not None
                    folder.write(
                        key,
                        data,
                        durable=kind != "light",
                        expect=digest(before or b"") if compared else None,
                    )
                ack(str(number))

    def check(self, root: Path, death: Death) -> None:
        done = len(death.acked)
        assert death.acked == [str(number) for number in range(done)]
        if not death.hit:
            assert done == len(self.steps)
        now = state(root) if root.exists() else {}
        # A log just made, or a line cut by the kill, is what the next line heals.
        log = now.pop("log", None)
        possible = self.states[done : done + 2]
        plain = [{k: v for k, v in one.items() if k != "log"} for one in possible]
        assert now in plain, (done, sorted(now))
        kept = possible[0].get("log", b"")
        assert (log or b"").startswith(kept)
        assert any(one.get("log", b"").startswith(log or b"") for one in possible)
        with Folder(root) as folder:
            folder.sweep(older_than=0)
            assert temps(root) == []
            folder.write("d/after.md", b"x", durable=False)
            folder.append_line("log", b"after")
            lines = folder.read("log").splitlines()
            assert lines[-1] == b"after"
            assert lines[: kept.count(b"\n")] == kept.splitlines()


def test_row_27_kill_at_each_call_leaves_files_old_or_new(stage: Path, scale: Scale) -> None:
    count = itertools.count()
    points = 0
    scripts = 0
    while points < scale.pick(100, 9_000):
        script = Script.of(scale.seed * 1_000 + scripts, 5)
        roots: list[Path] = []

        def attempt(script: Script = script, roots: list[Path] = roots):
            roots.append(stage / str(next(count)))
            return lambda ack: script.run(roots[-1], ack)

        points += every_kill(
            attempt,
            lambda death, script=script, roots=roots: script.check(roots[-1], death),
            drawn=True,
        )
        scripts += 1
    print(f"{points} kill points over {scripts} scripts of file operations")


Batches = list[tuple[list[str], bool]]
"""Lines that are appended as one, and whether they are synced then."""


def journal_life(folder: Path, key: str, batches: Batches, ack: Ack) -> None:
    with Folder(folder) as root, Journal.open(root, key) as journal:
        for batch, synced in batches:
            journal.append(batch)
            ack("\n".join(batch))
            if synced:
                journal.sync()


def drawn_batches(seed: str) -> Batches:
    chance = random.Random(seed)
    return [
        (
            [
                f'{{"n":{n},"x":"{"ü" * chance.randrange(50)}"}}'
                for n in range(chance.randint(1, 4))
            ],
            chance.random() < 0.5,
        )
        for _ in range(chance.randint(6, 60))
    ]


def journal_check(root: Path, key: str, batches: Batches, death: Death) -> None:
    everything = [text for batch, _ in batches for text in batch]
    done = len(death.acked)
    assert death.acked == everything[:done]
    with Folder(root) as folder, Journal.open(folder, key) as journal:
        tail = journal.tail
        journal.append(['{"next":1}'])
        journal.sync()
        found = list(journal.read())
    texts = [one.text for one in found if isinstance(one, Line)]
    assert texts.pop() == '{"next":1}'
    assert texts[:done] == everything[:done]
    assert texts == everything[: len(texts)]
    assert len(texts) <= done + 4
    bad = [one for one in found if isinstance(one, BadLine)]
    assert len(bad) <= 1
    if bad:
        assert tail is not None
        assert (bad[0].number, bad[0].offset) == (tail.number, tail.offset)


def test_row_27_kill_at_each_call_loses_no_acknowledged_line(stage: Path, scale: Scale) -> None:
    count = itertools.count()
    points = 0
    lives = 0
    while points < scale.pick(60, 8_000):
        batches = drawn_batches(f"journal:{scale.seed}:{lives}")
        keys: list[str] = []

        def attempt(keys: list[str] = keys, batches: Batches = batches):
            keys.append(f"s{next(count)}/j.jsonl")
            return lambda ack: journal_life(stage, keys[-1], batches, ack)

        points += every_kill(
            attempt,
            lambda death, keys=keys, batches=batches: journal_check(
                stage, keys[-1], batches, death
            ),
            calls=[*WRITES, "os.pread", "os.fstat"],
            drawn=True,
        )
        lives += 1
    print(f"{points} kill points over {lives} journals")


def test_row_27_lives_that_are_killed_again_and_again_add_up(stage: Path, scale: Scale) -> None:
    """One journal, many writers in turn, each killed somewhere: every acknowledged line stays."""
    chance = random.Random(27 + scale.seed)
    acked: list[str] = []

    def work(life: int, ack: Ack) -> None:
        with Folder(stage) as folder, Journal.open(folder, "j.jsonl") as journal:
            for n in range(100):
                text = f'{{"life":{life},"n":{n}}}'
                journal.append([text])
                ack(text)

    for life in range(scale.pick(50, 2_000)):
        whens: list[When] = ["before", "after", "partial"]
        death = run_with_kill(
            partial(work, life), chance.randrange(1, 40), when=chance.choice(whens)
        )
        assert death.hit
        acked += death.acked
    with Folder(stage) as folder:
        found = list(Journal.open(folder, "j.jsonl", write=False).read())
    texts = iter([one.text for one in found if isinstance(one, Line)])
    assert all(text in texts for text in acked)
    counted("kills", scale.pick(50, 2_000), drawn=True)
