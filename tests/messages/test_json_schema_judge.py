"""Patterns and references of a JSON Schema that would take for ever elsewhere, and those that people write."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from framework.messages.formats.json_schema import encoder
from framework.messages.formats.json_schema.patterns import is_matched
from framework.plan.schema import Schema


def schema(body: Any) -> Schema:
    return Schema("JSON", json.dumps({"type": "object", "properties": {"a": {}}, **body}))


PATTERNS = [
    "", "a", "^a", "a$", "^a$", "^$",
    "a|b", "^(a|b)*$", "(ab)+", "a{2}", "a{2,}", "a{,2}b", "a{1,3}?b", "a??b", "(?:a|ab)(c|bcd)", "[a-c]+$", "[^a]",
    r"\d+", r"\D", r"^\w+\s\w*$", r"\W", r"\bab\b", r"\Bb", ".", "^.*b$", r"[\d_-]x", r"\.", "[]a]", "(a*)*", "(a*)+b", "((a?)*)*$",
    "é", "[à-ü]", r"^[A-Z]{2}\d{2}(?:-\d{3})?$", "^([a-z]+)(-[a-z]+)*$",
]  # fmt: skip
TEXTS = [
    "",
    "a",
    "b",
    "ab",
    "aab",
    "aaa",
    "ba",
    "abcd",
    "ab ab",
    "a b",
    "x-1",
    "é",
    "AB12-345",
    "ab-cd-ef",
    "a.b",
    "]",
    "_x",
    "a\nb",
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_is_found_where_python_finds_it(pattern: str) -> None:
    assert [is_matched(pattern, text) for text in TEXTS] == [re.search(pattern, text) is not None for text in TEXTS]


@pytest.mark.parametrize(
    "pattern", ["^(a+)+$", "^(a|a)*$", "^(a|aa)+$", "(.*)*x$", "(a?){30}a{30}$", "^(([a-z])+.)+[A-Z]([a-z])+$"]
)
def test_a_pattern_that_takes_python_for_ever_is_judged_at_once(pattern: str) -> None:
    assert is_matched(pattern, "a" * 1000 + "!") is False
    encode = encoder(schema({"properties": {"a": {"pattern": pattern}}}))
    with pytest.raises(ValueError, match="does not match"):
        encode({"a": "a" * 100 + "!"})


@pytest.mark.parametrize(
    "pattern",
    ["(?=a)b", "(?<!a)b", r"(a)\1", "(?i)a", "(", "*", "[", "a{9999}", "((a{99}){99}){99}", "(" * 9999, "a" * 99_999, r"\p{L}"],
)
def test_a_pattern_that_cannot_be_judged_so_fits(pattern: str) -> None:
    assert is_matched(pattern, "c") is None
    assert encoder(schema({"properties": {"a": {"pattern": pattern}}}))({"a": "c"}) == b'{"a": "c"}'


def test_a_text_that_is_too_long_is_not_judged() -> None:
    assert is_matched("^(a+)+$", "a" * 10_000_000) is None


def test_names_of_properties_are_judged_in_the_same_way() -> None:
    body: Any = {"patternProperties": {"^(x+)+$": {"type": "integer"}, "(?=y)y": {}}, "additionalProperties": False}
    encode = encoder(schema(body))
    assert encode({"a": 1, "xx": 1, "y": "?"}) == b'{"a": 1, "xx": 1, "y": "?"}'
    with pytest.raises(ValueError, match="`xx`: '1' is not of type 'integer'"):
        encode({"xx": "1"})
    body["patternProperties"].pop("(?=y)y")
    with pytest.raises(ValueError, match=r"\('x+!' was unexpected\)"):
        encoder(schema(body))({"x" * 60 + "!": 1})
    wider = schema({**body, "additionalProperties": {"type": "string"}, "unevaluatedProperties": False})
    with pytest.raises(ValueError, match="`b`: 1 is not of type 'string'"):
        encoder(wider)({"b": 1})


@pytest.mark.parametrize(
    "body",
    [
        {"not": {"$ref": "#/definitions/l0"}, "definitions": {
            f"l{level}": {"allOf": [{"$ref": f"#/definitions/l{level + 1}"}] * 2} if level < 40 else {"type": "null"}
            for level in range(41)}},
        {"not": {"$ref": "#"}},
        {"not": {"anyOf": [{"$ref": "#/not"}]}},
        {"properties": {"a": {"minLength": "x"}}},
        {"properties": {"a": {"enum": 5}}},
        {"properties": {"a": {"type": "text"}}},
        {"properties": {"a": {"if": {"$ref": "#/definitions/none"}}}},
    ],
)  # fmt: skip
def test_a_schema_that_no_value_can_be_compared_with_is_said_so(body: Any) -> None:
    with pytest.raises(ValueError, match="cannot be compared with the schema"):
        encoder(schema(body))({"a": "x"})
