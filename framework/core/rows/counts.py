"""The counts of a batch from its only pass over the rows, and the bad rows that come along."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from framework.core.rows.bad_rows import TYPE
from framework.core.rows.own_columns import is_checked, is_good
from framework.plan import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation, SparkSession


DROPPED = "dropped"  # in place of a code


@dataclass(frozen=True)
class Changed:
    """The changes of a batch to a table's rows by their keys; for its other rows the table had newer ones."""

    inserted: int
    updated: int = 0
    deleted: int = 0
    ended: int = 0  # versions

    @property
    def words(self) -> dict[str, int]:
        return {"new": self.inserted, "changed": self.updated, "deleted": self.deleted, "ended": self.ended}


@dataclass(frozen=True, kw_only=True)
class UnmetExpectation:
    """An expectation that a batch does not meet: the rows that fail it, and where the first and the last of them are in Kafka, as far as
    that is known. `says`: what the table has instead."""

    name: str
    rows: int
    first_place: str | None = None
    last_place: str | None = None
    says: str = ""

    @property
    def words(self) -> str:
        return self.says or f"{self.rows:,} not as `{self.name}` expects"

    @property
    def sample(self) -> str:
        """The place of the failing rows in Kafka, in words."""
        if self.first_place is None:
            return ""
        return (
            f"at {self.first_place}"
            if self.first_place == self.last_place
            else f"between {self.first_place} and {self.last_place}"
        )


@dataclass(frozen=True, kw_only=True)
class BatchCounts:
    """The counts of one pass over a batch. `carried` are its bad rows, which stay in the JVM; `too_large` of them lack their
    bytes."""

    read: int
    rows: int
    filtered: int
    bad: int
    unmet: tuple[UnmetExpectation, ...]  # expectations that do not hold
    carried: DataFrame | None
    too_large: int
    unknown_schemas: frozenset[int] = frozenset()  # ids of schemas that the registry has not been asked for
    changed: Changed | None = None
    codes: Mapping[str, int] = field(default_factory=dict)  # the number of bad rows by their codes
    read_bytes: int = 0  # of keys and values of messages
    newest_time: int = 0  # the greatest time of rows that were added to windows of time, in microseconds


def observations(pipeline: Pipeline, columns: list[str], carry: bool) -> list[Any]:
    from pyspark.sql import functions

    observed = {"read": "count_if(_sluice_first)" if "_sluice_first" in columns else "count(1)"}
    counted_clause = " AND NOT _sluice_before" if "_sluice_before" in columns else ""
    if "_sluice_first" in columns:
        observed["rows"] = f"count_if({is_good(columns)}{counted_clause})"
    if "_sluice_keep" in columns:
        observed["filtered"] = f"count_if(NOT _sluice_keep AND _sluice_bad IS NULL{counted_clause})"
    if carry and pipeline.bad_rows != "drop":
        observed["carried"] = "collect_list(_sluice_bad)"
        observed["too_large"] = "count_if(_sluice_bad.dropped)"
    else:
        observed["bad"] = "count_if(_sluice_bad IS NOT NULL)"
    if "_sluice_unknown" in columns:
        observed["unknown"] = "collect_set(_sluice_unknown)"
    for index, expected in enumerate(pipeline.expectations):
        fails = f"{is_checked(columns)} AND NOT {expected.holds}"
        observed[f"expected{index}"] = f"count_if({fails})"
        if "_kafka_offset" in columns:
            place_sql = f"IF({fails}, struct(_kafka_partition, _kafka_offset), NULL)"
            observed |= {f"first{index}": f"min({place_sql})", f"last{index}": f"max({place_sql})"}
    return [functions.expr(sql).alias(name) for name, sql in observed.items()]


def place(struct: Any) -> str | None:
    """The place of a row in Kafka, from a struct of its partition and offset."""
    return None if struct is None else f"partition {struct[0]} offset {struct[1]}"


def _place(row: Any) -> str | None:
    """The place of a row in Kafka, from a row of Java."""
    return None if row is None else place((row.get(0), row.get(1)))


def carried_rows(spark: SparkSession, rows: Any) -> DataFrame:
    """The bad rows of a list in the JVM, where they stay."""
    from pyspark.sql import DataFrame

    jvm: Any = spark._jvm
    schema = getattr(jvm, "org.apache.spark.sql.types.StructType").fromDDL(TYPE)
    return DataFrame(spark._jsparkSession.createDataFrame(rows, schema), spark)


def codes(spark: SparkSession, pipeline: Pipeline, bad: int, bad_list: Any | None) -> Mapping[str, int]:
    """The number of bad rows by their codes. Those that are dropped travel no further, and have none."""
    if not bad or bad_list is None:
        return {DROPPED: bad} if bad else {}
    jvm: Any = spark._jvm
    counts: Counter[str] = Counter()
    for entry in str(jvm.sluice.Faults.counts(bad_list)).split(","):
        fault, _, count = entry.partition(":")
        counts[pipeline.faults[int(fault)].code] += int(count)
    return counts


def counted(spark: SparkSession, pipeline: Pipeline, observed: Observation) -> BatchCounts:
    """The counts of an observation. The bad rows stay in the JVM: as Python objects, ten thousand would take longer than their write."""
    row = cast(Any, observed)._jo.getRow()
    counts = {name: row.get(index) for index, name in enumerate(row.schema().fieldNames()) if name not in ("carried", "unknown")}
    bad, bad_list = counts.get("bad", 0), None
    if "bad" not in counts:
        bad_list = row.getList(row.fieldIndex("carried"))
        bad = bad_list.size()
    filtered = counts.get("filtered", 0)
    rows = counts.get("rows", counts["read"] - bad - filtered)
    unmet = tuple(
        UnmetExpectation(
            name=expectation.name,
            rows=failing_count,
            first_place=_place(counts.get(f"first{index}")),
            last_place=_place(counts.get(f"last{index}")),
        )
        for index, expectation in enumerate(pipeline.expectations)
        if (failing_count := counts[f"expected{index}"])
    )
    unknown_schemas = frozenset(row.getList(row.fieldIndex("unknown"))) if "unknown" in row.schema().fieldNames() else frozenset()
    return BatchCounts(
        read=counts["read"],
        rows=rows,
        filtered=filtered,
        bad=bad,
        unmet=unmet,
        carried=carried_rows(spark, bad_list) if bad and bad_list is not None else None,
        codes=codes(spark, pipeline, bad, bad_list),
        too_large=counts.get("too_large", 0),
        unknown_schemas=unknown_schemas,
    )
