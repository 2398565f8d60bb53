"""A write whose request is cancelled at any point where the server waits: it is there whole, or
not at all, and the one who sent it sees which."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from reverie.apps.team import app
from reverie.team import HttpRefusal, TeamStore, open_database
from tests.cancels import Hit, cancelled_at
from tests.conftest import Scale
from tests.faults import quick_folder

from .conftest import HERE, PATH, draft, scope

pytestmark = [pytest.mark.spec("1.courses")]


def asked(token: str, tag: str, body: bytes) -> dict[str, Any]:
    headers = {
        "authorization": f"Bearer {token}",
        "if-match": tag,
        "content-type": "application/json",
        "content-length": str(len(body)),
    }
    return scope("PUT", PATH, f"repo={HERE[1]}", headers)


async def course(base: Path, at: int, hops: int) -> Hit:
    store = TeamStore(open_database(str(base / "team.sqlite3")), now=lambda: 1_700_000_000.0)
    token, one = store.create_token(org=HERE[0], repo=HERE[1], author="a")
    tag = store.put(HERE, [draft("a.md", "before")], store.tag(HERE), one)
    new = [draft(key, "after") for key in ("a.md", "b.md")]
    sent = {
        "entries": {one.key: one.content for one in new},
        "checksums": {one.key: one.sha256 for one in new},
    }
    body, said = json.dumps(sent).encode(), list[dict[str, Any]]()

    async def receive() -> dict[str, Any]:
        await checkpoint()
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        await checkpoint()
        said.append(message)

    served = app(store)
    hit = await cancelled_at(lambda: served(asked(token, tag, body), receive, send), at, hops)
    if said:
        assert said[0]["status"] == 200, said
        assert len(store.contents(HERE).contents) == 2, "acknowledged, and not there"
    try:
        store.put(HERE, [draft("c.md", "next")], stands(store, tag), one)
    except HttpRefusal:  # its thread went on when the request was cut off, and has landed since
        assert not said
        store.put(HERE, [draft("c.md", "next")], stands(store, tag, landed=True), one)
    store.close()
    return hit


def stands(store: TeamStore, before: str, *, landed: bool = False) -> str:
    """The tag of what is there: all of the write or nothing of it."""
    found = store.contents(HERE)
    wanted = [{"a.md": "after", "b.md": "after"}]
    wanted += [] if landed else [{"a.md": "before"}]
    assert found.contents in wanted
    assert (found.tag == before) == (len(found.contents) == 1), "the tag says something else"
    return found.tag


def test_a_write_that_is_cancelled_is_there_whole_or_not_at_all(scale: Scale) -> None:
    chance = Random(f"team cancels:{scale.seed}")
    tried = 0
    for hops in sorted({0, *(int(chance.lognormvariate(2, 2)) for _ in range(scale.pick(1, 60)))}):
        for at in range(1, 100):
            with quick_folder() as base:
                if anyio.run(course, base, at, hops) != "in time":
                    break
            tried += 1
    assert tried >= 4
