"""Functions whose type no signature can say: it depends on a literal, on digits of decimals, or on all arguments together."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from framework import types
from framework.sql import operators, patterns
from framework.sql.arguments import Use
from framework.sql.bounded_functions import NO_KEY
from framework.sql.pieces import Piece, guard, made
from framework.sql.quote import identifier, literal
from framework.sql.reserved import words
from framework.sql.special_syntax import UNITS
from framework.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INT,
    MONTHS,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    VOID,
    Array,
    Decimal,
    Field,
    Map,
    Struct,
    Type,
    holds_map,
    is_integral,
    is_numeric,
)


def coalesce(use: Use) -> Piece:
    pieces = use.some(1) if use.name == "coalesce" else use.some(2, 2)
    type = operators.together(use.name, pieces)
    return made(use.offset, use.sql(), type, pieces, operators.mixed(pieces, type))


def extreme(use: Use) -> Piece:
    pieces = use.some(2)
    type = operators.together(use.name, pieces, texts=False)
    if holds_map(type) or type == VOID:
        raise use.fault(f"cannot order {operators.name(type)}", "name numbers, strings, dates or timestamps")
    return made(use.offset, use.sql(), type, pieces, operators.mixed(pieces, type))


def nullif(use: Use) -> Piece:
    left, right = use.some(2, 2)
    compared = operators.comparison("=", left, right, use.offset)
    return made(use.offset, use.sql(), left.type, (left, right), compared.fails)


def zero(use: Use) -> Piece:
    """`zeroifnull`, `nullifzero`"""
    (piece,) = use.some(1, 1)
    nought = Piece("0", INT, offset=piece.offset, constant="0")
    type = operators.together(use.name, (piece, nought)) if use.name == "zeroifnull" else piece.type
    if not is_numeric(piece.type):
        raise use.fault(f"takes a number here, not {operators.name(piece.type)}", "cast(x as double)", piece)
    return made(use.offset, use.sql(), type, (piece,))


def condition(use: Use) -> Piece:
    test, yes, no = use.some(3, 3)
    chosen = operators.chosen([(test, yes)], no, use.offset)
    return made(use.offset, use.sql(), chosen.type, (chosen,), False)


def nvl2(use: Use) -> Piece:
    test, yes, no = use.some(3, 3)
    type = operators.together(use.name, (yes, no))
    return made(use.offset, use.sql(), type, (test, yes, no), operators.mixed((yes, no), type))


def decode(use: Use) -> Piece:
    """Of bytes and a charset, or one value for each of several."""
    pieces = use.some(2)
    if len(pieces) == 2:
        for piece in pieces:
            if str(piece.type) not in ("binary", "string", "void"):
                raise use.fault(f"takes bytes and the name of a charset, not {piece.type}", "decode(x, 'utf-8')", piece)
        return made(use.offset, use.sql(), STRING, pieces)
    searched, values = pieces[1::2], pieces[2::2]
    otherwise = [searched[-1]] if len(searched) > len(values) else []
    operators.together("IN", [pieces[0], *searched[: len(values)]])
    return made(use.offset, use.sql(), operators.together(use.name, [*values, *otherwise]), pieces)


def same(use: Use) -> Piece:
    left, right = use.some(2, 2)
    return made(use.offset, use.sql(), BOOLEAN, (operators.comparison("<=>", left, right, use.offset),), False)


def rounded(use: Use) -> Piece:
    """`round`, `bround`; the number of places is a literal."""
    piece = use.some(1, 2)[0]
    places = use.integer(use.arguments[1], -37, 37) if len(use.arguments) == 2 else 0
    type = _number(use, piece)
    if isinstance(type, Decimal):
        digits = type.precision - type.scale + 1
        scale = min(type.scale, max(places, 0))
        type = Decimal(min(max(digits, 1 - places) if places < 0 else digits + scale, 38), scale)
    return made(use.offset, use.sql(), type, (piece,))


def whole(use: Use) -> Piece:
    """`ceil`, `floor`; with a number of places the result is a decimal."""
    piece = use.some(1, 2)[0]
    type = _number(use, piece)
    if len(use.arguments) == 1:
        result: Type = Decimal(min(type.precision - type.scale + 1, 38), 0) if isinstance(type, Decimal) else BIGINT
        return made(use.offset, use.sql(), result, (piece,))
    places = use.integer(use.arguments[1], -37, 37)
    digits = _DIGITS.get(type) or (type if isinstance(type, Decimal) else Decimal(30, 15))
    scale = min(digits.scale, max(places, 0))
    precision = (
        max(digits.precision - digits.scale + 1, 1 - places) + scale
        if places < 0
        else digits.precision - digits.scale + 1 + scale
    )
    return made(use.offset, use.sql(), Decimal(min(precision, 38), scale), (piece,))


_DIGITS: Mapping[Type, Decimal] = {
    **dict(zip(types.INTEGRALS, (Decimal(3, 0), Decimal(5, 0), Decimal(10, 0), Decimal(20, 0)), strict=True)),
    types.FLOAT: Decimal(14, 7),
}


def _number(use: Use, piece: Piece) -> Type:
    if piece.type == STRING:
        return DOUBLE
    if not is_numeric(piece.type):
        raise use.fault(f"takes a number here, not {operators.name(piece.type)}", "cast(x as double)", piece)
    return piece.type


def operation(use: Use) -> Piece:
    """`mod`, `try_add` and their like: operators written as functions."""
    left, right = use.some(2, 2)
    return operators.arithmetic(_OPERATORS[use.name], left, right, use.offset, use.name)


_OPERATORS = {
    "mod": "%", "pmod": "%", "try_add": "+", "try_subtract": "-", "try_multiply": "*", "try_divide": "/", "try_mod": "%",
}  # fmt: skip


def concat(use: Use) -> Piece:
    return operators.joined(use.some(1), use.offset, use.sql())


def array(use: Use) -> Piece:
    pieces = use.some(1)
    type = operators.together(use.name, pieces)
    if type == VOID:
        raise use.fault("of NULL has no type", "cast(null as string)")
    return made(use.offset, use.sql(), Array(type), pieces, operators.mixed(pieces, type))


def map_of(use: Use) -> Piece:
    pieces = use.some(2)
    if len(pieces) % 2:
        raise use.fault("takes keys and values in turns", "map('a', x, 'b', y)")
    key, value = operators.together(use.name, pieces[::2]), operators.together(use.name, pieces[1::2])
    if VOID in (key, value) or holds_map(key):
        raise use.fault("needs keys and values of some type", "map('a', cast(null as string))")
    keys = (f"coalesce({piece.sql}, raise_error('{NO_KEY}'))" if at % 2 == 0 else piece.sql for at, piece in enumerate(pieces))
    return made(use.offset, use.sql(*keys), Map(key, value), pieces)


def named_struct(use: Use) -> Piece:
    pieces = use.some(2)
    if len(pieces) % 2:
        raise use.fault("takes names and values in turns", "named_struct('a', x, 'b', y)")
    fields: list[Field] = []
    for name, value in zip(pieces[::2], pieces[1::2], strict=True):
        text = patterns.text(name, "a field's name")
        if not text or Struct(tuple(fields)).field(text):
            why = f"has two fields '{text}'" if text else "has a field without a name"
            raise use.fault(why, "give each field a name of its own", name)
        if value.type == VOID:
            raise use.fault("cannot give NULL a type", "cast(null as string)", value)
        fields.append(Field(text, value.type))
    return made(use.offset, use.sql(), Struct(tuple(fields)), pieces, False)


def map_from_entries(use: Use) -> Piece:
    (piece,) = use.some(1, 1)
    entry = piece.type.element if isinstance(piece.type, Array) else None
    if not isinstance(entry, Struct) or len(entry.fields) != 2 or holds_map(entry.fields[0].type):
        raise use.fault(
            f"takes a list of structs of two fields, not {operators.name(piece.type)}", "map_entries(x) gives one", piece
        )
    name = identifier(entry.fields[0].name)
    fits = f"NOT exists({piece.sql}, e -> e.{name} IS NULL AND e IS NOT NULL)"
    return made(use.offset, use.sql(guard(fits, piece.sql, NO_KEY)), Map(entry.fields[0].type, entry.fields[1].type), (piece,))


def part(use: Use) -> Piece:
    """`extract(hour from at)`, `date_part('hour', at)`"""
    field, piece = use.some(2, 2)
    if piece.type in types.INTERVALS.values():
        fields = _OF_INTERVALS[MONTHS if piece.type == MONTHS else TIME]
        return made(use.offset, use.sql(), fields[use.word(field, tuple(fields))], (piece,))
    if piece.type not in _MOMENTS:
        raise use.fault(
            f"takes a part of a time or of an interval, not of {operators.name(piece.type)}", "cast(x as timestamp)", piece
        )
    word = use.word(field, (*sorted(_FIELDS), *_SECONDS))
    return made(use.offset, use.sql(), Decimal(8, 6) if word in _SECONDS else INT, (piece,))


_SECONDS = ("second", "s", "sec", "seconds", "secs")
_FIELDS = words("""
    year y years yr yrs yearofweek quarter qtr month mon mons months week w weeks day d days dayofweek dow dayofweek_iso
    dow_iso doy hour h hours hr hrs minute m min mins minutes
""")
_OF_INTERVALS: Mapping[Type, Mapping[str, Type]] = {
    MONTHS: {"year": INT, "month": TINYINT},
    TIME: {"day": INT, "hour": TINYINT, "minute": TINYINT, "second": Decimal(8, 6)},
}


def moved(use: Use) -> Piece:
    """`timestampadd(day, 1, at)`, `timestampdiff(day, a, b)`"""
    unit, first, second = use.some(3, 3)
    word = use.word(unit, UNITS)
    if not is_integral(first.type) if use.name == "timestampadd" else first.type not in _MOMENTS:
        raise use.fault(
            f"takes a unit, then {'a number' if use.name == 'timestampadd' else 'two times'}", f"{use.name}(day, …)", first
        )
    if second.type not in _MOMENTS:
        raise use.fault(f"takes a time here, not {operators.name(second.type)}", "cast(x as timestamp)", second)
    added = second.type if second.type == TIMESTAMP_NTZ else TIMESTAMP
    sql = f"{use.name}({word.upper()}, {first.sql}, {second.sql})"
    return made(use.offset, sql, added if use.name == "timestampadd" else BIGINT, (first, second))


_MOMENTS = (*types.TIMES, STRING)


def parsed(use: Use) -> Piece:
    """`from_json(text, 'a int, b string')`, `from_csv`: the schema is a literal."""
    piece, schema = use.some(2, 2)
    if piece.type != STRING:
        raise use.fault(f"takes a text here, not {operators.name(piece.type)}", "cast(x as string)", piece)
    text = patterns.text(schema, "a schema")
    try:
        type = types.parse(text if re.match(r"\s*(struct|array|map)\s*<", text, re.IGNORECASE) else f"struct<{text}>")
    except types.TypeTextError as error:
        raise use.fault(f"takes a schema here: {error.message}", error.hint or "write 'a int, b string'", schema) from None
    if use.name == "from_csv" and not isinstance(type, Struct):
        raise use.fault("gives a struct", "write 'a int, b string'", schema)
    return made(use.offset, f"{use.name}({piece.sql}, {literal(type.sql)})", type, (piece,))


def number_of(use: Use) -> Piece:
    """`to_number('1,234.50', '9,999.99')`: a decimal with as many digits as the format has."""
    piece, form = use.some(2, 2)
    text = patterns.text(form, "a format of numbers").upper()
    digits = re.sub(r"[^09D.]", "", text.replace("PR", "").replace("MI", ""))
    whole_digits, _, fraction = digits.replace("D", ".").partition(".")
    precision = len(whole_digits) + len(fraction)
    if not re.fullmatch(r"(MI|S)?\$?[09GDPRMIS,.]*\$?(MI|S|PR)?", text) or not 0 < precision <= 38 or "." in fraction:
        raise use.fault(f"does not know the format '{text}'", "write for example '9,999.99'", form)
    return made(use.offset, use.sql(), Decimal(precision, len(fraction)), (piece,))


def trimmed(use: Use) -> Piece:
    """`trim(leading '0' from s)`"""
    characters, piece = use.arguments
    for each in use.arguments:
        if not isinstance(each.type, types.Atom | Decimal):
            raise use.fault(f"takes texts, not {each.type}", "cast(x as string)", each)
    return made(use.offset, f"trim({use.name.split()[0].upper()} {characters.sql} FROM {piece.sql})", STRING, use.arguments)


TABLE: Mapping[str, Callable[[Use], Piece]] = {
    "array": array,
    **dict.fromkeys(("both trim", "leading trim", "trailing trim"), trimmed),
    **dict.fromkeys(("round", "bround"), rounded),
    **dict.fromkeys(("ceil", "ceiling", "floor"), whole),
    **dict.fromkeys(("coalesce", "ifnull", "nvl"), coalesce),
    "concat": concat,
    **dict.fromkeys(("date_part", "datepart"), part),
    "decode": decode,
    "equal_null": same,
    **dict.fromkeys(("from_csv", "from_json"), parsed),
    **dict.fromkeys(("greatest", "least"), extreme),
    "if": condition,
    "map": map_of,
    "map_from_entries": map_from_entries,
    "named_struct": named_struct,
    "nullif": nullif,
    **dict.fromkeys(("nullifzero", "zeroifnull"), zero),
    "nvl2": nvl2,
    **dict.fromkeys(_OPERATORS, operation),
    **dict.fromkeys(("timestampadd", "timestampdiff"), moved),
    **dict.fromkeys(("to_number", "try_to_number"), number_of),
}
