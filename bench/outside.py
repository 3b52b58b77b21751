"""A program outside of Sluice: it sends messages with a time in each, and reads tables by DuckDB until they are visible.

`python bench/outside.py JSON` prints the seconds from sending to seeing, a list for each table. Only confluent-kafka, DuckDB and SQLite.
"""

from __future__ import annotations

import json
import sqlite3
import sys
import threading
import time
from typing import Any

import duckdb
from confluent_kafka import Producer

PARTITIONS = 3
KEYS = 999  # a multiple of the partitions: messages of a key are in one, as producers put them
_SMALLEST_PAUSE = 0.02  # seconds between two looks at the catalog


def send(about: dict[str, Any], sent: list[float]) -> None:
    """Sends numbered messages at a rate; notes when each was handed to Kafka's client."""
    producer = Producer({"bootstrap.servers": about["bootstrap"]})
    began = time.time()
    for number in range(about["count"]):
        pause = began + number / about["rate"] - time.time()
        if pause > 0:
            producer.poll(0)
            time.sleep(pause)
        now = time.time()
        value = {
            "n": about["first"] + number,
            "part": number % PARTITIONS,
            "id": number % KEYS,
            "key": f"k{about['first'] + number}",
            "amount": number % 97,
            "sent": now,
        }
        sent.append(now)
        for topic in about["topics"]:
            producer.produce(topic, json.dumps(value).encode(), key=str(number % KEYS), partition=number % PARTITIONS)
        producer.poll(0)
    producer.flush(30)


class Table:
    """A table that is read: the newest message of each partition that was seen in it, and the delays of all messages."""

    def __init__(self, about: dict[str, Any], name: str, sent: list[float]) -> None:
        self.name, self.sent, self.first = name, sent, about["first"]
        self.file = ""  # the newest metadata file that was read
        self.seen = [self.first + partition - PARTITIONS for partition in range(PARTITIONS)]
        self.delays: list[float] = []

    def read(self, database: duckdb.DuckDBPyConnection, file: str) -> None:
        self.file = file
        numbers = f"SELECT part, max(n) FROM iceberg_scan('{file}') WHERE n >= {max(0, min(self.seen))} GROUP BY part"
        newest_numbers = dict(database.execute(numbers).fetchall())
        moment = time.time()
        for partition in range(PARTITIONS):
            newest = newest_numbers.get(partition, self.seen[partition])
            for number in range(self.seen[partition] + PARTITIONS, newest + 1, PARTITIONS):
                self.delays.append(moment - self.sent[number - self.first])
            self.seen[partition] = max(newest, self.seen[partition])


class Reader(threading.Thread):
    """Looks again and again at some tables: which is the newest message of each partition that is in them?"""

    def __init__(self, about: dict[str, Any], tables: list[Table]) -> None:
        super().__init__(daemon=True)
        self.about, self.tables = about, tables

    def run(self) -> None:
        catalog = sqlite3.connect(self.about["catalog"], timeout=30)
        database = duckdb.connect(config={"allow_unsigned_extensions": "true", "threads": 1})
        for file in self.about["extensions"]:
            database.execute(f"LOAD '{file}'")
        while waiting := [table for table in self.tables if len(table.delays) < self.about["count"]]:
            newest = self._files(catalog)
            changed = [table for table in waiting if newest.get(table.name, "") != table.file]
            for table in changed:
                table.read(database, newest[table.name])
            if not changed:
                time.sleep(_SMALLEST_PAUSE)

    def _files(self, catalog: sqlite3.Connection) -> dict[str, str]:
        query = "SELECT table_namespace || '.' || table_name, metadata_location FROM iceberg_tables"
        try:
            rows = catalog.execute(query).fetchall()
        except sqlite3.OperationalError:  # nobody has made the catalog yet
            return {}
        return {name: location.removeprefix("file://").removeprefix("file:") for name, location in rows}


def main() -> None:
    about = json.loads(sys.argv[1])
    sent: list[float] = []
    tables = [Table(about, name, sent) for name in about["tables"]]
    readers = [Reader(about, tables[number :: about["readers"]]) for number in range(about["readers"])]
    for reader in readers:
        reader.start()
    send(about, sent)
    until = time.time() + about["patience"]
    for reader in readers:
        reader.join(max(0.0, until - time.time()))
    print(json.dumps({table.name: table.delays for table in tables}))


if __name__ == "__main__":
    main()
