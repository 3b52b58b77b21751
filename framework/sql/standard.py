"""Quoting in standard SQL, which DuckDB, Trino and Snowflake speak. Spark's is in `framework.sql.quote`."""

from __future__ import annotations


def identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def literal(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
