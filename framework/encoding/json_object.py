"""A message that is one JSON object, as Spark SQL: the parse, what is true where it is none, and why.

Guarantee: trailing text, a second document or bytes that are not UTF-8 are never an object.
Cost: Spark's parser once per message; a message with a `}` before its end (nested objects) is walked a second time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from secrets import token_hex

from framework import types
from framework.encoding.fields import Field, Written
from framework.encoding.json_columns import misfit, raw_type, value
from framework.model import Fault
from framework.sql.quote import identifier, literal, substituted
from framework.types import Array, Decimal, Map, Struct

LARGEST = 20_000_000  # bytes; Spark's parser gives up on longer texts
_EXPLAINED = 1 << 20  # bytes; what is wrong with a larger value is not looked for
EXPLAINED = f"CASE WHEN octet_length(_sluice_value) <= {_EXPLAINED} THEN try_parse_json(_sluice_text) END"
_OPTIONS = (
    "map('mode', 'PERMISSIVE', 'columnNameOfCorruptRecord', '_sluice_corrupt', 'allowSingleQuotes', 'false',"
    " 'allowNonNumericNumbers', 'false')"
)

# The name of a field that no message can know, and texts with it: an object that has it as the last element of a list, and types.
_END = f"_sluice_end_{token_hex(8)}"
MEANT: Mapping[str, str] = {
    "_sluice_end": _END,
    "_sluice_end_text": literal(f'{{"{_END}":true}}'),
    "_sluice_end_list": literal(f"array<struct<{_END}:boolean>>"),
    "_sluice_end_field": literal(f"{_END}:boolean>>"),
}
# An object that ends with the only `}` of its text cannot be followed by anything. Otherwise the text is parsed between
# two brackets and before a mark: whatever follows the object would add an element, end the list early or break the parse.
_MARKED = f"from_json(concat('[', _sluice_text, ',', _sluice_end_text, ']'), _sluice_end_list, {_OPTIONS})"
_ONE_OBJECT = (
    "CASE WHEN startswith(_sluice_text, '{') AND endswith(_sluice_text, '}')"
    " AND NOT contains(CAST(substring(_sluice_value, 2, octet_length(_sluice_value) - 2) AS STRING), '}') THEN true"
    " ELSE startswith(trim(LEADING ' \\t\\n\\r' FROM _sluice_text), '{')"
    f" AND exists(array({_MARKED}), parts -> size(parts) = 2 AND coalesce(parts[1]._sluice_end, false)) END"
)
_FITS = f"octet_length(_sluice_value) <= {LARGEST}"
_READABLE = f"{_FITS} AND is_valid_utf8(_sluice_text) AND ({_ONE_OBJECT})"
TOO_LARGE = Fault("value", "too_large", f"the value is over {LARGEST} bytes", f"octet_length(_sluice_value) > {LARGEST}")


def parse(fields: Sequence[Field]) -> str:
    """SQL of the struct that the message's fields are read as."""
    raw = ", ".join(f"{identifier(field.name)} {raw_type(field.written)}" for field in fields)
    # Asked inside, so that the parse itself depends on nothing: Spark computes once only what it would always compute.
    text = f"CASE WHEN {_FITS} THEN _sluice_text END"
    return f"from_json({text}, {literal(raw + ', `_sluice_corrupt` string')}, {_OPTIONS})"


def column(field: Field) -> str:
    """SQL of a field's value, over the parse."""
    return value(_parsed(field), field.written)


def _parsed(field: Field) -> str:
    return f"_sluice_decoded.{identifier(field.name)}"


def behind(sql: str, bytes_: str, parsed: str) -> str:
    """The same SQL of JSON that stands in other bytes than the message's value."""
    for name, sql_of in (
        ("_sluice_decoded", parsed),
        ("_sluice_text", "CAST(_sluice_value AS STRING)"),
        ("_sluice_value", bytes_),
    ):
        sql = substituted(sql, {name: sql_of})
    return sql


def wrong(fields: Sequence[Field]) -> str:
    """SQL that is true where the message is not one JSON object with these fields."""
    found = [f"NOT ({_READABLE})", "_sluice_decoded IS NULL", "_sluice_decoded._sluice_corrupt IS NOT NULL"]
    values = (misfit(_parsed(field), field.written) for field in fields)
    return " OR ".join((*found, *(f"({value})" for value in values if value)))


def with_mark(type_: Struct) -> str:
    """SQL of a list of the object and the mark, from one parse: for objects that have objects inside."""
    text = f"CASE WHEN {_FITS} THEN concat('[', _sluice_text, ',', _sluice_end_text, ']') END"
    return f"from_json({text}, concat({literal(f'array<{raw_type(type_)[:-1]}, ')}, _sluice_end_field), {_OPTIONS})"


def is_one(parts: str) -> str:
    """Whether such a list is of one object and no more."""
    begins = "startswith(trim(LEADING ' \\t\\n\\r' FROM _sluice_text), '{')"
    return f"({begins} AND coalesce(size({parts}) = 2 AND get({parts}, 1)._sluice_end, false))"


def is_one_value(text: str) -> str:
    """SQL of whether a text is one value of any type and no more."""
    parts = f"from_json(concat('[', {text}, ',', _sluice_end_text, ']'), 'array<string>', {_OPTIONS})"
    return f"coalesce(is_valid_utf8({text}) AND size({parts}) = 2 AND {parts}[1] = _sluice_end_text, false)"


# Why a message cannot be decoded: SQL conditions over `_sluice_text` in order, and SQL for what is said.
_KIND = "schema_of_variant(_sluice_parsed)"
NOT_AN_OBJECT = (
    ("NOT is_valid_utf8(_sluice_text)", "'the value is not UTF-8 text'"),
    ("trim(BOTH ' \\t\\n\\r' FROM _sluice_text) = ''", "'the value is empty'"),
    (f"octet_length(_sluice_value) > {_EXPLAINED}", "message"),
    ("_sluice_parsed IS NULL", "'the value is not JSON'"),
    (f"NOT startswith({_KIND}, 'OBJECT')", f"concat('the value is no JSON object but ', lower({_KIND}))"),
    (f"NOT ({_ONE_OBJECT})", "'more text follows the JSON object'"),
)
SOMETHING = ("true", "'a value does not fit its column'")


def explain(field: Field, path: str) -> tuple[str, str]:
    """The same of a field that is found under a path of Spark's."""
    given = f"schema_of_variant(try_variant_get(_sluice_parsed, {literal(path)}, 'variant'))"
    is_other = f"coalesce({given} NOT RLIKE '^({_json_types(field)}|VOID)', false)"
    return is_other, f"concat({literal(f'`{field.name}` is not {field.type} but ')}, lower({given}))"


def explained(fields: Iterable[Field], above: str) -> Iterator[tuple[str, str]]:
    """The same of fields below a path. Paths know no escapes, so that of a name with both quotes nothing is said."""
    for field in fields:
        mark = "'" if '"' in field.name else '"'
        if mark not in field.name:
            yield explain(field, f"{above}[{mark}{field.name}{mark}]")


def _json_types(field: Field) -> str:
    match field.written:
        case Array():
            return "ARRAY"
        case Map() | Struct():
            return "OBJECT"
        case types.STRING:
            return "."
        case types.BOOLEAN:
            return "BOOLEAN"
        case types.DOUBLE | types.FLOAT | Decimal():
            return "BIGINT|DECIMAL|DOUBLE|FLOAT"
        case Written(format="base64"):
            return "STRING|BIGINT|DECIMAL|DOUBLE|FLOAT"
    return "BIGINT|DECIMAL" if types.is_integral(field.type) or field.format else "STRING"
