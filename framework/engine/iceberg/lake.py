"""Iceberg tables through Spark's JVM: all changes of tables are here, and each is one commit.

Limit: needs a JVM next to this process; Spark Connect has none.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from framework import catalogs
from framework.catalogs import Files
from framework.engine.iceberg import deletable_files, evolve, state_branches
from framework.engine.iceberg.existing_table import existing
from framework.engine.iceberg.jvm_state import branches
from framework.engine.rules import forgotten, protocol
from framework.engine.rules.protocol import Position
from framework.engine.spark.causes import TRUST, commit_failed, is_spark_gone, spark_ended
from framework.engine.spark.java_errors import CommitRefused, CommitUnknown, commit_answers, is_a, text
from framework.engine.spark.java_package import Package
from framework.errors import BatchError, CatalogAway
from framework.model import Catalog, Column, PartitionField, Table
from framework.plan.change import Change, Existing, renamed_columns

CommitCall = Callable[[Any], None]
_TRIES = 5


def commit_transaction(transaction: Any) -> None:
    """Makes a publishing commit; tests replace this function by one that loses or refuses answers."""
    transaction.commitTransaction()


class Lake:
    """One catalog."""

    def __init__(self, spark: Any, catalog: Catalog, commit: CommitCall = commit_transaction) -> None:
        self.of = catalogs.of(catalog)
        self.spark = spark
        self.apache = Package(spark._jvm, "org.apache")
        self.commit = commit
        for setting, secret in self.of.secret_settings().items():
            spark._jvm.sluice.SecretCatalog.put(catalog.name, setting, secret)
        self.iceberg = self.apache.iceberg
        self._existing_names: set[str] = set()
        try:
            self.catalog = self.iceberg.spark.Spark3Util.loadIcebergCatalog(spark._jsparkSession, catalog.name)
        except Py4JJavaError as error:
            says = text(error)
            raise CatalogAway(
                "catalog-unreachable", f"the catalog `{catalog.name}` cannot be opened: {says}", TRUST if "PKIX" in says else ""
            ) from None

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
            if is_a(error, "BadRequestException") and self.of.current(identifier) is None:
                return None
            raise commit_failed("table-unreadable", f"the table {identifier} cannot be loaded", text(error), "") from None

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
        begins: Position | None = None,
        empty: bool = False,
    ) -> None:
        """Creates a table with an empty snapshot and with its properties, in one commit. With `empty`, a tag keeps that snapshot, at
        which branches of state begin. An existing table stays as it is."""
        schema = evolve.schema(self.apache, columns)
        name = self.parsed(identifier)
        try:
            self.catalog.createNamespace(name.namespace())
        except Py4JJavaError as error:
            if not is_a(error, "AlreadyExistsException"):
                raise commit_failed(
                    "table-not-created", f"the namespace of {identifier} cannot be created", text(error), ""
                ) from None
        builder = self.catalog.buildTable(name, schema).withPartitionSpec(evolve.partitions(self.apache, schema, partition_by))
        builder = builder.withSortOrder(evolve.order(self.apache, schema, sort_by)).withProperties(dict(properties))
        try:
            transaction = builder.createTransaction()
            append = transaction.newAppend()
            if begins is not None:  # a table that is rolled back to its birth begins here again
                append = append.set(protocol.POSITION, begins.short_text())
            append.commit()
            born = transaction.table().currentSnapshot()
            set_properties(transaction, describe(born.snapshotId(), born.sequenceNumber()))
            if empty:
                transaction.manageSnapshots().createTag(protocol.EMPTY, born.snapshotId()).commit()
            transaction.commitTransaction()
        except Py4JJavaError as error:
            if not (is_a(error, "AlreadyExistsException") or is_a(error, "CommitFailedException")):
                raise commit_failed("table-not-created", f"the table {identifier} cannot be created", text(error), "") from None

    def drop(self, identifier: str) -> None:
        """Forgets a table, if there is one; its files stay."""
        with commit_answers():
            self.catalog.dropTable(self.parsed(identifier), False)

    def change(self, table: Any, changes: Iterable[Change], planned: Table, properties: Mapping[str, str] | None = None) -> None:
        """Makes the changes of a spec in one commit, which is refused if another came before it."""
        changes = tuple(changes)
        with commit_answers():
            judged = table.operations().current().metadataFileLocation()
            transaction = table.newTransaction()
            now = table.operations().current().metadataFileLocation()
        try:
            with commit_answers():
                evolve.evolve(self.apache, transaction, changes, planned)
        except CommitRefused as refused:
            if now != judged:  # by another commit, after which there may be nothing left to change
                raise
            message = f"the table {planned.identifier} cannot be changed as the spec says: {refused}"
            raise BatchError("schema-change", message, "rename the column in question, by a step or in the schema") from None
        if renamed := renamed_columns(changes):
            properties = {**(properties or {}), **forgotten.after_renaming(table.properties(), renamed)}
        with commit_answers():
            if properties:
                set_properties(transaction, properties)
                if not self.of.checks_all:
                    self._pin(transaction)
            transaction.commitTransaction()

    def mark(self, table: Any, properties: Mapping[str, str]) -> None:
        with commit_answers():
            set_properties(table, properties)

    def mark_as_seen(self, transaction: Any, properties: Mapping[str, str]) -> None:
        """Sets properties; refused if anything was committed since the transaction began."""
        with commit_answers():
            set_properties(transaction, properties)
            if transaction.table().currentSnapshot() is not None:
                self._pin(transaction)
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
            self._pin(transaction, before)
            self.commit(transaction)

    def tag(self, table: Any, tags: Mapping[str, int], instead_of: Mapping[str, int | None], remove: Iterable[str] = ()) -> None:
        """Tags snapshots and removes tags, in one commit. Refused unless the tags `instead_of` are where they are said to be."""
        transaction = self.begin(table)
        refs = transaction.table().refs()
        for name, expected in instead_of.items():
            there = refs.get(name)
            if (there.snapshotId() if there else None) != expected:
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

    def unpin(self, table: Any, names: Iterable[str]) -> None:
        """Removes tags and branches of others, in one commit."""
        refs = table.refs()
        snapshots = table.manageSnapshots()
        going = [name for name in names if refs.containsKey(name)]
        for name in going:
            snapshots = snapshots.removeBranch(name) if refs.get(name).isBranch() else snapshots.removeTag(name)
        if going:
            with commit_answers():
                snapshots.commit()

    def branch(self, table: Any, attempt: str, snapshot: int) -> None:
        """A branch of this attempt's own, of exactly this snapshot: without naming it, it would begin wherever main is then."""
        self.branch_as(table, protocol.BRANCH + attempt, snapshot)

    def branch_as(self, table: Any, name: str, snapshot: int) -> None:
        with commit_answers():
            table.manageSnapshots().createBranch(name, snapshot).commit()

    def branch_in_use(self, table: Any, attempt: str, snapshot: int) -> None:
        """A branch that shows others that the table is in use: a commit that began before it, and relies on nobody using it, is refused."""
        with commit_answers():
            transaction = table.newTransaction()
            transaction.manageSnapshots().createBranch(protocol.BRANCH + attempt, snapshot).commit()
            if not self.of.checks_all:
                self._pin(transaction)
            transaction.commitTransaction()

    def branch_again(self, table: Any, attempt: str, snapshot: int) -> None:
        """Resets the attempt's branch to its first snapshot."""
        with commit_answers():
            table.refresh()
            table.manageSnapshots().replaceBranch(protocol.BRANCH + attempt, snapshot).commit()

    def branch_state(self, table: Any, attempt: str, branch: str) -> int:
        """Creates the branch on which the attempt adds to a part of a state; how many files that part has."""
        base = table.snapshot(branch) or table.snapshot(protocol.EMPTY)
        self.branch_as(table, protocol.staged_state(branch, attempt), base.snapshotId())
        return int(base.summary().get("total-data-files") or 0)

    def begin(self, table: Any) -> Any:
        """Begins a transaction, which loads the table again: only checks on `transaction.table()` are valid when it is committed. It
        is refused if anything was committed after this."""
        with commit_answers():
            return table.newTransaction()

    def publish(self, transaction: Any, attempt: str, position: Position, forget: Iterable[str] = ()) -> None:
        """Main, position, tag, branch and state change together or not at all; `forget` are branches of state that are no longer needed."""
        with commit_answers():
            before = transaction.table().currentSnapshot().snapshotId()
            set_properties(transaction, {protocol.POSITION: position.text()})
            snapshots = transaction.manageSnapshots().fastForwardBranch("main", protocol.BRANCH + attempt)
            snapshots = set_tag(transaction, snapshots, protocol.TAG, position.snapshot)
            for branch in state_branches.staged(transaction.table(), attempt):
                snapshots = state_branches.publish(transaction.table(), snapshots, branch, attempt)
            for branch in forget:
                snapshots = snapshots.removeBranch(branch)
            snapshots.commit()
            self.remove_own(transaction, protocol.BRANCH + attempt, before)
            self.commit(transaction)

    def move_position(
        self, transaction: Any, position: Position, also: Mapping[str, str] | None = None, main: int | None = None
    ) -> None:
        """Moves the position without a batch, as `sluice accept` does, and main back to a snapshot, if one is given. State of batches
        that were rolled back is deleted: their messages are read again."""
        with commit_answers():
            set_properties(transaction, {protocol.POSITION: position.text(), **(also or {})})
            snapshots = transaction.manageSnapshots()
            if main is not None:
                snapshots = snapshots.rollbackTo(main)
            snapshots = set_tag(transaction, snapshots, protocol.TAG, position.snapshot)
            table = transaction.table()
            published = table.snapshot(position.snapshot)
            for branch in state_branches.branches(table) if published else ():
                snapshots = state_branches.roll_back(table, snapshots, branch, published)
            snapshots.commit()
            if not self.of.checks_all:
                self._pin(transaction)  # also where main went back: who began at that snapshot must not take it for unmoved
            self.commit(transaction)

    def join(self, table: Any, attempt: str) -> None:
        """Publishes the branch's rows to main, whatever was committed there since. Does nothing if that is done already."""
        transaction = self.begin(table)
        now = transaction.table()
        branch = protocol.BRANCH + attempt
        tip = now.snapshot(branch)
        if tip is None:
            return
        with commit_answers():
            before = now.currentSnapshot().snapshotId()
            if tip.summary().get(protocol.ATTEMPT) == attempt:
                snapshots = transaction.manageSnapshots()
                behind = tip.parentId() == before
                (snapshots.fastForwardBranch("main", branch) if behind else snapshots.cherrypick(tip.snapshotId())).commit()
            self.remove_own(transaction, branch, before)
            self.commit(transaction)

    def advance(
        self, transaction: Any, attempt: str, base: int, and_branch: str = "", properties: Mapping[str, str] | None = None
    ) -> None:
        """Moves main to the tip of the attempt's branch, if main is still where that began, and sets properties. The branch goes, and
        that of another."""
        now = transaction.table()
        tip = now.snapshot(protocol.BRANCH + attempt)
        if now.currentSnapshot().snapshotId() != base or tip is None:
            raise CommitRefused("another commit came before it")
        with commit_answers():
            if tip.snapshotId() != base:
                transaction.manageSnapshots().fastForwardBranch("main", protocol.BRANCH + attempt).commit()
            for name in filter(None, (attempt, and_branch)):
                self.remove_own(transaction, protocol.BRANCH + name, base)
            set_properties(transaction, properties or {})
            if not self.of.checks_all:
                self._pin(transaction, base)
            self.commit(transaction)

    def replace_state(self, transaction: Any, branch: str, attempt: str) -> None:
        """Moves a branch of state to what an attempt has made of it, unless another has moved it meanwhile. No list of files has those
        from before."""
        table = transaction.table()
        with commit_answers():
            snapshots = transaction.manageSnapshots().removeBranch(protocol.BRANCH + attempt)
            state_branches.publish(table, snapshots, branch, attempt).commit()
            transaction.newAppend().toBranch(branch).set(protocol.ATTEMPT, attempt).commit()
            # A batch that runs has read the state as it was before: it is staged again.
            transaction.newAppend().set(forgotten.FORGETS, forgotten.DELETING).commit()
            self.commit(transaction)

    def renew_empty(self, table: Any) -> None:
        """Lets states begin at a new empty snapshot: after a rebuild, the one before lists the files that there were."""
        tag = protocol.EMPTY
        if not table.refs().containsKey(tag):
            return
        with commit_answers():
            transaction = table.newTransaction()
            scratch = f"{protocol.BRANCH}empty"
            transaction.manageSnapshots().createBranch(scratch, table.refs().get(tag).snapshotId()).commit()
            transaction.newAppend().toBranch(scratch).set(forgotten.FORGETS, "emptied").commit()
            snapshot = transaction.table().refs().get(scratch).snapshotId()
            transaction.manageSnapshots().replaceTag(tag, snapshot).removeBranch(scratch).commit()
            self.commit(transaction)

    def add_columns(self, table: Any, columns: Iterable[Column]) -> None:
        with commit_answers():
            evolve.add(self.apache, table, columns)
            table.refresh()

    def empty(self, transaction: Any, properties: Mapping[str, str]) -> None:
        """Deletes all rows and all of Sluice's branches and sets the properties, in one commit."""
        with commit_answers():
            before = transaction.table().currentSnapshot().snapshotId()
            transaction.newDelete().deleteFromRowFilter(self.iceberg.expressions.Expressions.alwaysTrue()).commit()
            for name, _ in list(branches(transaction.table())):
                transaction.manageSnapshots().removeBranch(name).commit()
            set_properties(transaction, properties)
            self._pin(transaction, before)
            self.commit(transaction)

    def sweep(self, table: Any, attempt: str) -> None:
        """Deletes the branch of a dead attempt, and the files that only it had."""
        tip = table.snapshot(protocol.BRANCH + attempt)
        with commit_answers():
            snapshots = table.manageSnapshots().removeBranch(protocol.BRANCH + attempt)
            for branch in state_branches.staged(table, attempt):
                snapshots = snapshots.removeBranch(protocol.staged_state(branch, attempt))
            snapshots.commit()
        # Refused, it stays for the next expiry: the branch is gone. So it does where the catalog does not compare whether it was published.
        if tip is None or not self.of.checks_all or tip.summary().get(protocol.ATTEMPT) != attempt:
            return
        with suppress(CommitRefused, CommitUnknown), commit_answers():
            if self._deletable(table, tip):
                _expiring(table, [tip.snapshotId()]).commit()

    def _deletable(self, table: Any, tip: Any) -> bool:
        """Whether Iceberg may delete the files of this snapshot: Iceberg deletes every file that it names and main does not."""
        main = table.currentSnapshot()
        statistics = (*table.statisticsFiles().toArray(), *table.partitionStatisticsFiles().toArray())
        if main is None or any(each.snapshotId() == tip.snapshotId() for each in statistics):
            return False
        files, folders = self.own_files(table)
        return deletable_files.names_nothing_else(files, folders, tip.manifestListLocation(), main.manifestListLocation())

    def own_files(self, table: Any) -> tuple[Files, tuple[str, ...]]:
        """The catalog's files, and the folders of a table in which some may be deleted."""
        files = self.of.files_of(str(table.name()).removeprefix(f"{self.of.name}."))
        if files.root:
            files = replace(files, root=self.spark.conf.get(f"spark.sql.catalog.{self.of.name}.warehouse", files.root))
        return files, deletable_files.of_attempts(files, str(table.location()), table.properties().get("write.data.path"))

    def remove_own(self, transaction: Any, branch: str, another: int) -> None:
        """Removes the branch that a commit publishes; refused if another has removed it, who took the attempt for dead.

        A catalog that compares only what a commit sets is asked to set it first, to another snapshot.
        """
        tip = transaction.table().snapshot(branch)
        if not self.of.checks_all and tip is not None and tip.snapshotId() != another:
            transaction.manageSnapshots().replaceBranch(branch, another).commit()
        transaction.manageSnapshots().removeBranch(branch).commit()

    def expire(self, table: Any, snapshots: Collection[int], collected: Any) -> None:
        """Removes these snapshots and no others, and collects the files that only they had."""
        if self.of.checks_all:
            with commit_answers():
                _expiring(table, snapshots).deleteWith(collected).commit()
            return
        # Which files these are takes long, so it is asked of a transaction that is never committed.
        with commit_answers():
            asked = table.newTransaction()
            before = {each.snapshotId() for each in asked.table().snapshots()}
            _expiring(asked, snapshots).deleteWith(collected).commit()
        for left in reversed(range(_TRIES)):
            try:
                self._expire_pinned(table, set(snapshots), before)
                return
            except CommitRefused:
                if left == 0:
                    raise

    def _expire_pinned(self, table: Any, snapshots: Collection[int], before: Collection[int]) -> None:
        """A server takes away main with its snapshot: it moves with this commit, which is refused if it went back to one of these. No
        newer snapshot than those `before` may come from one that goes, since it would have its files."""
        with commit_answers():
            transaction = table.newTransaction()
            new = [each for each in transaction.table().snapshots() if each.snapshotId() not in before]
            if any(each.parentId() in snapshots for each in new):
                raise CommitRefused("another commit came before it")
            _expiring(transaction, snapshots).cleanExpiredFiles(False).commit()
            self._pin(transaction)
            transaction.commitTransaction()

    def _pin(self, transaction: Any, main: int | None = None) -> None:
        """Makes a transaction fail if anything was committed since it began: `main` is where main was then, if it has moved since.

        Iceberg repeats a transaction on newer commits unless it changes branches, so this creates and removes one. This suffices
        where a commit compares the whole metadata with its base and swaps it.
        """
        now = transaction.table().currentSnapshot().snapshotId()
        if not self.of.checks_all and main in (None, now):
            transaction.newAppend().set(protocol.PINNED, "true").commit()
            now = transaction.table().currentSnapshot().snapshotId()
        branch = protocol.BRANCH + "pin"
        transaction.manageSnapshots().createBranch(branch, now).removeBranch(branch).commit()

    def files(self, table: Any, snapshot: int, deletes: bool = False) -> Iterator[Any]:
        """The files of a snapshot: its data files, or its delete files."""
        of = table.snapshot(snapshot)
        read = self.iceberg.ManifestFiles.readDeleteManifest if deletes else self.iceberg.ManifestFiles.read
        for manifest in (of.deleteManifests if deletes else of.dataManifests)(table.io()):
            reader = read(manifest, table.io(), table.specs())
            files = reader.iterator()
            while files.hasNext():
                yield files.next().copy()
            reader.close()

    def existing(self, table: Any) -> Existing:
        """The table without its rows."""
        iceberg = self.iceberg
        return existing(
            iceberg.SchemaParser.toJson(table.schema()),
            iceberg.PartitionSpecParser.toJson(table.spec()),
            iceberg.SortOrderParser.toJson(table.sortOrder()),
            iceberg.TableUtil.formatVersion(table),
            table.properties(),
        )


def _expiring(of: Any, snapshots: Iterable[int]) -> Any:
    action = of.expireSnapshots().expireOlderThan(0)  # older than 1970: no others
    for snapshot in snapshots:
        action = action.expireSnapshotId(snapshot)
    return action


def set_tag(transaction: Any, snapshots: Any, tag: str, snapshot: int) -> Any:
    tagged = transaction.table().refs().containsKey(tag)
    return (snapshots.replaceTag if tagged else snapshots.createTag)(tag, snapshot)


def set_properties(transaction: Any, properties: Mapping[str, str]) -> None:
    update = transaction.updateProperties()
    for key, value in properties.items():
        update = update.set(key, value)
    update.commit()
