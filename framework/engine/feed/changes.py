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
    """What differs between two snapshots. `most` is how many rows at most."""

    lake: Lake
    table: Any
    columns: tuple[Column, ...]
    files: Any

    @property
    def most(self) -> int:
        return int(self.files.rows())

    def rows(self, by_value: bool = False) -> DataFrame:
        """All of them, with what happened to each. `by_value`: an equal row before and after is the same, whatever its id."""
        rows: DataFrame | None
        begun, ended = self._unmarked(self.files.begun()), self._unmarked(self.files.ended())
        marked, before = self._marked(self.files.marked()), self._marked(self.files.markedBefore())
        new = _union([begun, _without(before, marked)])
        old = _union([ended, _without(marked, before)])
        if new is None or old is None:
            rows = new if old is None else old
            found: DataFrame = self._none() if rows is None else rows
            return found.withColumn(CHANGE, _constant(DELETED if new is None else ADDED))
        return self._matched(old, new) if self._has_row_ids and not by_value else _cancelled(old, new, moved=ended is not None)

    @property
    def _has_row_ids(self) -> bool:
        return bool(self.lake.iceberg.TableUtil.supportsRowLineage(self.table))

    def _matched(self, old: DataFrame, new: DataFrame) -> DataFrame:
        """Rows before and after, by their ids."""
        pairs = []
        for rows, others, alone, both in ((old, new, DELETED, BEFORE), (new, old, ADDED, AFTER)):
            other = others.selectExpr(f"{ROW} AS _sluice_other", f"{COMMIT} AS _sluice_other_commit")
            joined = rows.join(other, rows[ROW] == other["_sluice_other"], "left")
            change = f"IF(_sluice_other IS NULL, '{alone}', IF(_sluice_other_commit <> {COMMIT}, '{both}', NULL))"
            pairs.append(joined.selectExpr(*self._names, f"{change} AS {CHANGE}").where(f"{CHANGE} IS NOT NULL"))
        return pairs[0].unionAll(pairs[1])

    @property
    def _names(self) -> list[str]:
        return [*(identifier(column.name) for column in self.columns), ROW, COMMIT]

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
        own = {column: sql if self._has_row_ids else "CAST(NULL AS BIGINT)" for column, sql in _ROW_IDS.items()} | _PLACE
        return rows.selectExpr(*self._values(rows), *(f"{sql} AS {column}" for column, sql in own.items()))

    def _values(self, rows: DataFrame) -> Iterator[str]:
        """SQL of the columns, as the spec has them. One that the table does not have yet is null."""
        for column in self.columns:
            name = identifier(column.name)
            yield name if column.name in rows.columns else f"CAST(NULL AS {column.type.sql}) AS {name}"

    def _none(self) -> DataFrame:
        rows: DataFrame = self.lake.spark.table(identifier(self.lake.of.name, *self.table.name().split(".")[1:])).where("false")
        return rows.selectExpr(*self._values(rows), *(f"CAST(NULL AS BIGINT) AS {column}" for column in _ROW_IDS))


def between(lake: Lake, identifier_: str, columns: tuple[Column, ...], since: int, until: int) -> Changes:
    """The changes from one snapshot to another; since NOTHING all rows are added."""
    table = lake.load(identifier_)
    files = lake.spark._jvm.sluice.ChangedFiles(table, since, until)
    files.forgetOthers()
    return Changes(lake, table, columns, files)


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


def _cancelled(old: DataFrame, new: DataFrame, moved: bool) -> DataFrame:
    """Rows without ids. Where files were written again, an equal row before and after is no change."""
    sides = {DELETED: old, ADDED: new}
    if moved:
        numbered = {change: _numbered(rows) for change, rows in sides.items()}
        equal = ["_sluice_equal", "_sluice_nth"]
        sides = {
            DELETED: numbered[DELETED].join(numbered[ADDED].select(*equal), equal, "left_anti").drop(*equal),
            ADDED: numbered[ADDED].join(numbered[DELETED].select(*equal), equal, "left_anti").drop(*equal),
        }
    return reduce(
        lambda one, other: one.unionAll(other), (rows.withColumn(CHANGE, _constant(change)) for change, rows in sides.items())
    )


def _numbered(rows: DataFrame) -> DataFrame:
    """Rows with a digest of their values, and numbered among those that are equal."""
    values = ", ".join(identifier(name) for name in rows.columns if name not in (ROW, COMMIT))
    rows = rows.selectExpr("*", f"sha2(to_json(struct({values}), map('ignoreNullFields', 'false')), 256) AS _sluice_equal")
    return rows.selectExpr("*", "row_number() OVER (PARTITION BY _sluice_equal ORDER BY _sluice_equal) AS _sluice_nth")
