"""The functions that an expression may call: what they take, what they give, and their form that never throws.

Most are one line of SIGNATURES: they are null when an argument is, and fail for nothing. The others are a function each
in `special_functions`, `collection_functions` and `date_functions`.
Kinds of arguments: a type's name takes that type and the narrower numbers; `date` also takes a timestamp and `timestamp` a
date, as Spark does, `day` a date only; `double` any number; `bytes` a string or binary; `?` marks what can be left out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from framework import types
from framework.spelling import did_you_mean
from framework.sql import collection_functions, date_functions, dialects, special_functions
from framework.sql.arguments import Use
from framework.sql.faults import ExpressionError, refused
from framework.sql.pieces import Piece, strict
from framework.sql.tree import Call
from framework.types import Type

SIGNATURES = """
    ascii(string) int
    base64(binary) string
    cbrt(double) double
    char_length(string) int
    contains(string, string) boolean
    crc32(bytes) bigint
    date_add(date, int) date
    date_from_unix_date(int) date
    date_sub(date, int) date
    datediff(date, date) int
    day(date) int
    dayofmonth(date) int
    dayofweek(date) int
    dayofyear(date) int
    endswith(string, string) boolean
    exp(double) double
    hour(timestamp) int
    initcap(string) string
    instr(string, string) int
    isnan(double) boolean
    last_day(date) date
    left(string, int) string
    length(bytes) int
    ln(double) double
    locate(string, string) int
    log10(double) double
    log2(double) double
    lower(string) string
    ltrim(string) string
    md5(bytes) string
    minute(timestamp) int
    month(date) int
    pow(double, double) double
    power(double, double) double
    quarter(date) int
    right(string, int) string
    rtrim(string) string
    second(timestamp) int
    sign(double) double
    signum(double) double
    sqrt(double) double
    startswith(string, string) boolean
    substr(string, int, int?) string
    substring(string, int, int?) string
    timestamp_micros(bigint) timestamp
    translate(string, string, string) string
    trim(string) string
    unix_date(day) int
    unix_timestamp(timestamp) bigint
    upper(string) string
    weekday(date) int
    weekofyear(date) int
    year(date) int
"""


@dataclass(frozen=True)
class Signature:
    name: str
    kinds: tuple[str, ...]
    result: Type


def _read(line: str) -> Signature:
    match = re.fullmatch(r"(\w+)\((.*)\) (\w+)", line.strip())
    assert match is not None, line
    return Signature(match[1], tuple(match[2].split(", ")), types.NAMES[match[3]])


_SPECIAL = {**special_functions.TABLE, **collection_functions.TABLE, **date_functions.TABLE}
_SIMPLE = {signature.name: signature for signature in map(_read, SIGNATURES.strip().splitlines())}

NAMES: frozenset[str] = frozenset(_SIMPLE) | frozenset(_SPECIAL)
"""Every function that can be called."""


def unknown(name: str, offset: int) -> ExpressionError:
    return refused(
        offset,
        "sql-not-allowed",
        f"{name} is not an allowed function",
        dialects.WRITE.get(name)
        or did_you_mean(name, NAMES, "allowed are functions of one row, such as upper, coalesce, round, to_date"),
    )


def called(call: Call, arguments: Sequence[Piece]) -> Piece:
    """A call of a known function."""
    use = Use(call.name, tuple(arguments), call.offset)
    if call.name in _SPECIAL:
        return _SPECIAL[call.name](use)
    signature = _SIMPLE[call.name]
    taken = use.take(*signature.kinds)
    return strict(call.offset, use.sql(*taken), signature.result, taken)
