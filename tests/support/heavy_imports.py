"""Modules that planning and help do not load."""

from __future__ import annotations

HEAVY = (
    *("pyspark", "py4j", "dagster", "pyiceberg", "pyarrow", "confluent_kafka", "duckdb", "deltalake", "boto3", "botocore"),
    *("framework.core.context.context", "framework.core.iceberg.lake", "framework.core.spark.session", "framework.host.assets"),
)
