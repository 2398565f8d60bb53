"""The rules a simulated provider bills by, as values.

`ANTHROPIC` has the rules of the Messages API as far as they are public, `OPENAI` the
automatic caching of OpenAI-style providers, `CACHESIM` those of a plain cache model
with one minimum and its own token estimate. A profile is data and two pure functions;
it holds no state.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, TypeAlias, cast

from reverie.transcript.blocks import Object, estimate

LIFETIMES: Mapping[str, int] = MappingProxyType({"5m": 300, "1h": 3600})
Tokens: TypeAlias = Callable[[Object], int]
CONTROL = "cache_control"


def plain(block: Object) -> Object:
    """A block without its cache mark, nor those of blocks inside a tool result."""
    content = block.get("content")
    nested = isinstance(content, list) and any(
        isinstance(c, dict) and CONTROL in c for c in content
    )
    if CONTROL not in block and not nested:
        return block
    out = {k: v for k, v in block.items() if k != CONTROL}
    if isinstance(content, list):
        out["content"] = [plain(c) if isinstance(c, dict) else c for c in content]
    return out


class Number(float):
    """A float that remembers how it was written."""

    __slots__ = ("text",)

    def __new__(cls, text: str) -> Number:
        new = super().__new__(cls, text)
        new.text = text
        return new

    text: str


def _literal(value: object) -> object:
    """The same value with every float as its text."""
    if isinstance(value, float):
        return {"float": value.text if isinstance(value, Number) else repr(value)}
    if isinstance(value, dict):
        return {k: _literal(v) for k, v in cast("dict[str, object]", value).items()}
    if isinstance(value, list):
        return [_literal(v) for v in cast("list[object]", value)]
    return value


def own_tokens(block: Object) -> int:
    """The project's own estimate: media flat, thinking counted."""
    return estimate(plain(block))


def exact(block: Object) -> bytes:
    """What must be equal for two blocks to be the same to the provider.

    Members that are null or a mark do not count, nor does the order of a block's own
    members; the order inside an input or a schema does.
    """
    body = plain(block)
    kept = {k: body[k] for k in sorted(body) if body[k] is not None}
    if all(isinstance(v, str) for v in kept.values()):  # most blocks, and the longest
        flat = "\0".join(f"{k} {len(str(v))} {v}" for k, v in kept.items())
        return flat.encode("utf-8", "surrogatepass")
    return _encode(_literal(kept), separators=(",", ":"))


def _encode(value: object, *, order: bool = False, separators: tuple[str, str]) -> bytes:
    text = json.dumps(value, sort_keys=order, ensure_ascii=False, separators=separators)
    return text.encode("utf-8", "surrogatepass")


def bench_exact(block: Object) -> bytes:
    """Equal as JSON values, whatever the order."""
    body = {k: v for k, v in block.items() if k != CONTROL}
    return _encode(body, order=True, separators=(", ", ": "))


def _bench_text(text: str) -> int:
    return (len(text.encode("utf-8", "surrogatepass")) + 3) // 4


def _bench_json(value: object) -> int:
    return (len(_encode(value, separators=(", ", ": "))) + 1) // 2


def bench_tokens(block: Object) -> int:
    """Four bytes a token for text, two for JSON, a few for each call and result."""
    kind = block.get("type")
    if kind == "text":
        return _bench_text(str(block["text"]))
    if kind == "tool_result":
        content = block.get("content") or ""
        if isinstance(content, str):
            return _bench_text(content) + 8
        return 8 + sum(bench_tokens(b) for b in cast("list[Object]", content))
    if kind == "tool_use":
        name = str(block.get("name", ""))
        return _bench_json(block.get("input", {})) + _bench_text(name) + 12
    return _bench_json({k: v for k, v in block.items() if k != CONTROL})


@dataclass(frozen=True, slots=True)
class Profile:
    """Which rules hold, and what things cost in units of one input token."""

    name: str
    caching: Literal["marks", "automatic"] = "marks"
    tokens: Tokens = own_tokens
    same: Callable[[Object], bytes] = exact
    minimum: int | None = None  # tokens below which nothing is cached; None: the model's own
    apart: bool = True  # a cache for each key and model, and for thinking and tool choice
    marks: int = 4
    look_back: int = 20
    longest_first: bool = True  # a long lifetime may not stand behind a short one
    step: int = 128  # automatic caching goes in steps of so many tokens
    lifetime: int = 1800  # seconds, of automatic caching
    # thinking is bound to what precedes it, only has to be the model's own, or is not checked
    binding: Literal["prefix", "signature", "none"] = "prefix"
    read: float = 0.1
    write: Mapping[str, float] = field(
        default_factory=lambda: MappingProxyType({"5m": 1.25, "1h": 2.0})
    )
    output: float = 5.0


ANTHROPIC = Profile("anthropic")
OPENAI = Profile(
    "openai",
    caching="automatic",
    minimum=1024,
    binding="signature",
    write=MappingProxyType({"5m": 1.0, "1h": 1.0}),
)
CACHESIM = Profile(
    "cachesim",
    tokens=bench_tokens,
    same=bench_exact,
    minimum=1024,
    apart=False,
    longest_first=False,
    binding="none",
)
PROFILES = {p.name: p for p in (ANTHROPIC, OPENAI, CACHESIM)}
