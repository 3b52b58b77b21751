"""Tells the writer of a message whether a value fits a JSON Schema.

Guarantee: the time grows with the sizes of the schema and the value alone: patterns are searched in linear time, and a schema that
refers to itself at each level, or twice, is given up.
Limit: a pattern that needs more time, such as one that looks ahead, is not judged, and all values fit it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from framework.messages.formats.json_schema.patterns import is_matched
from framework.messages.formats.json_schema.wellformed import document
from framework.plan.schema import Schema

_MOST, _DEEPEST = 20_000, 32  # references that are followed for one value, and those within each other
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


class _Endless(Exception):
    """The schema has more references, followed for one value, than the limits allow."""


@dataclass
class _References:
    """The number of references followed for one value, and of those that are still open."""

    total: int = 0
    open: int = 0


Keyword = Callable[[Any, Any, Any, Any], Any]


def judge(schema: Schema) -> Callable[[Any], str | None]:
    """Returns a function that gives the fault of a value of JSON, or None if it fits the schema."""
    from jsonschema import FormatChecker
    from jsonschema.exceptions import UnknownType, best_match
    from jsonschema.validators import Draft7Validator, extend, validator_for
    from referencing.exceptions import Unresolvable

    from framework.messages.formats.json_schema.text import MALFORMED, registry_of

    contents = document(schema.text)
    standard: Any = validator_for(contents, default=Draft7Validator)
    references = _References()
    keywords: dict[str, Keyword] = {"pattern": _pattern, "patternProperties": _pattern_properties}
    keywords["additionalProperties"] = _others(standard.VALIDATORS["additionalProperties"])
    keywords |= {name: _counted(standard.VALIDATORS[name], references) for name in _REFERENCES if name in standard.VALIDATORS}
    if any('"patternProperties"' in source.text for source in (schema, *(inner for _, inner in schema.behind))):
        keywords["unevaluatedProperties"] = _nothing  # it would look for patterns by itself
    extended: Any = extend(standard, keywords)  # type: ignore[no-untyped-call]
    checker = extended(contents, registry=registry_of(schema), format_checker=FormatChecker())

    def wrong(value: Any) -> str | None:
        references.total = references.open = 0
        try:
            error = best_match(checker.iter_errors(value))
        except _Endless:
            raise ValueError("it cannot be compared with the schema, which refers to itself without end") from None
        except (*MALFORMED, ArithmeticError, UnknownType, Unresolvable) as error:
            raise ValueError(f"it cannot be compared with the schema, of which a keyword has no meaning: {error}") from None
        if error is None:
            return None
        place = ".".join(map(str, error.absolute_path))
        return (f"`{place}`: " if place else "") + str(error.message)

    return wrong


def _pattern(_: Any, pattern: Any, value: Any, __: Any) -> Iterator[Any]:
    from jsonschema.exceptions import ValidationError

    if isinstance(value, str) and isinstance(pattern, str) and is_matched(pattern, value) is False:
        yield ValidationError(f"{value!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, patterns: Any, value: Any, _: Any) -> Iterator[Any]:
    for pattern, inner in patterns.items() if isinstance(value, dict) else ():
        for name in value:
            if is_matched(pattern, name):
                yield from validator.descend(value[name], inner, path=name, schema_path=pattern)


def _others(standard: Keyword) -> Keyword:
    """Returns `additionalProperties` for the names that no pattern matches. A pattern that is not judged may match any name."""

    def keyword(validator: Any, properties: Any, value: Any, schema: Any) -> Iterator[Any]:
        patterns = schema.get("patternProperties") or ()
        rest = {name: keyword_value for name, keyword_value in schema.items() if name != "patternProperties"}
        if isinstance(value, dict):
            value = {
                name: item for name, item in value.items() if all(is_matched(pattern, name) is False for pattern in patterns)
            }
        yield from standard(validator, properties, value, rest) or ()

    return keyword


def _counted(standard: Keyword, references: _References) -> Keyword:
    def keyword(validator: Any, properties: Any, value: Any, schema: Any) -> Iterator[Any]:
        references.total += 1
        references.open += 1
        if references.total > _MOST or references.open > _DEEPEST:
            raise _Endless
        try:
            yield from standard(validator, properties, value, schema) or ()
        finally:  # also where the caller stops at the first error
            references.open -= 1

    return keyword


def _nothing(*_: Any) -> tuple[()]:
    return ()
