"""Iceberg tables through Spark's JVM: all changes of tables are here, and each is one commit.

Limit: needs a JVM next to this process; Spark Connect has none.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from framework.base.errors import BatchError, CatalogAway
from framework.core.iceberg import evolve
from framework.core.iceberg.existing_table import existing
from framework.core.iceberg.updates import Commit, CommitCall, Updates, commit_transaction
from framework.core.rules import forgotten, protocol
from framework.core.rules.protocol import Position
from framework.core.spark.causes import TRUST, catalog_failed, is_spark_gone, spark_ended
from framework.core.spark.java_errors import CommitRefused, CommitUnknown, commit_answers, is_a, text
from framework.core.spark.java_package import Package
from framework.plan import Catalog, Column, PartitionField, Table
from framework.plan.change import Change, TableNow, renamed_columns
from framework.systems import catalogs

_opening: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)  # by catalog
_MADE_MEANWHILE = ("duplicate column name", "already exists")  # by another process


class TableStore:
    """The tables of one catalog."""

    def __init__(
        self, spark: Any, catalog: Catalog, commit: CommitCall = commit_transaction, former: TableStore | None = None
    ) -> None:
        """Opens the catalog again in the session if there is a `former` one, whose login was replaced."""
        self.component = catalogs.client_of(catalog)
        self.spark = spark
        self.apache = Package(spark._jvm, "org.apache")
        self.publish = commit
        self._login = self.component.secret_settings()
        for setting, secret in self._login.items():
            spark._jvm.sluice.SecretCatalog.put(self.component.secrets_name, setting, secret)
        self.iceberg = self.apache.iceberg
        self._existing_names: set[str] = set()
        self.own_sides: set[str] = set()  # uuids of tables whose side tables are their own
        self.swept: set[str] = set()  # uuids of tables that this process has swept
        self.catalog = self._opened(catalog, is_renewed=former is not None)

    def has_login(self) -> bool:
        """Whether the catalog was opened with the login that the secrets contain now."""
        return self._login == self.component.secret_settings()

    def _opened(self, catalog: Catalog, is_renewed: bool) -> Any:
        """Iceberg's catalog, opened once more if its login `is_renewed`. A new one in a database makes its tables, and two that do so at
        once fail."""
        with _opening[catalog.name]:
            try:
                try:
                    if is_renewed:
                        self.spark._jvm.sluice.SecretCatalog.renew(self.spark._jsparkSession, catalog.name)
                    return self._loaded(catalog)
                except Py4JJavaError as error:
                    if not any(words in text(error) for words in _MADE_MEANWHILE):
                        raise
                    return self._loaded(catalog)
            except Py4JJavaError as error:
                reason = text(error)
                message = f"the catalog `{catalog.name}` cannot be opened: {reason}"
                hint = TRUST if "PKIX" in reason else ""
                raise CatalogAway("catalog-unreachable", message, hint, f"the catalog `{catalog.name}`") from None

    def _loaded(self, catalog: Catalog) -> Any:
        return self.iceberg.spark.Spark3Util.loadIcebergCatalog(self.spark._jsparkSession, catalog.name)

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
            # The error is another one where another thread has created it just now.
            if not is_a(error, "AlreadyExistsException") and not self._has_namespace(name):
                raise catalog_failed(
                    "table-not-created", f"the namespace of {identifier} cannot be created", text(error), ""
                ) from None
        builder = self.catalog.buildTable(name, schema).withPartitionSpec(evolve.partitions(self.apache, schema, partition_by))
        builder = builder.withSortOrder(evolve.order(self.apache, schema, sort_by)).withProperties(dict(properties))
        try:
            transaction = builder.createTransaction()
            begin_table(self._commit(transaction), describe, start_position, empty)
            transaction.commitTransaction()
        except Py4JJavaError as error:
            if not (is_a(error, "AlreadyExistsException") or is_a(error, "CommitFailedException")):
                raise _not_created(identifier, text(error)) from None
        except (CommitRefused, CommitUnknown) as error:
            raise _not_created(identifier, str(error)) from None

    def drop(self, identifier: str) -> None:
        """Forgets a table, if there is one; its files stay."""
        with commit_answers():
            self.catalog.dropTable(self.parsed(identifier), False)

    def change(self, table: Any, changes: Iterable[Change], planned: Table, properties: Mapping[str, str] | None = None) -> None:
        """Makes the changes of a spec in one commit, which is refused if another came before it."""
        changes = tuple(changes)
        with commit_answers():
            judged_location = table.operations().current().metadataFileLocation()
            commit = self.begin(table)
            current_location = table.operations().current().metadataFileLocation()
        try:
            with commit_answers():
                evolve.evolve(self.apache, commit.transaction, changes, planned)
        except CommitRefused as refused:
            if current_location != judged_location:  # by another commit, after which there may be nothing left to change
                raise
            message = f"the table {planned.identifier} cannot be changed as the spec says: {refused}"
            raise BatchError("schema-change", message, "rename the column in question, by a step or in the schema") from None
        if renamed := renamed_columns(changes):
            properties = {**(properties or {}), **forgotten.after_renaming(table.properties(), renamed)}
        if properties:
            commit.set(properties)
            commit.require_main()
        commit.make()

    def mark(self, table: Any, properties: Mapping[str, str]) -> None:
        Updates(table).set(properties)

    def mark_as_seen(self, commit: Commit, properties: Mapping[str, str]) -> None:
        """Sets properties; refused if anything was committed since the commit began."""
        commit.set(properties)
        if commit.table.currentSnapshot() is not None:
            commit.require_nothing_else()
        commit.make()

    def mark_by_commit(self, commit: Commit, properties: Mapping[str, str], summary: Mapping[str, str]) -> None:
        """Sets properties by a commit without rows; refused if anything was committed since the commit began."""
        before = commit.main
        commit.set(properties)
        commit.append(summary)
        commit.require_nothing_else(before)
        commit.publish()

    def tag(
        self, table: Any, tags: Mapping[str, int], expected_tags: Mapping[str, int | None], remove: Iterable[str] = ()
    ) -> None:
        """Tags snapshots and removes tags, in one commit. Refused unless each of `expected_tags` is at the snapshot given there."""
        commit = self.begin(table)
        refs = commit.table.refs()
        for name, expected in expected_tags.items():
            current_tag = refs.get(name)
            if (current_tag.snapshotId() if current_tag else None) != expected:
                raise CommitRefused(f"another process has moved the tag {name}")
        with commit.references() as references:
            for name, snapshot in tags.items():
                references.tag(name, snapshot)
            references.untag(*(name for name in remove if refs.containsKey(name)))
        commit.make()

    def untag(self, table: Any, tags: Iterable[str]) -> None:
        for name in tags:
            with commit_answers():
                table.refresh()
            with Updates(table).references() as references:
                references.untag(name)

    def branch(self, table: Any, attempt: str, snapshot: int) -> None:
        """Creates the attempt's branch at exactly this snapshot: without a snapshot, it would begin wherever main is by then."""
        self.branch_as(table, protocol.BRANCH + attempt, snapshot)

    def branch_as(self, table: Any, name: str, snapshot: int) -> None:
        with Updates(table).references() as references:
            references.branch(name, snapshot)

    def branch_in_use(self, table: Any, attempt: str, snapshot: int) -> None:
        """Creates a branch that shows others that the table is in use: a commit that began earlier, and relies on nobody using the table,
        is refused."""
        commit = self.begin(table)
        with commit.references() as references:
            references.branch(protocol.BRANCH + attempt, snapshot)
        commit.require_main()
        commit.make()

    def branch_again(self, table: Any, attempt: str, snapshot: int) -> None:
        """Resets the attempt's branch to its first snapshot."""
        with commit_answers():
            table.refresh()
        with Updates(table).references() as references:
            references.move(protocol.BRANCH + attempt, snapshot)

    def begin(self, table: Any) -> Commit:
        """Begins a commit, which loads the table again."""
        with commit_answers():
            return self._commit(table.newTransaction(), self.spark._jvm.sluice.Refused(table))

    def _commit(self, transaction: Any, refused: Any = None) -> Commit:
        return Commit(transaction, self.component.checks_all, self.publish, refused)

    def add_columns(self, table: Any, columns: Iterable[Column]) -> None:
        with commit_answers():
            evolve.add(self.apache, table, columns)
            table.refresh()

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


def _not_created(identifier: str, cause: str) -> BatchError:
    return catalog_failed("table-not-created", f"the table {identifier} cannot be created", cause, "")


def begin_table(
    commit: Commit, describe: Callable[[int, int], Mapping[str, str]], start_position: Position | None, empty: bool
) -> None:
    """Adds the first, empty snapshot of a table, and the properties that describe it. With `empty`, a tag keeps that snapshot."""
    # A table that is rolled back to its birth begins at its position again.
    commit.append({} if start_position is None else {protocol.POSITION: start_position.short_text()})
    snapshot = commit.table.currentSnapshot()
    commit.set(describe(snapshot.snapshotId(), snapshot.sequenceNumber()))
    if empty:
        with commit.references() as references:
            references.tag(protocol.EMPTY, snapshot.snapshotId())
