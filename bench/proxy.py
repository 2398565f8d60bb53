"""The proxy: what it adds to a pass-through that parses and writes every request again.

Both run as processes of their own before one provider that answers at once, and are asked the same
requests over one kept connection: a conversation whose history has a given length and grows by a
round each time. CPU is that of the server process, with what it does behind the answers until it
has come to rest. Then fifty streams at once are held while the provider drips, and memory is looked
at. `REVERIE_SCALE=proof` holds them for ten minutes.

What the proxy saves: recorded shapes of a real client's traffic, with the proxy and without.

Shapes, courses and the judge of prices are those of the tests (`tests/clients`), which share no
code with the proxy; both sides are billed by the same simulated prompt cache.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2

from bench.figures import HERE, Figure, Row, at_most

TIMES = 20
SIZES = (225_000, 450_000, 900_000, 1_800_000)
STREAMS = 50
PROOF = os.environ.get("REVERIE_SCALE") == "proof"
HELD = 600 if PROOF else 30
HEADERS = {
    "x-api-key": "k",
    "anthropic-version": "2023-06-01",
    "content-type": "application/json",
    "x-claude-code-session-id": "00000000-0000-4000-8000-000000000001",
    "user-agent": "claude-cli/2.1.325 (external, cli)",
}
BODY = {
    "model": "claude-sonnet-4-5",
    "max_tokens": 99,
    "stream": True,
    "system": [{"type": "text", "text": "work"}],
    "tools": [{"name": "Bash", "input_schema": {"type": "object"}}],
}
_TICK = os.sysconf("SC_CLK_TCK")
PROVIDER = """
import asyncio, json, sys
def event(kind, **more):
    return f"event: {kind}\\ndata: {json.dumps({'type': kind, **more})}\\n\\n".encode()
USAGE = {"input_tokens": 1, "output_tokens": 1}
MESSAGE = {"id": "msg_1", "type": "message", "role": "assistant", "content": [], "model": "m",
           "stop_reason": None, "usage": USAGE}
BEGIN = event("message_start", message=MESSAGE) + event(
    "content_block_start", index=0, content_block={"type": "text", "text": ""})
END = (event("content_block_stop", index=0)
       + event("message_delta", delta={"stop_reason": "end_turn"}, usage=USAGE)
       + event("message_stop"))
def delta(n):
    return event("content_block_delta", index=0, delta={"type": "text_delta", "text": f"word {n} "})
def chunk(data):
    return b"%x\\r\\n%s\\r\\n" % (len(data), data)
async def answer(reader, writer):
    try:
        while True:
            head = (await reader.readuntil(b"\\r\\n\\r\\n")).lower()
            names = dict(l.split(b": ", 1) for l in head.strip().split(b"\\r\\n")[1:])
            await reader.readexactly(int(names.get(b"content-length", b"0")))
            writer.write(b"HTTP/1.1 200 OK\\r\\ncontent-type: text/event-stream\\r\\n"
                         b"transfer-encoding: chunked\\r\\n\\r\\n" + chunk(BEGIN))
            seconds = float(names.get(b"x-drip", b"0"))
            for n in range(int(seconds * 5) or 1):
                writer.write(chunk(delta(n)))
                await writer.drain()
                if seconds:
                    await asyncio.sleep(0.2)
            writer.write(chunk(END) + b"0\\r\\n\\r\\n")
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()
async def main():
    server = await asyncio.start_server(answer, "127.0.0.1", 0, limit=2**20)
    print("http://127.0.0.1:%d" % server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(main())
"""


@contextmanager
def started(
    line: list[str], read: Callable[[str], str], **environ: str
) -> Iterator[tuple[str, int]]:
    """A process that says where it listens, and its number."""
    given = {**os.environ, "PYTHONPATH": str(HERE.parent), **environ}
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True, env=given) as process:
        try:
            assert process.stdout is not None
            yield read(process.stdout.readline()), process.pid
        finally:
            process.terminate()


def provider() -> Any:
    return started([sys.executable, "-c", PROVIDER], str.strip)


def pass_through(upstream: str) -> Any:
    return started([sys.executable, "-m", "tests.clients.passing", upstream, "--parse"], str.strip)


def proxy(upstream: str, home: str) -> Any:
    line = [sys.executable, "-m", "reverie.apps.cli", "proxy", "--port", "0", "--json"]
    line += ["--upstream", upstream]
    return started(line, lambda said: json.loads(said)["anthropic"], REVERIE_HOME=home)


# --- one conversation that grows


def _round(n: int) -> list[dict[str, Any]]:
    """A call and its result of 12 KB: large enough to be stored."""
    call = {
        "type": "tool_use",
        "id": f"toolu_{n}",
        "name": "Bash",
        "input": {"command": f"cat {n}"},
    }
    text = "".join(f"{n}.{k} a line of some file, with words in it\n" for k in range(260))
    result = {"type": "tool_result", "tool_use_id": f"toolu_{n}", "content": text}
    return [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]


def asked(base: str, pid: int) -> dict[int, tuple[float, float]]:
    """By length of the history: seconds of CPU a request, and the median until it was answered.

    The conversation begins with nothing and is asked after every round, as a client would.
    """
    messages: list[dict[str, Any]] = [{"role": "user", "content": "go through the files"}]
    found: dict[int, tuple[float, float]] = {}
    times: list[float] = []
    before = 0.0
    with httpx2.Client(timeout=60, headers=HEADERS) as client:
        for n in range(10**6):
            raw = json.dumps({**BODY, "messages": messages}, separators=(",", ":")).encode()
            due = next((s for s in SIZES if s not in found), None)
            if due is None:
                return found
            if len(raw) >= due and not times:
                settle(pid)
                before = cpu(pid)
            start = time.perf_counter()
            answer = client.post(f"{base}/v1/messages", content=raw)
            assert answer.status_code == 200, answer.text[:300]
            if len(raw) >= due:
                times.append(time.perf_counter() - start)
            if len(times) == TIMES:
                settle(pid)
                found[due] = ((cpu(pid) - before) / TIMES, statistics.median(times))
                times = []
            messages += _round(n)
    raise AssertionError("not reached")


def cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def settle(pid: int) -> None:
    """Until the process has used no CPU for a while."""
    last = -1.0
    while (now := cpu(pid)) != last:
        last = now
        time.sleep(0.3)


# --- many streams


def rss(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


async def held(base: str, pid: int, seconds: int) -> tuple[int, list[float]]:
    """How many of the streams came whole, and memory along the way."""
    memory: list[float] = []
    done = asyncio.Event()

    async def stream(client: httpx2.AsyncClient, n: int) -> bool:
        whole = False
        for part in range(seconds // 15):
            said = {"role": "user", "content": f"stream {n}, part {part}"}
            body = {"model": "m", "max_tokens": 9, "stream": True, "messages": [said]}
            headers = {"x-api-key": "k", "anthropic-version": "2023-06-01", "x-drip": "15"}
            got = b""
            async with client.stream(
                "POST", f"{base}/v1/messages", json=body, headers=headers
            ) as a:
                async for piece in a.aiter_raw():
                    got += piece
            whole = got.count(b"content_block_delta") == 2 * 75 and b"message_stop" in got
            if not whole:
                break
        return whole

    async def watch() -> None:
        while not done.is_set():
            memory.append(rss(pid))
            await asyncio.sleep(1)

    limits = httpx2.Limits(max_connections=STREAMS, max_keepalive_connections=0)
    async with httpx2.AsyncClient(timeout=120, limits=limits) as client:
        watching = asyncio.create_task(watch())
        ended = await asyncio.gather(*(stream(client, n) for n in range(STREAMS)))
        done.set()
        await watching
    return sum(ended), memory


# --- the rows


def measure(out: Path) -> Iterator[Figure | Row]:
    del out
    figures: dict[tuple[str, int], tuple[float, float]] = {}
    with tempfile.TemporaryDirectory() as home, provider() as (upstream, _):
        with pass_through(upstream) as (base, pid):
            figures |= {("bare", size): one for size, one in asked(base, pid).items()}
        with proxy(upstream, home) as (base, pid):
            figures |= {("proxy", size): one for size, one in asked(base, pid).items()}
            whole, memory = asyncio.run(held(base, pid, HELD))
    yield from _overhead(figures)
    third = memory[len(memory) // 3]
    what = f"{STREAMS} streams at once for {HELD} s: those that came whole"
    yield Figure("proxy.streams", what, whole, STREAMS, "all", "higher", n=STREAMS)
    grown = max(memory[len(memory) // 3 :]) - third
    what = f"the same: memory that the proxy gained after the first third, over {third:.0f} MB"
    yield at_most("proxy.memory", what, max(0.0, grown), 10.0, "MB")


def _overhead(figures: dict[tuple[str, int], tuple[float, float]]) -> Iterator[Figure | Row]:
    for size in SIZES:
        (bare, bare_time), (ours, our_time) = figures["bare", size], figures["proxy", size]
        more = 1000 * (our_time - bare_time)
        times = f"{1000 * bare:.1f} → {1000 * ours:.1f} ms of CPU = {ours / bare:.2f} x"
        yield f"a request of {size // 1000} KB", f"{times}, {more:+.1f} ms", "", None
        if size == 900_000:
            what = "CPU of a request of 900 KB, in that of a pass-through that parses it"
            why = "it parses, matches and stores what the pass-through forgets"
            yield at_most("proxy.cpu", what, ours / bare, 1.5, "x", TIMES, why)
            what = "time that the proxy adds to such a request, median"
            yield at_most("proxy.latency", what, max(0.0, more), 10.0, "ms")
    less, most = SIZES[1], SIZES[3]
    short, long = (figures["proxy", size][0] - figures["bare", size][0] for size in (less, most))
    what = "CPU beyond parsing where the history is four times as long"
    ratio = long / max(short, 0.001)
    yield at_most("proxy.growth", what, ratio, 1.5, "x", TIMES)


# What it saves


BOUND = 0.65


def measure_saving(out: Path) -> Iterator[Figure | Row]:
    del out
    from tests.clients.courses import PLANS, RECORDED, remembered
    from tests.clients.line import standing

    alone = through = 0.0
    breaks = requests = 0
    with tempfile.TemporaryDirectory() as name, standing(PLANS, Path(name) / "home") as standing_:
        for course, play in RECORDED.items():
            line = standing_.begin(PLANS)
            assert line.proxy is not None
            folder = Path(name) / course
            folder.mkdir()
            remembered(folder, line.proxy.home)
            play(line, folder)
            found = line.clean()
            costs = line.costs()
            alone, through = alone + costs[0], through + costs[1]
            breaks += len(found.caused)
            requests += found.requests
            told = f"{costs[1] / costs[0]:.3f} of the client alone, {found.requests} requests"
            yield f"course {course}", told, "", None
    what = "cost of recorded shapes through the proxy, as a share of the client alone"
    yield at_most("proxy.saving", what, through / alone, BOUND, "share", requests)
    what = "prefixes that the proxy breaks and the client does not"
    yield Figure("proxy.breaks", what, breaks, 0.0, "none", "lower", n=requests)
