"""Calls become results: whatever the model writes, in order, within their time."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.errors import InvalidInput
from reverie.toolbox import (
    STANDARD,
    ReadLog,
    Registry,
    Tool,
    ToolContext,
    ToolFailed,
    ToolOutput,
    problems,
    standard,
)
from reverie.transcript import dump
from reverie.wire import ToolCall
from tests.tools.kit import Place, call, raw, result, use

pytestmark = pytest.mark.spec("13")

ANY = {"type": "object", "properties": {}, "required": []}


def made(name: str, action: object, **more: object) -> Tool:
    return Tool(name, "a tool", ANY, action, **more)  # pyright: ignore[reportArgumentType]


# --- the registry


def test_definitions_are_the_same_bytes_in_the_same_order() -> None:
    first, second = standard(), standard()
    assert dump(first.definitions()) == dump(second.definitions())
    assert first.names == tuple(t.name for t in STANDARD)
    added = standard()
    added.add(made("mcp__x", None))
    assert dump(added.definitions()).startswith(dump(first.definitions())[:-1])
    for definition in first.definitions():
        assert list(definition) == ["name", "description", "input_schema"]
        assert set(definition["input_schema"]["required"]) <= set(
            definition["input_schema"]["properties"]
        )


def test_a_name_is_taken_once_and_limits_are_for_the_session() -> None:
    registry = standard()
    with pytest.raises(InvalidInput):
        registry.add(STANDARD[0])
    assert registry.limits() == {"Read": None, "ReadBack": None}
    assert registry.get("Nope") is None


def test_a_copied_read_log_is_its_own() -> None:
    log = ReadLog()
    log.note("/a", "1")
    log.note("/b", "2")
    log.note("/a", "3")
    copy = log.copy()
    copy.note("/c", "4")
    assert log.recent() == ["/a", "/b"]
    assert copy.recent(2) == ["/c", "/a"]
    assert log.digest("/a") == "3"
    assert log.digest("/c") is None


# --- bad calls


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("Nope", "{}", "There is no tool named 'Nope'"),
        ("", "{}", "There is no tool"),
        ("read", "{}", "There are: Read"),
        ("Read", "{", "not valid JSON"),
        ("Read", "[1]", "not a JSON object"),
        ("Read", "null", "not a JSON object"),
        ("Read", '"x"', "not a JSON object"),
        ("Read", "NaN", "not valid JSON"),
        ("Read", "[" * 100_000, "not valid JSON"),
        ("Read", "", "file_path is missing"),
        ("Read", '{"file_path": 5}', "file_path must be string, not integer"),
        ("Read", '{"file_path": null}', "must be string, not null"),
        ("Read", '{"file_path": "a", "offset": "5"}', "offset must be integer, not string"),
        ("Read", '{"file_path": "a", "offset": 1.5}', "offset must be integer, not number"),
        ("Read", '{"file_path": "a", "offset": true}', "offset must be integer, not boolean"),
        ("Read", '{"file_path": "a", "offset": 0}', "at least 1"),
        ("Read", '{"file_path": "a", "offset": -1}', "at least 1"),
        ("Read", '{"file_path": "a", "wat": 1}', "wat is not an input"),
        ("Bash", '{"command": ["ls"]}', "command must be string, not array"),
        ("Bash", '{"command": "ls", "timeout": "1"}', "timeout must be number"),
        ("Bash", '{"command": "ls", "run_in_background": "yes"}', "must be boolean"),
        ("Grep", '{"pattern": "x", "output_mode": "all"}', "must be one of"),
        ("Grep", '{"pattern": "x", "head_limit": 1e99}', "must be integer"),
        ("Write", '{"file_path": "a"}', "content is missing"),
        ("Write", '{"file_path": "a", "content": {}}', "content must be string, not object"),
        ("Edit", '{"file_path": "a"}', "old_string is missing; new_string is missing"),
    ],
)
async def test_a_call_that_cannot_be_used_gets_a_sentence(
    place: Place, name: str, text: str, says: str
) -> None:
    found = result(await place.box().run(raw(name, text)))
    assert found.is_error
    assert says in found.text
    assert "Traceback" not in found.text


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=6,
)
KEYS = sorted({k for t in STANDARD for k in t.schema["properties"]})


@given(
    name=st.sampled_from([t.name for t in STANDARD if t.name != "Bash"]),
    value=st.dictionaries(st.sampled_from(KEYS), JSON, max_size=4),
)
def test_no_input_ever_raises(name: str, value: dict[str, object]) -> None:
    async def main() -> None:
        with TemporaryDirectory() as folder:
            box = Place(Path(folder)).box()
            await box.run(raw(name, json.dumps(value)))

    anyio.run(main)


def test_nested_schemas_are_checked_too() -> None:
    schema = {
        "type": "object",
        "properties": {
            "list": {"type": "array", "items": {"type": "integer"}},
            "inner": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
            "either": {"type": ["string", "null"]},
            "odd": {"type": "no such type"},
            "bare": True,
        },
    }
    assert problems({"list": [1, 2], "either": None, "odd": 1, "bare": 2}, schema) == []
    assert problems({"list": [1, "x"]}, schema) == ["list[1] must be integer, not string"]
    assert problems({"inner": {}}, schema) == ["inner.a is missing"]
    assert problems({"either": 4}, schema) == ["either must be string or null, not integer"]


# --- failures, time, cancellation


async def test_a_tool_that_fails_hangs_or_answers_with_an_error(place: Place) -> None:
    async def broken(value: object, context: ToolContext) -> ToolOutput:
        raise ZeroDivisionError("oops")

    async def sorry(value: object, context: ToolContext) -> ToolOutput:
        raise ToolFailed("cannot", where="here")

    async def hangs(value: object, context: ToolContext) -> ToolOutput:
        await anyio.sleep_forever()
        raise AssertionError

    registry = Registry([made("broken", broken), made("sorry", sorry), made("hangs", hangs)])
    place.settings = replace(place.settings, tool_seconds=0.05)
    box = place.box(registry=registry)
    assert (await use(box, "broken")).text == "broken failed: ZeroDivisionError: oops"
    assert (await use(box, "sorry")).text == "sorry failed: cannot (here)"
    slow = await use(box, "hangs")
    assert slow.is_error
    assert "took longer than 0.05 s" in slow.text


async def test_reading_runs_together_writing_alone_and_results_keep_their_order(
    place: Place,
) -> None:
    running: set[str] = set()
    seen: list[tuple[str, frozenset[str]]] = []

    def tool(name: str, read_only: bool) -> Tool:
        async def action(value: object, context: ToolContext) -> ToolOutput:
            running.add(name)
            for _ in range(5):
                await anyio.lowlevel.checkpoint()
            seen.append((name, frozenset(running)))
            running.discard(name)
            return ToolOutput(name)

        return made(name, action, read_only=read_only)

    tools = [tool(f"r{n}", True) for n in range(4)] + [tool(f"w{n}", False) for n in range(2)]
    box = place.box(registry=Registry(tools))
    order = ["r0", "r1", "w0", "w1", "r2", "nope", "r3"]
    results = [result(m) for m in await box.run_all([call(n) for n in order])]
    assert [r.text for r in results if not r.is_error] == [n for n in order if n != "nope"]
    assert results[5].is_error
    together = dict(seen)
    assert together["r0"] == {"r0", "r1"}
    assert together["r2"] == {"r2", "r3"}
    assert together["w0"] == {"w0"}
    assert together["w1"] == {"w1"}


async def test_ids_are_kept_and_no_calls_give_no_results(place: Place) -> None:
    box = place.box()
    assert await box.run_all([]) == []
    same = ToolCall("x", "List", "{}")
    messages = await box.run_all([same, replace(same, id="y")])
    assert [m.blocks[0].get("tool_use_id") for m in messages] == ["x", "y"]


async def test_an_error_in_the_body_passes_as_it_is(place: Place) -> None:
    with pytest.raises(KeyError):
        async with place.box():
            raise KeyError("mine")
