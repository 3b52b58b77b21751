"""Changes a table to what its spec says: columns, partitions, sort order and format, as updates of one Iceberg transaction."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from framework.plan import Column, PartitionField, Table
from framework.plan.change import Change
from framework.sql.quote import identifier, literal


def evolve(apache: Any, transaction: Any, changes: Sequence[Change], planned: Table, replaced: bool = False) -> None:
    """Adds these changes to the transaction. `replaced` is for a table of which no row stays: a column that cannot be changed in place
    is then dropped and added again under the same name, and columns that the spec no longer has are dropped."""
    removals = [change for change in changes if change.kind in ("rename", "narrow", "retype", "drop")] if replaced else []
    # A narrower type that is allowed leaves the column as it is: older messages need the wider one.
    removed_names = dict.fromkeys(change.path[0] for change in removals if change.kind != "narrow" or not change.allowed)
    kinds = {change.kind for change in changes}
    if removed_names:
        _unpartition(transaction, removed_names)
        _sort(apache, transaction, [])
    if {"add", "widen", "alias"} & kinds or removed_names:
        _columns(
            apache,
            transaction,
            [change for change in changes if change.kind in ("add", "widen", "alias")],
            planned,
            tuple(removed_names),
        )
    if "partition_by" in kinds or removed_names:
        _partition(apache, transaction, planned.partition_by)
    if "sort_by" in kinds or removed_names:
        _sort(apache, transaction, planned.sort_by)
    if "format_version" in kinds:
        transaction.updateProperties().set("format-version", str(planned.format_version)).commit()


def schema(apache: Any, columns: Sequence[Column]) -> Any:
    ddl = ", ".join(
        f"{identifier(column.name)} {column.type.sql}"
        + (f" COMMENT {literal(column.doc.replace(chr(10), ' '))}" if column.doc else "")
        for column in columns
    )
    return apache.iceberg.spark.SparkSchemaUtil.convert(apache.spark.sql.types.StructType.fromDDL(ddl))


def add(apache: Any, table: Any, columns: Iterable[Column]) -> None:
    """Adds columns behind those of a table."""
    update = table.updateSchema()
    for column in columns:
        update = update.addColumn(column.name, _type(apache, column.type), column.doc)
    update.commit()


def partitions(apache: Any, schema_: Any, fields: Sequence[PartitionField]) -> Any:
    builder = apache.iceberg.PartitionSpec.builderFor(schema_)
    for field in fields:
        make = getattr(builder, field.transform)
        builder = make(field.column, field.width) if field.width else make(field.column)
    return builder.build()


def order(apache: Any, schema_: Any, columns: Sequence[str]) -> Any:
    builder = apache.iceberg.SortOrder.builderFor(schema_)
    for column in columns:
        builder = builder.asc(column)
    return builder.build()


def _columns(apache: Any, transaction: Any, changes: Sequence[Change], planned: Table, removed_names: Sequence[str]) -> None:
    update = transaction.updateSchema()
    docs = {column.name: column.doc for column in planned.columns}
    for name in removed_names:
        update = update.deleteColumn(name)
    for change in changes:
        *inside, name = change.path
        if change.path[0] in removed_names:
            continue
        type_ = _type(apache, change.new)
        if change.kind == "alias":
            update = update.renameColumn(".".join(change.path), change.to)
        elif change.kind == "widen":
            update = update.updateColumn(".".join(change.path), type_)
        elif inside:
            update = update.addColumn(".".join(inside), name, type_)
        else:
            update = update.addColumn(None, name, type_, docs.get(name) or None)  # without a parent, a name may have dots
    if removed_names:
        new_names = {
            change.to
            for change in changes
            if change.kind == "alias" and change.path == change.path[:1] and change.path[0] in removed_names
        }
        readded_names = {name.lower() for name in (*removed_names, *new_names)}
        for column in planned.columns:
            if column.name.lower() in readded_names:
                update = update.addColumn(None, column.name, _type(apache, column.type), column.doc or None)
    update.commit()
    if removed_names:
        _move(transaction, planned)


def _move(transaction: Any, planned: Table) -> None:
    """Moves columns into the spec's order, by an update of its own: one update does not accept a renamed column by its new name."""
    update, previous_name = transaction.updateSchema(), None
    for column in planned.columns:
        update = update.moveAfter(column.name, previous_name) if previous_name else update.moveFirst(column.name)
        previous_name = column.name
    update.commit()


def _type(apache: Any, type_: Any) -> Any:
    return schema(apache, (Column("made", type_),)).columns()[0].type()


def _partition(apache: Any, transaction: Any, fields: Sequence[PartitionField]) -> None:
    """Changes the partition fields. Iceberg names the new ones, with their width, since a table can have had `bucket(8, c)` before
    `bucket(16, c)`."""
    table = transaction.table()
    planned_fields = {_partition_key(field): field for field in fields}
    current_names = {}
    for field in table.spec().fields():
        transform = field.transform().toString()
        if transform != "void":
            current_names[table.schema().findColumnName(field.sourceId()), transform] = field.name()
    if planned_fields.keys() == current_names.keys():
        return
    update = transaction.updateSpec()
    for key, name in current_names.items():
        if key not in planned_fields:
            update = update.removeField(name)
    expressions = apache.iceberg.expressions.Expressions
    for key, planned_field in planned_fields.items():
        if key not in current_names:
            make = expressions.ref if planned_field.transform == "identity" else getattr(expressions, planned_field.transform)
            update = update.addField(
                make(planned_field.column, planned_field.width) if planned_field.width else make(planned_field.column)
            )
    update.commit()


def _unpartition(transaction: Any, removed_names: Collection[str]) -> None:
    """Removes these columns from the partition spec."""
    table = transaction.table()
    sources = {field.name(): table.schema().findColumnName(field.sourceId()) or "" for field in table.spec().fields()}
    names = [name for name, source in sources.items() if source.partition(".")[0] in removed_names]
    if names:
        update = transaction.updateSpec()
        for name in names:
            update = update.removeField(name)
        update.commit()


def _partition_key(field: PartitionField) -> tuple[str, str]:
    return field.column, f"{field.transform}[{field.width}]" if field.width else field.transform


def _sort(apache: Any, transaction: Any, columns: Sequence[str]) -> None:
    expressions, nulls = apache.iceberg.expressions.Expressions, apache.iceberg.NullOrder
    update = transaction.replaceSortOrder()
    for column in columns:
        update = update.asc(expressions.ref(column), nulls.NULLS_FIRST)
    update.commit()
