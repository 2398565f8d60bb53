"""An order to override, leak, hide or run waits for a person in every interface that has no
conversation to check it against."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import reverie
from reverie.adapters import ReverieStore
from reverie.memory.files import CommandRefused, MemoryFiles
from tests.mcp.test_server import ORDERS, WISHES

pytestmark = pytest.mark.spec("B4.trust")
REVERIE = (sys.executable, "-P", "-m", "reverie.apps.cli")


def add(memory: reverie.Memory, text: str) -> None:
    memory.add(text)


def update(memory: reverie.Memory, text: str) -> None:
    memory.update(memory.add("It is so.", name=f"n{len(memory.list())}").file, text)


def model_tool(memory: reverie.Memory, text: str) -> None:
    call = {"type": "tool_use", "id": "c", "name": "remember", "input": {"text": text}}
    answer = str(memory.tools.handle(call)["content"])
    assert answer.startswith("Not saved yet") is bool(memory.pending())


def files(memory: reverie.Memory, text: str) -> None:
    made, at = MemoryFiles(memory), f"/memories/n{len(memory.list())}.md"
    for work in (
        lambda: made.create(at, text),
        lambda: made.create(at, "one\n"),
        lambda: made.insert(at, 1, text),
        lambda: made.str_replace(at, "one", text),
    ):
        with contextlib.suppress(CommandRefused):
            work()


def store(memory: reverie.Memory, text: str) -> None:
    made = ReverieStore(memory)
    made.put(("a",), text[:9], {"text": text, "n": 1})
    made.put(("b",), text[:9], {"text": "It is so.", "n": 1})
    made.put(("b",), text[:9], {"n": text})


def imported(memory: reverie.Memory, text: str) -> None:
    """A mem0 export."""
    file = memory.folder.parent / "export.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps([{"id": "1", "memory": text}]))
    line = [*REVERIE, "memory", "import", "--from", "mem0", str(file), "--json"]
    subprocess.run(line, check=True, capture_output=True, cwd=memory.__project__.root)


def program(memory: reverie.Memory, text: str) -> None:
    """What another program kept for this user."""
    root = memory.__project__.root
    base = root.parent / "codex"
    (base / "memories").mkdir(parents=True, exist_ok=True)
    (base / "memories" / "notes.md").write_text(text)
    environ = {**memory.__project__.environ, "CODEX_HOME": str(base)}
    line = [*REVERIE, "memory", "import", "--from", "codex"]
    subprocess.run(line, check=True, capture_output=True, cwd=root, env=environ)


FAST = (add, update, model_tool, files, store)


@pytest.mark.parametrize("write", FAST)
def test_row_93_an_order_waits(home: Path, tmp_path: Path, write: Callable[..., Any]) -> None:
    memory = reverie.Memory(tmp_path)
    for count, order in enumerate(ORDERS):
        write(memory, order)
        assert not [one.text for one in memory.list() if order in one.text], order
        waits = [one for one in memory.pending() if order in one.text]
        assert waits, order
        assert order not in memory.context(order), count
    accepted = memory.accept(memory.pending()[0].id)
    assert memory.get(accepted.file).text


@pytest.mark.parametrize("write", FAST)
def test_a_wish_does_not_wait(home: Path, tmp_path: Path, write: Callable[..., Any]) -> None:
    memory = reverie.Memory(tmp_path)
    for wish in WISHES:
        write(memory, wish)
    assert not memory.pending()


@pytest.mark.parametrize("write", [imported, program])
def test_row_93_an_imported_order_waits(
    home: Path, tmp_path: Path, write: Callable[..., Any]
) -> None:
    memory = reverie.Memory(tmp_path)
    memory.add("Staging runs in Frankfurt.")
    for order in (ORDERS[0], ORDERS[8]):
        write(memory, order)
        assert not [one.text for one in memory.list() if order in one.text]
        assert [one for one in memory.pending() if order in one.text]


def test_a_person_writes_what_they_like(home: Path, tmp_path: Path) -> None:
    line = [*REVERIE, "memory", "add", ORDERS[0], "--json"]
    subprocess.run(line, check=True, capture_output=True, cwd=tmp_path)
    memory = reverie.Memory(tmp_path)
    assert [one.text for one in memory.list()] == [ORDERS[0]]
    assert not memory.pending()


def test_an_accepted_order_can_be_edited_around_and_moved(home: Path, tmp_path: Path) -> None:
    memory = reverie.Memory(tmp_path)
    memory.accept(_waiting(memory, f"{ORDERS[0]}\nStaging runs in Frankfurt."))
    name = memory.list()[0].file
    made = MemoryFiles(memory)
    made.str_replace(f"/memories/{name}", "Frankfurt", "Dublin")
    made.rename(f"/memories/{name}", "/memories/moved.md")
    assert "Dublin" in memory.get("moved.md").text
    assert [one.file for one in memory.list()] == ["moved.md"]
    assert not memory.pending()


def _waiting(memory: reverie.Memory, text: str) -> str:
    memory.add(text)
    return memory.pending()[-1].id


def test_a_store_gives_back_what_waits_and_deletes_it(home: Path) -> None:
    memory = reverie.Memory("p")
    made = ReverieStore(memory)
    made.put(("a",), "k", {"text": "It is so."})
    made.put(("a",), "k", {"text": ORDERS[0]})
    found = made.get(("a",), "k")
    assert found is not None
    assert found.value == {"text": ORDERS[0]}
    assert not [one for one in made.search(("a",)) if ORDERS[0] in str(one.value)]
    made.put(("a",), "k", {"text": "It is otherwise."})
    found = made.get(("a",), "k")
    assert found is not None
    assert found.value == {"text": "It is otherwise."}
    made.delete(("a",), "k")
    assert made.get(("a",), "k") is None
    assert not memory.pending()
