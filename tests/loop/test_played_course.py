"""A course that somebody played as the model, under the default: what they saw was enough.

They were given what a model is given and nothing else: options in an answer, long reads that
sealed it, "do option 2"; then a question about an output that lines had cut. Their answers are
kept as they were; where they named a reference, the line they took it from stands here.
"""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

from reverie.agent import AgentOptions, open_agent
from reverie.layers import SEALED
from reverie.testing import ScriptedModel, call, reply
from reverie.transcript import Replaced, text_block
from reverie.wire import Request

pytestmark = [pytest.mark.spec("B11"), pytest.mark.spec("4")]
COURSE = json.loads((Path(__file__).parent.parent / "fixtures/played_course.json").read_text())
MODULES = ("orders", "billing", "ledger", "webhook", "tenant", "quota")
RETRY = '''"""Retries for calls to the payment provider."""

import time

ATTEMPTS = 3


def call(send, request):
    for attempt in range(ATTEMPTS):
        try:
            return send(request)
        except TimeoutError:
            time.sleep(1)
    raise TimeoutError("the provider did not answer")
'''
CHECK = """for i in $(seq 1 60); do echo "test_retry_case_$i PASSED"; done
echo "SLOWEST test_retry_case_41 took 2.7 s, budget 3.1 s"
for i in $(seq 61 120); do echo "test_retry_case_$i PASSED"; done
echo "120 passed, 0 failed"
"""


def project(folder: Path) -> Path:
    folder.mkdir()
    dice = random.Random(5)
    for name in MODULES:
        lines = [f'"""The {name} module."""']
        for n in range(130):
            lines.append(f"def {name}_{dice.choice(['load', 'flush'])}_{n:03d}(key, limit={n}):")
            lines.append(f"    return _{name}_store.get(key, {dice.randrange(10**5)}) + limit\n")
        (folder / f"{name}.py").write_text("\n".join(lines * 2))
    (folder / "retry.py").write_text(RETRY)
    (folder / "check.sh").write_text(CHECK)
    return folder


class Player:
    """The answers in their order; a reference is read off the line it stands in."""

    def __init__(self) -> None:
        self.answers = [answer for turn in COURSE for answer in turn["answers"]]
        self.shown: list[str] = []

    def __call__(self, request: Request) -> Any:
        text = "\n".join(p.block.text for m in request.messages() for p in m.pieces)
        self.shown.append(text)
        blocks: list[Any] = []
        for n, part in enumerate(self.answers[len(self.shown) - 1]):
            if isinstance(part, str):
                blocks.append(text_block(part))
                continue
            ((name, given),) = part.items()
            if "reference" in given:
                line = re.search(re.escape(given["reference"]) + r" (r:\w{6})", text)
                assert line is not None, given
                given = {**given, "reference": line[1]}
            blocks.append(call(name, f"toolu_{len(self.shown)}_{n}", **given))
        return reply(*blocks)


async def test_option_two_is_done_after_long_reads_and_cut_output_is_read_back(
    tmp_path: Path,
) -> None:
    folder, player = project(tmp_path / "shop"), Player()
    wanted = AgentOptions(
        folder, home=tmp_path / "home", mode="allow", bare=True, environ={"HOME": str(tmp_path)}
    )
    async with open_agent(wanted, ScriptedModel(player)) as agent:
        results = [await agent.turn(turn["turn"]) for turn in COURSE]
        entries = [e.record for e in agent.session.view.entries]
        assert agent.session.world.collapses
    seals = [r for r in entries if isinstance(r, Replaced) and r.reason == SEALED]
    assert seals
    assert len(player.shown) == len(player.answers)
    options = COURSE[0]["answers"][-1][0]
    doing = next(n for n, a in enumerate(player.answers) if "Write" in a[-1])
    assert options in player.shown[doing]  # whole, and sealed by then
    assert f">{options}</assistant>" in player.shown[doing]
    assert "time.sleep(1)" in player.shown[doing]  # read back: the sealed line had names alone
    assert "time.sleep(1)" not in player.shown[doing - 1]
    changed = (folder / "retry.py").read_text()
    for piece in ("CAP_SECONDS = 7.5", "BASE_SECONDS = 0.4", "DEADLINE_SECONDS = 21", "dice="):
        assert piece in changed
    assert "SLOWEST test_retry_case_41 took 2.7 s, budget 3.1 s" in player.shown[-1]
    assert "3.1 s" in results[-1].text
