"""Hints for casts that do not exist: the SQL to write instead."""

from __future__ import annotations

from framework.base.types import (
    BINARY,
    BOOLEAN,
    DATE,
    INTERVALS,
    STRING,
    TIMES,
    TIMESTAMP_NTZ,
    Array,
    Map,
    Struct,
    Type,
    is_integral,
    is_numeric,
)
from framework.sql.pieces import Piece
from framework.sql.suggested import cast, code, without_parentheses, written


def suggest_for_cast(value: Piece, type: Type) -> str:
    """Returns the hint for a cast that does not exist."""
    source, sql = value.type, without_parentheses(written(value))
    if isinstance(source, Array | Map | Struct):
        return _suggest_for_nested_cast(value, type)
    if isinstance(type, Array | Map | Struct):
        if source != STRING:
            if isinstance(type, Array) and (type.element == STRING or (is_numeric(source) and is_numeric(type.element))):
                return f"write {code(f'array({cast(value, type.element)})')} for a list of this value"
            return f"{source} has no parts"
        parsed, cut = f"from_json({sql}, '{type}')", f"split({sql}, ',')"
        return f"write {code(parsed)} if it is JSON" + (f", or {code(cut)} for a list" if _is_texts(type) else "")
    if type == BINARY:
        encoded = f"encode({cast(value, STRING)}, 'utf-8')"
        return f"write {code(encoded)} for its text"
    if source == BINARY:
        return f"write {code(f'cast({cast(value, STRING)} as {type})')}"
    if type in TIMES and is_numeric(source):
        return _suggest_for_time_from_number(sql, source, type)
    if source in TIMES and (is_numeric(type)):
        unit = f"unix_date({sql})` for days" if source == DATE else f"unix_millis(cast({sql} as timestamp))` for milliseconds"
        return f"write `{unit}, `unix_timestamp({sql})` for seconds"
    if source in INTERVALS.values() or type in INTERVALS.values():
        return "an interval is a difference of two times: `at - sent`"
    return f"write a condition: {code(f'{sql} is not null')}" if type == BOOLEAN else f"there is no {type} in a {source}"


def _suggest_for_nested_cast(value: Piece, type: Type) -> str:
    sql = written(value)
    if isinstance(value.type, Array):
        if isinstance(type, Array):
            return f"cast its items: {code(f'transform({sql}, x -> cast(x as {type.element}))')}"
        return f"take one of its items: {code(f'{sql}[0]')}"
    if isinstance(value.type, Struct):
        return f"take one of its fields: {code(f'{sql}.{value.type.fields[0].name}')}"
    item = f"{sql}['key']"
    return f"take one of its values: {code(item)}"


def _is_texts(type: Type) -> bool:
    return isinstance(type, Array) and type.element == STRING


def _suggest_for_time_from_number(sql: str, source: Type, type: Type) -> str:
    if type == DATE:
        date = f"write {code(f'cast(timestamp_seconds({sql}) as date)')} if it counts seconds"
        return date + (
            f", {code(f'date_from_unix_date({sql})')} if days" if str(source) in ("tinyint", "smallint", "int") else ""
        )
    seconds = f"timestamp_seconds({sql})"
    millis = f"timestamp_millis(cast({sql} as bigint))" if not is_integral(source) else f"timestamp_millis({sql})"
    if type == TIMESTAMP_NTZ:
        seconds, millis = f"cast({seconds} as timestamp_ntz)", f"cast({millis} as timestamp_ntz)"
    return f"write {code(millis)} if it counts milliseconds, {code(seconds)} if seconds"
