"""Iceberg tables through Spark's JVM: all changes of tables are here, and each is one commit.

Limit: needs a JVM next to this process; Spark Connect has none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from framework.base.errors import BatchError, CatalogAway
from framework.core.iceberg import evolve
from framework.core.iceberg.existing_table import existing
from framework.core.iceberg.jvm_state import unused_name
from framework.core.rules import forgotten, protocol
from framework.core.rules.protocol import Position
from framework.core.spark.causes import TRUST, catalog_failed, is_spark_gone, spark_ended
from framework.core.spark.java_errors import CommitRefused, commit_answers, is_a, text
from framework.core.spark.java_package import Package
from framework.plan import Catalog, Column, PartitionField, Table
from framework.plan.change import Change, TableNow, renamed_columns
from framework.systems import catalogs

CommitCall = Callable[[Any], None]


def commit_transaction(transaction: Any) -> None:
    """Makes a publishing commit; tests replace this function by one that loses or refuses answers."""
    transaction.commitTransaction()


class TableStore:
    """The tables of one catalog."""

    def __init__(self, spark: Any, catalog: Catalog, commit: CommitCall = commit_transaction) -> None:
        self.component = catalogs.client_of(catalog)
        self.spark = spark
        self.apache = Package(spark._jvm, "org.apache")
        self.commit = commit
        for setting, secret in self.component.secret_settings().items():
            spark._jvm.sluice.SecretCatalog.put(self.component.secrets_name, setting, secret)
        self.iceberg = self.apache.iceberg
        self._existing_names: set[str] = set()
        self.own_sides: set[str] = set()  # uuids of tables whose side tables are their own
        self.swept: set[str] = set()  # uuids of tables that this process has swept
        try:
            self.catalog = self.iceberg.spark.Spark3Util.loadIcebergCatalog(spark._jsparkSession, catalog.name)
        except Py4JJavaError as error:
            reason = text(error)
            raise CatalogAway(
                "catalog-unreachable",
                f"the catalog `{catalog.name}` cannot be opened: {reason}",
                TRUST if "PKIX" in reason else "",
            ) from None

    def _has_namespace(self, name: Any) -> bool:
        try:
            return bool(self.catalog.namespaceExists(name.namespace()))
        except Py4JJavaError:
            return False

    def load(self, identifier: str) -> Any | None:
        """The table as it is now, or None."""
        try:
            return self.catalog.loadTable(self.parsed(identifier))
        except (Py4JError, PySparkException, ConnectionRefusedError) as error:
            if is_spark_gone(error):
                raise spark_ended() from None
            if is_a(error, "NoSuchTableException"):
                return None
            # Where there is no table `shop.history`, Iceberg asks a REST catalog for the history of a table `shop` without a namespace.
            if is_a(error, "BadRequestException") and self.component.current(identifier) is None:
                return None
            raise catalog_failed("table-unreadable", f"the table {identifier} cannot be loaded", text(error), "") from None

    def find(self, identifier: str) -> Any | None:
        """Loads a table that often does not exist: an error takes ten times as long as an answer."""
        try:
            exists = identifier in self._existing_names or self.catalog.tableExists(self.parsed(identifier))
        except (Py4JError, PySparkException, ConnectionRefusedError):
            exists = True  # loading it says what is wrong
        table = self.load(identifier) if exists else None
        if table is not None:
            self._existing_names.add(identifier)
        return table

    def parsed(self, identifier: str) -> Any:
        return self.iceberg.catalog.TableIdentifier.parse(identifier)

    def create(
        self,
        identifier: str,
        columns: tuple[Column, ...],
        partition_by: tuple[PartitionField, ...],
        sort_by: tuple[str, ...],
        properties: Mapping[str, str],
        describe: Callable[[int, int], Mapping[str, str]],
        start_position: Position | None = None,
        empty: bool = False,
    ) -> None:
        """Creates a table with an empty snapshot and with its properties, in one commit. With `empty`, a tag keeps that snapshot, at
        which branches of state begin. An existing table stays as it is."""
        schema = evolve.schema(self.apache, columns)
        name = self.parsed(identifier)
        try:
            self.catalog.createNamespace(name.namespace())
        except Py4JJavaError as error:
            if not is_a(error, "AlreadyExistsException") and not self._has_namespace(
                name
            ):  # another thread has created it just now
                raise catalog_failed(
                    "table-not-created", f"the namespace of {identifier} cannot be created", text(error), ""
                ) from None
        builder = self.catalog.buildTable(name, schema).withPartitionSpec(evolve.partitions(self.apache, schema, partition_by))
        builder = builder.withSortOrder(evolve.order(self.apache, schema, sort_by)).withProperties(dict(properties))
        try:
            transaction = builder.createTransaction()
            append = transaction.newAppend()
            if start_position is not None:  # a table that is rolled back to its birth begins here again
                append = append.set(protocol.POSITION, start_position.short_text())
            append.commit()
            first_snapshot = transaction.table().currentSnapshot()
            set_properties(transaction, describe(first_snapshot.snapshotId(), first_snapshot.sequenceNumber()))
            if empty:
                transaction.manageSnapshots().createTag(protocol.EMPTY, first_snapshot.snapshotId()).commit()
            transaction.commitTransaction()
        except Py4JJavaError as error:
            if not (is_a(error, "AlreadyExistsException") or is_a(error, "CommitFailedException")):
                raise catalog_failed("table-not-created", f"the table {identifier} cannot be created", text(error), "") from None

    def drop(self, identifier: str) -> None:
        """Forgets a table, if there is one; its files stay."""
        with commit_answers():
            self.catalog.dropTable(self.parsed(identifier), False)

    def change(self, table: Any, changes: Iterable[Change], planned: Table, properties: Mapping[str, str] | None = None) -> None:
        """Makes the changes of a spec in one commit, which is refused if another came before it."""
        changes = tuple(changes)
        with commit_answers():
            judged_location = table.operations().current().metadataFileLocation()
            transaction = table.newTransaction()
            current_location = table.operations().current().metadataFileLocation()
        try:
            with commit_answers():
                evolve.evolve(self.apache, transaction, changes, planned)
        except CommitRefused as refused:
            if current_location != judged_location:  # by another commit, after which there may be nothing left to change
                raise
            message = f"the table {planned.identifier} cannot be changed as the spec says: {refused}"
            raise BatchError("schema-change", message, "rename the column in question, by a step or in the schema") from None
        if renamed := renamed_columns(changes):
            properties = {**(properties or {}), **forgotten.after_renaming(table.properties(), renamed)}
        with commit_answers():
            if properties:
                set_properties(transaction, properties)
                if not self.component.checks_all:
                    self.pin(transaction)
            transaction.commitTransaction()

    def mark(self, table: Any, properties: Mapping[str, str]) -> None:
        with commit_answers():
            set_properties(table, properties)

    def mark_as_seen(self, transaction: Any, properties: Mapping[str, str]) -> None:
        """Sets properties; refused if anything was committed since the transaction began."""
        with commit_answers():
            set_properties(transaction, properties)
            if transaction.table().currentSnapshot() is not None:
                self.pin(transaction)
            transaction.commitTransaction()

    def mark_by_commit(self, transaction: Any, properties: Mapping[str, str], summary: Mapping[str, str]) -> None:
        """Sets properties by a commit without rows; refused if anything was committed since the transaction began."""
        with commit_answers():
            before = transaction.table().currentSnapshot().snapshotId()
            set_properties(transaction, properties)
            append = transaction.newAppend()
            for key, value in summary.items():
                append = append.set(key, value)
            append.commit()
            self.pin(transaction, before)
            self.commit(transaction)

    def tag(
        self, table: Any, tags: Mapping[str, int], expected_tags: Mapping[str, int | None], remove: Iterable[str] = ()
    ) -> None:
        """Tags snapshots and removes tags, in one commit. Refused unless each of `expected_tags` is at the snapshot given there."""
        transaction = self.begin(table)
        refs = transaction.table().refs()
        for name, expected in expected_tags.items():
            current_tag = refs.get(name)
            if (current_tag.snapshotId() if current_tag else None) != expected:
                raise CommitRefused(f"another process has moved the tag {name}")
        with commit_answers():
            snapshots = transaction.manageSnapshots()
            for name, snapshot in tags.items():
                snapshots = set_tag(transaction, snapshots, name, snapshot)
            for name in remove:
                if refs.containsKey(name):
                    snapshots = snapshots.removeTag(name)
            snapshots.commit()
            transaction.commitTransaction()

    def untag(self, table: Any, tags: Iterable[str]) -> None:
        for name in tags:
            with commit_answers():
                table.refresh()
                table.manageSnapshots().removeTag(name).commit()

    def branch(self, table: Any, attempt: str, snapshot: int) -> None:
        """Creates the attempt's branch at exactly this snapshot: without a snapshot, it would begin wherever main is by then."""
        self.branch_as(table, protocol.BRANCH + attempt, snapshot)

    def branch_as(self, table: Any, name: str, snapshot: int) -> None:
        with commit_answers():
            table.manageSnapshots().createBranch(name, snapshot).commit()

    def branch_in_use(self, table: Any, attempt: str, snapshot: int) -> None:
        """Creates a branch that shows others that the table is in use: a commit that began earlier, and relies on nobody using the table,
        is refused."""
        with commit_answers():
            transaction = table.newTransaction()
            transaction.manageSnapshots().createBranch(protocol.BRANCH + attempt, snapshot).commit()
            if not self.component.checks_all:
                self.pin(transaction)
            transaction.commitTransaction()

    def branch_again(self, table: Any, attempt: str, snapshot: int) -> None:
        """Resets the attempt's branch to its first snapshot."""
        with commit_answers():
            table.refresh()
            table.manageSnapshots().replaceBranch(protocol.BRANCH + attempt, snapshot).commit()

    def begin(self, table: Any) -> Any:
        """Begins a transaction, which loads the table again: only checks on `transaction.table()` are valid when it is committed. It
        is refused if anything was committed after this."""
        with commit_answers():
            return table.newTransaction()

    def add_columns(self, table: Any, columns: Iterable[Column]) -> None:
        with commit_answers():
            evolve.add(self.apache, table, columns)
            table.refresh()

    def pin(self, transaction: Any, main: int | None = None) -> None:
        """Makes a transaction fail if anything was committed since it began. `main` is where main was when it began, if the transaction
        has moved it.

        Iceberg repeats a transaction on newer commits unless it changes branches, so this creates and removes one. This suffices
        where a commit compares the whole metadata with its base and swaps it.
        """
        current_id = transaction.table().currentSnapshot().snapshotId()
        if not self.component.checks_all and main in (None, current_id):
            transaction.newAppend().set(protocol.PINNED, "true").commit()
            current_id = transaction.table().currentSnapshot().snapshotId()
        branch = unused_name(transaction.table(), protocol.BRANCH + "pin")
        transaction.manageSnapshots().createBranch(branch, current_id).removeBranch(branch).commit()

    def files(self, table: Any, snapshot: int, deletes: bool = False) -> Iterator[Any]:
        """The files of a snapshot: its data files, or its delete files."""
        table_snapshot = table.snapshot(snapshot)
        read_manifest = self.iceberg.ManifestFiles.readDeleteManifest if deletes else self.iceberg.ManifestFiles.read
        for manifest in (table_snapshot.deleteManifests if deletes else table_snapshot.dataManifests)(table.io()):
            reader = read_manifest(manifest, table.io(), table.specs())
            files = reader.iterator()
            while files.hasNext():
                yield files.next().copy()
            reader.close()

    def existing(self, table: Any) -> TableNow:
        """The table without its rows."""
        iceberg = self.iceberg
        return existing(
            iceberg.SchemaParser.toJson(table.schema()),
            iceberg.PartitionSpecParser.toJson(table.spec()),
            iceberg.SortOrderParser.toJson(table.sortOrder()),
            iceberg.TableUtil.formatVersion(table),
            table.properties(),
        )


def set_tag(transaction: Any, snapshots: Any, tag: str, snapshot: int) -> Any:
    is_tagged = transaction.table().refs().containsKey(tag)
    return (snapshots.replaceTag if is_tagged else snapshots.createTag)(tag, snapshot)


def set_properties(transaction: Any, properties: Mapping[str, str]) -> None:
    update = transaction.updateProperties()
    for key, value in properties.items():
        update = update.set(key, value)
    update.commit()
