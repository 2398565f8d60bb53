"""Dreams in which a call of the disk fails: they end as our error, and say what was applied."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from reverie import Memory
from reverie.errors import ReverieError
from reverie.settings import Settings
from reverie.store import MemoryStore, Project
from tests.breaking import Acked, failed
from tests.conftest import Scale
from tests.faults import Ack

pytestmark = [pytest.mark.spec("1.courses")]
FACT = "The build runs on Jenkins."


def _files(memories: MemoryStore) -> dict[str, bytes]:
    keys = (key for key in memories.folder.all_keys() if key.endswith(".md"))
    return {key: memories.folder.bytes_of(key) for key in keys}


class DreamCourse:
    """A dream by rules over a folder with a duplicate and a file without a pointer."""

    def __init__(self, chance: Random) -> None:
        self.room = chance.randint(1, 99)
        self.before: dict[str, bytes] = {}

    def _memory(self, base: Path) -> Memory:
        (base / "work").mkdir(exist_ok=True)
        return Memory(base / "work", home=base / "home", on_notice=lambda _: None)

    def _store(self, base: Path) -> MemoryStore:
        place = Project.at(base / "work", home=base / "home", environ={}, settings=Settings())
        return MemoryStore.of(place, now=lambda: 0.0)

    def begin(self, base: Path) -> None:
        with self._memory(base) as memory:
            memory.add(FACT)
        with self._store(base) as memories:
            for name, text in (("a.md", FACT), ("b.md", f"The demo room is {self.room}.")):
                head = f"---\nname: {name}\ndescription: {text}\ntype: project\n---"
                (memories.root / name).write_text(f"{head}\n\n{text}\n")
            self.before = _files(memories)

    def act(self, base: Path, ack: Ack) -> None:
        with self._memory(base) as memory:
            try:
                done = memory.dream()
            except ReverieError:
                ack("raised")
            else:
                later = "next opened" in done.reason
                ack(" ".join(("planned" if later else done.status, *done.files)))

    def check(self, base: Path, acked: Acked) -> None:
        with self._store(base) as memories:  # carries out a plan that was left
            after = _files(memories)
        assert any(FACT.encode() in data for data in after.values())
        applied = {key for key, data in after.items() if self.before.get(key) != data}
        applied |= self.before.keys() - after.keys()
        for said in acked:
            status, *files = said.split(" ")
            assert status in ("completed", "failed", "planned", "raised")
            # where the disk does not even say whether a plan is there, none may be
            assert set(files) == applied or (status == "planned" and not applied)
        with self._memory(base) as memory:
            assert memory.dream().status == "completed"


def test_a_dream_whose_disk_fails_says_what_was_applied(scale: Scale) -> None:
    points = scale.pick(40, 4_000)
    assert failed(DreamCourse, Random(f"dream:{scale.seed}"), points, polls=True) == points
