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

    from framework.core.iceberg.lake import Lake

CHANGE, ROW, COMMIT = "_sluice_change", "_sluice_row", "_sluice_commit"
"""What happened to a row, its id, and the sequence number of the commit that wrote it."""
ADDED, BEFORE, AFTER, DELETED = "added", "before", "after", "deleted"
_FEW = 2_000_000  # ids
NOTHING = -1  # in place of a snapshot: before the first one

_ROW_IDS = {ROW: "_row_id", COMMIT: "_last_updated_sequence_number"}
_FILE, _AT, _MARKED = "_sluice_file", "_sluice_at", "_sluice_marked"
_PLACE = {_FILE: "_file", _AT: "_pos", _MARKED: "_deleted"}


@dataclass(frozen=True)
class Changes:
    """The differences of two snapshots. `most` limits the rows; `by_value`: rows have no ids that last, so an equal row before and after
    is the same, and a changed row is a deleted and an added one."""

    lake: Lake
    table: Any
    columns: tuple[Column, ...]
    _: KW_ONLY
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

    def deleted(self, columns: tuple[Column, ...]) -> DataFrame | None:
        """These columns of rows that were deleted, as they were; None where none was."""
        names = [*(identifier(column.name) for column in columns), ROW, COMMIT]
        if self.by_value:
            return self._by_value(DELETED).select(*names)
        old, new = self._old(), self._new()
        if old is None or self._counted.remain == self.files.gone():
            return None
        old = old.select(*names)
        return old if new is None else old.join(self._small(new.select(ROW)), ROW, "left_anti")

    def before(self) -> DataFrame | None:
        """Rows before they were changed; None where none was."""
        old, new = self._old(), self._new()
        if self.by_value or old is None or new is None or self._counted.changed == 0:
            return None
        commits = new.select(ROW, new[COMMIT].alias("_sluice_new_commit"))
        return old.join(self._small(commits), ROW).where(f"_sluice_new_commit <> {COMMIT}").select(*self._names)

    def only_adds(self, besides: str | None) -> bool:
        """Whether no row was deleted or changed; but for rows for which this SQL is true, which may be gone."""
        deleted = self.deleted(self.columns if besides else ())
        if deleted is not None and besides:
            deleted = deleted.where(f"NOT ({besides})")
        return all(rows is None or rows.isEmpty() for rows in (deleted, self.before()))

    def rows(self) -> DataFrame:
        """All of them, with what happened to each."""
        old, new = self._old(), self._new()
        parts = {DELETED: self.deleted(self.columns), BEFORE: self.before()}
        if self.by_value or old is None or new is None:
            parts[ADDED] = self._by_value(ADDED) if self.by_value else new
        else:
            others = old.selectExpr(f"{ROW} AS _sluice_other", f"{COMMIT} AS _sluice_other_commit")
            joined = new.join(others, new[ROW] == others["_sluice_other"], "left")
            parts[ADDED] = joined.where("_sluice_other IS NULL")
            parts[AFTER] = joined.where(f"_sluice_other_commit <> {COMMIT}")
        there = {change: rows for change, rows in parts.items() if rows is not None}
        changes = [rows.selectExpr(*self._names, f"'{change}' AS {CHANGE}") for change, rows in there.items()]
        return reduce(lambda one, other: one.unionByName(other), changes, self._none().selectExpr("*", f"'' AS {CHANGE}"))

    @cached_property
    def _counted(self) -> _Counted:
        """Of the rows there are now in files that differ: how many there were before, and how many of those have changed. Ids only grow,
        so where all rows that left their files came back, none was deleted, and what was there before need not be read."""
        begun = self._unmarked(self.files.begun())
        if not self.files.grows():
            return _Counted(-1, -1)
        if begun is None or not self.files.gone():
            return _Counted(0, 0)
        remaining, moved = self.files.remaining(), self.files.moved()
        if remaining >= 0 and moved >= 0:
            return _Counted(remaining, remaining - moved)
        was = f"{ROW} < {self.files.nextRow()}"
        row = begun.selectExpr(f"count_if({was})", f"count_if({was} AND {COMMIT} > {self.files.sinceSequence()})").head()
        return _Counted(*row) if row else _Counted(0, 0)

    def _small(self, rows: DataFrame) -> DataFrame:
        """Ids as a map in each task's memory, unless there may be too many."""
        from pyspark.sql import functions

        return functions.broadcast(rows) if self.files.begunRows() <= _FEW else rows

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
        rows: DataFrame = self.lake.spark.table(identifier(STAGED_FILES, name))
        own = {
            column: sql if self.lake.iceberg.TableUtil.supportsRowLineage(self.table) else "CAST(NULL AS BIGINT)"
            for column, sql in _ROW_IDS.items()
        } | _PLACE
        values = present_or_null(self.columns, rows.columns)
        return rows.selectExpr(*values, *(f"{sql} AS {column}" for column, sql in own.items()))

    def _none(self) -> DataFrame:
        rows: DataFrame = self.lake.spark.table(identifier(self.lake.of.name, *self.table.name().split(".")[1:])).where("false")
        values = present_or_null(self.columns, rows.columns)
        return rows.selectExpr(*values, *(f"CAST(NULL AS BIGINT) AS {column}" for column in _ROW_IDS))


@dataclass(frozen=True)
class _Counted:
    remain: int
    changed: int


def between(
    lake: Lake,
    identifier_: str,
    columns: tuple[Column, ...],
    since: int,
    until: int,
    by_value: bool = False,
    keeps_others: bool = False,
) -> Changes:
    """The changes from one snapshot to another; since NOTHING all rows are added. Earlier changes of the same table can be read no more,
    unless it `keeps_others`."""
    table = lake.load(identifier_)
    files = lake.spark._jvm.sluice.ChangedFiles(table, since, until)
    if not keeps_others:
        files.forgetOthers()
    return Changes(lake, table, columns, files=files, by_value=by_value or not lake.iceberg.TableUtil.supportsRowLineage(table))


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
