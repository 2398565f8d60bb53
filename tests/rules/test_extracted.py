"""What somebody who played the model wrote down of eight short conversations, each with a lasting
rule, a taste or a fact. They knew the rules' documentation, so this shows that such answers are
read as they are meant, and not how often a model gives them.

A path stands without quotes, on purpose; a rule that was there already is not written again. Calls
that break a rule are held, others are not.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reverie.store import RuleStore
from reverie.testing import reply
from reverie.transcript import ExtractTask
from tests.session.extracts import Answer, Script, Stage, turn, write

pytestmark = pytest.mark.spec("B20.applies-to")
DAY = 86_400.0
PLAYED = json.loads((Path(__file__).parent.parent / "fixtures/rules/extracted.json").read_text())


async def test_rules_that_a_model_wrote_down_hold_the_calls_that_break_them(
    tmp_path: Path,
) -> None:
    stage, waiting = Stage(tmp_path), iter(PLAYED)

    def rounds(task: ExtractTask, _: int) -> Answer:
        files = next(waiting)["written"]
        written = [write(name, text) for n, (name, text) in enumerate(files.items())]
        return reply(*written) if written else "Nothing"

    script = Script(rounds, [one["answered"] for one in PLAYED])
    for one in PLAYED:
        async with stage.agent(script) as agent:
            await turn(agent, one["said"])
        stage.clock.time += DAY
    async with stage.memories() as memories:
        folder = memories.folder
        wanted = {name for one in PLAYED for name in one["written"]}
        assert set(folder.keys()) == wanted
        assert all(folder.read(key).description and folder.read(key).type for key in wanted)
        assert b"said: " in folder.bytes_of("feedback_package_manager.md")
        book = RuleStore(memories, stage.project).book()
    assert len(script.forks) == len(PLAYED)
    here = str(stage.project)
    for one in PLAYED:
        for name, given in one["breaks"]:
            held = {rule.get("file") for rule in book.look(name, given, cwd=here, root=here)}
            assert held, given
            assert held <= set(one["written"]), given
        for name, given in one["keeps"]:
            assert book.look(name, given, cwd=here, root=here) == [], given
