"""The JVM of a session starts with settings that fit the expected work."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from framework.base.errors import SluiceError
from framework.core.context.context import Context
from framework.core.iceberg.lake import TableStore
from framework.core.spark import java_errors, session
from framework.core.spark.java_errors import CommitRefused, CommitUnknown
from tests.support.project import Project, plan_for
from tests.support.runs import errors
from tests.support.victims import PATIENCE

ROOT = Path(__file__).resolve().parents[2]
FAST = "-XX:TieredStopAtLevel=1"


def test_only_few_rows_get_a_jvm_that_starts_fast(tmp_path: Path, sluice_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    plan = plan_for(tmp_path, "127.0.0.1:1")

    def options(rows: int | None) -> str:
        return session.settings(plan, rows)["spark.driver.defaultJavaOptions"]

    assert [FAST in options(rows) for rows in (0, session.FEW_ROWS, session.FEW_ROWS + 1, None)] == [True, True, False, False]


@pytest.mark.spark
@pytest.mark.kafka
def test_what_waits_is_counted_before_spark_starts(project: Project) -> None:
    """Counts the messages of a new topic, new messages, and the rows of a table that the same run has written."""
    project.template += (
        "---\npipeline: copy\nfrom: {{table: {namespace}.trades}}\ninto: {{table: {namespace}.copy, write: replace}}\n"
    )
    project.make_topic()
    row_counts: list[int | None] = []

    def runs() -> list[int | None]:
        context = Context(project.plan, spark=lambda: project.spark)
        expect = context.expect

        def noted(rows: int) -> None:
            assert not context.started() or len(row_counts) > 0
            row_counts.append(rows)
            expect(rows)

        context.expect = noted  # type: ignore[method-assign]
        row_counts.clear()
        assert errors(context, context.plan.pipelines) == []
        return list(row_counts)

    project.send_good(30)
    assert runs() == [30, 30]
    project.send_good(3)
    assert runs() == [3, 33]
    assert runs() == []
    context = Context(project.plan, spark=lambda: project.spark, warm=False)
    context.expect(1)
    assert context.rows is None  # a session that stays has time to become fast


@pytest.mark.spark
def test_all_that_is_used_ahead_works(spark: Any) -> None:
    """All warm-up tasks work. A run ignores their failures, since the first real use reports them."""
    java = spark._jvm.java.lang
    java_class = java.Class.forName("sluice.Ahead")
    for name in ("OF_SESSIONS", "OF_TASKS"):
        uses = java_class.getDeclaredField(name)
        uses.setAccessible(True)
        for task in uses.get(None):
            assert task.call() is not None


@pytest.mark.spark
def test_a_session_is_without_functions_for_machine_learning(spark: Any) -> None:
    """These functions cost each start half a second, and no spec can call them."""
    catalyst = spark._jvm.org.apache.spark.sql.catalyst
    internal = getattr(catalyst.analysis, "FunctionRegistry$").__getattr__("MODULE$").internal()
    assert [internal.functionExists(catalyst.FunctionIdentifier(name)) for name in ("vector_to_array", "bloom_filter_agg")] == [
        False,
        True,
    ]


@pytest.mark.spark
def test_an_error_is_told_by_its_java_classes(spark: Any) -> None:
    java, iceberg = spark._jvm.java, spark._jvm.org.apache.iceberg.exceptions
    none = spark._sc._gateway.new_array(java.lang.Object, 0)
    conflict = iceberg.ValidationException("a file is gone", none)
    unknown = iceberg.CommitStateUnknownException(java.lang.IllegalStateException("no answer"))

    def raised(origin: Any) -> Exception:
        with pytest.raises((CommitRefused, CommitUnknown)) as error, java_errors.commit_answers():
            raise Py4JJavaError("it failed", origin)
        return error.value

    assert isinstance(raised(conflict), CommitRefused)
    assert isinstance(raised(java.lang.RuntimeException("Cannot commit", conflict)), CommitRefused)
    assert isinstance(raised(java.lang.RuntimeException("Cannot write", java.io.IOException("no disk"))), CommitUnknown)
    assert isinstance(raised(unknown), CommitUnknown), "whatever its cause is"

    with pytest.raises(PySparkException) as error:
        spark.sql("SELECT 1 / 0").collect()
    assert java_errors.java_classes(error.value) == ("org.apache.spark.SparkArithmeticException",)
    assert java_errors.java_classes(OSError("of Python")) == ()


GIB = 1 << 30


@pytest.mark.spark
@pytest.mark.parametrize(
    ("free", "container", "low"),
    [
        (8, {}, False),
        (2, {}, True),  # of 24
        (8, {"memory.max": "max", "memory.current": 20 * GIB}, False),
        (8, {"memory.max": 4 * GIB, "memory.current": GIB}, False),
        (8, {"memory.max": 4 * GIB, "memory.current": 4 * GIB - 1}, True),
        # Files that were read once are no reason to end.
        (8, {"memory.max": 4 * GIB, "memory.current": 4 * GIB - 1, "memory.stat": f"anon 7\ninactive_file {2 * GIB}\n"}, False),
        (2, {"memory.max": 23 * GIB, "memory.current": GIB}, True),  # the machine has less than the container may have
    ],
)
def test_a_warm_jvm_ends_where_memory_is_low(
    spark: Any, tmp_path: Path, free: int, container: dict[str, object], low: bool
) -> None:
    files = {"proc/meminfo": f"MemTotal: {24 << 20} kB\nMemFree: 1 kB\nMemAvailable: {free << 20} kB\n"}
    for name, text in (files | {f"sys/fs/cgroup/{name}": f"{text}\n" for name, text in container.items()}).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert spark._jvm.sluice.Memory.isLow(spark._jvm.java.io.File(str(tmp_path)).toPath()) is low


@pytest.mark.spark
@pytest.mark.kafka
def test_a_session_in_a_spark_of_ones_own_leaves_nothing_there(project: Project) -> None:
    """Java has one AWS login for the whole process, so each session begins without another folder's login."""
    host: Any = project.spark
    jvm = host._jvm
    properties = jvm.java.lang.System
    properties.setProperty("aws.profile", "mine")

    def login() -> list[str | None]:
        return [properties.getProperty(f"aws.{name}") for name in ("profile", "accessKeyId")]

    try:
        jvm.sluice.SecretCatalog.put("any", "aws.profile", "theirs")
        jvm.sluice.SecretCatalog.put("any", "aws.accessKeyId", "key")
        assert login() == ["theirs", "key"]
        session.take(host)
        assert login() == ["mine", None]

        spark = session.start(project.plan)
        (catalog,) = project.plan.catalogs
        jvm.sluice.SecretCatalog.put("any", "aws.accessKeyId", "key")
        jvm.sluice.Keys.put("of masks", "secret")
        lake = TableStore(spark, catalog)
        assert lake.load("no.table") is None
        session.stop(spark)
        assert login() == ["mine", None]
        with pytest.raises(SluiceError, match="closed"):
            lake.load("no.table")
        assert TableStore(host, catalog).load("no.table") is None
        assert jvm.SparkSession.active().equals(host._jsparkSession)
    finally:
        properties.clearProperty("aws.profile")


ORDERS = "topic: orders\nvalue: json\ncolumns: {n: int}\n---\npipeline: orders\nfrom: {topic: orders}\ninto: {table: a.orders}\n"
STARTS = """
import sys
import subprocess
from dataclasses import replace
from pathlib import Path
from framework.core.spark import session, start
from framework.base.errors import SluiceError
from framework.host.plans import make
from pyspark import SparkContext

plan = make(Path(sys.argv[1]))
wrong = replace(plan.engine, conf=(("spark.serializer", "nowhere.Serializer"),))
prepare = session.prepare
session.prepare = lambda of: (others.append(subprocess.Popen(["sleep", "60"])), prepare(of))  # which something else begins meanwhile
others = []
try:
    start.start(replace(plan, engine=wrong), None)
except SluiceError as error:
    print(error.code, [other.poll() for other in others])
session.prepare = prepare
for other in others:
    other.kill()
    other.wait()
for rows in (1, session.MANY_ROWS + 1):
    spark = start.start(plan, None, rows)
    jvm = spark._jvm
    registry = getattr(jvm.org.apache.spark.sql.catalyst.analysis, "FunctionRegistry$").__getattr__("MODULE$").internal()
    name = jvm.org.apache.spark.sql.catalyst.FunctionIdentifier("vector_to_array")
    pid = jvm.java.lang.ProcessHandle.current().pid()
    print(jvm.sluice.Ahead.waitForSessions(), registry.functionExists(name), session.is_outgrown(spark, session.MANY_ROWS + 1))
    session.stop(spark)
    assert SparkContext._gateway is None
"""


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.slow
def test_each_start_has_a_jvm_of_its_own_and_none_is_left(tmp_path: Path, sluice_home: Path) -> None:
    """A failed start ends no other process, and a start for many rows gets no JVM that was started for few."""
    plan = plan_for(tmp_path, "127.0.0.1:1", ORDERS)
    (tmp_path / "starts.py").write_text(STARTS)
    command = [sys.executable, str(tmp_path / "starts.py"), str(Path(plan.pipelines[0].where.file).parent)]
    result = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert result.stdout.splitlines() == ["spark-not-started [None, None]", "True False True", "True False False"], (
        result.stdout + result.stderr
    )
