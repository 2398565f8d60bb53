"""What a session did, request by request: tokens by kind, the cache, and each layer's deeds.

Worked out from a transcript in one pass, as plain values that can be kept; a list or a page never
reads a transcript twice for it. Nothing is guessed: where requests were not recorded (an imported
session), each answer stands for one, and breaks are said to be unknown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from reverie.session.summaries import Transcript
from reverie.text.format import cut
from reverie.transcript.blocks import text_of
from reverie.transcript.fold import apply
from reverie.transcript.messages import Item
from reverie.transcript.records import (
    AssistantMessage,
    Boundary,
    Entry,
    Extracted,
    Failed,
    ForkEnded,
    NotesTaken,
    Recalled,
    Record,
    Replaced,
    RequestRefused,
    ResultDecided,
    Sent,
    UserMessage,
)
from reverie.transcript.view import EMPTY, View

KINDS: tuple[str, ...] = ("head", "sealed", "user", "assistant", "results", "memory")
"""What stands in a window: system and tools, lines that stand for others, what the user and the
assistant said, tool results, and what was attached."""
SAID = 160
_TOLD = ("extract_memories", "session_memory", "compact")
MAX_LISTED = 40

Values = dict[str, Any]


def kinds_of(view: View, known: dict[int, tuple[Item, Values]] | None = None) -> dict[str, int]:
    """Rough tokens in the window by kind; `known` spares counting an item twice."""
    counts: dict[str, int] = dict.fromkeys(KINDS, 0)
    counts["head"] = view.head_tokens
    seen = {} if known is None else known
    for item in view.items:
        kept = seen.get(id(item))
        if kept is None:
            kept = seen[id(item)] = (item, _item_kinds(item))
        for kind, count in kept[1].items():
            counts[kind] += count
    return counts


def _item_kinds(item: Item) -> dict[str, int]:
    found: dict[str, int] = {}
    own = {"head": "head", "attached": "memory"}.get(item.kind, item.role)
    own = "sealed" if item.covers else own
    for piece in item.pieces:
        result = piece.block.type == "tool_result" and not item.covers
        kind = "results" if result else own
        found[kind] = found.get(kind, 0) + piece.block.tokens
    return found


class _Course:
    """The pass over a transcript's entries."""

    def __init__(self) -> None:
        self.view: View = EMPTY
        self.known: dict[int, tuple[Item, Values]] = {}
        self.requests: list[Values] = []
        self.events: list[Values] = []
        self.turns = 0
        self.waits = False  # a request left, and its answer is not here yet
        self.tools: dict[str, str] = {}

    def take(self, entry: Entry) -> None:
        record = entry.record
        if isinstance(record, Sent):
            self._request(entry.at, record.source)
        elif isinstance(record, AssistantMessage):
            self._answer(entry, record)
        elif isinstance(record, UserMessage) and record.origin == "user":
            self._turn(entry, record)
        before = self.view
        self.view = apply(before, entry)
        told = self._event_values(record, before)
        if told is not None:
            self.events.append({"id": entry.id, "at": entry.at, "request": self._next(), **told})

    def _next(self) -> int:
        """The request that an event belongs to: the one under way, or the next."""
        return len(self.requests) + (0 if self.waits else 1)

    def _request(self, at: float, source: str) -> None:
        kinds = kinds_of(self.view, self.known)
        self.requests.append({"at": at, "source": source, "kinds": kinds, "usage": None})
        self.waits = True

    def _answer(self, entry: Entry, record: AssistantMessage) -> None:
        if not self.waits:
            self._request(entry.at, "main")
        if record.usage is not None:
            self.requests[-1]["usage"] = asdict(record.usage)
        self.requests[-1]["entry"] = entry.id
        self.waits = False
        for block in record.blocks:
            if block.type == "tool_use":
                self.tools[block.call] = block.get("name")

    def _turn(self, entry: Entry, record: UserMessage) -> None:
        text = " ".join(" ".join(b.get("text") for b in record.blocks).split())
        if not text:
            return
        self.turns += 1
        at = {"id": entry.id, "at": entry.at, "request": self._next()}
        self.events.append({**at, "layer": "turn", "turn": self.turns, "said": cut(text, SAID)})

    def _event_values(self, record: Record, before: View) -> Values | None:
        match record:
            case ResultDecided():
                return _decision_event(record, self.tools)
            case Replaced():
                return self._replacement_event(record, before)
            case NotesTaken() | Extracted() | Recalled():
                return _memory_event(record)
            case ForkEnded():
                return _fork(record)
            case Failed():
                return {"layer": record.layer, "kind": "failed", "error": record.error}
            case RequestRefused():
                return {"layer": "", "kind": "refused", "error": record.error}
            case _:
                return None

    def _replacement_event(self, record: Replaced, before: View) -> Values:
        then, now = kinds_of(before, self.known), kinds_of(self.view, self.known)
        told: Values = {"layer": "2", "kind": "sealed", "reason": record.reason}
        told |= {"why": record.why, "before": then, "after": now}
        stands = [
            block.get("text") or text_of(block.value) for s in record.by for block in s.blocks
        ]
        told["text"] = "\n\n".join(stands)
        if record.boundary is not None:
            told |= {"layer": "4", "kind": "compaction", **_audit(record.boundary)}
        return told


def _decision_event(record: ResultDecided, tools: Mapping[str, str]) -> Values | None:
    if record.action == "kept":
        return None
    facts = {"tool": tools.get(record.call, ""), "why": record.why, "call": record.call}
    if record.action == "stored":
        facts |= {"path": record.path, "size": record.size}
        return {"layer": "1", "kind": "stored", **facts}
    return {"layer": "2", "kind": "cleared", **facts}


def _memory_event(record: NotesTaken | Extracted | Recalled) -> Values | None:
    match record:
        case NotesTaken():
            return {"layer": "3", "kind": "notes", "tokens": record.tokens}
        case Extracted():
            return _extraction_event(record)
        case Recalled():
            return _recall_event(record)


def _fork(record: ForkEnded) -> Values | None:
    if record.source in _TOLD:
        return None  # what it did stands there already; what it cost, by its source
    facts = {"source": record.source, "agent": record.agent, "outcome": record.outcome}
    facts |= {"requests": record.requests, "tokens": record.usage.total}
    return {"layer": "7", "kind": "fork", **facts}


def _extraction_event(record: Extracted) -> Values | None:
    if record.outcome == "skipped":
        return None
    listed = list(record.written[:MAX_LISTED])
    return {"layer": "5", "kind": "learned", "written": listed, "why": record.why}


def _recall_event(record: Recalled) -> Values:
    found = [asdict(one) for one in record.candidates if one.outcome == "injected"]
    facts = {"considered": record.considered, "injected": found[:MAX_LISTED]}
    return {"layer": "5", "kind": "recall", **facts, "why": record.why}


def _audit(boundary: Boundary) -> Values:
    facts = asdict(boundary)
    facts.pop("kept")
    facts["tools"] = list(boundary.tools)
    facts["missing"] = list(boundary.missing)[:MAX_LISTED]
    return facts


def timeline(found: Transcript) -> Values:
    """The requests of a session and what happened around them, for JSON."""
    course = _Course()
    seen: set[str] = set()
    for entry in found.entries:
        if entry.id not in seen:  # the first record of an id counts
            seen.add(entry.id)
            course.take(entry)
    started = course.view.started
    return {
        "requests": course.requests,
        "events": course.events,
        "recorded": any(isinstance(e.record, Sent) for e in found.entries),
        "policy": started.policy if started else "",
        "faults": list(found.faults),
    }


def count_events(events: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """How often each kind of event stands there."""
    found: dict[str, int] = {}
    for event in events:
        kind = event.get("kind", "turn")
        found[kind] = found.get(kind, 0) + 1
    return found
