"""Reverie as a context manager inside the shared replay bench.

The bench's `Manager` is joined in at run time, since it lives outside the project. All
three calls are timed by the bench: a message in, the layers, the messages out. What is
sent is what a session would send: the fold, layers 1 and 2, and the marks are the
product's own. Results are decided when the round is complete, which gives the same bytes.

Other context managers on the same sessions: their own code, stock and tuned.

Each package has an environment of its own (`bench/peers`). One that cannot be installed is left
out, and that is said.

Inside other frameworks: what a recorded course costs with our adapter and with their own means.

Real agents with their own loops play a course against the simulated provider, whose bill is the
cost; then the model is asked for facts, which it may read back. The agents are those of the tests
(`tests/adapters`); the CPU of the whole run stands beside, ours against the framework alone.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import anyio

from bench.figures import ROOT_SHARED, Figure, Row, against_peers, at_most, once
from bench.peers import LOCKS, MISSING, environment
from reverie.layers import by_time, per_message, seal
from reverie.settings import DEFAULTS, Settings
from reverie.testing import ManualClock, MemoryDisk, world
from reverie.transcript import (
    EMPTY,
    AssistantMessage,
    Block,
    Entry,
    HeadSet,
    Message,
    Parts,
    Record,
    Sent,
    UserMessage,
    apply,
    dump,
    part_reference,
    reference,
    text_of,
)
from reverie.wire import LONG, SHORT, Request, render
from reverie.world import Layer

UNHASHED = Parts("", "", "", "", "", 0)
COLLAPSE: Sequence[Layer] = (per_message, seal)
CLASSIC: Sequence[Layer] = (per_message, by_time)


def bench_modules(shared: Path) -> Path:
    """Put the shared bench on the path."""
    folder = shared / "bench" / "context"
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    return folder


def run(work: Coroutine[Any, Any, Any]) -> Any:
    """A coroutine that never waits, to its end."""
    try:
        work.send(None)
    except StopIteration as done:
        return done.value
    raise RuntimeError("it waited")


class Recall(dict[str, str]):
    """What can be read back, by reference: the transcript's own calls and results. The
    bench looks in it when it judges; until then nothing is put together or copied."""

    def __init__(self, manager: Layered) -> None:
        super().__init__()
        self.manager = manager
        self.read = 0  # entries of the transcript
        self.parts: dict[str, int] = {}  # messages of each part

    def items(self) -> Any:
        entries = self.manager.view.entries.since(self.read)
        self.read += len(entries)
        for entry in entries:
            if isinstance(entry.record, (AssistantMessage, UserMessage)):
                self.keep(entry.id, entry.record.blocks)
        for item in self.manager.view.items:
            if item.covers:
                self.keep_part(item.covers)
        return super().items()

    def keep_part(self, covers: frozenset[str]) -> None:
        """A part's own reference opens its rounds: every text, call and result."""
        spoken = [
            (entry.id, entry.record.blocks)
            for entry in self.manager.view.entries.among(covers)
            if isinstance(entry.record, (AssistantMessage, UserMessage))
        ]
        ref = part_reference(spoken[0][0])
        if self.parts.get(ref) != len(spoken):  # parts join, and begin where their first one did
            self.parts[ref] = len(spoken)
            whole = [text_of(b.value) for _, blocks in spoken for b in blocks]
            self[ref] = "\n".join(whole).replace("\\n", "\n")

    def keep(self, ident: str, blocks: Sequence[Block]) -> None:
        """A call's reference opens the call, its result and what was said beside it; any other
        message has one of its own."""
        said = "\n".join(b.get("text") for b in blocks if b.type == "text")
        if said:
            self[reference(ident)] = said
        for block in blocks:
            if block.call:
                ref = reference(block.call)
                beside = said + "\n" if block.type == "tool_use" else ""
                whole = text_of(block.value).replace("\\n", "\n")
                self[ref] = self.get(ref, "") + beside + whole + "\n"


class Layered:
    """The three calls of a manager, on our fold and layers. With `digests` it also works out
    what a journal records of each request: every block's JSON text and its hash."""

    name = "reverie"
    settings: Settings = DEFAULTS
    layers: Sequence[Layer] = COLLAPSE
    digests = False

    def __init__(self, trace: dict[str, Any]) -> None:
        super().__init__(trace)  # pyright: ignore[reportCallIssue] - the bench's manager
        self.clock = ManualClock()
        self.world = world(clock=self.clock, disk=MemoryDisk(), settings=self.settings)
        self.store = Recall(self)
        self.view = EMPTY
        self.request = Request(render(EMPTY).head, EMPTY.closed, ())
        self.values: list[dict[str, Any]] = []  # the request's messages
        self.known = 0  # how many of them were closed
        self.newest: Message | None = None  # the last of those
        self.count = 0
        system = [{"type": "text", "text": trace["system"]}]
        self.append(HeadSet("", dump(system), dump(trace["tools"])))  # the bench sends its own

    @property
    def system_ttl(self) -> str:
        return LONG if self.view.sealed else SHORT

    @staticmethod
    def reference_of(call: str) -> str:
        return reference(call)

    def append(self, record: Record) -> None:
        self.count += 1
        entry = Entry(f"e{self.count}", self.view.leaf, self.clock.time, record)
        self.view = apply(self.view, entry)

    def observe(self, message: dict[str, Any]) -> None:
        # as a session has them off the wire: nobody changes them, so nothing is copied
        blocks = tuple([Block("", value) for value in message["content"]])
        answer = message["role"] == "assistant"
        self.append(AssistantMessage(blocks) if answer else UserMessage(blocks))

    def manage(self, now: float, env: Any) -> None:
        del env
        self.clock.time = now
        run(self.prepare())
        self.request = render(self.view)
        parts = self.request.parts() if self.digests else UNHASHED
        self.append(Sent("main", self.view.leaf, parts, self.request.marks))

    async def prepare(self) -> None:
        for layer in self.layers:
            for record in await layer(self.view, self.world):
                self.append(record)

    def render(self) -> list[dict[str, Any]]:
        closed, known, values = self.request.closed, self.known, self.values
        if known and (closed.length < known or closed[known - 1] is not self.newest):
            known = 0  # the prefix moved
        del values[known:]  # the last request's tail
        values += [value(message) for message in closed.since(known)]
        values += [value(message) for message in self.request.tail]
        self.known, self.newest = closed.length, closed.last
        return values

    def breakpoints(self, messages: list[dict[str, Any]]) -> dict[int, str]:
        del messages
        ends = {m.end - 1: n for n, m in enumerate(self.request.messages())}
        return {
            ends[m.block]: m.ttl
            for m in self.request.marks
            if m.block in ends and m.part == "messages"
        }


def value(message: Message) -> dict[str, Any]:
    return {"role": message.role, "content": [p.block.value for p in message.pieces]}


def manager(base: type, settings: Settings, name: str = "reverie", **members: Any) -> type:
    """A manager class of the bench that runs our layers."""
    layers = COLLAPSE if settings.context_policy == "collapse" else CLASSIC
    known = {"name": name, "settings": settings, "layers": layers, **members}
    return type("Reverie", (Layered, base), known)


def collapsed(tail: int) -> Settings:
    return replace(DEFAULTS, context_policy="collapse", collapse_tail=tail)


CLASSIC_SETTINGS = replace(DEFAULTS, context_policy="classic")


# Peers


Figures: TypeAlias = "dict[str, Any]"

TAILS = (10_000, 20_000, 40_000, 80_000)
EARLY = (40_000,)
"""Tokens at which a peer is made to act, beside its own setting: the best found for any of them."""
PEERS = {
    "langchain": (
        "langchain-clear",
        "langchain-clear-batch",
        "langchain-summary",
        "langchain-summary-full",
    ),
    "deepagents": ("deepagents",),
    "pydantic-ai-harness": ("harness-tiered",),
    "strands-agents": ("strands-sliding", "strands-summary", "strands-auto"),
}
NO_PACKAGE = ("sliding-window", "opencode-like")
# Run by a peer's own interpreter: NAME:N is the manager NAME, made to act at N tokens.
TUNED = """
import importlib, json, sys
sys.path.insert(0, sys.argv[1])
from adapters import ALL
from replay import replay
from traces import load

def tuned(cls, name, at):
    known = {"name": f"{name} at {at // 1000} K"}
    if name.startswith("harness"):
        known["target"] = at
    elif name.startswith("langchain-clear"):
        known["options"] = {**cls.options, "trigger": at}
    elif name.startswith("langchain"):
        known["trigger"] = ("tokens", at)
    elif name == "strands-auto":
        from strands.experimental.context_manager import Offload
        known["make"] = lambda self: {"context_manager": {"strategies": [
            Offload.truncate("tool_results", {"preview_tokens": 1000}).when(threshold=1500),
            Offload.summarize("*").when(utilization=at / 200_000, preserve_recent=4)]}}
    else:
        return None
    return type(cls.__name__, (cls,), known)

name, _, at = sys.argv[2].partition(":")
module, cls, _ = ALL[name]
found = getattr(importlib.import_module("adapters." + module), cls)
found = tuned(found, name, int(at)) if at else found
for spec in sys.argv[3:] if found is not None else ():
    trace = load(spec)
    print(json.dumps(replay(trace, found, getattr(found, "window", 200_000))), flush=True)
"""


def peer_rows(paths: dict[str, Path], wanted: Sequence[str]) -> Iterator[Figures]:
    """The peers' own code, as it comes and made to act early."""
    for package in ("", *PEERS):
        yield from one_peer(package, paths, wanted)


def one_peer(package: str, paths: dict[str, Path], wanted: Sequence[str]) -> list[Figures]:
    """A package's managers on some sessions. What each came to is kept: the same versions on
    the same sessions come to the same."""
    names = PEERS[package] if package else NO_PACKAGE
    python = environment(package) if package else sys.executable
    if not python:
        return []
    given = [*names, *(f"{name}:{at}" for name in names for at in EARLY if package)]
    lock = (LOCKS / f"{package}.txt").read_text("utf-8") if package else ""
    out: list[Figures] = []
    for name in given:
        specs = [f"{one}={paths[one]}" for one in wanted]
        of = (list(wanted), lock, TUNED)
        found = once(name, of, lambda n=name, s=specs: run_peer(python, n, s))
        if found is None:
            MISSING[name] = "not run: the time was over"
        out += found or ()
    return out


def run_peer(python: str, name: str, specs: Sequence[str]) -> list[Figures]:
    """One manager on some sessions; its name may have the tokens behind it at which it acts."""
    context = str(ROOT_SHARED / "bench" / "context")
    command = [python, "-B", "-c", TUNED, context, name, *specs]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def main(asked: Sequence[str]) -> None:
    """One peer after the other, to be kept for the report."""
    from bench.context import SIX, session_files

    for package in asked or ("plain", *PEERS):
        known = package if package in PEERS else ""
        print(package, len(one_peer(known, session_files(), SIX)), flush=True)


# Inside other frameworks


CALLS = 40


def measure(out: Path) -> Iterator[Figure | Row]:
    del out
    if not (ROOT_SHARED / "bench" / "context").is_dir():
        yield "the shared bench", f"not found under {ROOT_SHARED.name}", "", None
        return
    for name, agents in frameworks().items():
        yield from compared(name, agents)


def frameworks() -> dict[str, dict[str, Any]]:
    """By framework: what begins an agent with ours, with nothing, and with its own means."""
    from langchain.agents.middleware import (
        ClearToolUsesEdit,
        ContextEditingMiddleware,
        SummarizationMiddleware,
    )

    from reverie.adapters import Reverie, ReverieMiddleware
    from tests.adapters import test_agents as agents

    chain = agents.langchain_agent
    return {
        "pydantic-ai": {
            "Reverie": agents.pydantic_agent(Reverie()),
            "nothing": agents.pydantic_agent(),
        },
        "LangChain": {
            "Reverie": chain(lambda _: [ReverieMiddleware(window=400_000)]),
            "nothing": chain(lambda _: []),
            "clearing": chain(lambda _: [ContextEditingMiddleware()]),
            "clearing at 40,000": chain(
                lambda _: [ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=40_000)])]
            ),
            "summaries": chain(lambda m: [SummarizationMiddleware(m, trigger=("fraction", 0.8))]),
            "summaries at 40,000": chain(
                lambda m: [SummarizationMiddleware(m, trigger=("tokens", 40_000))]
            ),
        },
        "OpenAI Agents": {
            "Reverie": agents.openai_agent("reverie"),
            "nothing": agents.openai_agent("nothing"),
            "trimmer": agents.openai_agent("trimmer"),
        },
    }


def compared(name: str, agents: dict[str, Callable[..., Any]]) -> Iterator[Figure]:
    from tests.adapters.course import Played, play, trace

    given = trace(ROOT_SHARED, CALLS)
    played: dict[str, Played] = {}
    spent: dict[str, float] = {}
    for kind, begin in agents.items():
        began = time.process_time()
        played[kind] = anyio.run(play, given, begin)
        spent[kind] = time.process_time() - began
    whole = played["nothing"].cost
    shares = {kind: one.cost / whole for kind, one in played.items() if not one.refused}
    ours = shares.pop("Reverie")
    key = name.lower().replace(" ", "-")
    what = f"{name}: bill of a course of {CALLS} calls, as a share of the framework alone"
    yield against_peers(
        f"adapters.{key}.cost", what, ours, shares, better="lower", unit="share", n=CALLS
    )
    lost = {kind: float(len(one.lost)) for kind, one in played.items()}
    mine = lost.pop("Reverie")
    best = min(shares, key=lambda kind: shares[kind])
    what = f"{name}: facts of that course that the model can no longer have, of 16"
    yield Figure(
        f"adapters.{key}.lost", what, mine, lost[best], best, "lower",
        others={"Reverie": mine, **lost}, n=16,
    )  # fmt: skip
    ratio = spent["Reverie"] / spent["nothing"]
    what = f"{name}: CPU of the whole run, provider and all, in that of the framework alone"
    yield at_most(f"adapters.{key}.cpu", what, ratio, 1.5, "x")


if __name__ == "__main__":
    main(sys.argv[1:])
