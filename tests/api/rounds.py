"""Lists of messages that grow by tool rounds, in three forms."""

from __future__ import annotations

import json
from typing import Any

from reverie.wire import Format


def rounds(
    count: int, form: Format = "chat", *, lines: int = 600, names: str = "build"
) -> list[Any]:
    """A person's words and so many calls with their results."""
    out: list[Any] = [{"role": "user", "content": "Look at the zebra build"}]
    for n in range(count):
        name = names.split()[n % len(names.split())]
        out += one_round(n, name, f"part_{n}.py: line of round {n}\n" * lines, form)
    return out


def one_round(n: int, name: str, text: str, form: Format) -> list[Any]:
    ident, given = f"call_number_{n:03d}", {"n": n}
    if form == "messages":
        use = {"type": "tool_use", "id": ident, "name": name, "input": given}
        result = {"type": "tool_result", "tool_use_id": ident, "content": text}
        return [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
    raw = json.dumps(given)
    if form == "responses":
        call = {"type": "function_call", "call_id": ident, "name": name, "arguments": raw}
        return [call, {"type": "function_call_output", "call_id": ident, "output": text}]
    function = {"name": name, "arguments": raw}
    call = {"id": ident, "type": "function", "function": function}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": ident, "content": text},
    ]


def reader(name: str, form: Format) -> Any:
    """A tool of the caller's own that reads a file."""
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    if form == "messages":
        return {"name": name, "description": "reads", "input_schema": schema}
    about = {"name": name, "description": "reads", "parameters": schema}
    if form == "responses":
        return {"type": "function", **about}
    return {"type": "function", "function": about}
