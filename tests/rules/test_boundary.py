"""Recall at the tool boundary: what a call touches is a query too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from reverie.session import Session, ToolQuery
from reverie.settings import DEFAULTS, Settings
from reverie.store import MemoryStore, Project
from reverie.testing import call, reply
from reverie.topics import new
from reverie.transcript import Recalled
from reverie.wire import tool_result, user
from tests.session.doors import opened
from tests.session.recall_stage import last_text

pytestmark = pytest.mark.spec("B21")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


@pytest.fixture
def memories(home: Path, project: Path):
    with MemoryStore.of(
        Project.at(project, home=home, environ={}, settings=DEFAULTS), now=lambda: 5.0
    ) as found:
        bodies = {
            "invoice.md": "src/billing/invoice_totals.py rounds half up: the tax office wants it.",
            "socket.md": "ECONNREFUSED on port 5433 means that the tunnel to the replica is down.",
        }
        for key, body in bodies.items():
            one = new(key, name=key[:-3], type="project", description=body[:60], body=body)
            (found.folder.root / key).write_bytes(one.data)
        for n in range(40):
            text = f"Tulip {n} in bed {n} " * 40
            other = new(f"b{n}.md", name=f"b{n}", type="project", description="", body=text)
            (found.folder.root / f"b{n}.md").write_bytes(other.data)
        yield found


async def round_of(
    s: Session, name: str, given: dict[str, Any], result: str, *, error: bool = False
) -> str:
    """One round: a call and its result; the request behind it, as text."""
    await s.prepare()
    await s.observe(reply(call(name, "c1", **given)))
    await s.add(tool_result("c1", result, is_error=error))
    recall = s.recall
    assert recall is not None
    if recall._look is not None:
        with anyio.fail_after(30):
            await recall._look.done.wait()
    return last_text(await s.prepare())


async def begun(s: Session, said: str) -> None:
    await s.add(user(said))
    assert s.recall is not None
    assert s.recall._look is not None
    with anyio.fail_after(30):
        await s.recall._look.done.wait()


async def test_a_memory_that_names_the_file_joins_with_its_result(home, project, memories) -> None:
    async with opened(home, project, memories=memories) as s:
        await begun(s, "Please go on with the work")
        path = str(project / "src/billing/invoice_totals.py")
        text = await round_of(s, "Read", {"file_path": path}, "def total(): ...")
        assert "rounds half up" in text
        assert "name what the last calls touched" in text
        ledger = [e.record for e in s.view.entries if isinstance(e.record, Recalled)]
        (one,) = [c for r in ledger for c in r.candidates if c.outcome == "injected"]
        assert one.file == "invoice.md"


@pytest.mark.parametrize(
    ("line", "failed", "brings"),
    [
        ("psql", "psql: connect ECONNREFUSED 127.0.0.1 port 5433, the replica tunnel", True),
        ("dig", "replica tunnel, port down: no means to connect to the replica by a tunnel", False),
    ],
    ids=["it came back", "it only speaks of the same things"],
)
async def test_an_error_that_came_back_is_looked_up(
    home, project, memories, line: str, failed: str, brings: bool
) -> None:
    async with opened(home, project, memories=memories) as s:
        await begun(s, "Please go on with the work")
        text = await round_of(s, "Bash", {"command": line}, failed, error=True)
        assert ("tunnel to the replica is down" in text) is brings


async def test_what_a_call_touches_is_looked_up_while_it_runs(home, project, memories) -> None:
    settings = Settings(selector_milliseconds=0)  # nothing is waited for at the next request
    async with opened(home, project, memories=memories, settings=settings) as s:
        await begun(s, "Please go on with the work")
        await s.prepare()
        path = str(project / "src/billing/invoice_totals.py")
        await s.observe(reply(call("Bash", "c1", command=f"head {path}; psql")))
        recall = s.recall
        assert recall is not None
        assert recall._look is not None
        with anyio.fail_after(30):
            await recall._look.done.wait()
        await s.add(tool_result("c1", "def total(): ..."))
        assert "rounds half up" in last_text(await s.prepare())


async def test_an_error_adds_to_what_the_calls_of_its_round_brought(
    home, project, memories
) -> None:
    async with opened(home, project, memories=memories) as s:
        await begun(s, "Please go on with the work")
        line = f"head {project / 'src/billing/invoice_totals.py'}; psql"
        failed = "psql: connect ECONNREFUSED 127.0.0.1 port 5433, the replica tunnel"
        text = await round_of(s, "Bash", {"command": line}, failed, error=True)
        assert "rounds half up" in text
        assert "tunnel to the replica is down" in text


async def test_a_file_is_asked_about_once_and_others_bring_nothing(home, project, memories) -> None:
    async with opened(home, project, memories=memories) as s:
        await begun(s, "Please go on with the work")
        path = str(project / "src/billing/other_file.py")
        first = await round_of(s, "Read", {"file_path": path}, "x")
        assert "rounds half up" not in first
        before = [e for e in s.view.entries if isinstance(e.record, Recalled)]
        await s.observe(reply(call("Read", "c2", file_path=path)))
        await s.add(tool_result("c2", "x"))
        assert s.recall is not None
        assert s.recall._look is None
        await s.prepare()
        assert [e for e in s.view.entries if isinstance(e.record, Recalled)] == before


@pytest.mark.parametrize(
    ("error", "memory", "belongs"),
    [
        ("connect ECONNREFUSED 127.0.0.1:5433", "econnrefused on port 5433: the tunnel.", True),
        ("connect ECONNREFUSED 127.0.0.1:80", "econnrefused: look at the tunnel first.", True),
        ("FAILED 5433", "on port 5433 the replica answers.", False),
        ("error[E0308]: mismatched types", "e0308 in the parser means a missing `?`.", True),
        (
            "fatal: refusing to merge unrelated histories",
            "git refusing to merge unrelated histories: the mirror was made anew.",
            True,
        ),
        ("cat: x: No such file or directory", "no such file or directory: run make.", False),
        ("sessionID, _ := read() is unused", "the sessionid is kept in the log.", False),
        ("open_ledger_file() is unused", "open_ledger_file() locks the ledger.", True),
        ("<tool_use_error>bad path</tool_use_error>", "a tool_use_error is counted.", False),
        ("Exit code 1: the session has no logs", "a session has logs: code for it.", False),
    ],
)
def test_what_tells_one_error_from_another(error: str, memory: str, belongs: bool) -> None:
    assert ToolQuery((), (error,)).is_in(memory) is belongs


@pytest.mark.parametrize(
    ("memory", "belongs"),
    [
        ("setup_test.go has the fixtures.", True),
        ("cli/setup_test.go has the fixtures.", True),
        ("src/cli/setup_test.go has the fixtures.", True),
        ("other/setup_test.go has the fixtures; so has ./setup_test.go.", True),
        ("other/setup_test.go has the fixtures.", False),
        ("my_setup_test.go has the fixtures.", False),
        ("setup_test.go.old has the fixtures: setup_test.golden.", False),
        ("setup_test.go, " + ", ".join(f"file{n}.go" for n in range(12)), False),
        ("setup_test.go, " + ", ".join(f"file{n}.go" for n in range(11)), True),
    ],
)
def test_a_file_is_named_where_no_other_one_is_meant(memory: str, belongs: bool) -> None:
    assert ToolQuery(("cli/setup_test.go",)).is_in(memory) is belongs
