"""Databases of both kinds for the team's tests; PostgreSQL is a real one."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx2
import pytest

from reverie.apps.team import app
from reverie.http_server import serving
from reverie.store import MemoryStore
from reverie.team import (
    Database,
    EntryChange,
    SyncMode,
    SyncReport,
    TeamStore,
    open_database,
    sha256_of,
    sync_memory,
)
from reverie.testing import ManualClock

REPO = "acme/reader"
PATH = "/api/team_memory"
HERE = ("acme", REPO)


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
def hand() -> ManualClock:
    return ManualClock()


@pytest.fixture
def store(database: Database, hand: ManualClock) -> TeamStore:
    return TeamStore(database, now=hand.now)


def draft(key: str, content: str) -> EntryChange:
    return EntryChange(key, content, sha256_of(content))


class Mate:
    """One person's memory, and the other side that it is shared through."""

    def __init__(self, folder: Path, remote: Any, now: Callable[[], float]) -> None:
        self.memories = MemoryStore(folder / "memory", folder / "history", folder, now=now)
        self.remote, self.now = remote, now
        self.memories.folder.make_folder("team")

    def path(self, key: str) -> Path:
        return self.memories.root / "team" / key

    def write(self, key: str, text: str) -> None:
        self.path(key).write_text(text, "utf-8")

    def read(self, key: str) -> str:
        return self.path(key).read_text("utf-8")

    def sync(self, mode: SyncMode | None = None) -> SyncReport:
        return sync_memory(self.memories, self.remote, now=self.now, mode=mode)


class Silent(BaseHTTPRequestHandler):
    """A server of a test's own that logs nothing."""

    def do_GET(self) -> None:
        self.get()

    def do_PUT(self) -> None:
        self.put()

    def get(self) -> None:
        raise NotImplementedError

    def put(self) -> None:
        raise NotImplementedError

    def say(self, data: bytes, tag: str, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("ETag", tag)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
        """Nothing is said."""


@contextmanager
def answering(handler: type[Silent]) -> Iterator[str]:
    """Serve with such a handler; the address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def scope(method: str, path: str, query: str, headers: Mapping[str, str]) -> dict[str, Any]:
    """One request to an application, as a server hands it over."""
    return {
        "type": "http",
        "http_version": "1.1",
        "scheme": "http",
        "method": method,
        "path": path,
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }


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
