"""Ten courses as somebody played them who read each request in the model's place: what the user
told reaches memory, with the conversation abridged and in a fork of it alike."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reverie.testing import call, reply
from reverie.topics import Origin, Trust
from reverie.transcript import ExtractTask

from .extracts import Script, Stage, said_last, turn

pytestmark = [pytest.mark.spec("7.words")]
FIXTURE = Path(__file__).parents[1] / "fixtures" / "extraction_played.json"
COURSES: list[dict[str, Any]] = json.loads(FIXTURE.read_text("utf-8"))["courses"]


def log(lines: int) -> str:
    """A result that is most of its conversation, with a name that nobody else says."""
    rows = [f"{n:04d} request /v1/items/{n} took {n * 7 % 90} ms" for n in range(lines)]
    return "\n".join([*rows, "deploy key fingerprint ab:cd:ef on host build-7.internal", ""])


def answers(turns: list[dict[str, Any]]) -> list[Any]:
    """What the main agent says, round by round."""
    made: list[Any] = []
    for one in (step for said in turns for step in said["agent"]):
        if isinstance(one, str):
            made.append(one)
        else:
            text = [one["text"]] if one["text"] else []
            made.append(reply(*text, call("Read", f"t{len(made)}", file_path=one["read"])))
    return made


@pytest.mark.parametrize("form", ["apart", "fork"])
@pytest.mark.parametrize("course", COURSES, ids=lambda one: one["name"].replace(" ", "-"))
async def test_what_the_user_told_reaches_memory(
    course: dict[str, Any], form: str, tmp_path: Path
) -> None:
    stage = Stage(tmp_path)
    stage.clock.time = 1_795_000_000.0
    for name, text in course["files"].items():
        (stage.project / name).write_text(log(text) if isinstance(text, int) else text)
    async with stage.memories() as memories:
        for key, text in course.get("memories", {}).items():
            memories.save(key, text.encode(), Origin("save", Trust.USER, agent="user"))
    left = list(course["answers"])

    def played(_: ExtractTask, number: int) -> str:
        del number
        return left.pop(0)

    script = Script(played, main=answers(course["turns"]))
    async with stage.agent(script.free_reads if form == "fork" else script) as agent:
        await turn(agent, *(one["user"] for one in course["turns"]))
        assert agent.memories is not None
        folder, history = agent.memories.folder, agent.memories.history
        trust = {key: history.log(key)[-1].origin.trust.label for key in tuple(folder.keys())}
        users = [folder.read(key).text for key, label in trust.items() if label == "user"]
        waiting = [one.key for one in agent.memories.review.items()]
    assert not left
    for fact in course["facts"]:
        assert any(fact in text for text in users), fact
    assert [key for key, label in trust.items() if label != "user"] == course["unverified"]
    assert waiting == [*course["waits"], *course["unverified"]]
    for request in script.forks:
        size = len(request.body().encode())
        if form == "apart":
            assert size < 5_000
            assert "took 7 ms" not in said_last(request)
        else:
            assert size > 14_000
