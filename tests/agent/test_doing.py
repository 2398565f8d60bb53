"""What an agent is doing, in a few words: from its last call, or from a model that is asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from reverie.agent import ASK, TAIL, doing, phrase
from reverie.providers import model_for
from reverie.simulator import Engine, SimulatedModel, call
from reverie.testing import provider
from reverie.wire import ToolCall
from tests.loop.stage import NOON

from .stage import Cast, agents, environ_in, opened
from .test_agent_limits import StandingClock

pytestmark = [pytest.mark.spec("10.summary")]


@pytest.mark.parametrize(
    ("name", "given", "told"),
    [
        ("Read", {"file_path": "/a/b/validate.py"}, "Reading validate.py"),
        ("Edit", {"file_path": "validate.py"}, "Editing validate.py"),
        ("Grep", {"pattern": "def total"}, "Searching for def total"),
        ("Bash", {"command": "make test -j 4 VERBOSE=1"}, "Running make test -j 4"),
        ("List", {}, "Listing the project"),
        ("Read", {"file_path": "\x1b[31mred\x07.py"}, "Reading red.py"),
        ("Frobnicate", {"x": 1}, "Calling Frobnicate"),
        ("Read", {"file_path": "x" * 500}, f"Reading {'x' * 52}"),
    ],
)
def test_a_call_says_what_is_done(name: str, given: dict[str, Any], told: str) -> None:
    assert doing(ToolCall("c", name, json.dumps(given))) == told


def test_arguments_that_are_no_json_say_nothing() -> None:
    assert doing(ToolCall("c", "Read", "{broken")) == "Reading the project"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Fixing null check in validate.py", "Fixing null check in validate.py"),
        ('"Reading the ledger tests."', "Reading the ledger tests"),
        ("Fixed the null check", ""),  # past tense
        ("I am working on it", ""),
        ("Working", ""),
        ("Reading\nand then some", ""),
        ("Reading " + "word " * 30, ""),
        ("", ""),
    ],
)
def test_an_answer_that_is_no_such_phrase_is_not_shown(text: str, shown: str) -> None:
    assert phrase(text) == shown


PHRASE = "Listing files of the project"


class Asked(Cast):
    """A cast in which summaries are a part of their own."""

    def who(self, body: Any) -> str:
        last = json.dumps(body["messages"][-1])
        return "summary" if "present tense, beginning with a verb" in last else super().who(body)


async def rounds(tmp: Path, clock: StandingClock, environ: dict[str, str]) -> tuple[Asked, Any]:
    """A background agent that lists the project four times, a quarter of a minute apart."""

    async def lists() -> Any:
        clock.move(15)
        return [call("List", {})]

    async def ends() -> str:
        with anyio.fail_after(10):  # let whoever was asked answer
            while played.requests("summary") and lead.crew.members["worker"].doing != PHRASE:
                await anyio.lowlevel.checkpoint()
        said.append(lead.crew.members["worker"].doing)
        return "done"

    said: list[str] = []
    wanted = {"prompt": "task work: go", "mode": "background", "name": "worker"}
    played = Asked(
        [agents(wanted), "Started."],
        work=[lists, lists, lists, lists, ends],
        summary=[PHRASE],
    )
    engine = Engine(played)
    async with opened(tmp, SimulatedModel(engine), clock=clock, environ=environ) as lead:
        await lead.turn("Go")
        with anyio.fail_after(20):
            while lead.at_work:
                await anyio.lowlevel.checkpoint()
        await anyio.wait_all_tasks_blocked()
    return played, (said[-1], engine)


async def test_a_model_is_asked_every_half_minute_on_the_agents_own_prefix(tmp_path: Path) -> None:
    played, (shown, engine) = await rounds(tmp_path, StandingClock(), environ_in(tmp_path))
    asked = played.requests("summary")
    assert len(asked) == 2  # 15 s, 30 s, 45 s, 60 s: two of them are due
    for body, entry in zip(asked, played.logged(engine.log, "summary"), strict=True):
        assert body["tools"] == played.requests("work")[0]["tools"]
        assert ASK in json.dumps(body, ensure_ascii=False).replace("\\n", "\n").replace('\\"', '"')
        before = [w for w in played.requests("work") if len(w["messages"]) < len(body["messages"])]
        prefix = len(json.dumps(before[-1]["messages"])) // 4
        assert entry.charge.read >= prefix * 0.5
    assert shown == PHRASE


async def test_before_its_time_nobody_is_asked(tmp_path: Path) -> None:
    calm = {**environ_in(tmp_path), "REVERIE_AGENT_SUMMARY_SECONDS": "600"}
    played, (shown, _) = await rounds(tmp_path, StandingClock(), calm)
    assert played.requests("summary") == []
    assert shown == "Listing the project"


class TickingClock:
    """A clock by which much time passes from one look to the next."""

    def __init__(self) -> None:
        self.at = NOON

    def now(self) -> float:
        self.at += 40
        return self.at

    async def sleep(self, seconds: float) -> None:
        del seconds
        await anyio.sleep_forever()


async def test_a_cheaper_model_is_asked_on_the_end_alone(tmp_path: Path) -> None:
    wanted = {"prompt": "task work: go", "mode": "background", "name": "worker"}
    played = Asked(
        [agents(wanted), "Started."], work=[[call("List", {})], "done"], summary=[PHRASE]
    )
    with provider(played) as server:
        environ = {
            **environ_in(tmp_path),
            "ANTHROPIC_BASE_URL": server.anthropic_url,
            "ANTHROPIC_API_KEY": "x",
            "REVERIE_SUMMARY_MODEL": "claude-haiku-4-5",
        }
        model = model_for("claude-opus-5-5", environ)
        assert model is not None
        async with opened(tmp_path, model, clock=TickingClock(), environ=environ) as lead:
            await lead.turn("Go")
            with anyio.fail_after(20):
                while lead.at_work or not played.requests("summary"):
                    await anyio.lowlevel.checkpoint()
        await model.aclose()
    (body,) = played.requests("summary")
    assert body["model"] == "claude-haiku-4-5"
    assert not body.get("tools")
    (message,) = body["messages"]
    assert message["content"][0]["text"].endswith(ASK)
    assert len(message["content"][0]["text"]) <= TAIL + len(ASK) + 100
