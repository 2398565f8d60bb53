"""The promises about cost and what stays in sight, through the shared replay bench."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

from bench.adapter import CLASSIC_SETTINGS, bench_modules, collapsed, manager
from bench.context import WHOLE, Summed
from bench.judge import judged, marked
from reverie.settings import DEFAULTS
from tests.conftest import Scale

pytestmark = [pytest.mark.spec("B11"), pytest.mark.spec("4")]
FEW = ("170cebcc", "36ba8a60", "839b35f7", "9f26971d", "a2b25ca9")


@pytest.fixture(scope="module")
def traces(shared: Path, scale: Scale) -> list[dict[str, Any]]:
    bench_modules(shared)
    load = importlib.import_module("traces").load
    paths = sorted((shared / "data" / "sessions_dev").glob("*.jsonl.gz"))
    chosen = [p for p in paths if scale.proof or p.name.startswith(FEW)]
    found = [marked(load(f"{p.name[:8]}={p}"), p) for p in chosen]
    return [trace for trace in found if trace["steps"]]


def played(trace: dict[str, Any], cls: type, window: int | None = 200_000) -> dict[str, Any]:
    return importlib.import_module("replay").replay(trace, cls, window)


def ours(settings=DEFAULTS, **members: Any) -> type:
    return manager(importlib.import_module("replay").Manager, settings, **members)


def naive(**members: Any) -> type:
    base = importlib.import_module("adapters.plain").NaiveInfinite
    return type("Naive", (base,), members)


@pytest.mark.parametrize(("tail", "most"), [(10_000, 0.37), (40_000, 0.42)])
def test_collapse_costs_less_and_hides_nothing(
    traces: list[dict[str, Any]], tail: int, most: float, scale: Scale
):
    run = judged(
        importlib.import_module("replay").Run, importlib.import_module("traces").identifiers
    )
    rows = [run(trace, ours(collapsed(tail))(trace)).play() for trace in traces]
    sketch = importlib.import_module("adapters.sketch").Sketch
    base = sum(played(trace, naive(), None)["cost"] for trace in traces)
    mine, drawn = Summed(rows, base), Summed([played(t, sketch) for t in traces], base)
    assert mine.whole == dict.fromkeys(WHOLE, 1.0)
    assert not mine.lost
    assert not mine.summaries
    assert not mine.failed
    assert mine.near >= 0.96
    assert mine.coined >= 0.96
    assert mine.shown >= scale.pick(0.88, 0.90)
    assert mine.score < scale.pick(0.75, most)
    assert mine.score < drawn.score or tail > 10_000
    assert mine.peak < 60_000


def test_classic_never_costs_more_than_sending_everything(traces: list[dict[str, Any]]):
    for trace in traces:
        classic = played(trace, ours(CLASSIC_SETTINGS), None)
        plain = played(trace, naive(), None)
        assert classic["cost"] <= plain["cost"], trace["name"]
        assert classic["facts_here"] == classic["facts"]


def test_the_default_never_costs_much_more_than_sending_everything(traces: list[dict[str, Any]]):
    for trace in traces:
        sealed = played(trace, ours(), None)
        plain = played(trace, naive(), None)
        assert sealed["cost"] <= 1.02 * plain["cost"], trace["name"]


def test_what_is_sent_does_not_depend_on_the_digests(traces: list[dict[str, Any]]):
    settings = collapsed(10_000)
    for trace in traces[:2]:
        plain = played(trace, ours(settings))
        hashed = played(trace, ours(settings, digests=True))
        assert plain["cost"] == hashed["cost"]
        assert plain["near"] == hashed["near"]
