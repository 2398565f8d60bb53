"""Transcripts that somebody else has changed: whatever a file holds, only our own errors come.

A journal of every kind of record is mutated by chance, with a seed, its lines sealed again so that
the checksum lets them through. Each is listed, read, rendered and opened.
"""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from reverie.errors import ReverieError
from reverie.session import SessionLibrary
from reverie.store import Project, seal
from reverie.testing import call, reply
from reverie.transcript import (
    Attached,
    Boundary,
    Candidate,
    Extracted,
    Failed,
    ForkEnded,
    NotesTaken,
    Recalled,
    Replaced,
    RequestRefused,
    Stand,
    Strip,
    Usage,
    WordsRemoved,
    text_block,
)
from reverie.wire import render, tool_result
from tests.conftest import Scale
from tests.faults import quick_folder
from tests.tally import counted

from .doors import LARGE, opened

pytestmark = pytest.mark.spec("1.hostile")
SESSION = "00000000-0000-4000-8000-000000000000"
DEEP = 900
VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 5, 10**400, 1.5, 1e308, "", "x", "\ud800", "a\x00b", "../../etc/passwd",
    [], {}, [[]], [{}], {"blob": {}}, {"blob": "../x"}, {"type": []}, [5], ["x"], [None],
    "9999-12-31T23:59:59", "0001-01-01T00:00:00", "+999999-01-01", "text", "tool_result",
)  # fmt: skip
RAW = ("1e999", "-1e999", "[" * DEEP + "]" * DEEP, '{"a":' * DEEP + "1" + "}" * DEEP, "9" * 5_000)


async def a_life(home: Path, project: Path) -> list[str]:
    """The lines of a session in which everything happens."""
    async with opened(home, project) as s:
        await s.add("word-0")
        await s.prepare()
        usage = Usage(5, 6, 7, 8)
        await s.observe(reply("word-1", call("Bash", "t1"), call("Bash", "t2"), usage=usage))
        await s.add(tool_result("t1", LARGE), tool_result("t2", "word-2"))
        first = s.view.entries[2].id
        await s.prepare()
        await s.observe(reply("word-3", usage=usage))
        await s.append(
            Attached((text_block("seen"),), "file"),
            Failed("layer", "why"),
            NotesTaken(s.view.leaf, 5, "00"),
            Extracted(s.view.leaf, "written", ("a.md",)),
            Recalled(s.view.leaf, 3, (Candidate("a.md", 0.5, "injected"),)),
            ForkEnded("notes", "agent", usage, 1, "completed"),
            RequestRefused("too long"),
            WordsRemoved(1, (Strip(s.view.leaf, 0),)),
            Replaced(first, s.view.leaf, (Stand("user", (text_block("sum"),)),), "compaction",
                     strips=(Strip(first, 0),), boundary=Boundary("auto", 5, 6, ("Bash",))),
        )  # fmt: skip
        await s.end_turn()
        await s.rewind(s.view.leaf)
        await s.add("word-4")
        log, ident = s.library.folder, s.id
        lines = log.read(f"{ident}.jsonl").decode().splitlines()
        return [json.dumps({k: v for k, v in json.loads(x).items() if k != "sum"}) for x in lines]


def places_in(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place inside a JSON value."""
    inside = value.items() if isinstance(value, dict) else enumerate(value)
    out = [at] if at else []
    for key, member in inside if isinstance(value, dict | list) else ():
        out += places_in(member, (*at, key)) if isinstance(member, dict | list) else [(*at, key)]
    return out


def mutated(line: str, ids: list[str], chance: random.Random) -> str:
    """A line with one thing in it changed; it stays a JSON object where it can."""
    value = json.loads(line)
    at = chance.choice(places_in(value))
    holder = value
    for key in at[:-1]:
        holder = holder[key]
    kind = chance.randrange(5)
    if kind == 0:
        del holder[at[-1]]
    elif kind == 1:
        value[chance.choice(("id", "parent", "first", "last", "call"))] = chance.choice(ids)
    elif kind == 2:
        mark = "replace-me"
        holder[at[-1]] = mark
        return json.dumps(value).replace(f'"{mark}"', chance.choice(RAW))
    else:
        holder[at[-1]] = chance.choice(VALUES)
    return json.dumps(value)


def changed(lines: list[str], chance: random.Random) -> bytes:
    out = list(lines)
    ids = [json.loads(line)["id"] for line in lines]
    for _ in range(chance.randrange(1, 4)):
        at = chance.randrange(len(out))
        match chance.randrange(8):
            case 0:
                del out[at]
            case 1:
                out.insert(chance.randrange(len(out)), out[at])
            case 2:
                other = chance.randrange(len(out))
                out[at], out[other] = out[other], out[at]
            case _:
                if out[at] in lines:
                    out[at] = mutated(out[at], ids, chance)
        if not out:
            break
    data = bytearray(b"".join(seal(line) + b"\n" for line in out))
    if data and chance.random() < 0.1:  # and bytes as a disk may return them
        data[chance.randrange(len(data))] = chance.randrange(256)
    return bytes(data)


async def opened_again(base: Path) -> None:
    async with opened(base / "home", base / "work", resume=SESSION, prefix="again") as s:
        await s.add("on we go")
        await s.prepare()


def read_whole(library: SessionLibrary) -> None:
    """Read and render it; each line is an entry, or told to be none."""
    found = library.read(SESSION)
    render(found.view).body()
    data = (library.path / f"{SESSION}.jsonl").read_bytes()
    lines = [line for line in data.split(b"\n") if line.strip()]
    skipped = sum(" is skipped: " in fault for fault in found.faults)
    assert len(found.entries) + skipped == len(lines), found.faults


def looked_at(library: SessionLibrary, base: Path, *, opens: bool = True) -> None:
    """List, read, render and open it; only our own errors may come."""
    looks: list[Callable[[], object]] = [
        lambda: [library.summary(file) for file in library.sessions()],
        lambda: read_whole(library),
    ]
    if opens:
        looks.append(lambda: anyio.run(opened_again, base))
    for look in looks:
        with contextlib.suppress(ReverieError):
            look()


def test_no_foreign_error_for_what_a_journal_holds(scale: Scale) -> None:
    chance = random.Random(scale.seed)
    with quick_folder() as base:
        (base / "work").mkdir()
        lines = anyio.run(a_life, base / "home", base / "work")
        environ = {"HOME": str(base)}
        library = SessionLibrary.of(Project.at(base / "work", home=base / "home", environ=environ))
        path = library.path / f"{SESSION}.jsonl"
        seen = {b"".join(seal(line) + b"\n" for line in lines)}
        for n in range(scale.pick(1_000, 50_000)):
            while (data := changed(lines, chance)) in seen:
                pass
            seen.add(data)
            path.write_bytes(data)
            looked_at(library, base, opens=n % 4 == 0)
    counted("journal mutations", len(seen) - 1, drawn=True)


@pytest.mark.parametrize(
    ("at", "value"),
    [
        ("at", 10**400),
        ("usage", 5),
        ("blocks", [{"type": "tool_use", "id": {}, "name": [], "input": 5}]),
        ("blocks", [{"type": ["x"]}]),
        ("blocks", [{"type": "text", "text": "\ud800"}]),
        ("parent", {"a": 1}),
        ("model", ["m"]),
    ],
)
def test_each_kind_by_name(tmp_path: Path, at: str, value: Any) -> None:
    (tmp_path / "work").mkdir()
    lines = anyio.run(a_life, tmp_path / "home", tmp_path / "work")
    environ = {"HOME": str(tmp_path)}
    library = SessionLibrary.of(
        Project.at(tmp_path / "work", home=tmp_path / "home", environ=environ)
    )
    out = [json.dumps({**json.loads(x), at: value}) if '"assistant"' in x else x for x in lines]
    (library.path / f"{SESSION}.jsonl").write_bytes(b"".join(seal(x) + b"\n" for x in out))
    looked_at(library, tmp_path)
    assert library.read(SESSION).view.entries


@pytest.mark.parametrize("ident", [{}, {"id": 5}, {"id": ""}, {"id": "t1"}])
def test_a_tool_call_without_an_id_is_named(tmp_path: Path, ident: dict[str, Any]) -> None:
    (tmp_path / "work").mkdir()
    lines = anyio.run(a_life, tmp_path / "home", tmp_path / "work")
    environ = {"HOME": str(tmp_path)}
    library = SessionLibrary.of(
        Project.at(tmp_path / "work", home=tmp_path / "home", environ=environ)
    )
    first = next(n for n, line in enumerate(lines) if '"assistant"' in line)
    blocks = [{"type": "tool_use", **ident, "name": "Read", "input": {}}]
    lines[first] = json.dumps({**json.loads(lines[first]), "blocks": blocks})
    (library.path / f"{SESSION}.jsonl").write_bytes(b"".join(seal(x) + b"\n" for x in lines))
    named = [one for one in library.read(SESSION).faults if "without an id" in one]
    assert named == (
        []
        if ident == {"id": "t1"}
        else [f"line {first + 1}: a tool call without an id: no result can answer it"]
    )
