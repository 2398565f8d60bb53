"""Inputs held against a JSON schema of foreign make, by a library: `$ref`, `anyOf`, `pattern`.

A schema says what it likes; what we do with it is bounded. References stay inside the schema, a
pattern is matched in linear time, nesting ends. A pattern that cannot be matched so is left to
whoever wrote it. The library is an extra (`mcp`) and loaded where a schema is first needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Any, cast

from reverie.errors import InvalidInput

MAX_TOLD = 8
_LONG = 200

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
        return list(_faults(made, value))

    return check


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


@cache
def _validator() -> Any:
    from jsonschema import Draft202012Validator, validators

    made: Any = validators
    return made.extend(
        Draft202012Validator, {"pattern": _pattern, "patternProperties": _pattern_properties}
    )


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
