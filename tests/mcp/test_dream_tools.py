"""A dream through the server's tools: the client's own model thinks, the same verdict decides."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

import reverie
from reverie.apps.mcp import MemoryServer
from reverie.memory.dream_tools import ClientDreams
from reverie.session import OpenMemory, find, list_dreams, undo
from reverie.testing import ManualClock

pytestmark = pytest.mark.spec("18.dream")
TESTS = "---\nname: Tests\ndescription: Run `make check`\ntype: feedback\n---\n\n"


@pytest.fixture
def memory(home: Path, tmp_path: Path) -> reverie.Memory:
    folder = tmp_path / "shop"
    folder.mkdir()
    made = reverie.Memory(folder, home=home)
    made.add("Run `make check` before every commit.", type="feedback", name="Tests")
    made.add(
        "Before each commit, run `make check`. It takes a minute.",
        type="feedback",
        name="Make check",
    )
    made.add("The freeze ends on 2026-01-05.", type="project", name="Freeze")
    return made


@asynccontextmanager
async def client(memory: reverie.Memory, **options: Any) -> AsyncIterator[Client]:
    async with Client(MemoryServer(memory, **options).server()) as found:
        yield found


async def said(client: Client, tool: str, **given: Any) -> tuple[str, bool]:
    found = await client.call_tool(tool, given)
    return found.content[0].text, bool(found.is_error)  # type: ignore[union-attr]


def texts(memory: reverie.Memory) -> dict[str, str]:
    return {one.file: one.text for one in memory.list()}


def files(memory: reverie.Memory) -> dict[str, bytes]:
    return {one.name: one.read_bytes() for one in memory.folder.glob("*.md")}


REASON = {
    "reason": "duplicate_of",
    "fact": "Before each commit, run `make check`.",
    "target": "feedback_tests.md",
    "by": "Run `make check` before every commit.",
}


async def test_a_merge_is_written_corrected_closed_and_undone(memory: reverie.Memory) -> None:
    before = files(memory)
    async with client(memory) as c:
        opened, wrong = await said(c, "dream_open")
        assert not wrong
        assert "dream_write" in opened
        assert "feedback_make_check.md" in opened
        assert "It takes a minute." in opened
        assert "[words mcp]" not in opened
        assert "{" not in opened.split("## Manifest")[1].replace('{"', "")
        lost, _ = await said(c, "dream_write", file="feedback_make_check.md", text="")
        assert "fact lost: feedback_make_check.md" in lost
        fine = f"{TESTS}Run `make check` before every commit. It takes a minute.\n"
        await said(c, "dream_write", file="feedback_tests.md", text=fine)
        good, _ = await said(
            c, "dream_write", file="feedback_make_check.md", text="", reasons=[REASON]
        )
        assert good == "Written. Nothing is wrong so far."
        assert files(memory) == before  # nothing changes before it is closed
        done, wrong = await said(c, "dream_close")
        assert not wrong
        assert "a dream changed 3 files" in done
        assert (await said(c, "dream_close"))[1]
    assert set(texts(memory)) == {"feedback_tests.md", "project_freeze.md"}
    index = (memory.folder / "MEMORY.md").read_text()
    assert "feedback_make_check.md" not in index
    assert "[Tests](feedback_tests.md) — Run `make check`" in index
    with OpenMemory.of(memory.__project__) as opened_memory:
        store = opened_memory.store
        dream = find(store, "", "completed")
        assert dream.model.startswith("host:")
        assert [one["fact"] for one in dream.tombstones] == [REASON["fact"]]
        undo(store, dream)
    assert files(memory) == before


async def test_a_fact_that_goes_without_its_words_is_left_out(memory: reverie.Memory) -> None:
    before = files(memory)
    async with client(memory) as c:
        await said(c, "dream_open")
        vague = {"reason": "expired", "fact": "an old date"}
        told, _ = await said(c, "dream_write", file="project_freeze.md", text="", reasons=[vague])
        assert "fact lost: project_freeze.md" in told
        done, _ = await said(c, "dream_close")
        assert "left out: project_freeze.md" in done
    assert files(memory) == before


async def test_what_is_no_memory_file_or_was_not_shown_is_refused(memory: reverie.Memory) -> None:
    for n in range(4):
        memory.add(f"Otter {n}. " + "Otters swim in the river. " * 600, name=f"Otter {n}")
    before = files(memory)
    async with client(memory) as c:
        opened, _ = await said(c, "dream_open")
        assert "call dream_open with page 2" in opened
        hidden = next(one for one in sorted(before) if f'source="{one}"' not in opened)
        told, _ = await said(c, "dream_write", file=hidden, text="")
        assert f"{hidden}: this file was not shown" in told
        for bad in ("../out.md", "/etc/out.md", "script.sh", "team/x.md", "logs/2026/01/x.md"):
            told, _ = await said(c, "dream_write", file=bad, text="x")
            assert bad in told
        second, _ = await said(c, "dream_open", page=2)
        assert f'source="{hidden}"' in second
        assert (await said(c, "dream_open", page=9))[1]
        done, _ = await said(c, "dream_close", discard=True)
        assert done == "a dream was dropped: the client discarded it"
    assert files(memory) == before
    assert not list(memory.folder.parent.rglob("out.md"))


async def test_one_dream_at_a_time_and_none_where_it_is_switched_off(
    memory: reverie.Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with client(memory) as c, client(memory) as other:
        await said(c, "dream_open")
        assert "is open already" in (await said(c, "dream_open"))[0]
        assert "A dream is under way" in (await said(other, "dream_open"))[0]
        assert "No dream is open" in (await said(other, "dream_write", file="a.md", text="x"))[0]
        await said(c, "dream_close")
        assert not (await said(other, "dream_open"))[1]
        await said(other, "dream_close", discard=True)
    async with client(memory, read_only=True) as c:
        names = {tool.name for tool in (await c.list_tools()).tools}
        assert not {name for name in names if name.startswith("dream")}


def test_a_client_that_never_closes_loses_its_branch(memory: reverie.Memory) -> None:
    clock = ManualClock(1_790_000_000.0)
    dreams = ClientDreams(memory, clock.now)
    run = {one.name: one.run for one in dreams.offers("codex")}
    before = files(memory)

    def use(name: str, **given: Any) -> str:
        answer = run[name]
        assert answer is not None
        return str(answer(given).text)

    use("dream_open")
    use("dream_write", file="feedback_new.md", text=f"{TESTS}Otters.\n")
    clock.time += 51 * 60
    with pytest.raises(reverie.ReverieError, match="not closed within 50 minutes"):
        use("dream_write", file="feedback_new.md", text="x")
    with OpenMemory.of(memory.__project__, now=clock.now) as opened:
        (dream,) = list_dreams(opened.store)
        assert (dream.status, dream.model) == ("dropped", "host:codex")
        assert "not closed within 50 minutes" in dream.reason
        assert not (opened.store.folder.root / ".consolidate-lock").exists()
    assert files(memory) == before
    use("dream_open")  # the lock was given back
    clock.time += 61 * 60
    with OpenMemory.of(memory.__project__, now=clock.now) as opened:
        newest = list_dreams(opened.store)[0]
        assert (newest.status, newest.reason) == ("dropped", "it was not closed in time")


async def test_the_prompt_leads_through_it(memory: reverie.Memory) -> None:
    async with client(memory) as c:
        assert "dream" in {one.name for one in (await c.list_prompts()).prompts}
        found = await c.get_prompt("dream")
        told = found.messages[0].content.text  # type: ignore[union-attr]
        assert "dream_open" in told
        assert "dream_close" in told
