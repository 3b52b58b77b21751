"""Files that are made of columns against those of Iceberg's own writer: the same rows, and the same statistics of each file."""

from __future__ import annotations

import math
import random
import re
import uuid
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow.parquet
import pytest

from framework.core.kafka import spark_reader
from framework.core.kafka.cluster import Kafka
from framework.core.rows.frame import judged_rows
from framework.core.rules.protocol import Range
from framework.plan import SecretStore, by_column
from framework.sql.quote import identifier
from tests.support.project import Project
from tests.support.waiting import until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

TYPES = {
    "truth": "boolean", "number": "int", "large": "bigint", "single": "float",
    "double": "double", "day": "date", "at": "timestamp", "local": "timestamp_ntz", "text": "string", "bytes": "binary",
    "price": "decimal(9,2)", "amount €.`": "decimal(18,4)", "same": "string", "many": "string", "nothing": "bigint", "nan": "double",
}  # fmt: skip
COLUMNS = ", ".join(f"{identifier(name)} {type_}" for name, type_ in TYPES.items())
REALS = (0.0, -0.0, 1.5, -1.5, math.inf, -math.inf, 1e-300, 3.4e38)
DAY = date(1969, 12, 31)
MOMENT = datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=timezone.utc)


def value_of(name: str, chance: random.Random, nulls: float, spread: int) -> Any:
    if name == "nothing" or chance.random() < nulls:
        return None
    number = chance.randint(-spread, spread)
    match name:
        case "truth":
            return chance.random() < 0.5
        case "number":
            return number % 2**31
        case "large":
            return number * 10**9
        case "single" | "double":
            return chance.choice((*REALS, float(number % 1000), *([math.nan] if spread % 2 else [])))
        case "day":
            return DAY + timedelta(days=number % 10_000)
        case "at":
            return MOMENT + timedelta(microseconds=number)
        case "local":
            return MOMENT.replace(tzinfo=None) + timedelta(seconds=number)
        case "text":
            return chance.choice(("", "a", "ä", "\U0001f600" * 20, "z" * 40, f"text {number}"))
        case "bytes":
            return chance.choice((b"", b"\x00", b"\xff" * 20, str(number).encode()))
        case "price":
            return Decimal(number % 10**9) / 100
        case "amount €.`":
            return Decimal(number) / 10_000
        case "same":
            return "the same"
        case "many":
            return f"{chance.getrandbits(96):x}" * 2
        case _:
            return math.nan


def rows(count: int, seed: int, nulls: float, spread: int) -> list[tuple[Any, ...]]:
    chance = random.Random(seed)
    return [tuple(value_of(name, chance, nulls, spread) for name in TYPES) for _ in range(count)]


@pytest.fixture
def namespace(spark: SparkSession) -> str:
    name = f"lake.c{uuid.uuid4().hex[:8]}"
    spark.sql(f"CREATE NAMESPACE {name}")
    return name


def make(spark: SparkSession, table: str, **properties: object) -> None:
    all_properties = {"write.distribution-mode": "none", "write.parquet.compression-level": "1", **properties}
    text = ", ".join(
        f"'{name.replace('_', '-') if '.' not in name else name}' = '{value}'" for name, value in all_properties.items()
    )
    spark.sql(f"CREATE TABLE {table} ({COLUMNS}) USING iceberg TBLPROPERTIES ({text})")


def append(spark: SparkSession, frame: DataFrame, table: str) -> None:
    jvm: Any = spark._jvm
    loaded = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, table)
    assert jvm.sluice.ColumnAppend.refusal(loaded) == ""
    judged = frame.selectExpr("CAST(NULL AS struct<at: int, dropped: boolean>) AS _sluice_bad", "*")._jdf
    assert jvm.sluice.ColumnAppend.fits(judged, loaded, [])
    jvm.sluice.ColumnAppend.append(judged, loaded, "main", {"why": "test"}, True)
    spark.sql(f"REFRESH TABLE {table}")


def metrics(spark: SparkSession, table: str) -> list[Any]:
    """Returns what a manifest says of each file, but where the file is and how long."""
    columns = (
        "record_count, value_counts, null_value_counts, nan_value_counts, lower_bounds, upper_bounds, sort_order_id, spec_id"
    )
    return sorted((row.asDict(True) for row in spark.sql(f"SELECT {columns} FROM {table}.files").collect()), key=str)


def files(spark: SparkSession, table: str) -> list[tuple[Path, int]]:
    file_rows = spark.sql(f"SELECT file_path, file_size_in_bytes FROM {table}.files").collect()
    return [(Path(row[0].removeprefix("file:")), row[1]) for row in file_rows]


def same(one: Any, other: Any) -> bool:
    """Whether two rows are equal, where NaN is, and -0.0 is another number than 0.0."""
    return repr(one) == repr(other)


@pytest.mark.parametrize(
    ("count", "nulls", "spread", "properties"),
    [
        (1, 0.0, 10, {}),
        (7, 0.5, 11, {}),
        (3_000, 0.2, 50, {"write.parquet.page-row-limit": 100}),
        (3_000, 0.0, 10**9, {"write.parquet.page-row-limit": 64, "write.parquet.dict-size-bytes": 2_000}),
        (5_000, 0.1, 10**9 + 1, {"write.parquet.page-size-bytes": 1_000, "write.parquet.row-group-size-bytes": 60_000}),
        (2_500, 1.0, 10, {}),
        (4_000, 0.3, 301, {"write.parquet.compression-codec": "gzip", "write.parquet.compression-level": "BEST_SPEED"}),
        (4_000, 0.01, 40, {"write.parquet.compression-codec": "snappy", "write.parquet.dict-size-bytes": 64}),
        (2_000, 0.1, 40, {"write.metadata.metrics.column.text": "none", "write.parquet.stats-enabled.column.text": "false"}),
        (2_000, 0.1, 40, {"write.metadata.metrics.default": "counts", "write.metadata.metrics.column.many": "full"}),
    ],
)  # fmt: skip
def test_rows_and_statistics_are_those_of_icebergs_writer(
    spark: SparkSession, namespace: str, count: int, nulls: float, spread: int, properties: dict[str, object]
) -> None:
    given = rows(count, count, nulls, spread)
    frame = spark.createDataFrame(given, COLUMNS).coalesce(1)
    ours, theirs = f"{namespace}.ours", f"{namespace}.theirs"
    for table in (ours, theirs):
        make(spark, table, **properties)
    append(spark, frame, ours)
    frame.writeTo(theirs).append()

    read = spark.table(ours).collect()
    assert len(read) == count
    assert all(map(same, read, spark.table(theirs).collect()))
    assert metrics(spark, ours) == metrics(spark, theirs)
    ((file, size),) = files(spark, ours)
    assert size == file.stat().st_size
    ((_, their_size),) = files(spark, theirs)
    assert size < 1.2 * their_size + 2_000  # the smallest pages and row groups are not as small as theirs

    of_arrow = pyarrow.parquet.read_table(file).to_pylist()
    assert len(of_arrow) == count
    of_duck = duckdb.sql(f"SELECT * FROM '{file}'").fetchall()
    ((their_file, _),) = files(spark, theirs)
    assert all(map(same, of_duck, duckdb.sql(f"SELECT * FROM '{their_file}'").fetchall()))
    assert all(map(same, of_arrow, pyarrow.parquet.read_table(their_file).to_pylist()))


def test_the_rows_of_a_file_are_in_the_order_of_the_table(spark: SparkSession, namespace: str) -> None:
    frame = spark.createDataFrame(rows(3_000, 5, 0.2, 40), COLUMNS).coalesce(1)
    ours, theirs = f"{namespace}.ours", f"{namespace}.theirs"
    jvm: Any = spark._jvm
    first, last = jvm.org.apache.iceberg.NullOrder.NULLS_FIRST, jvm.org.apache.iceberg.NullOrder.NULLS_LAST
    for table in (ours, theirs):
        make(spark, table)
        order = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, table).replaceSortOrder()
        ref = jvm.org.apache.iceberg.expressions.Expressions.ref
        order.desc(ref("text"), last).asc(ref("same"), last).desc(ref("day"), first).asc(ref("double"), first).asc(
            ref("many"), first
        ).commit()
    append(spark, frame, ours)
    frame.writeTo(theirs).append()
    assert all(map(same, spark.table(ours).collect(), spark.table(theirs).collect()))
    assert metrics(spark, ours) == metrics(spark, theirs)


def test_a_file_of_the_tables_size_is_followed_by_another(spark: SparkSession, namespace: str) -> None:
    table = f"{namespace}.ours"
    make(spark, table, **{"write.target-file-size-bytes": 100_000, "write.parquet.row-group-size-bytes": 50_000})
    frame = spark.createDataFrame(rows(9_000, 1, 0.0, 10**9), COLUMNS).coalesce(1)
    append(spark, frame, table)
    sizes = [size for _, size in files(spark, table)]
    assert len(sizes) > 3 and max(sizes) < 400_000
    assert spark.table(table).count() == 9_000


def test_no_row_makes_a_commit_without_files(spark: SparkSession, namespace: str) -> None:
    table = f"{namespace}.ours"
    make(spark, table)
    append(spark, spark.createDataFrame([], COLUMNS), table)
    assert files(spark, table) == []
    assert spark.sql(f"SELECT summary['why'] FROM {table}.snapshots").collect()[0][0] == "test"


def test_a_job_that_fails_leaves_no_file(spark: SparkSession, namespace: str) -> None:
    table = f"{namespace}.ours"
    spark.sql(f"CREATE TABLE {table} (id bigint) USING iceberg")
    folder = Path(spark.sql(f"DESCRIBE EXTENDED {table}").where("col_name = 'Location'").collect()[0][1].removeprefix("file:"))
    # The first task has ended long before the second one fails.
    fails = "CASE WHEN id = 1900000 THEN raise_error('on purpose') ELSE id END AS id"
    frame = spark.range(0, 2_000_000, 1, 2).where("id < 10 OR id > 1000000").selectExpr(fails)
    with pytest.raises(Exception, match="on purpose"):
        append(spark, frame, table)
    until(lambda: not list(folder.rglob("*.parquet")), "files of the job are left", 10)


def test_narrower_numbers_fit_into_wider_columns(spark: SparkSession, namespace: str) -> None:
    table = f"{namespace}.ours"
    spark.sql(f"CREATE TABLE {table} (a int, b bigint, c double, d decimal(9,2)) USING iceberg")
    frame = spark.sql(
        "SELECT CAST(1 AS smallint) AS b, CAST(2 AS tinyint) AS a, CAST(1.5 AS decimal(5,1)) AS d, CAST(0.5 AS float) AS c"
    )
    append(spark, frame, table)
    assert [tuple(row) for row in spark.table(table).collect()] == [(2, 1, 0.5, Decimal("1.50"))]


WAYS = {
    "nothing": ("", ""),
    "flag": ("  - flag: {{into: size, rules: [{{when: price > 900, label: LARGE}}], otherwise: NORMAL}}", ""),
    "filter": ("  - filter: price > 3", ""),
    "a step that can fail": (
        "  - derive: {{share: 100 / id}}\n  - filter: share < 50\n  - derive: {{twice: share + 1 / id}}",
        "",
    ),
    "renamed and cast": ("  - rename: {{price: cost}}\n  - cast: {{cost: int}}", ""),
    "a rule that only warns": (
        "  - filter: id > 2\nexpect:\n  - {{when: price < 5, else: warn}}\n  - {{when: id < 99, else: warn}}",
        "",
    ),
    "a rule that makes bad rows": ("  - filter: id > 2\nexpect:\n  - when: price < 5", ""),
    "partitioned by what passes": ("", "partition_by: ['bucket(3, id)', 'hour(_kafka_timestamp)', source]"),
    "partitioned by what is computed": (
        """  - derive: {{half: price / 2, day: CAST(_kafka_timestamp AS date), cost: "CAST(price AS decimal(9,1))"}}""",
        "partition_by: ['month(day)', 'truncate(2, cost)', half]",
    ),
}
THROUGH_ROWS = {
    "several rows of a message": (
        "  - derive: {{items: 'sequence(1, id % 3 + 1)'}}\n  - explode: {{column: items, into: item}}\n  - filter: id > 2",
        "",
    ),
    "duplicates": ("  - dedup: {{keys: [id, price, source]}}", ""),
    "sorted": ("", "sort_by: [price, _kafka_partition, _kafka_offset]"),
    "sorted and partitioned": (
        "  - filter: id > 2",
        "partition_by: ['bucket(3, id)'], sort_by: [id, _kafka_partition, _kafka_offset]",
    ),
}


def go(project: Project, name: str) -> None:
    """Makes the specs of one way."""
    steps, more = {**WAYS, **THROUGH_ROWS}[name]
    project.template = re.sub(r"steps:\n.*\n", f"steps:\n{steps}\n" if steps else "", project.template)
    if more:
        project.template = project.template.replace("{namespace}.trades}}", f"{{namespace}}.trades, {more}}}}}")


@pytest.mark.kafka
@pytest.mark.parametrize("name", [*WAYS, *THROUGH_ROWS])
def test_a_batch_is_the_same_by_columns_and_by_rows(project: Project, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    project.topic_more = "headers: {source: string}"
    go(project, name)
    project.make_topic()
    chance = random.Random(5)
    values = [
        b"not json",
        None,
        b'{"id": "x"}',
        b'{"price": 1}',
        *(b'{"id": %d, "price": %d.5}' % (n % 11, n % 7) for n in range(40)),
    ]
    project.produce(
        {
            "value": chance.choice(values), "key": chance.choice((None, b"k")), "partition": number % 3,
            "headers": chance.choice(([], [("source", b"a")], [("source", b"\xff"), ("other", None)])),
        }
        for number in range(7_000)
    )  # fmt: skip
    assert by_column.refusal(project.pipeline) == ""
    batches = {}
    for way in ("columns", "rows"):
        if way == "rows":
            project.namespace += "r"
            # Nothing else makes a pipeline go the other way and keeps its rows.
            monkeypatch.setattr("framework.core.staging.by_column.is_possible", lambda _: False)
        (batch,) = project.run()
        rows = sorted(project.rows(), key=lambda row: (row["_kafka_partition"], row["_kafka_offset"]))
        bad = sorted(({**row, "batch": 0} for row in project.rows(bad=True)), key=lambda row: (row["partition"], row["offset"]))
        counts = (batch.read, batch.rows, batch.bad, batch.filtered, batch.warnings)
        partitions = project.sql("select partition from {table}.files order by 1") if "partition_by" in project.template else []
        written = (partitions, metrics(project.spark, project.table))
        batches[way] = (*counts, [repr(row) for row in rows], [repr(row) for row in bad], written)
    assert batches["columns"] == batches["rows"]
    assert (
        batches["rows"][0] == 7_000 and batches["rows"][1] > (30 if name == "duplicates" else 1_000) and batches["rows"][2] > 300
    )


@pytest.mark.kafka
@pytest.mark.parametrize("name", WAYS)
def test_messages_become_files_without_rows_of_spark(project: Project, name: str) -> None:
    project.topic_more = "headers: {source: string}"
    go(project, name)
    project.make_topic()
    project.send_good(3)
    project.run()
    starts, ends = Kafka(project.pipeline.topic.cluster, SecretStore()).extent(project.topic)
    messages = spark_reader.read(
        project.spark, project.pipeline, Range(starts, ends, 0, topics={project.topic: "1"}), SecretStore()
    )
    jvm: Any = project.spark._jvm
    table = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(project.spark._jsparkSession, project.table)
    assert jvm.sluice.ColumnAppend.isOfColumns(judged_rows(messages, project.pipeline, 3)._jdf, table)
