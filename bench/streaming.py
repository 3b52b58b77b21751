"""Lands 1,000 rows by a plain Structured Streaming job with Iceberg's sink: `python -m bench.streaming BOOTSTRAP TOPIC TURN`.

Spark has Sluice's settings and cached classes, and starts as PySpark starts it.
"""

from __future__ import annotations

import sys

from pyspark import SparkConf
from pyspark.sql import SparkSession

from bench import handwritten, load
from framework.core.spark import session
from framework.host.plans import make


def main(bootstrap: str, topic: str, turn: str) -> None:
    plan = make(load.specs(bootstrap, {"streaming": topic}))
    session.prepare(plan)
    spark = SparkSession.builder.config(conf=SparkConf().setAll(list(session.settings(plan).items()))).getOrCreate()
    handwritten.create(spark, f"lake.hand.streaming{turn}")
    messages = spark.readStream.format("kafka").option("kafka.bootstrap.servers", bootstrap).option("subscribe", topic)
    parsed = (
        messages.option("startingOffsets", "earliest")
        .load()
        .selectExpr(f"from_json(cast(value as string), '{handwritten.SCHEMA}') as m", "partition", "offset", "timestamp")
    )
    rows = parsed.selectExpr(
        "m.*", handwritten.FLAG, "partition as _kafka_partition", "offset as _kafka_offset", "timestamp as _kafka_timestamp"
    )
    writer = rows.writeStream.trigger(availableNow=True).option("checkpointLocation", f"checkpoint{turn}")
    writer.toTable(f"lake.hand.streaming{turn}").awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
