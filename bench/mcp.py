"""Through MCP: CPU of a search by `reverie mcp`, against what it is made of.

A server on the same SDK whose one tool answers a constant says what the protocol takes, the library
in this process what the search takes. All are asked the same number of times over standard input
and output; CPU is that of the server process. Starting one is compared in the same way.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import reverie
from bench.figures import QUICK, Figure, at_most

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


def measure(out: Path) -> Iterator[Figure]:
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
