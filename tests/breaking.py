"""Courses drawn by chance, and everything that may go wrong in them: death, errors, power cuts.

A course is a piece of work on some files: what is there first, some steps, and what must hold
afterwards wherever it was broken off. A step that returned is acknowledged; one that failed may
have happened or not, and the course goes on behind it. Each driver draws a course from a seed,
draws the places where it breaks, and goes on with another course until it has tried enough.

    points = killed(MailCourse, Random("mail:7"), 200)

A failure tells which course and which point it was: the same seed draws both again.
"""

from __future__ import annotations

import errno
import shutil
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Protocol

from reverie.errors import ReverieError
from tests import databases, faults, power
from tests.faults import Ack, Death, Outcome, When, quick_folder
from tests.tally import counted

Acked = Sequence[str]
WHENS: tuple[When, ...] = ("before", "after", "partial")
ERRORS = (errno.ENOSPC, errno.EIO, errno.EROFS, errno.EMFILE)


class Course(Protocol):
    """Some work, drawn by chance when it was made."""

    def begin(self, base: Path) -> None:
        """Make what is there first."""
        ...

    def act(self, base: Path, ack: Ack) -> None:
        """Do the steps, and say what each has acknowledged. Steps that fail by design are left
        behind; anything else is raised."""
        ...

    def check(self, base: Path, acked: Acked) -> None:
        """See that all of it is there, and that work goes on."""
        ...


Draw = Callable[[Random], Course]


@dataclass(frozen=True, slots=True)
class Layer:
    """Where calls are seen: those of `os`, or those of SQLite."""

    writes: Sequence[str]
    every: Sequence[str]
    write: str
    opens: Sequence[str]
    kill: Callable[..., Death]
    error: Callable[..., Outcome]
    record: Callable[[Path, Callable[[Ack], object]], power.Record]


OS = Layer(
    faults.WRITES,
    faults.CALLS,
    "os.write",
    ("os.open", "os.dup"),
    faults.run_with_kill,
    faults.run_with_error,
    power.recorded,
)
SQLITE = Layer(
    databases.WRITES,
    databases.CALLS,
    "write",
    ("open",),
    databases.run_with_kill,
    databases.run_with_error,
    databases.recorded,
)


class _Stage:
    """A folder that holds what a course begins with, as often as it is asked for."""

    def __init__(self, folder: Path, course: Course) -> None:
        self.here, self._kept, self.course = folder / "here", folder / "kept", course
        self.here.mkdir()
        course.begin(self.here)
        self.here.rename(self._kept)

    def fresh(self) -> Path:
        shutil.rmtree(self.here, ignore_errors=True)
        shutil.copytree(self._kept, self.here, symlinks=True)
        return self.here

    def bare(self) -> Path:
        shutil.rmtree(self.here, ignore_errors=True)
        return self.here

    def calls(self, layer: Layer) -> list[str]:
        """The calls that the course makes when nothing goes wrong; everything is acknowledged."""
        acked: list[str] = []
        base = self.fresh()
        done = layer.error(
            lambda: self.course.act(base, acked.append), sys.maxsize, None, calls=layer.every
        )
        if done.error is not None:
            raise done.error
        assert acked
        self.course.check(base, acked)
        return list(done.calls)

    def check(self, acked: Acked, told: str) -> None:
        try:
            self.course.check(self.here, acked)
        except BaseException as error:
            error.add_note(f"{told}; acknowledged: {list(acked)}")
            raise


@contextmanager
def _stage(draw: Draw, chance: Random) -> Generator[_Stage]:
    with quick_folder() as folder:
        yield _Stage(folder, draw(Random(chance.random())))


def _spots(layer: Layer, calls: Sequence[str]) -> list[tuple[When, int]]:
    """Every place to die in a course."""
    changing = sum(name in layer.writes for name in calls)
    halves = sum(name == layer.write for name in calls)
    return [(w, n + 1) for w in WHENS for n in range(halves if w == "partial" else changing)]


def killed(draw: Draw, chance: Random, points: int, layer: Layer = OS) -> int:
    """Processes that die at drawn places; how many there were."""
    done = 0
    while done < points:
        with _stage(draw, chance) as stage:
            spots = _spots(layer, stage.calls(layer))
            for when, n in chance.sample(spots, min(len(spots), points - done)):
                base = stage.fresh()
                calls = (layer.write,) if when == "partial" else layer.writes
                death = layer.kill(partial(stage.course.act, base), n, when=when, calls=calls)
                assert death.hit, f"it makes fewer calls than before: {when} call {n}"
                stage.check(death.acked, f"killed {when} call {n}")
                done += 1
    counted("kills", done, drawn=True)
    return done


@dataclass(frozen=True, slots=True)
class _Error:
    """One call that fails, and how."""

    n: int
    code: int | None
    calls: tuple[str, ...]
    short: bool = False
    sticky: bool = False


def _errors(layer: Layer, calls: Sequence[str]) -> list[_Error]:
    """Every way to fail in a course: each call with each error, once and for good; short writes."""

    def each(names: Sequence[str]) -> range:
        return range(1, sum(name in names for name in calls) + 1)

    found = [_Error(n, None, (layer.write,), short=True) for n in each((layer.write,))]
    for code in ERRORS:
        names = tuple(layer.opens if code == errno.EMFILE else layer.every)
        found += [_Error(n, code, names, sticky=s) for n in each(names) for s in (False, True)]
    return found


def failed(
    draw: Draw, chance: Random, points: int, layer: Layer = OS, *, polls: bool = False
) -> int:
    """Calls that fail at drawn places, after which the work goes on; how many there were. A course
    that `polls` makes more calls the longer it takes: one that is not made is no place."""
    done = 0
    while done < points:
        with _stage(draw, chance) as stage:
            ways = _errors(layer, stage.calls(layer))
            for one in chance.sample(ways, min(len(ways), points - done)):
                base, acked = stage.fresh(), list[str]()
                outcome = layer.error(
                    partial(stage.course.act, base, acked.append),
                    one.n,
                    one.code,
                    short=one.short,
                    sticky=one.sticky,
                    calls=one.calls,
                )
                if polls and not outcome.hit:
                    continue
                if outcome.error is not None and not isinstance(outcome.error, ReverieError):
                    outcome.error.add_note(f"{one}, at {outcome.hit}")
                    raise outcome.error
                assert outcome.hit, f"it makes fewer calls than before: {one}"
                stage.check(acked, f"{one}, at {outcome.hit}")
                done += 1
    counted("fault points", done, drawn=True)
    return done


def cut(draw: Draw, chance: Random, points: int, layer: Layer = OS, each: int = 2) -> int:
    """The disk states that a power cut may leave, in courses in which a call may have failed
    before; how many there were."""
    done = 0
    while done < points:
        with _stage(draw, chance) as stage:
            ways = [None, *_errors(layer, stage.calls(layer))]
            wrong = None if chance.random() < 0.5 else chance.choice(ways)
            record = _record(stage, layer, wrong)
            states = list(power.power_states(record, chance, each=each))
            for state in chance.sample(states, min(len(states), points - done, 200)):
                state.build(stage.bare())
                told = f"cut {state.cut} of {len(record.ops)}: {state.how}, after {wrong}"
                stage.check(state.acked, told)
                done += 1
    counted("power-cut states", done, drawn=True)
    return done


def _record(stage: _Stage, layer: Layer, wrong: _Error | None) -> power.Record:
    base = stage.fresh()

    def work(ack: Ack) -> None:
        if wrong is None or layer is SQLITE:
            stage.course.act(base, ack)
            return
        plan = faults.Plan(wrong.n, wrong.code, wrong.short, wrong.sticky, None, wrong.calls)
        with faults.shim(plan), suppress(ReverieError):
            stage.course.act(base, ack)

    return layer.record(base, work)


def attempted(step: Callable[..., Any], *given: Any) -> Any:
    """A step of a course: what it gives, or None where it failed as designed."""
    try:
        return step(*given)
    except ReverieError:
        return None
