"""A caller's tools, and what they are for: told by `roles=`, else guessed from names and schemas.

No role is needed for memory to work. They say which results can be had again, which tool reads
files, and by which tool the model reads back what left the context.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, cast, get_args

from reverie.errors import InvalidInput
from reverie.tools.toolset import Toolset
from reverie.wire.forms import tool_name
from reverie.wire.reading import value_of

Role: TypeAlias = Literal["read", "write", "edit", "shell", "search", "read_back", "remember"]
ROLES: tuple[Role, ...] = get_args(Role)
REPEATABLE = frozenset({"read", "write", "edit", "shell", "search"})
_KNOWN: Mapping[Role, str] = {
    "read": "read readfile cat openfile viewfile getfile",
    "write": "write writefile createfile savefile",
    "edit": "edit editfile multiedit strreplace applypatch",
    "shell": "bash shell sh runcommand runshell terminal",
    "search": "grep glob searchfiles findfiles listfiles ls",
    "read_back": "readback",
    "remember": "remember",
}
_NAMES: Mapping[str, Role] = {name: role for role in ROLES for name in _KNOWN[role].split()}
_PATHS = frozenset({"path", "file_path", "filepath", "filename"})
_CONTENTS = frozenset({"content", "contents", "text", "data"})


def roles_of(
    tools: Iterable[Mapping[str, Any]], given: Mapping[str, str] | None
) -> dict[str, Role]:
    """The role of each tool that has one, by its name."""
    offered = {tool_name(tool): tool for tool in tools}
    for name, role in (given or {}).items():
        if role not in ROLES:
            do = f"It is one of {', '.join(ROLES)}"
            raise InvalidInput("there is no such role", where=f"{name}: {role}", do=do)
        if name not in offered:
            do = "Give it among tools= as well"
            raise InvalidInput("a role is given to a tool that is not offered", where=name, do=do)
    found: dict[str, Role] = {}
    for name, tool in offered.items():
        role = _guess(name, tool)
        if role is not None:
            found[name] = role
    return {**found, **cast("Mapping[str, Role]", given or {})}


def _guess(name: str, tool: Mapping[str, Any]) -> Role | None:
    known = _NAMES.get(re.sub(r"[^a-z]", "", name.lower()))
    if known is not None:
        return known
    fields = _properties(tool)
    if not fields & _PATHS:
        return None
    if fields & _CONTENTS:
        return "write"
    return "read" if len(fields - _PATHS) <= 2 and "old_string" not in fields else None


def _properties(tool: Mapping[str, Any]) -> frozenset[str]:
    about: Any = tool.get("function") or tool
    schema: Any = about.get("input_schema") or about.get("parameters") or {}
    return frozenset(map(str, schema.get("properties") or ()))


# --- the tools themselves


def flat(tools: Sequence[object] | Toolset) -> list[object]:
    """Tools one by one; a `Toolset` stands for those in it."""
    if isinstance(tools, Toolset):
        return list(tools.anthropic())
    return [one for tool in tools for one in (flat(tool) if isinstance(tool, Toolset) else [tool])]


def described(tool: object) -> dict[str, Any]:
    """A tool as a session keeps it, whichever API it was described for."""
    value = value_of(tool)
    if value.get("type") != "function":
        return value
    about = cast("dict[str, Any]", value.get("function") or value)
    made: dict[str, Any] = {"name": about.get("name")}
    if about.get("description"):
        made["description"] = about["description"]
    made["input_schema"] = about.get("parameters") or {"type": "object", "properties": {}}
    return {**made, "strict": True} if about.get("strict") is True else made
