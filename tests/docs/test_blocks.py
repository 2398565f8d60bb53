"""Every Python block of the pages runs as it stands, with the names that its page speaks of."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest

import reverie
from reverie import models
from reverie.errors import PromptTooLong
from reverie.transcript import EMPTY, Entry, UserMessage, apply
from reverie.wire import render
from tests.docs.lines import ROOT, blocks, own_pages

pytestmark = pytest.mark.spec("project.docs-run")
HELD_BY = {
    "docs/adapters.md": "tests/adapters/test_agents.py",
    "docs/agent.md": "tests/loop/test_docs.py",
    "docs/fitting.md": "tests/api/test_fit_docs.py",
    "docs/library.md": "tests/api/test_docs.py",
    "docs/loop.md": "tests/api/test_loop_docs.py",
    "docs/mcp.md": "tests/adapters/test_memory_tool.py",
    "docs/transcripts.md": "tests/cli/test_docs.py",
    "docs/wrap.md": "tests/api/test_loop_docs.py",
}
"""Pages whose blocks are run, and looked at, by tests of their own."""
BLOCKS = [
    (page, number, code)
    for page in own_pages()
    if page not in HELD_BY
    for number, code in blocks(page, "python")
]


def _names(folder: Path) -> dict[str, Any]:
    record = Entry("e1", "", 0.0, UserMessage(()))
    return {
        "apply": apply, "render": render, "view": EMPTY, "record": record,
        "folder": folder, "now": 0.0, "encode": lambda texts: [[1.0, 0.0] for _ in texts],
    }  # fmt: skip


@asynccontextmanager
async def _with_session() -> AsyncIterator[dict[str, Any]]:
    """A session with something said, and a provider that takes no more than so much."""
    sent: list[reverie.Request] = []

    async def send(request: reverie.Request) -> dict[str, Any]:
        sent.append(request)
        if len(sent) == 1:
            raise PromptTooLong("too long", needed=30_000, allowed=20_000)
        return {"role": "assistant", "content": [{"type": "text", "text": "Done."}]}

    async with reverie.Session.open(".", model=models.embedded()) as session:
        for number in range(6):
            await session.add(f"Look at part {number}. " + f"word{number} " * 2_000)
            await session.prepare()
            await session.observe(
                {
                    "role": "assistant",
                    "content": [
                        {"type": "text", "text": f"Part {number} is well. " + "so " * 3_000}
                    ],
                }
            )
        await session.add("Go on.")
        yield {"session": session, "send": send}


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("page", "code"), [b[::2] for b in BLOCKS], ids=[f"{p}:{n}" for p, n, _ in BLOCKS]
)
async def test_a_block_runs_as_it_stands(
    page: str, code: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    uses: Callable[[], Any] = _with_session if re.search(r"\bsession\.", code) else nullcontext
    async with uses() as given:
        space = {"__name__": "example", **_names(tmp_path), **(given or {})}
        compiled = compile(code, page, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        done = eval(compiled, space)
        if inspect.isawaitable(done):
            await done


def test_a_page_with_python_is_held_by_a_test() -> None:
    """A page of another test is read there, and has something to read."""
    for page, test in HELD_BY.items():
        assert blocks(page, "python"), page
        assert Path(page).name in (ROOT / test).read_text(encoding="utf-8"), (page, test)
    assert len(BLOCKS) >= 8
