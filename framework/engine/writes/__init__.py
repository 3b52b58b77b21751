"""How a batch's rows come onto its branch: one file for each `write` of a spec."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from framework.engine.context import Context
from framework.engine.iceberg.lake import Lake
from framework.engine.rules import protocol
from framework.engine.spark.row_frame import Changed, Counted, Frame
from framework.model import Keyed, Pipeline
from framework.sql.quote import identifier
from framework.types import Type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.readwriter import DataFrameWriterV2


@dataclass(frozen=True)
class Target:
    """Where an attempt writes. `summary` is what its snapshot says of itself; `table` is as it was opened."""

    context: Context
    lake: Lake
    pipeline: Pipeline
    attempt: str
    table: Any
    summary: Mapping[str, str]
    size: int  # messages

    @property
    def spark(self) -> Any:
        return self.context.spark

    @property
    def name(self) -> str:
        """The table, as SQL has it."""
        table = self.pipeline.table
        return identifier(table.catalog.name, table.namespace, table.name)

    @property
    def keyed(self) -> Keyed:
        """Of a table whose rows go by keys."""
        assert self.pipeline.table.keyed is not None
        return self.pipeline.table.keyed

    @cached_property
    def there(self) -> Mapping[str, Type]:
        """The columns that the table has."""
        return {field.name: field.type for field in self.lake.existing(self.table).columns}

    def branch(self, name: str) -> str:
        return f"{self.name}.{identifier(f'branch_{name}')}"

    @property
    def own(self) -> str:
        """The attempt's branch."""
        return self.branch(protocol.BRANCH + self.attempt)

    def writer(self, rows: DataFrame) -> DataFrameWriterV2:
        """Writes rows to it, in a snapshot that says what it is."""
        writer = rows.writeTo(self.own)
        for key, value in self.summary.items():
            writer = writer.option(f"snapshot-property.{key}", value)
        return writer


Stage = Callable[[Target, Frame], Counted]


def of(write: str) -> Stage:
    from framework.engine.writes import append, history, replace, upsert

    return {"append": append.stage, "history": history.stage, "replace": replace.stage, "upsert": upsert.stage}[write]


# As Iceberg's summaries of a MERGE call them.
_CHANGES = {
    "upsert": {"inserted": "inserted", "updated": "matched-updated", "deleted": "matched-deleted"},
    "history": {"inserted": "inserted", "ended": "matched-updated"},
}


def changed(table: Any, attempt: str, write: str) -> Changed | None:
    """What a staged batch does to rows by their keys, as its snapshot says."""
    said = table.snapshot(protocol.BRANCH + attempt).summary()
    found = {name: said.get(f"spark.merge-into.num-target-rows-{of}") for name, of in _CHANGES.get(write, {}).items()}
    return None if None in found.values() or not found else Changed(**{name: int(number) for name, number in found.items()})
