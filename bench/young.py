"""The young project: five memories, fourteen requests, and whether the bodies of the memories
that a good colleague would have in mind stand in what is sent. Needs `REVERIE_SHARED`.

Each request is the first of an agent's session; its bytes are read. The same five are then put
among many memories of another code base, where a folder is no longer small: there is no limit on
what is found there, but what is sent of the others is bounded, so that sending all is no answer.

    python -m bench run young
"""

from __future__ import annotations

import gzip
import hashlib
import json
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import anyio

from bench.figures import QUICK, ROOT_SHARED, Figure, Row, at_most
from bench.prepared import Home, Note, stands

DATA = ROOT_SHARED / "data"
YOUNG = DATA / "young_project.json"
AMONG = (0, 40, 300)
BODY = 600
OTHERS = 5
"""Memories of another code base that one request may hold: as many as a turn may recall."""


def measure(out: Path) -> Iterator[Figure | Row]:
    del out
    if not YOUNG.is_file():
        yield "the young project", f"not found under {ROOT_SHARED.name}", "", None
        return
    given = json.loads(YOUNG.read_text("utf-8"))
    own = [Note(**one) for one in given["memories"]]
    for count in AMONG[:1] if QUICK else AMONG:
        yield from asked(own, given["requests"], fillers(count))


def asked(own: Sequence[Note], requests: Sequence[Any], others: Sequence[Note]) -> Iterator[Figure]:
    bodies = {one.file: one.body for one in own}
    with tempfile.TemporaryDirectory() as name:
        home = Home(Path(name))
        home.save([*others, *own])
        texts = [anyio.run(home.agent_request, one["text"]) for one in requests]
    right = [
        all(stands(bodies[file], text) for file in one["want"])
        for one, text in zip(requests, texts, strict=True)
    ]
    what = "alone" if not others else f"among {len(others)} others"
    found, whole = sum(right), len(right)
    told = f"five memories, {what}: requests that hold the right ones"
    why = "among so many, a request that has none of the memory's words does not bring it up"
    yield Figure(f"young.{len(others)}", told, found, whole, "all", "higher", n=whole, why=why)
    if others:
        most = max(sum(stands(one.body, text) for one in others) for text in texts)
        told = f"the same, {what}: wrong ones sent whole, at most"
        yield at_most(f"young.{len(others)}.others", told, most, OTHERS)


def fillers(count: int) -> list[Note]:
    """Documents of another code base as memories, in the order of their paths' sha256."""
    rows = gzip.decompress((DATA / "memory_docs_dev.jsonl.gz").read_bytes()).splitlines()
    known = [one for one in map(json.loads, rows) if len(one["body"].strip()) > 80]
    known.sort(key=lambda one: hashlib.sha256(one["path"].encode()).hexdigest())
    return [_note(n, one) for n, one in enumerate(known[:count])]


def _note(number: int, one: Any) -> Note:
    title = " ".join(str(one["title"] or one["path"]).split())[:100]
    body = one["body"].strip().encode()[:BODY].decode("utf-8", "ignore")
    kind = ("project", "reference")[number % 2]
    return Note(f"filler_{number:03d}.md", kind, title, title, body)
