"""Where a person may still be, and what Sluice cannot do anything about."""

from __future__ import annotations

from collections.abc import Iterator

from framework import amounts
from framework.engine.iceberg.lake import Lake
from framework.engine.maintain import orphans
from framework.model import Pipeline, Plan


def reach(plan: Plan, pipeline: Pipeline) -> Iterator[str]:
    """Lines, each of one place."""
    for topic in pipeline.topics:
        yield f"the topic {topic.kafka_name}, until Kafka deletes the messages; what is read again does not land"
    for follower in pipeline.also:
        if not follower.by_files:
            yield f"the {follower.title}, which others may have read"
    for reader in plan.pipelines:
        if reader.source and reader.source.identifier == pipeline.table.identifier:
            yield f"the table {reader.table.identifier}, made of this one: `sluice forget {reader.name}`"
    for document in plan.documents_of("export"):
        export = document.value
        if export.pipeline.name == pipeline.name:
            if export.storage:
                yield f"older versions of files of `{export.name}`, if its bucket keeps versions"
            if export.notices:
                yield f"mails and answers to links of `{export.name}` that were sent"
    yield "Dagster's records of runs, copies of files, and other programs' tables"


def unnamed(lake: Lake, pipeline: Pipeline) -> Iterator[str]:
    """Files that no commit names, such as those of a run that was killed."""
    for name in (pipeline.table.identifier, pipeline.table.bad_rows):
        if count := len(orphans.unnamed(lake, pipeline, name)):
            files = amounts.counted(count, "file")
            yield f"{files} in the folder of {name} that no commit names: `sluice maintain {pipeline.name}` deletes such files later"
