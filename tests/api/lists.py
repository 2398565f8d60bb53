"""Recorded sessions as callers hold them: lists of messages in three forms."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from reverie.apps.replay import CourseStep, RecordedCourse, of_lines
from reverie.transcript import Block, members, parse, text_of
from reverie.wire import Format

FORMS: tuple[Format, ...] = ("messages", "chat", "responses")
MODELS: Mapping[Format, str] = {
    "messages": "claude-opus-4-8",
    "chat": "gpt-5",
    "responses": "gpt-5",
}
FEW = ("189d8afc", "36ba8a60", "839b35f7")


def courses(shared: Path, *, all_of_them: bool) -> list[RecordedCourse]:
    paths = sorted((shared / "data" / "sessions_dev").glob("*.jsonl.gz"))
    chosen = [p for p in paths if all_of_them or p.name.startswith(FEW)]
    lines = [gzip.decompress(p.read_bytes()).decode().splitlines() for p in chosen]
    found = [of_lines(text, path.name) for text, path in zip(lines, chosen, strict=True)]
    return [course for course in found if course.rounds]


def written(course: RecordedCourse, form: Format) -> list[list[Any]]:
    """The messages of each step, in a form."""
    return [list(_step(step, form)) for step in course.steps]


def _step(step: CourseStep, form: Format) -> Iterator[Any]:
    if form == "messages":
        role = "assistant" if step.role == "assistant" else "user"
        yield {"role": role, "content": [parse(b.raw) for b in step.blocks]}
    elif form == "chat":
        yield from _chat(step)
    else:
        yield from _items(step)


def _chat(step: CourseStep) -> Iterator[Any]:
    texts = [b for b in step.blocks if b.type == "text"]
    if step.role == "assistant":
        calls = [_function(b) for b in step.blocks if b.type == "tool_use"]
        said = "".join(b.get("text") for b in texts)
        yield {
            "role": "assistant",
            "content": said or None,
            **({"tool_calls": calls} if calls else {}),
        }
        return
    for block in step.blocks:
        if block.type == "tool_result":
            text = text_of(block.value.get("content"))
            yield {"role": "tool", "tool_call_id": block.call, "content": text}
    if texts:
        yield {"role": "user", "content": "\n".join(b.get("text") for b in texts)}


def _function(block: Block) -> dict[str, Any]:
    given = {"name": block.get("name"), "arguments": members(block.raw)["input"][0]}
    return {"id": block.call, "type": "function", "function": given}


def _items(step: CourseStep) -> Iterator[Any]:
    for block in step.blocks:
        if block.type == "text":
            kind = "output_text" if step.role == "assistant" else "input_text"
            role = "assistant" if step.role == "assistant" else "user"
            part = {"type": kind, "text": block.get("text")}
            yield {"type": "message", "role": role, "content": [part]}
        elif block.type == "thinking":
            summary = [{"type": "summary_text", "text": block.get("thinking")}]
            yield {"type": "reasoning", "id": f"rs_{len(block.raw)}", "summary": summary}
        elif block.type == "tool_use":
            given = {"name": block.get("name"), "arguments": members(block.raw)["input"][0]}
            yield {"type": "function_call", "call_id": block.call, **given}
        elif block.type == "tool_result":
            text = text_of(block.value.get("content"))
            yield {"type": "function_call_output", "call_id": block.call, "output": text}


def results_of(messages: list[Any], form: Format) -> dict[str, str]:
    """The text of each result, by the id of its call."""
    out: dict[str, str] = {}
    for message in messages:
        if form == "chat" and message["role"] == "tool":
            out[message["tool_call_id"]] = message["content"]
        elif form == "responses" and message.get("type") == "function_call_output":
            out[message["call_id"]] = message["output"]
        elif form == "messages" and isinstance(message["content"], list):
            for part in message["content"]:
                if part["type"] == "tool_result":
                    out[part["tool_use_id"]] = text_of(part["content"])
    return out


def calls_of(messages: list[Any], form: Format) -> list[str]:
    """The ids of calls, in their order."""
    out: list[str] = []
    for message in messages:
        if form == "chat":
            out += [c["id"] for c in message.get("tool_calls") or ()]
        elif form == "responses" and message.get("type") == "function_call":
            out.append(message["call_id"])
        elif form == "messages" and isinstance(message["content"], list):
            out += [p["id"] for p in message["content"] if p["type"] == "tool_use"]
    return out


def call(name: str, form: Format, **given: Any) -> Any:
    """A call of the model's."""
    import json

    if form == "messages":
        return {"type": "tool_use", "id": "toolu_back", "name": name, "input": given}
    if form == "responses":
        text = json.dumps(given)
        return {"type": "function_call", "call_id": "call_back", "name": name, "arguments": text}
    function = {"name": name, "arguments": json.dumps(given)}
    return {"id": "call_back", "type": "function", "function": function}


def answered(result: Any, form: Format) -> str:
    """The text of an answer to such a call."""
    return text_of(result["output" if form == "responses" else "content"])
