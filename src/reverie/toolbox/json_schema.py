"""Inputs checked against a JSON schema: those of our tools and those of other programs.

Nothing changes or guesses a value: `"5"` is not a number, `5.0` is not an integer. A schema says
what it likes; the work done for it is bounded. References stay inside the schema, a pattern is
matched in linear time, nesting and the number of steps end. Formats, `unevaluated…`, dynamic
references and patterns of another kind are left to the author of the schema.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from importlib import import_module
from itertools import islice
from typing import Any, cast

from reverie.errors import InvalidInput

MAX_TOLD = 8
MAX_STEPS = 20_000
"""Values and rules that one input is compared with; each alternative counts."""
_DEEPEST = 100
_LONG = 280

Check = Callable[[Mapping[str, Any]], list[str]]

_TYPES: Mapping[str, tuple[type, ...]] = {
    "null": (type(None),),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "string": (str,),
    "array": (list,),
    "object": (dict,),
}
_RULE: Mapping[str, Any] = {"$ref": "#"}
_RULES: Mapping[str, Any] = {"type": "array", "items": _RULE}
_MAP: Mapping[str, Any] = {"type": "object", "additionalProperties": _RULE}
_NAMES: Mapping[str, Any] = {"type": "array", "items": {"type": "string"}}
_SHAPES: Mapping[str, Mapping[str, Any]] = {
    "additionalProperties contains else if not propertyNames then": _RULE,
    "allOf anyOf oneOf prefixItems": _RULES,
    "items": {"anyOf": [_RULE, _RULES]},  # a list in older drafts
    "$defs definitions dependentSchemas patternProperties properties": _MAP,
    "exclusiveMaximum exclusiveMinimum maximum minimum multipleOf": {"type": "number"},
    "maxItems maxLength maxProperties minItems minLength minProperties": {"type": "integer"},
    "maxContains minContains": {"type": "integer"},
    "required": _NAMES,
    "dependentRequired": {"type": "object", "additionalProperties": _NAMES},
    "enum": {"type": "array"},
    "$ref pattern": {"type": "string"},
    "type": {"anyOf": [{"enum": [*_TYPES]}, {"type": "array", "items": {"enum": [*_TYPES]}}]},
}
_SCHEMA: Mapping[str, Any] = {
    "type": ["object", "boolean"],
    "properties": {name: shape for names, shape in _SHAPES.items() for name in names.split()},
}
"""What a schema looks like, as a schema."""


def checker(schema: Mapping[str, Any]) -> Check:
    """Return what names the problems of an input; InvalidInput where the schema itself is wrong."""
    for wrong in problems(schema, _SCHEMA):
        raise InvalidInput(f"This is not a JSON schema: {wrong}")
    return partial(problems, schema=schema)


def problems(value: Mapping[str, object], schema: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with an input, one sentence each; empty where it fits."""
    walk = _Comparison(schema)
    found: list[str] = []
    try:
        found += islice((text[:_LONG] for text in walk.check(value, schema, "")), MAX_TOLD)
    except (_TooDeep, RecursionError):
        found.append("it is nested too deeply for its schema")
    except (_TooMuch, ArithmeticError):
        found.append("its schema asks for more than can be checked")
    return found


class _TooMuch(Exception):
    """The schema asks for more steps than are taken for it."""


class _TooDeep(Exception):
    """The schema or the value is nested more deeply than is followed."""


class _Comparison:
    """One input held against one schema."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._left = MAX_STEPS
        self._depth = 0

    def check(self, value: object, rule: object, at: str) -> Iterator[str]:
        self._left -= 1
        if self._left < 0:
            raise _TooMuch
        if self._depth >= _DEEPEST:
            raise _TooDeep
        self._depth += 1
        if rule is False:
            yield f"{at or 'the input'} is not allowed"
        elif isinstance(rule, Mapping):
            yield from self._all(value, cast("Mapping[str, Any]", rule), at)
        self._depth -= 1

    def _fits(self, value: object, rule: object) -> bool:
        depth = self._depth
        fits = next(self.check(value, rule, ""), None) is None
        self._depth = depth  # a generator left halfway counts nothing down
        return fits

    def _all(self, value: object, rule: Mapping[str, Any], at: str) -> Iterator[str]:
        name = at or "the input"
        wanted = rule.get("type")
        types = [wanted] if isinstance(wanted, str) else cast("list[str]", wanted or [])
        if types and not any(_is(value, one) for one in types):
            yield f"{name} must be {' or '.join(types)}, not {_kind(value)}"
            return
        choices = [rule["const"]] if "const" in rule else rule.get("enum")
        if isinstance(choices, list) and _key(value) not in map(_key, cast("list[Any]", choices)):
            yield f"{name} must be one of {', '.join(map(str, cast('list[object]', choices)))}"
        yield from self._combined(value, rule, at)
        if isinstance(value, dict):
            yield from self._object(cast("dict[str, object]", value), rule, at)
        elif isinstance(value, list):
            yield from self._list(cast("list[object]", value), rule, at)
        elif isinstance(value, str):
            yield from _size(len(value), rule, "Length", f"{name} must have", "characters")
            if (found := _compile(rule.get("pattern"))) and found.search(value) is None:
                yield f"{name} does not match the pattern {rule['pattern']!r}"
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield from _range(value, rule, name)

    def _combined(self, value: object, rule: Mapping[str, Any], at: str) -> Iterator[str]:
        name = at or "the input"
        if isinstance(ref := rule.get("$ref"), str):
            found, target = self._resolve(ref)
            if found:
                yield from self.check(value, target, at)
            else:
                yield f"{name}: its schema refers to {ref}, which is not in it"
        for one in rule.get("allOf") or ():
            yield from self.check(value, one, at)
        if (several := rule.get("anyOf")) and not any(self._fits(value, one) for one in several):
            yield f"{name} fits none of the {len(several)} forms that it may have"
        if several := rule.get("oneOf"):
            fitting = sum(self._fits(value, one) for one in several)
            if fitting != 1:
                yield f"{name} fits {fitting} of the {len(several)} forms, and must fit one"
        if "not" in rule and self._fits(value, rule["not"]):
            yield f"{name} has a form that it must not have"
        if "if" in rule:
            branch = "then" if self._fits(value, rule["if"]) else "else"
            yield from self.check(value, rule.get(branch, True), at)

    def _resolve(self, ref: str) -> tuple[bool, object]:
        """Whether a reference leads to a place in the schema, and what is there."""
        here: Any = self._root
        start, _, path = ref.partition("#")
        for part in path.split("/")[1:] if path else ():
            key = part.replace("~1", "/").replace("~0", "~")
            if isinstance(here, list) and key.isdecimal() and int(key) < len(cast("Any", here)):
                here = cast("list[Any]", here)[int(key)]
            elif isinstance(here, Mapping) and key in here:
                here = cast("Any", here)[key]
            else:
                return False, None
        return not start and path[:1] in ("", "/"), here

    def _list(self, value: list[object], rule: Mapping[str, Any], at: str) -> Iterator[str]:
        name, items = at or "the input", rule.get("items", True)
        yield from _size(len(value), rule, "Items", f"{name} must have", "items")
        first: Sequence[object] = rule.get("prefixItems") or ()
        if isinstance(items, list):  # as older drafts write it
            first, items = cast("list[object]", items), rule.get("additionalItems", True)
        for index, item in enumerate(value):
            one = first[index] if index < len(first) else items
            if one is not True:
                yield from self.check(item, one, f"{at}[{index}]")
        if "contains" in rule:
            fitting = sum(self._fits(item, rule["contains"]) for item in value)
            yield from _size(
                fitting, {"minContains": 1, **rule}, "Contains", f"{name} must have", "such items"
            )
        if rule.get("uniqueItems") is True and len({_key(item) for item in value}) < len(value):
            yield f"{name} has items that are not unique"

    def _object(self, value: dict[str, object], rule: Mapping[str, Any], at: str) -> Iterator[str]:
        prefix = f"{at}." if at else ""
        for name in cast("Sequence[str]", rule.get("required") or ()):
            if name not in value:
                yield f"{prefix}{name} is missing"
        for name, others in _members(rule, "dependentRequired"):
            for other in others if name in value else ():
                if other not in value:
                    yield f"{prefix}{other} is missing, which {name} needs"
        for name, one in _members(rule, "dependentSchemas"):
            if name in value:
                yield from self.check(value, one, at)
        start = f"{at or 'the input'} must have"
        yield from _size(len(value), rule, "Properties", start, "members")
        for name, given in value.items():
            yield from self._member(name, given, rule, f"{prefix}{name[:80]}")

    def _member(
        self, name: str, given: object, rule: Mapping[str, Any], place: str
    ) -> Iterator[str]:
        known = cast("Mapping[str, Any]", rule.get("properties") or {})
        other = rule.get("additionalProperties", True)
        patterns = [(_compile(one), inner) for one, inner in _members(rule, "patternProperties")]
        fitting = [inner for one, inner in patterns if one is not None and one.search(name)]
        for one in (*([known[name]] if name in known else ()), *fitting):
            yield from self.check(given, one, place)
        if name not in known and not fitting and all(one is not None for one, _ in patterns):
            if other is False:
                names = ", ".join(known) or "none"
                yield f"{place} is not an input of this tool (it has: {names})"
            else:
                yield from self.check(given, other, place)
        if "propertyNames" in rule and not self._fits(name, rule["propertyNames"]):
            yield f"{place} has a name that it must not have"


def _members(rule: Mapping[str, Any], name: str) -> Iterable[tuple[str, Any]]:
    return cast("Mapping[str, Any]", rule.get(name) or {}).items()


def _size(size: int, rule: Mapping[str, Any], kind: str, start: str, things: str) -> Iterator[str]:
    least, most = rule.get(f"min{kind}"), rule.get(f"max{kind}")
    if least is not None and size < least:
        yield f"{start} at least {least} {things}"
    if most is not None and size > most:
        yield f"{start} at most {most} {things}"


def _range(value: float, rule: Mapping[str, Any], name: str) -> Iterator[str]:
    least, most, step = rule.get("minimum"), rule.get("maximum"), rule.get("multipleOf")
    above, below = rule.get("exclusiveMinimum"), rule.get("exclusiveMaximum")
    if least is not None and value < least:
        yield f"{name} must be at least {least}"
    if most is not None and value > most:
        yield f"{name} must be at most {most}"
    if above is not None and value <= above:
        yield f"{name} must be more than {above}"
    if below is not None and value >= below:
        yield f"{name} must be less than {below}"
    if step is not None:
        whole = isinstance(value, int) and isinstance(step, int)
        rest = value % step if whole else value / step - round(value / step)
        if abs(rest) > 1e-9:
            yield f"{name} must be a multiple of {step}"


def _is(value: object, name: str) -> bool:
    types = _TYPES.get(name)
    if types is None:
        return True
    if isinstance(value, bool):
        return bool in types
    return isinstance(value, types)


def _kind(value: object) -> str:
    return next((name for name in _TYPES if _is(value, name)), type(value).__name__)


def _key(value: object) -> object:
    """A value as JSON compares it: 1 is 1.0, and true is neither."""
    if isinstance(value, dict):
        return frozenset((name, _key(one)) for name, one in cast("dict[str, Any]", value).items())
    if isinstance(value, list):
        return tuple(map(_key, cast("list[Any]", value)))
    return isinstance(value, bool), value


@cache
def _compile(pattern: str | None) -> Any:
    """In linear time; None where there is no pattern, or one that needs more than that."""
    if pattern is None:
        return None
    found: Any = import_module("re2")
    options = found.Options()
    options.log_errors = False
    try:
        return found.compile(pattern, options)
    except found.error:
        return None
