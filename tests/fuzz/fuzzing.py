"""Runs a target on input after input: it may refuse one by design, and nothing else.

Each input has a second of CPU, and the process 256 MB more than before. Whatever breaks that is
told with the input, the target and the seed, and belongs into the tests under a name.
"""

from __future__ import annotations

import resource
import signal
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from random import Random
from types import FrameType

from tests.fuzz.mutating import made
from tests.fuzz.targets import TARGETS, Target
from tests.tally import counted

SECONDS = 1.0
MEGABYTES = 256
BATCH = 500
CORPUS = Path(__file__).parent / "corpus"


class Hangs(BaseException):
    """An input took more than its time."""


class Finding(AssertionError):
    """An input that a target does not withstand."""


@cache
def corpus(name: str) -> tuple[bytes, ...]:
    """What inputs of a target are made of."""
    found = tuple(path.read_bytes() for path in sorted((CORPUS / name).iterdir()))
    assert found, f"no corpus for {name}"
    return found


def fuzz(name: str, seed: int, count: int, *, first: int = 0) -> int:
    """So many inputs of a target, batch by batch; how many there were."""
    target, known = TARGETS[name], corpus(name)
    before = _memory(anew=True)
    with _limited():
        for data in known if not first else ():
            _tried(target, data, Random(0), f"{name}, from its corpus")
        for start in range(first, first + count, BATCH):
            chance = Random(f"{name}:{seed}:{start}")
            for number in range(start, min(start + BATCH, first + count)):
                data = made(chance, known, target.shape)
                _tried(target, data, chance, f"{name}, seed {seed}, input {number}")
            if (grown := _memory() - before) > MEGABYTES:
                raise Finding(f"{name}, seed {seed}, inputs from {start}: {grown:.0f} MB more")
    counted("fuzz executions", count, drawn=True)
    return count


def fuzz_for(name: str, seed: int, seconds: float) -> int:
    """Inputs of a target until so many seconds of CPU are used; how many there were. Each target
    has its time, so that dear ones are not left out and cheap ones not done for ever."""
    began, done = time.process_time(), 0
    while time.process_time() - began < seconds:
        done += fuzz(name, seed, BATCH, first=done)
    return done


def replay(name: str, data: bytes) -> None:
    """One input, as a named test has it."""
    with _limited():
        _tried(TARGETS[name], data, Random(0), name)


def _tried(target: Target, data: bytes, chance: Random, told: str) -> None:
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        target.run(data, chance)
    except Hangs:
        raise Finding(f"{told}: more than {SECONDS} s of CPU on {data[:2_000]!r}") from None
    except Exception as error:
        raise Finding(f"{told}: {error!r} on {len(data)} bytes {data[:2_000]!r}") from error
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


@contextmanager
def _limited() -> Generator[None]:
    before = signal.signal(signal.SIGVTALRM, _hang)
    try:
        yield
    finally:
        signal.signal(signal.SIGVTALRM, before)


def _hang(_number: int, _frame: FrameType | None) -> None:
    raise Hangs


def _memory(*, anew: bool = False) -> float:
    """Megabytes that this process had at most, since it was asked `anew` where the system can."""
    with suppress(OSError):
        if anew:
            Path("/proc/self/clear_refs").write_text("5")
        status = Path("/proc/self/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
