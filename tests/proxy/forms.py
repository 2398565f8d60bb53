"""One conversation in the three forms that clients speak: calls made at once, and their results."""

from __future__ import annotations

import json
from typing import Any

from tests.proxy.clients import assistant, gave, use, user

Call = tuple[str, dict[str, Any], Any]  # a tool, what it is given, what it gives


def offered(form: str, name: str) -> dict[str, Any]:
    plain = {"name": name, "description": "d"}
    schema = {"type": "object", "properties": {}}
    if form == "messages":
        return {**plain, "input_schema": schema}
    if form == "chat":
        return {"type": "function", "function": {**plain, "parameters": schema}}
    return {"type": "function", **plain, "parameters": schema}


def conversation(form: str, calls: list[Call]) -> list[Any]:
    """A prompt, calls made at once, and their results."""
    uses: list[Any] = []
    got: list[Any] = []
    for n, (tool, given, result) in enumerate(calls):
        ident, arguments = f"call_{n}", json.dumps(given)
        if form == "messages":
            uses.append(use(ident, tool, **given))
            got.append(gave(ident, result))
        elif form == "chat":
            function = {"name": tool, "arguments": arguments}
            uses.append({"id": ident, "type": "function", "function": function})
            got.append({"role": "tool", "tool_call_id": ident, "content": result})
        else:
            call = {"type": "function_call", "call_id": ident, "name": tool}
            uses.append({**call, "arguments": arguments})
            got.append({"type": "function_call_output", "call_id": ident, "output": result})
    prompt = user("Read them, please")
    if form == "messages":
        return [prompt, assistant(*uses), user(*got)]
    if form == "chat":
        return [prompt, {"role": "assistant", "content": None, "tool_calls": uses}, *got]
    return [prompt, *uses, *got]


def results(form: str, messages: list[Any]) -> list[str]:
    found: list[Any] = []
    for one in messages:
        if form == "messages" and isinstance(one["content"], list):
            found += [b["content"] for b in one["content"] if b["type"] == "tool_result"]
        elif one.get("role") == "tool" or one.get("type") == "function_call_output":
            found.append(one["content" if form == "chat" else "output"])
    return [one if isinstance(one, str) else one[0]["text"] for one in found]


def asking(form: str, calls: list[Call], model: str) -> dict[str, Any]:
    """The body of a request that brings the results of these calls."""
    key = "input" if form == "responses" else "messages"
    body: dict[str, Any] = {"model": model, key: conversation(form, calls)}
    names = dict.fromkeys(("Bash", *(tool for tool, _, _ in calls)))
    body["tools"] = [offered(form, name) for name in names]
    return body | ({"max_tokens": 99} if form == "messages" else {})
