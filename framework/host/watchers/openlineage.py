"""OpenLineage events of runs, where its variables say where to send them: OPENLINEAGE_URL, OPENLINEAGE_CONFIG and others.

A run, a rebuild, a replay or a reading into another table that publishes something sends a START event and a COMPLETE or FAIL event; one
that finds nothing to do sends none. A rebuild that is stopped ends with ABORT. The rows are safe before an event is sent, and no error of
sending stops a run.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field
from functools import cache
from importlib import metadata as packages
from typing import Any

from framework.base.clock import utc_now
from framework.base.errors import Defect, SluiceError
from framework.core.iceberg import metadata
from framework.core.rules.work import Work
from framework.core.run.events import BatchDone, Began, Ended, Event, Failed, Rebuilt
from framework.operations.metrics import lineage_of_work, values_of_table, values_of_work
from framework.operations.observe.status import status_by_catalog
from framework.plan import Column, Pipeline, TableChanges, Topic
from framework.plan.lineage import by_source

_PREFIX = "OPENLINEAGE_"
_BY_KAFKA = ("state", "fresh")  # which Kafka is not asked for
_PAUSE = 60.0  # seconds without events after one that the receiver did not get: each try takes seconds
_LOG = logging.getLogger("sluice.openlineage")


def watcher() -> Callable[[Event], None] | None:
    """Reports runs, if the environment says where to."""
    return _Reports() if _is_wanted() else None


def _is_wanted() -> bool:
    variables = [name for name in os.environ if name.startswith(_PREFIX) and name != "OPENLINEAGE_NAMESPACE"]
    return bool(variables) and os.environ.get("OPENLINEAGE_DISABLED", "").lower() not in ("true", "1")


class _Reports:
    """Sends the START of each run, and how it ended. A run that has nothing to do is not reported."""

    def __init__(self) -> None:
        self._runs: dict[str, _ReportedRun] = {}  # by pipeline: several may run at once

    def __call__(self, event: Event) -> None:
        if isinstance(event, Began):
            self._begin(event)
        run = self._runs.get(event.pipeline.name)
        if run is None:
            return
        if isinstance(event, BatchDone):
            run.work += event.batch.work
        elif isinstance(event, Rebuilt):
            run.snapshot = event.snapshot
        elif isinstance(event, Failed) and event.follower is None:
            run.error = event.error
        elif isinstance(event, Ended):
            del self._runs[event.pipeline.name]
            run.events.send(run.state, run)

    def _begin(self, began: Began) -> None:
        self._runs.pop(began.pipeline.name, None)
        if began.waiting and time.monotonic() >= _Events.next_try:
            events = _Events(began.pipeline)
            if events.send("START"):  # an end without a beginning is of no use
                self._runs[began.pipeline.name] = _ReportedRun(events, rebuilds=began.rebuilds)


@dataclass
class _ReportedRun:
    """A run so far, for its last event."""

    events: _Events
    _: KW_ONLY
    rebuilds: bool
    work: Work = field(default_factory=Work)
    snapshot: int | None = None  # that a rebuild has published
    error: SluiceError | None = None

    @property
    def state(self) -> str:
        if self.error is not None:
            return "FAIL"
        return "ABORT" if self.rebuilds and self.snapshot is None else "COMPLETE"


@cache
def _client() -> Any:
    """The client of this process, with settings from the environment."""
    from openlineage.client import OpenLineageClient

    return OpenLineageClient()


class _Events:
    """The events of one run."""

    next_try = 0.0  # of all runs of this process

    def __init__(self, pipeline: Pipeline) -> None:
        from openlineage.client.uuid import generate_new_uuid

        self.pipeline = pipeline
        self.id = str(generate_new_uuid())

    def send(self, state: str, run: _ReportedRun | None = None) -> bool:
        """Sends an event, and returns whether the receiver got it."""
        try:
            _client().emit(self._event(state, run))
            return True
        except Exception as trouble:  # any error of the receiver
            _Events.next_try = time.monotonic() + _PAUSE
            _LOG.warning("the lineage of %s was not sent, and none will be for a minute: %s", self.pipeline.name, trouble)
            return False

    def _event(self, state: str, run: _ReportedRun | None) -> Any:
        from openlineage.client.event_v2 import Job, Run, RunEvent, RunState
        from openlineage.client.facet_v2 import documentation_job, error_message_run

        pipeline = self.pipeline
        run_facets: dict[str, Any] = {}
        if run is not None and run.error is not None:
            says = type(run.error.__cause__).__name__ if isinstance(run.error, Defect) else run.error.message
            text = f"{run.error.code}: {says}"
            run_facets["errorMessage"] = error_message_run.ErrorMessageRunFacet(text, "Python")
        job_facets: dict[str, Any] = {}
        if pipeline.doc:
            job_facets["documentation"] = documentation_job.DocumentationJobFacet(pipeline.doc)
        return RunEvent(
            eventType=RunState[state],
            eventTime=utc_now().isoformat(),
            run=Run(self.id, run_facets),
            job=Job(os.environ.get("OPENLINEAGE_NAMESPACE") or "sluice", pipeline.name, job_facets),
            producer=f"urn:sluice:{_version()}",
            inputs=list(self._inputs()),
            outputs=[self._output(run)] if run is not None else [],
        )

    def _inputs(self) -> Iterator[Any]:
        from openlineage.client.event_v2 import InputDataset

        for (namespace, name), columns in _sources(self.pipeline).items():
            yield InputDataset(namespace, name, facets={"schema": _schema(columns)})

    def _output(self, run: _ReportedRun) -> Any:
        from openlineage.client.event_v2 import OutputDataset
        from openlineage.client.facet_v2 import column_lineage_dataset, output_statistics_output_dataset, symlinks_dataset

        table = self.pipeline.table
        namespace, name = _table(table.catalog, table.identifier)
        fields = {
            column: column_lineage_dataset.Fields(
                [column_lineage_dataset.InputField(*dataset, origin) for dataset, origin in origins]
            )
            for column, origins in _origins(self.pipeline).items()
        }
        symlink = symlinks_dataset.Identifier(table.catalog.name, table.identifier, "TABLE")
        facets = {
            "schema": _schema(table.readable),
            "columnLineage": column_lineage_dataset.ColumnLineageDatasetFacet(fields),
            "symlinks": symlinks_dataset.SymlinksDatasetFacet([symlink]),
        }
        counts: dict[str, Any] = {"sluice_metrics": _metrics(self.pipeline, run.work)}
        if numbers := self._of_snapshot(run.snapshot) if run.rebuilds else lineage_of_work(run.work):
            counts["outputStatistics"] = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(**numbers)
        return OutputDataset(namespace, name, facets=facets, outputFacets=counts)

    def _of_snapshot(self, snapshot: int | None) -> dict[str, Any]:
        """The numbers of a rebuilt table; none if nothing was published, or its snapshot is gone by now."""
        table = metadata.read(self.pipeline.table.catalog, self.pipeline.table.identifier) if snapshot is not None else None
        published = table.snapshots.get(snapshot) if table and snapshot is not None else None
        return {"rowCount": int(published["summary"]["total-records"])} if published else {}


def _version() -> str:
    try:
        return packages.version("sluice")
    except packages.PackageNotFoundError:
        return "0"


Dataset = tuple[str, str]  # a namespace and a name


def _sources(pipeline: Pipeline) -> Mapping[Dataset, tuple[Column, ...]]:
    tables = [*pipeline.read_tables, *pipeline.looked_up]
    return {_topic(topic): topic.columns for topic in pipeline.topics} | {
        _table(table.catalog, table.identifier): table.columns for table in tables
    }


def _origins(pipeline: Pipeline) -> dict[str, list[tuple[Dataset, str]]]:
    """The columns of datasets that each column of the table is computed from."""
    sources_by_column = by_source(pipeline)
    datasets = {id(source): _dataset(source) for origins in sources_by_column.values() for source, _ in origins}
    return {name: [(datasets[id(source)], origin) for source, origin in origins] for name, origins in sources_by_column.items()}


def _dataset(source: Topic | TableChanges) -> Dataset:
    return _topic(source) if isinstance(source, Topic) else _table(source.catalog, source.identifier)


def _topic(topic: Topic) -> Dataset:
    return f"kafka://{topic.cluster.bootstrap.split(',')[0].strip()}", topic.kafka_name


def _table(catalog: Any, identifier: str) -> Dataset:
    """The dataset of a table: the place of its files, as the standard says, or its name before it has files."""
    table = metadata.read(catalog, identifier)
    if table is None:
        return f"sluice://{catalog.name}", identifier
    scheme, separator, path = str(table.document["location"]).partition("://")
    if not separator:
        return "file", scheme.removeprefix("file:").rstrip("/")
    bucket, _, inside = path.partition("/")
    return (f"{scheme}://{bucket}", inside.rstrip("/")) if scheme != "file" else ("file", f"/{inside}".rstrip("/"))


def _metrics(pipeline: Pipeline, work: Work) -> Any:
    """A facet of Sluice's own: the metrics of a run's batches, and of the table behind them."""
    from openlineage.client.facet_v2 import OutputDatasetFacet

    of_table = values_of_table(status_by_catalog(pipeline))
    values: dict[str, Any] = {name: value for name, value in of_table.items() if name not in _BY_KAFKA}
    values |= values_of_work(work)
    return OutputDatasetFacet().with_additional_properties(**values)


def _schema(columns: tuple[Column, ...]) -> Any:
    from openlineage.client.facet_v2 import schema_dataset

    fields = [schema_dataset.SchemaDatasetFacetFields(column.name, str(column.type), column.doc or None) for column in columns]
    return schema_dataset.SchemaDatasetFacet(fields=fields)
