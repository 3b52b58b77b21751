"""Drops tables without Spark, and deletes their files if asked to.

Guarantee: only files that the table itself names, in its own folder, are deleted. The bad rows are dropped first, so that a killed drop
can be repeated and no run meets bad rows without their table.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from framework.base.amounts import counted
from framework.base.errors import RefusedError, SluiceError, UnreachableError
from framework.base.patience import TOPIC_DELETED
from framework.core.iceberg import deletable_files, metadata, second_identity, table_state
from framework.core.iceberg.jvm_state import attempts_of
from framework.core.kafka.cluster import client_settings
from framework.core.rules import attempts, forgotten, protocol, refusals
from framework.plan import Catalog, Pipeline, Plan, SecretStore, Topic
from framework.systems import catalogs

if TYPE_CHECKING:
    from pyiceberg.table import Table as IcebergTable


@dataclass(frozen=True, kw_only=True)
class Held:
    """A table with all its files."""

    catalog: Catalog
    identifier: str
    uuid: str
    rows: int
    files: tuple[str, ...]
    outside: tuple[str, ...]  # files that it names and that are not in its folder: they stay
    bytes: int
    folder: str
    more: tuple[str, ...] = ()  # folders in which files of it lie, besides its own
    diverged: Mapping[str, int] = field(default_factory=dict)  # tags and branches of others, and how many commits only they have
    forgotten: bool = False  # whether it keeps hashes of forgotten keys

    @property
    def name(self) -> str:
        return f"{self.catalog.name}.{self.identifier}"

    @property
    def words(self) -> str:
        return f"{self.name}, {counted(self.rows, 'row')}, {counted(len(self.files), 'file')} in {self.folder}"


def of_pipeline(pipeline: Pipeline) -> tuple[Held, ...]:
    """The tables of a pipeline that exist: what an interrupted rebuild left, the bad rows, and the table. A table that Sluice did not
    create, that belongs to another pipeline, or to which a batch is being written, is refused."""
    catalog, identifier = pipeline.table.catalog, pipeline.table.identifier
    table = table_state.table(catalog, identifier)
    if table is not None:
        owner = table.properties.get(protocol.OWNER)
        if protocol.ADOPTED in table.properties:
            message = f"the table {identifier} was there before `{pipeline.name}` took it over"
            raise RefusedError("table-not-ours", message, "drop it with the program that created it")
        if not refusals.is_ours(pipeline, owner):
            of = "one that Sluice created" if owner is None else f"of `{pipeline.name}`"
            code = "table-not-ours" if owner is None else "table-of-another"
            raise RefusedError(code, f"the table {identifier} is not {of}", "drop it with the program that created it")
    sides = _side_tables(pipeline)
    for side in sides:
        if protocol.OF not in side.properties:
            name = ".".join(side.name())
            raise RefusedError(
                "table-not-ours", f"the table {name} is not one that Sluice created", "drop it with the program that created it"
            )
    return (*_of_rebuild(pipeline, table), *(held(catalog, each) for each in (*sides, table) if each is not None))


def _side_tables(pipeline: Pipeline) -> list[IcebergTable]:
    tables = (table_state.table(pipeline.table.catalog, side.identifier) for side in pipeline.table.side_tables)
    return [table for table in tables if table is not None]


def _of_rebuild(pipeline: Pipeline, own: IcebergTable | None) -> tuple[Held, ...]:
    second_pipeline = second_identity.second_pipeline(pipeline)
    second = second_pipeline.table
    table = table_state.table(second.catalog, second.identifier)
    if table is None or not second_identity.is_leftover(table, pipeline):
        return ()
    # Its rows' files are in the own table's folder, and the own table's once this has taken them.
    taken = own is not None and own.properties.get(protocol.REBUILT) == str(table.metadata.table_uuid)
    folder = own.metadata.location if own is not None else deletable_files.of_first(table.metadata.location)
    second_held = held(second.catalog, table, () if taken else (folder,))
    second_held = replace(second_held, outside=()) if taken else second_held
    return (*(held(second.catalog, side) for side in _side_tables(second_pipeline)), second_held)


def held(catalog: Catalog, table: IcebergTable, more: Sequence[str] = ()) -> Held:
    """The table with its files, some of which may be in `more` folders."""
    identifier = ".".join(table.name())
    _refuse_alive(identifier, table)
    files, outside = files_of(catalog, table, more)
    main = table.current_snapshot()
    total = main.summary.additional_properties if main and main.summary else {}
    rows = metadata.rows(total)
    its_files = catalogs.of(catalog).files_of(identifier)
    table_metadata = metadata.read(catalog, identifier)
    return Held(
        catalog=catalog, identifier=identifier, uuid=str(table.metadata.table_uuid), rows=rows, files=files, outside=outside,
        bytes=its_files.size(files), folder=its_files.path(table.metadata.location), more=tuple(more),
        diverged=table_metadata.diverged if table_metadata else {}, forgotten=forgotten.PROPERTY in table.properties,
    )  # fmt: skip


def drop(shown_table: Held, data: bool) -> int:
    """Drops the table that was shown, with files added since. Returns how many files stay in its folder."""
    catalog = catalogs.of(shown_table.catalog)
    table = table_state.table(shown_table.catalog, shown_table.identifier)
    current = held(shown_table.catalog, table, shown_table.more) if table else shown_table
    if current.uuid != shown_table.uuid:
        raise SluiceError(
            "table-changed", f"{shown_table.identifier} is another table than a moment ago", "run the command again"
        )
    its_files = catalog.files_of(shown_table.identifier)
    if table is not None:  # else another program dropped it first
        try:
            catalog.drop(shown_table.identifier)
        except Exception as error:  # of the catalog's library, too
            raise metadata.unreachable(shown_table.catalog, error, "did not drop the table") from None
    if data:
        _delete(its_files, current)
    return its_files.left(its_files.folders(current.folder))


def _delete(its_files: catalogs.Files, held_table: Held) -> None:
    try:
        its_files.delete(held_table.files, held_table.folder)
    except Exception as error:
        why = getattr(error, "message", "") or str(error) or type(error).__name__
        message = f"{held_table.name} is dropped, and files of it stay in {held_table.folder}: {why}"
        raise SluiceError("files-stay", message, "delete that folder with the tools of its store") from None


def files_of(
    catalog: Catalog, table: IcebergTable, more: Sequence[str] = (), rows: bool = True
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The files of a table that may be deleted, and those that stay; with the files of its rows, or without."""
    files = catalogs.of(catalog).files_of(".".join(table.name()))
    existing_files = files.existing(set(_named(table, rows)))
    return files.split_deletable(existing_files, files.folders(table.metadata.location, *more))


def readers(plan: Plan, pipeline: Pipeline) -> dict[str, list[str]]:
    """The other pipelines that read each topic of a pipeline, by the topic's name."""
    others = [other for other in plan.pipelines if other.name != pipeline.name]
    return {
        topic.name: [other.name for other in others if any(_same(topic, each) for each in other.topics)]
        for topic in pipeline.topics
    }


def delete_topic(topic: Topic, secrets: SecretStore) -> None:
    """Deletes a topic; returns once Kafka no longer has it."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({**client_settings(topic.cluster, secrets), "log_level": 0})
    try:
        admin.delete_topics([topic.kafka_name], request_timeout=TOPIC_DELETED)[topic.kafka_name].result()
        until = time.monotonic() + TOPIC_DELETED
        while topic.kafka_name in admin.list_topics(timeout=TOPIC_DELETED).topics:
            if time.monotonic() > until:
                raise UnreachableError(
                    "topic-not-deleted",
                    f"Kafka still has the topic `{topic.kafka_name}`",
                    "see delete.topic.enable of its brokers",
                )
            time.sleep(0.1)
    except KafkaException as error:
        kafka_error = error.args[0]
        if kafka_error.name() != "UNKNOWN_TOPIC_OR_PART":
            message = f"Kafka did not delete the topic `{topic.kafka_name}`: {kafka_error.str()}"
            raise SluiceError(
                "topic-not-deleted", message, "see what the cluster allows; the topic stays, with its messages"
            ) from None


def _same(one: Topic, other: Topic) -> bool:
    return (one.kafka_name, one.cluster.bootstrap) == (other.kafka_name, other.cluster.bootstrap)


def _refuse_alive(identifier: str, table: IcebergTable) -> None:
    from pyiceberg.table.refs import SnapshotRefType

    branches = (name for name, ref in table.metadata.refs.items() if ref.snapshot_ref_type == SnapshotRefType.BRANCH)
    if any(not attempts.is_dead(name) for name in attempts_of(branches)):
        raise SluiceError(
            "run-under-way",
            f"a batch is being written to {identifier}",
            "stop that run first; one that was killed on another machine counts as running for a day",
        )


def _named(table: IcebergTable, rows: bool) -> Iterator[str]:
    """Every file that a snapshot of the table, or its log, names. Files of rows only if asked for: that reads every manifest."""
    metadata = table.metadata
    yield table.metadata_location
    yield from (entry.metadata_file for entry in metadata.metadata_log)
    yield from (each.statistics_path for each in metadata.statistics)
    manifests = set()
    for snapshot in metadata.snapshots:
        yield snapshot.manifest_list
        for manifest in snapshot.manifests(table.io):
            if manifest.manifest_path not in manifests:
                manifests.add(manifest.manifest_path)
                yield manifest.manifest_path
                if not rows:
                    continue
                yield from (entry.data_file.file_path for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=False))
