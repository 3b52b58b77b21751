"""JSON's values as Spark SQL reads them: each type from its own kind of JSON value only, never another value.

Limit: a `string` column takes an object, a list or a fraction as Spark writes it again: without spaces, 2.50 as 2.5.
"""

from __future__ import annotations

from framework import types
from framework.encoding.fields import Written
from framework.sql.quote import identifier, literal
from framework.types import Array, Decimal, Map, Struct, Type

_ISO_DATE = r"^\\d{4}-\\d\\d-\\d\\d$"
_FIRST_DAY, _LAST_DAY = -719162, 2932896  # the years 1 to 9999
# From a whole number; the first and the last number that is taken.
_EPOCHS = {
    "epoch_millis": ("timestamp_millis({})", _FIRST_DAY * 86_400_000, (_LAST_DAY + 1) * 86_400_000 - 1),
    "epoch_micros": ("timestamp_micros({})", _FIRST_DAY * 86_400_000_000, (_LAST_DAY + 1) * 86_400_000_000 - 1),
    "epoch_days": ("date_from_unix_date(CAST({} AS INT))", _FIRST_DAY, _LAST_DAY),
}


def raw_type(type_: Type) -> str:
    """The type as which Spark's parser reads it: strict for its JSON type, and without its own ideas of times and decimals."""
    match type_:
        case Array():
            return f"array<{raw_type(type_.element)}>"
        case Map():
            return f"map<string, {raw_type(type_.value)}>"
        case Struct():
            return "struct<" + ", ".join(f"{identifier(field.name)}: {raw_type(field.type)}" for field in type_.fields) + ">"
        case Written() if type_.format in _EPOCHS:
            return "bigint"
        case Decimal() | Written():
            return "variant"  # from_json would take "1.2" in quotes for a decimal
        case types.TIMESTAMP | types.TIMESTAMP_NTZ | types.DATE:
            return "string"
    return str(type_)


def value(raw: str, type_: Type, depth: int = 0) -> str:
    """A column's value from what the parser gave; null where that does not fit."""
    if not _converts(type_):
        return raw
    match type_:
        case Array():
            return f"transform({raw}, x{depth} -> {value(f'x{depth}', type_.element, depth + 1)})"
        case Map():
            return f"transform_values({raw}, (k{depth}, x{depth}) -> {value(f'x{depth}', type_.value, depth + 1)})"
        case Struct():
            parts = ", ".join(
                f"{literal(field.name)}, {value(f'{raw}.{identifier(field.name)}', field.type, depth)}" for field in type_.fields
            )
            return f"CASE WHEN {raw} IS NOT NULL THEN named_struct({parts}) END"
        case Decimal():
            return f"CASE WHEN {_is_number(raw)} THEN {_number(raw, type_)} END"
        case Written(format="base64"):
            # As Connect's converters write it, which can be told to write a number.
            number, text = _is_number(raw), f"schema_of_variant({raw}) = 'STRING'"
            decoded = _from_base64(raw, type_.type)
            return f"CASE WHEN {number} THEN {_number(raw, type_.type)} WHEN {text} THEN {decoded} END"
        case Written():
            sql, first, last = _EPOCHS[type_.format]
            return f"CASE WHEN {raw} BETWEEN {first} AND {last} THEN {sql.format(raw)} END"
        case types.DATE:
            return f"CASE WHEN {raw} RLIKE '{_ISO_DATE}' THEN try_cast({raw} AS date) END"
    # The cast takes a year or an hour alone for a time. A pattern would say this better and cost a tenth of the throughput.
    marks = f"{_mark(raw, 5)} = '-' AND {_mark(raw, 8)} = '-' AND {_mark(raw, 11)} IN ('T', ' ') AND {_mark(raw, 14)} = ':'"
    return f"CASE WHEN {marks} THEN try_cast({raw} AS {type_}) END"


def _is_number(raw: str) -> str:
    return f"regexp_like(schema_of_variant({raw}), '^(BIGINT|DECIMAL|DOUBLE)')"


def _number(raw: str, type_: Type) -> str:
    return f"try_variant_get({raw}, '$', '{type_}')"


def _from_base64(raw: str, type_: Type) -> str:
    """A decimal of its bytes, the highest first: a number of 16 bytes as two of 8; a negative one by the bits that it has not."""
    assert isinstance(type_, Decimal)
    hex_ = f"hex(try_to_binary(try_variant_get({raw}, '$', 'string'), 'base64'))"
    full = "IF(h < '8', lpad(h, 32, '0'), translate(lpad(h, 32, 'F'), '0123456789ABCDEF', 'FEDCBA9876543210'))"
    high, low = (f"CAST(conv(substring({full}, {at}, 16), 16, 10) AS DECIMAL(38, 0))" for at in (1, 17))
    whole = f"({high} * CAST({1 << 64} AS DECIMAL(38, 0)) + {low})"
    signed = f"IF(h < '8', {whole}, CAST(-1 AS DECIMAL(38, 0)) - {whole})"  # Spark's minus alone rounds to 34 digits
    # Asked before, since of decimals not even `try_add` keeps to the 38 digits.
    fits = f"length(h) BETWEEN 2 AND 32 AND {full} <= IF(h < '8', '{10**38 - 1:032X}', '{10**38 - 2:032X}')"
    found = f"try_cast(concat(CAST({signed} AS STRING), 'E-{type_.scale}') AS {type_})"
    return f"transform(array({hex_}), h -> CASE WHEN {fits} THEN {found} END)[0]"


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
    return isinstance(type_, Decimal | Written) or type_ in (types.TIMESTAMP, types.TIMESTAMP_NTZ, types.DATE)


def misfit(raw: str, type_: Type, depth: int = 0) -> str | None:
    """SQL that is true where the parser gave a value that is none of this type."""
    match type_:
        case Array() | Map():
            inner = type_.element if isinstance(type_, Array) else type_.value
            items = raw if isinstance(type_, Array) else f"map_values({raw})"
            variable = f"y{depth}"
            found = misfit(variable, inner, depth + 1)
            return f"coalesce(exists({items}, {variable} -> {found}), false)" if found else None
        case Struct():
            parts = [misfit(f"{raw}.{identifier(field.name)}", field.type, depth) for field in type_.fields]
            return " OR ".join(f"({part})" for part in parts if part) or None
        case types.DOUBLE | types.FLOAT:
            return f"coalesce(abs({raw}) = double('Infinity'), false)"
    if not _converts(type_):
        return None
    there = f"coalesce(schema_of_variant({raw}) <> 'VOID', false)" if raw_type(type_) == "variant" else f"{raw} IS NOT NULL"
    return f"{there} AND {value(raw, type_, depth)} IS NULL"
