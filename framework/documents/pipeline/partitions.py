"""Resolve the partitioning and the sort order of a table."""

from __future__ import annotations

import re
from urllib.parse import quote_plus

from framework.base import types
from framework.base.errors import MOST_PROBLEMS, Problem
from framework.base.spelling import did_you_mean
from framework.documents.pipeline.written_into import Into as WrittenInto
from framework.documents.rows import Rows
from framework.plan import Column, ColumnSql, Fault, PartitionField, Step
from framework.sql.quote import identifier, literal

_FIELD = re.compile(r"(?:(?P<transform>\w+)\s*\(\s*(?:(?P<width>[0-9]{1,9})\s*,\s*)?)?(?P<column>[^\s(),]+)\s*\)?\s*\Z")
_LONGEST = 300  # characters
_LINES = "\r\n"  # Spark's base64 contains line breaks, Iceberg's does not
_LONGEST_NAME = 255  # bytes of a folder's name on the file systems of Linux and macOS
_TIMES = (types.TIMESTAMP, types.TIMESTAMP_NTZ, types.DATE)
_WIDTH = ("bucket", "truncate")
_SUFFIXES = {"truncate": "trunc"}
_PLAIN = ("identity", "year", "month", "day", "hour")


def partition_fields(into: WrittenInto, rows: Rows) -> tuple[PartitionField, ...]:
    """The partition fields. `rows` has all columns of the table, including Kafka's."""
    fields: list[PartitionField] = []
    for index, text in enumerate(into.partition_by):
        if len(rows.problems) > MOST_PROBLEMS:
            break
        field = _field(text, rows)
        problem = _clash(field, fields, rows.columns) if isinstance(field, PartitionField) else field
        if isinstance(field, PartitionField):
            fields.append(field)
        if problem:
            rows.problems.append(Problem(into.place("partition_by", index), *problem))
    return tuple(fields)


def short_names(into: WrittenInto, fields: tuple[PartitionField, ...], rows: Rows) -> tuple[Step, ...]:
    """A step that makes a bad row of a text that is too long for the name of a partition's folder."""
    column_types = {column.name: column.type for column in rows.columns if column.type in (types.STRING, types.BINARY)}
    named_fields = [field for field in fields if field.transform in ("identity", "truncate") and field.column in column_types]
    if not named_fields:
        return ()
    faults = tuple(_too_long(field, column_types[field.column]) for field in named_fields)
    says = tuple(f"`{field.column}`: short enough for the name of a folder, else a bad row" for field in named_fields)
    return (Step(name="partition", where=into.place("partition_by"), says=says, faults=faults, columns=rows.columns),)


def _too_long(field: PartitionField, type_: types.Type) -> Fault:
    value = f"substring({identifier(field.column)}, 1, {field.width})" if field.width else identifier(field.column)
    room = _LONGEST_NAME - len(quote_plus(field.column) + ("_trunc=" if field.width else "="))
    text = f"translate(base64({value}), {literal(_LINES)}, '')" if type_ == types.BINARY else value
    # Iceberg escapes all but ASCII letters and digits with percent signs. The first condition is cheap, and true for few values.
    is_long = f"octet_length({value}) > {room // 4} AND length(url_encode({text})) > {room}"
    message = f"`{field.column}` is too long for a partition, whose value is in the names of folders"
    return Fault("partition", "partition_too_long", message, when=ColumnSql(f"coalesce({is_long}, false)", (field.column,)))


def _clash(field: PartitionField, other_fields: list[PartitionField], columns: tuple[Column, ...]) -> tuple[str, str, str] | None:
    """The problem of a field that clashes with another field or a column, which Iceberg would refuse only when it creates the table."""
    clashing_field = next(
        (
            other_field
            for other_field in other_fields
            if other_field.column == field.column and _measure(other_field) == _measure(field)
        ),
        None,
    )
    if clashing_field:
        return "bad-partition", f"`{field}` and `{clashing_field}` cannot be combined", "keep one of the two"
    name = f"{field.column}_{_SUFFIXES.get(field.transform, field.transform)}"
    if field.transform != "identity" and any(column.name == name for column in columns):
        message = f"the partition `{field}` is called `{name}`, and there is a column of that name"
        return "bad-partition", message, f"rename the column, or partition by it: `{name}`"
    return None


def _measure(field: PartitionField) -> str:
    """The part of the value that the field measures. All measures of time count as one, since a day is within one month."""
    return "time" if field.transform in ("year", "month", "day", "hour") else field.transform


def _field(text: str, rows: Rows) -> PartitionField | tuple[str, str, str]:
    match = _FIELD.match(text.strip()) if len(text) <= _LONGEST else None
    examples = "write a column, or year, month, day, hour(c), bucket(16, c) or truncate(4, c)"
    if match is None or text.count("(") != text.count(")"):
        return "bad-partition", f"`{text[:60]}` is not a partition", examples
    transform, width, name = match["transform"] or "identity", match["width"], match["column"]
    if transform not in (*_PLAIN, *_WIDTH):
        return "bad-partition", f"there is no transform `{transform}`", did_you_mean(transform, (*_PLAIN, *_WIDTH), examples)
    if (transform in _WIDTH) != (width is not None) or (width is not None and int(width) == 0):
        return (
            "bad-partition",
            f"`{text}` is not a partition",
            f"write `{transform}(16, {name})`" if transform in _WIDTH else f"write `{transform}({name})`",
        )
    column = next((column for column in rows.columns if column.name == name), None)
    if column is None and rows.more:
        return PartitionField(transform, name, int(width) if width else None)
    if column is None:
        names = [column.name for column in rows.columns]
        return "unknown-column", f"there is no column `{name}`", did_you_mean(name, names, "name one of the table's columns")
    if not _fits(transform, column.type):
        return "bad-partition", f"`{name}` is {column.type}, which cannot be partitioned by {transform}", examples
    return PartitionField(transform, name, int(width) if width else None)


def _fits(transform: str, type_: types.Type) -> bool:
    if isinstance(type_, (types.Array, types.Map, types.Struct)):
        return False
    if type_ == types.VOID:  # the column's own problem was reported
        return True
    if transform == "hour":
        return type_ in (types.TIMESTAMP, types.TIMESTAMP_NTZ)
    if transform in ("year", "month", "day"):
        return type_ in _TIMES
    if transform == "truncate":
        return isinstance(type_, types.Decimal) or type_ in (types.INT, types.BIGINT, types.STRING, types.BINARY)
    if transform == "bucket":
        return type_ not in (types.DOUBLE, types.FLOAT, types.BOOLEAN)
    return True


def sort_columns(into: WrittenInto, rows: Rows) -> tuple[str, ...]:
    column_types = {column.name: column.type for column in rows.columns}
    for index, name in enumerate(into.sort_by):
        if len(rows.problems) > MOST_PROBLEMS:
            break
        if name not in column_types and rows.more:
            continue
        if name not in column_types:
            hint = did_you_mean(name, column_types, "name one of the table's columns")
            rows.problems.append(
                Problem(into.place("sort_by", index), "unknown-column", f"there is no column `{name[:60]}`", hint)
            )
        elif isinstance(column_types[name], (types.Array, types.Map, types.Struct)):
            message = f"`{name}` is {column_types[name]}, which has no order"
            rows.problems.append(Problem(into.place("sort_by", index), "bad-sort", message, "sort by a plain column"))
    return into.sort_by
