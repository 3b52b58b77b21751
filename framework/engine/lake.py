"""Iceberg tables through Spark's JVM: what changes a table is here, and each change is one commit.

Limit: needs a JVM beside this process; Spark Connect has none.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from framework.engine import evolve, protocol
from framework.engine.existing import existing
from framework.engine.protocol import Position
from framework.engine.seen import branches
from framework.errors import BatchError, UnreachableError
from framework.plan.change import Change, Existing
from framework.plan.model import Column, PartitionField, Table

Commit = Callable[[Any], None]


def commit_transaction(transaction: Any) -> None:
    """Where every publishing commit passes; tests put a wrapper here that loses or refuses answers."""
    transaction.commitTransaction()


class Refused(Exception):
    """The catalog refused a commit: something else was committed before it."""


class Unknown(Exception):
    """The answer to a commit is lost, which does not say that the commit is."""


_REFUSALS = (
    "CommitFailedException",
    "ValidationException",
    "IllegalArgumentException",
    "IllegalStateException",
    "CherrypickAncestorCommitException",
)


class Lake:
    """One catalog."""

    def __init__(self, spark: Any, catalog: str, commit: Commit = commit_transaction) -> None:
        self.name = catalog
        self.spark = spark
        self._jvm = spark._jvm
        self._commit = commit
        self._iceberg = self._jvm.org.apache.iceberg
        try:
            self._catalog = self._iceberg.spark.Spark3Util.loadIcebergCatalog(spark._jsparkSession, catalog)
        except Py4JJavaError as error:
            raise UnreachableError("catalog-unreachable", f"the catalog `{catalog}` cannot be opened: {_said(error)}") from None

    def load(self, identifier: str) -> Any | None:
        """The table as it is now, or None."""
        try:
            return self._catalog.loadTable(self._iceberg.catalog.TableIdentifier.parse(identifier))
        except (Py4JError, PySparkException) as error:
            if _is(error, "NoSuchTableException"):
                return None
            raise BatchError("table-unreadable", f"the table {identifier} cannot be loaded: {_said(error)}") from None

    def create(
        self,
        identifier: str,
        columns: tuple[Column, ...],
        partition_by: tuple[PartitionField, ...],
        sort_by: tuple[str, ...],
        properties: Mapping[str, str],
        describe: Callable[[int, int], Mapping[str, str]],
        begins: Position | None = None,
        empty: bool = False,
    ) -> None:
        """A table is born with an empty snapshot, which keeps a tag where branches will begin with it, and with the properties that
        describe it, in one commit. One that is there already stays as it is."""
        schema = evolve.schema(self._jvm, columns)
        name = self._iceberg.catalog.TableIdentifier.parse(identifier)
        try:
            self._catalog.createNamespace(name.namespace())
        except Py4JJavaError as error:
            if not _is(error, "AlreadyExistsException"):
                raise BatchError("table-not-created", f"the namespace of {identifier} cannot be made: {_said(error)}") from None
        builder = self._catalog.buildTable(name, schema).withPartitionSpec(evolve.partitions(self._jvm, schema, partition_by))
        builder = builder.withSortOrder(evolve.order(self._jvm, schema, sort_by)).withProperties(dict(properties))
        try:
            transaction = builder.createTransaction()
            append = transaction.newAppend()
            if begins is not None:  # a table that is rolled back to its birth begins here again
                append = append.set(protocol.POSITION, begins.text())
            append.commit()
            born = transaction.table().currentSnapshot()
            _set(transaction, describe(born.snapshotId(), born.sequenceNumber()))
            if empty:
                transaction.manageSnapshots().createTag(protocol.EMPTY, born.snapshotId()).commit()
            transaction.commitTransaction()
        except Py4JJavaError as error:
            if not (_is(error, "AlreadyExistsException") or _is(error, "CommitFailedException")):
                raise BatchError("table-not-created", f"the table {identifier} cannot be made: {_said(error)}") from None

    def drop(self, identifier: str) -> None:
        """Forgets a table, if there is one; its files stay."""
        self._catalog.dropTable(self._iceberg.catalog.TableIdentifier.parse(identifier), False)

    def change(self, table: Any, changes: Iterable[Change], planned: Table, properties: Mapping[str, str] | None = None) -> None:
        """What a spec has changed and a table can take on, all in one commit; it is refused if there was another."""
        with _answers():
            transaction = table.newTransaction()
            evolve.evolve(self._jvm, transaction, tuple(changes), planned)
            if properties:
                _set(transaction, properties)
            transaction.commitTransaction()

    def copy(
        self,
        main: Any,
        identifier: str,
        changes: Sequence[Change],
        planned: Table,
        properties: Mapping[str, str],
        begins: Position,
    ) -> None:
        """A second table without rows, which is what the first will be with these changes: the same ids of its columns and partitions,
        so that its files can become the first's. They are written to the first's folder."""
        said = json.loads(self._iceberg.TableMetadataParser.toJson(main.operations().current()))
        name = str(uuid.uuid4())
        location = f"{said['location']}__{name[:8]}"  # its own, also where an earlier one left something
        empty = {
            "table-uuid": name, "location": location, "last-sequence-number": 0, "current-snapshot-id": -1, "next-row-id": 0, "refs": {},
            **{each: [] for each in ("snapshots", "snapshot-log", "metadata-log", "statistics", "partition-statistics")},
            "properties": {**properties, "write.data.path": f"{said['location'].rstrip('/')}/data"},
        }  # fmt: skip
        made = self._iceberg.TableMetadataParser.fromJson(json.dumps({**said, **empty}))
        file = f"{location}/metadata/00000-{name}.metadata.json"
        with _answers():
            self._iceberg.TableMetadataParser.write(made, main.io().newOutputFile(file))
            table = self._catalog.registerTable(self._iceberg.catalog.TableIdentifier.parse(identifier), file)
            transaction = table.newTransaction()
            evolve.evolve(self._jvm, transaction, changes, planned, anew=True)
            transaction.newAppend().set(protocol.POSITION, begins.text()).commit()
            born = transaction.table().currentSnapshot()
            if planned.keyed:
                transaction.manageSnapshots().createTag(protocol.EMPTY, born.snapshotId()).commit()
            position = replace(begins, snapshot=born.snapshotId(), sequence=born.sequenceNumber())
            _set(transaction, {protocol.POSITION: position.text()})
            transaction.commitTransaction()

    def would_be(self, main: Any, changes: Sequence[Change], planned: Table, beside: Any) -> bool:
        """Whether a second table is still what the first will be with these changes, so that its files can become the first's."""
        with _answers():
            transaction = main.newTransaction()
            evolve.evolve(self._jvm, transaction, changes, planned, anew=True)
            theirs = planned.keyed is None and not beside.currentSnapshot().deleteManifests(beside.io()).isEmpty()
            return _alike(transaction.table(), beside) and not theirs

    def become(
        self, transaction: Any, changes: Sequence[Change], planned: Table, beside: Any, snapshot: int, position: Position,
        also: Mapping[str, str],
    ) -> int:  # fmt: skip
        """The table becomes what a second one is at a snapshot: columns, partitions, order, files, position and tag, at once. It
        says the snapshot. *Cost*: a look at each file."""
        with _answers():
            evolve.evolve(self._jvm, transaction, changes, planned, anew=True)
            if not _alike(transaction.table(), beside):
                raise Refused("the table's columns have changed")
            # A snapshot of its own inside of the same commit: what it takes out is partitioned by columns that may be gone, which
            # DuckDB cannot read in the newest one.
            everything = self._iceberg.expressions.Expressions.alwaysTrue()
            transaction.newDelete().deleteFromRowFilter(everything).set(protocol.REBUILT, str(beside.uuid())).commit()
            if planned.keyed:
                self._remember_as(transaction, beside)
            rows = transaction.newRowDelta()
            for file in self._files(beside, snapshot):
                rows = rows.addRows(file)
            for file in self._files(beside, snapshot, deletes=True):
                rows = rows.addDeletes(file)
            rows.set(protocol.POSITION, position.text()).commit()
            made = transaction.table().currentSnapshot()
            position = replace(position, snapshot=made.snapshotId(), sequence=made.sequenceNumber())
            _set(transaction, {protocol.POSITION: position.text(), **also})
            _tag(transaction, transaction.manageSnapshots(), position).commit()
            self._commit(transaction)
            return position.snapshot

    def _remember_as(self, transaction: Any, beside: Any) -> None:
        """What is remembered of deletes becomes what it is in a second table. The table is empty at this moment."""
        empty = transaction.table().currentSnapshot().snapshotId()
        refs = transaction.table().refs()
        snapshots = transaction.manageSnapshots()
        snapshots = (snapshots.replaceTag if refs.containsKey(protocol.EMPTY) else snapshots.createTag)(protocol.EMPTY, empty)
        for day in filter(protocol.is_day, list(refs)):
            snapshots = snapshots.removeBranch(day)
        snapshots.commit()
        for day in filter(protocol.is_day, list(beside.refs())):
            transaction.manageSnapshots().createBranch(day, empty).commit()
            append = transaction.newAppend().toBranch(day)
            for file in self._files(beside, beside.snapshot(day).snapshotId()):
                append = append.appendFile(file)
            append.commit()

    def _files(self, table: Any, snapshot: int, deletes: bool = False) -> Iterator[Any]:
        of = table.snapshot(snapshot)
        for manifest in (of.deleteManifests if deletes else of.dataManifests)(table.io()):
            read = self._iceberg.ManifestFiles.readDeleteManifest if deletes else self._iceberg.ManifestFiles.read
            reader = read(manifest, table.io(), table.specs())
            files = reader.iterator()
            while files.hasNext():
                yield files.next().copy()
            reader.close()

    def mark(self, table: Any, properties: Mapping[str, str]) -> None:
        with _answers():
            _set(table, properties)

    def mark_as_seen(self, transaction: Any, properties: Mapping[str, str]) -> None:
        """The same, but refused if anything was committed since the transaction began."""
        with _answers():
            _set(transaction, properties)
            if transaction.table().currentSnapshot() is not None:
                _pin(transaction)
            transaction.commitTransaction()

    def purge(self, table: Any, identifier: str, data: bool) -> None:
        """Drops a table with its files; those of its rows only with `data`."""
        self.mark(table, {"gc.enabled": str(data).lower()})
        with _answers():
            self._catalog.dropTable(self._iceberg.catalog.TableIdentifier.parse(identifier), True)

    def branch(self, table: Any, attempt: str, snapshot: int) -> None:
        """A branch of this attempt's own, of exactly this snapshot: without naming it, it would begin wherever main is then."""
        self.branch_as(table, protocol.BRANCH + attempt, snapshot)

    def branch_as(self, table: Any, name: str, snapshot: int) -> None:
        with _answers():
            table.manageSnapshots().createBranch(name, snapshot).commit()

    def remember(self, table: Any, attempt: str, day: str) -> int:
        """A branch on which the attempt adds to a day's deletes; how many files these have."""
        base = table.snapshot(day) or table.snapshot(protocol.EMPTY)
        self.branch_as(table, protocol.deletes_of(day, attempt), base.snapshotId())
        return int(base.summary().get("total-data-files") or 0)

    def begin(self, table: Any) -> Any:
        """A transaction. It looks at the table once more: only what is judged on `transaction.table()` still holds when it is
        committed, and it is refused if anything was committed after this."""
        with _answers():
            return table.newTransaction()

    def publish(self, transaction: Any, attempt: str, position: Position, forget: Iterable[str] = ()) -> None:
        """Main, position, tag, branch and what is remembered of deletes change together or not at all; `forget` are days of which
        nothing is any more."""
        with _answers():
            _set(transaction, {protocol.POSITION: position.text()})
            snapshots = transaction.manageSnapshots().fastForwardBranch("main", protocol.BRANCH + attempt)
            snapshots = _tag(transaction, snapshots, position).removeBranch(protocol.BRANCH + attempt)
            for day in _days_of(transaction.table(), attempt):
                snapshots = _remembered(transaction.table(), snapshots, day, attempt)
            for day in forget:
                snapshots = snapshots.removeBranch(day)
            snapshots.commit()
            self._commit(transaction)

    def move_position(self, transaction: Any, position: Position, also: Mapping[str, str] | None = None) -> None:
        """The position alone, which is what accepting is; main stays. Deletes of batches that are no more are forgotten: they are
        read again."""
        with _answers():
            _set(transaction, {protocol.POSITION: position.text(), **(also or {})})
            snapshots = _tag(transaction, transaction.manageSnapshots(), position)
            table = transaction.table()
            published = table.snapshot(position.snapshot)
            for day in filter(protocol.is_day, list(table.refs()) if published else ()):
                snapshots = _rolled_back(table, snapshots, day, published)
            snapshots.commit()
            self._commit(transaction)

    def join(self, table: Any, attempt: str) -> None:
        """Brings the branch's rows to main, whatever has been committed there since; done already is fine."""
        transaction = self.begin(table)
        now = transaction.table()
        branch = protocol.BRANCH + attempt
        tip = now.snapshot(branch)
        if tip is None:
            return
        with _answers():
            snapshots = transaction.manageSnapshots()
            if tip.summary().get(protocol.ATTEMPT) == attempt:
                behind = tip.parentId() == now.currentSnapshot().snapshotId()
                snapshots = snapshots.fastForwardBranch("main", branch) if behind else snapshots.cherrypick(tip.snapshotId())
            snapshots.removeBranch(branch).commit()
            self._commit(transaction)

    def delete_batches(self, transaction: Any, above: int, up_to: int) -> None:
        """Removes the rows of these batches, by whole files: a batch's bad rows are in files of their own."""
        expressions = self._iceberg.expressions.Expressions
        filter_ = getattr(expressions, "and")(
            expressions.greaterThan("batch", above), expressions.lessThanOrEqual("batch", up_to)
        )
        with _answers():
            transaction.newDelete().deleteFromRowFilter(filter_).commit()
            _pin(transaction)
            self._commit(transaction)

    def empty(self, transaction: Any, properties: Mapping[str, str]) -> None:
        """All rows and all of Sluice's branches are gone, and the properties are set, at once."""
        with _answers():
            transaction.newDelete().deleteFromRowFilter(self._iceberg.expressions.Expressions.alwaysTrue()).commit()
            for name, _ in list(branches(transaction.table())):
                transaction.manageSnapshots().removeBranch(name).commit()
            _set(transaction, properties)
            _pin(transaction)
            self._commit(transaction)

    def sweep(self, table: Any, attempt: str) -> None:
        """Removes the branch of a dead attempt, and the files that only it had."""
        tip = table.snapshot(protocol.BRANCH + attempt)
        with _answers():
            snapshots = table.manageSnapshots().removeBranch(protocol.BRANCH + attempt)
            for day in _days_of(table, attempt):
                snapshots = snapshots.removeBranch(protocol.deletes_of(day, attempt))
            snapshots.commit()
            if tip is not None and tip.summary().get(protocol.ATTEMPT) == attempt:
                # Older than 1970: nothing else is expired on this occasion.
                table.expireSnapshots().expireOlderThan(0).expireSnapshotId(tip.snapshotId()).commit()

    def existing(self, table: Any) -> Existing:
        """What the table is, apart from its rows."""
        iceberg = self._iceberg
        return existing(
            iceberg.SchemaParser.toJson(table.schema()),
            iceberg.PartitionSpecParser.toJson(table.spec()),
            iceberg.SortOrderParser.toJson(table.sortOrder()),
            iceberg.TableUtil.formatVersion(table),
            table.properties(),
        )


@contextmanager
def _answers() -> Iterator[None]:
    """What a catalog may answer to a commit: nothing wrong, refused, or something that leaves it open."""
    try:
        yield
    except (Py4JError, PySparkException, OSError) as error:
        name = _class(error)
        if name in _REFUSALS:
            raise Refused(_said(error)) from None
        raise Unknown(_said(error)) from None


def _alike(table: Any, other: Any) -> bool:
    same = table.schema().asStruct().equals(other.schema().asStruct())
    return bool(same and table.spec().equals(other.spec()) and table.sortOrder().equals(other.sortOrder()))


def _days_of(table: Any, attempt: str) -> list[str]:
    """The days to whose deletes an attempt adds."""
    ending = protocol.deletes_of("", attempt)
    return [name.removesuffix(ending) for name in table.refs() if name.startswith(protocol.DELETES) and name.endswith(ending)]


def _remembered(table: Any, snapshots: Any, day: str, attempt: str) -> Any:
    """What an attempt has added to a day's deletes becomes the day's, unless these are others by now."""
    own = protocol.deletes_of(day, attempt)
    tip, base = table.snapshot(own), table.snapshot(day) or table.snapshot(protocol.EMPTY)
    if tip.parentId() != base.snapshotId() or tip.summary().get(protocol.ATTEMPT) != attempt:
        raise Refused("the deletes that are remembered have changed")
    there = table.refs().containsKey(day)
    return (snapshots.replaceBranch if there else snapshots.createBranch)(day, tip.snapshotId()).removeBranch(own)


def _rolled_back(table: Any, snapshots: Any, day: str, published: Any) -> Any:
    """A day's deletes as they were when a batch was published. Its own are staged behind its rows."""
    attempt, moment = published.summary().get(protocol.ATTEMPT), published.timestampMillis()
    tip = known = table.snapshot(day)
    while known is not None and known.timestampMillis() > moment:
        if attempt is not None and known.summary().get(protocol.ATTEMPT) == attempt:
            break
        known = table.snapshot(known.parentId()) if known.parentId() is not None else None
    if known is None:
        return snapshots.removeBranch(day)
    return snapshots if known.snapshotId() == tip.snapshotId() else snapshots.replaceBranch(day, known.snapshotId())


def _pin(transaction: Any) -> None:
    """A transaction is done over again on whatever was committed since, unless it changes branches: then it is refused. So a
    branch comes and goes in it."""
    pin, main = protocol.BRANCH + "pin", transaction.table().currentSnapshot().snapshotId()
    transaction.manageSnapshots().createBranch(pin, main).removeBranch(pin).commit()


def _tag(transaction: Any, snapshots: Any, position: Position) -> Any:
    tagged = transaction.table().refs().containsKey(protocol.TAG)
    return (snapshots.replaceTag if tagged else snapshots.createTag)(protocol.TAG, position.snapshot)


def _set(transaction: Any, properties: Mapping[str, str]) -> None:
    update = transaction.updateProperties()
    for key, value in properties.items():
        update = update.set(key, value)
    update.commit()


def _is(error: Exception, name: str) -> bool:
    return _class(error) == name


def _class(error: Exception) -> str:
    """The Java class of an error, of which PySpark turns some into its own."""
    if isinstance(error, Py4JJavaError):
        return str(error.java_exception.getClass().getName()).rpartition(".")[2]
    return type(error).__name__


def _said(error: Exception) -> str:
    text = error.java_exception.getMessage() if isinstance(error, Py4JJavaError) else str(error)
    return (str(text or "") or _class(error)).splitlines()[0]
