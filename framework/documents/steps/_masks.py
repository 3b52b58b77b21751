"""Masks of single values: the SQL of a masked value, and its type. A null stays null."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from framework.base.types import (
    BIGINT,
    BINARY,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    Array,
    Decimal,
    Field,
    Map,
    Struct,
    Type,
)
from framework.language.options import OptionGroup, option
from framework.plan import MaskKey
from framework.sql import masks
from framework.sql.quote import identifier, literal

HIDDEN = "***"
_WHOLE = (TINYINT, SMALLINT, INT, BIGINT)
_REAL = (FLOAT, DOUBLE)
_TIMES = (TIMESTAMP, TIMESTAMP_NTZ)
Unit = Literal["year", "month", "day", "hour"]
Plain = Literal["hmac", "encrypt", "redact", "null", "drop"]


@dataclass(frozen=True)
class Partial(OptionGroup):
    """Some characters of a text stay, behind or in front of `***`."""

    exactly_one = True

    keep_last: int | None = option("How many characters at the end stay.", default=None, example="4", at_least=1, at_most=64)
    keep_first: int | None = option(
        "How many characters at the beginning stay.", default=None, example="2", at_least=1, at_most=64
    )


@dataclass(frozen=True)
class Generalize(OptionGroup):
    """A coarser value."""

    exactly_one = True

    range: int | None = option(
        "A number becomes the lower end of its range: 34 becomes 30 with 10.",
        default=None,
        example="10",
        at_least=1,
        at_most=1_000_000_000,
    )
    ip_prefix: int | None = option(
        "An address becomes its network of so many bits: 203.0.113.0/24. For IPv6 the network has twice as many bits.",
        default=None,
        example="24",
        at_least=1,
        at_most=32,
    )


@dataclass(frozen=True)
class Method(OptionGroup):
    """A method with options."""

    exactly_one = True

    partial: Partial | None = option("A part of a text stays.", default=None, example="{keep_last: 4}")
    generalize: Unit | Generalize | None = option(
        "A time becomes the beginning of its year, month, day or hour; a number its range; an address its network.",
        default=None, example="year",
    )  # fmt: skip


@dataclass(frozen=True)
class Masked:
    """SQL of a masked value, and its type. Without `sql`, the method does not fit the type, and `wrong` says why."""

    sql: str = ""
    type: Type = STRING
    wrong: str = ""
    hint: str = 'take another method: `hmac`, `encrypt` and `"null"` fit every type but binary and maps'


def masked(method: str | Method, value: str, type_: Type, keys: Sequence[MaskKey], path: Sequence[str]) -> Masked:
    """Returns the masked value; of a list, each item is masked."""
    if isinstance(type_, Array):
        inner = masked(method, "m", type_.element, keys, path)
        return Masked(f"transform({value}, m -> {inner.sql})", Array(inner.type), inner.wrong, inner.hint)
    if isinstance(type_, Map | Struct):
        if isinstance(type_, Map) or not type_.fields:
            return Masked(wrong=f"is {type_}, in which nothing is masked", hint="leave it out, by a step `drop`")
        return Masked(wrong=f"is {type_}", hint=f"name its field: `{'.'.join(path)}.{type_.fields[0].name}`")
    if isinstance(method, str):
        return _PLAIN[method](value, type_, keys, path)
    if method.partial is not None:
        return _partial(method.partial, value, type_)
    return _generalized(method.generalize, value, type_, keys)


def _canonical(method: str, value: str, type_: Type, keys: Sequence[MaskKey], **options: object) -> Masked:
    if type_ == BINARY:
        return Masked(wrong="is binary", hint="make it a text by a step before: `derive: {photo: hex(photo)}`")
    text = value if type_ == STRING else f"CAST({value} AS STRING)"
    return Masked(masks.call(method, keys, text, number=is_number(type_), **options))


def is_number(type_: Type) -> bool:
    return isinstance(type_, Decimal) or type_ in (*_WHOLE, *_REAL)


def _redacted(value: str, type_: Type, _keys: Sequence[MaskKey], _path: Sequence[str]) -> Masked:
    if type_ != STRING:
        return Masked(wrong=f"is {type_}, and `redact` makes a text")
    return Masked(f"IF({value} IS NULL, NULL, {literal(HIDDEN)})")


_PLAIN: dict[str, Callable[[str, Type, Sequence[MaskKey], Sequence[str]], Masked]] = {
    "hmac": lambda value, type_, keys, _path: _canonical("hmac", value, type_, keys),
    "encrypt": lambda value, type_, keys, path: _canonical("encrypt", value, type_, keys, column=".".join(path)),
    "redact": _redacted,
    "null": lambda _value, type_, _keys, _path: Masked(f"CAST(NULL AS {type_.sql})", type_),
}


def _partial(partial: Partial, value: str, type_: Type) -> Masked:
    """Hides a text but for some characters. A text that is not longer than these is hidden as a whole."""
    if type_ != STRING:
        return Masked(wrong=f"is {type_}, and `partial` keeps characters of a text")
    count = partial.keep_last or partial.keep_first
    kept_part = (
        f"concat({literal(HIDDEN)}, right({value}, {count}))"
        if partial.keep_last
        else f"concat(left({value}, {count}), {literal(HIDDEN)})"
    )
    return Masked(
        f"CASE WHEN {value} IS NULL THEN NULL WHEN char_length({value}) <= {count} THEN {literal(HIDDEN)} ELSE {kept_part} END"
    )


def _generalized(generalize: str | Generalize | None, value: str, type_: Type, keys: Sequence[MaskKey]) -> Masked:
    if isinstance(generalize, str):
        if type_ == DATE and generalize != "hour":
            return Masked(f"trunc({value}, '{generalize}')" if generalize != "day" else value, DATE)
        if type_ in _TIMES:
            return Masked(f"CAST(date_trunc('{generalize}', {value}) AS {type_.sql})", type_)
        return Masked(wrong=f"is {type_}, and has no {generalize}")
    assert generalize is not None
    if generalize.ip_prefix is not None:
        return (
            Masked(masks.call("ip", keys, value, bits=generalize.ip_prefix))
            if type_ == STRING
            else Masked(wrong=f"is {type_}, and an address is a text")
        )
    return _in_range(generalize.range or 1, value, type_)


def _in_range(size: int, value: str, type_: Type) -> Masked:
    """Returns the lower end of a number's range, or null if the type cannot hold it."""
    if isinstance(type_, Decimal):
        divisor = f"CAST({size} AS DECIMAL(10,0))"
        return Masked(f"try_cast(try_multiply(floor({value} / {divisor}), {divisor}) AS {type_.sql})", type_)
    if type_ in _REAL:
        return Masked(f"CAST({value} - pmod({value}, {size}D) AS {type_.sql})", type_)
    if type_ in _WHOLE:
        whole = f"CAST({value} AS BIGINT)"
        return Masked(f"try_cast(try_subtract({whole}, pmod({whole}, {size}L)) AS {type_.sql})", type_)
    return Masked(wrong=f"is {type_}, and only a number has a range")


def at_path(
    column: str, type_: Type, path: Sequence[str], leaf: Callable[[str, Type], Masked | None], depth: int = 0
) -> Masked | None:
    """Returns the column with `leaf` applied at the path, in each struct of a list, too. None if `leaf` drops all its fields."""
    if not path:
        return leaf(column, type_)
    if isinstance(type_, Array):
        item = f"i{depth}"
        inner = at_path(item, type_.element, path, leaf, depth + 1)
        if inner is None:
            return None
        return Masked(f"transform({column}, {item} -> {inner.sql})", Array(inner.type), inner.wrong, inner.hint)
    assert isinstance(type_, Struct)
    parts, fields = [], []
    wrong, hint = "", ""
    for field in type_.fields:
        field_sql = f"{column}.{identifier(field.name)}"
        masked_field: Masked | None = Masked(field_sql, field.type)
        if field.name == path[0]:
            masked_field = at_path(field_sql, field.type, path[1:], leaf, depth)
        if masked_field is not None:
            parts.append(f"{literal(field.name)}, {masked_field.sql}")
            fields.append(Field(field.name, masked_field.type))
            wrong, hint = (masked_field.wrong, masked_field.hint) if masked_field.wrong else (wrong, hint)
    if not fields:
        return None
    return Masked(f"IF({column} IS NULL, NULL, named_struct({', '.join(parts)}))", Struct(tuple(fields)), wrong, hint)
