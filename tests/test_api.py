"""Sluice from Python."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import sluice
from tests.project import Project

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow]


def test_check_plan_and_run(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("framework.engine.spark.start.start", lambda *_: project.spark)
    monkeypatch.setattr("framework.engine.spark.session.stop", lambda _: None)
    project.make_topic()
    specs = Path(project.pipeline.where.file).parent
    project.send_good(30, bad_every=10)

    assert sluice.check(specs) == ()
    (planned,) = sluice.plan(str(specs))
    assert [column.name for column in planned.pipeline.table.columns][:2] == ["id", "price"]
    assert planned.next_run is not None
    assert sluice.plan(specs, look=False)[0].next_run is None
    done = sluice.run("trades", specs)
    assert (done.pipeline, done.rows, done.bad, len(done.batches)) == ("trades", 27, 3, 1)
    assert sluice.run(project.pipeline.table.identifier, specs).rows == 0
    with pytest.raises(sluice.SluiceError, match="there is no pipeline `trade`"):
        sluice.run("trade", specs)
    project.delete_topic()
    with pytest.raises(sluice.SluiceError, match="topic"):
        sluice.run("trades", specs)

    main = specs / "main.yaml"
    main.write_text(main.read_text().replace("price > 900", "prize > 900"))
    (problem,) = sluice.check(specs)
    assert (problem.code, problem.hint) == ("unknown-column", "did you mean `price`?")
    with pytest.raises(sluice.SpecError, match="prize"):
        sluice.plan(specs)

    monkeypatch.setenv("SLUICE_ENV", "nowhere")
    assert "unknown-environment" in [each.code for each in sluice.check(specs)]
    assert "unknown-environment" not in [each.code for each in sluice.check(specs, env="local")]


@pytest.mark.long
def test_a_spark_of_ones_own_stays_as_it_is(project: Project) -> None:
    """One that cannot write into the tables is named, before anything is written."""
    project.make_topic()
    specs = Path(project.pipeline.where.file).parent
    project.send_good(3)
    text = (
        "from pyspark.sql import SparkSession\nimport sluice\n"
        "spark = SparkSession.builder.master('local[1]').config('spark.ui.enabled', 'false').getOrCreate()\n"
        f"try:\n    sluice.run('trades', specs={str(specs)!r})\nexcept sluice.SluiceError as error:\n    print(error)\n"
        "print(spark.range(3).count())\n"
    )
    ended = subprocess.run([sys.executable, "-c", text], check=True, stdout=subprocess.PIPE, text=True)
    assert "spark-not-started: Spark did not start: this process has one without Sluice's jars" in ended.stdout
    assert ended.stdout.endswith("\n3\n")
