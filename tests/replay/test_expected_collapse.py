"""What the footer and `/context` tell of the next collapse, against when it comes."""

from __future__ import annotations

import statistics

import pytest

from reverie.apps.replay import ReplayPolicy, ReplayStage
from reverie.session import tokens_until_collapse
from reverie.transcript import Replaced

from .courses import course, session

pytestmark = [pytest.mark.spec("B11.expected"), pytest.mark.anyio]


@pytest.mark.parametrize("size", [2_000, 8_000])
async def test_it_is_told_to_within_a_round(size: int) -> None:
    found = course(*session(60, size=size))
    stage = ReplayStage(found.head, ReplayPolicy.of("collapse"))
    grown, told, misses = 0, list[tuple[int, int]](), list[int]()
    for step in found.steps:
        if step.role != "assistant":
            before = stage.view.estimated
            await stage.add(step.blocks)
            grown += stage.view.estimated - before
            continue
        known = len(stage.view.entries)
        await stage.prepare()
        if any(isinstance(e.record, Replaced) for e in stage.view.entries.since(known)):
            misses += [abs(expected - (grown - at)) for at, expected in told]
            told = []
        before = stage.view.estimated
        stage.observe([b for b in step.blocks if not b.thinking])
        grown += stage.view.estimated - before
        told.append((grown, tokens_until_collapse(stage.view, stage.world)))
    assert len(misses) > 10
    assert statistics.median(misses) <= size // 4 + 200  # tokens of a round
