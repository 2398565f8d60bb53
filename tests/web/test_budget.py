"""What a page costs: bytes, rows, queries; and that more sessions and memories cost no more."""

from __future__ import annotations

import gzip
import re
import time
from collections.abc import Callable
from typing import Any

import pytest

from reverie.apps.web.desk import HERE
from reverie.apps.web.plots import MAX_POINTS, stacked
from reverie.upkeep.session_index import PAGE
from tests.conftest import Scale
from tests.web.conftest import Page

pytestmark = pytest.mark.spec("18.web")
FIRST, LATER, FRAGMENT, QUERIES = 64_000, 24_000, 12_000, 8
PLACES = (
    "/sessions",
    "/sessions?sort=-cost",
    "/sessions?q=port",
    "/memories",
    "/memories?q=port",
    "/memories?type=user",
    "/memories?finding=any",
    "/health",
    "/savings",
    "/savings?sort=-at",
    "/team",
)


def fill(page: Page, sessions: int, memories: int) -> None:
    """Rows as a large project has them, copied from the real ones."""
    base = page.desk.base
    one = dict(base.rows("SELECT * FROM session LIMIT 1")[0])
    told = base.rows("SELECT value FROM timeline LIMIT 1")[0][0]
    names = ", ".join(one)
    with base.writing() as writing:
        for n in range(sessions):
            row = {**one, "id": f"{n:08x}-0000-4000-8000-000000000000", "at": time.time() - n * 99}
            row |= {"title": f"Session {n} about the port", "folded": f"session {n} about the port"}
            marks = ", ".join("?" * len(row))
            writing.execute(f"INSERT INTO session ({names}) VALUES ({marks})", list(row.values()))
            if n < 2:
                writing.execute("INSERT INTO timeline VALUES (?, ?)", (row["id"], told))
        for n in range(memories):
            file = f"project_{n}.md"
            values = (file, "x", ("user", "project")[n % 2], f"Memory {n}", "About a port " * 5)
            put = writing.execute(
                "INSERT INTO memory (file, stamp, type, name, description, modified, bytes, trust,"
                " folded) VALUES (?, ?, ?, ?, ?, ?, 9, 'user', ?)",
                (*values, time.time() - n, f"memory {n}\nthe port of service {n} is {n}"),
            )
            writing.execute(
                "INSERT INTO memory_text (rowid, text) VALUES (?, ?)",
                (put.lastrowid, f"memory {n}\nthe port of service {n} is {n}"),
            )
            if n % 10 == 0:
                writing.execute(
                    "INSERT INTO finding (kind, file, line, evidence, fixable) VALUES"
                    " ('stale_date', ?, 1, 'x', 1)",
                    (file,),
                )


def counted(page: Page, place: str) -> tuple[int, list[str], int]:
    """Queries of one request, their texts, and its bytes."""
    seen: list[str] = []
    asked: Callable[..., Any] = page.desk.base.rows

    def rows(query: str, given: Any = ()) -> Any:
        seen.append(query)
        return asked(query, given)

    page.desk.base.rows = rows  # type: ignore[method-assign]
    before = page.desk.base.queries
    answer = page.visitor.get(place)
    page.desk.base.rows = asked  # type: ignore[method-assign]
    assert answer.status == 200, place
    return page.desk.base.queries - before, seen, answer.packed


def test_a_page_of_many_costs_what_a_page_of_few_costs(page: Page, scale: Scale) -> None:
    page.desk.start = lambda name, work: None  # type: ignore[method-assign]
    fill(page, 60, 60)
    few = {place: counted(page, place) for place in PLACES}
    page.desk.base.path.unlink()
    page.look()
    fill(page, scale.pick(1_000, 5_000), scale.pick(2_000, 10_000))
    opened: list[str] = []
    read = page.desk.library.read
    page.desk.library.read = lambda name: opened.append(name) or read(name)  # type: ignore[method-assign]
    for place in PLACES:
        count, queries, size = counted(page, place)
        assert count == few[place][0] <= QUERIES, place
        assert all("LIMIT" in query for query in queries), place
        assert size <= LATER, place
        text = page.visitor.get(place).text
        assert len(re.findall(r'<th scope="row"|class="item"', text)) <= PAGE, place
    assert opened == []


def test_a_first_load_and_each_later_page_are_small(page: Page) -> None:
    static = sum(
        len(gzip.compress(one.read_bytes(), 6))
        for one in (HERE / "static").glob("*.*s*")
        if one.suffix in (".css", ".js", ".svg")
    )
    (file,) = page.desk.library.sessions()
    sizes = {
        place: page.visitor.get(place).packed
        for place in (
            "/sessions",
            f"/sessions/{file.id}",
            "/memories",
            "/review",
            "/recall?q=port",
            "/dream",
            "/health",
            "/health/mend",
            "/savings",
            "/team",
        )
    }
    assert static + max(sizes.values()) <= FIRST
    assert max(sizes.values()) <= LATER


def test_a_long_session_is_drawn_by_stretches() -> None:
    rows = [{"k-user": float(n % 977)} for n in range(10_000)]
    drawn = str(stacked(rows, {"k-user": "you"}, "x", at=9_999))
    wide = drawn.partition("</svg>")[0]
    assert wide.count("H") <= 2 * MAX_POINTS + 40
    assert len(gzip.compress(drawn.encode())) <= FRAGMENT


def test_a_picture_of_nothing_and_of_one(page: Page) -> None:
    assert "svg" in str(stacked([{"k-user": 0.0}], {"k-user": "you"}, "x"))


def test_the_index_holds_nothing_for_others(page: Page) -> None:
    assert page.desk.base.path.stat().st_mode & 0o077 == 0
