"""A tool's input against its JSON schema, by a few checks of our own.

Knows types, required and unknown members, enum, minimum and maximum, and lists of one
type; whatever else a schema says is left to the tool. It never changes or guesses a
value: `"5"` is not a number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from reverie.errors import InvalidMessage
from reverie.tools.tool import Input, Schema
from reverie.transcript.blocks import parse

_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


def read(text: str) -> Input:
    """The input of a call from the text the model wrote."""
    value = parse(text.strip() or "{}", "the input")
    if not isinstance(value, dict):
        raise InvalidMessage("the input is not a JSON object")
    return dict(value)


def problems(value: Mapping[str, object], schema: Schema) -> list[str]:
    """What is wrong with an input, one sentence each; empty where it fits."""
    return list(_object(value, schema, ""))


def _object(value: Mapping[str, object], schema: Schema, at: str) -> Iterator[str]:
    known = cast("Mapping[str, Any]", schema.get("properties") or {})
    for name in cast("Sequence[str]", schema.get("required") or ()):
        if name not in value:
            yield f"{at}{name} is missing"
    for name, given in value.items():
        if name in known:
            yield from _value(given, known[name], f"{at}{name}")
        elif schema.get("additionalProperties") is False:
            names = ", ".join(known) or "none"
            yield f"{at}{name[:80]} is not an input of this tool (it has: {names})"


def _value(value: object, schema: object, at: str) -> Iterator[str]:
    if not isinstance(schema, Mapping):
        return
    rule = cast("Mapping[str, Any]", schema)
    wanted = rule.get("type")
    types = [wanted] if isinstance(wanted, str) else cast("list[str]", wanted or [])
    if types and not any(_is(value, name) for name in types):
        yield f"{at} must be {' or '.join(types)}, not {_kind(value)}"
        return
    choices = rule.get("enum")
    if isinstance(choices, list) and value not in choices:
        yield f"{at} must be one of {', '.join(map(str, cast('list[object]', choices)))}"
    yield from _range(value, rule, at)
    if isinstance(value, list):
        for index, item in enumerate(cast("list[object]", value)):
            yield from _value(item, rule.get("items"), f"{at}[{index}]")
    if isinstance(value, dict):
        yield from _object(cast("dict[str, object]", value), rule, f"{at}.")


def _range(value: object, rule: Mapping[str, Any], at: str) -> Iterator[str]:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return
    least, most = rule.get("minimum"), rule.get("maximum")
    if least is not None and value < least:
        yield f"{at} must be at least {least}"
    if most is not None and value > most:
        yield f"{at} must be at most {most}"


def _is(value: object, name: str) -> bool:
    types = _TYPES.get(name)
    if types is None:
        return True
    if isinstance(value, bool):
        return bool in types
    return isinstance(value, types)


def _kind(value: object) -> str:
    for name in ("null", "boolean", "integer", "number", "string", "array", "object"):
        if _is(value, name):
            return name
    return type(value).__name__
