"""Scripts of `sluice access`, run as printed: for a table in a REST catalog with files in an object store, and rights on topics."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from framework.machine.services import catalog, s3
from framework.operations.access.steps import ScriptStep
from framework.plan import Plan
from tests.support.access_scripts import run_in_duckdb, steps_of
from tests.support.accessed_tables import plan, planned
from tests.support.locked_kafka import locked_kafka

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.long]
__all__ = ["plan"]  # a fixture


def python_of(steps: list[ScriptStep]) -> str:
    return "\n".join(step.run for step in steps if step.system.language == "python" and step.part != "cleanup")


@pytest.mark.spark
def test_duckdb_reads_the_table_by_the_printed_script(plan: Plan) -> None:
    values = {
        "<client id of the reader>": catalog.CLIENT,
        "<client secret of the reader>": catalog.SECRET,
        "<key of the reader>": s3.KEY,
        "<its secret>": s3.SECRET,
    }
    answers = run_in_duckdb(steps_of(plan, "duckdb", "orders")[1], values)
    assert [rows for part, rows in answers if part == "query"][-1] == [(3,)]


@pytest.mark.spark
def test_pyiceberg_reads_the_table_by_the_printed_script(
    plan: Plan, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", s3.KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", s3.SECRET)
    exec(python_of(steps_of(plan, "pyiceberg", "orders")[1]), {})
    assert capsys.readouterr().out.splitlines()[-1] == "3"


@pytest.mark.spark
def test_spark_reads_the_table_by_the_printed_script(
    plan: Plan, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The script runs in the tests' session, under another name of the catalog: the session has the jars, and keeps its catalogs."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", s3.KEY)
    text = python_of(steps_of(plan, "spark", "orders")[1]).replace("shown_by_access", "read_by_access")
    jvm = spark._jvm
    assert jvm is not None
    for name, value in (("aws.accessKeyId", s3.KEY), ("aws.secretAccessKey", s3.SECRET)):
        jvm.java.lang.System.setProperty(name, value)
    exec(text, {})
    output = capsys.readouterr().out
    assert output.count("DE") == 2


def test_rights_on_topics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sluice_home: Path) -> None:
    """The script grants rights, and its cleanup revokes them: Kafka then lists none."""
    monkeypatch.chdir(tmp_path)
    with locked_kafka(tmp_path / "locked") as kafka:
        plan = planned(kafka.locked, "catalog: lake\ntype: sql\nuri: sqlite:///lake.db\nwarehouse: lake\n", monkeypatch)
        _, steps = steps_of(plan, "kafka-acls", "orders")
        for step in steps:
            if step.part == "create":
                kafka.allow(shlex.split(step.run))
        assert kafka.rights() == {
            *(("orders", right) for right in ("READ", "DESCRIBE")),
            *(("onward", right) for right in ("WRITE", "DESCRIBE", "CREATE")),
            *(("sluice-", right) for right in ("WRITE", "DESCRIBE")),  # transactional ids, by which senders are fenced
        }
        for step in steps:
            if step.part == "cleanup":  # a comment, as others may need the rights
                kafka.allow(shlex.split(step.run.removeprefix("# ")))
        assert kafka.rights() == set()
