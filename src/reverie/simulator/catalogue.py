"""The models the simulator knows: how large, from how many tokens on they cache.

Sizes and minimums are claims of public documents, kept here in one table so that a
test can hand in another. Nothing here asks anybody.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from reverie.simulator.refusals import ApiError
from reverie.transcript.blocks import Object

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
        spec = self._specs.get(bare) or self._undated(bare)
        if spec is None:
            raise ApiError(404, f"model: {name}", code="", param="model")
        long = name != bare or any(b.startswith("context-1m-") for b in betas)
        return replace(spec, window=MILLION) if long and spec.long_beta else spec

    def _undated(self, name: str) -> ModelSpec | None:
        head, _, date = name.rpartition("-")
        return self._specs.get(head) if len(date) == 8 and date.isdigit() else None

    def listed(self, maker: str) -> list[ModelSpec]:
        return [s for s in self._specs.values() if s.maker == maker]

    def by_name(self) -> Mapping[str, ModelSpec]:
        return self._specs
