"""Processes that write to each other and are killed at random: no letter is lost, none comes twice.

The checker reads the files alone and shares no code with the mailboxes: what each process noted as
acknowledged against what stands in the others' transcripts.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from tests.loop.stage import alive
from tests.tally import counted

pytestmark = [pytest.mark.spec("10.mail")]
PROGRAM = "tests.agent.mail_course"
_TEXT = re.compile(r"(\w+) (\w+) (\d+)")


def start(folder: Path, name: str, count: int, names: list[str]) -> subprocess.Popen[bytes]:
    others = [one for one in names if one != name]
    line = [sys.executable, "-m", PROGRAM, str(folder), name, str(count), *others]
    return subprocess.Popen(line, cwd=Path(__file__).parents[2])


def acknowledged(folder: Path, names: list[str]) -> dict[tuple[str, str], int]:
    """The newest letter of each pair that was acknowledged."""
    found: dict[tuple[str, str], int] = {}
    for name in names:
        path = folder / f"{name}.sent"
        for line in path.read_text().splitlines() if path.exists() else ():
            to, _, number = line.partition(" ")
            if number.isdigit():
                found[name, to] = max(found.get((name, to), 0), int(number))
    return found


def delivered(folder: Path, names: list[str]) -> dict[tuple[str, str], list[int]]:
    """What stands in each transcript, in its order."""
    found: dict[tuple[str, str], list[int]] = defaultdict(list)
    for name in names:
        path = folder / f"{name}.jsonl"
        for raw in path.read_text().splitlines() if path.exists() else ():
            text = raw[raw.index("{") : raw.rindex("}") + 1]
            try:
                value: Any = json.loads(text)
            except ValueError:
                continue  # a torn line of a killed process
            known = _TEXT.search(json.dumps(value).partition("\\n")[2])
            assert known is not None, text
            assert known[2] == name
            found[known[1], name].append(int(known[3]))
    return found


def course(folder: Path, mates: int, letters: int, kills: int, seed: int) -> None:
    dice = random.Random(seed)
    names = [f"m{n}" for n in range(mates)]
    each = -(-letters // (mates * (mates - 1)))
    running = {name: start(folder, name, each, names) for name in names}
    goal, left = mates * (mates - 1) * each, kills
    try:
        deadline = time.monotonic() + 60 + letters / 10
        while time.monotonic() < deadline:
            done = sum(len(numbers) for numbers in delivered(folder, names).values())
            if done >= goal and not left:
                break
            if left:
                name = dice.choice(names)
                os.kill(running[name].pid, signal.SIGKILL)
                running[name].wait()
                running[name] = start(folder, name, each, names)
                left -= 1
                counted("kills", drawn=True)
            time.sleep(dice.random() * 0.3)
    finally:
        for process in running.values():
            process.kill()
            process.wait()
    sent, got = acknowledged(folder, names), delivered(folder, names)
    assert sum(sent.values()) == goal
    for pair, newest in sent.items():
        assert got[pair] == list(range(1, newest + 1)), pair
    assert alive(f"{PROGRAM} {folder}") == []


def test_two_that_are_killed_lose_nothing(tmp_path: Path) -> None:
    course(tmp_path, 2, 60, 2, seed=7)


@pytest.mark.integration
@pytest.mark.timeout(600)
def test_five_write_two_thousand_letters_and_are_killed(tmp_path: Path, scale: Any) -> None:
    mates, letters, kills = scale.pick((5, 2_000, 40), (20, 10_000, 200))
    course(tmp_path, mates, letters, kills, scale.seed)
