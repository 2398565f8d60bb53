"""`reverie cache` over the recorded sessions: every miss of the simulated cache is named."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from reverie.apps.replay import Meter, PolicyName, RecordedCourse, ReplayPolicy, ReplayStage
from reverie.transcript import AssistantMessage, HeadSet, Usage
from reverie.wire import watch_entries

from .courses import recorded

pytestmark = [pytest.mark.spec("B13.named"), pytest.mark.anyio]
FULL = 5.0  # seconds that an answer takes
DROP = 2_000


@dataclass(frozen=True)
class Missed:
    """A request that read clearly less than the one before had left, and why."""

    at: float
    cause: str
    part: str


async def played(
    course: RecordedCourse, policy: PolicyName, heads: dict[int, HeadSet]
) -> tuple[ReplayStage, list[Missed]]:
    """A session under a policy, answered with the usage of a simulated cache; before some rounds
    the head is another. What was missed is worked out from the cache alone."""
    stage = ReplayStage(course.head, ReplayPolicy.of(policy))
    meter, missed, left, last, rounds = Meter(course.head), list[Missed](), 0, 0.0, 0
    for step in course.steps:
        stage.clock.time += step.gap
        if step.role != "assistant":
            await stage.add(step.blocks)
            continue
        rounds += 1
        part = ""
        if rounds in heads:
            old, new = stage.view.head, heads[rounds]
            assert old is not None
            part = "model" if old.model != new.model else "tools"
            stage.append(replace(new, reason="asked for"))
            meter = Meter(new)
        request = await stage.prepare()
        now = stage.clock.time
        charge = meter.charge(request, request.marks, now)
        layers = [why for why in stage.moved if why != "asked for"]
        drop = left - charge.read
        if drop >= max(DROP, left * 0.05) and left and not layers:
            cause = "changed" if part else "expired" if now - last > 300 else "?"
            missed.append(Missed(now, cause, part))
        left, last = charge.read + charge.written, now
        used = Usage(charge.plain, charge.read, charge.written, 5, charge.written_1h)
        blocks = [b for b in step.blocks if not b.thinking]
        stage.append(AssistantMessage(tuple(blocks), usage=used))
        stage.clock.time += FULL
    return stage, missed


def changed_heads(course: RecordedCourse) -> Iterator[tuple[int, HeadSet]]:
    """Another model a third of the way in, and another tool list later."""
    other = replace(course.head, model="another")
    yield max(2, course.rounds // 3), other
    yield max(3, 2 * course.rounds // 3), replace(other, tools="[]")


async def test_every_miss_of_the_recorded_sessions_is_named(shared: Path, scale) -> None:
    folder = shared / "data" / "sessions_dev"
    names = scale.pick(["0276a600*", "170cebcc*", "9f26971d*"], ["*.jsonl.gz"])
    causes: set[tuple[str, str]] = set()
    for path in sorted(p for name in names for p in folder.glob(name)):
        course = recorded(path)
        for policy in ("naive", "collapse"):
            stage, missed = await played(course, policy, dict(changed_heads(course)))
            found = watch_entries(stage.view.entries)
            assert [Missed(b.at, b.cause, b.part) for b in found] == missed, path.name
            causes |= {(one.cause, one.part) for one in missed}
    assert causes == {("expired", ""), ("changed", "model"), ("changed", "tools")}
