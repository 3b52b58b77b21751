"""The texts of files, those that are compressed too."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import fastavro
import pyarrow.parquet as pq


def everything(folder: Path) -> Iterator[tuple[Path, str]]:
    """The text of every file, also of what is compressed in it."""
    for path in folder.rglob("*"):
        if not path.is_file() or path.is_symlink() or "jars" in path.parts or "kafka" in path.parts:
            continue
        data = path.read_bytes()
        yield path, data.decode("latin-1")
        if path.suffix == ".parquet":
            table = pq.read_table(path)
            yield path, str(table.to_pylist()) + str(pq.read_metadata(path).to_dict())
        elif path.suffix == ".avro":
            with path.open("rb") as file:
                yield path, str(list(fastavro.reader(file)))
        elif data.startswith(b"SQLite"):
            with sqlite3.connect(path) as database:
                yield path, "".join(database.iterdump())
