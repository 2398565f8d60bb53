"""An extraction model that does not do as it was told: prose, one file twice, types of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from reverie.testing import call, reply
from reverie.transcript import ExtractTask

from .extracts import Answer, Script, Stage, cursor, read, said_last, topic, turn, write, writes

pytestmark = [pytest.mark.spec("7.extraction")]
SAID = "From now on always use pnpm instead of npm."
RULE = topic("Always use pnpm instead of npm.", name="Package manager", about="pnpm, never npm")


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


async def test_prose_saves_nothing_and_the_cursor_goes_on(stage: Stage) -> None:
    script = Script(lambda *_: "I would remember that you use pnpm. Shall I write it down?")
    async with stage.agent(script) as agent:
        await turn(agent, SAID)
        found = cursor(agent)
        assert found is not None
        assert (found.outcome, found.written) == ("nothing", ())
        assert agent.memories is not None
        assert list(agent.memories.folder.keys()) == []


async def test_one_file_written_twice_in_a_round_is_one_memory_as_last_written(
    stage: Stage,
) -> None:
    later = RULE.replace("Always use pnpm instead of npm.", "Use pnpm instead of npm, always.")

    def rounds(task: ExtractTask, number: int) -> Answer:
        both = (write("pnpm.md", RULE), write("pnpm.md", later))
        return reply(*both) if number == 1 else "done"

    async with stage.agent(Script(rounds)) as agent:
        await turn(agent, SAID)
        assert agent.memories is not None
        assert list(agent.memories.folder.keys()) == ["pnpm.md"]
        assert agent.memories.folder.read("pnpm.md").text == later
        assert agent.memories.folder.index().data.decode().count("](pnpm.md)") == 1


async def test_a_type_that_no_memory_has_is_denied_and_can_be_put_right(stage: Stage) -> None:
    def rounds(task: ExtractTask, number: int) -> Answer:
        wrong = RULE.replace("type: feedback", "type: opinion")
        return reply(write("pnpm.md", RULE if number > 1 else wrong))

    script = Script(rounds)
    async with stage.agent(script) as agent:
        await turn(agent, SAID)
        assert agent.memories is not None
        assert agent.memories.folder.read("pnpm.md").type == "feedback"
    told = said_last(script.forks[1])
    assert "there is no type `opinion`: use one of user, feedback, project, reference" in told


@pytest.mark.parametrize(
    ("head", "why"),
    [
        ("note: &x y", "an alias, an anchor or a tag"),
        ("applies_to: npm install", "`applies_to` needs keys below it"),
        ("applies_to:\n  cmd: npm install", "`applies_to` has no `cmd`"),
    ],
)
async def test_a_head_that_would_be_lost_is_sent_back_once(
    stage: Stage, head: str, why: str
) -> None:
    wrong = RULE.replace("type: feedback", f"type: feedback\n{head}")
    script = Script(lambda task, number: reply(write("pnpm.md", wrong)))
    async with stage.agent(script) as agent:
        await turn(agent, SAID)
        assert agent.memories is not None
        assert agent.memories.folder.read("pnpm.md").text == wrong
    assert len(script.forks) == 2
    told = said_last(script.forks[1])
    assert why in told


async def test_a_renamed_memory_is_called_by_its_new_name_in_the_index(stage: Stage) -> None:
    async with stage.agent(Script(writes({"pnpm.md": RULE}))) as agent:
        await turn(agent, SAID)
    again = RULE.replace("Package manager", "Yarn").replace("pnpm, never npm", "yarn, never npm")
    said = "Actually, from now on always use yarn instead of npm."

    def rounds(task: ExtractTask, number: int) -> Answer:
        if number == 1:
            return read("pnpm.md")
        return reply(write("pnpm.md", again.replace("use pnpm", "use yarn")))

    async with stage.agent(Script(rounds)) as agent:
        await turn(agent, said)
        assert agent.memories is not None
        index = agent.memories.folder.index().data.decode()
    assert index == "- [Yarn](pnpm.md) — yarn, never npm\n"


async def test_by_flag_saves_leave_the_pointer_out_and_the_prompt_says_so(stage: Stage) -> None:
    script = Script(writes({"pnpm.md": RULE}))
    async with stage.agent(script, environ={"REVERIE_FLAG_SKIP_INDEX": "1"}) as agent:
        await turn(agent, SAID)
        assert agent.memories is not None
        assert list(agent.memories.folder.keys()) == ["pnpm.md"]
        assert agent.memories.folder.index().data == b""
    last = script.forks[0].at(script.forks[0].count - 1).pieces[-1].block.text
    assert "There is no index" in last
    assert "is updated for you" not in last


@pytest.mark.parametrize("exclusive", ["0", "1"])
async def test_by_flag_what_stands_before_the_agents_own_save_is_passed_over(
    stage: Stage, exclusive: str
) -> None:
    script = Script(lambda *_: "done")
    script.main = [reply(call("Remember", "m1", text="The user uses pnpm.")), "Saved."]
    environ = {"REVERIE_FLAG_EXTRACTION_EXCLUSIVE": exclusive}
    async with stage.agent(script, environ=environ) as agent:
        await turn(agent, "Remember that I use pnpm. And I am a nurse.")
        found = cursor(agent)
        assert found is not None
        assert found.outcome == ("skipped" if exclusive == "1" else "nothing")
    assert bool(script.forks) == (exclusive == "0")


async def test_a_rule_that_differs_by_two_letters_is_no_echo_of_the_old_one(stage: Stage) -> None:
    old = topic("Method names start with 'b_'.", name="Method names", about="They start with 'b_'")
    async with stage.agent(Script(writes({"names.md": old}))) as agent:
        await turn(agent, "From now on start method names with 'b_'.")
    new = old.replace("'b_'", "'md_'")

    def rounds(task: ExtractTask, number: int) -> Answer:
        if number == 1:
            return read("names.md")
        return reply(write("names.md", new))

    async with stage.agent(Script(rounds)) as agent:
        await turn(agent, "From now on, I need you to start method names with 'md_'.")
        assert agent.memories is not None
        assert agent.memories.folder.read("names.md").text == new
        assert "'md_'" in agent.memories.folder.index().data.decode()
