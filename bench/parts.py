"""The parts that `python -m bench` runs: which modules each is made of, the cheapest first."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Part:
    """Some modules whose figures belong together; run in one process."""

    name: str
    title: str
    modules: tuple[str, ...]
    minutes: float = 5  # after which it is stopped
    quick: bool = True  # whether it is in the run of five minutes
    meaning: bool = False  # whether the local model of meaning is there; by default it is not


PARTS = (
    Part("demo", "One session from end to end", ("demo",)),
    Part("core", "Import, size, opening a session", ("core", "imports")),
    Part("asks", "Plain requests to remember", ("asks", "extraction")),
    Part("rules", "Rules on calls", ("rules",)),
    Part("compactions", "What a compaction keeps", ("compactions", "counts")),
    Part("secrets", "Secret scanning", ("secrets",), 15),
    Part("mcp", "Through MCP", ("mcp",)),
    Part("live", "The recorded course", ("live",)),
    Part("young", "A young project", ("young",), 10),
    Part("growth", "As the work grows × 10 and × 100", ("growth", "growth_sessions"), 20, False),
    Part("adapters", "Inside other frameworks", ("adapters",), 15, False),
    Part("proxy", "The proxy", ("proxy", "proxy_saving"), 20, False),
    Part("team", "The team server", ("team",), 20, False),
    Part("recall", "Recall against the peers", ("recall_peers",), 40, False, True),
    Part("recall_more", "Recall: more ways to ask", ("recall", "chats"), 20, False),
    Part("recall_speed", "How long recall takes", ("recall_speed",), 30, False, True),
    Part("gate", "What is injected unasked", ("gate",), 20, False),
    Part("boundary", "Recall at the tool boundary", ("boundary",), 20, False),
    Part("quality", "What is lost at writing, and what at recall", ("quality",), 30, False),
    Part("memorycode", "Rules given over many sessions", ("memorycode",), 40, False),
    Part("hygiene", "The memory check and the dream", ("hygiene",), 30, False),
    Part("context", "What a long session costs", ("context",), 90, False),
    Part("context_cpu", "What a round takes of the processor", ("context_cpu",), 20, False),
    Part("fleet", "The fleet", ("fleet",), 30, False),
    Part("page", "The web page", ("page",), 20, False),
)
BY_NAME = {one.name: one for one in PARTS}
