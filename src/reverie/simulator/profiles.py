"""Models, billing rules and refusals, as values.

The rules a simulated provider bills by, as values.

`ANTHROPIC` has the rules of the Messages API as far as they are public, `OPENAI` the
automatic caching of OpenAI-style providers, `CACHESIM` those of a plain cache model
with one minimum and its own token estimate. A profile is data and two pure functions;
it holds no state.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal, TypeAlias, cast

from reverie.errors import ProviderError
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


class LiteralNumber(float):
    """A float that remembers how it was written."""

    __slots__ = ("text",)

    def __new__(cls, text: str) -> LiteralNumber:
        new = super().__new__(cls, text)
        new.text = text
        return new

    text: str


def _literal(value: object) -> object:
    """The same value with every float as its text."""
    if isinstance(value, float):
        return {"float": value.text if isinstance(value, LiteralNumber) else repr(value)}
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


# --- The models the simulator knows: how large, from how many tokens on they cache.
#
# Sizes and minimums are claims of public documents, kept here in one table so that a test can hand
# in another. Nothing here asks anybody.


CREATED = "2026-10-21T00:00:00Z"
MILLION = 1_000_000
LONG_SUFFIX = "[1m]"


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """One model of the catalogue."""

    id: str
    maker: Literal["anthropic", "openai"] = "anthropic"
    window: int = MILLION
    output: int = 128_000
    minimum: int = 1024
    compaction: bool = True
    long_beta: bool = False  # a beta header makes the window a million

    def info(self) -> Object:
        """As `/v1/models` of Anthropic shows it."""
        yes: Object = {"supported": True}
        no: Object = {"supported": False}
        effort: Object = dict.fromkeys(("high", "low", "max", "medium", "xhigh"), yes)
        types: Object = {"adaptive": yes, "between_tools": no, "disabled": yes, "enabled": yes}
        return {
            "type": "model",
            "id": self.id,
            "display_name": self.id.replace("-", " ").title(),
            "created_at": CREATED,
            "lifecycle": "active",
            "max_input_tokens": self.window,
            "max_tokens": self.output,
            "capabilities": {
                "batch": no,
                "citations": no,
                "code_execution": no,
                "compaction": {
                    "supported": self.compaction,
                    "summarize": {"supported": self.compaction},
                },
                "context_management": {
                    "supported": True,
                    "clear_tool_uses_20250919": yes,
                    "clear_thinking_20251015": yes,
                    "compact_20260112": no,
                },
                "effort": {"supported": True, **effort},
                "image_input": yes,
                "pdf_input": yes,
                "server_tools": {"supported": False, "code_execution": no, "web_search": no},
                "structured_outputs": no,
                "thinking": {"supported": True, "types": types},
            },
        }

    def openai_info(self) -> Object:
        """As `/v1/models` of OpenAI shows it."""
        return {"id": self.id, "object": "model", "created": 1_792_540_800, "owned_by": self.maker}


def _claude(names: str, **other: int | bool) -> list[ModelSpec]:
    return [replace(ModelSpec("claude-" + name), **other) for name in names.split()]


def _openai(names: str) -> list[ModelSpec]:
    return [ModelSpec(name, "openai", 400_000, 128_000, 1024, False) for name in names.split()]


CATALOGUE: tuple[ModelSpec, ...] = (
    *_claude("fable-5-2 fable-5-1 fable-5 mythos-5-2 mythos-5-1 mythos-5", minimum=512),
    *_claude("mythos-preview", minimum=512),
    *_claude("opus-5-5 opus-5", minimum=512),
    *_claude("opus-4-8"),
    *_claude("opus-4-7", minimum=2048),
    *_claude("opus-4-6", minimum=4096),
    *_claude("opus-4-5", minimum=4096, window=200_000, output=64_000, compaction=False),
    *_claude("sonnet-5-5 sonnet-5 sonnet-4-6"),
    *_claude("sonnet-4-5", window=200_000, output=64_000, compaction=False, long_beta=True),
    *_claude("haiku-5-5"),
    *_claude("haiku-4-5", minimum=4096, window=200_000, output=64_000, compaction=False),
    *_openai("gpt-5.6 gpt-5.5 gpt-5 gpt-5-mini gpt-5-codex"),
)


class Models:
    """The models one engine serves."""

    def __init__(self, specs: Iterable[ModelSpec] = CATALOGUE) -> None:
        self._specs = {s.id: s for s in specs}

    def add(self, spec: ModelSpec) -> None:
        self._specs[spec.id] = spec

    def find(self, name: str, betas: Iterable[str] = ()) -> ModelSpec:
        """The model of that name, dated or with `[1m]` too; else a 404."""
        bare = name.removesuffix(LONG_SUFFIX)
        spec = self._specs.get(bare) or self._find_undated(bare)
        if spec is None:
            raise ApiError(404, f"model: {name}", code="", param="model")
        long = name != bare or any(b.startswith("context-1m-") for b in betas)
        return replace(spec, window=MILLION) if long and spec.long_beta else spec

    def _find_undated(self, name: str) -> ModelSpec | None:
        head, _, date = name.rpartition("-")
        return self._specs.get(head) if len(date) == 8 and date.isdigit() else None

    def listed(self, maker: str) -> list[ModelSpec]:
        return [s for s in self._specs.values() if s.maker == maker]

    def by_name(self) -> Mapping[str, ModelSpec]:
        return self._specs


# --- What the simulated provider answers when it refuses.
#
# An `ApiError` has the status, type and text a client sees on the wire; each wire format puts it
# into its own envelope. It is a `ProviderError`, so in-process callers meet the same tree as
# everywhere. Nothing here decides when to refuse.


TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    405: "invalid_request_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    503: "api_error",
    529: "overloaded_error",
}
WORDS = {
    429: "This request would exceed your rate limit. Please try again later.",
    500: "Internal server error",
    529: "Overloaded",
}


class ApiError(ProviderError, code="api_error"):
    """The simulated provider refused; `status` and `kind` are those of the wire."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        kind: str = "",
        code: str = "",
        param: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message, where=f"{status} {kind or TYPES.get(status, 'api_error')}")
        self.status = status
        self.kind = kind or TYPES.get(status, "api_error")
        self.message = message
        self.wire_code = code
        self.param = param
        self.headers = dict(headers or {})

    def body(self, request_id: str = "") -> Object:
        """The envelope of the Messages API."""
        error: Object = {"type": self.kind, "message": self.message}
        if self.wire_code:
            error["details"] = {"error_code": self.wire_code}
        return {"type": "error", "error": error, "request_id": request_id or None}


class TooLong(ApiError, code="too_long"):
    """The prompt is over the model's window."""

    def __init__(self, needed: int, allowed: int) -> None:
        super().__init__(400, f"prompt is too long: {needed} tokens > {allowed} maximum")
        self.needed = needed
        self.allowed = allowed


def bad(message: str, *, code: str = "", param: str = "") -> ApiError:
    """A request that is wrong in itself."""
    return ApiError(400, message, code=code, param=param)
