"""OpenLineage events of runs, where its variables say where to send them: OPENLINEAGE_URL, OPENLINEAGE_CONFIG and others.

A run, a rebuild, a replay or a reading into another table that publishes something sends a START event and a COMPLETE or FAIL event; one
that finds nothing to do sends none. A rebuild that is stopped ends with ABORT. The rows are safe before an event is sent, and no error of
sending stops a run.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from importlib import metadata as packages
from typing import Any

from framework.base.clock import utc_now
from framework.base.errors import SluiceError
from framework.core.iceberg import metadata
from framework.plan import Column, Pipeline, TableChanges, Topic
from framework.plan.lineage import by_source

_PREFIX = "OPENLINEAGE_"
_PAUSE = 60.0  # seconds without events after one that the receiver did not get: each try takes seconds
_LOG = logging.getLogger("sluice.openlineage")


class ReportedRun:
    """A run, with the facts that its events contain. Where it publishes the whole table at its end, `rows` is None, and `whole` is
    the snapshot that it has published."""

    def __init__(self, events: _Events | None) -> None:
        self.rows: int | None = 0
        self.whole: int | None = None
        self.is_stopped = False  # before anything was published
        self._events = events
        self._since = utc_now()
        self._is_begun = False

    def begin(self) -> None:
        """Sends the START event, if that was not done."""
        if self._events and not self._is_begun:
            self._is_begun = self._events.send("START", self._since)
            if not self._is_begun:
                self._events = None  # an end without a beginning is of no use

    def add(self, rows: int) -> None:
        """Counts the rows of a batch."""
        self.begin()
        self.rows = (self.rows or 0) + rows

    def end(self, error: Exception | None = None) -> None:
        if error is not None:
            self.begin()
        if self._events and self._is_begun:
            self._events.send("FAIL" if error else "ABORT" if self.is_stopped else "COMPLETE", utc_now(), self, error)


def is_wanted() -> bool:
    variables = [name for name in os.environ if name.startswith(_PREFIX) and name != "OPENLINEAGE_NAMESPACE"]
    return bool(variables) and os.environ.get("OPENLINEAGE_DISABLED", "").lower() not in ("true", "1")


@contextmanager
def reported_run(pipeline: Pipeline, at_once: bool = True) -> Iterator[ReportedRun]:
    """Reports a run of a pipeline, from its first batch to its last. Without `at_once`, START is sent with the first batch or
    error, which shows that there was something to do."""
    run = ReportedRun(_Events(pipeline) if is_wanted() and time.monotonic() >= _Events.next_try else None)
    if at_once:
        run.begin()
    try:
        yield run
    except Exception as error:
        run.end(error)
        raise
    except GeneratorExit:  # it was stopped between two batches
        run.end()
        raise
    run.end()


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

    def send(self, state: str, moment: datetime, run: ReportedRun | None = None, error: Exception | None = None) -> bool:
        """Sends an event, and returns whether the receiver got it."""
        try:
            _client().emit(self._event(state, moment, run, error))
            return True
        except Exception as trouble:  # any error of the receiver
            _Events.next_try = time.monotonic() + _PAUSE
            _LOG.warning("the lineage of %s was not sent, and none will be for a minute: %s", self.pipeline.name, trouble)
            return False

    def _event(self, state: str, moment: datetime, run: ReportedRun | None, error: Exception | None) -> Any:
        from openlineage.client.event_v2 import Job, Run, RunEvent, RunState
        from openlineage.client.facet_v2 import documentation_job, error_message_run

        pipeline = self.pipeline
        run_facets: dict[str, Any] = {}
        if error is not None:
            text = f"{error.code}: {error.message}" if isinstance(error, SluiceError) else type(error).__name__
            run_facets["errorMessage"] = error_message_run.ErrorMessageRunFacet(text, "Python")
        job_facets: dict[str, Any] = {}
        if pipeline.doc:
            job_facets["documentation"] = documentation_job.DocumentationJobFacet(pipeline.doc)
        return RunEvent(
            eventType=RunState[state],
            eventTime=moment.isoformat(),
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

    def _output(self, run: ReportedRun) -> Any:
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
        counts: dict[str, Any] = {}
        if (rows := run.rows if run.whole is None else self._rows_of(run.whole)) is not None:
            counts["outputStatistics"] = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(rowCount=rows)
        return OutputDataset(namespace, name, facets=facets, outputFacets=counts)

    def _rows_of(self, snapshot: int) -> int | None:
        """The number of rows of a snapshot; None if it is gone by now."""
        table = metadata.read(self.pipeline.table.catalog, self.pipeline.table.identifier)
        published = table.snapshots.get(snapshot) if table else None
        return int(published["summary"]["total-records"]) if published else None


def _version() -> str:
    try:
        return packages.version("sluice")
    except packages.PackageNotFoundError:
        return "0"


Dataset = tuple[str, str]  # a namespace and a name


def _sources(pipeline: Pipeline) -> Mapping[Dataset, tuple[Column, ...]]:
    tables = [*(pipeline.source.tables if pipeline.source else ()), *pipeline.looked_up]
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


def _schema(columns: tuple[Column, ...]) -> Any:
    from openlineage.client.facet_v2 import schema_dataset

    fields = [schema_dataset.SchemaDatasetFacetFields(column.name, str(column.type), column.doc or None) for column in columns]
    return schema_dataset.SchemaDatasetFacet(fields=fields)
