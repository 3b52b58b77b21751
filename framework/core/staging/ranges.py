"""The parts of a table that can have a batch's keys: a condition that skips whole files.

Guarantee: the condition is true of every row that has a key of the batch; which files there are only decides how narrow it is.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal as Number
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from framework.base.types import BIGINT, DATE, INT, STRING, TIMESTAMP, TIMESTAMP_NTZ, Decimal, Type
from framework.core.iceberg.jvm_state import total
from framework.core.rows.own_columns import DELETE, SEVERAL
from framework.core.staging import StagingTarget
from framework.sql.quote import identifier, literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_LISTED = 200  # values that Iceberg compares with a file's bounds
_MOST_RANGES = 200
_MOST_KEYS = 200_000  # of larger batches only the least and the greatest are read
_MOST_PARTITIONS = 64  # of Kafka, of which each has a condition of its own
_LONGEST = 256  # bytes of a text that is read
_SMALL = 32 << 20  # bytes of a table in which there is little to leave out
_MANY = 16  # files of such a table: to open one takes longer than to compare its bounds

KeyBounds = tuple[Any, Any]
Extremes = Callable[[str], "DataFrame"]  # of a column: a row with its least and greatest value, and how many rows have none


@dataclass(frozen=True)
class KeyRange:
    """A condition in SQL over the table `t`, empty where it would skip no file. `listed`: it lists all values of the keys. `size` is the
    bytes of the files that it does not skip, if somebody has looked."""

    sql: str
    listed: bool
    size: int | None = None


@dataclass(frozen=True)
class Scan:
    """The result of the first pass over a batch's rows."""

    deleted: int  # rows that delete
    near: KeyRange  # the condition for rows with the same keys
    several: bool = False  # whether a key has messages of several partitions, where the rows say so


def scan_keys(target: StagingTarget, rows: DataFrame, keys: Sequence[str]) -> Scan:
    """Runs the first pass over a batch's rows, which counts deletes and finds the condition for rows with the same keys."""
    types = {column.name: column.type for column in target.pipeline.table.columns}
    all_keys, keys = (
        keys,
        [name for name in keys if _has_bounds(types[name])] if target.size <= _LISTED or is_large(target) else [],
    )
    several = f"{SEVERAL if SEVERAL in rows.columns else 'false'} AS {SEVERAL}"
    if (rows.count() if target.pipeline.explodes else target.size) > _MOST_KEYS:
        ((deleted, any_several),) = _values(rows.selectExpr(DELETE, several).selectExpr(f"count_if({DELETE})", f"any({SEVERAL})"))
        return Scan(deleted, KeyRange(_all(_bounded(asked(rows), name, types[name]) for name in keys), False), bool(any_several))
    table = rows.selectExpr(DELETE, several, *(_looked_at(name, types[name]) for name in keys)).toArrow()
    conditions = [_condition(target, table[name], name, types[name]) for name in keys]
    listed = keys == list(all_keys) and all(condition.sql for condition in conditions) and len(table) <= _LISTED
    sizes = [condition.size for condition in conditions if condition.size is not None]
    near = KeyRange(_all(condition.sql for condition in conditions), bool(conditions) and listed, min(sizes, default=None))
    return Scan(sum(table[DELETE].to_pylist()), near, any(table[SEVERAL].to_pylist()))


def steps_back(target: StagingTarget, rows: DataFrame, partition: Sequence[str], time: str) -> str:
    """The condition for rows of a partition with a time later than the batch's earliest one in that partition."""
    names = [identifier(name) for name in partition]
    earliest_times = _values(rows.groupBy(*names).agg({time: "min"}))
    if len(earliest_times) > _MOST_PARTITIONS:
        return "true"
    parts = []
    try:
        for *values, earliest in earliest_times:
            same = (
                f"t.{name} = {_literal(value, target.column_types[name])}" for name, value in zip(partition, values, strict=True)
            )
            parts.append(" AND ".join((*same, f"t.{identifier(time)} > {_literal(earliest, TIMESTAMP)}")))
    except (ValueError, OverflowError):  # times that Python does not have
        return "true"
    return f"({' OR '.join(parts)})" if parts else "false"


def asked(rows: DataFrame) -> Extremes:
    """The extremes of columns by a job over the rows."""

    def extremes(name: str) -> DataFrame:
        column = identifier(name)
        return rows.selectExpr(f"min({column})", f"max({column})", f"count_if({column} IS NULL)")

    return extremes


def near(target: StagingTarget, rows: DataFrame, keys: Sequence[str], windows: int = 1, extremes: Extremes | None = None) -> str:
    """The condition for rows with the same keys, of which none is null. The rows must have been kept; a message has up to `windows` of
    them. `extremes` says those of a column without a job over the rows, which a small table of many files is worth, too."""
    is_small = not is_large(target)
    if is_small and (extremes is None or total(target.table.currentSnapshot(), "data-files") <= _MANY):
        return ""
    keys = [name for name in keys if _has_bounds(target.column_types[name])]
    if target.size * windows > _MOST_KEYS or target.pipeline.explodes or is_small:
        return _all(_bounded(extremes or asked(rows), name, target.column_types[name]) for name in keys)
    table = rows.selectExpr(*(_looked_at(name, target.column_types[name]) for name in keys)).toArrow()
    return _all(_condition(target, table[name], name, target.column_types[name]).sql for name in keys)


def within(target: StagingTarget, name: str, seconds: int, extremes: Extremes) -> str:
    """The condition for rows without a time, or with one at most `seconds` from one of the batch."""
    if not is_large(target):
        return ""
    time = identifier(name)
    try:
        ((earliest, latest, nulls),) = _values(extremes(name))
        if nulls or earliest is None:
            return ""
        reach = timedelta(seconds=seconds)
        low, high = (_literal(bound, target.column_types[name]) for bound in (earliest - reach, latest + reach))
    except (ValueError, OverflowError):  # times that Python does not have
        return ""
    return f"(t.{time} IS NULL OR t.{time} BETWEEN {low} AND {high})"


def not_before(target: StagingTarget, batch: DataFrame, name: str, batch_column: str, type_: Type) -> str:
    """SQL over the table `t`: a column is null, or not below the least value of `batch_column`."""
    if not is_large(target):
        return ""
    try:
        ((earliest,),) = _values(batch.selectExpr(f"min({identifier(batch_column)})"))
        return (
            "" if earliest is None else f"(t.{identifier(name)} IS NULL OR t.{identifier(name)} >= {_literal(earliest, type_)})"
        )
    except (ValueError, OverflowError):  # times that Python does not have
        return ""


def _looked_at(name: str, type_: Type) -> str:
    """SQL of a key's column; null where the text is too long."""
    column = identifier(name)
    return f"IF(octet_length({column}) <= {_LONGEST}, {column}, NULL) AS {column}" if type_ == STRING else column


def is_large(target: StagingTarget) -> bool:
    """Whether the table is large enough to skip files."""
    return total(target.table.currentSnapshot(), "files-size") > _SMALL


def _all(conditions: Iterable[str]) -> str:
    return " AND ".join(condition for condition in conditions if condition)


def _has_bounds(type_: Type) -> bool:
    return isinstance(type_, Decimal) or type_ in (INT, BIGINT, STRING, DATE, TIMESTAMP, TIMESTAMP_NTZ)


def _condition(target: StagingTarget, column: Any, name: str, type_: Type) -> KeyRange:
    try:
        column = set(column.to_pylist())
        if None in column:
            return KeyRange("", False)
        values = sorted(column)
        if not values:
            return KeyRange("false", True)
        if len(values) <= _LISTED:
            return KeyRange(f"t.{identifier(name)} IN ({', '.join(_literal(value, type_) for value in values)})", True)
        files = _values(target.spark.table(f"{target.name}.files").selectExpr(*_bounds(name)))
        ranges = _cut(values, [(low, high, size) for low, high, size in files if low is not None and high is not None])
        return KeyRange(_sql(name, ranges, type_), False, sum(_left(ranges, files)))
    except (ValueError, OverflowError):  # times that Python does not have
        return KeyRange("", False)


def _left(ranges: Sequence[KeyBounds], files: Iterable[tuple[Any, Any, int]]) -> Iterator[int]:
    """The sizes of the files that can have a value of the ranges, which are in order."""
    ends = [end for _, end in ranges]
    for low, high, size in files:
        if low is None or high is None:
            yield size
        else:
            index = bisect_left(ends, low)
            if index < len(ranges) and ranges[index][0] <= high:
                yield size


def _bounded(extremes: Extremes, name: str, type_: Type) -> str:
    """The condition from the least and the greatest value."""
    try:
        ((low, high, _),) = _values(extremes(name))
    except (ValueError, OverflowError):
        return ""
    if isinstance(low, str) and max(len(low), len(high)) > _LONGEST:
        return ""
    return "false" if low is None else _sql(name, [(low, high)], type_)


def _bounds(name: str) -> Iterator[str]:
    metrics = f"readable_metrics.{identifier(name)}"
    yield from (f"{metrics}.lower_bound AS low", f"{metrics}.upper_bound AS high", "file_size_in_bytes AS size")


def _values(frame: DataFrame) -> list[tuple[Any, ...]]:
    table = frame.toArrow()
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def _cut(values: Sequence[Any], files: Sequence[tuple[Any, Any, int]]) -> list[KeyBounds]:
    """The ranges that hold all values, cut where the files between them have the most bytes."""
    gaps: dict[int, int] = {}
    for low, high, size in files:
        index = bisect_left(values, low)
        if 0 < index < len(values) and values[index] > high:  # no value is in the file
            gaps[index] = gaps.get(index, 0) + size
    largest_gaps = sorted(sorted(gaps, key=lambda index: gaps[index])[-(_MOST_RANGES - 1) :])
    cuts = [0, *largest_gaps, len(values)]
    return [(values[start], values[end - 1]) for start, end in pairwise(cuts)]


def _sql(name: str, ranges: Sequence[KeyBounds], type_: Type) -> str:
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
