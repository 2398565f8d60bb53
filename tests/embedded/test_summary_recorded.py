"""Summaries and notes over recorded sessions: what their real continuations needed is there."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from bench import compactions
from bench.adapter import bench_modules
from reverie.layers import frame, over_budget, template
from reverie.settings import DEFAULTS
from reverie.transcript import (
    EMPTY,
    AssistantMessage,
    Entry,
    NotesTask,
    RecordedSession,
    Replaced,
    UserMessage,
    View,
    apply,
    read,
    text_block,
)
from reverie.wire import render
from tests.conftest import Scale
from tests.embedded.test_notes import PATH, edited

pytestmark = [pytest.mark.spec("B1")]
FEW = ("13da966e", "7f78a542", "847ff7d2")
GROWN = 8_000


@pytest.fixture(scope="module")
def sessions(shared: Path, scale: Scale) -> list[RecordedSession]:
    bench_modules(shared)
    paths = sorted((shared / "data" / "sessions_dev").glob("*.jsonl.gz"))
    chosen = [p for p in paths if scale.proof or p.name.startswith(FEW)]
    texts = [gzip.decompress(p.read_bytes()).decode().splitlines() for p in chosen]
    return [read(lines, path.name) for lines, path in zip(texts, chosen, strict=True)]


def test_more_of_what_is_needed_is_kept_than_in_the_recorded_summary(
    sessions: list[RecordedSession], scale: Scale
):
    found = [
        outcome
        for session in sessions
        if session.program == "claude-code"
        for outcome in compactions.compactions(session.session[:8], session.entries)
    ]
    assert found
    late = set[str]() if scale.proof else {"compaction.words"}  # holds in sum over all of them
    behind = [one.key for one in compactions.bars(found) if one.leads is False]
    assert set(behind) <= late
    for outcome in found:
        assert outcome.better, outcome.name
        assert outcome.tokens <= outcome.room, outcome.name
        assert outcome.audit.fidelity >= 0.9, outcome.name


def test_notes_follow_a_session_within_their_frame_and_budgets(sessions: list[RecordedSession]):
    from reverie.embedded import answer_notes

    taken = 0
    for session in sessions:
        view, text, since, counted = EMPTY, template(), "", 0
        for entry in session.entries:
            view = apply(view, entry)
            if isinstance(entry.record, Replaced):
                counted = view.estimated
            if view.estimated - counted < GROWN or not isinstance(entry.record, AssistantMessage):
                continue
            text = edited(text, list(answer_notes(render(*asked(view, text, since)))))
            assert frame(text) == frame(template())
            assert over_budget(text, DEFAULTS) == []
            since, counted = view.items[len(view.items) - 1].id, view.estimated
            taken += 1
    assert taken > len(sessions)


def asked(view: View, text: str, since: str) -> tuple[View, str, NotesTask]:
    told = UserMessage((text_block("Take notes."),), "instruction")
    ahead = apply(view, Entry("instruction", view.leaf, 0.0, told))
    return ahead, "session_memory", NotesTask(path=PATH, notes=text, since=since)
