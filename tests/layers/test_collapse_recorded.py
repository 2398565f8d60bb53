"""Collapse over recorded sessions: sealed bytes, resumed bytes, bound thinking."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from reverie.apps.replay import RecordedCourse, of_lines
from reverie.layers import FOLDED, PASTE, explanation, seal
from reverie.store import Folder
from reverie.testing import FixedFlags, ManualClock, MemoryDisk, world
from reverie.toolbox import SealedCalls
from reverie.transcript import (
    REFERENCE,
    AssistantMessage,
    Entry,
    SentBlock,
    Started,
    UserMessage,
    View,
    apply,
    blobs,
    branch,
    decode,
    encode,
    fold_entries,
    is_typed,
    part_reference,
    reference,
    text_block,
)
from reverie.wire import Request, render
from tests.conftest import Scale
from tests.layers.running import MODEL, Running, Simulated, small_tail
from tests.transcript.test_fold import pairs_up

pytestmark = [pytest.mark.spec("B11"), pytest.mark.spec("B12")]
FEW = ("189d8afc", "36ba8a60", "839b35f7")
TAILS = (10_000, 40_000)


@pytest.fixture(scope="module")
def courses(shared: Path, scale: Scale) -> list[RecordedCourse]:
    paths = sorted((shared / "data" / "sessions_dev").glob("*.jsonl.gz"))
    chosen = [p for p in paths if scale.proof or p.name.startswith(FEW)]
    lines = [gzip.decompress(p.read_bytes()).decode().splitlines() for p in chosen]
    found = [of_lines(text, path.name) for text, path in zip(lines, chosen, strict=True)]
    return [course for course in found if course.rounds]


def sealed_bytes(request: Request, view: View) -> list[str]:
    """The raw blocks of everything that stands for older messages."""
    standing = {i.id for i in view.items if i.kind == "replaced"}
    return [p.block.raw for m in request.messages() for p in m.pieces if p.source in standing]


@pytest.mark.parametrize("tail", TAILS)
async def test_sealed_bytes_never_change_but_where_a_fold_is_announced(
    courses: list[RecordedCourse], tail: int
):
    seals = 0
    for course in courses:
        going = Running(small_tail(tail))
        going.append(course.head)
        sealed: list[str] = []
        for n, step in enumerate(course.steps):
            await going.play(course, 0)
            going.clock.time += step.gap
            if step.role != "assistant":
                await going.add(*step.blocks, origin=step.role)
                continue
            await going.answer(step.blocks)
            request, moved = going.requests[-1]
            now = sealed_bytes(request, going.view)
            assert FOLDED in moved or now[: len(sealed)] == sealed, (course.session, n)
            sealed = now
        going.extends_unless_announced()
        seals += len(going.seals())
    assert seals > len(courses)


async def test_every_word_of_the_user_and_every_call_can_be_found(courses: list[RecordedCourse]):
    for course in courses:
        going = Running(small_tail(10_000))
        await going.play(course)
        text = going.text()
        user = [b for s in course.steps if s.role == "user" for b in s.blocks if b.type == "text"]
        for block in user:
            if is_typed(block.get("text")) and block.tokens <= PASTE:
                assert block.get("text") in text
        live = {c for i in going.view.items if i.kind == "message" for c in i.calls}
        calls = [b.get("id") for s in course.steps for b in s.blocks if b.type == "tool_use"]
        folded = (i.covers for i in going.view.items if i.reason == FOLDED)
        entries = going.view.entries.among(frozenset[str]().union(*folded))
        parts = {part_reference(e.id) for e in entries} & set(REFERENCE.findall(text))
        held = {
            b.call
            for e in entries
            if isinstance(e.record, AssistantMessage)
            for b in e.record.blocks
        }
        assert bool(parts) == bool(held)
        assert all(c in live or c in held or reference(c) in text for c in calls)


@pytest.mark.parametrize("tail", TAILS)
async def test_a_request_with_a_reference_says_what_it_is_and_each_can_be_read_back(
    courses: list[RecordedCourse], tail: int, tmp_path: Path
):
    for course in courses:
        going = Running(small_tail(tail))
        await going.play(course)
        folder = Folder(tmp_path / course.session)
        for key, data in going.disk.files.items():
            folder.write(f"s/{key}", data)
        source = SealedCalls(lambda g=going: g.view, folder, "s")
        known: dict[str, bool] = {}
        for request, _ in going.requests:
            texts = [p.block.text for m in request.messages() for p in m.pieces if is_ours(p)]
            found = set(REFERENCE.findall("\n".join(texts))) - {"r:abc123"}
            if found:
                assert texts[0] == explanation(going.world.way_back)
            for name in found - known.keys():
                read = await source.find(name)
                known[name] = read is not None and bool(read.text) and not read.warning
        assert all(known.values())


def is_ours(piece: SentBlock) -> bool:
    """Whether a block stands for others."""
    return piece.block.type == "text" and piece.block.get("text").startswith(
        ("[Earlier rounds", "[sealed", "[folded")
    )


def reread(entries: list[Entry]) -> View:
    """What a process that starts anew reads from the disk."""
    stored = {k: v for e in entries for k, v in blobs(e.record).items()}
    return fold_entries(decode(encode(e), stored.get) for e in entries)


async def test_killed_and_resumed_anywhere_it_sends_the_same_bytes(
    courses: list[RecordedCourse], scale: Scale
):
    for course in courses:
        whole = Running(small_tail(10_000))
        await whole.play(course)
        steps = len(course.steps)
        for cut in range(1, steps, max(1, steps // scale.pick(3, 12))):
            first = Running(small_tail(10_000))
            await first.play(course, cut)
            again = Running(small_tail(10_000), view=reread(list(first.view.entries)))
            again.clock.time = first.clock.time
            for step in course.steps[cut:]:
                again.clock.time += step.gap
                if step.role == "assistant":
                    await again.answer(step.blocks)
                else:
                    await again.add(*step.blocks, origin=step.role)
            assert render(again.view).body() == render(whole.view).body()


async def test_a_fork_begins_with_its_parents_bytes(courses: list[RecordedCourse]):
    for course in courses:
        going = Running(small_tail(10_000))
        await going.play(course)
        parent = render(going.view)
        start = Entry("f0", "", 1.0, Started("s", "/p", "/p", "1", "notes", "a"))
        child = branch(going.view, start)
        child = apply(child, Entry("f1", "", 2.0, UserMessage((text_block("notes, please"),))))
        asked = world(
            clock=ManualClock(going.clock.time + 9_999),
            disk=MemoryDisk(),
            flags=FixedFlags(),
            settings=small_tail(10_000),
        )
        for record in await seal(child, asked):
            child = apply(child, Entry("f2", child.leaf, 3.0, record))
        assert render(child).extends(parent)
        pairs_up(render(child))


@pytest.mark.parametrize("tail", TAILS)
async def test_with_the_recorded_thinking_bound_no_request_is_refused(
    courses: list[RecordedCourse], tail: int
):
    """The simulator binds each recorded block to the request that it answers here, and
    refuses a request that carries it behind anything else."""
    thoughts = strips = 0
    for course in courses:
        going = Simulated(small_tail(tail))
        going.begin(course.head)
        await going.play(course)
        assert going.view.head is not None
        assert going.view.head.model == MODEL
        thoughts += course.thinking
        strips += sum(len(s.strips) for s in going.seals())
    assert thoughts
    assert strips
