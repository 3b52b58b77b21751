"""Bad rows that mention a person: messages whose bytes have the key's values in them, also encrypted ones."""

from __future__ import annotations

from typing import Any, cast

from framework.engine.context import Context
from framework.engine.forget.keys import Key
from framework.engine.forget.rows import again, without_deleted
from framework.engine.iceberg.lake import Lake
from framework.engine.publish import side_rows, side_tables
from framework.engine.rows.bad_rows import sealed
from framework.model import MaskKey, Pipeline, SecretRef
from framework.sql import masks


def count(context: Context, lake: Lake, pipeline: Pipeline, key: Key) -> int:
    if lake.find(pipeline.table.bad_rows) is None:
        return 0
    name = side_tables.quoted(pipeline, pipeline.table.side_tables[0])
    return int(lake.spark.table(name).where(_mentions(context, pipeline, key)).count())


def delete(context: Context, lake: Lake, pipeline: Pipeline, key: Key) -> int:
    """How many bad rows went."""
    rows = count(context, lake, pipeline, key)
    where = _mentions(context, pipeline, key)

    def once() -> None:
        side_rows.change(lake, _table(lake, pipeline), lambda branch: [f"DELETE FROM {branch} WHERE {where}"])

    if rows:
        again(pipeline.table.bad_rows, once)
    if lake.find(pipeline.table.bad_rows) is not None:
        again(pipeline.table.bad_rows, lambda: without_deleted(lake, _table(lake, pipeline)))
    return rows


def _table(lake: Lake, pipeline: Pipeline) -> Any:
    return lake.load(pipeline.table.bad_rows)


def _mentions(context: Context, pipeline: Pipeline, key: Key) -> str:
    """SQL of whether a bad row has a value of each column of the key in it, in the message or in the reason."""
    return " AND ".join(f"({_mentions_one(context, pipeline, at, key)})" for at in range(len(key.columns)))


def _mentions_one(context: Context, pipeline: Pipeline, at: int, key: Key) -> str:
    texts = []
    for nth, text in enumerate(dict.fromkeys((key.given[at], *key.stored[at]))):
        texts.append(MaskKey(str(nth), SecretRef(f"value {at} {nth} to forget")))
        cast(Any, context.spark)._jvm.sluice.Keys.put(texts[-1].secret.name, text)
    key_, value, _ = sealed(pipeline, "open")
    header = masks.call("open", pipeline.mask_keys, "h.value") if pipeline.mask_keys else "h.value"
    parts = [masks.call("mention", texts, each) for each in (key_, value, "encode(message, 'UTF-8')")]
    return " OR ".join((*parts, f"exists(headers, h -> {masks.call('mention', texts, header)})"))
