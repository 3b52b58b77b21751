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
from framework.core.kafka.login import client_settings
from framework.core.maintain import file_lists
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
    outside: tuple[str, ...]  # files that the table names outside its folder: they stay
    bytes: int
    folder: str
    more_folders: tuple[str, ...] = ()  # folders with files of the table, besides its own
    diverged: Mapping[str, int] = field(default_factory=dict)  # tags and branches of others, and how many commits only they have
    forgotten: bool = False  # whether it keeps hashes of forgotten keys

    @property
    def name(self) -> str:
        return f"{self.catalog.name}.{self.identifier}"

    @property
    def words(self) -> str:
        return f"{self.name}, {counted(self.rows, 'row')}, {counted(len(self.files), 'file')} in {self.folder}"


def of_pipeline(pipeline: Pipeline) -> tuple[Held, ...]:
    """The tables of a pipeline that exist: those of an interrupted rebuild, the bad rows, and the table itself. Refuses a table that Sluice
    did not create, that belongs to another pipeline, or to which a batch is being written."""
    catalog, identifier = pipeline.table.catalog, pipeline.table.identifier
    table = table_state.table(catalog, identifier)
    if table is not None:
        owner = table.properties.get(protocol.OWNER)
        if protocol.ADOPTED in table.properties:
            message = f"the table {identifier} was there before `{pipeline.name}` took it over"
            raise RefusedError("table-not-ours", message, "drop it with the program that created it")
        if not refusals.is_ours(pipeline, owner):
            owner_text = "one that Sluice created" if owner is None else f"of `{pipeline.name}`"
            code = "table-not-ours" if owner is None else "table-of-another"
            raise RefusedError(code, f"the table {identifier} is not {owner_text}", "drop it with the program that created it")
    sides = _side_tables(pipeline)
    for side in sides:
        if protocol.OF not in side.properties:
            name = ".".join(side.name())
            raise RefusedError(
                "table-not-ours", f"the table {name} is not one that Sluice created", "drop it with the program that created it"
            )
    return (
        *_of_rebuild(pipeline, table),
        *(held(catalog, existing_table) for existing_table in (*sides, table) if existing_table is not None),
    )


def _side_tables(pipeline: Pipeline) -> list[IcebergTable]:
    tables = (table_state.table(pipeline.table.catalog, side.identifier) for side in pipeline.table.side_tables)
    return [table for table in tables if table is not None]


def _of_rebuild(pipeline: Pipeline, own_table: IcebergTable | None) -> tuple[Held, ...]:
    second_pipeline = second_identity.second_pipeline(pipeline)
    second = second_pipeline.table
    table = table_state.table(second.catalog, second.identifier)
    if table is None or not second_identity.is_leftover(table, pipeline):
        return ()
    # The files of its rows are in the folder of the pipeline's table, and belong to that table once the rebuild is swapped in.
    is_swapped_in = own_table is not None and own_table.properties.get(protocol.REBUILT) == str(table.metadata.table_uuid)
    folder = own_table.metadata.location if own_table is not None else deletable_files.of_first(table.metadata.location)
    second_held = held(second.catalog, table, () if is_swapped_in else (folder,))
    second_held = replace(second_held, outside=()) if is_swapped_in else second_held
    return (*(held(second.catalog, side) for side in _side_tables(second_pipeline)), second_held)


def held(catalog: Catalog, table: IcebergTable, more_folders: Sequence[str] = ()) -> Held:
    """The table with its files, some of which may be in `more_folders`."""
    identifier = ".".join(table.name())
    _refuse_alive(identifier, table)
    files, outside = files_of(catalog, table, more_folders)
    main = table.current_snapshot()
    total = main.summary.additional_properties if main and main.summary else {}
    rows = metadata.rows(total)
    file_store = catalogs.client_of(catalog).files_of(identifier)
    table_metadata = metadata.read(catalog, identifier)
    return Held(
        catalog=catalog, identifier=identifier, uuid=str(table.metadata.table_uuid), rows=rows, files=files, outside=outside,
        bytes=file_store.size(files), folder=file_store.path(table.metadata.location), more_folders=tuple(more_folders),
        diverged=table_metadata.diverged if table_metadata else {}, forgotten=forgotten.PROPERTY in table.properties,
    )  # fmt: skip


def drop(shown_table: Held, data: bool) -> int:
    """Drops the table that was shown, with files added since. Returns the number of files that stay in its folder."""
    catalog = catalogs.client_of(shown_table.catalog)
    table = table_state.table(shown_table.catalog, shown_table.identifier)
    current = held(shown_table.catalog, table, shown_table.more_folders) if table else shown_table
    if current.uuid != shown_table.uuid:
        raise SluiceError(
            "table-changed", f"{shown_table.identifier} is another table than a moment ago", "run the command again"
        )
    file_store = catalog.files_of(shown_table.identifier)
    if table is not None:  # else another program dropped it first
        try:
            catalog.drop(shown_table.identifier)
        except Exception as error:  # of the catalog's library, too
            raise metadata.unreachable(shown_table.catalog, error, "did not drop the table") from None
    if data:
        _delete(file_store, current)
    return file_store.stored(file_store.folders(current.folder)).files


def _delete(file_store: catalogs.TableFiles, held_table: Held) -> None:
    try:
        file_store.delete(held_table.files, held_table.folder)
    except Exception as error:
        why = getattr(error, "message", "") or str(error) or type(error).__name__
        message = f"{held_table.name} is dropped, and files of it stay in {held_table.folder}: {why}"
        raise SluiceError("files-stay", message, "delete that folder with the tools of its store") from None


def files_of(
    catalog: Catalog, table: IcebergTable, more_folders: Sequence[str] = (), rows: bool = True
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns the files of a table that may be deleted, and those that stay. `rows` includes the files of its rows."""
    file_store = catalogs.client_of(catalog).files_of(".".join(table.name()))
    table_metadata = metadata.read(catalog, ".".join(table.name()))
    listed_files = file_lists.all_files(table_metadata) if table_metadata and rows else set()
    existing_files = file_store.existing(listed_files | set(_named(table, rows)))
    return file_store.split_deletable(existing_files, file_store.folders(table.metadata.location, *more_folders))


def readers(plan: Plan, pipeline: Pipeline) -> dict[str, list[str]]:
    """The other pipelines that read each topic of a pipeline, by the topic's name."""
    other_pipelines = [reader for reader in plan.pipelines if reader.name != pipeline.name]
    return {
        topic.name: [reader.name for reader in other_pipelines if any(_same(topic, read_topic) for read_topic in reader.topics)]
        for topic in pipeline.topics
    }


def delete_topic(topic: Topic, secrets: SecretStore) -> None:
    """Deletes a topic; returns once Kafka no longer has it."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({**client_settings(topic.cluster, secrets), "log_level": 0})
    try:
        admin.delete_topics([topic.kafka_name], request_timeout=TOPIC_DELETED)[topic.kafka_name].result()
        deadline = time.monotonic() + TOPIC_DELETED
        while topic.kafka_name in admin.list_topics(timeout=TOPIC_DELETED).topics:
            if time.monotonic() > deadline:
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


def _same(topic: Topic, other_topic: Topic) -> bool:
    return (topic.kafka_name, topic.cluster.bootstrap) == (other_topic.kafka_name, other_topic.cluster.bootstrap)


def _refuse_alive(identifier: str, table: IcebergTable) -> None:
    from pyiceberg.table.refs import SnapshotRefType

    branches = (name for name, ref in table.metadata.refs.items() if ref.snapshot_ref_type == SnapshotRefType.BRANCH)
    names = {*attempts_of(branches), *attempts.of(str(table.metadata.table_uuid))}
    if not all(map(attempts.is_dead, names)):
        raise SluiceError(
            "run-under-way",
            f"a batch is being written to {identifier}",
            "stop that run first; one that was killed on another machine counts as running for a day",
        )


def _named(table: IcebergTable, rows: bool) -> Iterator[str]:
    """Every file that a snapshot of the table, or its log, names. `rows` includes files of rows, which reads every manifest."""
    metadata = table.metadata
    yield table.metadata_location
    yield from (entry.metadata_file for entry in metadata.metadata_log)
    yield from (statistics_file.statistics_path for statistics_file in metadata.statistics)
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
