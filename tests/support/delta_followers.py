"""A pipeline whose table is shown as a Delta table too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import duckdb_extension_delta
from deltalake import DeltaTable

from tests.support.project import Project

ROWS = """
topic: trades
kafka_name: {topic}
value: json
columns: {{id: {{type: bigint, required: true}}, price: double, gone: boolean, l: 'array<struct<x:int>>', m: 'map<string,decimal(9,2)>'}}
---
pipeline: trades
from: {{topic: trades}}
into: {{table: {namespace}.trades%s}}
also: [{{delta: true}}]
"""


def prepare(project: Project, into: str = "") -> Project:
    project.template = ROWS % into
    project.make_topic(1)
    return project


def folder(project: Project) -> Path:
    return project.lake / "warehouse" / project.namespace / "trades"


def visible_rows(project: Project) -> list[tuple[Any, ...]]:
    """The rows that two readers see."""
    rows = DeltaTable(folder(project)).to_pyarrow_table(columns=["id", "price"]).to_pylist()
    by_library = sorted((row["id"], row["price"]) for row in rows)
    assert by_duckdb("id, price", folder(project)) == by_library
    return by_library


def by_duckdb(columns: str, place: Path) -> list[tuple[Any, ...]]:
    extension = Path(
        next(iter(duckdb_extension_delta.__path__)), "extensions", f"v{duckdb.__version__}", "delta.duckdb_extension"
    )
    with duckdb.connect(config={"allow_unsigned_extensions": "true"}) as database:
        database.execute(f"LOAD '{extension}'")
        return sorted(database.execute(f"SELECT {columns} FROM delta_scan('{place}')").fetchall())
