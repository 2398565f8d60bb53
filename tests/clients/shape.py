"""A client made of the shapes that real ones have: cheap enough for every run of the tests.

What Claude Code was seen to send, and nothing of its words: a billing line and two marked system
blocks, a dozen tools, reminders before the first prompt, a mark on the last block that moves,
texts that are a string without the mark and a list with it, results of parallel calls in one
message, role `system` among the messages of some models, sub-agents with an id of their own. Also
what happens to a history: interrupt, rewind, fork, compaction, a cut stream, another version or
model.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx2

from reverie.simulator import Given, call
from tests.clients.model import Planned, results

OPUS, SONNET = "claude-opus-5-5", "claude-sonnet-4-5"
STORED = "/tool-results/"
BETAS = "claude-code-20250219,context-management-2025-06-27"
ORDER = (
    "Stop working on the task now and call no tool. Write a summary of the conversation so far for"
    " whoever goes on with it. " + "Leave nothing out that the next one needs to know. " * 30
)


def words(key: str, size: int) -> str:
    """Text that looks like a log and is the same for the same key."""
    found, n = [], 0
    length = 0
    while length < size:
        digest = hashlib.sha256(f"{key}{n}".encode()).hexdigest()
        line = (
            f"{n:05d} {key} module_{digest[:6]}.py:{int(digest[6:9], 16)} state={digest[9:17]} ok"
        )
        found.append(line)
        length += len(line) + 1
        n += 1
    return "\n".join(found)[:size]


def gen(key: str, size: int) -> Any:
    """A call whose result has this size."""
    return call("Bash", json.dumps({"command": f"gen {size} {key}"}))


def sub(plan: str) -> Any:
    return call("Agent", json.dumps({"description": "look", "prompt": f"[[{plan}]] look around"}))


def _tools(count: int, version: str) -> list[dict[str, Any]]:
    names = ["Bash", "Read", "Write", "Agent", *(f"Tool{n}" for n in range(20))][:count]
    about = {"type": "string", "description": words("schema", 900)}
    return [
        {
            "name": name,
            "description": f"{version} {words('about ' + name, 1_800)}",
            "input_schema": {
                "type": "object",
                "properties": {"command": about, "file_path": about},
            },
        }
        for name in names
    ]


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


@dataclass
class Shape:
    """One conversation of one process of such a client."""

    url: str
    session: str
    cwd: Path
    model: str = SONNET
    version: str = "2.1.325"
    agent: str = ""
    stream: bool = True
    messages: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    key: str = "sk-ant-fake-0000"
    subs: int = 0
    between: Callable[[int], str] | None = None
    """Called before each prompt; what it says joins the prompt."""
    prompts: int = 0
    statuses: list[int] = field(default_factory=list[int])
    headers: list[dict[str, str]] = field(default_factory=list[dict[str, str]])

    # --- what is sent

    @property
    def reminders(self) -> list[dict[str, Any]]:
        about = words(f"instructions {self.version}", 8_000)
        where = f"Working directory: {self.cwd}\n" if self.model == SONNET else ""
        return [_text(f"<system-reminder>\n{where}{about}\n</system-reminder>")]

    def body(self, **more: Any) -> dict[str, Any]:
        kind = "agent" if self.agent else "main"
        mark = {"cache_control": {"type": "ephemeral"}}
        bill = hashlib.sha256(json.dumps(self.messages[:1]).encode()).hexdigest()[:3]
        system = [
            _text(f"billing: cc_version={self.version}.{bill};"),
            {**_text("You work for a user."), **mark},
            {**_text(f"Working directory: {self.cwd}\n{words('system ' + kind, 22_000)}"), **mark},
        ]
        return {
            "model": self.model,
            "messages": self._marked(),
            "system": system,
            "tools": _tools(8 if self.agent else 12, self.version),
            "metadata": {"user_id": json.dumps({"device_id": "d", "session_id": self.session})},
            "max_tokens": 32_000,
            "stream": self.stream,
            **more,
        }

    def _marked(self, second_to_last: bool = False) -> list[dict[str, Any]]:
        found = copy.deepcopy(self.messages)
        if self.model == OPUS:
            place = f"Working directory: {self.cwd}\n{words('environment', 2_000)}"
            found.insert(1, {"role": "system", "content": place})
        at = len(found) - (2 if second_to_last else 1)
        for n, message in enumerate(found):
            blocks = message["content"]
            if n == at:
                blocks = [_text(blocks)] if isinstance(blocks, str) else blocks
                blocks[-1] = {**blocks[-1], "cache_control": {"type": "ephemeral"}}
            elif len(blocks) == 1 and blocks[0]["type"] == "text":
                blocks = blocks[0]["text"]
            message["content"] = blocks
        return found

    def send(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        """The content of the answer; a cut stream is asked for again, as a whole."""
        headers = {
            "x-api-key": self.key,
            "anthropic-version": "2023-06-01",
            "anthropic-beta": BETAS,
            "user-agent": f"claude-cli/{self.version} (external, sdk-cli)",
            "x-claude-code-session-id": self.session,
            **({"x-claude-code-agent-id": self.agent} if self.agent else {}),
        }
        raw = json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()
        url = f"{self.url}/v1/messages?beta=true"
        try:
            answer = httpx2.post(url, content=raw, headers=headers, timeout=60)
            found = _content(answer)
        except httpx2.HTTPError:
            found = None
            answer = None
        if answer is not None:
            self.statuses.append(answer.status_code)
            self.headers.append(dict(answer.headers))
        if found is None:
            assert body["stream"], "an answer that was no stream was cut"
            return self.send({**body, "stream": False})
        return found

    # --- turns

    def prompt(self, text: str, most: int = 100) -> None:
        """A prompt, and rounds until the model is done; at most so many."""
        self.prompts += 1
        if self.between is not None:
            text = f"{text}\n{self.between(self.prompts)}"
        if not self.messages:
            self.messages.append({"role": "user", "content": [*self.reminders, _text(text)]})
        elif self.messages[-1]["role"] == "user":
            self.messages[-1]["content"].append(_text(text))
        else:
            self.messages.append({"role": "user", "content": [_text(text)]})
        self.go_on(most)

    def go_on(self, most: int = 100) -> None:
        for _ in range(most):
            content = self.send(self.body())
            self.messages.append({"role": "assistant", "content": content})
            calls = [block for block in content if block["type"] == "tool_use"]
            if not calls:
                return
            given = [self.result(block) for block in calls]
            self.messages.append({"role": "user", "content": given})

    def result(self, block: dict[str, Any]) -> dict[str, Any]:
        return {
            "tool_use_id": block["id"],
            "type": "tool_result",
            "content": self._done(block["name"], block["input"]),
        }

    def _done(self, name: str, given: dict[str, Any]) -> str:
        if name == "Read":
            return Path(given["file_path"]).read_text()
        if name == "Agent":
            self.subs += 1
            agent = f"{self.agent or 'a'}{self.subs}"
            inner = Shape(self.url, self.session, self.cwd, self.model, self.version, agent)
            inner.prompt(given["prompt"])
            return str(inner.messages[-1]["content"][0]["text"])
        _, size, key = given["command"].split(" ", 2)
        return words(key, int(size))

    # --- what happens to a history

    def interrupt(self) -> None:
        """A notice joins the message of the results; the next prompt will too."""
        assert self.messages[-1]["role"] == "user"
        self.messages[-1]["content"].append(_text("[Request interrupted by user for tool use]"))

    def rewind(self, messages: int) -> None:
        del self.messages[messages:]

    def fork(self, session: str) -> Shape:
        return replace(self, session=session, messages=copy.deepcopy(self.messages))

    def compact(self) -> None:
        """A summary in the place of all but the last round, which stays as it is."""
        body = self.body()
        order = {"role": "user", "content": [_text(ORDER)]}
        if self.messages[-1]["role"] == "user":
            kept = self._marked(second_to_last=True)
            last = kept[-1]["content"]
            kept[-1]["content"] = [_text(last)] if isinstance(last, str) else last
            kept[-1]["content"].append(_text(ORDER))
        else:
            kept = [*self._marked(), order]
        summary = self.send({**body, "messages": kept})[0]["text"]
        tail = self._last_round()
        first = _text("This session goes on from an earlier one.\n" + str(summary))
        self.messages = [{"role": "user", "content": [*self.reminders, first]}, *tail]

    def _last_round(self) -> list[dict[str, Any]]:
        for at in range(len(self.messages) - 2, 0, -1):
            blocks = self.messages[at]["content"]
            if self.messages[at]["role"] == "assistant" and blocks[-1]["type"] == "tool_use":
                return self.messages[at:]
        return []


def _content(answer: httpx2.Response) -> list[dict[str, Any]] | None:
    """The blocks of an answer; None where a stream did not come to its end."""
    if "event-stream" not in answer.headers.get("content-type", ""):
        assert answer.status_code == 200, answer.text[:500]
        return answer.json()["content"]
    blocks: list[dict[str, Any]] = []
    inputs: dict[int, str] = {}
    ended = False
    for event in _events(answer.text):
        kind = event["type"]
        if kind == "content_block_start":
            blocks.append(dict(event["content_block"]))
        elif kind == "content_block_delta":
            delta, block = event["delta"], blocks[event["index"]]
            if delta["type"] == "input_json_delta":
                inputs[event["index"]] = inputs.get(event["index"], "") + delta["partial_json"]
            for name in ("text", "thinking", "signature"):
                if delta["type"].startswith(name):
                    block[name] = block.get(name, "") + delta[name]
        elif kind == "message_stop":
            ended = True
    for index, raw in inputs.items():
        blocks[index]["input"] = json.loads(raw) if ended else {}
    return blocks if ended else None


def _events(text: str) -> Iterator[dict[str, Any]]:
    for piece in text.split("\n\n"):
        for line in piece.splitlines():
            if line.startswith("data: "):
                yield json.loads(line[6:])


class ReadingBack(Planned):
    """A model that reads one stored result in four again, as soon as it sees that it was stored."""

    def __init__(self, plans: Any, every: int = 4) -> None:
        super().__init__(plans)
        self.every = every
        self.seen: list[str] = []
        self.read: list[str] = []

    def __call__(self, body: Any) -> Given:
        for text in results(body):
            path = stored_path(text)
            if path and path not in self.seen:
                self.seen.append(path)
                if len(self.seen) % self.every == 0:
                    self.read.append(path)
                    return [call("Read", json.dumps({"file_path": path}))]
        return super().__call__(_without_read_backs(body))


def stored_path(text: str) -> str:
    """Where a result was stored, if it was: what a reader would take for the path."""
    at = text.find(STORED)
    if at < 0:
        return ""
    start = max(text.rfind(sign, 0, at) for sign in " \n\"'`(:") + 1
    end = min(n for sign in " \n\"'`)>" if (n := text.find(sign, at)) > 0)
    return text[start:end].rstrip(".,;")


def _without_read_backs(body: dict[str, Any]) -> dict[str, Any]:
    """The conversation without those rounds, so that a plan's steps are counted as before."""
    gone = {
        block["id"]
        for message in body["messages"]
        for block in (message["content"] if isinstance(message["content"], list) else ())
        if block.get("type") == "tool_use"
        and STORED in str(block.get("input", {}).get("file_path"))
    }
    kept = []
    for message in body["messages"]:
        if not isinstance(message["content"], list):
            kept.append(message)
            continue
        blocks = [
            b for b in message["content"]
            if b.get("id") not in gone and b.get("tool_use_id") not in gone
        ]  # fmt: skip
        if blocks:
            kept.append({**message, "content": blocks})
    return {**body, "messages": kept}
