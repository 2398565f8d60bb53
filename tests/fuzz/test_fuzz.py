"""Whoever reads bytes of others refuses them by design, or reads them: no crash, no hang."""

from __future__ import annotations

import time
from random import Random

import pytest

from tests.conftest import Scale
from tests.fuzz import fuzzing
from tests.fuzz.fuzzing import Finding, corpus, fuzz, fuzz_for
from tests.fuzz.mutating import Run, made
from tests.fuzz.targets import TARGETS, Target

pytestmark = [pytest.mark.spec("1.fuzz")]
SLOW = {"scanner": 8}
"""How much dearer an input of a target is than one of the others."""


@pytest.mark.parametrize("name", TARGETS)
def test_any_bytes_are_read_or_refused(name: str, scale: Scale) -> None:
    if scale.proof:
        fuzz_for(name, scale.seed, 2.0 * min(scale.times, 8))
    else:
        fuzz(name, scale.seed, 40 // SLOW.get(name, 1))


def test_the_same_seed_makes_the_same_inputs() -> None:
    def some(seed: int) -> list[bytes]:
        chance = Random(seed)
        return [made(chance, corpus("body-messages"), "json") for _ in range(20)]

    assert some(1) == some(1) != some(2)
    assert len(set(some(1))) > 15


def broken(data: bytes, chance: Random) -> None:
    del chance
    if b"ping" not in data:
        raise KeyError("ping")


def endless(data: bytes, chance: Random) -> None:
    del data, chance
    end = time.process_time() + 60
    while time.process_time() < end:
        pass


def greedy(data: bytes, chance: Random) -> None:
    del data, chance
    KEPT.append(bytes(bytearray(range(256)) * 40_000))


KEPT: list[bytes] = []


@pytest.mark.parametrize(
    ("run", "words"),
    [(broken, "KeyError"), (endless, "s of CPU"), (greedy, "MB more")],
)
def test_a_crash_a_hang_and_a_flood_are_found(
    run: Run, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(TARGETS, "stream-messages", Target(run, "lines"))
    monkeypatch.setattr(fuzzing, "SECONDS", 0.02)
    monkeypatch.setattr(fuzzing, "MEGABYTES", 16)
    with pytest.raises(Finding, match=words):
        fuzz("stream-messages", 1, 60 if run is broken else 4)
    KEPT.clear()
