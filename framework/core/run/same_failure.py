"""Whether a failed run would fail the same way again, because none of its inputs has changed.

New messages change nothing: the next batch begins at the same offsets, with the message that made it fail. Inputs that matter move the
table's metadata (an accepted position, an accepted schema change, a rollback), or are in the specs, the registry or the secrets.
"""

from __future__ import annotations

from datetime import datetime, timezone

from framework.base import iso_times
from framework.base.errors import CatalogAway, KafkaAway, NoTopic, RegistryAway, Transient
from framework.core.context.context import Context
from framework.core.iceberg import metadata
from framework.core.rules import run_record
from framework.core.rules.run_record import CHECKED, FailedRun
from framework.core.run import secret_digest
from framework.plan import Catalog, Pipeline, digest

_HOUR = 3600.0  # after which a run is tried again where no person must decide: a disk may have space, a machine memory
# Errors that a look at the topic and the table finds, too, and errors of a moment in another system. The next run does not meet them again.
_PASSING = (*CHECKED, CatalogAway, KafkaAway, NoTopic, RegistryAway, Transient)


def note(context: Context, pipeline: Pipeline) -> None:
    """Records the inputs of the run that just failed."""
    secrets = secret_digest.digest(pipeline, context.plan.secrets)
    run_record.record_failed_inputs(pipeline.recorded_as, f"{_digest(context, pipeline)} {secrets}")


def same_failure(context: Context, pipeline: Pipeline) -> FailedRun | None:
    """The failure of the last run, if the next one would end by it too. Asked after a look found no refusal."""
    record = run_record.read(pipeline.recorded_as)
    failed = record.failed
    if failed is None or record.failed_at is None or failed.is_a(*_PASSING):
        return None
    seconds = (datetime.now(timezone.utc) - iso_times.read(failed.at)).total_seconds()
    if not failed.suspended and seconds > _HOUR:
        return None
    inputs, _, secrets = record.failed_at.partition(" ")
    if secret_digest.is_another(secrets, secret_digest.digest(pipeline, context.plan.secrets)):
        return None
    return failed if inputs == _digest(context, pipeline) else None


def says(failed: FailedRun) -> str:
    return f"the last run ended with {failed.code}, and nothing has changed since: {failed.message}"


def _digest(context: Context, pipeline: Pipeline) -> str:
    pipeline = context.schemas.current(pipeline)
    into, source = pipeline.table, pipeline.source
    tables = [(into.catalog, into.identifier), (into.catalog, into.bad_rows)]
    tables += [(each.catalog, each.identifier) for each in source.tables] if source else []
    inputs = (
        pipeline.spec,
        pipeline.batch_rows,
        pipeline.bad_rows,
        into.schema_changes,
        context.plan.engine,
        context.plan.secrets,
    )
    topics = [(topic.kafka_name, topic.cluster, topic.start_from) for topic in pipeline.topics]
    return digest.short((inputs, topics, [_file(*each) for each in tables]))


def _file(catalog: Catalog, identifier: str) -> str:
    """A table's metadata file, which is another one after each commit."""
    table = metadata.read(catalog, identifier)
    return table.file if table else ""
