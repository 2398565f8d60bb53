"""A transcript as a person would read it: who said what, and what was decided about it.

`steps` turns entries into plain values, in the order of the file, and says of each
message whether the next request still carries it. It reads and never changes anything;
`told` prints steps, `markdown` writes them as a page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from reverie.apps.cli.show import clean, line, plural, say, size
from reverie.session.library import Transcript, title_of
from reverie.transcript.blocks import Block, dump, elements, text_of
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
from reverie.transcript.view import EMPTY, View, apply

State = Literal["sent", "replaced", "left", ""]
BRANCHES = 200
"""With more jumps between branches than this, it is not worked out what moved the prefix."""

_SHOWN_LINES = 12
_SHOWN_CHARACTERS = 1_200
_HTML = re.compile(r"<(?=[A-Za-z/!?])")
_FENCE = re.compile(r"(`{3,}|~{3,})")


@dataclass(frozen=True, slots=True)
class Part:
    """A block of a message, by what it is to a reader."""

    kind: str  # text, thinking, call, result, media or other
    text: str
    name: str = ""
    call: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that happened."""

    id: str
    at: float
    kind: str
    state: State = ""  # of a message: carried by the next request, replaced, or left behind
    parts: tuple[Part, ...] = ()
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


def steps(found: Transcript, folder: str = "") -> Iterator[Step]:
    """What happened, in the order of the file; `folder` is where stored results lie."""
    own = {item.id for item in (*found.view.items, *found.view.waiting)}
    covered = frozenset(own).union(*(item.covers for item in found.view.items)) - own
    moves = _moves(found.entries)
    calls = _call_names(found.entries)
    seen: set[str] = set()
    for entry in found.entries:
        if entry.id in seen:
            continue
        seen.add(entry.id)
        state: State = "sent" if entry.id in own else "replaced" if entry.id in covered else "left"
        if entry.id in moves:
            yield Step(entry.id, entry.at, "moved", facts={"reasons": moves[entry.id]})
        step = _step(entry, state if entry.on_chain else "", calls, folder)
        if step is not None:
            yield step


def _moves(entries: Sequence[Entry]) -> dict[str, list[str]]:
    """By the request that followed: why it does not begin as the one before it did."""
    last = ""
    jumps = 0
    for entry in entries:
        if entry.on_chain:
            jumps += entry.parent != last
            last = entry.id
    if jumps > BRANCHES or not any(isinstance(e.record, Sent) for e in entries):
        return {}
    moves: dict[str, list[str]] = {}
    view: View = EMPTY
    for entry in entries:
        if isinstance(entry.record, Sent) and view.moved:
            moves.setdefault(entry.id, list(view.moved))
        view = apply(view, entry)
    return moves


def _call_names(entries: Sequence[Entry]) -> dict[str, str]:
    return {
        block.get("id"): block.get("name")
        for entry in entries
        if isinstance(entry.record, AssistantMessage)
        for block in entry.record.blocks
        if block.type == "tool_use"
    }


def _step(entry: Entry, state: State, calls: Mapping[str, str], folder: str) -> Step | None:
    record = entry.record
    parts: tuple[Part, ...] = ()
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
        case ResultDecided():
            kind, facts = _decision(record, calls, folder)
        case HeadSet():
            kind, facts = "head", _head(record)
        case _:
            kind, facts = _other(record)
    return Step(entry.id, entry.at, kind, state, parts, facts) if kind else None


def _message(
    record: UserMessage | AssistantMessage | Attached, calls: Mapping[str, str]
) -> tuple[str, tuple[Part, ...], dict[str, Any]]:
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


def _part(block: Block, calls: Mapping[str, str]) -> Part:
    match block.type:
        case "text":
            return Part("text", block.get("text"))
        case "thinking":
            return Part("thinking", block.get("thinking"))
        case "tool_use":
            text = dump(block.value.get("input"))
            return Part("call", text, block.get("name"), block.get("id"))
        case "tool_result":
            call = block.get("tool_use_id")
            name = calls.get(call, "")
            text = text_of(block.value.get("content"))
            failed = block.value.get("is_error") is True
            return Part("result", text, f"{name}, failed" if failed else name, call)
        case "image" | "document":
            return Part("media", f"[{block.type}]")
        case other:
            return Part("other", f"[{other or 'a block without a type'}]")


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


# --- for people


def when(at: float) -> str:
    """A time, or nothing where there is none."""
    try:
        return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M") if at else ""
    except (OverflowError, OSError, ValueError):
        return ""


_NAMES = {"user": "you", "assistant": "assistant", "attached": "attached", "replaced": "summary"}
_STYLES = {"you": "bold cyan", "assistant": "bold green"}
_QUIET = ("started", "turn", "kept")
_LEFT = {"left": "left behind", "replaced": "replaced since"}


def told(found: Sequence[Step], *, full: bool) -> None:
    """Print a conversation; without `full`, long texts are cut and small decisions left out."""
    for step in found:
        if step.kind in _NAMES and step.parts:
            _tell_message(step, full)
        elif full or step.kind not in _QUIET:
            say(f"▪ {decision(step)}", "yellow" if step.kind == "failed" else "dim")


def _tell_message(step: Step, full: bool) -> None:
    who = speaker(step)
    facts = [when(step.at), str(step.facts.get("model") or step.facts.get("reason") or "")]
    facts.append(_LEFT.get(step.state, ""))
    say()
    say(" · ".join([who, *filter(None, facts)]), _STYLES.get(who, "bold"))
    for part in _worth_telling(step):
        text, more = (clean(part.text), 0) if full else _cut(clean(part.text))
        if part.kind == "call":
            text = line(part.text, 10_000 if full else 200)
        style = "" if part.kind == "text" else "dim"
        label = {"call": f"→ {part.name} ", "result": f"← {part.name}\n"}.get(part.kind, "")
        label = "(thinking) " if part.kind == "thinking" else label
        say(f"{label}{text}".rstrip("\n"), style, indent=2)
        if more and part.kind != "call":
            say(f"… {plural(more, 'character')} more; --full shows them", "dim", indent=2)


def _worth_telling(step: Step) -> list[Part]:
    return [p for p in step.parts if p.text.strip() or p.kind in ("call", "result")]


def speaker(step: Step) -> str:
    origin = str(step.facts.get("origin") or "")
    if step.kind == "user" and step.parts and all(p.kind == "result" for p in step.parts):
        return "tools"
    if step.kind == "user" and origin not in ("", "user"):
        return origin
    return _NAMES.get(step.kind, step.kind)


def _cut(text: str) -> tuple[str, int]:
    """The beginning of a text, and how many characters more it has."""
    head = "\n".join(text.split("\n")[:_SHOWN_LINES])[:_SHOWN_CHARACTERS]
    return head, len(text) - len(head)


def decision(step: Step) -> str:
    """A decision or an event in a line."""
    facts = {key: line(str(value), 500) for key, value in step.facts.items()}
    about = f"result of {facts.get('tool') or 'a tool'} ({facts.get('call')})"
    why = f": {facts['why']}" if facts.get("why") else ""
    match step.kind:
        case "stored":
            return f"stored: {about}, {size(int(facts['size']))} in {facts['path']}{why}"
        case "cleared" | "kept":
            return f"{step.kind}: {about}{why}"
        case "moved":
            return f"prefix moved: {', '.join(step.facts['reasons'])}"
        case "head":
            reason = f" ({facts['reason']})" if facts["reason"] else ""
            tools = plural(len(step.facts["tools"]), "tool")
            return f"request head{reason}: model {facts['model'] or '-'}, {tools}"
        case "failed":
            where = f" ({facts['where']})" if facts["where"] else ""
            return f"failed: {facts['layer']}: {facts['error']}{where}"
        case _:
            known = ", ".join(f"{k} {v}" for k, v in facts.items() if v)
            return f"{step.kind}: {known}" if known else step.kind


# --- as a page


def markdown(found: Transcript, folder: str = "") -> str:
    """The conversation as Markdown in which nothing of it acts as HTML."""
    facts = overview(found)
    out = [f"# {_inert(line(facts['title']))}", "", f"Session `{found.id}`", ""]
    for step in steps(found, folder):
        if step.kind not in _NAMES:
            out += [] if step.kind in _QUIET else [f"*{_inert(decision(step))}*", ""]
            continue
        left = f" ({_LEFT[step.state]})" if step.state in _LEFT else ""
        out += [f"## {speaker(step).capitalize()}{left}", ""]
        for part in _worth_telling(step):
            out += [_page_part(part), ""]
    return "\n".join(out)


def _page_part(part: Part) -> str:
    text = clean(part.text)
    if part.kind == "text":
        return _inert_page(text)
    label = {"call": f"→ {line(part.name)}", "result": f"← {line(part.name)}"}
    head = _inert(label.get(part.kind, part.kind))
    fence = "`" * max([3, *(len(run) + 1 for run in re.findall(r"`{3,}", text))])
    return f"{head}\n\n{fence}\n{text}\n{fence}"


def _inert(text: str) -> str:
    return _HTML.sub("&lt;", text)


def _inert_page(text: str) -> str:
    """Markdown of others with its HTML escaped, and every fence it opens closed."""
    out: list[str] = []
    fence = ""
    for one in text.split("\n"):
        found = _FENCE.match(one)
        if fence:
            out.append(one)
            if found and found[1].startswith(fence) and not one.strip(fence[0]).strip():
                fence = ""
            continue
        if found and "`" not in one[found.end() :]:
            fence = found[1]
        out.append(_inert(one))
    return "\n".join([*out, fence] if fence else out)
