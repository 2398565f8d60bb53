"""The shared bench's cache model beside ours: the same names over the simulator."""

from __future__ import annotations

import gzip
import importlib.util
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from reverie.simulator import CACHESIM, ApiError, Engine, Ledger, Models, ModelSpec, TooLong
from reverie.simulator import check as check_body
from reverie.transcript import EMPTY, AssistantMessage, Entry, HeadSet, Sent, apply, read
from reverie.wire import Request, render

MODEL = "bench"
PLENTY = 1 << 40


class BadRequest(Exception):
    pass


class PromptTooLong(Exception):
    pass


@dataclass
class Billed:
    read: int
    write: int
    plain: int
    output: int
    cost: float
    total: int


class CacheSim:
    """The bench's interface, answered by an engine in the `cachesim` profile."""

    def __init__(self, window: int = 200_000) -> None:
        self.now = 0.0
        self.engine = Engine(
            clock=lambda: self.now,
            profile=CACHESIM,
            models=Models([ModelSpec(MODEL, window=window)]),
            ledger=Ledger(bodies=False),
        )

    def send(self, request: dict[str, Any], now: float, output_tokens: int = 0) -> Billed:
        text = "x" * (4 * output_tokens)
        return self.said(request, now, [{"type": "text", "text": text}])

    def said(self, request: dict[str, Any], now: float, blocks: list[dict[str, Any]]) -> Billed:
        self.now = now
        try:
            done = self.engine.respond({**request, "model": MODEL, "max_tokens": PLENTY}, blocks)
        except TooLong as error:
            raise PromptTooLong(str(error)) from error
        except ApiError as error:
            raise BadRequest(str(error)) from error
        charge = done.logged.charge
        return Billed(
            charge.read,
            charge.written,
            charge.plain,
            done.logged.output,
            done.logged.cost,
            charge.total,
        )


def check(messages: list[Any]) -> None:
    try:
        check_body({"messages": messages}, CACHESIM)
    except ApiError as error:
        raise BadRequest(str(error)) from error


def load(shared: Path, name: str, **given: ModuleType) -> ModuleType:
    """A module of the shared bench, by path; `given` stand in for what it imports."""
    path = shared / "bench" / "context" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"shared_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    before = {n: sys.modules.get(n) for n in given}
    sys.modules.update(given)
    writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        spec.loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = writes
        for n, old in before.items():
            if old is None:
                del sys.modules[n]
            else:
                sys.modules[n] = old
    return module


def sessions(shared: Path) -> list[Path]:
    """The recorded Claude Code sessions."""
    folder = shared / "data" / "sessions_dev"
    return sorted(p for p in folder.glob("*.jsonl.gz") if not p.name.startswith("pi-"))


HEAD = HeadSet(
    "claude-opus-5-5",
    '[{"type":"text","text":"%s"}]' % ("Answer in few words. " * 1200),
    '[{"name":"Read","description":"%s","input_schema":{"type":"object"}}]' % ("a file " * 400),
)


@dataclass(frozen=True)
class Round:
    """What our fold would have sent, and what was answered."""

    request: Request
    answer: AssistantMessage
    at: float
    moved: tuple[str, ...]


def rounds(path: Path, head: HeadSet = HEAD) -> Iterator[Round]:
    """A recorded session as our own requests, one a recorded answer."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        recorded = read(lines, path.name)
    view = apply(EMPTY, Entry("head", "", 0.0, head))
    for number, entry in enumerate(recorded.entries):
        if isinstance(entry.record, AssistantMessage) and len(view.items):
            request = render(view)
            yield Round(request, entry.record, entry.at, view.moved)
            sent = Sent("main", view.leaf, request.parts(), request.marks)
            view = apply(view, Entry(f"sent-{number}", view.leaf, entry.at, sent))
        view = apply(view, entry)
