"""`reverie cache`: requests, hit rate, cost and breaks of a session and its forks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from reverie.session import RequestHead, Session, open_session
from reverie.testing import ManualClock, ScriptedModel, reply
from reverie.transcript import Task, Usage
from reverie.wire import user
from reverie.world import ForkSpec
from tests.cli.conftest import Run, library

pytestmark = pytest.mark.spec("B13")

NOTES = ForkSpec("session_memory", "Write the notes.", Task("notes"))
FIRST = Usage(uncached=10, written=10_000, output=20)
GOOD = Usage(uncached=10, read=10_000, written=100, output=20)
BAD = Usage(uncached=10_200, output=20)


async def talked(project: Path, *usages: Usage, between: Any = None, **parts: Any) -> str:
    clock = ManualClock()
    async with open_session(
        project, model=parts.pop("model", "m1"), system="Be brief.", clock=clock, **parts
    ) as session:
        for n, usage in enumerate(usages):
            if between is not None and n:
                await between(session, n, clock)
            clock.time += 10
            await session.add(user(f"question {n}"))
            await session.prepare()
            await session.observe(reply(f"answer {n}", usage=usage))
        await session.flush()
        return session.id


def made(project: Path, *usages: Usage, **more: Any) -> str:
    return anyio.run(lambda: talked(project, *usages, **more))


def test_nothing_yet_is_said_kindly(run: Run, home: Path) -> None:
    assert "No session yet" in run("cache", code=0).out
    found = run("cache", "--json").json()
    assert (found["session"], found["requests"], found["broken"]) == (None, 0, [])
    run("cache", "abcd", code=2)
    assert not home.exists()


def test_a_calm_session(run: Run, project: Path, home: Path) -> None:
    session = made(project, FIRST, GOOD, GOOD)
    found = run("cache", "--json").json()
    assert (found["session"], found["requests"], found["breaks"]) == (session, 3, 0)
    assert found["hit_rate"] == round(20_000 / 30_230, 4)
    assert found["cost"] == pytest.approx(30 + 2_000 + 1.25 * 10_200 + 5 * 60)
    assert [row["source"] for row in found["sources"]] == ["main"]
    said = run("cache", session[:13], code=0).out
    assert "3 requests · 66.2% read from the cache" in said
    assert "No break" in said
    assert len(run("cache", "--last", "2", "--json").json()["last"]) == 2
    assert "The last" not in run("cache", "--last", "0").out


@pytest.mark.spec("18.own-key")
def test_money_where_the_price_is_known_and_none_for_the_embedded_model(
    run: Run, project: Path, home: Path
) -> None:
    priced = made(project, FIRST, GOOD, model="claude-sonnet-5")
    dollars = (20 * 2 + 10_000 * 0.2 + 10_100 * 2.5 + 40 * 10) / 1e6
    assert run("cache", priced, "--json").json()["total_cost_usd"] == pytest.approx(dollars)
    assert f"${dollars:.4f} for claude-sonnet-5" in run("cache", priced, code=0).out
    unknown = made(project, FIRST, GOOD)
    assert run("cache", unknown, "--json").json()["total_cost_usd"] is None
    assert "$" not in run("cache", unknown, code=0).out
    free = made(project, FIRST, GOOD, model="embedded")
    assert run("cache", free, "--json").json()["total_cost_usd"] == 0
    said = run("cache", free, code=0).out
    assert "nothing is billed" in said
    assert "%" not in said


def test_a_break_without_a_change_is_the_providers(run: Run, project: Path, home: Path) -> None:
    made(project, FIRST, GOOD, BAD)
    found = run("cache", "--json").json()
    (one,) = found["broken"]
    assert (one["cause"], one["source"], one["lost"]) == ("provider", "main", 10_100)
    assert one["entry"] == found["last"][-1]["entry"]
    said = run("cache").out
    assert "nothing that was sent had changed" in said
    assert "1 break" in said


def test_an_expired_lifetime_is_named(run: Run, project: Path, home: Path) -> None:
    async def wait(session: Session, n: int, clock: ManualClock) -> None:
        clock.time += 7_200 if n == 2 else 0

    made(project, FIRST, GOOD, BAD, between=wait)
    (one,) = run("cache", "--json").json()["broken"]
    assert (one["cause"], one["expired"]) == ("expired", "5m")
    assert "2 h 0 min without a request" in one["explanation"]


@pytest.mark.parametrize("reason", ["", "asked for"])
@pytest.mark.parametrize(
    ("head", "part", "told"),
    [
        (RequestHead("m1", "Be verbose."), "system", "verbose"),
        (RequestHead("m2", "Be brief."), "model", "«m1» became «m2»"),
        (RequestHead("m1", "Be brief.", [{"name": "Look"}]), "tools", "tool Look"),
    ],
)
def test_a_changed_head_is_a_break_whoever_asked_for_it(
    run: Run, project: Path, home: Path, head: RequestHead, part: str, told: str, reason: str
) -> None:
    async def change(session: Session, n: int, clock: ManualClock) -> None:
        if n == 2:
            await session.append(head.record(reason))

    session = made(project, FIRST, GOOD, BAD, between=change)
    (found,) = run("cache", session, "--json").json()["broken"]
    assert (found["cause"], found["part"]) == ("changed", part)
    assert told in found["explanation"]


@pytest.mark.parametrize(("usage", "breaks"), [(GOOD, 0), (BAD, 1)])
def test_forks_are_counted_and_watched_from_their_parent_on(
    run: Run, project: Path, home: Path, usage: Usage, breaks: int
) -> None:
    async def fork(session: Session, n: int, clock: ManualClock) -> None:
        if n == 2:
            await session.world.fork(NOTES)  # type: ignore[misc]

    model = ScriptedModel([reply("noted", usage=usage)])
    session = made(project, FIRST, GOOD, GOOD, model=model, between=fork)
    found = run("cache", session, "--json").json()
    assert [(r["source"], r["requests"]) for r in found["sources"]] == [
        ("main", 3),
        ("session_memory", 1),
    ]
    assert found["requests"] == 4
    assert [one["source"] for one in found["broken"]] == ["session_memory"] * breaks
    assert found["faults"] == []
    shown = run("cache", session).out
    assert "session_memory" in shown


def test_a_forks_sum_stands_where_its_transcript_is_gone(
    run: Run, project: Path, home: Path
) -> None:
    async def fork(session: Session, n: int, clock: ManualClock) -> None:
        await session.world.fork(NOTES)  # type: ignore[misc]

    model = ScriptedModel([reply("noted", usage=GOOD)])
    session = made(project, FIRST, GOOD, model=model, between=fork)
    for log in (library().path / session / "agents").iterdir():
        log.unlink()
    rows = run("cache", session, "--json").json()["sources"]
    assert [(r["source"], r["requests"], r["read"]) for r in rows] == [
        ("main", 2, 10_000),
        ("session_memory", 1, 10_000),
    ]


def test_an_imported_session_says_that_its_requests_are_not_known(run: Run, tmp_path: Path) -> None:
    from tests.replay.courses import session as lines

    file = tmp_path / "a.jsonl"
    file.write_text("\n".join(lines(3)) + "\n")
    run("sessions", "import", file, code=0)
    found = run("cache", "--json").json()
    assert found["unrecorded"] == 4
    assert "breaks there cannot be told" in run("cache").out


def test_damaged_lines_are_named(run: Run, project: Path, home: Path) -> None:
    session = made(project, FIRST, GOOD)
    path = library().path / f"{session}.jsonl"
    path.write_bytes(path.read_bytes() + b"{broken\n")
    done = run("cache", session, code=0)
    assert "is skipped" in done.err
    assert run("cache", session, "--json").json()["faults"]
