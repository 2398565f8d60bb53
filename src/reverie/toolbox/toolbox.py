"""Calls run to results, inputs checked by schema.

The toolbox: runs the calls of a model, each to a result, whatever happens.

    async with Toolbox(registry, policy, context) as box:
        results = await box.run_all(reply.tool_calls)

A call that cannot be read, is unknown, is not permitted, fails or takes too long gets an
error result with a sentence saying so; only cancellation passes through. Neighbouring
read-only calls run together, a writing call alone, in the order they were made. Being
asked takes none of a call's time. Leaving the toolbox ends all background commands.

An input is held against its tool's JSON schema by a few checks of our own: types, required and
unknown members, enum, minimum and maximum, lists of one type; whatever else a schema says is
left to the tool, or to the check that a tool of foreign make brings along. Nothing changes or
guesses a value: `"5"` is not a number.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from contextvars import ContextVar
from dataclasses import replace
from functools import cache, partial
from importlib import import_module
from types import TracebackType
from typing import Any, cast

import anyio

from reverie.concurrency import alone
from reverie.errors import InvalidInput, InvalidMessage, ReverieError
from reverie.toolbox.permissions import PermissionDecision, PermissionPolicy
from reverie.toolbox.shell import BackgroundShells
from reverie.toolbox.tool import (
    Denied,
    Input,
    ProposedEdit,
    Registry,
    Schema,
    Tool,
    ToolContext,
    ToolFailed,
    ToolOutput,
)
from reverie.transcript.blocks import parse, text_block
from reverie.transcript.records import UserMessage
from reverie.wire.reply import ToolCall, tool_result

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


GRACE = 15.0
"""Seconds more than the limit for a tool that ends by itself: to hand in what it has."""


class Toolbox:
    """Tools, who may use them, and what they work on."""

    def __init__(self, registry: Registry, policy: PermissionPolicy, context: ToolContext) -> None:
        self.registry = registry
        self.policy = policy
        self.context = context
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Toolbox:
        group = await self._stack.enter_async_context(anyio.create_task_group())
        shells = BackgroundShells(group)
        self._stack.callback(shells.stop)
        self.context = replace(self.context, shells=shells)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        del kind, error, trace  # goes on as it is, in no group
        self.context = replace(self.context, shells=None)
        await self._stack.aclose()

    async def run(self, call: ToolCall) -> UserMessage:
        """One call, to its result; behind it what the user said when asked about it."""
        output = await self._output(call)
        result = tool_result(call.id, output.content, is_error=output.is_error)
        if not output.words:
            return result
        return replace(result, blocks=(*result.blocks, text_block(output.words)))

    async def run_all(self, calls: Sequence[ToolCall]) -> list[UserMessage]:
        """All calls of a reply; results in the order of the calls."""
        results: dict[str, UserMessage] = {}

        async def one(call: ToolCall) -> None:
            results[call.id] = await self.run(call)

        for batch in self.registry.batches(calls):
            async with anyio.create_task_group() as group:
                for call in batch:
                    group.start_soon(one, call)
        return [results[call.id] for call in calls]

    async def _output(self, call: ToolCall) -> ToolOutput:
        try:
            tool, value = read_call(call, self.registry)
            foresee = partial(self._foreseen, tool, value)
            judged = await self.policy.check(tool, value, self.context.files, foresee)
        except Denied as error:
            return ToolOutput(str(error), is_error=True, words=error.words)
        except ReverieError as error:
            return ToolOutput(str(error), is_error=True)
        value, context = self._granted_call(tool, value, judged)
        output = await run_within_time(tool, value, replace(context, call=call.id))
        return replace(output, words=judged.words) if judged.words else output

    async def _foreseen(
        self, tool: Tool, value: Input, judged: PermissionDecision
    ) -> ProposedEdit | None:
        """What the call would make of its file, where that can be looked at unasked; ToolFailed
        where it would fail: nobody is asked for what cannot be done."""
        path = judged.path
        if tool.preview is None or path is None:
            return None
        if not self.policy.may_read(path) and self.context.reads.digest(path) is None:
            return None
        none: ProposedEdit | None = None
        change, error = await alone(tool.preview(*self._granted_call(tool, value, judged)), none)
        if error:
            raise ToolFailed(f"{tool.name} failed: {error}")
        return change

    def _granted_call(
        self, tool: Tool, value: Input, judged: PermissionDecision
    ) -> tuple[Input, ToolContext]:
        """The call on the real path that permission was given for, and on no other."""
        if judged.path is None:
            return value, self.context
        files = self.context.files.granted()
        return {**value, tool.path: str(judged.path)}, replace(self.context, files=files)


def read_call(call: ToolCall, registry: Registry) -> tuple[Tool, Input]:
    """The tool a call names and its checked input, or InvalidMessage."""
    tool = registry.get(call.name)
    if tool is None:
        names = ", ".join(registry.names)
        raise InvalidMessage(f"There is no tool named {call.name[:80]!r}", do=f"There are: {names}")
    try:
        value = read(call.raw)
    except InvalidMessage as error:
        raise InvalidMessage(f"The call to {tool.name} cannot be read: {error}") from error
    wrong = tool.check(value) if tool.check is not None else problems(value, tool.schema)
    if wrong:
        raise InvalidMessage(f"The input of {tool.name} is wrong: {'; '.join(wrong[:8])}")
    return tool, value


async def run_within_time(tool: Tool, value: Input, context: ToolContext) -> ToolOutput:
    """A tool's answer within its time, or a sentence saying what went wrong."""
    seconds = context.settings.tool_seconds
    none = ToolOutput("")
    most = seconds + GRACE if tool.times_itself else seconds
    with anyio.move_on_after(float("inf") if tool.waits else most):
        output, error = await alone(tool.run(value, context), none)
        if error:
            return ToolOutput(f"{tool.name} failed: {error}", is_error=True)
        return output
    said = f"{tool.name} took longer than {most:g} s and is waited for no more"
    return ToolOutput(said, is_error=True)


# --- Inputs held against a JSON schema of foreign make, by a library: `$ref`, `anyOf`, `pattern`.
#
# A schema says what it likes; what we do with it is bounded. References stay inside the schema, a
# pattern is matched in linear time, nesting ends, and so does the number of steps. What cannot be
# held so (another kind of pattern, `unevaluated…`) is left to whoever wrote it. The library is an
# extra (`mcp`) and loaded where a schema is first needed.


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
    bounded = {name: partial(_run_keyword, keyword) for name, keyword in known.items()}
    return made.extend(Draft202012Validator, bounded)


def _run_keyword(
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
    found = _compile_pattern(pattern)
    if found is not None and found.search(cast("str", instance)) is None:
        yield ValidationError(f"does not match the pattern {pattern!r}")


def _pattern_properties(
    validator: Any, patterns: Mapping[str, Any], instance: object, schema: object
) -> Iterator[Any]:
    del schema
    if not validator.is_type(instance, "object"):
        return
    for pattern, rule in patterns.items():
        found = _compile_pattern(pattern)
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
    patterns = [_compile_pattern(one) for one in schema.get("patternProperties", {})]
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
def _compile_pattern(pattern: str) -> Any:
    """In linear time; None where the pattern needs more than that."""
    found: Any = import_module("re2")
    options = found.Options()
    options.log_errors = False
    try:
        return found.compile(pattern, options)
    except found.error:
        return None
