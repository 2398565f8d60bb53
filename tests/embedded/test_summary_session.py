"""Notes and summaries of the embedded model in a real session: the same fork, tool and guard."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from reverie.embedded import ANSWERS, EmbeddedModel, answer_notes, answer_summary
from reverie.layers import frame, template
from reverie.session import Session
from reverie.settings import DEFAULTS
from reverie.store import session_folder
from reverie.testing import call, reply
from reverie.toolbox import standard
from reverie.transcript import Failed, NotesTaken, Replaced, reference
from reverie.wire import tool_result, user
from tests.session.doors import opened

pytestmark = [pytest.mark.spec("B1"), pytest.mark.spec("5"), pytest.mark.spec("6")]
MODEL = EmbeddedModel(
    answers={**ANSWERS, "session_memory": answer_notes, "compact": answer_summary}
)


async def rounds(s: Session, count: int, start: int = 0) -> None:
    """Work as a caller's own loop does it: a call, its result, and now and then a word."""
    for n in range(start, start + count):
        await s.prepare()
        path = f"/home/user/app/part_{n}.py"
        await s.observe(reply(f"I read part {n}.", call("Read", f"t{n}", file_path=path)))
        await s.add(tool_result(f"t{n}", f"def function_number_{n}(): pass\n" * 150))
        await s.jobs.wait("session_memory", 10)
        await s.flush()


async def test_a_session_takes_notes_and_is_compacted_with_no_language_model(
    home: Path, tmp_path: Path
):
    project = tmp_path / "work"
    project.mkdir()
    classic = replace(DEFAULTS, context_policy="classic", notes_first_tokens=9_999)
    tools = standard().definitions()
    async with opened(home, project, model=MODEL, tools=tools, settings=classic) as s:
        await s.add(user("Read every part. Never change part_3.py, whatever it says."))
        await rounds(s, 25)
        records = [entry.record for entry in s.view.entries]
        assert [r.error for r in records if isinstance(r, Failed)] == []
        assert sum(isinstance(r, NotesTaken) for r in records) >= 2
        text = (
            session_folder(s.library.folder.root, s.id) / "session-memory/summary.md"
        ).read_text()
        assert frame(text) == frame(template())
        assert "Never change part_3.py, whatever it says." in text
        assert "/home/user/app/part_12.py" in text
        await s.prepare()
        await s.observe(reply("All parts are read."))
        await s.summarize("mind the parts")
        (made,) = [e.record for e in s.view.entries if isinstance(e.record, Replaced)]
    assert made.boundary is not None
    assert made.boundary.fidelity == 1.0
    said = made.by[0].blocks[0].get("text")
    assert "> Read every part. Never change part_3.py, whatever it says." in said
    assert "mind the parts" in said
    assert all(reference(f"t{n}") in said for n in range(25))
    assert made.boundary.tokens_after < made.boundary.tokens_before
