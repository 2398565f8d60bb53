"""ReadBack of what was sealed out of the context, by its short reference."""

from __future__ import annotations

from pathlib import Path

import pytest

from reverie.layers import per_result
from reverie.session import SessionDisk
from reverie.store import Folder
from reverie.testing import call, world
from reverie.toolbox import ReferencedText, SealedCalls
from reverie.transcript import (
    EMPTY,
    AssistantMessage,
    Entry,
    Record,
    Replaced,
    Stand,
    UserMessage,
    View,
    apply,
    block_of,
    expecting,
    reference,
    text_block,
)

pytestmark = [pytest.mark.spec("3"), pytest.mark.spec("B11")]
LARGE = "a line of output\n" * 5_000


def append(view: View, record: Record) -> View:
    return apply(view, Entry(f"e{len(view.entries)}", view.leaf, 1.0, record))


async def sealed(folder: Folder) -> View:
    """Two rounds, a small and a large result, both sealed away."""
    view = append(EMPTY, UserMessage((text_block("go"),)))
    for ident, text in (("t1", "small result"), ("t2", LARGE)):
        view = append(view, AssistantMessage((call("Bash", ident, command=f"cat {ident}"),)))
        result = block_of({"type": "tool_result", "tool_use_id": ident, "content": text})
        seen = expecting(view, UserMessage((result,)))
        for record in await per_result(seen, world(disk=SessionDisk(folder, "s"))):
            view = append(view, record)
        decided = view.decisions.get(ident)
        assert decided is not None
        kept = result.with_member("content", decided.content) if decided.content else result
        view = append(view, UserMessage((kept,), "tool"))
    view = append(view, AssistantMessage((text_block("done"),)))
    by = (Stand("user", (text_block("sealed"),)),)
    return append(view, Replaced("e1", view.leaf, by, "collapse"))


async def look(source: SealedCalls, ident: str) -> ReferencedText:
    found = await source.find(reference(ident))
    assert found is not None
    return found


async def test_a_call_and_its_result_come_back_whole(tmp_path: Path):
    folder = Folder(tmp_path)
    view = await sealed(folder)
    source = SealedCalls(lambda: view, folder, "s")
    found = await look(source, "t1")
    assert found.text.startswith("small result\n")
    assert "cat t1" in found.text
    assert found.warning == ""
    assert (await look(source, "t2")).text.startswith(LARGE)  # the file's own line numbers


async def test_a_deleted_or_edited_file_is_said_to_be(tmp_path: Path):
    folder = Folder(tmp_path)
    view = await sealed(folder)
    source = SealedCalls(lambda: view, folder, "s")
    file = tmp_path / "s" / "tool-results" / "t2.txt"
    file.write_text("edited")
    assert "changed" in (await look(source, "t2")).warning
    file.unlink()
    assert "deleted" in (await look(source, "t2")).warning


async def test_a_message_of_the_user_comes_back_whole(tmp_path: Path):
    folder = Folder(tmp_path)
    view = append(await sealed(folder), UserMessage((text_block("a long request " * 900),)))
    found = await look(SealedCalls(lambda: view, folder, "s"), view.leaf)
    assert found.text == "a long request " * 900
    assert found.title.startswith("user message")


@pytest.mark.parametrize("odd", ["", "r:", "r:zzzzzz", "t1", "../../etc/passwd", "r:abc123 "])
async def test_what_names_nothing_finds_nothing(tmp_path: Path, odd: str):
    folder = Folder(tmp_path)
    view = await sealed(folder)
    assert await SealedCalls(lambda: view, folder, "s").find(odd) is None
