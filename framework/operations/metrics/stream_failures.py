"""How often in a row a pipeline of a stream has failed; none where it works."""

from __future__ import annotations

from collections.abc import Iterator

from framework.operations.metrics import Sample, StreamMetric, StreamNow


def _of(stream: StreamNow) -> Iterator[Sample]:
    for name, pipeline in stream.health.pipelines.items():
        if pipeline.failures:
            yield Sample(pipeline.failures, name)


METRIC = StreamMetric(doc="How often in a row a pipeline of a stream has failed; none where it works.", of=_of, label="pipeline")
