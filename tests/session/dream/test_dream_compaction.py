"""A dream whose transcript outgrows its window compacts it, goes on and lands; a fork never does.

The simulated provider counts the window, binds thinking to what precedes it and refuses what no
real one would take.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from reverie.embedded import EmbeddedModel
from reverie.errors import PromptTooLong
from reverie.session import Dream, DreamContext, Fork, SessionLibrary, dreams_folder, run_dream
from reverie.simulator import Engine, Given, call, last_text, thinking_block
from reverie.store import learned_window
from reverie.testing import ScriptedModel, reply
from reverie.testing import call as block
from reverie.transcript import (
    Block,
    Entry,
    Failed,
    ForkEnded,
    Object,
    Replaced,
    Sent,
    Task,
    UserMessage,
    fold_entries,
    reference,
)
from reverie.wire import Request, render, user
from reverie.world import Capabilities, complete
from tests.session.compacts import ASKED, Claiming, a_summary
from tests.session.compacts import Stage as Talking
from tests.session.dream.stage import MEMORIES, Stage, copy_of
from tests.session.dream.test_dream import MERGED, REASONS

pytestmark = pytest.mark.spec("9")
WINDOW = 24_000
PARTS = 8
BULK = {
    f"part_{n:02}.md": (
        f"Part {n}",
        "project",
        "".join(f"Line {i} says where part {n} of the build is kept.\n" for i in range(190)),
    )
    for n in range(PARTS)
}
READ = ("MEMORY.md", "tests.md", "tests_again.md")


@dataclass
class Sleeper:
    """A model that reads the whole folder, file by file, and then makes one of two."""

    summaries: Callable[[int], Given] = lambda _: a_summary()
    parts: int = PARTS
    asked: int = 0
    done: int = 0
    looked_back: str = ""
    bodies: list[Object] = field(default_factory=list)

    def __call__(self, body: Object) -> Given:
        if ASKED in last_text(body):
            self.asked += 1
            return self.summaries(self.asked)
        self.bodies.append(body)
        folder = re.search(r"`(\S+)` is a copy of the memory folder", str(body["messages"]))
        assert folder is not None, "the instruction is gone"
        self.done += 1
        steps = self._step(folder[1])
        return (
            [thinking_block(f"Step {self.done}."), *steps] if not isinstance(steps, str) else steps
        )

    def _step(self, folder: str) -> list[Block] | str:
        n = self.done
        if n == 1:
            return [_read(folder, name) for name in READ]
        if n <= self.parts + 1:
            return [_read(folder, f"part_{n - 2:02}.md")]
        if n == self.parts + 2:
            return [call("ReadBack", {"reference": reference("toolu_tests_again_md")}, "toolu_b")]
        if n == self.parts + 3:
            self.looked_back = last_text(self.bodies[-1])
            index = (Path(folder) / "MEMORY.md").read_text()
            kept = [row for row in index.splitlines(True) if "(tests_again.md)" not in row]
            texts = {"tests.md": MERGED, "tests_again.md": "", "MEMORY.md": "".join(kept)}
            return [_write(folder, name, text) for name, text in texts.items()]
        return REASONS


def _read(folder: str, name: str) -> Block:
    return call("Read", {"file_path": f"{folder}/{name}"}, f"toolu_{name.replace('.', '_')}")


def _write(folder: str, name: str, text: str) -> Block:
    given = {"file_path": f"{folder}/{name}", "content": text}
    return call("Write", given, f"toolu_w_{name.replace('.', '_')}")


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    made = Stage.of(tmp_path, {**MEMORIES, **BULK})
    yield made
    made.close()


def sleeping(
    stage: Stage, sleeper: Sleeper, *, window: int = WINDOW, claims: int = 0
) -> tuple[DreamContext, Engine]:
    engine = Engine(sleeper, clock=stage.clock.now)
    model = Claiming(engine, window=window, minimum=1, cache_edits=False)
    model.claimed = claims
    return replace(stage.dreamer([], budget=True), model=model), engine


async def dreamt(dreamer: DreamContext) -> Dream:
    try:
        return await run_dream(dreamer)
    finally:
        if dreamer.budget is not None:
            dreamer.budget.close()


def kept(stage: Stage, done: Dream) -> tuple[Entry, ...]:
    """The dream's transcript, as the disk has it."""
    library = SessionLibrary(dreams_folder(stage.memories), stage.library.project)
    try:
        return library.read(done.id).entries
    finally:
        library.close()


def found(entries: tuple[Entry, ...], kind: type) -> list[Any]:
    return [e.record for e in entries if isinstance(e.record, kind)]


def refused(engine: Engine) -> list[str]:
    return [logged.error for logged in engine.log if logged.error]


def first_message(body: Object) -> str:
    messages = body["messages"]
    assert isinstance(messages, list)
    return str(messages[0])


# --- at the threshold


async def test_a_dream_that_outgrows_its_window_compacts_goes_on_and_lands(stage: Stage) -> None:
    sleeper = Sleeper()
    dreamer, engine = sleeping(stage, sleeper)
    done = await dreamt(dreamer)
    assert (done.status, done.reason) == ("completed", "")
    assert done.changed == ("MEMORY.md", "tests.md", "tests_again.md")
    assert "tests_again.md" not in stage.files()
    assert refused(engine) == []
    entries = kept(stage, done)
    made = found(entries, Replaced)
    assert len(made) == sleeper.asked >= 1
    for one in made:
        assert one.boundary.trigger == "auto"
        assert one.boundary.tokens_before > dreamer.settings.compact_threshold(WINDOW)
        assert one.boundary.tokens_after < one.boundary.tokens_before - WINDOW // 5
    assert "before every commit, always" in sleeper.looked_back
    told = next(e.record for e in entries if isinstance(e.record, UserMessage))
    assert told.origin == "instruction"
    assert "```reasons" in first_message(
        sleeper.bodies[-1]
    )  # what it was told stays as it is, in front of the summary
    assert any(n.text.startswith("in a dream: compacted") for n in stage.said)
    assert not any("the notes" in n.text for n in stage.said)


async def test_summaries_are_forks_that_read_the_dreams_cache_and_count_as_its_cost(
    stage: Stage,
) -> None:
    sleeper = Sleeper()
    dreamer, engine = sleeping(stage, sleeper)
    done = await dreamt(dreamer)
    entries = kept(stage, done)
    forks = found(entries, ForkEnded)
    assert [(f.source, f.outcome) for f in forks] == [("compact", "completed")] * sleeper.asked
    for one in forks:
        assert one.usage.written == 0
        assert one.usage.read > 0.8 * one.usage.total
        assert (dreams_folder(stage.memories) / done.id / "agents" / f"{one.agent}.jsonl").is_file()
    assert done.requests == len(engine.log) == sleeper.done + sleeper.asked


async def test_its_transcript_folds_to_the_bytes_that_were_sent(stage: Stage) -> None:
    sleeper = Sleeper()
    dreamer, _ = sleeping(stage, sleeper)
    entries = kept(stage, await dreamt(dreamer))
    sent = [n for n, e in enumerate(entries) if isinstance(e.record, Sent)]
    assert len(sent) == len(sleeper.bodies)
    for at in sent:
        record = entries[at].record
        assert isinstance(record, Sent)
        assert render(fold_entries(entries[:at]), record.source).parts() == record.parts


@pytest.mark.parametrize("setting", ["embedded", "handed in"])
async def test_the_model_for_summaries_writes_those_of_a_dream(stage: Stage, setting: str) -> None:
    sleeper = Sleeper()
    dreamer, engine = sleeping(stage, sleeper)
    other = ScriptedModel(lambda _: a_summary(), name="another")
    chosen = EmbeddedModel() if setting == "embedded" else other

    async def summariser() -> Any:
        return chosen

    done = await dreamt(replace(dreamer, summariser=summariser))
    assert done.status == "completed"
    assert sleeper.asked == 0
    made = found(kept(stage, done), Replaced)
    assert made
    assert len(other.requests) == (len(made) if setting != "embedded" else 0)
    assert "```reasons" in first_message(sleeper.bodies[-1])
    assert refused(engine) == []


async def test_three_failures_stop_it_for_this_dream_and_it_goes_on(stage: Stage) -> None:
    sleeper = Sleeper(summaries=lambda _: "I cannot.", parts=7)
    dreamer, engine = sleeping(stage, sleeper, window=40_000, claims=20_000)
    done = await dreamt(dreamer)
    assert done.status == "completed"
    entries = kept(stage, done)
    assert [f.layer for f in found(entries, Failed)] == ["compaction"] * 3
    assert not found(entries, Replaced)
    assert any("stops for this agent" in n.text for n in stage.said)
    assert not any("/compact" in n.text for n in stage.said)
    assert refused(engine) == []


# --- a request that was refused


async def test_a_round_that_is_refused_is_compacted_and_sent_once_more(stage: Stage) -> None:
    sleeper = Sleeper()
    dreamer, engine = sleeping(stage, sleeper, window=20_000, claims=60_000)
    done = await dreamt(dreamer)
    assert (done.status, done.reason) == ("completed", "")
    entries = kept(stage, done)
    assert found(entries, Replaced)
    assert refused(engine)
    assert all("too long" in one for one in refused(engine))
    assert learned_window(stage.home, dreamer.model.name) == 20_000
    again, engine = sleeping(stage, Sleeper(parts=3), window=20_000, claims=60_000)
    await dreamt(again)
    assert refused(engine) == []


async def test_where_that_does_not_help_the_dream_fails_and_nothing_changes(stage: Stage) -> None:
    before = stage.files()
    asked: list[str] = []

    def answer(request: Request) -> Any:
        asked.append(request.task.kind)
        if request.task.kind == "compact":
            return a_summary()
        if len(asked) > 6:
            return PromptTooLong("the request is too long")
        folder = copy_of(request)
        return reply(
            *(
                block("Read", f"r{len(asked)}-{n}", file_path=f"{folder}/part_{n:02}.md")
                for n in range(3)
            )
        )

    model = ScriptedModel(answer, capabilities=Capabilities(marks=4, window=200_000))
    done = await run_dream(stage.dreamer(model))
    assert done.status == "failed"
    assert "no longer fits" in done.reason
    assert "/compact" not in done.reason
    assert asked[6:] == ["dream", "compact", "dream"]  # refused, compacted, refused for good
    assert stage.files() == before


# --- who never does


async def test_a_fork_never_compacts(home: Path, tmp_path: Path) -> None:
    talking = Talking(home, tmp_path / "work")
    too_long = ScriptedModel(lambda _: PromptTooLong("the request is too long"))
    async with talking.open(prefix="s") as s:
        await s.add(user("Build all parts."))
        await talking.rounds(s, 30)
        await s.observe(await complete(ScriptedModel(["Done."]), await s.prepare()))
        child: Fork = await s.open_fork("session_memory")
        await child.instruct("Take notes. " * 4_000)
        assert child.view.tokens > s.world.settings.compact_threshold(s.world.window)
        request = await child.render_request(Task("session_memory"))
        assert request.difference(child.base) is None
        with pytest.raises(PromptTooLong) as refusal:
            await child.ask(too_long, Task("session_memory"))
        assert str(refusal.value) == "the request is too long"
        assert len(too_long.requests) == 1
        assert not found(tuple(child.view.entries), Replaced)
        child.close()
    assert talking.talk.asked == 0


@pytest.mark.parametrize("policy", ["classic", "collapse"])
async def test_the_embedded_dream_keeps_all_it_read(tmp_path: Path, policy: str) -> None:
    name, kind, body = MEMORIES["tests.md"]
    equal = {"tests_again.md": (name, kind, body.replace(".", "!"))}
    stage = Stage.of(tmp_path, {**MEMORIES, **equal})
    settings = replace(stage.settings, context_window=4_000, collapse_tail=500, collapse_kept=100)
    stage.settings = replace(settings, context_policy=policy)
    dreamer = replace(stage.dreamer([]), model=EmbeddedModel(stage.settings))
    done = await dreamt(dreamer)
    assert done.status == "completed"
    entries = kept(stage, done)
    assert not found(entries, Replaced)
    assert fold_entries(entries).tokens > stage.settings.compact_threshold(4_000)
    assert "tests_again.md" in done.changed
    stage.close()
