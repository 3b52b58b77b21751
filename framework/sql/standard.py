"""Quoting in standard SQL, which DuckDB, Trino and Snowflake speak. Spark's is `quote`."""

from __future__ import annotations


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def quoted_text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
