"""A dream of a model without tools: files in, whole files and reasons out, faults back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reverie.errors import Held
from reverie.session import RETRIES, find, run_dream, undo
from reverie.testing import ScriptedModel
from reverie.topics import INDEX
from reverie.wire import Request
from reverie.world import Capabilities
from tests.session.dream.stage import BY_USER, Stage, memory
from tests.session.dream.test_dream_played import of_31

pytestmark = [pytest.mark.spec("9.words")]
FIXTURE = Path(__file__).parents[2] / "fixtures" / "dream_words_played.json"


def in_words(*answers: str) -> ScriptedModel:
    return ScriptedModel(list(answers), name="words", capabilities=Capabilities(tools=False))


def said(request: Request) -> str:
    return request.at(request.count - 1).pieces[-1].block.get("text")


def block(name: str, text: str = "") -> str:
    return f'<memory file="{name}">\n{text}</memory>\n'


async def test_a_played_dream_lands_with_its_faults_corrected_and_can_be_undone(
    tmp_path: Path,
) -> None:
    stage = of_31(tmp_path)
    before = stage.files()
    model = in_words(*(one["text"] for one in json.loads(FIXTURE.read_text("utf-8"))["rounds"]))
    done = await run_dream(stage.dreamer(model))
    assert (done.status, done.left_out, done.requests) == ("completed", (), 2)
    first, second = model.requests
    assert second.extends(first)  # the faults go back in the same conversation
    assert [json.loads(one.body()).get("tools", []) for one in model.requests] == [[], []]
    assert "dream_write" not in said(first)
    assert "Grep" not in said(first)
    assert "[tools]" not in said(first)
    assert "commit_checks.md:7: It takes a minute." in said(second)
    after = stage.files()
    assert {key for key in {*before, *after} if before.get(key) != after.get(key)} == {
        INDEX, "auditors.md", "checks_before_commit.md", "commit_checks.md", "cutting_releases.md",
        "freeze.md", "ledger_close.md", "ledger_new_date.md", "parser_work.md",
        "release_process.md",
    }  # fmt: skip
    lines = after[INDEX].decode().splitlines()
    assert "- [Ledger close](ledger_close.md) — The ledger closes on 2026-10-28" in lines
    assert not [one for one in lines if "commit_checks.md" in one]
    assert [one for one in lines if "room_" in one] == [
        one for one in before[INDEX].decode().splitlines() if "room_" in one
    ]
    undo(stage.memories, find(stage.memories, done.id))
    assert stage.files() == before
    stage.close()


async def test_what_stays_wrong_is_left_out_and_the_rest_is_applied(tmp_path: Path) -> None:
    stage = Stage.of(tmp_path)
    release = memory("release.md", "Release date", "project", "Some day.\n").decode()
    new = memory("desk.md", "Desk", "user", "The user stands at a desk.\n").decode()
    answer = block("release.md", release) + block("desk.md", new) + block("x/../../y.md", "z\n")
    model = in_words(*([answer] * (RETRIES + 2)))
    done = await run_dream(stage.dreamer(model))
    assert len(model.requests) == RETRIES + 1
    assert done.status == "completed"
    assert done.changed == (INDEX, "desk.md")
    assert "14 November" in stage.files()["release.md"].decode()
    assert [one.partition(":")[0] for one in done.left_out] == ["x/../../y.md", "release.md"]
    stage.close()


async def test_files_over_the_limit_are_not_shown_and_stay(tmp_path: Path) -> None:
    large = {
        f"m{n}.md": (f"Memory {n}", "project", f"Number {n}. " + "Otters swim. " * 2_000 + "\n")
        for n in range(6)
    }
    stage = Stage.of(tmp_path, {})
    for n, (key, (name, kind, body)) in enumerate(large.items()):
        stage.clock.time += 86_400 * n
        stage.memories.save(key, memory(key, name, kind, body), BY_USER)
    before = stage.files()
    model = in_words(*[block("m0.md")] * 3)
    done = await run_dream(stage.dreamer(model))
    prompt = said(model.requests[0])
    assert len(prompt) < 110_000
    assert "Number 5." in prompt
    assert "Number 0." not in prompt
    assert "- [project] m0.md" in prompt
    assert "m0.md: this file was not shown" in said(model.requests[1])
    assert stage.files() == before
    assert done.status == "completed"
    assert not done.changed
    stage.close()


async def test_by_itself_it_is_asked_once_a_day_also_where_it_failed(tmp_path: Path) -> None:
    stage = Stage.of(tmp_path)
    failing = ScriptedModel(
        [RuntimeError("no answer")], name="words", capabilities=Capabilities(tools=False)
    )
    assert (await run_dream(stage.dreamer(failing), "auto")).status == "failed"
    with pytest.raises(Held, match="dreamed today already"):
        await run_dream(stage.dreamer(in_words("Nothing.")), "auto")
    assert (await run_dream(stage.dreamer(in_words("Nothing.")))).status == "completed"  # asked for
    stage.clock.time += 25 * 3600
    assert (await run_dream(stage.dreamer(in_words("Nothing.")), "auto")).status == "completed"
    stage.close()
