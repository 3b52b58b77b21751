"""A cache of Spark's loaded classes in a file: with it, a session needs half the time to its first rows.

Java checks at each start whether the file fits its version and the jars, and ignores the file where it does not.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from framework.base.patience import STUCK
from framework.core.spark import session
from framework.machine.java import ivy, jars, java
from framework.machine.jvm import build
from framework.systems import catalogs

_FAILED = ".failed"
_DRAFT = "keeping-"
PATTERNS = ("classes-*.jsa", f"classes-*{_FAILED}", "classes.log", f"{_DRAFT}*")
"""Patterns of the files that this module writes next to the jars."""
# Java writes no archive where one of these folders is on the class path.
_FOLDERS = ("SPARK_CONF_DIR", "HADOOP_CONF_DIR", "YARN_CONF_DIR")
# Specs that read and write in each way once, so that the classes for it are loaded.
_WORK = """\
cluster: main
bootstrap: 127.0.0.1:1
---
{catalog}---
topic: orders
value: json
key: {format: string, as: id}
columns:
  amount: {type: double, required: true}
  items: array<struct<name:string,count:int>>
  at: timestamp
---
pipeline: each
from: {topic: orders}
steps:
  - filter: amount >= 0
  - derive: {double: amount * 2}
into: {table: a.each, partition_by: [day(at)]}
{tests}---
pipeline: newest
from: {topic: orders}
into: {table: a.newest, write: upsert, keys: [id], order_by: at, deletes: {when: amount = 0}}
{tests}"""
_TESTS = """\
tests:
  - name: two batches, and what is wrong
    given:
      - {id: a, amount: 1, items: [{name: b, count: 1}], at: 2026-01-05T10:00:00Z}
      - {message: {raw: "{"}}
      - new_batch
      - {id: a, amount: 2, at: 2026-01-06T10:00:00Z}
    expect: [{id: a}]
"""


def is_kept() -> bool | None:
    """Whether the cache exists; None where it was not tried with this Java and these jars."""
    file = _archive_file()
    if file.is_file():
        return True
    return False if file.with_suffix(_FAILED).exists() else None


def was_tried() -> bool:
    """Whether the cache was tried for this Sluice, with any Java. Starts no Java."""
    name = session.classes("*")
    return any(path for pattern in (name, name.replace(".jsa", _FAILED)) for path in jars.place().glob(pattern))


def create() -> Path | None:
    """Creates the file with a short run of Spark in a process of its own. Returns the log if that fails."""
    file = _archive_file()
    folder = file.parent
    with jars.turn(folder, f"{_DRAFT}*"):
        if file.is_file():  # another process has created it
            return None
        for old_file in (path for pattern in PATTERNS for path in folder.glob(pattern) if path.is_file()):
            old_file.unlink()
        log = folder / "classes.log"
        with tempfile.TemporaryDirectory(prefix=_DRAFT, dir=folder) as place:
            draft = Path(place, "classes")
            if not _run_spark(draft, log):
                file.with_suffix(_FAILED).touch()
                return log
            draft.replace(file)
        log.unlink()
    return None


def _run_spark(draft: Path, log: Path) -> bool:
    environment = {name: value for name, value in os.environ.items() if name not in _FOLDERS}
    environment["SLUICE_COLD"] = "1"  # its classes are saved when it ends
    options = environment.get("SPARK_SUBMIT_OPTS", "")
    environment["SPARK_SUBMIT_OPTS"] = f'{options} "-XX:ArchiveClassesAtExit={draft}" -Xlog:disable'
    command = [sys.executable, "-m", __name__]
    with open(log, "wb") as log_file, suppress(subprocess.TimeoutExpired):
        result = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log_file,
            stderr=subprocess.STDOUT,
            timeout=STUCK,
            check=False,
        )
        return result.returncode == 0 and draft.exists()
    return False


def _archive_file() -> Path:
    """The archive's path. Java accepts an archive only with the same jars at the same places and with the same times."""
    jar_stats = ((file, file.stat()) for file in (*ivy.of_pyspark(), *jars.files("spark"), build.built()))
    files = (f"{file} {stat.st_size} {stat.st_mtime_ns}" for file, stat in jar_stats)
    parts = (java.installed().version, str(java.installed().home), *files, _work_specs())
    digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]
    return jars.folder("spark").parent / session.classes(digest)


def _work_specs() -> str:
    return _WORK.replace("{catalog}", catalogs.document(catalogs.in_folder("lake", Path())))


def _work() -> None:
    from framework.host.plans import make
    from framework.operations.trials import trial

    with tempfile.TemporaryDirectory(prefix="sluice-classes-") as name:
        specs = Path(name, "specs")  # a folder of its own: next to it a project may have its own steps
        specs.mkdir()
        (specs / "work.yaml").write_text(_work_specs().replace("{tests}", _TESTS), encoding="utf-8")
        with trial.trials(make(specs)) as trials:
            work = [(pipeline, example) for pipeline in trials.plan.pipelines for example in pipeline.examples]
            for outcome in trials.outcomes(work):
                if outcome.error:
                    raise outcome.error
            _consume(trials.spark._jvm)
            java: Any = trials.spark.sparkContext._gateway
    java.proc.wait()  # when Java has ended, it has written the file


def _consume(jvm: Any) -> None:
    """Asks a Kafka that does not exist for messages, so that the client's classes are loaded."""
    deserializer = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
    settings = jvm.java.util.HashMap()
    for key, value in {
        "bootstrap.servers": "127.0.0.1:1",
        "key.deserializer": deserializer,
        "value.deserializer": deserializer,
    }.items():
        settings.put(key, value)
    consumer = jvm.org.apache.kafka.clients.consumer.KafkaConsumer(settings)
    consumer.assign(jvm.java.util.List.of(jvm.org.apache.kafka.common.TopicPartition("topic", 0)))
    consumer.poll(jvm.java.time.Duration.ofMillis(100))
    consumer.close()


if __name__ == "__main__":
    _work()
