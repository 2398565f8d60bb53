"""A dream as somebody played it who read each request in the model's place."""

from __future__ import annotations

from pathlib import Path

import pytest

from reverie.session import run_dream
from tests.session.dream.stage import Stage, played

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
