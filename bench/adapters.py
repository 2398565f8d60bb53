"""Inside other frameworks: what a recorded course costs with our adapter and with their own means.

Real agents with their own loops play a course against the simulated provider, whose bill is the
cost; then the model is asked for facts, which it may read back. The agents are those of the tests
(`tests/adapters`); the CPU of the whole run stands beside, ours against the framework alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio

from bench.figures import ROOT_SHARED, Figure, Row, against_peers, at_most

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
