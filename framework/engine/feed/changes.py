"""The rows that differ between two snapshots of a table: added, changed (before and after) and deleted.

Guarantee: a row that a compaction only moved into another file is no change, and a row that changed several times is one change. The
snapshots between the two may have expired; the later one need not come from the earlier one, as after a rollback.
Format 2 has no row ids, so there a changed row is a deleted and an added one.
Cost: files that only one of the snapshots has, and, of those in which rows were marked as deleted since, the columns that are used.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

from framework.engine.iceberg.lake import Lake
from framework.engine.spark import session
from framework.model import Column
from framework.sql.quote import identifier

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CHANGE, ROW, COMMIT = "_sluice_change", "_sluice_row", "_sluice_commit"
"""What happened to a row, its id, and the sequence number of the commit that wrote it."""
ADDED, BEFORE, AFTER, DELETED = "added", "before", "after", "deleted"
NOTHING = -1  # in place of a snapshot: before the first one

_ROW_IDS = {ROW: "_row_id", COMMIT: "_last_updated_sequence_number"}
_FILE, _AT, _MARKED = "_sluice_file", "_sluice_at", "_sluice_marked"
_PLACE = {_FILE: "_file", _AT: "_pos", _MARKED: "_deleted"}


@dataclass(frozen=True)
class Changes:
    """What differs between two snapshots. `most` is how many rows at most; `by_value`: rows have no ids that last, so an equal row before
    and after is the same, and a changed row is a deleted and an added one."""

    lake: Lake
    table: Any
    columns: tuple[Column, ...]
    files: Any
    by_value: bool

    @property
    def most(self) -> int:
        return int(self.files.rows())

    def now(self) -> DataFrame:
        """Rows that were added or changed, as they are now."""
        if self.by_value:
            return self._by_value(ADDED)
        if not self.files.grows():
            return self.rows().where(f"{CHANGE} IN ('{ADDED}', '{AFTER}')").drop(CHANGE)
        rows = self._unmarked(self.files.begun())
        return self._none() if rows is None else self._plain(rows.where(f"{COMMIT} > {self.files.sinceSequence()}"))

    def gone(self) -> Gone:
        """Rows that were deleted, and rows before they were changed."""
        if self.by_value:
            deleted = self._by_value(DELETED)
            return Gone(deleted.withColumn(CHANGE, _constant(DELETED)), deleted.isEmpty())
        old, new = self._old(), self._new()
        if old is None:
            return Gone(self._none().withColumn(CHANGE, _constant(DELETED)), True)
        # Found by ids alone, since the files may have many rows and columns, and few of them are gone.
        ids = _paired(old.select(ROW, COMMIT), new, DELETED, BEFORE).localCheckpoint()
        return Gone(self._plain(old).join(ids.select(ROW, CHANGE), ROW).select(*self._names, CHANGE), ids.isEmpty())

    def rows(self) -> DataFrame:
        """All of them, with what happened to each."""
        gone, old, new = self.gone().rows, self._old(), self._new()
        if self.by_value or old is None or new is None:
            now = self._by_value(ADDED) if self.by_value else self._none() if new is None else self._plain(new)
            return now.withColumn(CHANGE, _constant(ADDED)).unionByName(gone)
        return _paired(new, old, ADDED, AFTER).select(*self._names, CHANGE).unionByName(gone)

    @property
    def _names(self) -> list[str]:
        return [*(identifier(column.name) for column in self.columns), ROW, COMMIT]

    def _plain(self, rows: DataFrame) -> DataFrame:
        return rows.select(*self._names)

    def _old(self) -> DataFrame | None:
        """Rows of files that differ as they were, also those that were only moved."""
        marked, before = self._marked(self.files.marked()), self._marked(self.files.markedBefore())
        return _union([self._unmarked(self.files.ended()), _without(marked, before)])

    def _new(self) -> DataFrame | None:
        """The same as they are now."""
        begun = self._unmarked(self.files.begun())
        if self.files.grows():
            return begun
        return _union([begun, _without(self._marked(self.files.markedBefore()), self._marked(self.files.marked()))])

    def _by_value(self, change: str) -> DataFrame:
        """Rows that were added or deleted, without those that there are both before and after."""
        old, new = self._old(), self._new()
        rows, others = (new, old) if change == ADDED else (old, new)
        if rows is None:
            return self._none()
        if others is None:
            return self._plain(rows)
        equal = ["_sluice_equal", "_sluice_nth"]
        return self._plain(_numbered(rows).join(_numbered(others).select(*equal), equal, "left_anti"))

    def _unmarked(self, name: str | None) -> DataFrame | None:
        rows = self._read(name)
        return None if rows is None else rows.where(f"NOT {_MARKED}")

    def _marked(self, name: str | None) -> DataFrame | None:
        rows = self._read(name)
        return None if rows is None else rows.where(_MARKED)

    def _read(self, name: str | None) -> DataFrame | None:
        """Staged files."""
        if name is None:
            return None
        rows: DataFrame = self.lake.spark.table(identifier(session.STAGED_FILES, name))
        own = {
            column: sql if self.lake.iceberg.TableUtil.supportsRowLineage(self.table) else "CAST(NULL AS BIGINT)"
            for column, sql in _ROW_IDS.items()
        } | _PLACE
        return rows.selectExpr(*self._values(rows), *(f"{sql} AS {column}" for column, sql in own.items()))

    def _values(self, rows: DataFrame) -> Iterator[str]:
        """SQL of the columns, as the spec has them. One that the table does not have yet is null."""
        for column in self.columns:
            name = identifier(column.name)
            yield name if column.name in rows.columns else f"CAST(NULL AS {column.type.sql}) AS {name}"

    def _none(self) -> DataFrame:
        rows: DataFrame = self.lake.spark.table(identifier(self.lake.of.name, *self.table.name().split(".")[1:])).where("false")
        return rows.selectExpr(*self._values(rows), *(f"CAST(NULL AS BIGINT) AS {column}" for column in _ROW_IDS))


@dataclass(frozen=True)
class Gone:
    """Rows as they were, with what happened to each."""

    rows: DataFrame
    is_empty: bool


def between(lake: Lake, identifier_: str, columns: tuple[Column, ...], since: int, until: int, by_value: bool = False) -> Changes:
    """The changes from one snapshot to another; since NOTHING all rows are added."""
    table = lake.load(identifier_)
    files = lake.spark._jvm.sluice.ChangedFiles(table, since, until)
    files.forgetOthers()
    return Changes(lake, table, columns, files, by_value or not lake.iceberg.TableUtil.supportsRowLineage(table))


def _paired(rows: DataFrame, others: DataFrame | None, alone: str, both: str) -> DataFrame:
    """The rows that differ from those of the same id among others, with what happened to each."""
    if others is None:
        return rows.withColumn(CHANGE, _constant(alone))
    other = others.selectExpr(f"{ROW} AS _sluice_other", f"{COMMIT} AS _sluice_other_commit")
    joined = rows.join(other, rows[ROW] == other["_sluice_other"], "left")
    change = f"IF(_sluice_other IS NULL, '{alone}', IF(_sluice_other_commit <> {COMMIT}, '{both}', NULL))"
    return joined.selectExpr("*", f"{change} AS {CHANGE}").where(f"{CHANGE} IS NOT NULL").drop(*other.columns)


def _constant(text: str) -> Any:
    from pyspark.sql import functions

    return functions.lit(text)


def _union(frames: list[DataFrame | None]) -> DataFrame | None:
    there = [each.drop(_FILE, _AT, _MARKED) for each in frames if each is not None]
    return reduce(lambda one, other: one.unionAll(other), there) if there else None


def _without(rows: DataFrame | None, others: DataFrame | None) -> DataFrame | None:
    """Marked rows that were not marked in the other snapshot."""
    if rows is None or others is None:
        return rows
    return rows.join(others.select(_FILE, _AT), [_FILE, _AT], "left_anti")


def _numbered(rows: DataFrame) -> DataFrame:
    """Rows with a digest of their values, and numbered among those that are equal."""
    values = ", ".join(identifier(name) for name in rows.columns if name not in (ROW, COMMIT))
    rows = rows.selectExpr("*", f"sha2(to_json(struct({values}), map('ignoreNullFields', 'false')), 256) AS _sluice_equal")
    return rows.selectExpr("*", "row_number() OVER (PARTITION BY _sluice_equal ORDER BY _sluice_equal) AS _sluice_nth")
