"""The embedded dream: a folder mended through the guarded tools, and nothing else touched."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.hygiene import Dreaming, state, task_of, written
from reverie.consolidation import fact_verdict, reasons_in
from reverie.embedded import answer_dream
from reverie.topics import new
from reverie.transcript import DreamTask
from reverie.wire import ToolCall

pytestmark = [pytest.mark.spec("B1"), pytest.mark.spec("9")]

NOW = 1_790_000_000.0
THEN = 1_772_625_600.0  # Wednesday, 2026-03-04
OLD = "Uploads are limited to 25 megabytes for guests."
BODIES = {
    "uploads.md": f"{OLD} The proxy in Oslo cuts off longer ones with status 413.",
    "limits.md": f"{OLD.replace('25', '40')} Customers may send 900 megabytes in one piece.",
    "ledger.md": "Rosa Delgado moved the ledger yesterday, see [uploads](gone/uploads.md).",
    "sub/printer.md": "The printer is on floor 3 next to the stairs, and needs a badge.",
}


def files() -> dict[str, bytes]:
    made = {
        key: new(key, name=key[:-3], description=f"on {key[:-3]}", type="project", body=body).data
        for key, body in BODIES.items()
    }
    rows = [f"- [{key[:-3]}]({key})" for key in BODIES if key != "ledger.md"]
    return {**made, "MEMORY.md": "\n".join(["# Memory", "", *rows, "- [x](x.md)", ""]).encode()}


def times() -> dict[str, float]:
    return dict.fromkeys(files(), THEN) | {"limits.md": THEN + 86_400}


def dreaming(folder: Path, root: Path | None = None, **more: object) -> Dreaming:
    return Dreaming(folder, task_of(folder, times(), NOW, root), **more)  # type: ignore[arg-type] # fields by name


def made(under_way: Dreaming, name: str) -> list[dict[str, str]]:
    calls: list[ToolCall] = [one for calls in under_way.rounds for one in calls]
    return [json.loads(one.raw) for one in calls if one.name == name]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    written(tmp_path / "work", files())
    return tmp_path / "work"


async def test_a_dream_reads_mends_and_says_why(folder: Path) -> None:
    one = dreaming(folder)
    text = await one.run()
    after = state(folder)
    assert after["uploads.md"] == files()["uploads.md"]
    assert after["limits.md"] == files()["limits.md"]
    assert b"moved the ledger yesterday, see [uploads](uploads.md)" in after["ledger.md"]
    assert b"(ledger.md)" in after["MEMORY.md"]
    assert b"x.md)" not in after["MEMORY.md"]
    assert after["sub/printer.md"] == files()["sub/printer.md"]
    for phase in ("orient:", "gather:", "consolidate:", "prune and index:"):
        assert phase in text
    reasons = reasons_in(text)
    assert "left: contradiction uploads.md" in text
    assert "left: stale_date ledger.md" in text
    assert fact_verdict(files(), after, reasons, now=NOW).lost == ()
    assert one.notices == []


async def test_a_second_dream_changes_nothing(folder: Path) -> None:
    await dreaming(folder).run()
    after = state(folder)
    second = dreaming(folder)
    assert "nothing to mend" in await second.run()
    assert made(second, "Write") == []
    assert state(folder) == after


async def test_an_equal_file_is_emptied(folder: Path) -> None:
    body = BODIES["uploads.md"].replace("The proxy", "Proxy")
    twin = new("twin.md", name="uploads", description="on uploads", type="project", body=body)
    written(folder, {"twin.md": twin.data})
    one = dreaming(folder)
    text = await one.run()
    assert (folder / "twin.md").read_bytes() == b"" or (folder / "uploads.md").read_bytes() == b""
    every = "".join(data.decode() for data in state(folder).values())
    assert all(said in every for said in ("The proxy in Oslo", "Proxy in Oslo"))
    assert "merged_into" in {r.why for r in reasons_in(text)}
    paths = [Path(call["file_path"]).name for call in made(one, "Write")]
    assert paths[-1] == "MEMORY.md"  # no pointer before its file
    assert len(paths) == len(set(paths))


async def test_each_answer_is_a_function_of_the_request(folder: Path) -> None:
    one = dreaming(folder)
    await one.run()
    request = one.request()
    assert [b.value for b in answer_dream(request)] == [b.value for b in answer_dream(request)]


async def test_what_the_repository_lost_is_said(tmp_path: Path) -> None:
    root = tmp_path / "project"
    (root / "src").mkdir(parents=True)
    (root / "src" / "new.py").write_text("x = 1\n")
    folder = tmp_path / "work"
    body = "The parser in `src/old.py` is fragile, `src/new.py` serves most callers."
    data = new("parser.md", name="parser", description="p", type="project", body=body).data
    written(folder, {"parser.md": data, "MEMORY.md": b"- [parser](parser.md)\n"})
    one = Dreaming(folder, task_of(folder, {}, NOW, root))
    text = await one.run()
    assert [call["pattern"] for call in made(one, "Glob")] == ["src/old.py", "src/new.py"]
    assert "gather: 1 of 2 paths they name are gone" in text
    assert "src/old.py is gone" in text
    assert (folder / "parser.md").read_bytes() == data


async def test_bytes_that_are_no_text_are_not_written(folder: Path) -> None:
    data = b"Rosa left yesterday.\xff\n"
    written(folder, {"odd.md": data, "MEMORY.md": files()["MEMORY.md"] + b"- [odd](odd.md)\n"})
    text = await dreaming(folder).run()
    assert (folder / "odd.md").read_bytes() == data
    assert b"(odd.md)" in (folder / "MEMORY.md").read_bytes()
    assert "not done: odd.md" in text


async def test_a_file_with_a_secret_is_left_as_it_lies(folder: Path) -> None:
    secret = "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3z5A"
    data = b"Rosa moved it yesterday. The token is " + secret.encode() + b"\n"
    index = files()["MEMORY.md"] + b"- [token](token.md)\n"
    written(folder, {"token.md": data, "MEMORY.md": index})
    task = task_of(folder, times() | {"token.md": THEN}, NOW)
    text = await Dreaming(folder, task).run()
    assert (folder / "token.md").read_bytes() == data
    assert secret not in text
    assert "left: secret token.md:1" in text


async def test_an_index_that_cannot_be_read_stops_every_change(folder: Path) -> None:
    written(folder, {"MEMORY.md": b"- [x](x.md) \xff\n"})
    before = state(folder)
    text = await dreaming(folder).run()
    assert state(folder) == before
    assert "an index is no text" in text


async def test_an_empty_folder_is_dreamt_over(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    assert "0 memories" in await Dreaming(folder, task_of(folder, {}, NOW)).run()


async def test_without_its_tools_it_says_so_and_ends(folder: Path) -> None:
    one = dreaming(folder, tools=("Glob",))
    assert "Write cannot be used here" in await one.run()
    assert one.rounds == []
    assert "no folder" in await Dreaming(folder, DreamTask()).run()
