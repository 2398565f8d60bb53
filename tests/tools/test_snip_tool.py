"""Snip as the model's own tool: it names messages by their words, and they go."""

from __future__ import annotations

from pathlib import Path

import pytest

from reverie.errors import InvalidInput
from reverie.session import Session
from reverie.testing import ManualClock, ScriptedModel, call, reply
from reverie.toolbox import ToolContext, UnconfinedFiles, snip_tool
from reverie.wire import tool_result, user
from tests.session.doors import opened
from tests.transcript.test_fold import pairs_up

pytestmark = pytest.mark.spec("4")


def context(root: Path) -> ToolContext:
    return ToolContext(root, root, UnconfinedFiles(root), ManualClock())


async def talked(s: Session) -> None:
    """A long result, a dead end, and a call to Snip that still waits for its own result."""
    await s.add(user("Where is the parser defined?"))
    await s.prepare()
    await s.observe(reply(call("Read", "c1", file_path="/home/user/parser.py")))
    await s.add(tool_result("c1", "def parse(text): " + "x = 1; " * 400))
    await s.prepare()
    await s.observe(reply("It stands in parser.py."))
    await s.add(user("And now something else entirely."))
    await s.prepare()
    await s.observe(reply(call("Snip", "c2", first="Where is the parser defined?")))


async def snipped(s: Session, at: ToolContext, **given: str) -> str:
    out = await snip_tool(lambda: s).run(dict(given), at)
    await s.add(tool_result("c2", str(out.content)))
    return str(out.content)


async def test_it_goes_before_the_next_request_and_pairs_stay_whole(
    home: Path, tmp_path: Path
) -> None:
    async with opened(home, tmp_path, model=ScriptedModel(["x"])) as s:
        await talked(s)
        told = await snipped(
            s, context(tmp_path), first="parser defined", last="stands in parser.py"
        )
        assert "4 messages" in told
        request = await s.prepare()
        pairs_up(request)
        text = request.body()
        assert "def parse" not in text
        assert "snipped here" in text
        assert "something else entirely" in text
        assert any("def parse" in b.text for e in s.view.entries for b in blocks(e.record))


def blocks(record: object) -> tuple:
    return getattr(record, "blocks", ()) or ()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"first": "no such words here"}, "No message holds"),
        ({"first": "short"}, "8 signs at least"),
        ({"first": "parser.py"}, "messages hold these words"),
    ],
)
async def test_words_that_name_none_or_several_are_refused(
    home: Path, tmp_path: Path, given: dict[str, str], told: str
) -> None:
    async with opened(home, tmp_path, model=ScriptedModel(["x"])) as s:
        await talked(s)
        with pytest.raises(InvalidInput, match=told):
            await snipped(s, context(tmp_path), **given)
        await s.add(tool_result("c2", "refused"))
        assert "def parse" in (await s.prepare()).body()


async def test_the_call_in_hand_is_never_cut(home: Path, tmp_path: Path) -> None:
    async with opened(home, tmp_path, model=ScriptedModel(["x"])) as s:
        await talked(s)
        told = await snipped(s, context(tmp_path), first="something else entirely")
        assert told.startswith("1 message")
        pairs_up(await s.prepare())


async def test_the_flag_switches_it_off(home: Path, tmp_path: Path) -> None:
    async with opened(home, tmp_path, model=ScriptedModel(["x"])) as s:
        await talked(s)
        (home / "flags.json").write_text('{"history_snip": false}')
        with pytest.raises(InvalidInput, match="switched off"):
            await snipped(s, context(tmp_path), first="something else entirely")
