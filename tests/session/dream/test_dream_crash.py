"""Kill -9 and I/O errors at every step of a dream: the folder is the old one or the new one."""

from __future__ import annotations

import errno
import itertools
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from reverie.errors import ReverieError
from reverie.session import run_dream
from tests.conftest import Scale
from tests.faults import Ack, Death, every_kill, quick_folder, run_with_error
from tests.session.dream.stage import Stage
from tests.session.dream.test_dream import INDEX, MERGED, merging
from tests.tally import counted

pytestmark = [pytest.mark.spec("9"), pytest.mark.spec("B6")]


def work(base: Path) -> None:
    stage = Stage.of(base, {})
    try:
        anyio.run(run_dream, stage.dreamer(merging()))
    finally:
        stage.close()


class Place:
    """A fresh folder for every attempt."""

    def __init__(self, where: Path) -> None:
        self.where = where
        self.count = 0
        self.base = where
        self.old: dict[str, bytes] = {}

    def fresh(self) -> Path:
        self.count += 1
        self.base = self.where / f"run{self.count}"
        stage = Stage.of(self.base)
        self.old = stage.files()
        stage.close()
        return self.base

    @property
    def new(self) -> dict[str, bytes]:
        kept = {key: data for key, data in self.old.items() if key != "tests_again.md"}
        return {**kept, "tests.md": MERGED.encode(), "MEMORY.md": INDEX.encode()}

    @property
    def blind(self) -> tuple[dict[str, bytes], ...]:
        """What is left where one of the agent's own writes failed, and it went on regardless: the
        merge without the word it adds, or that word alone, for the file that goes is still there
        and the index without its line does not land."""
        merged = {**self.old, "tests.md": MERGED.encode()}
        return {**self.new, "tests.md": self.old["tests.md"]}, merged

    def check(self, *, died: bool = True) -> None:
        """Whoever opens the memory next sees one state whole, and the next dream runs."""
        stage = Stage.of(self.base, {})
        try:
            seen = stage.files()
            if not died and seen in self.blind:
                return
            assert seen in (self.old, self.new)
            stage.clock.time += 10
            model = merging() if seen == self.old else ["All is in order."]
            done = anyio.run(run_dream, stage.dreamer(model))
            assert done.status == "completed", done
            assert stage.files() == self.new
        finally:
            stage.close()


@pytest.mark.timeout(900)  # in full, some hundred processes that begin, die and are looked after
def test_a_kill_at_any_step_leaves_the_old_or_the_new(scale: Scale) -> None:
    """27, 38."""
    with quick_folder() as where:
        place = Place(where)

        def attempt() -> Callable[[Ack], object]:
            base = place.fresh()
            return lambda ack: (work(base), ack("done"))

        def look(death: Death) -> None:
            del death
            place.check()

        points = every_kill(attempt, look, stride=scale.pick(113, 7))
    assert points >= scale.pick(5, 300)


@pytest.mark.timeout(900)
def test_an_error_at_any_rename_leaves_the_old_or_the_new(scale: Scale) -> None:
    """31."""
    codes = scale.pick((errno.ENOSPC,), (errno.ENOSPC, errno.EIO, errno.EROFS))
    points = 0
    with quick_folder() as where:
        place = Place(where)
        for code in codes:
            for n in itertools.count(1, scale.pick(4, 1)):
                base = place.fresh()
                failed = run_with_error(lambda at=base: work(at), n, code, calls=("os.rename",))
                if failed.hit is None:
                    break
                assert failed.error is None or isinstance(failed.error, ReverieError)
                place.check(died=False)
                points += 1
    counted("fault points", points, drawn=False)
    assert points >= scale.pick(5, 60)
