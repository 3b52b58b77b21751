"""A stream of 200 tables for half an hour: what it holds of memory, threads and files stays the same, and Prometheus reads it."""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic

from framework.core.iceberg import metadata
from framework.machine.services import prometheus
from tests.support.project import Project
from tests.support.prometheus_answers import asked, value
from tests.support.streaming import Streaming, streaming
from tests.support.waiting import until

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow, pytest.mark.long]
TABLES, RATE = 200, 10.0  # messages in a second, each to the next table
MINUTES = float(os.environ.get("SLUICE_SOAK_MINUTES", "30"))
SAMPLES = 10
SPECS = """---
topic: t{number}
kafka_name: {{topic}}_{number}
value: json
columns: {{{{id: bigint}}}}
---
pipeline: p{number}
from: {{{{topic: t{number}}}}}
run: on_new_data
into: {{{{table: {{namespace}}.p{number}}}}}
"""
MOST = {"heap_mib": 1.0, "threads": 0.5, "files": 1.0, "home_kib": 10.0}
"""The most by which each may grow in a minute."""
READ = {
    "answered": "min_over_time(up[{window}])",
    "series": "max_over_time(scrape_samples_scraped[{window}])",
    "median_seconds": "quantile_over_time(0.5, scrape_duration_seconds[{window}])",
    "longest_seconds": "max_over_time(scrape_duration_seconds[{window}])",
}


def held(stream: Streaming, home: Path) -> dict[str, float]:
    """The memory, threads and files of a stream. Of Java's memory only what lives counts: how much garbage there is changes each moment."""
    main = psutil.Process(stream.process.pid)
    processes = [main, *main.children(recursive=True)]
    java = next(process for process in processes if "java" in process.name())
    threads = [sum(process.num_threads() for process in processes)]
    histogram = subprocess.run(["jcmd", str(java.pid), "GC.class_histogram"], check=True, capture_output=True, text=True).stdout
    living = sum(int(size) for size in re.findall(r"^ *\d+: +\d+ +(\d+) ", histogram, re.MULTILINE))
    sizes = 0
    for path in home.rglob("*"):
        with suppress(FileNotFoundError):
            sizes += path.stat().st_size if path.is_file() and not path.is_symlink() else 0
    threads.append(sum(process.num_threads() for process in processes))
    return {
        "heap_mib": living / 2**20,
        "threads": min(threads),  # while somebody asks for the metrics, there are more
        "files": sum(process.num_fds() for process in processes),
        "home_kib": sizes / 1024,
    }


def test_nothing_grows(project: Project, other_home: Path, tmp_path: Path) -> None:
    project.template = "".join(SPECS.format(number=number) for number in range(TABLES))
    topics = [f"{project.topic}_{number}" for number in range(TABLES)]
    for made in project.admin.create_topics([NewTopic(topic, 1, 1) for topic in topics]).values():
        made.result()
    producer, counts = Producer({"bootstrap.servers": project.bootstrap}), dict.fromkeys(topics, 0)
    samples: list[tuple[float, dict[str, float]]] = []
    try:
        with (
            streaming(project, SLUICE_HOME=str(other_home)) as stream,
            prometheus.running(tmp_path, [f"127.0.0.1:{stream.port}"], every="15s") as url,
        ):
            until(stream.lives, "the stream does not answer", 120)
            began = time.monotonic()
            send(producer, counts, began, 0.3 * MINUTES * 60)  # Java compiles and caches for a while
            for sample in range(1, SAMPLES + 1):
                send(producer, counts, began, (0.3 + 0.7 * sample / SAMPLES) * MINUTES * 60)
                samples.append(((time.monotonic() - began) / 60, held(stream, other_home)))
            assert producer.flush(30) == 0
            until(lambda: stream.rows() >= sum(counts.values()), f"{stream.rows()} rows of {sum(counts.values())}", 120)
            window = f"{max(2, int(0.6 * MINUTES))}m"
            read = {name: value(asked(url, expression.format(window=window))) for name, expression in READ.items()}
            print(json.dumps({"prometheus": read}))
            assert stream.end() < 10
    finally:
        project.admin.delete_topics(topics)
    assert read["answered"] == 1 and read["series"] <= 10_000
    times = [minute for minute, _ in samples]
    slopes = {name: statistics.linear_regression(times, [values[name] for _, values in samples]).slope for name in samples[0][1]}
    print(json.dumps({"first": samples[0][1], "last": samples[-1][1], "slopes_per_minute": slopes}))
    assert {name: slope for name, slope in slopes.items() if slope > MOST[name]} == {}
    for number, (pipeline, topic) in enumerate(zip(project.plan.pipelines, topics, strict=True)):
        table = metadata.read(pipeline.table.catalog, f"{project.namespace}.p{number}")
        assert table is not None and metadata.rows(metadata.summary(table.main)) == counts[topic]


def send(producer: Producer, counts: dict[str, int], began: float, until_second: float) -> None:
    """Sends a message to one topic after another, in time, until so many seconds after the beginning."""
    topics = list(counts)
    while (second := time.monotonic() - began) < until_second:
        total = sum(counts.values())
        if total < second * RATE:
            topic = topics[total % len(topics)]
            producer.produce(topic, json.dumps({"id": total}).encode())
            counts[topic] += 1
        producer.poll(0.01)
