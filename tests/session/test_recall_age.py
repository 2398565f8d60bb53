"""The age that recall tells is that of what was written, not that of a checkout or a copy."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from reverie.session import RecalledNotes, RecallHistory
from reverie.settings import DEFAULTS
from reverie.store import MemoryFolder, MemoryStore, Project
from reverie.testing import ManualClock
from reverie.topics import Origin, Trust, new
from reverie.transcript import Attached, UserMessage, text_block
from tests.session.doors import opened
from tests.session.recall_stage import hit

pytestmark = [pytest.mark.spec("9")]

NOW = datetime(2026, 11, 17, 12, tzinfo=UTC).timestamp()
MARCH = datetime(2026, 3, 10, 12, tzinfo=UTC).timestamp()
BY = Origin("save", Trust.USER, agent="user")


@pytest.fixture
def memories(tmp_path: Path) -> Iterator[MemoryStore]:
    (tmp_path / "project").mkdir()
    made = MemoryStore.of(
        Project.at(tmp_path / "project", home=tmp_path / "home", environ={}, settings=DEFAULTS),
        now=lambda: MARCH,
    )
    yield made
    made.close()


def text(key: str, head: str = "") -> bytes:
    body = f"Rosa moved the {key[:-3]} ledger to the cellar."
    data = new(key, name=key[:-3], description="ledgers", type="project", body=body).data
    return data.replace(b"type: project\n", b"type: project\n" + head.encode())


def checked_out(memories: MemoryStore, **files: bytes) -> None:
    """Files as a checkout leaves them: all of this moment."""
    for name, data in files.items():
        (memories.folder.root / f"{name}.md").write_bytes(data)
    for path in memories.folder.root.glob("*.md"):
        os.utime(path, (NOW, NOW))


def shown(memories: MemoryStore, key: str) -> str:
    notes = RecalledNotes(memories, memories.root, "s", DEFAULTS)
    chosen, left = notes.compose([hit(key)], RecallHistory(), NOW, 5.0)
    assert left == []
    return chosen[0].text


def test_after_a_checkout_a_memory_is_as_old_as_the_history_says(memories: MemoryStore) -> None:
    memories.save("red.md", text("red.md"), BY)
    checked_out(memories)
    assert shown(memories, "red.md").startswith("Saved 252 days ago: ")


def test_after_a_checkout_a_memory_is_as_old_as_its_head_says(memories: MemoryStore) -> None:
    head = "metadata:\n  modified: 2026-03-10T12:00:00Z\n"
    checked_out(memories, red=text("red.md", head), blue=text("blue.md"))
    assert shown(memories, "red.md").startswith("Saved 252 days ago: ")


def test_after_a_checkout_an_age_that_nobody_knows_is_not_0_days(memories: MemoryStore) -> None:
    checked_out(memories, red=text("red.md"), blue=text("blue.md"))
    told = shown(memories, "red.md").splitlines()
    assert told[0].startswith("Saved on a day that is not known: ")
    assert told[1].startswith("It is an observation from one point in time: check")
    os.utime(memories.folder.root / "red.md", (MARCH, MARCH))
    assert shown(memories, "red.md").startswith("Saved 252 days ago: ")


async def test_a_date_is_looked_for_in_what_is_recalled_and_not_in_every_file(
    tmp_path: Path, memories: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither history nor head gives one: the index knows which times files share."""
    (memories.root / "red.md").write_bytes(text("red.md"))
    for n in range(20):
        (memories.root / f"tulip_{n}.md").write_text(f"Tulip number {n} needs water at dawn.\n")
    os.utime(memories.root / "red.md", (MARCH, MARCH))
    looked: list[str] = []
    stat = MemoryFolder.stat
    parts = {"memories": memories, "clock": ManualClock(NOW)}
    async with opened(tmp_path / "home", tmp_path / "project", **parts) as session:
        recall = session.recall
        assert recall is not None
        monkeypatch.setattr(
            MemoryFolder, "stat", lambda self, key: looked.append(key) or stat(self, key)
        )
        asked = "Where did Rosa move the red ledger?"
        await session.append(UserMessage((text_block(asked),)))
        recall.begin(session.view.leaf, asked)
        (found,) = [r for r in await recall.ready(20) if isinstance(r, Attached)]
        told = found.blocks[0].text
        monkeypatch.undo()
    assert "Saved 252 days ago: " in told
    assert not [key for key in looked if key not in told]
