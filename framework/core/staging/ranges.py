"""The parts of a table that can have a batch's keys: a condition that skips whole files.

Guarantee: the condition is true of every row that has a key of the batch; which files there are only decides how narrow it is.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal as Number
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from framework.base.types import BIGINT, DATE, INT, STRING, TIMESTAMP, TIMESTAMP_NTZ, Decimal, Type
from framework.core.rows.own_columns import DELETE, SEVERAL
from framework.core.staging import Target
from framework.sql.quote import identifier, literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_LISTED = 200  # values that Iceberg compares with a file's bounds
_MOST_RANGES = 200
_MOST_KEYS = 200_000  # of larger batches only the least and the greatest are read
_MOST_PARTITIONS = 64  # of Kafka, of which each has a condition of its own
_LONGEST = 256  # bytes of a text that is read
_SMALL = 32 << 20  # bytes of a table in which there is little to leave out

Bounds = tuple[Any, Any]


@dataclass(frozen=True)
class Near:
    """A condition in SQL over the table `t`, empty where it would skip no file. `listed`: it lists all values of the keys."""

    sql: str
    listed: bool


@dataclass(frozen=True)
class Scan:
    """What the first pass over a batch's rows tells of them."""

    deleted: int  # rows that delete
    near: Near  # the condition for rows with the same keys
    several: bool = False  # whether a key has messages of several partitions, where the rows say so


def scan_keys(to: Target, rows: DataFrame, keys: Sequence[str]) -> Scan:
    """Runs the pass over the messages."""
    types = {column.name: column.type for column in to.pipeline.table.columns}
    all_, keys = keys, [name for name in keys if _has_bounds(types[name])] if to.size <= _LISTED or _is_large(to) else []
    several = f"{SEVERAL if SEVERAL in rows.columns else 'false'} AS {SEVERAL}"
    if (rows.count() if to.pipeline.explodes else to.size) > _MOST_KEYS:
        ((deleted, any_several),) = _values(rows.selectExpr(DELETE, several).selectExpr(f"count_if({DELETE})", f"any({SEVERAL})"))
        return Scan(deleted, Near(_all(_bounded(rows, name, types[name]) for name in keys), False), bool(any_several))
    table = rows.selectExpr(DELETE, several, *(_looked_at(name, types[name]) for name in keys)).toArrow()
    conditions = [_condition(to, table[name], name, types[name]) for name in keys]
    listed = keys == list(all_) and all(conditions) and len(table) <= _LISTED
    near = Near(_all(conditions), bool(conditions) and listed)
    return Scan(sum(table[DELETE].to_pylist()), near, any(table[SEVERAL].to_pylist()))


def steps_back(to: Target, rows: DataFrame, partition: Sequence[str], time: str) -> str:
    """The condition for rows of a partition with a later time than the least of the batch there."""
    names = [identifier(name) for name in partition]
    least = _values(rows.groupBy(*names).agg({time: "min"}))
    if len(least) > _MOST_PARTITIONS:
        return "true"
    parts = []
    try:
        for *values, since in least:
            same = (f"t.{name} = {_literal(value, to.there[name])}" for name, value in zip(partition, values, strict=True))
            parts.append(" AND ".join((*same, f"t.{identifier(time)} > {_literal(since, TIMESTAMP)}")))
    except (ValueError, OverflowError):  # times that Python does not have
        return "true"
    return f"({' OR '.join(parts)})" if parts else "false"


def near(to: Target, rows: DataFrame, keys: Sequence[str], windows: int = 1) -> str:
    """The condition for rows with the same keys, of which none is null. The rows have been kept; there are up to so many of a message."""
    if not _is_large(to):
        return ""
    keys = [name for name in keys if _has_bounds(to.there[name])]
    if to.size * windows > _MOST_KEYS or to.pipeline.explodes:
        return _all(_bounded(rows, name, to.there[name]) for name in keys)
    table = rows.selectExpr(*(_looked_at(name, to.there[name]) for name in keys)).toArrow()
    return _all(_condition(to, table[name], name, to.there[name]) for name in keys)


def within(to: Target, rows: DataFrame, name: str, seconds: int) -> str:
    """The condition for rows with a time at most so many seconds from one of the batch, or with none."""
    if not _is_large(to):
        return ""
    time = identifier(name)
    try:
        ((least, greatest, nulls),) = _values(rows.selectExpr(f"min({time})", f"max({time})", f"count_if({time} IS NULL)"))
        if nulls or least is None:
            return ""
        reach = timedelta(seconds=seconds)
        low, high = (_literal(each, to.there[name]) for each in (least - reach, greatest + reach))
    except (ValueError, OverflowError):  # times that Python does not have
        return ""
    return f"(t.{time} IS NULL OR t.{time} BETWEEN {low} AND {high})"


def not_before(to: Target, batch: DataFrame, name: str, of: str, type_: Type) -> str:
    """SQL over the table `t`: a column is null, or not below the least of the batch."""
    if not _is_large(to):
        return ""
    try:
        ((least,),) = _values(batch.selectExpr(f"min({identifier(of)})"))
        return "" if least is None else f"(t.{identifier(name)} IS NULL OR t.{identifier(name)} >= {_literal(least, type_)})"
    except (ValueError, OverflowError):  # times that Python does not have
        return ""


def _looked_at(name: str, type_: Type) -> str:
    """SQL of a key's column; null where the text is too long."""
    column = identifier(name)
    return f"IF(octet_length({column}) <= {_LONGEST}, {column}, NULL) AS {column}" if type_ == STRING else column


def _is_large(to: Target) -> bool:
    """Whether the table is large enough to skip files."""
    return int(to.table.currentSnapshot().summary().get("total-files-size") or 0) > _SMALL


def _all(conditions: Iterable[str]) -> str:
    return " AND ".join(each for each in conditions if each)


def _has_bounds(type_: Type) -> bool:
    return isinstance(type_, Decimal) or type_ in (INT, BIGINT, STRING, DATE, TIMESTAMP, TIMESTAMP_NTZ)


def _condition(to: Target, column: Any, name: str, type_: Type) -> str:
    try:
        column = set(column.to_pylist())
        if None in column:
            return ""
        values = sorted(column)
        if not values:
            return "false"
        if len(values) <= _LISTED:
            return f"t.{identifier(name)} IN ({', '.join(_literal(value, type_) for value in values)})"
        files = to.spark.table(f"{to.name}.files").selectExpr(*_bounds(name)).where("low IS NOT NULL AND high IS NOT NULL")
        return _sql(name, _cut(values, _values(files)), type_)
    except (ValueError, OverflowError):  # times that Python does not have
        return ""


def _bounded(rows: DataFrame, name: str, type_: Type) -> str:
    """The condition from the least and the greatest value."""
    try:
        ((least, greatest),) = _values(rows.selectExpr(f"min({identifier(name)})", f"max({identifier(name)})"))
    except (ValueError, OverflowError):
        return ""
    return "false" if least is None else _sql(name, [(least, greatest)], type_)


def _bounds(name: str) -> Iterator[str]:
    metrics = f"readable_metrics.{identifier(name)}"
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


def _sql(name: str, ranges: Sequence[Bounds], type_: Type) -> str:
    parts = (f"t.{identifier(name)} BETWEEN {_literal(low, type_)} AND {_literal(high, type_)}" for low, high in ranges)
    return f"({' OR '.join(parts)})"


def _literal(value: Any, type_: Type) -> str:
    if isinstance(value, str):
        return literal(value)
    if isinstance(value, datetime):
        return f"{'TIMESTAMP' if type_ == TIMESTAMP else 'TIMESTAMP_NTZ'}'{value.isoformat(sep=' ')}'"
    if isinstance(value, date):
        return f"DATE'{value.isoformat()}'"
    return f"CAST('{value:f}' AS {type_.sql})" if isinstance(value, Number) else f"CAST({value} AS {type_.sql})"
