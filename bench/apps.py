"""The apps over much that is there.

The web page over many sessions and memories: CPU of each page against one over a hundred.

Through MCP: CPU of a search by `reverie mcp`, against what it is made of.

A server on the same SDK whose one tool answers a constant says what the protocol takes, the library
in this process what the search takes. All are asked the same number of times over standard input
and output; CPU is that of the server process. Starting one is compared in the same way.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import anyio

import reverie
from bench.figures import QUICK, Figure, Row, at_most, slug
from reverie.apps.web import IndexRefresher, ScreenRequest, Workspace, save
from reverie.apps.web import list_memories as memories
from reverie.apps.web import list_review as review
from reverie.apps.web import list_sessions as sessions
from reverie.apps.web import show_dream as dream
from reverie.apps.web import show_health as health
from reverie.apps.web import show_memory as memory
from reverie.apps.web import show_recall as recall
from reverie.apps.web import show_savings as savings
from reverie.apps.web import show_session as session
from reverie.session import SessionLibrary, open_session
from reverie.store import Project
from reverie.wire import user

FEW, SESSIONS, MEMORIES = 100, 5_000, 10_000
MOST = 1.5
ROUNDS = 15
WHY = "a page takes a few milliseconds or less: on a busy machine the ratio of two is unsure"


def measure_page(out: Path) -> Iterable[Figure | Row]:
    del out
    few, _ = _costs(FEW, FEW)
    many, built = _costs(SESSIONS, MEMORIES)
    yield "index of all built anew, CPU", f"{built:.1f} s", "", None
    for name, cost in many.items():
        what = (
            f"page, {name}: CPU over {SESSIONS:,} sessions and {MEMORIES:,} memories,"
            f" in that over {FEW} of each"
        )
        yield at_most(f"page.{slug(name)}", what, cost / few[name], MOST, "x", ROUNDS, WHY)
        yield f"{name}, CPU", f"{1000 * few[name]:.1f} → {1000 * cost:.1f} ms", "", None


def _costs(sessions_: int, memories_: int) -> tuple[Mapping[str, float], float]:
    """CPU of each page over so many of each, and of building the index."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["REVERIE_HOME"] = f"{folder}/home"
        project = Path(folder, "project")
        project.mkdir()
        place = Project.at(project)
        first = anyio.run(_talk, project)
        _fill(place, first, sessions_, memories_)
        desk = Workspace(place)
        desk.start = _nothing  # what runs beside a page is not its cost
        began = time.process_time()
        IndexRefresher(desk).look()
        built = time.process_time() - began
        pages = {
            "sessions": lambda: sessions(desk, ScreenRequest()),
            "sessions, searched": lambda: sessions(desk, ScreenRequest(query={"q": "tests"})),
            "timeline": lambda: session(desk, ScreenRequest(path={"id": first})),
            "memories": lambda: memories(desk, ScreenRequest()),
            "memories, a word and letters of half": lambda: memories(
                desk, ScreenRequest(query={"q": "port od"})
            ),
            "memories, letters of one": lambda: memories(desk, ScreenRequest(query={"q": "zb"})),
            "memories, a word of all": lambda: memories(desk, ScreenRequest(query={"q": "port"})),
            "memories, a word of one": lambda: memories(desk, ScreenRequest(query={"q": "zebra"})),
            "memory": lambda: memory(desk, ScreenRequest(path={"name": "project_7.md"})),
            "memory, saved": lambda: _save(desk),
            "review": lambda: review(desk, ScreenRequest()),
            "recall": lambda: recall(desk, ScreenRequest(query={"q": "the port of service 7"})),
            "dream": lambda: dream(desk, ScreenRequest()),
            "health": lambda: health(desk, ScreenRequest()),
            "savings": lambda: savings(desk, ScreenRequest()),
        }
        found: dict[str, float] = {}
        for name, page in pages.items():
            page()
            found[name] = min(_spent(page) for _ in range(ROUNDS))
        desk.close()
        return found, built


def _spent(page: Callable[[], object]) -> float:
    began = time.process_time()
    page()
    return time.process_time() - began


def _save(desk: Workspace) -> None:
    """An edit as the form sends it, of a text that differs each time."""
    text = (f"Service 9 listens on port {time.monotonic_ns()}.",)
    form = {"name": ("Port of service 9",), "type": ("project",), "text": text, "over": ("1",)}
    answer = save(desk, ScreenRequest(path={"name": "project_9.md"}, form=form))
    assert answer.status_code == 303


def _nothing(name: str, work: object) -> None:
    del name, work


async def _talk(project: Path) -> str:
    used = {"input_tokens": 100, "output_tokens": 5, "cache_read_input_tokens": 900}
    answer = {"content": [{"type": "text", "text": "Yes."}], "model": "m", "usage": used}
    async with open_session(project, model="m", system="Be brief.") as made:
        for n in range(3):
            await made.add(user(f"Find out why the tests fail, part {n}"))
            await made.prepare()
            await made.observe(answer)
            await made.end_turn()
        return made.id


def _fill(place: Project, first: str, sessions_: int, memories_: int) -> None:
    library = SessionLibrary.of(place)
    for n in range(1, sessions_):
        other = UUID(int=n, version=4)
        shutil.copy(library.path / f"{first}.jsonl", library.path / f"{other}.jsonl")
        if (library.path / first / "blobs").is_dir():
            (library.path / str(other)).mkdir(mode=0o700)
            (library.path / str(other) / "blobs").symlink_to(library.path / first / "blobs")
    folder = place.memory_folder
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for n in range(memories_):
        head = f"---\nname: Port of service {n}\ndescription: Where {n} listens\ntype: project\n---"
        more = " The zebra (zb) runs there." if n == 7 else " It is odd." if n % 2 else ""
        text = f"{head}\n\nService {n} listens on port {n}.{more}\n"
        (folder / f"project_{n}.md").write_text(text)
    library.close()


# MCP


CALLS = 50 if QUICK else 200
TURNS = 2 if QUICK else 4
_TICK = os.sysconf("SC_CLK_TCK")
BARE = """
import anyio, mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
async def listed(context, params):
    return types.ListToolsResult(tools=[
        types.Tool(name="search_memory", description="x", input_schema={"type": "object"})])
async def called(context, params):
    text = types.TextContent(type="text", text="nothing was found")
    return types.CallToolResult(content=[text])
async def main():
    server = Server("bare", on_list_tools=listed, on_call_tool=called)
    async with stdio_server() as streams:
        await server.run(*streams, server.create_initialization_options())
anyio.run(main)
"""
HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}


class Talk:
    """A client that sends lines and waits for their answers."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.given, self.got, self.pid = process.stdin, process.stdout, process.pid
        self.count = 0

    def ask(self, method: str, params: dict[str, Any]) -> Any:
        self.count += 1
        self.send({"id": self.count, "method": method, "params": params})
        while True:
            row = json.loads(self.got.readline())
            if row.get("id") == self.count:
                return row["result"]

    def send(self, message: dict[str, Any]) -> None:
        self.given.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.given.flush()

    def searched(self, times: int) -> None:
        call = {"name": "search_memory", "arguments": {"query": "where does staging run?"}}
        for _ in range(times):
            assert self.ask("tools/call", call)["content"]

    @property
    def cpu(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICK


@contextmanager
def talking(line: list[str], home: Path, project: Path) -> Iterator[Talk]:
    environ = {**os.environ, "REVERIE_HOME": str(home)}
    with subprocess.Popen(
        line, cwd=project, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        try:
            talk = Talk(process)
            talk.ask("initialize", HELLO)
            talk.send({"method": "notifications/initialized"})
            talk.ask("tools/list", {})
            yield talk
        finally:
            process.kill()


def measure_mcp(out: Path) -> Iterator[Figure]:
    del out
    with tempfile.TemporaryDirectory() as name:
        home, project = Path(name) / "home", Path(name) / "shop"
        project.mkdir()
        memory = reverie.Memory(project, home=home)
        for n in range(100):
            memory.add(f"Service {n} listens on port {8000 + n}, since {n} was free")
        memory.add("Staging runs in Frankfurt")
        direct = min(searching(memory) for _ in range(TURNS))
        line = [sys.executable, "-m", "reverie.apps.cli", "mcp"]
        ours, begun = of_server(line, home, project)
        bare, bare_begun = of_server([sys.executable, "-c", BARE], home, project)
    what = "a search over MCP: CPU of the server, against the same SDK with a constant + the search"
    yield Figure(
        "mcp.call", what, 1000 * ours, 1000 * (bare + direct) * 1.5,
        f"1.5 x ({1000 * bare:.2f} + {1000 * direct:.2f} ms)", "lower", "ms", CALLS,
    )  # fmt: skip
    what = "starting the server: CPU, in that of a bare one on the same SDK"
    yield at_most("mcp.start", what, begun / bare_begun, 2.0, "x", TURNS)


def searching(memory: reverie.Memory) -> float:
    """CPU seconds of one search in this process."""
    began = time.process_time()
    for _ in range(CALLS):
        memory.search("where does staging run?")
    return (time.process_time() - began) / CALLS


def of_server(line: list[str], home: Path, project: Path) -> tuple[float, float]:
    """CPU seconds of one call and of a start, each the least of some turns."""
    calls: list[float] = []
    starts: list[float] = []
    for _ in range(TURNS):
        with talking(line, home, project) as talk:
            starts.append(talk.cpu)
            talk.searched(10)
            before = talk.cpu
            talk.searched(CALLS)
            calls.append((talk.cpu - before) / CALLS)
    return min(calls), min(starts)
