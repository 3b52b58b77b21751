"""The rows that differ between two snapshots of a table: added, changed (before and after) and deleted.

Guarantee: a row that a compaction only moved into another file is no change, and a row that changed several times is one change. The
snapshots between the two may have expired; the later one need not come from the earlier one, as after a rollback.
Format 2 has no row ids, so there a changed row is a deleted and an added one.
Cost: files that only one of the snapshots has, and, of those in which rows were marked as deleted since, the columns that are used.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any

from framework.plan import Column
from framework.sql.quote import identifier, present_or_null
from framework.sql.settings import STAGED_FILES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from framework.core.iceberg.lake import TableStore

CHANGE, ROW, COMMIT = "_sluice_change", "_sluice_row", "_sluice_commit"
"""What happened to a row, its id, and the sequence number of the commit that wrote it."""
ADDED, BEFORE, AFTER, DELETED = "added", "before", "after", "deleted"
_FEW_IDS = 2_000_000
NOTHING = -1  # in place of a snapshot: before the first one

_ROW_IDS = {ROW: "_row_id", COMMIT: "_last_updated_sequence_number"}
_FILE, _POSITION, _MARKED = "_sluice_file", "_sluice_at", "_sluice_marked"
_PLACE = {_FILE: "_file", _POSITION: "_pos", _MARKED: "_deleted"}


@dataclass(frozen=True)
class RowChanges:
    """The differences of two snapshots. `most` is an upper bound of the number of rows. `by_value`: rows have no lasting ids, so
    equal rows before and after are the same row, and a changed row is a deleted and an added one."""

    lake: TableStore
    table: Any
    columns: tuple[Column, ...]
    _: KW_ONLY
    files: Any
    by_value: bool

    @property
    def most(self) -> int:
        return int(self.files.rows())

    def now(self) -> DataFrame:
        """Rows that were added or changed, with their current values."""
        if self.by_value:
            return self._by_value(ADDED)
        if not self.files.grows():
            return self.rows().where(f"{CHANGE} IN ('{ADDED}', '{AFTER}')").drop(CHANGE)
        rows = self._unmarked(self.files.begun())
        return self._none() if rows is None else self._plain(rows.where(f"{COMMIT} > {self.files.sinceSequence()}"))

    def deleted(self, columns: tuple[Column, ...]) -> DataFrame | None:
        """These columns of deleted rows, with their last values; None if no row was deleted."""
        names = [*(identifier(column.name) for column in columns), ROW, COMMIT]
        if self.by_value:
            return self._by_value(DELETED).select(*names)
        old, new = self._old(), self._new()
        if old is None or self._counted.remain == self.files.gone():
            return None
        old = old.select(*names)
        return old if new is None else old.join(self._small(new.select(ROW)), ROW, "left_anti")

    def before(self) -> DataFrame | None:
        """Changed rows with their earlier values; None if no row was changed."""
        old, new = self._old(), self._new()
        if self.by_value or old is None or new is None or self._counted.changed == 0:
            return None
        commits = new.select(ROW, new[COMMIT].alias("_sluice_new_commit"))
        return old.join(self._small(commits), ROW).where(f"_sluice_new_commit <> {COMMIT}").select(*self._names)

    def only_adds(self, exempt_sql: str | None) -> bool:
        """Whether no row was deleted or changed; rows for which `exempt_sql` is true may be deleted."""
        deleted = self.deleted(self.columns if exempt_sql else ())
        if deleted is not None and exempt_sql:
            deleted = deleted.where(f"NOT ({exempt_sql})")
        return all(rows is None or rows.isEmpty() for rows in (deleted, self.before()))

    def rows(self) -> DataFrame:
        """All rows that differ, with what happened to each."""
        old, new = self._old(), self._new()
        parts = {DELETED: self.deleted(self.columns), BEFORE: self.before()}
        if self.by_value or old is None or new is None:
            parts[ADDED] = self._by_value(ADDED) if self.by_value else new
        else:
            old_ids = old.selectExpr(f"{ROW} AS _sluice_other", f"{COMMIT} AS _sluice_other_commit")
            joined = new.join(old_ids, new[ROW] == old_ids["_sluice_other"], "left")
            parts[ADDED] = joined.where("_sluice_other IS NULL")
            parts[AFTER] = joined.where(f"_sluice_other_commit <> {COMMIT}")
        frames = {change: rows for change, rows in parts.items() if rows is not None}
        changes = [rows.selectExpr(*self._names, f"'{change}' AS {CHANGE}") for change, rows in frames.items()]
        return reduce(lambda union, frame: union.unionByName(frame), changes, self._none().selectExpr("*", f"'' AS {CHANGE}"))

    @cached_property
    def _counted(self) -> _Counted:
        """Among current rows of files that differ, counts the rows that existed before, and those of them that changed. Ids only
        grow, so if all rows that left their files are in others now, none was deleted, and the earlier rows need not be read."""
        new_rows = self._unmarked(self.files.begun())
        if not self.files.grows():
            return _Counted(-1, -1)
        if new_rows is None or not self.files.gone():
            return _Counted(0, 0)
        remaining, moved = self.files.remaining(), self.files.moved()
        if remaining >= 0 and moved >= 0:
            return _Counted(remaining, remaining - moved)
        is_old = f"{ROW} < {self.files.nextRow()}"
        row = new_rows.selectExpr(f"count_if({is_old})", f"count_if({is_old} AND {COMMIT} > {self.files.sinceSequence()})").head()
        return _Counted(*row) if row else _Counted(0, 0)

    def _small(self, rows: DataFrame) -> DataFrame:
        """Puts ids into each task's memory as a map, unless there may be too many."""
        from pyspark.sql import functions

        return functions.broadcast(rows) if self.files.begunRows() <= _FEW_IDS else rows

    @property
    def _names(self) -> list[str]:
        return [*(identifier(column.name) for column in self.columns), ROW, COMMIT]

    def _plain(self, rows: DataFrame) -> DataFrame:
        return rows.select(*self._names)

    def _old(self) -> DataFrame | None:
        """Earlier rows of files that differ, including rows that were only moved."""
        after, before = self._marked(self.files.marked()), self._marked(self.files.markedBefore())
        return _union([self._unmarked(self.files.ended()), _without(after, before)])

    def _new(self) -> DataFrame | None:
        """Current rows of files that differ, including rows that were only moved."""
        begun_rows = self._unmarked(self.files.begun())
        if self.files.grows():
            return begun_rows
        return _union([begun_rows, _without(self._marked(self.files.markedBefore()), self._marked(self.files.marked()))])

    def _by_value(self, change: str) -> DataFrame:
        """Rows that were added or deleted, without rows of which an equal one exists both before and after."""
        old, new = self._old(), self._new()
        rows, other_rows = (new, old) if change == ADDED else (old, new)
        if rows is None:
            return self._none()
        if other_rows is None:
            return self._plain(rows)
        keys = ["_sluice_equal", "_sluice_nth"]
        return self._plain(_numbered(rows).join(_numbered(other_rows).select(*keys), keys, "left_anti"))

    def _unmarked(self, name: str | None) -> DataFrame | None:
        rows = self._read(name)
        return None if rows is None else rows.where(f"NOT {_MARKED}")

    def _marked(self, name: str | None) -> DataFrame | None:
        rows = self._read(name)
        return None if rows is None else rows.where(_MARKED)

    def _read(self, name: str | None) -> DataFrame | None:
        """The rows of staged files, with their ids and their places in the files."""
        if name is None:
            return None
        rows: DataFrame = self.lake.spark.table(identifier(STAGED_FILES, name))
        row_columns = {
            column: sql if self.lake.iceberg.TableUtil.supportsRowLineage(self.table) else "CAST(NULL AS BIGINT)"
            for column, sql in _ROW_IDS.items()
        } | _PLACE
        values = present_or_null(self.columns, rows.columns)
        return rows.selectExpr(*values, *(f"{sql} AS {column}" for column, sql in row_columns.items()))

    def _none(self) -> DataFrame:
        rows: DataFrame = self.lake.spark.table(identifier(self.lake.component.name, *self.table.name().split(".")[1:])).where(
            "false"
        )
        values = present_or_null(self.columns, rows.columns)
        return rows.selectExpr(*values, *(f"CAST(NULL AS BIGINT) AS {column}" for column in _ROW_IDS))


@dataclass(frozen=True)
class _Counted:
    remain: int
    changed: int


def between(
    lake: TableStore,
    table: Any,
    columns: tuple[Column, ...],
    since: int,
    until: int,
    by_value: bool = False,
    keeps_others: bool = False,
) -> RowChanges:
    """The changes from one snapshot of a loaded table to another; since NOTHING, all rows are added. Earlier `RowChanges` of the same
    table become unreadable, unless `keeps_others` is true."""
    files = lake.spark._jvm.sluice.ChangedFiles(table, since, until)
    if not keeps_others:
        files.forgetOthers()
    return RowChanges(
        lake, table, columns, files=files, by_value=by_value or not lake.iceberg.TableUtil.supportsRowLineage(table)
    )


def _union(frames: list[DataFrame | None]) -> DataFrame | None:
    parts = [frame.drop(_FILE, _POSITION, _MARKED) for frame in frames if frame is not None]
    return reduce(lambda result, part: result.unionAll(part), parts) if parts else None


def _without(rows: DataFrame | None, other_rows: DataFrame | None) -> DataFrame | None:
    """Marked rows that are not marked in the other snapshot."""
    if rows is None or other_rows is None:
        return rows
    return rows.join(other_rows.select(_FILE, _POSITION), [_FILE, _POSITION], "left_anti")


def _numbered(rows: DataFrame) -> DataFrame:
    """Rows with a digest of their values, and with numbers among equal rows."""
    values = ", ".join(identifier(name) for name in rows.columns if name not in (ROW, COMMIT))
    rows = rows.selectExpr("*", f"sha2(to_json(struct({values}), map('ignoreNullFields', 'false')), 256) AS _sluice_equal")
    return rows.selectExpr("*", "row_number() OVER (PARTITION BY _sluice_equal ORDER BY _sluice_equal) AS _sluice_nth")
