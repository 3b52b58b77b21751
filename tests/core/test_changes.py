"""The change feed between two snapshots equals a comparison of both, whatever was committed between them."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from framework.base.types import BIGINT, INT, STRING, Map
from framework.core.iceberg.lake import TableStore
from framework.core.sources import changes
from framework.core.sources.changes import ADDED, AFTER, BEFORE, CHANGE, COMMIT, DELETED, NOTHING, ROW
from framework.plan import Column
from tests.support.project import plan_for
from tests.support.selection import EXAMPLES, few

pytestmark = pytest.mark.spark

_COLUMNS = (Column("k", BIGINT), Column("v", STRING), Column("m", Map(STRING, INT)))
_MODES = ", ".join(f"'write.{kind}.mode' = 'merge-on-read'" for kind in ("merge", "update", "delete"))


class _Table:
    """A table to which anything happens."""

    def __init__(self, spark: Any, lake: TableStore, name: str, format_version: int) -> None:
        self.spark, self.lake, self.name, self.sql = spark, lake, name, f"{lake.component.name}.{name}"
        spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {self.sql.rpartition('.')[0]}")
        spark.sql(
            f"CREATE TABLE {self.sql} (k BIGINT, v STRING, m MAP<STRING, INT>) USING iceberg "
            f"TBLPROPERTIES ('format-version' = '{format_version}', {_MODES})"
        )
        self.has_row_ids = format_version > 2

    def java(self) -> Any:
        return self.lake.load(self.name)

    @property
    def main(self) -> int:
        return int(self.java().currentSnapshot().snapshotId())

    def source(self, keys: list[int], value: str) -> None:
        rows = ", ".join(f"({key}, '{value}', map('a', {key}))" for key in keys)
        self.spark.sql(f"CREATE OR REPLACE TEMP VIEW changes_source AS SELECT * FROM VALUES {rows} AS t (k, v, m)")

    def append(self, keys: list[int], value: str) -> None:
        self.source(keys, value)
        self.spark.table("changes_source").repartition(2).writeTo(self.sql).append()

    def merge(self, keys: list[int], value: str) -> None:
        self.source(keys, value)
        self.spark.sql(
            f"MERGE INTO {self.sql} t USING changes_source s ON t.k = s.k WHEN MATCHED AND s.k % 3 = 0 THEN DELETE "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )

    def delete(self, keys: list[int]) -> None:
        self.spark.sql(f"DELETE FROM {self.sql} WHERE k IN ({', '.join(map(str, keys))})")

    def compact(self) -> None:
        actions = self.lake.iceberg.spark.actions.SparkActions.get(self.spark._jsparkSession)
        actions.rewriteDataFiles(self.java()).option("rewrite-all", "true").execute()

    def replace(self, keys: list[int], value: str) -> None:
        from pyspark.sql import functions

        self.source(keys, value)
        self.spark.table("changes_source").writeTo(self.sql).overwrite(functions.lit(True))

    def roll_back(self, snapshot: int) -> None:
        self.java().manageSnapshots().rollbackTo(snapshot).commit()

    def rows(self, snapshot: int) -> list[tuple[Any, ...]]:
        """The rows of a snapshot, with row ids if the table has them."""
        if snapshot == NOTHING:
            return []
        id_columns = "_row_id, _last_updated_sequence_number" if self.has_row_ids else "NULL, NULL"
        rows = self.spark.sql(f"SELECT k, v, to_json(m), {id_columns} FROM {self.sql} VERSION AS OF {snapshot}")
        return [tuple(row) for row in rows.collect()]

    def changes(self, since: int, until: int) -> Counter[tuple[Any, ...]]:
        feed = changes.between(self.lake, self.lake.load(self.name), _COLUMNS, since, until)
        rows = feed.rows().selectExpr("k", "v", "to_json(m)", ROW, COMMIT, CHANGE).collect()
        assert len(rows) <= feed.most
        current_rows, only_adds = feed.now().collect(), feed.only_adds(None)
        assert len(current_rows) == sum(row[-1] in (ADDED, AFTER) for row in rows)
        assert only_adds == all(row[-1] in (ADDED, AFTER) for row in rows)
        return Counter(tuple(row) for row in rows)

    def expected(self, since: int, until: int) -> Counter[tuple[Any, ...]]:
        old_rows, new_rows = self.rows(since), self.rows(until)
        if not self.has_row_ids:
            before, after = Counter(old_rows), Counter(new_rows)
            return Counter({(*row, DELETED): number for row, number in (before - after).items()}) + Counter(
                {(*row, ADDED): number for row, number in (after - before).items()}
            )
        ids, new_ids = {row[3]: row for row in old_rows}, {row[3]: row for row in new_rows}
        counts = Counter((*row, DELETED) for id_, row in ids.items() if id_ not in new_ids)
        counts += Counter((*row, ADDED) for id_, row in new_ids.items() if id_ not in ids)
        pairs = [(ids[id_], row) for id_, row in new_ids.items() if id_ in ids and ids[id_][4] != row[4]]
        counts += Counter((*old_row, BEFORE) for old_row, _ in pairs)
        return counts + Counter((*new_row, AFTER) for _, new_row in pairs)


@pytest.fixture
def lake_of_changes(spark: Any, lake: Any) -> TableStore:
    return TableStore(spark, plan_for(lake, "127.0.0.1:1").catalogs[0])


def _anything(table: _Table, chance: random.Random, commits: int) -> list[int]:
    """Snapshots after commits of all kinds."""
    snapshots: list[int] = []
    for number in range(commits):
        keys = chance.sample(range(40), chance.randint(1, 12))
        kind = chance.choice(("append", "merge", "merge", "delete", "compact", "compact", "replace", "roll_back"))
        if kind == "roll_back" and len(snapshots) > 2:
            table.roll_back(chance.choice([snapshot for snapshot in _line(table) if snapshot != table.main] or [table.main]))
        elif kind in ("delete", "compact") and snapshots:
            table.delete(keys) if kind == "delete" else table.compact()
        elif kind == "replace" and number % 3 == 0:
            table.replace(keys, f"r{number}")
        elif kind == "merge":
            table.merge(keys, f"m{number}")
        else:
            table.append(keys, f"a{number}")
        snapshots.append(table.main)
    return snapshots


def _line(table: _Table) -> list[int]:
    return [int(snapshot.snapshotId()) for snapshot in table.java().snapshots()]


@pytest.mark.parametrize("format_version", few([2, 3], 3))
def test_changes_are_those_that_a_comparison_finds(spark: Any, lake_of_changes: TableStore, format_version: int) -> None:
    table = _Table(spark, lake_of_changes, f"feed.anything{format_version}", format_version)
    kinds = _compared(table, seed=5, commits=8, pairs=3)
    assert kinds >= ({ADDED, BEFORE, AFTER, DELETED} if table.has_row_ids else {ADDED, DELETED})


def test_rows_that_were_changed_and_then_deleted(spark: Any, lake_of_changes: TableStore) -> None:
    """The file of the changed rows stays, for another row; its statistics do not know which of its rows are deleted."""
    table = _Table(spark, lake_of_changes, "feed.gone", 3)
    table.append([1, 2, 4, 5], "a")
    first_snapshot = table.main
    table.merge([1, 2, 7], "m")
    for keys in ([1], [2]):
        table.delete(keys)
        assert table.changes(first_snapshot, table.main) == table.expected(first_snapshot, table.main)
    assert sorted(row[0] for row in table.changes(first_snapshot, table.main) if row[-1] == DELETED) == [1, 2]


@pytest.mark.long
@pytest.mark.parametrize("seed", range(EXAMPLES))
@pytest.mark.parametrize("format_version", [2, 3])
def test_changes_are_right_after_anything(spark: Any, lake_of_changes: TableStore, format_version: int, seed: int) -> None:
    table = _Table(spark, lake_of_changes, f"feed.long{format_version}_{seed}", format_version)
    _compared(table, seed=seed, commits=14, pairs=12)


def _compared(table: _Table, seed: int, commits: int, pairs: int) -> set[str]:
    """The kinds of changes between random pairs of snapshots, once the feed equals the expected changes."""
    chance = random.Random(seed)
    snapshots = [NOTHING, *_anything(table, chance, commits)]
    kinds: set[str] = set()
    for since, until in [(chance.choice(snapshots), chance.choice(snapshots[1:])) for _ in range(pairs)]:
        feed, expected = table.changes(since, until), table.expected(since, until)
        if not table.has_row_ids:  # an update by the same values is a pair of equal rows
            feed = _without_pairs(feed)
        assert feed == expected, (snapshots.index(since), snapshots.index(until))
        kinds |= {row[-1] for row in feed}
    return kinds


def _without_pairs(counts: Counter[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    by_change = {change: Counter({row[:-1]: n for row, n in counts.items() if row[-1] == change}) for change in (ADDED, DELETED)}
    added, deleted = by_change[ADDED] - by_change[DELETED], by_change[DELETED] - by_change[ADDED]
    return Counter({(*row, ADDED): n for row, n in added.items()}) + Counter({(*row, DELETED): n for row, n in deleted.items()})
