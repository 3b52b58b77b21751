"""Tables dropped without Spark: the catalog forgets them, and their files go if that is asked for.

Guarantee: only files that the table itself names, and that lie in its folder, are removed. Bad rows go first, so that a drop that was
killed can be done again and no run finds bad rows without their table.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from framework.amounts import counted
from framework.engine.iceberg import deletable_files, metadata, second_identity, sql_catalog, table_state
from framework.engine.iceberg.jvm_state import attempts_of
from framework.engine.kafka.cluster import client_settings
from framework.engine.rules import attempts, protocol, refusals
from framework.engine.spark.session import warehouse
from framework.errors import RefusedError, SluiceError, UnreachableError
from framework.model import Catalog, Pipeline, Plan, SecretStore, Topic
from framework.patience import TOPIC_DELETED

if TYPE_CHECKING:
    from pyiceberg.table import Table as IcebergTable


@dataclass(frozen=True, kw_only=True)
class Held:
    """A table with all that it names."""

    catalog: Catalog
    identifier: str
    uuid: str
    rows: int
    files: tuple[Path, ...]
    outside: tuple[Path, ...]  # files that it names and that are not in its folder: they stay
    bytes: int
    folder: Path
    more: tuple[str, ...] = ()  # folders in which files of it lie, besides its own

    @property
    def name(self) -> str:
        return f"{self.catalog.name}.{self.identifier}"

    @property
    def words(self) -> str:
        return f"{self.name}, {counted(self.rows, 'row')}, {counted(len(self.files), 'file')} in {self.folder}"


def of_pipeline(pipeline: Pipeline) -> tuple[Held, ...]:
    """What a rebuild that was cut off has left, its bad rows and its table, as far as they are there. What Sluice did not make, or
    made for others, is refused, and so is what a batch is written to."""
    catalog, identifier = pipeline.table.catalog, pipeline.table.identifier
    table = table_state.table(catalog, identifier)
    if table is not None:
        owner = table.properties.get(protocol.OWNER)
        if owner is None or not refusals.same_owner(owner, refusals.owner(pipeline)):
            of = "of Sluice's making" if owner is None else f"of `{pipeline.name}`"
            code = "table-not-ours" if owner is None else "table-of-another"
            raise RefusedError(code, f"the table {identifier} is not {of}", "drop it with what made it")
    sides = _side_tables(pipeline)
    for side in sides:
        if protocol.OF not in side.properties:
            name = ".".join(side.name())
            raise RefusedError("table-not-ours", f"the table {name} is not of Sluice's making", "drop it with what made it")
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
    second_held = held(second.catalog, table, () if taken else (_folder(pipeline, own),))
    second_held = replace(second_held, outside=()) if taken else second_held
    return (*(held(second.catalog, side) for side in _side_tables(second_pipeline)), second_held)


def _folder(pipeline: Pipeline, own: IcebergTable | None) -> str:
    """Where the pipeline's own table is, or was."""
    table = pipeline.table
    return own.metadata.location if own is not None else f"{warehouse(table.catalog)}/{table.namespace}/{table.name}"


def held(catalog: Catalog, table: IcebergTable, more: Sequence[str] = ()) -> Held:
    """Some of its files may lie in `more` folders."""
    identifier = ".".join(table.name())
    _refuse_alive(identifier, table)
    files, outside = files_of(catalog, table, more)
    main = table.current_snapshot()
    total = main.summary.additional_properties if main and main.summary else {}
    rows = metadata.rows(total)
    folder = Path(sql_catalog.local(table.metadata.location))
    return Held(
        catalog=catalog, identifier=identifier, uuid=str(table.metadata.table_uuid), rows=rows, files=files, outside=outside,
        bytes=sum(path.stat().st_size for path in files), folder=folder, more=tuple(more),
    )  # fmt: skip


def drop(shown_table: Held, data: bool) -> int:
    """Drops what was seen, with what has come to it since; how many files stay in its folder."""
    table = table_state.table(shown_table.catalog, shown_table.identifier)
    current = held(shown_table.catalog, table, shown_table.more) if table else shown_table
    if current.uuid != shown_table.uuid:
        raise SluiceError("table-changed", f"{shown_table.identifier} is another table than a moment ago", "look again")
    if table is not None:  # else somebody else was faster
        table.catalog.drop_table(table.name())
    if data:
        remove(current.files, current.folder)
    folders = deletable_files.folders(current.catalog, str(current.folder))
    return sum(1 for folder in folders for path in folder.rglob("*") if path.is_file())


def files_of(
    catalog: Catalog, table: IcebergTable, more: Sequence[str] = (), rows: bool = True
) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """The files of a table that may be deleted, and those that it names and that stay; with those of its rows, or without."""
    existing_files = (path for path in {Path(sql_catalog.local(each)) for each in _named(table, rows)} if path.is_file())
    return deletable_files.split_deletable(existing_files, deletable_files.folders(catalog, table.metadata.location, *more))


def remove(files: Sequence[Path], folder: Path) -> None:
    """The files, and the folders that are empty then."""
    folder = folder.resolve()  # as the files are
    for path in files:
        path.unlink(missing_ok=True)
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)  # Hadoop's checksum of it
    above = {each for path in files for each in path.parents if folder in each.parents}
    for each in sorted({folder, *above} if files else (), key=lambda each: len(each.parts), reverse=True):
        with suppress(OSError):  # not empty, or not there
            each.rmdir()


def readers(plan: Plan, pipeline: Pipeline) -> dict[str, list[str]]:
    """Which other pipelines read each of its topics, by the topic's name."""
    others = [other for other in plan.pipelines if other.name != pipeline.name]
    return {
        topic.name: [other.name for other in others if any(_same(topic, each) for each in other.topics)]
        for topic in pipeline.topics
    }


def delete_topic(topic: Topic, secrets: SecretStore) -> None:
    """Returns once Kafka no longer knows it."""
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
            raise SluiceError("topic-not-deleted", message, "see what the cluster allows; the tables are dropped") from None


def _same(one: Topic, other: Topic) -> bool:
    return (one.kafka_name, one.cluster.bootstrap) == (other.kafka_name, other.cluster.bootstrap)


def _refuse_alive(identifier: str, table: IcebergTable) -> None:
    if any(not attempts.is_dead(name) for name in attempts_of(table.metadata.refs)):
        raise SluiceError(
            "run-under-way",
            f"a batch is being written to {identifier}",
            "stop that run first; one that was killed on another machine counts as running for a day",
        )


def _named(table: IcebergTable, rows: bool) -> Iterator[str]:
    """Every file that any snapshot of the table, or its log, names; those of rows only if asked for, since each list is read."""
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
