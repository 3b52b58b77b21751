"""Tells whether a failed run would fail the same way again, because none of its inputs has changed.

New messages change nothing: the next batch begins at the same offsets, with the message that made it fail. Inputs that matter
move the table's metadata (an accepted position, an accepted schema change, a rollback), or are in the specs, the registry or the
secrets.
"""

from __future__ import annotations

from datetime import datetime, timezone

from framework.base import iso_times
from framework.base.errors import CatalogAway, KafkaAway, NoTopic, RegistryAway, SecretsAway, Transient
from framework.core.context.context import Context
from framework.core.iceberg import metadata
from framework.core.rules import journal
from framework.core.rules.journal import CHECKED, FailedRun
from framework.core.run import secret_digest
from framework.plan import Catalog, Pipeline, digest

_HOUR = 3600.0  # after it, a run is retried where no person must decide: the disk may have space by then, the machine memory
_BAD_FILE = "bad-certificate"  # of a file, of which no input knows
# Errors that a check of the topic and the table also finds, and passing errors of other systems: the next run may not meet them.
_PASSING = (*CHECKED, CatalogAway, KafkaAway, NoTopic, RegistryAway, SecretsAway, Transient)


def note(context: Context, pipeline: Pipeline) -> None:
    """Records the inputs of the run that just failed."""
    secrets = secret_digest.digest(pipeline, context.plan.secrets)
    journal.record_failed_inputs(pipeline.journal_name, f"{_digest(context, pipeline)} {secrets}")


def same_failure(context: Context, pipeline: Pipeline) -> FailedRun | None:
    """The failure of the last run, if the next run would fail the same way. Called after a check that found no refusal."""
    record = journal.read(pipeline.journal_name)
    failure = record.failed
    if failure is None or record.failed_at is None or failure.is_a(*_PASSING) or failure.code == _BAD_FILE:
        return None
    seconds = (datetime.now(timezone.utc) - iso_times.read(failure.at)).total_seconds()
    if not failure.suspended and seconds > _HOUR:
        return None
    inputs, _, secrets = record.failed_at.partition(" ")
    if secret_digest.is_another(secrets, secret_digest.digest(pipeline, context.plan.secrets)):
        return None
    return failure if inputs == _digest(context, pipeline) else None


def says(failure: FailedRun) -> str:
    return f"the last run ended with {failure.code}, and nothing has changed since: {failure.message}"


def _digest(context: Context, pipeline: Pipeline) -> str:
    pipeline = context.schemas.current(pipeline)
    target = pipeline.table
    tables = [(target.catalog, target.identifier), (target.catalog, target.bad_rows)]
    tables += [(table.catalog, table.identifier) for table in pipeline.read_tables]
    inputs = (
        pipeline.spec,
        pipeline.batch_rows,
        pipeline.bad_rows,
        target.schema_changes,
        context.plan.engine,
        context.plan.secrets,
    )
    topics = [(topic.kafka_name, topic.cluster, topic.start_from) for topic in pipeline.topics]
    return digest.short((inputs, topics, [_file(*table) for table in tables]))


def _file(catalog: Catalog, identifier: str) -> str:
    """A table's metadata file, which is another one after each commit."""
    table = metadata.read(catalog, identifier)
    return table.file if table else ""
