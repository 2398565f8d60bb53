"""What surrounds a conversation: keys, betas, and what keeps caches apart.

Pure functions over headers and bodies. Nothing here remembers a key.
"""

from __future__ import annotations

from collections.abc import Mapping

from reverie.simulator.catalogue import ModelSpec
from reverie.simulator.profiles import Profile
from reverie.simulator.prompt import blocks_in, digest, objects
from reverie.simulator.refusals import bad
from reverie.transcript.blocks import Object, dump

COMPACT_BETA = "compact-2026-09-04"
BINDING_BETA = "thinking-binding-controls-2026-08-01"
BETAS = {"context_management": "context-management-2025-06-27", "compaction": COMPACT_BETA}
ANYBODY: Mapping[str, str] = {"x-api-key": "simulated", "anthropic-version": "2023-06-01"}


def key_of(headers: Mapping[str, str]) -> str:
    bearer = headers.get("authorization", "")
    return headers.get("x-api-key") or bearer.removeprefix("Bearer ").strip()


def betas_of(headers: Mapping[str, str]) -> frozenset[str]:
    return frozenset(b.strip() for b in headers.get("anthropic-beta", "").split(",") if b.strip())


def lowered(headers: Mapping[str, str]) -> dict[str, str]:
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
