"""A client that re-sends its whole history, as real ones do, straight into the engine."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

from reverie.interception import InterceptionEngine, OutgoingRequest
from reverie.wire import as_reply
from reverie.world import Notice
from tests.proxy.proxied import KEY, READ, rules

MARK = {"type": "ephemeral"}
BIG = "\n".join(f"line {n} of a long result" for n in range(1_000))
SESSION = "x-claude-code-session-id"


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def use(ident: str, name: str = "Read", **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": ident, "name": name, "input": given}


def gave(ident: str, content: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": ident, "content": content}


def user(*content: Any) -> dict[str, Any]:
    """A message of the user's: one text as it is, or blocks."""
    return {"role": "user", "content": _content(content)}


def assistant(*content: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": _content(content)}


def _content(content: tuple[Any, ...]) -> Any:
    return content[0] if len(content) == 1 and isinstance(content[0], str) else list(content)


def ran(ident: str, content: Any) -> list[Any]:
    """A call and its result, as a client sends them."""
    return [assistant(use(ident)), user(gave(ident, content))]


class Client:
    """One conversation as Claude Code sends it: marks move, texts become blocks and back."""

    def __init__(
        self, engine: InterceptionEngine, session: str = "s1", *, folder: str = "", **headers: str
    ) -> None:
        self.engine = engine
        self.messages: list[dict[str, Any]] = []
        self.headers = {"x-api-key": KEY, **headers}
        if session:
            self.headers[SESSION] = session
        self.folder = folder
        self.sent: list[dict[str, Any]] = []  # what went up
        self.tools: list[Any] = [READ]
        self.marks = True
        self.calls = 0

    def says(self, text: str) -> Client:
        self.messages.append(user(text))
        return self

    def body(self) -> dict[str, Any]:
        messages = copy.deepcopy(self.messages)
        if self.marks:
            last: Any = messages[-1]
            if isinstance(last["content"], str):
                last["content"] = [text(last["content"])]
            last["content"][-1]["cache_control"] = MARK
        system = [text(f"You help.\nWorking directory: {self.folder}\n")]
        return {
            "model": "claude-sonnet-4-5",
            "max_tokens": 99,
            "messages": messages,
            "system": system,
            "tools": self.tools,
        }

    async def asks(
        self, answer: list[dict[str, Any]] | str | None = "Fine.", **more: Any
    ) -> dict[str, Any]:
        """One request, and its answer; gives the body that went up."""
        out = await self.out({**self.body(), **more})
        if answer is None:
            await self.engine.answered(out, None)
            return self.sent[-1]
        content = [text(answer)] if isinstance(answer, str) else answer
        message = {
            "id": "m",
            "type": "message",
            "role": "assistant",
            "model": "claude-sonnet-4-5",
            "content": content,
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 10, "output_tokens": 2},
        }
        await self.engine.answered(out, as_reply(message))
        self.messages.append(assistant(*content))
        return self.sent[-1]

    async def out(self, body: dict[str, Any]) -> OutgoingRequest:
        out = await self.engine.outgoing("messages", self.headers, json.dumps(body).encode())
        self.sent.append(json.loads(out.body))
        return out

    async def round(self, result: Any = BIG, count: int = 1, **given: Any) -> dict[str, Any]:
        """The model calls a tool, and the client sends the results."""
        begun = self.calls + 1
        self.calls += count
        names = [f"toolu_{self.headers.get(SESSION, '')}_{n}" for n in range(begun, begun + count)]
        calls = [use(name, "Bash", **{"command": "cat a.txt", **given}) for name in names]
        self.messages += [assistant(*calls), user(*(gave(name, result) for name in names))]
        return await self.asks(None)


def unmarked(value: Any) -> Any:
    """What the provider's cache compares: no marks, a text as its one block."""
    if isinstance(value, dict):
        out = {k: unmarked(v) for k, v in value.items() if k != "cache_control"}
        if "role" in out and isinstance(out.get("content"), str):
            out["content"] = [{"type": "text", "text": out["content"]}]
        return out
    return [unmarked(one) for one in value] if isinstance(value, list) else value


def blocks(body: dict[str, Any]) -> list[Any]:
    """All blocks of a body, by role."""
    return [(m["role"], b) for m in unmarked(body["messages"]) for b in m["content"]]


def extends(later: dict[str, Any], earlier: dict[str, Any]) -> bool:
    before = blocks(earlier)
    return blocks(later)[: len(before)] == before


def marks(body: dict[str, Any]) -> int:
    return json.dumps(body).count('"cache_control"')


def result(body: dict[str, Any], at: int = -1) -> str:
    """The content of a result that went up."""
    found = [b for _, b in blocks(body) if b["type"] == "tool_result"]
    return str(found[at]["content"])


def reminders(body: dict[str, Any]) -> list[str]:
    return [
        b["text"]
        for _, b in blocks(body)
        if b["type"] == "text" and b["text"].startswith("<system-reminder>")
    ]


def engine(home: Path, notices: list[Notice] | None = None, **given: Any) -> InterceptionEngine:
    return InterceptionEngine(rules(home, [] if notices is None else notices, **given))
