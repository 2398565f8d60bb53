"""Schemas of foreign make: really checked, and never a way in."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.errors import InvalidInput
from reverie.toolbox import MAX_TOLD, checker

pytestmark = pytest.mark.spec("18.mcp-client")


@pytest.mark.parametrize(
    ("rule", "good", "bad"),
    [
        ({"$ref": "#/$defs/word"}, "word", "Word"),
        ({"anyOf": [{"type": "integer"}, {"const": "all"}]}, "all", "some"),
        ({"oneOf": [{"minimum": 5}, {"maximum": 10}]}, 12, 7),
        ({"type": "string", "pattern": r"^\d{3}-\d{4}$"}, "555-0100", "5550100"),
        ({"patternProperties": {"^x-": {"type": "string"}}}, {"x-a": "b"}, {"x-a": 5}),
        ({"type": "array", "uniqueItems": True, "maxItems": 2}, [1, 2], [1, 1]),
        ({"type": "string", "format": "uri", "minLength": 2}, "ab", "a"),
        ({"if": {"type": "string"}, "then": {"maxLength": 1}}, "a", "ab"),
        ({"not": {"type": "null"}}, 1, None),
        ({"type": "object", "required": ["a"], "additionalProperties": False}, {"a": 1}, {}),
    ],
)
def test_every_keyword_counts(rule: Any, good: Any, bad: Any) -> None:
    defs = {"word": {"type": "string", "pattern": "^[a-z]+$"}}
    if rule.get("required"):
        rule = {**rule, "properties": {"a": {}}}
    check = checker({"type": "object", "properties": {"v": rule}, "$defs": defs})
    assert check({"v": good}) == []
    (told, *_) = check({"v": bad})
    assert told.startswith("v")


def test_a_pattern_that_would_run_away_does_not() -> None:
    check = checker({"properties": {"v": {"type": "string", "pattern": "^(a+)+$"}}})
    assert check({"v": "a" * 100_000 + "!"}) != []
    lookahead = checker({"properties": {"v": {"pattern": "^(?=x)x"}}})
    assert lookahead({"v": "y"}) == []  # left to the server, which wrote it


def _bomb(keyword: str) -> dict[str, Any]:
    """Thirty levels that each ask for the next one twice: a thousand million looks."""
    levels: dict[str, Any] = {
        f"l{n}": {keyword: [{"$ref": f"#/$defs/l{n + 1}"}] * 2} for n in range(30)
    }
    return {"$defs": {**levels, "l30": keyword == "allOf"}, "$ref": "#/$defs/l0"}


RUNAWAY = {"patternProperties": {"^(a+)+$": {}}}


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    ("schema", "value", "told"),
    [
        (_bomb("allOf"), {"v": 1}, "asks for more than can be checked"),
        (_bomb("anyOf"), {"v": 1}, "asks for more than can be checked"),
        ({**RUNAWAY, "additionalProperties": False}, {"a" * 60 + "!": 1}, "is not an input"),
        ({**RUNAWAY, "unevaluatedProperties": False}, {"a" * 60 + "!": 1}, ""),
        ({"properties": {"v": {"uniqueItems": True}}}, {"v": [{"n": n} for n in range(9_999)]}, ""),
        ({"properties": {"v": {"multipleOf": 1e-300}}}, {"v": 10**4_000}, "more than can be"),
    ],
)
def test_no_schema_makes_a_check_run_away_or_fail(schema: Any, value: Any, told: str) -> None:
    assert [told in one for one in checker(schema)(value)] == ([True] if told else [])


@pytest.mark.parametrize("ref", ["https://x.example/s.json", "file:///etc/passwd", "#/$defs/none"])
def test_a_reference_out_of_the_schema_is_not_followed(ref: str) -> None:
    (told,) = checker({"properties": {"v": {"$ref": ref}}})({"v": 1})
    assert "which is not in it" in told


def test_a_schema_that_turns_in_a_circle_ends() -> None:
    (told,) = checker({"$ref": "#"})({"v": 1})
    assert "nested too deeply" in told
    deep: Any = 1
    for _ in range(400):
        deep = {"v": deep}
    tree = {"properties": {"v": {"$ref": "#"}}, "type": ["object", "integer"]}
    assert checker(tree)({"v": deep}) in ([], ["it is nested too deeply for its schema"])


@pytest.mark.parametrize("schema", [{"type": "strnig"}, {"properties": []}, {"required": "a"}])
def test_what_is_no_schema_is_refused(schema: Any) -> None:
    with pytest.raises(InvalidInput):
        checker(schema)


def test_what_is_told_is_bounded() -> None:
    check = checker({"additionalProperties": {"type": "string", "enum": ["x" * 10_000]}})
    told = check({str(number): number for number in range(100)})
    assert len(told) == MAX_TOLD
    assert max(map(len, told)) < 300


LEAVES = st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.sampled_from(["", "a", "ab"]))
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=6,
)
COUNTS = st.integers(0, 3)
KEYWORDS: dict[str, st.SearchStrategy[Any]] = {
    "type": st.sampled_from(
        ["null", "boolean", "integer", "string", "array", "object", ["string", "null"]]
    ),
    "enum": st.lists(VALUES, min_size=1, max_size=3),
    "const": VALUES,
    "minimum": COUNTS,
    "exclusiveMaximum": COUNTS,
    "multipleOf": st.integers(1, 3),
    "minLength": COUNTS,
    "maxLength": COUNTS,
    "pattern": st.sampled_from(["^a", "b$", "."]),
    "minItems": COUNTS,
    "maxItems": COUNTS,
    "uniqueItems": st.booleans(),
    "required": st.lists(st.sampled_from("abc"), unique=True, max_size=2),
    "minProperties": COUNTS,
    "maxProperties": COUNTS,
    "dependentRequired": st.dictionaries(st.sampled_from("ab"), st.just(["c"]), max_size=1),
}


def _rules(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(inner, min_size=1, max_size=3)
    members = st.dictionaries(st.sampled_from("abc"), inner, max_size=2)
    nested: dict[str, st.SearchStrategy[Any]] = {
        **dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), several),
        **dict.fromkeys(("items", "contains", "not", "if", "then", "else"), inner),
        **dict.fromkeys(("additionalProperties", "propertyNames"), inner),
        **dict.fromkeys(("properties", "dependentSchemas"), members),
        "patternProperties": st.dictionaries(st.sampled_from(["^a", "b"]), inner, max_size=2),
        "$ref": st.sampled_from(["#/$defs/word", "#/$defs/some"]),
    }
    return st.fixed_dictionaries({}, optional=nested)


SCHEMAS = st.recursive(
    st.one_of(st.booleans(), st.fixed_dictionaries({}, optional=KEYWORDS)), _rules, max_leaves=6
)
DEFS = {"word": {"type": "string", "minLength": 1}, "some": {"minItems": 1, "minProperties": 1}}


@given(rule=SCHEMAS, value=VALUES)
def test_a_verdict_is_that_of_the_reference_library(rule: Any, value: Any) -> None:
    schema = {"type": "object", "properties": {"v": rule}, "$defs": DEFS}
    theirs = jsonschema.Draft202012Validator(schema).is_valid({"v": value})
    assert (checker(schema)({"v": value}) == []) is theirs


def test_the_work_for_many_members_is_bounded() -> None:
    """Also where both the schema and the input have many."""
    schema = {"properties": {f"p{n}": {} for n in range(5_000)}, "additionalProperties": False}
    assert checker(schema)({f"p{n}": n for n in range(5_000)}) == []
    assert len(checker(schema)({f"q{n}": n for n in range(5_000)})) == MAX_TOLD
