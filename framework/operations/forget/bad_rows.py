"""Bad rows that mention a person: messages, also encrypted ones, whose bytes contain the key's values."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, cast

from py4j.protocol import Py4JJavaError

from framework.base.errors import SluiceError
from framework.base.types import Array, Map, Struct, Type
from framework.core.context.context import Context
from framework.core.iceberg.commit import again
from framework.core.iceberg.lake import TableStore
from framework.core.publish import side_rows, side_tables
from framework.core.rows.bad_rows import sealed
from framework.core.spark.java_errors import java_classes
from framework.operations.forget.keys import PersonKey
from framework.operations.forget.rows import without_deleted
from framework.plan import MaskKey, Pipeline, SecretRef
from framework.plan.lineage import lineage
from framework.sql import masks

_SEALED = "sluice.UnknownKey"


def count(context: Context, lake: TableStore, pipeline: Pipeline, key: PersonKey) -> int:
    return _count(lake, pipeline, _mentions(context, pipeline, key)) if lake.find(pipeline.table.bad_rows) is not None else 0


def _count(lake: TableStore, pipeline: Pipeline, condition: str) -> int:
    name = side_tables.side_identifier(pipeline, pipeline.table.bad_rows_table)
    try:
        return int(lake.spark.table(name).where(condition).count())
    except Py4JJavaError as error:
        if _SEALED not in java_classes(error):
            raise
        message = f"a bad row of {pipeline.name} is encrypted by a key that its spec does not list"
        hint = "list the key under `old` of `mask: {keys: …}`, so that these bad rows can be searched"
        raise SluiceError("forget-key", message, hint) from None


def delete(context: Context, lake: TableStore, pipeline: Pipeline, key: PersonKey) -> int:
    """Returns the number of deleted bad rows."""
    if lake.find(pipeline.table.bad_rows) is None:
        return 0
    condition = _mentions(context, pipeline, key)
    rows = _count(lake, pipeline, condition)

    def once() -> None:
        side_rows.change(lake, _table(lake, pipeline), lambda branch: [f"DELETE FROM {branch} WHERE {condition}"])

    if rows:
        again(pipeline.table.bad_rows, once)
    again(pipeline.table.bad_rows, lambda: without_deleted(lake, _table(lake, pipeline)))
    return rows


def _table(lake: TableStore, pipeline: Pipeline) -> Any:
    return lake.load(pipeline.table.bad_rows)


def _mentions(context: Context, pipeline: Pipeline, key: PersonKey) -> str:
    """SQL that says whether a bad row has a value of each column of the key in its message or its reason."""
    return " AND ".join(f"({_mentions_one(context, pipeline, index, key)})" for index in range(len(key.columns)))


def _mentions_one(context: Context, pipeline: Pipeline, index: int, key: PersonKey) -> str:
    texts = []
    for variant, stored_value in enumerate(key.stored[index]):
        texts.append(MaskKey(str(variant), SecretRef(f"value {index} {variant} to forget")))
        cast(Any, context.spark)._jvm.sluice.Keys.put(texts[-1].secret.name, stored_value)
    key_sql, value_sql, headers = sealed(pipeline, "open")
    mention = partial(masks.call, "mention", texts, fields=_fields(pipeline, key.columns[index]))
    parts = map(mention, (key_sql, value_sql, "encode(message, 'UTF-8')"))
    return " OR ".join((*parts, f"exists({headers}, h -> {mention('h.value')})"))


def _fields(pipeline: Pipeline, column: str) -> list[str]:
    """The possible names of the field in a message: the column's, those of its source columns, and of the fields inside these."""
    origins = {origin.rpartition(".")[2] for origin in lineage(pipeline)[column]}  # without the names of tables
    tables = pipeline.read_tables
    source_columns = [
        *(source_column for table in tables for source_column in table.columns),
        *(source_column for topic in pipeline.topics for source_column in topic.columns),
    ]
    inner_names = (
        name for source_column in source_columns if source_column.name in origins for name in _inside(source_column.type)
    )
    return sorted({column, *origins, *inner_names, *(column.removeprefix(f"{origin}_") for origin in origins)})


def _inside(type_: Type) -> Iterator[str]:
    """The names of fields in a type, however deep."""
    if isinstance(type_, Struct):
        for field in type_.fields:
            yield from (field.name, *_inside(field.type))
    elif isinstance(type_, (Array, Map)):
        yield from _inside(type_.element if isinstance(type_, Array) else type_.value)
