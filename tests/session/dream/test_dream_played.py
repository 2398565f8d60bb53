"""A dream as somebody played it who read each request in the model's place."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import pytest

from reverie.session import run_dream
from reverie.topics import is_topic, new, parse_index
from tests.session.dream.stage import BY_USER, NOW, Stage, played

pytestmark = [pytest.mark.spec("9")]

MEMORIES = {
    "ledger.md": (
        "Ledger close",
        "project",
        "The ledger closes on 2026-09-25. Rosa Delgado signs it.\n",
    ),
    "ledger_closing.md": (
        "Closing the ledger",
        "project",
        (
            "The ledger closes on 2026-09-28. Rosa Delgado signs it.\n\n"
            "Yesterday the auditors asked for 12 more days of logs.\n"
        ),
    ),
    "mocks.md": (
        "Mocks",
        "feedback",
        (
            "Never use mocks for the database in our tests.\n\n"
            "**Why:** a mocked test passed while the migration failed.\n"
        ),
    ),
    "freeze.md": ("Freeze", "project", "The freeze ends on 2026-09-01.\n"),
}


async def test_titles_of_files_that_were_merged_are_no_facts(tmp_path: Path) -> None:
    stage = Stage.of(tmp_path, MEMORIES)
    done = await run_dream(stage.dreamer(played("dream_played.json")))
    assert (done.status, done.left_out, done.requests) == ("completed", (), 3)
    assert done.changed == ("MEMORY.md", "freeze.md", "ledger.md", "ledger_closing.md")
    assert [(one["why"], one["fact"]) for one in done.tombstones] == [
        ("superseded_by", "The ledger closes on 2026-09-25.")
    ]
    stage.close()


COURSE = "dream_31_played.json"
BAD = {"room_3.md", "no_friday_deploys.md", "upload_limit.md"}
GOOD = {
    "release_process.md", "cutting_releases.md",  # two files with one sentence in common
    "ledger_close.md", "ledger_new_date.md",  # a date that was moved
    "checks_before_commit.md", "commit_checks.md",  # the same in other words
    "postgres.md", "postgres_backups.md",  # two files on one subject
    "parser_work.md",  # the state of a task
    "freeze.md",  # a date that has passed
    "auditors.md",  # a relative date
}  # fmt: skip


def of_31(base: Path) -> Stage:
    """A folder of 31 memories, each saved on its day, and one of them titled "Yesterday"."""
    stage = Stage.of(base, {})
    fixture = Path(__file__).parents[2] / "fixtures" / COURSE
    for key, one in json.loads(fixture.read_text("utf-8"))["memories"].items():
        stage.clock.time = datetime.fromisoformat(f"{one.pop('day')}T12:00:00+00:00").timestamp()
        stage.memories.save(key, new(key, **one).data, BY_USER)
    stage.clock.time = NOW
    return stage


async def test_of_31_memories_seven_changes_are_applied_and_three_refused(tmp_path: Path) -> None:
    stage = of_31(tmp_path)
    before = stage.files()
    assert len(before) == 32
    model = played(COURSE)
    done = await run_dream(stage.dreamer(model))
    assert done.status == "completed"
    assert done.requests <= 5
    assert "day unknown" not in "".join(one.text for one in model.requests[0].messages())
    assert "not read yet" not in "".join(one.text for one in model.requests[1].messages())
    assert {key for key in done.changed if is_topic(key)} == GOOD
    refused = {key for key in BAD if any(one.startswith(key) for one in done.left_out)}
    assert (refused, len(done.left_out)) == (BAD, 3)
    after = stage.files()
    assert {key for key in before if before[key] != after.get(key)} == {"MEMORY.md", *GOOD}
    index = parse_index(after["MEMORY.md"])
    assert {one.key for one in index.pointers} == {key for key in after if is_topic(key)}
    assert "The ledger closes on 2026-10-28" in after["MEMORY.md"].decode()
    assert sorted({one["why"] for one in done.tombstones}) == [
        "duplicate_of",
        "expired",
        "never_kept",
        "superseded_by",
    ]
    stage.close()
