"""Places where a person may still be, and which Sluice cannot change."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone

from framework.base.home import home
from framework.features.export import rewriting
from framework.operations.forget.keys import PersonKey
from framework.plan import Pipeline, Plan
from framework.systems import catalogs


def places(plan: Plan, pipeline: Pipeline, key: PersonKey) -> Iterator[str]:
    """A line for each place where the person may still be."""
    for topic in pipeline.topics:
        yield f"the topic {topic.kafka_name}, until Kafka deletes the messages; what is read again does not land"
    for table in pipeline.read_tables:
        yield f"the table {table.identifier}, of which this one is made: `sluice forget {table.pipeline}`"
    for other_pipeline in plan.pipelines:
        if pipeline.name in other_pipeline.made_of:
            yield f"the table {other_pipeline.table.identifier}, made of this one: `sluice forget {other_pipeline.name}`"
        elif other_pipeline.name != pipeline.name and {topic.name for topic in other_pipeline.topics} & {
            topic.name for topic in pipeline.topics
        }:
            yield f"the table {other_pipeline.table.identifier}, from the same topic: `sluice forget {other_pipeline.name}`"
    for follower in pipeline.also:
        if not follower.by_files:
            yield f"the {follower.title}, which others may have read"
        elif {field.column for field in pipeline.table.partition_by} & set(key.columns):
            yield f"names of folders in the {follower.title} of {pipeline.table.identifier}, since it is partitioned by the key"
    if not catalogs.client_of(pipeline.table.catalog).on_this_machine:
        yield f"older versions of files of {pipeline.table.identifier}, if the bucket keeps versions"
    for document in plan.documents_of("export"):
        export = document.value
        if export.pipeline.name == pipeline.name:
            if export.storage:
                yield f"older versions of files of `{export.name}`, if its bucket keeps versions"
            if export.notices:
                yield f"mails of `{export.name}` that were sent"
    yield from (
        f"{file}, which no export writes any more"
        for file in rewriting.abandoned_files(plan, pipeline, datetime.now(timezone.utc))
    )
    if any(topic.registered for topic in pipeline.topics) and any(value.lstrip("-").isdigit() for value in key.texts):
        yield f"bad rows of {pipeline.table.identifier} with the number in a binary message: `sluice bad-rows {pipeline.name}`"
    yield "files that a killed run of the last days left and that no commit names; `sluice maintain` deletes them once they are old"
    if any((home() / "logs").glob("*.log")):
        yield f"values in the errors that {home() / 'logs'} has"
    yield "Dagster's records of runs, copies of files, and other programs' tables"
