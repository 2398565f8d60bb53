"""The demo's first session: a scripted agent, everything else real.

What the main agent says and which tools it calls is written down here; the tools run, the
layers decide, the transcript is written and resumed, and the simulated provider checks
and bills every request. `run` measures and returns; it prints nothing itself.
"""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import anyio

from reverie.agent.agent import Agent, AgentOptions
from reverie.agent.builder import open_agent
from reverie.apps.cli import demo as sample
from reverie.layers.tool_results import ResultBudgets
from reverie.session.session import Session
from reverie.session.turn import OnEvent
from reverie.settings.sources import environment
from reverie.simulator.answers import call
from reverie.simulator.engine import Engine
from reverie.simulator.model import SimulatedModel
from reverie.transcript.blocks import Block, Json, Object, text_block
from reverie.transcript.records import ForkEnded, ResultDecided, UserMessage
from reverie.transcript.tasks import Task
from reverie.world import ForkSpec, Notice

CLASSIC = "classic"  # the policy, where layers 2 to 4 are to be seen
LOG = "toolu_demo_log"
FORK = "agent_summary"
PROMPTS = (
    "The tests fail, and customers get negative prices. Find out why, and mend it.",
    "Which services had time-outs? Look at all five logs.",
    "Back again. Was anything left to do?",
)
PAUSE = 2 * 3600.0
TESTS = f"{shlex.quote(sys.executable)} -B -m unittest"


def _answer_blocks(text: str, *calls: Block) -> list[Block]:
    return [text_block(text), *calls]


def course() -> list[list[Block]]:
    """Every answer of the scripted agent, in order."""
    return [
        *mending(),
        *searching(),
        _answer_blocks("Nothing: the prices are mended, the logs looked at."),
    ]


def mending() -> list[list[Block]]:
    edit: dict[str, Json] = {
        "file_path": "orders/pricing.py",
        "old_string": sample.FAULT,
        "new_string": sample.MENDED,
    }
    return [
        _answer_blocks(
            "I look at the project first.",
            call("List", {"path": "."}),
            call("Read", {"file_path": "orders/pricing.py"}),
            call("Read", {"file_path": "tests/test_pricing.py"}),
        ),
        _answer_blocks(
            "Now the tests, and what the service logged.",
            call("Bash", {"command": TESTS}),
            call("Bash", {"command": "cat service.log"}, LOG),
        ),
        _answer_blocks(
            "The log is long; I search what was stored of it.",
            call("ReadBack", {"reference": LOG, "query": "ERROR"}),
        ),
        _answer_blocks("Percent are divided by 10 instead of 100.", call("Edit", edit)),
        _answer_blocks("I check it.", call("Bash", {"command": TESTS})),
        _answer_blocks("Mended: a discount in percent was divided by 10. The tests pass."),
    ]


def searching() -> list[list[Block]]:
    logs = [
        call("Bash", {"command": f"cat logs/{name}.log"}, f"toolu_demo_{name}")
        for name in sample.SERVICES
    ]
    return [
        _answer_blocks("All five at once.", *logs),
        _answer_blocks(
            "One of them was stored to make room; I look into it.",
            call("ReadBack", {"reference": f"toolu_demo_{sample.LONGEST}", "query": "TIMEOUT"}),
        ),
        _answer_blocks("All five had time-outs, about one in 330 requests."),
    ]


class SkippingClock:
    """The time of day, and a pause that nobody has to sit through."""

    def __init__(self) -> None:
        self.pause = 0.0

    def now(self) -> float:
        return time.time() + self.pause

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(seconds)


class CourseModel:
    """Plays the course to the main agent, and gives forks a line of their own."""

    def __init__(self) -> None:
        self._rest = course()
        self.fork = False

    def __call__(self, body: Object) -> list[Block]:
        del body
        if self.fork:
            return _answer_blocks("A discount was mended; five logs were searched for time-outs.")
        return self._rest.pop(0) if self._rest else _answer_blocks("That was all.")


@dataclass
class DemoCourse:
    """What happened, in numbers."""

    rounds: int = 0
    stored: list[ResultDecided] = field(default_factory=list[ResultDecided])
    for_its_message: int = 0  # stored because all results of a message were too much together
    cleared: list[ResultDecided] = field(default_factory=list[ResultDecided])
    cleared_characters: int = 0
    read_back: int = 0
    cost: float = 0.0
    naive_cost: float = 0.0
    hit_rate: float = 0.0
    fork: ForkEnded | None = None
    checks: dict[str, bool] = field(default_factory=dict[str, bool])

    @property
    def characters(self) -> int:
        return sum(d.size for d in self.stored)

    @property
    def for_itself(self) -> int:
        return len(self.stored) - self.for_its_message


Tell = Callable[[str], None]


async def run(
    folder: Path, on_event: OnEvent, tell: Tell, say: Callable[[Notice], None]
) -> DemoCourse:
    """The first session, in a folder of its own: a turn, a stop, a turn, a fork, a long pause."""
    project = folder / "orders"
    project.mkdir()
    sample.make(project)
    script = CourseModel()
    clock = SkippingClock()
    model = SimulatedModel(Engine(answerer=script, clock=clock.now), session="demo")
    wanted = AgentOptions(
        project,
        home=folder / "home",
        mode="allow",
        bare=True,
        environ={**own_environment(folder), "REVERIE_CONTEXT_POLICY": CLASSIC},
    )
    found = DemoCourse()
    tell(f"> {PROMPTS[0]}")
    async with open_agent(wanted, model, say=say, clock=clock) as agent:
        result = await agent.turn(PROMPTS[0], on_event)
        found.rounds += result.rounds
        found.checks["the tests pass in the end"] = _tests_pass(model)
        session = agent.session.id
    tell("… the program ends here, and the session is resumed from its transcript …")
    tell(f"> {PROMPTS[1]}")
    async with open_agent(replace(wanted, resume=session), model, say=say, clock=clock) as agent:
        before = len(model.engine.log)
        result = await agent.turn(PROMPTS[1], on_event)
        found.rounds += result.rounds
        found.checks["the resumed session sent the same bytes again"] = _extends(model, before)
        tell("… a fork of the conversation is asked for a summary …")
        await _fork(agent, script, found)
        clock.pause = PAUSE
        tell("… two hours pass, and with them the provider's cache …")
        tell(f"> {PROMPTS[2]}")
        result = await agent.turn(PROMPTS[2], on_event)
        found.rounds += result.rounds
        _measure(agent.session, model, found)
    return found


def own_environment(folder: Path) -> dict[str, str]:
    """Nothing of the caller's settings: the numbers of a run depend on the demo alone."""
    return {"PATH": environment().get("PATH", ""), "HOME": str(folder)}


def _tests_pass(model: SimulatedModel) -> bool:
    last = model.engine.log[-1].body
    return "FAILED" in model.engine.log[2].body and "\\nOK" in last


def _extends(model: SimulatedModel, at: int) -> bool:
    """Whether request number `at` begins with all blocks of the one before it."""
    before, after = (_blocks(entry.body) for entry in model.engine.log[at - 1 : at + 1])
    return after[: len(before)] == before


def _blocks(body: str) -> list[Any]:
    """A request's blocks without their marks, head first."""
    value = json.loads(body)
    out: list[Any] = [*value.get("tools", ()), *value.get("system", ())]
    out += [(m["role"], b) for m in value["messages"] for b in m["content"]]
    return [_without_mark(b) for b in out]


def _without_mark(given: Any) -> Any:
    if isinstance(given, tuple):
        role, block = cast("tuple[str, Any]", given)
        return role, _without_mark(block)
    return {k: v for k, v in given.items() if k != "cache_control"}


async def _fork(agent: Agent, script: CourseModel, found: DemoCourse) -> None:
    script.fork = True
    spec = ForkSpec(FORK, "Say in one line what was done so far.", Task(FORK))
    await agent.session.run_fork(spec)
    script.fork = False
    await agent.session.flush()
    ended = [e.record for e in agent.session.view.entries if isinstance(e.record, ForkEnded)]
    found.fork = ended[-1] if ended else None
    warm = found.fork is not None and found.fork.usage.hit_rate > 0.9
    found.checks["the fork was served from its parent's cache"] = warm


def _measure(session: Session, model: SimulatedModel, found: DemoCourse) -> None:
    decided = [e.record for e in session.view.entries if isinstance(e.record, ResultDecided)]
    found.stored = [d for d in decided if d.action == "stored"]
    found.cleared = [d for d in decided if d.action == "cleared"]
    whole = originals(session)
    limits = ResultBudgets(session.world)
    for one in found.stored:
        call = session.view.calls.get(one.call)
        own = limits.of(call.name) if call else None
        found.for_its_message += len(whole[one.call]) <= (own or 0)
    found.cleared_characters = sum(len(whole[d.call]) for d in found.cleared)
    answers = [a for entry in model.engine.log for a in _answers(entry.body)]
    back = {a for a in answers if "/tool-results/" in a.partition("\n")[0]}
    found.read_back = len(back)
    found.cost = model.bill.cost
    found.hit_rate = model.bill.hit_rate
    found.naive_cost = naive(session, model)
    lines = [any(word in a for a in back) for word in ("negative total", "TIMEOUT")]
    found.checks["a result over its own limit was stored"] = found.for_itself > 0
    found.checks["a result over its message's limit was stored"] = found.for_its_message > 0
    found.checks["what was stored was read back"] = all(lines)
    found.checks["old results were cleared once the cache was cold"] = len(found.cleared) > 0


def _answers(body: str) -> list[str]:
    """The tool results of a request, as texts."""
    blocks = [b for m in json.loads(body)["messages"] for b in m["content"]]
    return [str(b["content"]) for b in blocks if b["type"] == "tool_result"]


def naive(session: Session, model: SimulatedModel) -> float:
    """What the same requests would have cost with every result whole, billed the same way."""
    whole = originals(session)
    times = [entry.at for entry in model.engine.log]
    engine = Engine(clock=lambda: times[0])
    total = 0.0
    for entry in model.engine.log:
        times[0] = entry.at
        body = json.loads(entry.body)
        body.setdefault("max_tokens", model.max_tokens)
        for message in body["messages"]:
            _restore(message["content"], whole)
        charge = engine.respond(body, "ok", model.headers(body)).logged.charge
        total += charge.cost(engine.profile, entry.output)
    return total


def originals(session: Session) -> dict[str, str]:
    """Every result as it was before a layer touched it."""
    out = {
        block.get("tool_use_id"): block.get("content")
        for entry in session.view.entries
        if isinstance(entry.record, UserMessage)
        for block in entry.record.blocks
        if block.type == "tool_result"
    }
    for entry in session.view.entries:
        record = entry.record
        if isinstance(record, ResultDecided) and record.path:
            data = session.library.folder.read(f"{session.id}/{record.path}")
            out[record.call] = data.decode()
    return out


def _restore(content: Sequence[dict[str, Any]], whole: Mapping[str, str]) -> None:
    for block in content:
        if block.get("type") == "tool_result" and block["tool_use_id"] in whole:
            block["content"] = whole[block["tool_use_id"]]
