"""Databases of both kinds for the team's tests; PostgreSQL is a real one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from reverie.apps.team import app
from reverie.serving import serving
from reverie.team import Database, TeamStore, open_database

REPO = "acme/reader"
PATH = "/api/team_memory"


class Hand:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """Every statement is run on both."""
    if request.param == "sqlite":
        made = open_database(str(tmp_path / "team.sqlite3"))
    else:
        made = open_database(request.getfixturevalue("postgres_url"))
    yield made
    made.close()


@pytest.fixture
def hand() -> Hand:
    return Hand()


@pytest.fixture
def store(database: Database, hand: Hand) -> TeamStore:
    return TeamStore(database, now=hand)


class Talk:
    """A client that says whatever it likes."""

    def __init__(self, url: str, token: str) -> None:
        self.url = url
        self.http = httpx2.Client(base_url=url, headers={"Authorization": f"Bearer {token}"})

    def get(self, more: str = "", repo: str = REPO, **headers: str) -> httpx2.Response:
        return self.http.get(f"{PATH}?repo={repo}{more}", headers=headers)

    def put(self, body: object, tag: str | None, repo: str = REPO) -> httpx2.Response:
        headers = {"Content-Type": "application/json"}
        if tag is not None:
            headers["If-Match"] = tag
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.http.put(f"{PATH}?repo={repo}", content=content, headers=headers)


@pytest.fixture
def url(store: TeamStore) -> Iterator[str]:
    with serving(app(store, body_seconds=2), header_seconds=2) as found:
        yield found
