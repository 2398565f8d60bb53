"""A tool session driven through a provider, and the same from a new process.

`python -m tests.providers.sessions` takes a job as JSON on its standard input (provider,
address, model, the transcript's lines and their blobs) and sends the transcript's next
request; it prints the usage.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass, field

import anyio

from reverie.providers import AnthropicModel, OpenAIModel, model_for
from reverie.testing import ManualClock
from reverie.transcript import (
    EMPTY,
    Entry,
    HeadSet,
    Record,
    Sent,
    UserMessage,
    View,
    apply,
    blobs,
    blocks_of,
    decode,
    dump,
    encode,
    fold_entries,
)
from reverie.wire import Reply, render
from reverie.world import complete

WORDS = "The quick brown fox jumps over the lazy dog while it rains. "


def head(model: str) -> HeadSet:
    return HeadSet(
        model,
        dump([{"type": "text", "text": "Rules. " + WORDS * 200}]),
        dump(
            [
                {
                    "name": "Read",
                    "description": WORDS * 20,
                    "input_schema": {"type": "object", "properties": {"n": {"type": "number"}}},
                }
            ]
        ),
        "[]",
        '{"max_tokens":1000}',
    )


def built(
    provider: str, url: str, model: str, clock: ManualClock | None = None
) -> AnthropicModel | OpenAIModel:
    """The model, as a session would choose it."""
    environ = {
        "ANTHROPIC_API_KEY": "sk-test",
        "ANTHROPIC_BASE_URL": url,
        "OPENAI_API_KEY": "sk-test",
        "OPENAI_BASE_URL": f"{url}/v1",
    }
    clock = clock or ManualClock()
    found = model_for(f"{provider}:{model}", environ, clock=clock, chance=lambda: 0.0)
    assert found is not None
    return found


@dataclass
class Live:
    """A session in hand: its entries, and the view they fold to."""

    model: AnthropicModel | OpenAIModel
    view: View = EMPTY
    entries: list[Entry] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)

    def add(self, record: Record) -> None:
        entry = Entry(f"e{len(self.entries)}", self.view.leaf, float(len(self.entries)), record)
        self.entries.append(entry)
        self.view = apply(self.view, entry)

    async def round(self) -> Reply:
        request = render(self.view)
        self.add(Sent("main", self.view.leaf, request.parts(), request.marks))
        reply = await complete(self.model, request)
        self.add(reply.record())
        self.replies.append(reply)
        return reply

    async def run(self, rounds: int, size: int) -> None:
        """So many rounds, each with a call whose result has `size` characters."""
        self.add(head(self.model.name))
        self.add(UserMessage(blocks_of("Read all the files.")))
        for n in range(rounds):
            reply = await self.round()
            results = [
                {
                    "type": "tool_result",
                    "tool_use_id": call.id,
                    "content": f"file {n}: " + (WORDS * (size // len(WORDS) + 1))[:size],
                }
                for call in reply.tool_calls
            ]
            self.add(UserMessage(blocks_of(results or "Go on.")))

    def job(self, provider: str, url: str) -> str:
        """What a new process needs to go on."""
        texts: dict[str, str] = {}
        for entry in self.entries:
            texts.update(blobs(entry.record))
        lines = [encode(entry) for entry in self.entries]
        return json.dumps(
            {"provider": provider, "url": url, "model": self.model.name, "lines": lines,
             "blobs": texts}
        )  # fmt: skip


async def resume(job: dict[str, object]) -> dict[str, int]:
    lines, texts = job["lines"], job["blobs"]
    assert isinstance(lines, list)
    assert isinstance(texts, dict)
    view = fold_entries([decode(line, texts.get) for line in lines])
    model = built(str(job["provider"]), str(job["url"]), str(job["model"]))
    reply = await complete(model, render(view))
    await model.aclose()
    assert reply.usage is not None
    return asdict(reply.usage)


if __name__ == "__main__":
    print(json.dumps(anyio.run(resume, json.load(sys.stdin))))
