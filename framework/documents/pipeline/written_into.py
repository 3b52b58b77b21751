"""The table that a pipeline writes, and how."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from framework.base.errors import Problem
from framework.language.options import ComponentName, OptionGroup, option
from framework.language.scalars import ColumnName, Duration, Expression, Name, TableName

WRITES = ComponentName("writes", "MODE")


@dataclass(frozen=True)
class SchemaChanges(OptionGroup):
    """The schema changes that a run applies to the table."""

    add: Literal["allow", "refuse"] = option("Columns that are new in the spec.", default="allow", example="allow", aka=["new"])
    widen: Literal["allow", "refuse"] = option(
        "Wider types, which hold all old values: bigint for int, double for float, a longer decimal.",
        default="allow", example="allow", aka=["promote"],
    )  # fmt: skip
    drop: Literal["keep", "refuse"] = option(
        "Columns that are no longer in the spec: they stay in the table and are null in new rows.",
        default="keep",
        example="keep",
        aka=["remove"],
    )
    rename: Literal["allow", "refuse"] = option(
        "New names for columns, if a schema in the registry has the old name: the column is renamed and keeps its data.",
        default="refuse", example="allow",
    )  # fmt: skip
    narrow: Literal["allow", "refuse"] = option(
        "Narrower types, which do not hold all old values: the column keeps its current type.", default="refuse", example="allow"
    )


@dataclass(frozen=True)
class Deletes(OptionGroup):
    """A condition for rows that delete the row with their key."""

    when: Expression = option("True for a row that deletes.", example="\"op = 'd'\"", aka=["if", "condition"])


@dataclass(frozen=True)
class Into(OptionGroup):
    """The table that the rows are written to."""

    partly: ClassVar[bool] = True

    table: TableName = option("The table, with its namespace.", example="markets.trades", aka=["name"])
    catalog: Name | None = option(
        "The catalog; default: the only one in the specs that no `publish` names.", default=None, example="lake"
    )
    write: Annotated[str, WRITES] = option(
        "How rows are written to the table.",
        default="append", example="upsert", aka=["mode"],
    )  # fmt: skip
    keys: tuple[ColumnName, ...] = option(
        "For `upsert` and `history`, the columns that identify a row; a row with a null in one of them is a bad row.",
        default=(), example="[order_id]", aka=["key", "primary_key", "unique_key", "merge_keys"],
    )  # fmt: skip
    order_by: ColumnName | None = option(
        "The column that orders the rows of a key: the greatest value is the newest, and null is the oldest. For `history` it must be "
        "a time. Default: the topic's `event_time`, else Kafka's timestamp. Equal values are ordered by Kafka's timestamp, partition "
        "and offset. By default a later message of a partition is newer than an earlier one, even if Kafka's clock stepped back "
        "between them: it then gets the earlier one's timestamp.",
        default=None, example="updated_at", aka=["order", "version", "sequence_by"],
    )  # fmt: skip
    deletes: Literal["tombstones", "ignore"] | Deletes | None = option(
        "Which messages delete the row with their key. `tombstones`: messages without a value; `keys` must then be columns of the "
        "message's key. `{when: …}`: rows that meet a condition. `ignore`: no message deletes; messages that would are skipped and "
        "counted. Default: Debezium's deletes, and any other message without a value is a bad row.",
        default=None, example="tombstones", aka=["delete", "on_delete"],
    )  # fmt: skip
    remember_deletes_for: Duration = option(
        "How long a deleted key is remembered, so that an older row that arrives late does not bring the key back.",
        default=7 * 86400, at_least="1d", example="7d",
    )  # fmt: skip
    late_after: Duration | None = option(
        "For `accumulate`, when a window closes: a row that is so much older than the newest one of earlier batches is a bad row. Default: "
        "never.", default=None, at_least="1s", example="1d", aka=["lateness", "watermark", "allowed_lateness"],
    )  # fmt: skip
    partition_by: tuple[Expression, ...] = option(
        "How the files are partitioned: by columns, by `year`, `month`, `day` or `hour` of a column, by `bucket(16, c)` or "
        "`truncate(4, c)`. A text that is too long for a folder's name makes a bad row.",
        default=(),
        example="[day(at)]",
        aka=["partitioned_by", "partitions"],
    )
    sort_by: tuple[Expression, ...] = option(
        "The columns that sort the rows in each file.", default=(), example="[symbol, at]", aka=["cluster_by"]
    )
    kafka_columns: bool = option(
        "Whether the table has the columns `_kafka_partition`, `_kafka_offset` and `_kafka_timestamp`. With `upsert` and `history` it "
        "always has them, since they decide which row is newer.", default=True,
    )  # fmt: skip
    adopt: bool = option(
        "Whether the first run takes over an existing Iceberg table of the same columns, whose rows stay. For `write: append`.",
        default=False, example="true", aka=["take_over", "existing"],
    )  # fmt: skip
    format_version: Literal[2, 3] = option(
        "Iceberg's format version; 2 is for readers that do not support 3.", default=3, example="3"
    )
    schema_changes: SchemaChanges = option(
        "Which schema changes a run applies to the table.", default=SchemaChanges(), example="{add: refuse}",
        aka=["schema_evolution", "on_schema_change"],
    )  # fmt: skip

    def problems(self) -> Iterable[Problem]:
        if "write" in self.gaps:
            return
        write = WRITES.declared()[self.write]
        if self.late_after is not None and not write.groups:
            message = f"`late_after` has no effect with `write: {self.write}`"
            yield Problem(self.key_place("late_after"), "unused-key", message, "remove it: only totals have windows that close")
        if write.by_key:
            if not self.keys and "keys" not in self.gaps:
                yield Problem(
                    self.place("write"), "needs-keys", f"`write: {self.write}` needs `keys`, the columns that identify a row",
                    "add `keys: [order_id]`, with the columns that are the same in all versions of a row",
                )  # fmt: skip
            return
        for name in ("keys", "order_by", "deletes", "remember_deletes_for"):
            ignored = name == "deletes" and (self.deletes == "ignore" or name in self.gaps)
            if self.node.get(name) is not None and not ignored:
                hint = "write `write: upsert`, which keeps one row per key, or `write: history`, or remove it"
                if write.groups:
                    hint = "remove it: the `by` of `aggregate` says which rows are one"
                yield Problem(self.key_place(name), "unused-key", f"`{name}` has no effect with `write: {self.write}`", hint)
