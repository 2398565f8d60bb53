"""No tenant reaches another's memory, however a repository is spelled; by a port and in process."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.types import ASGIApp, Message

from reverie.apps.team import app
from reverie.team import EntryChange, TeamStore, open_database, sha256_of
from tests.conftest import Scale

from .conftest import PATH, Talk, scope

pytestmark = pytest.mark.spec("11.server")
STRANGE = [
    *("b/app", "b%2Fapp", "B/app", "b/App", "a/../b/app", "a/app%00", "b/app/", "/b/app"),
    *("b//app", "b/app%20", "%62/app", "b%252Fapp", "a/app&repo=b/app", "..%2Fb%2Fapp"),
    *("b/app", "b/App", "b/x", "c/app"),
]
VIEWS = ["?", "?view=hashes&", "/log?", "/refused?", "/versions?key=s.md&version=1&"]


def two_tenants(store: TeamStore) -> str:
    """The token of one, beside another that has something to hide."""
    tokens: dict[str, str] = {}
    for org in ("a", "b"):
        tokens[org], token = store.create_token(org=org, repo=f"{org}/app", author="x")
        text = f"secret of {org}"
        store.put((org, f"{org}/app"), [EntryChange("s.md", text, sha256_of(text))], '"0"', token)
    return tokens["a"]


def probes(chance: random.Random, count: int) -> Iterator[tuple[str, str]]:
    """A repository of somebody else, in some spelling, and an address that asks for it."""
    for _ in range(count):
        repo = chance.choice(STRANGE)
        yield repo, f"{PATH}{chance.choice(VIEWS)}repo={repo}"


def leaks(repo: str, status: int, body: str) -> bool:
    """Another tenant's repository is answered just as one that is not there."""
    hidden = status == 404 and json.loads(body)["error"]["what"] == "There is no such repository"
    if repo in ("b/app", "c/app") and not hidden:
        return True
    return status not in (400, 404) or "secret" in body


def test_row_42_no_probe_crosses_to_another_tenant(
    store: TeamStore, url: str, scale: Scale
) -> None:
    talk = Talk(url, two_tenants(store))
    for repo, where in probes(random.Random(scale.seed), 300):
        found = talk.http.get(where)
        assert not leaks(repo, found.status_code, found.text), where
    talk.http.close()


async def test_row_42_nor_one_of_ten_thousand(tmp_path: Path, scale: Scale) -> None:
    """The same without a socket in between, and writes among them."""
    store = TeamStore(open_database(str(tmp_path / "team.sqlite3")), now=time.time)
    token = two_tenants(store)
    served = app(store)
    before = store.contents(("b", "b/app"))
    put = b'{"entries": {"s.md": "taken over"}}'
    for at, (repo, where) in enumerate(
        probes(random.Random(scale.seed), scale.pick(10_000, 100_000))
    ):
        path, _, query = where.partition("?")
        writes = at % 5 == 0 and path == PATH
        headers = {"authorization": f"Bearer {token}", "if-match": before.tag if writes else '"0"'}
        status, body = await asked(served, "PUT" if writes else "GET", path, query, headers, put)
        assert not leaks(repo, status, body), where
    assert store.contents(("b", "b/app")) == before
    assert all(one.org == "a" for one in store.all_refusals())
    store.close()


async def asked(
    served: ASGIApp, method: str, path: str, query: str, headers: dict[str, str], body: bytes
) -> tuple[int, str]:
    """One request to an application, as a server hands it over."""
    said: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Message) -> None:
        said.append(message)

    await served(scope(method, path, query, headers), receive, send)
    text = b"".join(one.get("body", b"") for one in said[1:])
    return said[0]["status"], text.decode()
