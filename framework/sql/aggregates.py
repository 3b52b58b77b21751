"""The functions over many rows whose values can be updated from new rows alone, and the parser of a measure.

A function has parts, such as the sum and the count of an average. Each part is computed over the rows of a batch, and merged with the
same part of the table; the value is computed from the parts. A part that is the value itself is called `value`.

When rows change, their former values are subtracted again, where the function can do so exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass

from framework.base.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DOUBLE,
    FLOAT,
    STRING,
    Array,
    Decimal,
    Type,
    holds_map,
    is_integral,
    is_numeric,
)
from framework.sql.faults import ExpressionError, refused
from framework.sql.grammar import Parser
from framework.sql.reserved import words
from framework.sql.tokens import tokens
from framework.sql.tree import Node

_MOST_DIGITS = 38  # of a decimal
MOST_SCALE = _MOST_DIGITS - 2  # digits behind the point of a sum that is not rounded
_FEW_DIGITS = 6  # digits behind the point that Spark never takes from a result
_WHOLE = Decimal(_MOST_DIGITS, 0)


@dataclass(frozen=True)
class PartialTotal:
    """A part of a function. `of_rows` is SQL over the argument `{x}`, over `{order}`, by which rows are ordered, and over `{sign}`;
    `merged` is SQL over the parts of the table `{t[…]}` and of the batch `{s[…]}`."""

    type: Type
    of_rows: str
    merged: str


@dataclass(frozen=True)
class AggregateFunction:
    type: Callable[[Type], Type]
    parts: Callable[[Type, Type], Mapping[str, PartialTotal]]  # from the types of the argument and of the order
    _: KW_ONLY
    value: Callable[[Type], str] = lambda _: "{p[value]}"
    takes: Callable[[Type], bool] = lambda _: True
    wants: str = ""  # the values that it takes, in words
    first_counts: bool = False  # whether the order of rows decides


def _sum_of(type_: Type) -> Type:
    if isinstance(type_, Decimal):
        return Decimal(min(type_.precision + 10, 38), type_.scale)
    return BIGINT if is_integral(type_) else DOUBLE


def _sums(name: str, type_: Type, of_rows: str) -> dict[str, PartialTotal]:
    t, s = f"{{t[{name}]}}", f"{{s[{name}]}}"
    return {name: PartialTotal(type_, of_rows, f"coalesce(CAST({_added(type_, t, s)} AS {type_.sql}), {t}, {s})")}


def _added(type_: Type, t: str, s: str) -> str:
    """Returns SQL of a sum of `t` and `s`. Spark gives a sum of 38 digits fewer digits behind the point, so there the parts before
    and behind the point are added separately."""
    if not isinstance(type_, Decimal) or type_.precision < _MOST_DIGITS or not _FEW_DIGITS < type_.scale <= MOST_SCALE:
        return f"{t} + {s}"
    whole, rest = Decimal(_MOST_DIGITS - 1 - type_.scale, 0).sql, Decimal(type_.scale + 1, type_.scale).sql
    return f"CAST(floor({t}) + floor({s}) AS {whole}) + CAST(pmod({t}, 1) + pmod({s}, 1) AS {rest})"


def rounds(function: str, type_: Type) -> bool:
    """Whether the parts of a function are added with fewer digits than they have: `_added` needs one before the point."""
    return function in ("sum", "avg") and isinstance(type_, Decimal) and type_.scale > MOST_SCALE


def _sum_for_average(type_: Type) -> Type:
    """Returns the type of a sum of which an average is computed; whole numbers cannot overflow it."""
    return _WHOLE if is_integral(type_) else _sum_of(type_)


def _sum_and_count(type_: Type, _: Type) -> dict[str, PartialTotal]:
    x = f"CAST({{x}} AS {_WHOLE.sql})" if is_integral(type_) else "{x}"
    return {**_sums("sum", _sum_for_average(type_), f"sum({x})"), **_sums("count", BIGINT, "count({x})")}


def _signed_sum(type_: Type, _: Type) -> dict[str, PartialTotal]:
    """Returns the sum over signed rows and the count of its values: the sum of none is null."""
    x = f"CAST({{x}} AS {_WHOLE.sql})" if is_integral(type_) else "{x}"
    return {
        **_sums("sum", _sum_for_average(type_), f"sum(IF({{sign}} < 0, -{x}, {x}))"),
        **_sums("count", BIGINT, _signed_count("{x} IS NOT NULL")),
    }


def _signed_count(counts: str) -> str:
    return f"sum(IF({counts}, CAST({{sign}} AS BIGINT), 0L))"


def _of_some(type_: Type) -> str:
    return f"IF({{p[count]}} = 0, NULL, CAST({{p[sum]}} AS {_sum_of(type_).sql}))"


def _is_exact(type_: Type) -> bool:
    return is_integral(type_) or isinstance(type_, Decimal)


def _average_of(type_: Type) -> Type:
    if isinstance(type_, Decimal):
        scale = min(type_.scale + 4, 38)
        return Decimal(min(type_.precision + 4, 38), scale)
    return DOUBLE


def _average(type_: Type) -> str:
    result, count = _average_of(type_), "nullif({p[count]}, 0)"
    if not isinstance(result, Decimal):
        return f"CAST(CAST({{p[sum]}} AS DOUBLE) / {count} AS {result.sql})"
    # The fewer digits a sum may have before the point, the more digits the quotient has behind it.
    sum_ = _sum_of(type_)
    assert isinstance(sum_, Decimal)
    short = Decimal(min(sum_.precision, max(1, _MOST_DIGITS - result.scale) + sum_.scale), sum_.scale)
    exact, rough = f"TRY_CAST({{p[sum]}} AS {short.sql}) / {count}", f"{{p[sum]}} / {count}"
    return f"coalesce(CAST({exact} AS {result.sql}), CAST({rough} AS {result.sql}))"


def _chosen(function: str) -> Callable[[Type, Type], Mapping[str, PartialTotal]]:
    merged = {"min": "least", "max": "greatest"}[function]
    return lambda type_, _: {"value": PartialTotal(type_, f"{function}({{x}})", f"{merged}({{t[value]}}, {{s[value]}})")}


def _by_order(is_first: bool) -> Callable[[Type, Type], Mapping[str, PartialTotal]]:
    extreme, compares = ("min", "<") if is_first else ("max", ">")
    newer = f"{{s[at]}} {compares} {{t[at]}} OR {{t[at]}} IS NULL"

    def parts(type_: Type, order: Type) -> Mapping[str, PartialTotal]:
        return {
            "value": PartialTotal(type_, f"{extreme}_by({{x}}, {{order}})", f"IF({newer}, {{s[value]}}, {{t[value]}})"),
            "at": PartialTotal(order, f"{extreme}({{order}})", f"IF({newer}, {{s[at]}}, {{t[at]}})"),
        }

    return parts


def _one_zero(type_: Type) -> str:
    return "IF({x} = 0, abs({x}), {x})" if type_ in (DOUBLE, FLOAT) else "{x}"  # -0.0 is 0.0


def _values(type_: Type, _: Type) -> Mapping[str, PartialTotal]:
    return {
        "values": PartialTotal(
            Array(type_),
            f"array_distinct(collect_set({_one_zero(type_)}))",
            "coalesce(array_union({t[values]}, {s[values]}), {s[values]}, {t[values]})",
        )
    }


def _sketch(type_: Type, _: Type) -> Mapping[str, PartialTotal]:
    x = "{x}" if is_integral(type_) else "concat('_', {x})"  # an empty text would not be counted
    merged = "coalesce(hll_union({t[sketch]}, {s[sketch]}), {t[sketch]}, {s[sketch]})"
    return {"sketch": PartialTotal(BINARY, f"hll_sketch_agg({x})", merged)}


def _same(type_: Type) -> Type:
    return type_


def _comparable(type_: Type) -> bool:
    return not holds_map(type_)


def _count(of_rows: str) -> Callable[[Type, Type], Mapping[str, PartialTotal]]:
    return lambda _type, _order: _sums("value", BIGINT, of_rows)


FUNCTIONS: Mapping[str, AggregateFunction] = {
    "sum": AggregateFunction(
        _sum_of, lambda type_, _: _sums("value", _sum_of(type_), "sum({x})"), takes=is_numeric, wants="a number"
    ),
    "count": AggregateFunction(lambda _: BIGINT, _count("count({x})")),
    "count_if": AggregateFunction(
        lambda _: BIGINT, _count("count_if({x})"), takes=lambda type_: type_ == BOOLEAN, wants="a condition"
    ),
    "min": AggregateFunction(_same, _chosen("min"), takes=_comparable, wants="values that have an order"),
    "max": AggregateFunction(_same, _chosen("max"), takes=_comparable, wants="values that have an order"),
    "avg": AggregateFunction(_average_of, _sum_and_count, value=_average, takes=is_numeric, wants="a number"),
    "first": AggregateFunction(_same, _by_order(True), first_counts=True),
    "last": AggregateFunction(_same, _by_order(False), first_counts=True),
    "count_distinct": AggregateFunction(
        lambda _: BIGINT,
        _values,
        value=lambda _: "CAST(size({p[values]}) AS BIGINT)",
        takes=_comparable,
        wants="values that can be compared",
    ),
    "approx_count_distinct": AggregateFunction(
        lambda _: BIGINT,
        _sketch,
        value=lambda _: "hll_sketch_estimate({p[sketch]})",
        takes=lambda type_: is_integral(type_) or type_ == STRING,
        wants="a text or a whole number",
    ),
}
ROWS = PartialTotal(BIGINT, f"coalesce({_signed_count('true')}, 0L)", "({t} + {s})")
"""The number of rows of a group from which rows can be subtracted."""
SIGNED: Mapping[str, AggregateFunction] = {
    "sum": AggregateFunction(_sum_of, _signed_sum, value=_of_some, takes=_is_exact),
    "count": AggregateFunction(lambda _: BIGINT, _count(_signed_count("{x} IS NOT NULL"))),
    "count_if": AggregateFunction(lambda _: BIGINT, _count(_signed_count("{x}"))),
    "avg": AggregateFunction(_average_of, _signed_sum, value=_average, takes=_is_exact),
}
"""The functions that can be updated exactly where rows are subtracted again: `{sign}` is -1 for such a row, else 1."""
_SAME = {
    "mean": "avg",
    "average": "avg",
    "first_value": "first",
    "last_value": "last",
    "any_value": "first",
    "countif": "count_if",
}
_NOT = words(
    "stddev stddev_samp stddev_pop variance var_samp var_pop median percentile percentile_approx mode corr max_by min_by"
)
_WRITE = "write one function over the rows: `sum(price * quantity)`, `count(*)`, `avg(price)`"


@dataclass(frozen=True)
class ParsedMeasure:
    """A measure: its function and its argument; `count(*)` has none."""

    function: str
    argument: Node | None
    offset: int


def read(text: str) -> ParsedMeasure:
    parser = Parser(tokens(text))
    start = parser.take()
    name = _SAME.get(start.word, start.word)
    if name not in FUNCTIONS or not parser.skip("("):
        raise _other(start.offset, start.text, start.word)
    if parser.skip("*"):
        parser.expect(")")
        _end(parser)
        if name != "count":
            raise refused(start.offset, "sql-measure", f"`*` is for count alone, not for {name}", _WRITE)
        return ParsedMeasure("count", None, start.offset)
    distinct = parser.next
    if parser.skip("distinct"):
        if name != "count":
            raise refused(distinct.offset, "sql-measure", f"DISTINCT is for count, not for {name}", "write `count(distinct x)`")
        name = "count_distinct"
    argument = parser.expression()
    if parser.next.word == ",":
        hint = (
            "put several into one: `count(distinct struct(a, b))`"
            if name == "count_distinct"
            else "remove what is behind the comma"
        )
        raise refused(parser.next.offset, "sql-measure", f"{start.text} takes one value", hint)
    parser.expect(")")
    _end(parser)
    return ParsedMeasure(name, argument, start.offset)


def _end(parser: Parser) -> None:
    token = parser.next
    if token.word == "filter":
        raise refused(
            token.offset, "sql-measure", "FILTER is not part of a measure", "write `count_if(x > 0)`, or `sum(if(x > 0, x, 0))`"
        )
    if token.word == "over":
        raise refused(
            token.offset, "sql-measure", "a measure has no window in SQL", "`window: {column: at, every: 1m}` has windows of time"
        )
    if token.kind != "end":
        hint = "give each its own measure, and compute with them where the table is read"
        raise refused(token.offset, "sql-measure", f"a measure is one function, and then comes `{token.text}`", hint)


def _other(offset: int, text: str, word: str) -> ExpressionError:
    known_names = ", ".join(name for name in FUNCTIONS if name != "count_distinct")
    if word in _NOT:
        hint = f"the functions are {known_names} and count(distinct x); compute others where the table is read, or by `write: replace`"
        return refused(offset, "sql-measure", f"{word} cannot be brought up to date from new rows alone", hint)
    return refused(offset, "sql-measure", f"`{text}` is not a function over rows", f"{_WRITE}; the functions are {known_names}")


def takes_off(function: str, argument: Type | None) -> bool:
    """Whether rows can be subtracted exactly from values of this function."""
    return function in SIGNED and SIGNED[function].takes(argument or BIGINT)


def function(name: str, signed: bool) -> AggregateFunction:
    return (SIGNED if signed else FUNCTIONS)[name]


def hidden(function_: AggregateFunction, argument: Type, order: Type) -> Mapping[str, Type]:
    """Returns the parts besides the value, with their types."""
    return {name: part.type for name, part in function_.parts(argument, order).items() if name != "value"}
