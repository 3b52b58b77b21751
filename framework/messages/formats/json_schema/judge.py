"""Whether a value fits a JSON Schema, as whoever writes a message is told.

Guarantee: it takes no longer than the schema and the value are large: patterns are looked for in linear time, and a schema that refers
to itself at each level, or twice, is given up.
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
    """More is referred to than anybody would wait for."""


@dataclass
class _Followed:
    """References, since a value began to be judged."""

    all: int = 0
    open: int = 0


Keyword = Callable[[Any, Any, Any, Any], Any]


def judge(schema: Schema) -> Callable[[Any], str | None]:
    """The fault of a value, as JSON is loaded; None if it fits."""
    from jsonschema import FormatChecker
    from jsonschema.exceptions import UnknownType, best_match
    from jsonschema.validators import Draft7Validator, extend, validator_for
    from referencing.exceptions import Unresolvable

    from framework.messages.formats.json_schema.text import MALFORMED, registry_of

    schema_ = document(schema.text)
    standard: Any = validator_for(schema_, default=Draft7Validator)
    followed = _Followed()
    own: dict[str, Keyword] = {"pattern": _pattern, "patternProperties": _pattern_properties}
    own["additionalProperties"] = _others(standard.VALIDATORS["additionalProperties"])
    own |= {name: _counted(standard.VALIDATORS[name], followed) for name in _REFERENCES if name in standard.VALIDATORS}
    if any('"patternProperties"' in each.text for each in (schema, *(inner for _, inner in schema.behind))):
        own["unevaluatedProperties"] = _nothing  # it would look for patterns by itself
    extended: Any = extend(standard, own)  # type: ignore[no-untyped-call]
    checker = extended(schema_, registry=registry_of(schema), format_checker=FormatChecker())

    def wrong(value: Any) -> str | None:
        followed.all = followed.open = 0
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
    """Of properties that no pattern has the name of. One that is not judged may have it."""

    def keyword(validator: Any, properties: Any, value: Any, schema: Any) -> Iterator[Any]:
        patterns = schema.get("patternProperties") or ()
        rest = {name: each for name, each in schema.items() if name != "patternProperties"}
        if isinstance(value, dict):
            value = {
                name: each for name, each in value.items() if all(is_matched(pattern, name) is False for pattern in patterns)
            }
        yield from standard(validator, properties, value, rest) or ()

    return keyword


def _counted(standard: Keyword, followed: _Followed) -> Keyword:
    def keyword(validator: Any, properties: Any, value: Any, schema: Any) -> Iterator[Any]:
        followed.all += 1
        followed.open += 1
        if followed.all > _MOST or followed.open > _DEEPEST:
            raise _Endless
        try:
            yield from standard(validator, properties, value, schema) or ()
        finally:  # who has heard enough closes it
            followed.open -= 1

    return keyword


def _nothing(*_: Any) -> tuple[()]:
    return ()
