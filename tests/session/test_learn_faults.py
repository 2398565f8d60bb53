"""`learn` in courses drawn by chance that are killed, fail and lose power at any call."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from reverie import Memory, Saved
from reverie.settings import Settings
from reverie.store import MemoryStore, Project
from tests.breaking import Acked, Draw, attempted, cut, failed, killed
from tests.conftest import Scale
from tests.faults import Ack

pytestmark = [pytest.mark.spec("1.courses")]
SAID = (
    "Remember: the staging server is called otter.",
    "Please remember that Ines owns the billing service.",
    "From now on always use pnpm here, never npm.",
    "Remember: the demo room is number 14.",
)


class LearnCourse:
    """Conversations that ask for things to be kept, learned from one after the other."""

    def __init__(self, chance: Random) -> None:
        self.said = chance.sample(SAID, chance.randint(1, 3))

    def _memory(self, base: Path) -> Memory:
        (base / "work").mkdir(exist_ok=True)
        return Memory(base / "work", home=base / "home", on_notice=lambda _: None)

    def begin(self, base: Path) -> None:
        with self._memory(base) as memory:
            memory.add("The build runs on Jenkins.")

    def act(self, base: Path, ack: Ack) -> None:
        with self._memory(base) as memory:
            for text in self.said:
                saved: list[Saved] | None = attempted(memory.learn, [text])
                for one in saved or ():
                    ack(one.file)

    def check(self, base: Path, acked: Acked) -> None:
        """Every memory has its pointer, and what was not learned can be learned again."""
        self._look(base, acked)
        with self._memory(base) as memory:
            for text in self.said:
                memory.learn([text])
        self._look(base, acked, len(self.said) + 1)

    def _look(self, base: Path, acked: Acked, least: int = 1) -> None:
        place = Project.at(base / "work", home=base / "home", environ={}, settings=Settings())
        with MemoryStore.of(place, now=lambda: 0.0) as memories:
            files = set(memories.folder.keys())
            index = memories.folder.index().data.decode()
        assert set(acked) <= files
        assert len(files) >= least
        assert [one for one in sorted(files) if f"({one})" not in index] == []


@pytest.mark.parametrize("breaks", [killed, failed, cut])
def test_no_break_leaves_a_learned_memory_without_its_pointer(breaks: object, scale: Scale) -> None:
    assert callable(breaks)
    draw: Draw = LearnCourse
    points = scale.pick(40, 2_000)
    assert breaks(draw, Random(f"learn:{scale.seed}"), points) == points
