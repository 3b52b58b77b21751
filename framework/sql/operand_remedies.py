"""Hints for an operand of a type that an operator does not take: the SQL to write instead."""

from __future__ import annotations

import re

from framework.base.types import BOOLEAN, DOUBLE, INTERVALS, STRING, TIMES, Array, Map, Struct, Type, is_numeric
from framework.sql.literals import whole
from framework.sql.pieces import Piece
from framework.sql.remedies import as_number
from framework.sql.suggested import cast, cast_hint, code, without_parentheses, written

_EMPTY = "''"


def suggest_for_truth(value: Piece) -> str:
    """Returns the hint for a value that stands where a condition must."""
    sql = written(value)
    if is_numeric(value.type):
        return f"write a comparison: {code(f'{sql} <> 0')}"
    if value.type == STRING and value.constant is None:
        return f"write {code(cast(value, BOOLEAN))} if it says true or false, or {code(f'{sql} is not null')}"
    return f"write a comparison, or {code(f'{sql} is not null')}"


def suggest_for_condition(sql: str, type: Type) -> str:
    """Returns the hint for an expression, as its author wrote it, that stands where a condition must."""
    if is_numeric(type):
        return f"compare it: {code(f'{sql} > 0')}"
    if type == STRING:
        return f"compare it, such as {code(f'{sql} <> {_EMPTY}')}, or write {code(f'cast({sql} as boolean)')} if it says true or false"
    return f"compare it, or write {code(f'{sql} is not null')}"


def suggest_for_pattern(text: Piece, pattern: Piece) -> str:
    """Returns the hint for a pattern that is not a literal."""
    is_column = re.fullmatch(r"[\w.]+|`[^`]+`", written(pattern))
    part = written(pattern) if is_column else "x"
    calls = [code(f"{function}({written(text)}, {part})") for function in ("contains", "startswith", "endswith")]
    note = "" if is_column else ", where x is the text without % and _"
    return f"write the pattern in single quotes, or {', '.join(calls)}{note}"


def suggest_for_number(operator: str, operand: Piece, left_side: Piece, right_side: Piece) -> str:
    """Returns the hint for an operand of arithmetic that is no number."""
    other_side = right_side if operand is left_side else left_side
    if operand.type == STRING:
        return _suggest_for_text(operator, operand, left_side, right_side, other_side)
    if operand.type in TIMES:
        return "a time takes an interval, a date also a number of days: `at + interval 1 day`"
    if operand.type in INTERVALS.values():
        return "an interval is added to a date or timestamp: `at + interval 1 day`"
    if operand.type == BOOLEAN:
        return cast_hint(operand, "int")
    if isinstance(operand.type, Array):
        return f"take its size or one of its items: {code(f'size({written(operand)})')}, {code(f'{written(operand)}[0]')}"
    return "take a number inside it"


def _suggest_for_text(operator: str, text: Piece, left_side: Piece, right_side: Piece, other_side: Piece) -> str:
    if other_side.type in TIMES:
        return "write an interval without quotes around all of it, or a time: `interval 1 day`, `timestamp'2026-01-31 10:00:00'`"
    if text.constant is not None and is_numeric(other_side.type) and (number := as_number(text)):
        return f"write it as a number: `{number}`"
    if left_side is right_side:
        return f"write {code(f'{operator}{cast(text, DOUBLE)}')}"
    joined = f"{written(left_side)} || {written(right_side)}"
    if text.constant is not None and operator == "+":
        return f"write {code(joined)} to join texts"
    numbers = f" {operator} ".join(
        cast(side, DOUBLE) if side.type == STRING else written(side) for side in (left_side, right_side)
    )
    return f"write {code(numbers)} for numbers" + (f", or {code(joined)} to join texts" if operator == "+" else "")


def suggest_for_division(left_side: Piece, right_side: Piece) -> str:
    """Returns the hint for `div` of numbers with a fraction, which a cast cuts in the same way."""
    return f"write {code(f'cast({written(left_side)} / {written(right_side)} as bigint)')}"


def suggest_for_bits(operator: str, operand: Piece, pieces: tuple[Piece, ...]) -> str:
    """Returns the hint for an operand of `& | ^ ~` that is no whole number."""
    if operand.type == BOOLEAN:
        if len(pieces) == 1:
            return f"write {code(f'not {written(operand)}')}"
        condition = {"&": " and ", "|": " or ", "^": " <> "}[operator].join(written(piece) for piece in pieces)
        return f"write {code(condition)}"
    if operator == "^" and len(pieces) == 2:
        base, exponent = (without_parentheses(written(piece)) for piece in pieces)
        return f"write {code(f'pow({base}, {exponent})')} for a power"
    return cast_hint(operand, "bigint")


def suggest_for_member(value: Piece, name: str) -> str:
    """Returns the hint for a field of a value that has no fields."""
    sql = written(value)
    if isinstance(value.type, Map):
        item = f"{sql}['{name}']"
        return f"write {code(item)}"
    if value.type == STRING:
        part = f"get_json_object({sql}, '$.{name}')"
        return f"write {code(part)} if it is JSON; only a struct has fields"
    return "only a struct has fields"


def suggest_for_item(value: Piece, index: Piece) -> str:
    """Returns the hint for an item of a value that has no items."""
    position = whole(index)
    if isinstance(value.type, Struct) and index.constant and index.type == STRING and value.type.field(index.constant):
        return f"write {code(f'{written(value)}.{index.constant}')}"
    if value.type == STRING and position is not None and position >= 0:
        return f"write {code(f'substring({written(value)}, {position + 1}, 1)')} for a character; only arrays and maps have items"
    return "only arrays and maps have items"


def suggest_for_index(list_: Piece, index: Piece) -> str:
    """Returns the hint for an item of an array whose index is not an int."""
    if index.type == STRING:
        contains = f"array_contains({written(list_)}, {written(index)})"
        return f"the first one is {code(f'{written(list_)}[0]')}; whether it has an item says {code(contains)}"
    if is_numeric(index.type):
        return cast_hint(index, "int")
    return f"the first one is {code(f'{written(list_)}[0]')}"


def suggest_for_key(map_: Piece, key: Piece) -> str:
    """Returns the hint for a key whose type is not that of the map's keys."""
    assert isinstance(map_.type, Map)
    if map_.type.key == STRING and key.constant is not None and is_numeric(key.type):
        item = f"{written(map_)}['{key.constant}']"
        return f"write {code(item)}"
    if isinstance(key.type, Array | Map | Struct):
        return f"name a key of type {map_.type.key}"
    return cast_hint(key, map_.type.key)
