"""A program outside of Sluice: it asks questions of a table by DuckDB, each by the metadata file that the catalog names at that moment.

`python bench/asking.py JSON` prints the seconds of each, a list for each question. Only DuckDB and SQLite.
"""

from __future__ import annotations

import json
import sqlite3
import sys
import time
from pathlib import Path
from typing import Any

import duckdb

TABLE = "sensors.readings"


def main() -> None:
    about: dict[str, Any] = json.loads(sys.argv[1])
    catalog = sqlite3.connect(about["catalog"], timeout=30)
    lake = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    for file in about["extensions"]:
        lake.execute(f"LOAD '{file}'")
    lake.execute("SET timezone = 'UTC'")
    texts = {path.stem: path.read_text() for path in sorted(Path(about["folder"]).glob("*.sql"))}
    seconds: dict[str, list[float]] = {name: [] for name in texts}
    until = time.monotonic() + about["seconds"]
    while time.monotonic() < until:
        for name, text in texts.items():
            began = time.monotonic()
            query = "SELECT metadata_location FROM iceberg_tables WHERE table_namespace || '.' || table_name = ?"
            location = catalog.execute(query, [TABLE]).fetchone()[0].removeprefix("file://").removeprefix("file:")
            lake.execute(text.replace(TABLE, f"iceberg_scan('{location}')")).fetchall()
            seconds[name].append(time.monotonic() - began)
    print(json.dumps(seconds))


if __name__ == "__main__":
    main()
