"""Sluice from Python."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import sluice
from tests.support.project import Project

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow]


@pytest.mark.usefixtures("lent_spark")
def test_check_plan_and_run(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.make_topic()
    specs = Path(project.pipeline.where.file).parent
    project.send_good(30, bad_every=10)

    assert sluice.check(specs) == ()
    (planned_pipeline,) = sluice.plan(str(specs))
    assert [column.name for column in planned_pipeline.pipeline.table.columns][:2] == ["id", "price"]
    assert planned_pipeline.next_run is not None
    assert sluice.plan(specs, look=False)[0].next_run is None
    result = sluice.run("trades", specs)
    assert (result.pipeline, result.rows, result.bad, len(result.batches)) == ("trades", 27, 3, 1)
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
    assert "unknown-environment" in [problem.code for problem in sluice.check(specs)]
    assert "unknown-environment" not in [problem.code for problem in sluice.check(specs, env="local")]


@pytest.mark.usefixtures("lent_spark")
def test_a_follower_that_could_not_follow_is_said_beside_the_batches(project: Project) -> None:
    project.more = "also: [{delta: true}]"
    specs = three_messages(project)
    folder = project.lake / "warehouse" / project.namespace / "trades"
    folder.mkdir(parents=True)
    (folder / "_delta_log").write_text("a file in the place of Delta's folder")
    result = sluice.run("trades", specs)
    (error,) = result.behind
    assert result.rows == 3 and "has all rows, the " in str(error)


def three_messages(project: Project) -> str:
    """The folder of the specs of a topic with three messages."""
    project.make_topic()
    project.send_good(3)
    return str(Path(project.pipeline.where.file).parent)


def run_script(text: str, *arguments: str) -> str:
    """The output of a program that runs in its own process."""
    return subprocess.run([sys.executable, "-c", text, *arguments], check=True, stdout=subprocess.PIPE, text=True).stdout


@pytest.mark.long
def test_a_spark_of_ones_own_stays_as_it_is(project: Project) -> None:
    """A session that cannot write into the tables is named before anything is written. Two threads take turns."""
    text = (
        "from concurrent.futures import ThreadPoolExecutor\nfrom pyspark.sql import SparkSession\nimport sluice, sys\n"
        "spark = SparkSession.builder.master('local[1]').config('spark.ui.enabled', 'false').getOrCreate()\n"
        "try:\n    sluice.run('trades', specs=sys.argv[1])\nexcept sluice.SluiceError as error:\n    print(error)\n"
        "print(spark.range(3).count())\n"
        "spark.stop()\n"  # as its hint says
        "with ThreadPoolExecutor() as threads:\n"
        "    print(sum(done.rows for done in threads.map(lambda _: sluice.run('trades', specs=sys.argv[1]), range(2))))\n"
    )
    output = run_script(text, three_messages(project))
    assert "spark-not-started: Spark did not start: this process has one without Sluice's jars" in output
    assert output.endswith("\n3\n3\n")


@pytest.mark.long
def test_a_spark_of_ones_own_with_sluices_jars_is_used(project: Project) -> None:
    """The session is used if it has the extension, among others; its other fixed settings stay."""
    specs = three_messages(project)
    text = (
        "import sys, sluice\nfrom pathlib import Path\nfrom pyspark.sql import SparkSession\n"
        "from framework.core.spark import session\nfrom framework.host.plans import make\n"
        "settings = session.settings(make(Path(sys.argv[1])))\n"
        "settings |= {'spark.sql.extensions': sys.argv[2], 'spark.sql.ui.retainedExecutions': '7', 'spark.app.name': 'mine'}\n"
        "builder = SparkSession.builder\n"
        "for key, value in settings.items():\n    builder = builder.config(key, value)\n"
        "spark = builder.getOrCreate()\n"
        "try:\n    print(sluice.run('trades', specs=sys.argv[1]).rows)\nexcept sluice.SluiceError as error:\n    print(error.message)\n"
        "print(spark.range(3).count(), spark.conf.get('spark.app.name'))\n"
    )
    iceberg = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
    for extensions, expected_line in (
        (iceberg, "Spark did not start: this process has one without `sluice.Extensions` in `spark.sql.extensions`"),
        (f"sluice.Extensions,{iceberg}", "3"),
    ):
        assert run_script(text, specs, extensions).splitlines() == [expected_line, "3 mine"]
