"""Young memories stand whole in the head: which, in whose name, and not a second time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reverie.session import (
    RecalledMemory,
    RecalledNotes,
    RecallHistory,
    RequestHead,
    index_files,
    young_memories,
)
from reverie.session.context import MAX_FILES, WHOLE
from reverie.settings import Settings
from reverie.store import MemoryStore, RecallHit
from reverie.testing import ManualClock, reply
from reverie.topics import Origin, Trust, render

from .recall_stage import WEB, Fixed, hit, last_text, stage, write

pytestmark = [pytest.mark.spec("8.young")]
USER = Origin("save", Trust.USER)


@pytest.fixture
def memories(tmp_path: Path):
    folder, history = tmp_path / "m", tmp_path / "h"
    with MemoryStore(folder, history, tmp_path / "home", now=ManualClock().now) as opened:
        yield opened


def keys(memories: MemoryStore, tokens: int = 2_000) -> list[str]:
    found = young_memories(memories, Settings(young_tokens=tokens), memories.folder.scan())
    return [Path(one.path).name for one in found]


def one_of_each(memories: MemoryStore) -> None:
    for kind in ("project", "reference", "user", "feedback"):
        write(memories, f"{kind}.md", f"The body of {kind}.", type=kind)


def test_bodies_of_all_four_types_stand_in_the_head(memories: MemoryStore) -> None:
    one_of_each(memories)
    text = render(young_memories(memories, Settings(), memories.folder.scan()))
    for kind in ("project", "reference", "user", "feedback"):
        assert f"The body of {kind}." in text
    assert "] feedback.md (a rule the user gave you earlier; it holds" in text
    assert "does not command" not in text


def test_what_stands_whole_in_the_head_has_no_line_in_its_index(memories: MemoryStore) -> None:
    one_of_each(memories)
    write(memories, "long.md", "words " * 100, type="project")
    for one in memories.folder.scan():
        memories.folder.point(one.key)
    settings, scanned = Settings(young_tokens=100), memories.folder.scan()
    whole = young_memories(memories, settings, scanned)
    (index,) = index_files(memories.folder, scanned=scanned, whole=whole)
    for name, lines in {"user.md": 0, "feedback.md": 0, "project.md": 1, "long.md": 1}.items():
        assert index.text.count(f"({name})") == lines
    assert index.text.endswith(WHOLE)
    (index,) = index_files(memories.folder, scanned=scanned)
    assert index.text.count("](") == 5
    assert WHOLE not in index.text


def test_above_the_limit_those_about_the_user_stand_there_and_then_none(
    memories: MemoryStore,
) -> None:
    one_of_each(memories)
    write(memories, "long.md", "words " * 100, type="project")
    assert keys(memories, 100) == ["feedback.md", "user.md"]
    for day in ("2023-11-20", "2023-11-10"):  # the clock stands between the two
        about = f"Only fixes until {day}"
        write(memories, f"{day}.md", about, type="project", description=about)
    assert keys(memories, 100) == ["feedback.md", "user.md", "2023-11-20.md"]
    write(memories, "rules.md", "words " * 100, type="feedback")
    assert keys(memories, 100) == []


def test_a_folder_of_many_is_not_young_and_its_history_is_not_asked(memories: MemoryStore) -> None:
    one_of_each(memories)
    for number in range(MAX_FILES):
        (memories.root / f"n{number}.md").write_text("---\nname: n\ntype: project\n---\nA.\n")
    assert keys(memories) == ["feedback.md", "user.md"]


def test_what_is_untrusted_or_the_teams_is_not_among_them(memories: MemoryStore) -> None:
    write(memories, "team/theirs.md", "Theirs.", type="feedback")
    write(memories, "mine.md", "Mine.", type="feedback")
    data = (memories.root / "mine.md").read_bytes().replace(b"Mine", b"From the web")
    memories.save("web.md", data, WEB)
    assert keys(memories) == ["mine.md"]


async def test_what_stands_in_the_head_is_not_injected_until_it_changes(tmp_path: Path) -> None:
    found = Fixed([hit("pets.md")])
    async with stage(tmp_path / "home", tmp_path / "p", finder=found) as here:
        write(here.memories, "pets.md", "The office cat is called Ada.", type="project")
        head = render(young_memories(here.memories, Settings(), here.memories.folder.scan()))
        assert "called Ada" in head
        await here.session.append(
            RequestHead("m1", context=head).record("the head with what is remembered")
        )
        await here.say("what is the office cat called")
        await here.prepare()
        assert [one.why for one in here.ledger.candidates] == ["it stands in the head already"]
        assert here.injected == []
        await here.session.observe(reply("Ada."))
        await here.end()
        write(here.memories, "pets.md", "The office cat is called Grace.", type="project")
        await here.say("and now, what is it called")
        assert "Grace" in last_text(await here.prepare())


class Faulty(RecalledNotes):
    """Notes of which one cannot be put into its form."""

    def _made(self, hit: RecallHit, *more: Any) -> RecalledMemory | str:  # pyright: ignore[reportIncompatibleMethodOverride]
        if hit.file == "bad.md":
            raise IsADirectoryError(21, "Is a directory")
        return super()._made(hit, *more)


@pytest.mark.spec("8.selection")
def test_a_memory_that_fails_costs_no_other(memories: MemoryStore, tmp_path: Path) -> None:
    for key in ("bad.md", "good.md"):
        write(memories, key, "The office cat is called Ada.")
    notes = Faulty(memories, tmp_path, "s1", Settings())
    chosen, left = notes.compose([hit("bad.md"), hit("good.md")], RecallHistory(), 0.0, 1.0)
    assert [one.key for one in chosen] == ["good.md"]
    assert [(one.file, one.why) for one in left] == [
        ("bad.md", "it failed: IsADirectoryError: [Errno 21] Is a directory")
    ]
