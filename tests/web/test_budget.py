"""What a page costs: bytes, rows, queries; and that more sessions and memories cost no more."""

from __future__ import annotations

import gzip
import os
import re
import time
from collections.abc import Callable
from typing import Any

import pytest

from reverie.apps.web import HERE, RESULTS
from reverie.reports import COUNTED, MAX_POINTS, PAGE, MemoryQuery, stack_chart
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
    "/memories?q=port+77",
    "/memories?q=qz",
    "/memories?q=a&trust=user",
    "/memories?type=user",
    "/memories?finding=any",
    "/health",
    "/savings",
    "/savings?sort=-at",
    "/team",
    "/fleet",
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
        for n in reversed(range(memories)):
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


def test_no_page_sorts_or_walks_through_all_memories(page: Page) -> None:
    """What a list reads comes from an index in the order in which it is shown."""
    index, base = page.desk.memories, page.desk.base
    fill(page, 2, 1_500)
    for words in ("port", "port 77", "qz", "type:user", "trust:user", "service qz", ""):
        asked, order, given = index._query_parts(MemoryQuery.of(words))
        plan = base.rows(
            f"EXPLAIN QUERY PLAN SELECT 1{asked} ORDER BY {order} DESC LIMIT 50", given
        )
        told = [row["detail"] for row in plan]
        assert not any("TEMP B-TREE FOR ORDER" in one for one in told), (words, told)
        read = [one for one in told if one.startswith("SCAN")]
        assert all("memory_text" in one or "json_each" in one for one in read) or not words, told


def test_a_search_counts_up_to_a_thousand(page: Page) -> None:
    fill(page, 2, 1_500)
    rows, count = page.desk.memories.page(MemoryQuery.of("port"))
    assert (len(rows), count) == (PAGE, COUNTED)
    assert "Page 20 of 20 or more" in page.visitor.get("/memories?q=port&page=20").text
    assert 'page=21">Older' in page.visitor.get("/memories?q=port&page=20").text
    rows, count = page.desk.memories.page(MemoryQuery.of("service 77"))
    assert count == len([n for n in range(1_500) if "77" in str(n)])
    assert [row["file"] for row in rows[:2]] == ["project_77.md", "project_177.md"]


def test_a_question_looks_at_as_many_files_where_there_are_more(page: Page) -> None:
    """Recall on the page reads the memories it shows, and no others."""
    with page.desk.memory_there() as memories:
        folder = memories.folder.files.root
    ask, looked = "/recall?q=the+port+of+service+1", list[str]()

    def reads() -> int:
        page.look()
        page.visitor.get(ask)
        found = page.desk.open_memory
        found.index._took = 9.0  # it is brought up to date beside it
        assert found.folder is not None
        files = found.folder.files
        stat, looked[:] = type(files).stat, []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(files), "stat", lambda f, key: looked.append(key) or stat(f, key))
            page.visitor.get(ask)
        return len(looked)

    few = reads()
    for n in range(200):
        (folder / f"project_more_{n}.md").write_text(f"---\nname: Port {n}\n---\n\nPort {n}.\n")
    assert 0 < reads() <= few + 2 * RESULTS


def test_a_change_looks_at_the_changed_files_alone(page: Page) -> None:
    with page.desk.memory_there() as memories:
        folder = memories.folder.files.root
    for n in range(200):
        (folder / f"project_more_{n}.md").write_text(f"---\nname: Port {n}\n---\n\nPort {n}.\n")
    page.look()
    seen: list[Any] = []
    refresh = page.desk.memories.refresh
    page.desk.memories.refresh = lambda memories, only=None: (
        seen.append(only)
        or refresh(  # type: ignore[method-assign]
            memories, only
        )
    )
    form = {"name": "Port 7", "text": "Port 9977.", "version": "", "over": "1"}
    page.visitor.post("/memories/edit/project_more_7.md", form)
    assert seen == [{"project_more_7.md"}]
    assert page.desk.memories.page(MemoryQuery.of("9977"))[0][0]["file"] == "project_more_7.md"
    assert page.desk.memories.page(MemoryQuery.of(""))[0][0]["file"] == "project_more_7.md"


def test_an_old_file_that_comes_late_stands_where_its_age_puts_it(page: Page) -> None:
    with page.desk.memory_there() as memories:
        file = memories.folder.files.root / "project_old.md"
    file.write_text("---\nname: Old\n---\n\nFrom another machine.\n")
    os.utime(file, (1_600_000_000, 1_600_000_000))
    page.look()
    rows, count = page.desk.memories.page(MemoryQuery())
    assert (rows[-1]["file"], len(rows)) == ("project_old.md", count)
    times = [row["modified"] for row in rows]
    assert times == sorted(times, reverse=True)


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
            "/fleet",
        )
    }
    assert static + max(sizes.values()) <= FIRST
    assert max(sizes.values()) <= LATER


def test_a_long_session_is_drawn_by_stretches() -> None:
    rows = [{"k-user": float(n % 977)} for n in range(10_000)]
    drawn = str(stack_chart(rows, {"k-user": "you"}, "x", at=9_999))
    wide = drawn.partition("</svg>")[0]
    assert wide.count("H") <= 2 * MAX_POINTS + 40
    assert len(gzip.compress(drawn.encode())) <= FRAGMENT


def test_a_picture_of_nothing_and_of_one(page: Page) -> None:
    assert "svg" in str(stack_chart([{"k-user": 0.0}], {"k-user": "you"}, "x"))


def test_the_index_holds_nothing_for_others(page: Page) -> None:
    assert page.desk.base.path.stat().st_mode & 0o077 == 0
