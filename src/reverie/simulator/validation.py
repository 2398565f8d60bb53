"""What the API refuses, in its own words.

What the API refuses in a request, with the words it uses.

Roles, contents, calls and their results, marks. Every fault raises a 400 that names
the place; a request that passes can be shown to a model. Unknown block types pass:
the wire grows faster than this file. Nothing is repaired here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from reverie.simulator.profiles import CONTROL, LIFETIMES, ApiError, ModelSpec, Profile, bad
from reverie.simulator.prompt_cache import (
    EDITS,
    blocks_in,
    digest,
    flat,
    mark_of,
    markable,
    objects,
)
from reverie.transcript.blocks import Json, Object, dump

ROLES = ("user", "assistant", "system")
ID = re.compile(r"^[a-zA-Z0-9_-]+$")
STRINGS = {"text": "text", "thinking": "thinking"}


def check(body: Object, rules: Profile) -> None:
    """Raise what the API would answer, or return."""
    messages = body.get("messages")
    if not isinstance(messages, list):
        raise bad("messages: Field required" if messages is None else "messages: not a list")
    if not messages:
        raise bad("messages: at least one message is required")
    for at, message in enumerate(messages):
        _message(at, message, last=at == len(messages) - 1)
    _head(body)
    checked = objects(messages)
    if checked[0].get("role") == "assistant" and not _opens_compacted(checked[0]):
        raise bad('messages: first message must use the "user" role')
    _calls(checked)
    _cache_edits(checked)
    check_marks(body, rules)


def check_options(body: Object) -> None:
    """The members beside the conversation."""
    if not isinstance(body.get("model"), str) or not body["model"]:
        raise bad("model: Field required")
    limit = body.get("max_tokens")
    if limit is None:
        raise bad("max_tokens: Field required")
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 0:
        raise bad("max_tokens: Input should be greater than or equal to 0")
    thinking = body.get("thinking")
    if thinking is None:
        return
    if not isinstance(thinking, dict) or thinking.get("type") not in THINKING:
        raise bad("thinking.type: unknown thinking type")
    budget = thinking.get("budget_tokens")
    if thinking["type"] == "enabled":
        if not isinstance(budget, int) or budget < 1024:
            raise bad("thinking.enabled.budget_tokens: Input should be at least 1024")
        if 0 < limit <= budget:
            raise bad("`max_tokens` must be greater than `thinking.budget_tokens`.")


THINKING = ("adaptive", "enabled", "disabled", "between_tools")


def _head(body: Object) -> None:
    system = body.get("system")
    if system is not None and not isinstance(system, (str, list)):
        raise bad("system: Input should be a valid string or list")
    if isinstance(system, list) and not all(isinstance(b, dict) for b in system):
        raise bad("system: Input should be a list of blocks")
    for at, block in enumerate(blocks_in(system)):
        if block.get("type") == "text" and not str(block.get("text", "")).strip():
            raise bad(f"system.{at}: text content blocks must be non-empty")
    tools = body.get("tools")
    if tools is not None and not isinstance(tools, list):
        raise bad("tools: Input should be a valid list")
    names: set[str] = set()
    for at, tool in enumerate(tools or []):
        name = tool.get("name") if isinstance(tool, dict) else None
        if not isinstance(name, str) or not name:
            raise bad(f"tools.{at}.name: Field required")
        if name in names:
            raise bad("tools: Tool names must be unique.")
        names.add(name)


def _message(at: int, message: Json, *, last: bool) -> None:
    if not isinstance(message, dict):
        raise bad(f"messages.{at}: Input should be a valid dictionary")
    role, content = message.get("role"), message.get("content")
    if role not in ROLES:
        raise bad(f"messages.{at}.role: Input should be 'user', 'assistant' or 'system'")
    if content is None or not isinstance(content, (str, list)):
        raise bad(f"messages.{at}.content: Field required")
    # a client that compacts leaves a system message without content: it was seen to be taken
    if not content and role != "system" and not (last and role == "assistant"):
        raise bad(
            f"messages.{at}: all messages must have non-empty content "
            "except for the optional final assistant message"
        )
    if isinstance(content, list):
        for n, block in enumerate(content):
            if not isinstance(block, dict) or not isinstance(block.get("type"), str):
                raise bad(f"messages.{at}.content.{n}.type: Field required")
    for n, block in enumerate(blocks_in(content)):
        _block(f"messages.{at}.content.{n}", str(role), block)


def _block(where: str, role: str, block: Object) -> None:
    kind = str(block["type"])
    text = block.get(STRINGS[kind]) if kind in STRINGS else ""
    if not isinstance(text, str):
        raise bad(f"{where}.{kind}.{STRINGS[kind]}: Field required")
    if kind == "text" and role != "assistant" and not text.strip():
        said = "must contain non-whitespace text" if text else "must be non-empty"
        raise bad(f"messages: text content blocks {said}")
    if kind == "thinking" and not isinstance(block.get("signature"), str):
        raise bad(f"{where}.thinking.signature: Field required")
    if kind in ("thinking", "redacted_thinking", "tool_use") and role != "assistant":
        raise bad(f"{where}: `{kind}` blocks can only be in `assistant` messages")
    if kind in ("tool_result", EDITS) and role != "user":
        raise bad(f"{where}: `{kind}` blocks can only be in `user` messages")
    if kind == "tool_use":
        _check_id(where, "tool_use.id", block.get("id"))
        if not isinstance(block.get("input"), dict):
            raise bad(f"{where}.tool_use.input: Input should be a valid dictionary")
    if kind == "tool_result":
        _check_id(where, "tool_result.tool_use_id", block.get("tool_use_id"))


def _check_id(where: str, field: str, value: Json) -> None:
    if not isinstance(value, str) or not ID.match(value):
        raise bad(f"{where}.{field}: String should match pattern '{ID.pattern}'")


def _opens_compacted(message: Object) -> bool:
    return any(b.get("type") == "compaction" for b in blocks_in(message.get("content"))[:1])


def _turns(messages: list[Object]) -> Iterator[tuple[int, str, list[tuple[int, int, Object]]]]:
    """Messages as the model reads them: system ones aside, runs of one role as one."""
    run: list[tuple[int, int, Object]] = []
    role, first = "", 0
    for at, message in enumerate(messages):
        if message["role"] == "system":
            continue
        if message["role"] != role and run:
            yield first, role, run
            run = []
        if not run:
            role, first = str(message["role"]), at
        run += [(at, n, b) for n, b in enumerate(blocks_in(message.get("content")))]
    if run:
        yield first, role, run


def _calls(messages: list[Object]) -> None:
    waiting: list[str] = []
    seen: set[str] = set()
    asked = 0
    for at, role, blocks in _turns(messages):
        if role == "user":
            _results(blocks, waiting, asked)
            waiting = []
            continue
        waiting = [str(b["id"]) for _, _, b in blocks if b["type"] == "tool_use"]
        if len(set(waiting)) < len(waiting) or seen.intersection(waiting):
            raise bad("messages: `tool_use` ids must be unique")
        seen.update(waiting)
        asked = at
    if waiting:
        raise _unanswered_error(asked, waiting)


def _unanswered_error(at: int, calls: list[str]) -> ApiError:
    return bad(
        f"messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately "
        f"after: {', '.join(calls)}. Each `tool_use` block must have a corresponding "
        "`tool_result` block in the next message."
    )


def _results(blocks: list[tuple[int, int, Object]], waiting: list[str], asked: int) -> None:
    """The results of one user turn against the calls before it."""
    got: set[str] = set()
    other = False
    for at, n, block in blocks:
        if block["type"] != "tool_result":
            other = other or block["type"] != EDITS
            continue
        call = str(block["tool_use_id"])
        if call not in waiting:
            raise bad(
                f"messages.{at}.content.{n}: unexpected `tool_use_id` found in `tool_result` "
                f"blocks: {call}. Each `tool_result` block must have a corresponding "
                "`tool_use` block in the previous message."
            )
        if call in got:
            raise bad(
                f"messages.{at}.content.{n}: each tool_use must have a single result. "
                f"Found multiple `tool_result` blocks with id: {call}"
            )
        if other:
            raise _unanswered_error(asked, [call])
        got.add(call)
    missing = [call for call in waiting if call not in got]
    if missing:
        raise _unanswered_error(asked, missing)


def _cache_edits(messages: list[Object]) -> None:
    results: set[str] = set()
    for at, message in enumerate(messages):
        for n, block in enumerate(blocks_in(message.get("content"))):
            if block["type"] == "tool_result":
                results.add(str(block["tool_use_id"]))
            if block["type"] != EDITS:
                continue
            calls = block.get("delete")
            if not isinstance(calls, list) or not calls:
                raise bad(f"messages.{at}.content.{n}.cache_edits.delete: Field required")
            unknown = [str(c) for c in calls if str(c) not in results]
            if unknown:
                raise bad(
                    f"messages.{at}.content.{n}: cache_edits name results that do not stand "
                    f"before them: {', '.join(unknown)}"
                )


def check_marks(body: Object, rules: Profile) -> None:
    """Number, places, lifetimes and order of the cache marks."""
    marks: list[str] = []
    last = ""
    for at, (role, block) in enumerate(flat(body)):
        last = mark_of(block)
        if not last:
            continue
        where = f"{role}, block {at}"
        if last not in LIFETIMES:
            raise bad(f"{where}: cache_control.ttl: Input should be '5m' or '1h'")
        if CONTROL in block and not markable(block):
            raise bad(f"{where}: cache_control cannot be set for this block")
        if rules.longest_first and last == "1h" and "5m" in marks:
            raise bad(
                f"{where}: a ttl='1h' cache_control block must not come after a ttl='5m' "
                "cache_control block. Note that blocks are processed in the following "
                "order: `tools`, `system`, `messages`."
            )
        marks.append(last)
    if isinstance(body.get(CONTROL), dict) and not last:
        top = mark_of({CONTROL: body[CONTROL]})
        if top not in LIFETIMES:
            raise bad("cache_control.ttl: Input should be '5m' or '1h'")
        if rules.longest_first and top == "1h" and "5m" in marks:
            raise bad("cache_control: a ttl='1h' mark must not come after a ttl='5m' one")
        marks.append(top)
    if len(marks) > rules.marks:
        raise bad(
            f"A maximum of {rules.marks} blocks with cache_control may be provided. "
            f"Found {len(marks)}."
        )


# --- What surrounds a conversation: keys, betas, and what keeps caches apart.
#
# Pure functions over headers and bodies. Nothing here remembers a key.


COMPACT_BETA = "compact-2026-09-04"
BINDING_BETA = "thinking-binding-controls-2026-08-01"
BETAS = {"context_management": "context-management-2025-06-27", "compaction": COMPACT_BETA}
ANYBODY: Mapping[str, str] = {"x-api-key": "simulated", "anthropic-version": "2023-06-01"}


def key_of(headers: Mapping[str, str]) -> str:
    bearer = headers.get("authorization", "")
    return headers.get("x-api-key") or bearer.removeprefix("Bearer ").strip()


def betas_of(headers: Mapping[str, str]) -> frozenset[str]:
    return frozenset(b.strip() for b in headers.get("anthropic-beta", "").split(",") if b.strip())


def lowercase_headers(headers: Mapping[str, str]) -> dict[str, str]:
    return {k.lower(): v for k, v in headers.items()}


def needed_betas(body: Object) -> list[str]:
    """The betas a body cannot do without."""
    needed = [beta for name, beta in BETAS.items() if body.get(name) is not None]
    thinking = body.get("thinking")
    if isinstance(thinking, dict) and thinking.get("block_binding") is not None:
        needed.append(BINDING_BETA)
    first = objects(body.get("messages"))[:1]
    blocks = [b for m in first for b in blocks_in(m.get("content"))]
    compacted = any(b.get("type") == "compaction" for b in blocks)
    return [*needed, COMPACT_BETA] if compacted else needed


def check_betas(body: Object, betas: frozenset[str]) -> None:
    for beta in needed_betas(body):
        if beta not in betas:
            named = [name for name, needed in BETAS.items() if needed == beta and name in body]
            where = named[0] if named else "messages" if beta == COMPACT_BETA else "thinking"
            raise bad(f"{where}: Extra inputs are not permitted (needs the beta {beta})")


def options_of(body: Object) -> bytes:
    """Thinking and tool choice: they keep messages apart in the cache."""
    thinking = body.get("thinking")
    kept = thinking if isinstance(thinking, dict) else {}
    kept = {k: v for k, v in kept.items() if k not in ("block_binding", "display")}
    choice = body.get("tool_choice")
    return digest(dump([kept, choice]).encode()) if kept or choice else b""


def salt_of(body: Object, key: str, model: ModelSpec, rules: Profile) -> bytes:
    if not rules.apart:
        return b""
    routed = str(body.get("prompt_cache_key") or "") if rules.caching == "automatic" else ""
    return digest(f"{key}\0{model.id}\0{routed}".encode("utf-8", "surrogatepass"))
