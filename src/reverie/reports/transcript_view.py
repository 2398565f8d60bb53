"""A transcript as a person would read it: who said what, and what was decided about it.

`steps` turns entries into plain values, in the order of the file, and says of each
message whether the next request still carries it; of each summary, what it took the place
of and what that cost. It reads and never changes anything; `telling` shows the steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from reverie.session.summaries import Transcript, title_of
from reverie.transcript.blocks import Block, dump, elements, text_of
from reverie.transcript.fold import apply
from reverie.transcript.records import (
    AssistantMessage,
    Attached,
    Entry,
    Failed,
    ForkEnded,
    HeadSet,
    Replaced,
    ResultDecided,
    Rewound,
    Sent,
    Started,
    TurnEnded,
    Unknown,
    UserMessage,
)
from reverie.transcript.rewrites import widen_range
from reverie.transcript.view import EMPTY, View

StepState = Literal["sent", "replaced", "left", ""]
BRANCHES = 200
"""With more jumps between branches than this, it is not worked out what moved the prefix, nor
how many messages a summary took the place of."""


@dataclass(frozen=True, slots=True)
class DisplayPart:
    """A block of a message, by what it is to a reader."""

    kind: str  # text, thinking, call, result, media or other
    text: str
    name: str = ""
    call: str = ""


@dataclass(frozen=True, slots=True)
class TranscriptStep:
    """One thing that happened."""

    id: str
    at: float
    kind: str
    state: StepState = ""  # of a message: carried by the next request, replaced, or left behind
    parts: tuple[DisplayPart, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])


def overview(found: Transcript) -> dict[str, Any]:
    """A session in a few facts."""
    view = found.view
    said = [e for e in found.entries if isinstance(e.record, (UserMessage, AssistantMessage))]
    model = view.head.model if view.head else ""
    spoke = (e.record.model for e in reversed(said) if isinstance(e.record, AssistantMessage))
    return {
        "id": found.id,
        "title": title_of(found.entries),
        "project": view.started.project if view.started else "",
        "model": model or next((name for name in spoke if name), ""),
        "messages": len(said),
        "turns": view.turns,
        "tokens": view.tokens,
        "open_calls": list(view.open_calls),
        "faults": list(found.faults),
    }


def steps(found: Transcript, folder: str = "") -> Iterator[TranscriptStep]:
    """What happened, in the order of the file; `folder` is where stored results lie."""
    own = {item.id for item in (*found.view.items, *found.view.waiting)}
    covered = frozenset(own).union(*(item.covers for item in found.view.items)) - own
    moves, places = _past(found.entries)
    calls = _call_names(found.entries)
    seen: set[str] = set()
    for entry in found.entries:
        if entry.id in seen:
            continue
        seen.add(entry.id)
        state: StepState = (
            "sent" if entry.id in own else "replaced" if entry.id in covered else "left"
        )
        if entry.id in moves:
            yield TranscriptStep(entry.id, entry.at, "moved", facts={"reasons": moves[entry.id]})
        step = _step(entry, state if entry.on_chain else "", calls, folder)
        if step is not None:
            more = places.get(entry.id)
            yield replace(step, facts={**step.facts, **more}) if more else step


def _past(entries: Sequence[Entry]) -> tuple[dict[str, list[str]], dict[str, dict[str, int]]]:
    """By a request: why it does not begin as the one before it did. By a summary: how many
    messages it took the place of, and how many before and behind them stayed."""
    moves: dict[str, list[str]] = {}
    places: dict[str, dict[str, int]] = {}
    if not any(isinstance(e.record, Sent | Replaced) for e in entries) or _branches(entries):
        return moves, places
    view: View = EMPTY
    for entry in entries:
        record = entry.record
        if isinstance(record, Sent) and view.moved:
            moves.setdefault(entry.id, list(view.moved))
        elif isinstance(record, Replaced) and entry.parent == view.leaf:
            places.setdefault(entry.id, _place(view, record))
        view = apply(view, entry)
    return moves, places


def _branches(entries: Sequence[Entry]) -> bool:
    """Whether there are too many jumps between branches to follow them all."""
    last = ""
    jumps = 0
    for entry in entries:
        if entry.on_chain:
            jumps += entry.parent != last
            last = entry.id
    return jumps > BRANCHES


def _place(view: View, record: Replaced) -> dict[str, int]:
    bounds = widen_range(view, record.first, record.last)
    if bounds is None:
        return {}
    first, last = bounds
    before = sum(item.kind != "head" for item in view.items.since(0)[:first])
    behind = len(view.items) - last - 1
    return {"messages": last - first + 1, "before": before, "behind": behind}


def _call_names(entries: Sequence[Entry]) -> dict[str, str]:
    return {
        block.call: block.get("name")
        for entry in entries
        if isinstance(entry.record, AssistantMessage)
        for block in entry.record.blocks
        if block.type == "tool_use"
    }


def _step(
    entry: Entry, state: StepState, calls: Mapping[str, str], folder: str
) -> TranscriptStep | None:
    record = entry.record
    parts: tuple[DisplayPart, ...] = ()
    facts: dict[str, Any] = {}
    kind = ""
    match record:
        case UserMessage() | AssistantMessage() | Attached():
            kind, parts, facts = _message(record, calls)
        case Replaced():
            parts = tuple(_part(b, calls) for stand in record.by for b in stand.blocks)
            kind = "replaced"
            facts = {"first": record.first, "last": record.last}
            facts |= {"reason": record.reason, "why": record.why}
            facts |= _boundary(record)
        case ResultDecided():
            kind, facts = _decision(record, calls, folder)
        case HeadSet():
            kind, facts = "head", _head(record)
        case _:
            kind, facts = _other(record)
    return TranscriptStep(entry.id, entry.at, kind, state, parts, facts) if kind else None


def _message(
    record: UserMessage | AssistantMessage | Attached, calls: Mapping[str, str]
) -> tuple[str, tuple[DisplayPart, ...], dict[str, Any]]:
    parts = tuple(_part(block, calls) for block in record.blocks)
    if isinstance(record, Attached):
        return "attached", parts, {"kind": record.kind}
    if isinstance(record, UserMessage):
        return "user", parts, {"origin": record.origin}
    used = record.usage
    usage = None
    if used is not None:
        usage = {"input": used.input, "read": used.read, "output": used.output}
    return "assistant", parts, {"model": record.model, "usage": usage}


def _part(block: Block, calls: Mapping[str, str]) -> DisplayPart:
    match block.type:
        case "text":
            return DisplayPart("text", block.get("text"))
        case "thinking":
            return DisplayPart("thinking", block.get("thinking"))
        case "tool_use":
            text = dump(block.value.get("input"))
            return DisplayPart("call", text, block.get("name"), block.call)
        case "tool_result":
            call = block.call
            name = calls.get(call, "")
            text = text_of(block.value.get("content"))
            failed = block.value.get("is_error") is True
            return DisplayPart("result", text, f"{name}, failed" if failed else name, call)
        case "image" | "document":
            return DisplayPart("media", f"[{block.type}]")
        case other:
            return DisplayPart("other", f"[{other or 'a block without a type'}]")


def _boundary(record: Replaced) -> dict[str, Any]:
    """What a compaction recorded of itself; nothing for a snip or a seal."""
    if record.boundary is None:
        return {}
    facts = asdict(record.boundary)
    head, anchor, tail = facts.pop("kept")
    return {**facts, "kept": {"head": head, "anchor": anchor, "tail": tail}}


def _decision(
    record: ResultDecided, calls: Mapping[str, str], folder: str
) -> tuple[str, dict[str, Any]]:
    facts: dict[str, Any] = {"call": record.call, "tool": calls.get(record.call, "")}
    facts["why"] = record.why
    if record.action == "stored":
        path = f"{folder}/{record.path}" if folder else record.path
        facts |= {"path": path, "size": record.size, "sha256": record.sha256}
    return record.action, facts


def _head(record: HeadSet) -> dict[str, Any]:
    tools = [str(v.get("name")) for _, v in elements(record.tools) if isinstance(v, dict)]
    return {
        "model": record.model,
        "tools": tools,
        "system_characters": len(record.system),
        "context_characters": len(record.context),
        "reason": record.reason,
    }


def _other(record: object) -> tuple[str, dict[str, Any]]:
    match record:
        case Started():
            return "started", {"version": record.version, "source": record.source}
        case Failed():
            return "failed", {"layer": record.layer, "error": record.error, "where": record.where}
        case ForkEnded():
            facts = {"source": record.source, "agent": record.agent, "outcome": record.outcome}
            return "fork", {**facts, "requests": record.requests, "tokens": record.usage.total}
        case TurnEnded():
            return "turn", {"outcome": record.outcome}
        case Rewound():
            return "rewound", {"reason": record.reason}
        case Unknown():
            return "unknown", {"type": record.type, "fault": record.fault}
        case _:  # a request that left: what moved its prefix is a step of its own
            return "", {}
