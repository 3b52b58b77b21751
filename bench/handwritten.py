"""The job that a good engineer would write by hand for `flagged_stock_trades`: exact offset ranges, plain from_json, append.

It does the same work as Sluice (columns, flag, Kafka columns, same Kafka and Parquet settings), with none of its guarantees: what is not
JSON becomes a row of nulls, and a second run after a crash writes the rows again.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from bench import load

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from framework.plan import Plan

SCHEMA = "side string, quantity int, symbol string, price double, account string, userid string, at timestamp"
FLAG = """case when m.price < 0 then 'NEGATIVE_PRICE' when m.quantity > 4000 then 'LARGE_TRADE'
    when m.price > 900 then 'UNUSUAL_PRICE' else 'NORMAL' end as anomaly_flag"""
OF_KAFKA = "_kafka_partition int, _kafka_offset bigint, _kafka_timestamp timestamp"
KAFKA_COLUMNS = ("partition as _kafka_partition", "offset as _kafka_offset", "timestamp as _kafka_timestamp")
COLUMNS = f"{SCHEMA}, anomaly_flag string, {OF_KAFKA}"
PROPERTIES = {
    "format-version": "3",
    "write.distribution-mode": "none",
    "write.parquet.compression-codec": "zstd",
    "write.parquet.compression-level": "1",
}


def session(plan: Plan) -> SparkSession:
    """A new session with the same jars and settings, without Sluice's cache of Spark's classes."""
    from pyspark.sql import SparkSession

    from framework.core.spark import session as ours

    ours.prepare(plan)
    settings = ours.settings(plan)
    del settings["spark.driver.defaultJavaOptions"]
    builder = SparkSession.builder
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def create(spark: SparkSession, table: str, columns: str = COLUMNS) -> None:
    properties = ", ".join(f"'{key}' = '{value}'" for key, value in PROPERTIES.items())
    spark.sql(f"create namespace if not exists {table.rpartition('.')[0]}")
    spark.sql(f"create table {table} ({columns}) using iceberg tblproperties ({properties})")


def messages(spark: SparkSession, bootstrap: str, topic: str, starts: Mapping[int, int], ends: Mapping[int, int]) -> DataFrame:
    options = {
        "kafka.bootstrap.servers": bootstrap,
        "assign": json.dumps({topic: sorted(starts)}),
        "startingOffsets": json.dumps({topic: starts}),
        "endingOffsets": json.dumps({topic: ends}),
        "kafka.isolation.level": "read_committed",
        "kafka.fetch.max.wait.ms": "1",
        "kafka.max.poll.records": "20000",
    }
    return spark.read.format("kafka").options(**options).load()


def append(
    spark: SparkSession, table: str, bootstrap: str, topic: str, starts: Mapping[int, int], ends: Mapping[int, int]
) -> None:
    from pyspark.sql import functions

    parsed = messages(spark, bootstrap, topic, starts, ends).select(
        functions.from_json(functions.col("value").cast("string"), SCHEMA).alias("m"), "partition", "offset", "timestamp"
    )
    rows(parsed).writeTo(table).append()


def plain_rows(messages: DataFrame, columns: str) -> DataFrame:
    """The messages as rows of these columns, and Kafka's."""
    from pyspark.sql import functions

    value = functions.from_json(functions.col("value").cast("string"), columns).alias("m")
    return messages.select(value, "partition", "offset", "timestamp").selectExpr("m.*", *KAFKA_COLUMNS)


def seconds(
    spark: SparkSession, bootstrap: str, topic: str, table: str, columns: str, rows_of: Callable[[DataFrame], DataFrame],
    partitions: int = load.PARTITIONS,
) -> float:  # fmt: skip
    """The seconds in which all messages of a topic become rows by `rows_of`, and are appended to a new table."""
    create(spark, table, columns)
    starts, ends = load.offsets(bootstrap, topic, partitions)
    began = time.perf_counter()
    rows_of(messages(spark, bootstrap, topic, starts, ends)).writeTo(table).append()
    return time.perf_counter() - began


def rows(parsed: DataFrame) -> DataFrame:
    return parsed.selectExpr("m.*", FLAG, *KAFKA_COLUMNS)
