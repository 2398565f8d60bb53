"""Inputs held against a JSON schema of foreign make, by a library: `$ref`, `anyOf`, `pattern`.

A schema says what it likes; what we do with it is bounded. References stay inside the schema, a
pattern is matched in linear time, nesting ends, and so does the number of steps. What cannot be
held so (another kind of pattern, `unevaluated…`) is left to whoever wrote it. The library is an
extra (`mcp`) and loaded where a schema is first needed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from functools import cache, partial
from importlib import import_module
from typing import Any, cast

from reverie.errors import InvalidInput

MAX_TOLD = 8
MAX_STEPS = 20_000
"""Keywords of a schema that one input is held against; each alternative counts."""
_LONG = 200
_left: ContextVar[list[int] | None] = ContextVar("_left", default=None)

Check = Callable[[Mapping[str, Any]], list[str]]


def checker(schema: Mapping[str, Any]) -> Check:
    """What says what is wrong with an input, one sentence each; InvalidInput where the schema
    itself is none."""
    from jsonschema.exceptions import SchemaError

    try:
        _validator().check_schema(schema)
        made: Any = _validator()(dict(schema), registry=_nowhere())
    except (SchemaError, RecursionError) as error:
        raise InvalidInput(f"this is no JSON schema: {str(error)[:_LONG]}") from None

    def check(value: Mapping[str, Any]) -> list[str]:
        before = _left.set([MAX_STEPS])
        try:
            return list(_faults(made, value))
        finally:
            _left.reset(before)

    return check


class _TooMuch(Exception):
    """The schema asks for more than is done for it."""


def _faults(validator: Any, value: Mapping[str, Any]) -> Iterator[str]:
    from referencing.exceptions import Unresolvable

    try:
        for number, error in enumerate(validator.iter_errors(dict(value))):
            if number == MAX_TOLD:
                return
            at = error.json_path.removeprefix("$").lstrip(".")
            text = str(error.message)
            yield f"{at}: {text[:_LONG]}" if at else text[:_LONG]
    except Unresolvable as error:
        yield f"its schema refers to {str(error)[:_LONG]}, which is not in it"
    except RecursionError:
        yield "it is nested too deeply for its schema"
    except (_TooMuch, ArithmeticError):
        yield "its schema asks for more than can be checked"


@cache
def _validator() -> Any:
    from jsonschema import Draft202012Validator, validators

    made: Any = validators
    known: dict[str, Any] = {
        **Draft202012Validator.VALIDATORS,
        "additionalProperties": _additional_properties,
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "unevaluatedItems": _nothing,
        "unevaluatedProperties": _nothing,
        "uniqueItems": _unique_items,
    }
    bounded = {name: partial(_counted, keyword) for name, keyword in known.items()}
    return made.extend(Draft202012Validator, bounded)


def _counted(
    keyword: Any, validator: Any, value: object, instance: object, schema: object
) -> Iterator[Any]:
    left = _left.get()
    if left is not None:
        left[0] -= 1
        if left[0] < 0:
            raise _TooMuch
    yield from keyword(validator, value, instance, schema) or ()


def _nothing(validator: Any, value: object, instance: object, schema: object) -> Iterator[Any]:
    del validator, value, instance, schema
    return iter(())


@cache
def _nowhere() -> Any:
    import referencing

    made: Any = referencing
    return made.Registry()  # knows no other schema and fetches none


def _pattern(validator: Any, pattern: str, instance: object, schema: object) -> Iterator[Any]:
    del schema
    from jsonschema import ValidationError

    if not validator.is_type(instance, "string"):
        return
    found = _compiled(pattern)
    if found is not None and found.search(cast("str", instance)) is None:
        yield ValidationError(f"does not match the pattern {pattern!r}")


def _pattern_properties(
    validator: Any, patterns: Mapping[str, Any], instance: object, schema: object
) -> Iterator[Any]:
    del schema
    if not validator.is_type(instance, "object"):
        return
    for pattern, rule in patterns.items():
        found = _compiled(pattern)
        for name, value in cast("Mapping[str, Any]", instance).items():
            if found is not None and found.search(name) is not None:
                yield from validator.descend(value, rule, path=name, schema_path=pattern)


def _additional_properties(
    validator: Any, rule: object, instance: object, schema: Mapping[str, Any]
) -> Iterator[Any]:
    from jsonschema import ValidationError

    if not validator.is_type(instance, "object"):
        return
    known: Mapping[str, Any] = schema.get("properties", {})
    patterns = [_compiled(one) for one in schema.get("patternProperties", {})]
    for name, value in cast("Mapping[str, Any]", instance).items():
        if name in known or any(one is None or one.search(name) for one in patterns):
            continue
        if rule is False:
            yield ValidationError(f"Additional properties are not allowed ({name!r})")
        else:
            yield from validator.descend(value, rule, path=name)


def _unique_items(
    validator: Any, wanted: object, instance: object, schema: object
) -> Iterator[Any]:
    del schema
    from jsonschema import ValidationError

    if wanted and validator.is_type(instance, "array"):
        items = [json.dumps(one, sort_keys=True) for one in cast("list[object]", instance)]
        if len(set(items)) < len(items):
            yield ValidationError("has items that are not unique")


@cache
def _compiled(pattern: str) -> Any:
    """In linear time; None where the pattern needs more than that."""
    found: Any = import_module("re2")
    options = found.Options()
    options.log_errors = False
    try:
        return found.compile(pattern, options)
    except found.error:
        return None
