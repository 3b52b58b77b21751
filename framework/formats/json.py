"""JSON: one object per message, each field only as its own JSON type.

Guarantee: trailing text, a second document, a wrong type, a number out of range or bytes that are not UTF-8 make a bad row,
never another value.
Limit: a `string` column takes an object, a list or a fraction as Spark writes it again: without spaces, 2.50 as 2.5.
Cost: Spark's parser once per message; a message with a `}` before its end (nested objects) is walked a second time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from framework import types
from framework.plan.model import Column, Decoding, Fault
from framework.plan.rows import named, quoted
from framework.types import Array, Decimal, Map, Struct, Type

LARGEST = 20_000_000  # bytes; Spark's parser gives up on longer texts
EXPLAINED = 1 << 20  # bytes; what is wrong with a larger value is not looked for
_OPTIONS = (
    "map('mode', 'PERMISSIVE', 'columnNameOfCorruptRecord', '_sluice_corrupt', 'allowSingleQuotes', 'false',"
    " 'allowNonNumericNumbers', 'false')"
)
_ISO_DATE = r"^\\d{4}-\\d\\d-\\d\\d$"
_FIRST_MILLIS, _LAST_MILLIS = -62135596800000, 253402300799999  # the years 1 to 9999


@dataclass(frozen=True)
class Field:
    """A field of the message."""

    name: str
    type: Type
    required: bool = False
    format: str | None = None


def decoding(fields: Sequence[Field], unknown_fields: str) -> Decoding:
    raw = ", ".join(f"{named(field.name)} {_raw(field.type, field.format)}" for field in fields)
    # Asked inside, so that the parse itself depends on nothing: Spark computes once only what it would always compute.
    text = f"CASE WHEN {_FITS} THEN _sluice_text END"
    return Decoding(
        parse=f"from_json({text}, {quoted(raw + ', `_sluice_corrupt` string')}, {_OPTIONS})",
        columns=tuple((field.name, _column(field)) for field in fields),
        faults=_faults(fields, unknown_fields),
        explain=_explain(fields),
        explained=f"CASE WHEN octet_length(_sluice_value) <= {EXPLAINED} THEN try_parse_json(_sluice_text) END",
    )


def key(fields: Sequence[Field], docs: Mapping[str, str]) -> tuple[tuple[Column, ...], Decoding]:
    """The same of a message's key, which may be missing."""
    made = decoding(fields, "ignore")

    def of_key(sql: str) -> str:
        sql = sql.replace("_sluice_decoded", f"({made.parse})").replace("_sluice_text", "CAST(_sluice_key AS STRING)")
        return sql.replace("_sluice_value", "_sluice_key")

    wrong = next(fault.when for fault in made.faults if fault.code == "undecodable")
    there = f"_sluice_key IS NOT NULL AND ({of_key(wrong)})"
    faults = [Fault("key", "undecodable_key", "the key is not one JSON object with its columns", there)]
    faults += [replace(fault, stage="key", when=of_key(fault.when)) for fault in made.faults if fault.code == "missing_field"]
    columns = tuple(Column(field.name, field.type, docs[field.name]) for field in fields)
    return columns, Decoding(None, tuple((name, of_key(sql)) for name, sql in made.columns), tuple(faults))


# An object that ends with the only `}` of its text cannot be followed by anything. Otherwise the text is parsed between
# two brackets and before a mark: whatever follows the object would add an element, end the list early or break the parse.
_MARKED = (
    """from_json(concat('[', _sluice_text, ',{"_sluice_end":true}]'), 'array<struct<_sluice_end:boolean>>', """ + _OPTIONS + ")"
)
_ONE_OBJECT = (
    "CASE WHEN startswith(_sluice_text, '{') AND endswith(_sluice_text, '}')"
    " AND NOT contains(CAST(substring(_sluice_value, 2, octet_length(_sluice_value) - 2) AS STRING), '}') THEN true"
    " ELSE startswith(trim(LEADING ' \\t\\n\\r' FROM _sluice_text), '{')"
    f" AND exists(array({_MARKED}), parts -> size(parts) = 2 AND coalesce(parts[1]._sluice_end, false)) END"
)
_FITS = f"octet_length(_sluice_value) <= {LARGEST}"
_READABLE = f"{_FITS} AND is_valid_utf8(_sluice_text) AND ({_ONE_OBJECT})"


def _faults(fields: Sequence[Field], unknown_fields: str) -> tuple[Fault, ...]:
    wrong = [f"NOT ({_READABLE})", "_sluice_decoded IS NULL", "_sluice_decoded._sluice_corrupt IS NOT NULL"]
    for field in fields:
        found = _wrong(_field(field), field.type, field.format)
        wrong += [f"({found})"] if found else []
    faults = [
        Fault("value", "null_value", "the message has no value", "_sluice_value IS NULL"),
        Fault("value", "too_large", f"the value is over {LARGEST} bytes", f"octet_length(_sluice_value) > {LARGEST}"),
        Fault("value", "undecodable", "the value is not one JSON object with these columns", " OR ".join(wrong)),
    ]
    if unknown_fields == "bad":
        known = ", ".join(quoted(field.name) for field in fields)
        unknown = f"size(array_except(json_object_keys(_sluice_text), array({known}))) > 0"
        faults.append(Fault("value", "unknown_field", "the value has a field that is no column", unknown))
    return (
        *faults,
        *(
            Fault("value", "missing_field", f"`{field.name}` is required and missing or null", f"{_column(field)} IS NULL")
            for field in fields
            if field.required
        ),
    )


def _field(field: Field) -> str:
    return f"_sluice_decoded.{named(field.name)}"


def _column(field: Field) -> str:
    return _convert(_field(field), field.type, field.format)


def _raw(type_: Type, format_: str | None = None) -> str:
    """The type as which Spark's parser reads it: strict for its JSON type, and without its own ideas of times and decimals."""
    match type_:
        case Array():
            return f"array<{_raw(type_.element)}>"
        case Map():
            return f"map<string, {_raw(type_.value)}>"
        case Struct():
            return "struct<" + ", ".join(f"{named(field.name)}: {_raw(field.type)}" for field in type_.fields) + ">"
        case Decimal():
            return "variant"  # from_json would take "1.2" in quotes for a decimal
        case types.TIMESTAMP | types.TIMESTAMP_NTZ | types.DATE:
            return "bigint" if format_ == "epoch_millis" else "string"
    return str(type_)


def _convert(raw: str, type_: Type, format_: str | None = None, depth: int = 0) -> str:
    """The column's value from what the parser gave; null where that does not fit."""
    if not _converts(type_):
        return raw
    match type_:
        case Array():
            return f"transform({raw}, x{depth} -> {_convert(f'x{depth}', type_.element, depth=depth + 1)})"
        case Map():
            return f"transform_values({raw}, (k{depth}, x{depth}) -> {_convert(f'x{depth}', type_.value, depth=depth + 1)})"
        case Struct():
            parts = ", ".join(
                f"{quoted(field.name)}, {_convert(f'{raw}.{named(field.name)}', field.type, depth=depth)}"
                for field in type_.fields
            )
            return f"CASE WHEN {raw} IS NOT NULL THEN named_struct({parts}) END"
        case Decimal():
            number = f"regexp_like(schema_of_variant({raw}), '^(BIGINT|DECIMAL|DOUBLE)')"
            return f"CASE WHEN {number} THEN try_variant_get({raw}, '$', '{type_}') END"
    if format_ == "epoch_millis":
        return f"CASE WHEN {raw} BETWEEN {_FIRST_MILLIS} AND {_LAST_MILLIS} THEN timestamp_millis({raw}) END"
    if type_ == types.DATE:
        return f"CASE WHEN {raw} RLIKE '{_ISO_DATE}' THEN try_cast({raw} AS date) END"
    # The cast takes a year or an hour alone for a time. A pattern would say this better and cost a tenth of the throughput.
    marks = f"{_mark(raw, 5)} = '-' AND {_mark(raw, 8)} = '-' AND {_mark(raw, 11)} IN ('T', ' ') AND {_mark(raw, 14)} = ':'"
    return f"CASE WHEN {marks} THEN try_cast({raw} AS {type_}) END"


def _mark(raw: str, at: int) -> str:
    return f"substring({raw}, {at}, 1)"


def _converts(type_: Type) -> bool:
    match type_:
        case Array():
            return _converts(type_.element)
        case Map():
            return _converts(type_.value)
        case Struct():
            return any(_converts(field.type) for field in type_.fields)
    return isinstance(type_, Decimal) or type_ in (types.TIMESTAMP, types.TIMESTAMP_NTZ, types.DATE)


def _wrong(raw: str, type_: Type, format_: str | None = None, depth: int = 0) -> str | None:
    """SQL that is true where the parser gave a value that is none of this type."""
    match type_:
        case Array() | Map():
            inner = type_.element if isinstance(type_, Array) else type_.value
            items = raw if isinstance(type_, Array) else f"map_values({raw})"
            variable = f"y{depth}"
            found = _wrong(variable, inner, depth=depth + 1)
            return f"coalesce(exists({items}, {variable} -> {found}), false)" if found else None
        case Struct():
            parts = [_wrong(f"{raw}.{named(field.name)}", field.type, depth=depth) for field in type_.fields]
            return " OR ".join(f"({part})" for part in parts if part) or None
        case types.DOUBLE | types.FLOAT:
            return f"coalesce(abs({raw}) = double('Infinity'), false)"
    if not _converts(type_):
        return None
    present = f"coalesce(schema_of_variant({raw}) <> 'VOID', false)" if isinstance(type_, Decimal) else f"{raw} IS NOT NULL"
    return f"{present} AND {_convert(raw, type_, format_, depth)} IS NULL"


def _explain(fields: Sequence[Field]) -> tuple[tuple[str, str], ...]:
    """Why a message cannot be decoded: SQL conditions over `_sluice_text` in order, and SQL for what is said."""
    kind = "schema_of_variant(_sluice_parsed)"
    found = [
        ("NOT is_valid_utf8(_sluice_text)", "'the value is not UTF-8 text'"),
        ("trim(BOTH ' \\t\\n\\r' FROM _sluice_text) = ''", "'the value is empty'"),
        (f"octet_length(_sluice_value) > {EXPLAINED}", "message"),
        ("_sluice_parsed IS NULL", "'the value is not JSON'"),
        (f"NOT startswith({kind}, 'OBJECT')", f"concat('the value is no JSON object but ', lower({kind}))"),
        (f"NOT ({_ONE_OBJECT})", "'more text follows the JSON object'"),
    ]
    for field in fields:
        path = quoted('$["' + field.name.replace('"', '\\"') + '"]')
        given = f"schema_of_variant(try_variant_get(_sluice_parsed, {path}, 'variant'))"
        wrong = f"coalesce({given} NOT RLIKE '^({_json_types(field)}|VOID)', false)"
        found.append((wrong, f"concat({quoted(f'`{field.name}` is not {field.type} but ')}, lower({given}))"))
    return (*found, ("true", "'a value does not fit its column'"))


def _json_types(field: Field) -> str:
    match field.type:
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
    return "BIGINT|DECIMAL" if types.is_integral(field.type) or field.format else "STRING"
