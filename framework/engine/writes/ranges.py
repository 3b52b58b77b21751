"""Where in a table the keys of a batch can be: a condition by which whole files are left out.

Guarantee: the condition is true of every row that has a key of the batch; which files there are only decides how narrow it is.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal as Number
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from framework.engine.writes import Target
from framework.plan.rows import named, quoted
from framework.types import BIGINT, DATE, INT, STRING, TIMESTAMP, TIMESTAMP_NTZ, Decimal, Type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_LISTED = 200  # values that Iceberg compares with a file's bounds
_MOST_RANGES = 200
_MOST_KEYS = 200_000  # beyond them, only the least and the greatest are looked at
_MOST_KEY_BYTES = 16 << 20

Bounds = tuple[Any, Any]


def near(to: Target, newest: DataFrame, keys: Sequence[str]) -> str:
    """SQL over the table `t`; nothing where it would leave out nothing."""
    types = {column.name: column.type for column in to.pipeline.table.columns}
    found = (_condition(to, newest, name, types[name]) for name in keys if _has_bounds(types[name]))
    return " AND ".join(each for each in found if each)


def _has_bounds(type_: Type) -> bool:
    return isinstance(type_, Decimal) or type_ in (INT, BIGINT, STRING, DATE, TIMESTAMP, TIMESTAMP_NTZ)


def _condition(to: Target, newest: DataFrame, name: str, type_: Type) -> str:
    column = f"t.{named(name)}"
    size = f"sum(octet_length({named(name)}))" if type_ == STRING else "0"
    try:
        ((least, greatest, count, bytes_),) = _values(
            newest.selectExpr(f"min({named(name)})", f"max({named(name)})", "count(1)", size)
        )
        if least is None:
            return "false"
        whole = [(least, greatest)]
        if count > _MOST_KEYS or (bytes_ or 0) > _MOST_KEY_BYTES:
            return _sql(column, whole, type_)
        values = sorted({value for (value,) in _values(newest.select(name))})
        if len(values) <= _LISTED:
            return f"{column} IN ({', '.join(_literal(value, type_) for value in values)})"
        files = _values(to.spark.table(f"{to.name}.files").selectExpr(*_bounds(name)))
    except (ValueError, OverflowError):  # times that Python does not have
        return ""
    return _sql(column, _cut(values, [(low, high, bytes_) for low, high, bytes_ in files if low is not None]), type_)


def _bounds(name: str) -> Iterator[str]:
    metrics = f"readable_metrics.{named(name)}"
    yield from (f"{metrics}.lower_bound AS low", f"{metrics}.upper_bound AS high", "file_size_in_bytes AS size")


def _values(frame: DataFrame) -> list[tuple[Any, ...]]:
    table = frame.toArrow()
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def _cut(values: Sequence[Any], files: Sequence[tuple[Any, Any, int]]) -> list[Bounds]:
    """Ranges that hold all values, with as many bytes of files as can be between them."""
    gaps: dict[int, int] = {}
    for low, high, size in files:
        at = bisect_left(values, low)
        if 0 < at < len(values) and values[at] > high:  # no value is in the file
            gaps[at] = gaps.get(at, 0) + size
    worth = sorted(sorted(gaps, key=lambda at: gaps[at])[-(_MOST_RANGES - 1) :])
    cuts = [0, *worth, len(values)]
    return [(values[start], values[end - 1]) for start, end in pairwise(cuts)]


def _sql(column: str, found: Sequence[Bounds], type_: Type) -> str:
    parts = (f"{column} BETWEEN {_literal(low, type_)} AND {_literal(high, type_)}" for low, high in found)
    return f"({' OR '.join(parts)})"


def _literal(value: Any, type_: Type) -> str:
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, datetime):
        return f"{'TIMESTAMP' if type_ == TIMESTAMP else 'TIMESTAMP_NTZ'}'{value.isoformat(sep=' ')}'"
    if isinstance(value, date):
        return f"DATE'{value.isoformat()}'"
    return f"CAST('{value:f}' AS {type_.sql})" if isinstance(value, Number) else f"CAST({value} AS {type_.sql})"
