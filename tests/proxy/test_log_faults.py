"""What the proxy decided, in courses drawn by chance that are killed, fail and lose power."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from reverie.interception import FILE, DecisionLog, MirrorPosition, position_line, result_line
from reverie.transcript import Json
from tests.breaking import Acked, attempted, cut, failed, killed
from tests.conftest import Scale
from tests.faults import Ack, Plan, shim

pytestmark = [pytest.mark.spec("1.courses")]


class LogCourse:
    """Two proxies of one home decide about results; what one told a client stays so for all."""

    def __init__(self, chance: Random) -> None:
        self.steps = [
            (
                chance.randint(0, 1),
                chance.choice(["decide"] * 4 + ["note", "again"]),
                chance.randint(0, 3),
                chance.choice([0, 10, 9_000]),
            )
            for _ in range(chance.randint(3, 8))
        ]

    def begin(self, base: Path) -> None:
        pass

    def act(self, base: Path, ack: Ack) -> None:
        logs: list[DecisionLog | None] = [None, None]
        for at, (who, kind, about, size) in enumerate(self.steps):
            if kind == "again" and (old := logs[who]) is not None:
                old.close()
                logs[who] = None
            if logs[who] is None:
                logs[who] = attempted(DecisionLog, base / "home" / "proxy")
            log = logs[who]
            if log is None:
                continue
            if kind == "note":
                attempted(note, log, at)
            elif text := attempted(decide, log, about, at, size):
                ack(f"{about} {text}")
        for log in logs:
            if log is not None:
                log.close()
        ack("over")

    def check(self, base: Path, acked: Acked) -> None:
        log, other = (DecisionLog(base / "home" / "proxy") for _ in range(2))
        known = dict(one.split(" ", 1) for one in acked if one != "over")
        for one in acked:
            assert one == "over" or known[one[0]] == one[2:], "one thing was decided twice"
        for about in range(4):
            text = decide(log, about, 99, 5)
            assert text == known.get(str(about), text), f"lost: {about} {known[str(about)]}"
            assert decide(other, about, 100, 5) == text
        log.close()
        other.close()


def decide(log: DecisionLog, about: int, at: int, size: int) -> str:
    """What stands for a thing from now on: what was decided before, or this."""
    key = ("tenant", f"call{about}", "content")

    def lines(decisions: object) -> list[dict[str, Json]]:
        del decisions
        known = log.decisions.results.get(key)
        return [] if known is not None else [result_line(*key, f"text{at}{'x' * size}")]

    log.decide(lines)
    return log.decisions.results[key][:8]


def note(log: DecisionLog, at: int) -> None:
    log.note(
        [position_line("thread", f"chain{at}", MirrorPosition("session", "entry"), spoken=True)]
    )


def test_what_was_decided_outlives_a_kill(scale: Scale) -> None:
    killed(LogCourse, Random(f"log kills:{scale.seed}"), scale.pick(5, 300))


def test_what_was_decided_outlives_a_call_that_fails(scale: Scale) -> None:
    failed(LogCourse, Random(f"log faults:{scale.seed}"), scale.pick(20, 1_000))


def test_what_was_decided_outlives_a_power_cut(scale: Scale) -> None:
    cut(LogCourse, Random(f"log power:{scale.seed}"), scale.pick(20, 1_000))


def test_a_very_long_log_keeps_its_newer_half(tmp_path: Path) -> None:
    log = DecisionLog(tmp_path)
    for number in range(20):
        log.decide(lambda _, n=number: [result_line("t", f"c{n}", "k", "x" * 100)])
    log.close()
    size = (tmp_path / FILE).stat().st_size
    assert len(DecisionLog(tmp_path, size).decisions.results) == 20
    found = DecisionLog(tmp_path, size - 1).decisions.results
    assert [call for _, call, _ in found] == [f"c{n}" for n in range(20 - len(found), 20)]
    assert 9 <= len(found) <= 10


def test_what_another_proxy_decided_is_known_after_a_look(tmp_path: Path) -> None:
    log, other = DecisionLog(tmp_path), DecisionLog(tmp_path)
    assert decide(other, 1, 7, 0) == "text7"
    assert not log.decisions.results
    log.refresh()
    assert list(log.decisions.results.values()) == ["text7"]
    other.close()
    log.close()


def test_where_nobody_has_decided_meanwhile_no_file_is_opened(tmp_path: Path) -> None:
    log = DecisionLog(tmp_path)
    decide(log, 1, 7, 0)
    with shim(Plan(0)) as seen:
        log.refresh()
    assert "os.open" not in seen.names()
    log.close()


def test_a_line_that_a_crash_tore_off_is_cut_and_the_next_stands_by_itself(tmp_path: Path) -> None:
    log = DecisionLog(tmp_path)
    decide(log, 1, 7, 0)
    log.close()
    whole = (tmp_path / FILE).read_bytes()
    (tmp_path / FILE).write_bytes(whole + whole[:20])
    log = DecisionLog(tmp_path)
    assert (tmp_path / FILE).read_bytes() == whole
    decide(log, 2, 8, 0)
    log.close()
    assert list(DecisionLog(tmp_path).decisions.results.values()) == ["text7", "text8"]


def test_what_is_noted_is_known_to_a_later_process_and_written_under_the_lock(
    tmp_path: Path,
) -> None:
    log = DecisionLog(tmp_path)
    with shim(Plan(0)) as seen:
        note(log, 1)
    log.close()
    names = seen.names()
    assert names.index("fcntl.flock") < names.index("os.write")
    assert DecisionLog(tmp_path).decisions.positions["thread"]["chain1"].session == "session"
