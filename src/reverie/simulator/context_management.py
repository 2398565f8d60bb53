"""Server-side clearing and compaction.

`context_management`: what the server clears before the model is shown a request.

The client keeps its full history and sends it every time, so what is cleared is worked
out from the history alone: each request boundary in it is walked through, and once the
trigger is passed, old results go and stay gone. Between two such moments the same
request is shown the same way, and the cache holds. The request itself is never changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from reverie.simulator.answers import SimulatedAnswer
from reverie.simulator.profiles import ModelSpec, Tokens, bad
from reverie.simulator.prompt_cache import blocks_in, deleted_calls, objects
from reverie.transcript.blocks import Json, Object

CLEAR_TOOLS = "clear_tool_uses_20250919"
CLEAR_THINKING = "clear_thinking_20251015"
CLEARED = "[Cleared by context management]"
TRIGGER = 100_000
KEEP = 3
BlockPlace = tuple[int, int]


@dataclass(frozen=True, slots=True)
class EffectiveRequest:
    """A request as the model is shown it, and what was done to it."""

    body: Object
    applied: tuple[Object, ...] = ()
    asked: bool = False


@dataclass
class _Use:
    """One call, its result, and what clearing it would free."""

    call: str
    name: str
    use: BlockPlace
    result: BlockPlace | None = None
    frees: int = 0


@dataclass
class _Walk:
    """A history walked through, boundary by boundary."""

    tokens: int
    uses: list[_Use] = field(default_factory=list)
    cleared: set[str] = field(default_factory=set)
    freed: int = 0


def effective_request(
    body: Object, count: Tokens, dropped: Sequence[BlockPlace] = ()
) -> EffectiveRequest:
    """The request without dropped blocks and with its edits applied."""
    messages = [dict(m) for m in objects(body.get("messages"))]
    gone = set(dropped)
    applied: list[Object] = []
    edits = _edits(body)
    asked = body.get("context_management") is not None
    if not gone and not edits:
        return EffectiveRequest(body, (), asked)
    for edit in edits:
        if edit["type"] == CLEAR_THINKING:
            places, turns = _old_thinking(messages, edit)
            freed = sum(count(_at(messages, p)) for p in places - gone)
            gone |= places
            if turns:
                applied.append(
                    _applied_edit(CLEAR_THINKING, "cleared_thinking_turns", turns, freed)
                )
    replaced: dict[BlockPlace, Object] = {}
    for edit in edits:
        if edit["type"] == CLEAR_TOOLS:
            uses, freed = _old_results(body, messages, edit, count, gone)
            replaced |= uses
            if freed:
                number = sum(b["type"] == "tool_result" for b in uses.values())
                applied.append(_applied_edit(CLEAR_TOOLS, "cleared_tool_uses", number, freed))
    return EffectiveRequest(
        {**body, "messages": _rebuilt(messages, gone, replaced)}, tuple(applied), asked
    )


def _applied_edit(kind: str, what: str, number: int, freed: int) -> Object:
    return {"type": kind, what: number, "cleared_input_tokens": freed}


def _rebuilt(
    messages: list[Object], gone: set[BlockPlace], replaced: Mapping[BlockPlace, Object]
) -> list[Json]:
    out: list[Json] = []
    for at, message in enumerate(messages):
        kept: list[Json] = [
            replaced.get((at, n), block)
            for n, block in enumerate(blocks_in(message.get("content")))
            if (at, n) not in gone
        ]
        if kept:
            out.append({**message, "content": kept})
    return out


def _edits(body: Object) -> list[Object]:
    management = body.get("context_management")
    if management is None:
        return []
    edits = management.get("edits") if isinstance(management, dict) else None
    if edits is not None and not isinstance(edits, list):
        raise bad("context_management.edits: Input should be a valid list")
    found = objects(edits)
    for at, edit in enumerate(found):
        if edit.get("type") not in (CLEAR_TOOLS, CLEAR_THINKING):
            raise bad(f"context_management.edits.{at}.type: {edit.get('type')} is not supported")
        if edit["type"] == CLEAR_THINKING and at:
            raise bad(f"context_management.edits.{at}: {CLEAR_THINKING} must be listed first")
    return found


def _at(messages: list[Object], place: BlockPlace) -> Object:
    return blocks_in(messages[place[0]].get("content"))[place[1]]


def _places(messages: list[Object]) -> Iterator[tuple[BlockPlace, str, Object]]:
    for at, message in enumerate(messages):
        for n, block in enumerate(blocks_in(message.get("content"))):
            yield (at, n), str(message.get("role")), block


# --- thinking


def _old_thinking(messages: list[Object], edit: Object) -> tuple[set[BlockPlace], int]:
    """Thinking of all but the newest turns that have any; a turn ends where a user speaks."""
    keep = edit.get("keep")
    if keep == "all" or (isinstance(keep, dict) and keep.get("type") == "all"):
        return set(), 0
    number = _value(keep, 1)
    turns: list[set[BlockPlace]] = [set()]
    for place, role, block in _places(messages):
        if role == "user" and block.get("type") == "text" and turns[-1]:
            turns.append(set())
        if block.get("type") in ("thinking", "redacted_thinking"):
            turns[-1].add(place)
    full = [t for t in turns if t]
    old = full[: max(0, len(full) - number)]
    return {p for t in old for p in t}, len(old)


def _value(option: Json, default: int) -> int:
    found = option.get("value") if isinstance(option, dict) else None
    return found if isinstance(found, int) and not isinstance(found, bool) else default


# --- tool results


def _old_results(
    body: Object, messages: list[Object], edit: Object, count: Tokens, gone: set[BlockPlace]
) -> tuple[dict[BlockPlace, Object], int]:
    """The blocks that stand for old results (and inputs), and how many tokens that frees."""
    head = sum(count(t) for t in objects(body.get("tools")))
    walk = _Walk(head + sum(count(b) for b in blocks_in(body.get("system"))))
    edited = deleted_calls(body)
    before = ""
    for place, role, block in _places(messages):
        if role == "assistant" and before == "user":
            _boundary(walk, edit)
        before = role if role != "system" else before
        if place in gone:
            continue
        if block.get("type") == "tool_result" and block.get("tool_use_id") in edited:
            continue
        walk.tokens += count(block)
        _register(walk, place, block, count)
    if before == "user":
        _boundary(walk, edit)
    return _clear_results(walk, edit, messages), walk.freed


def _register(walk: _Walk, place: BlockPlace, block: Object, count: Tokens) -> None:
    if block.get("type") == "tool_use":
        walk.uses.append(_Use(str(block.get("id")), str(block.get("name")), place))
    elif block.get("type") == "tool_result":
        use = next((u for u in reversed(walk.uses) if u.call == block.get("tool_use_id")), None)
        if use is not None:
            use.result = place
            use.frees = max(0, count(block) - count({**block, "content": CLEARED}))


def _boundary(walk: _Walk, edit: Object) -> None:
    """Where a request was sent: clear, if the trigger is passed and it is worth it."""
    open_uses = [u for u in walk.uses if u.result and u.call not in walk.cleared]
    trigger = edit.get("trigger")
    by_uses = isinstance(trigger, dict) and trigger.get("type") == "tool_uses"
    measured = len(open_uses) if by_uses else walk.tokens
    if measured <= _value(trigger, TRIGGER):
        return
    keep = _value(edit.get("keep"), KEEP)
    excluded = edit.get("exclude_tools")
    names = excluded if isinstance(excluded, list) else []
    old = [u for u in open_uses[: max(0, len(open_uses) - keep)] if u.name not in names]
    freed = sum(u.frees for u in old)
    if not old or freed < _value(edit.get("clear_at_least"), 1):
        return
    walk.cleared.update(u.call for u in old)
    walk.tokens -= freed
    walk.freed += freed


def _clear_results(walk: _Walk, edit: Object, messages: list[Object]) -> dict[BlockPlace, Object]:
    inputs = edit.get("clear_tool_inputs")
    out: dict[BlockPlace, Object] = {}
    for use in walk.uses:
        if use.call not in walk.cleared or use.result is None:
            continue
        out[use.result] = {**_at(messages, use.result), "content": CLEARED}
        if inputs is True or (isinstance(inputs, list) and use.name in inputs):
            out[use.use] = {**_at(messages, use.use), "input": {}}
    return out


# --- On-demand compaction: when it is refused, and what its block says.
#
# The request holds the whole conversation; the answer is one signed block that a later request
# sends back first in its place. The words come from the answerer, like any other.


EMPTY = "Nothing was said."


def check_compaction(body: Object, model: ModelSpec) -> None:
    """Raise what the API answers to a compaction it cannot do, or a block it cannot take."""
    contents = [blocks_in(m.get("content")) for m in objects(body.get("messages"))]
    blocks = [b for c in contents for b in c if b.get("type") == "compaction"]
    if sum(b.get("content") is not None for b in blocks) > 1:
        said = "`messages` holds more than one `compaction` block with content"
        raise bad(said, code="compaction_block_ambiguous")
    if any(b.get("content") == "" for b in blocks):
        raise bad("`compaction` block's `content` must not be empty")
    wanted = body.get("compaction")
    if wanted is None:
        return
    if not isinstance(wanted, dict) or wanted.get("type") != "summarize":
        raise bad("compaction.type: Input should be 'summarize'")
    if body.get("context_management") is not None:
        raise bad("compaction: cannot be combined with `context_management`")
    if not model.compaction:
        raise bad(f"compaction: not supported by {model.id}")
    others = [b for c in contents for b in c if b.get("type") != "compaction"]
    if not others:
        said = "`messages` holds no `user` or `assistant` content to summarize"
        raise bad(said, code="compaction_nothing_to_summarize")


def summary(said: SimulatedAnswer) -> str:
    """The words of an answer, as a compaction block carries them."""
    return "".join(b.get("text") for b in said.content if b.type == "text").strip() or EMPTY
