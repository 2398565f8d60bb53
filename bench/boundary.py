"""Recall at the tool boundary: what joins the results of calls, and how often wrongly.

Every tool call of the recorded sessions goes through a session of its own, round by round: the
calls as they were made, an error as it came back, any other result as one word, since recall does
not look at it. What people typed is left out, so that nothing was injected before and all that
joins is the boundary's. What joined is judged by the request: a memory counts where its file's name
and a line of its own are there (two commits may have a line in common).

Foreign: the memories are those of another project (`memory_docs_dev`; for the one session of a
third project the commits of the first too). Whatever joins is wrong.

Own: one memory for each commit of the sessions' project that is older than the session and did not
come from it. Whether what joined belongs was judged by somebody who read the calls and the memory,
from a sample of 60 drawn by hash, before the share was known; the labels are in
`labels/boundary.jsonl`, by session, round and memory, and hold no text. A join without a label
counts for nothing.

    python -m bench run boundary
    python -m bench.boundary own|foreign [--half dev|held]    every join, to read
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import anyio

from bench.figures import ROOT_SHARED, Figure, Row, at_least, at_most
from bench.gate import documents, labels, telling_line
from bench.labels import LABELS, recorded
from bench.prepared import PATIENT, Home, Note
from reverie.session import Session, open_session
from reverie.store import MemoryStore
from reverie.testing import ManualClock, reply
from reverie.topics import new
from reverie.transcript import AssistantMessage, Block, Entry, UserMessage, block_of, text_of
from reverie.wire import tool_result, user

FOREIGN = 0.001
PRECISION = 0.8
OTHER = "pi-before-compaction"
"""The one session of a third project."""
MAX_ERROR = 1_000
LONG = ("content", "new_string", "old_string", "prompt", "plan")
"""Inputs that recall does not look at; they are cut, to be quick."""


@dataclass(frozen=True, slots=True)
class Round:
    """The calls of one answer, each with its result; `typed`: a person spoke before it."""

    calls: tuple[Block, ...]
    results: Mapping[str, Block]
    typed: bool


@dataclass(frozen=True, slots=True)
class Join:
    """A memory that joined the results of a round."""

    session: str
    round: int
    file: str
    calls: tuple[str, ...] = ()
    text: str = ""

    @property
    def id(self) -> str:
        return f"{self.session}:{self.round}:{self.file}"


def measure(out: Path) -> Iterator[Figure | Row]:
    del out
    if not (ROOT_SHARED / "data" / "memory_docs_dev.jsonl.gz").is_file():
        yield "documents and sessions", f"not found under {ROOT_SHARED.name}", "", None
        return
    yield from foreign_rows()
    yield from own_rows()


def foreign_rows() -> Iterator[Figure | Row]:
    joins, calls = foreign()
    what = "memories of another project that join the results of recorded calls, by call"
    yield at_most("boundary.foreign", what, len(joins) / calls, FOREIGN, "share", calls)


def own_rows() -> Iterator[Figure | Row]:
    joins, calls = own()
    yield "memories of the project that join, by 1,000 calls", _per(joins, calls), "", None
    known = judged()
    there = [one for one in joins if one.id in known]
    right = sum(known[one.id] for one in there)
    what = "of what joins of the project's own memories, what belongs to the calls, judged"
    why = (
        "a commit names every file that it changed, also the test's helper that was changed on the"
        " way; nothing in such a memory tells the one from the other"
    )
    share = right / len(there) if there else 0.0
    yield at_least("boundary.own", what, share, PRECISION, "share", len(there), why)
    for half in ("dev", "held"):
        mine = [known[one.id] for one in there if half_of(one.session) == half]
        yield f"the same, sessions of the half {half}", f"{sum(mine)} of {len(mine)}", "", None
    lost = sum(known.values()) - right
    yield "judged to belong, and joined no more", f"{lost} of {sum(known.values())}", "", None


def _per(joins: Sequence[Join], calls: int) -> str:
    return f"{1_000 * len(joins) / calls:.1f} ({len(joins)} of {calls})"


def judged() -> dict[str, bool]:
    """By the id of a join, whether it belongs."""
    path = LABELS / "boundary.jsonl"
    rows = map(json.loads, path.read_text("utf-8").splitlines()) if path.is_file() else ()
    return {row["id"]: row["belongs"] for row in rows}


# --- what joins


def foreign(half: str = "") -> tuple[list[Join], int]:
    docs = documents()
    commits = [note for _, _, note in dated_commits()]
    return _all(half, lambda name, _: [*docs, *commits] if name == OTHER else docs)


def own(half: str = "") -> tuple[list[Join], int]:
    known = dated_commits()

    def before(name: str, began: float) -> list[Note]:
        return [note for at, sessions, note in known if at < began and name not in sessions]

    return _all(half, lambda name, began: [] if name == OTHER else before(name, began))


def _all(half: str, notes: Any) -> tuple[list[Join], int]:
    found: list[Join] = []
    count = 0
    for name, one in recorded():
        if half and half_of(name) != half:
            continue
        rounds = list(rounds_of(one.entries))
        given = notes(name, one.entries[0].at if one.entries else 0.0)
        if given:
            count += sum(len(r.calls) for r in rounds)
            with tempfile.TemporaryDirectory() as folder:
                found += anyio.run(joined, Home(Path(folder)), given, name, rounds)
    return found, count


def half_of(session: str) -> str:
    return "held" if hashlib.sha256(session.encode()).digest()[0] % 2 else "dev"


def dated_commits() -> list[tuple[float, frozenset[str], Note]]:
    """Each commit as a memory, with its time and the sessions it came from."""
    out: list[tuple[float, frozenset[str], Note]] = []
    for one in labels():
        name = " ".join(one["query"].split())
        body = f"{name} ({one['date'][:10]}).\n\n{one['body']}\n\nFiles: {', '.join(one['files'])}"
        note = Note(f"{one['commit'][:12]}.md", "project", name[:100], name, body)
        at = datetime.fromisoformat(one["date"]).timestamp()
        out.append((at, frozenset(one["relevant_sessions"]), note))
    return out


def rounds_of(entries: Sequence[Entry]) -> Iterator[Round]:
    """The rounds of a recorded session: all calls whose results came before the next answer."""
    calls: list[Block] = []
    results: dict[str, Block] = {}
    typed = True
    for entry in entries:
        record = entry.record
        if isinstance(record, AssistantMessage):
            if results:
                yield Round(tuple(calls), results, typed)
                calls, results, typed = [], {}, False
            calls += [block for block in record.blocks if block.type == "tool_use"]
        elif isinstance(record, UserMessage):
            mine = [block for block in record.blocks if block.type == "tool_result"]
            spoke = not mine and record.origin == "user"
            if spoke and results:
                yield Round(tuple(calls), results, typed)
                calls, results, typed = [], {}, False
            results |= {block.call: block for block in mine}
            typed = typed or spoke
    if results:
        yield Round(tuple(calls), results, typed)


async def joined(
    home: Home, notes: Sequence[Note], name: str, rounds: Sequence[Round]
) -> list[Join]:
    lines = {one.file: telling_line(one.body) for one in notes}
    found: list[Join] = []
    with home.memories() as memories:
        put(memories, notes)
        async with open_session(
            home.project,
            model="bench",
            home=home.home,
            environ={"HOME": str(home.base)},
            settings=PATIENT,
            clock=ManualClock(),
            memories=memories,
        ) as session:
            for number, one in enumerate(rounds):
                text = await _round(session, one)
                told = tuple(f"{c.get('name')} {c.value.get('input')}"[:600] for c in one.calls)
                errors = tuple(f"error: {e[:400]}" for e in _errors(one))
                there = [file for file, line in lines.items() if line in text and file in text]
                found += [Join(name, number, file, (*told, *errors), text) for file in there]
    return found


def put(memories: MemoryStore, notes: Sequence[Note]) -> None:
    """Memories, as another program would put them there: quickly."""
    for one in notes:
        about = {"name": one.name, "description": one.description, "type": one.type}
        made = new(one.file, **about, body=one.body)
        (memories.folder.root / one.file).write_bytes(made.data)


async def _round(session: Session, one: Round) -> str:
    """What stands beside the results of a round in the request behind it."""
    if one.typed:
        await session.add(user("Go on"))
    await session.prepare()
    ids = [block.call for block in one.calls if block.call in one.results]
    made = [{**block.value, "input": _short(block)} for block in one.calls if block.call in ids]
    await session.observe(reply(*map(block_of, made)))
    errors = {block.call: text_of(block.value)[:MAX_ERROR] for block in _failed(one)}
    await session.add(*(tool_result(i, errors.get(i) or "done", is_error=i in errors) for i in ids))
    request = await session.prepare()
    texts = [p.block.text for p in request.at(request.count - 1).pieces]
    return "\n".join(text for text in texts if not any(e and e in text for e in errors.values()))


def _failed(one: Round) -> list[Block]:
    return [b for b in one.results.values() if b.value.get("is_error") is True]


def _errors(one: Round) -> list[str]:
    return [text_of(block.value) for block in _failed(one)]


def _short(block: Block) -> dict[str, Any]:
    given = block.value.get("input")
    found: dict[str, Any] = dict(given) if isinstance(given, dict) else {}
    return {k: v[:200] if k in LONG and isinstance(v, str) else v for k, v in found.items()}


def main(asked: Sequence[str]) -> None:
    half = asked[asked.index("--half") + 1] if "--half" in asked else ""
    joins, calls = own(half) if "own" in asked else foreign(half)
    for one in joins:
        print(json.dumps({"id": one.id, "calls": one.calls, "joined": one.text}))
    print(f"{len(joins)} joins, {calls} calls", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
