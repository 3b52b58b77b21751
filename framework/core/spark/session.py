"""The Spark session that a plan asks for: one per process, made when it is first needed."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary

from framework.base.errors import SetupError
from framework.core.spark import scratch
from framework.core.spark.java_package import Package
from framework.machine.java import ivy, jars
from framework.machine.jvm import build
from framework.messages.encoding import decoder
from framework.plan import Plan
from framework.sql.settings import EXTENSIONS, FUNCTIONS, LEGACY_PREFIXES, LOCAL_SETTINGS, SQL_SETTINGS, STAGED_FILES
from framework.systems import catalogs
from framework.systems.catalogs import Catalog

# Rows. A run of a million takes less of the processor in a JVM that starts fast than in one that becomes fast: measured. By what a row
# costs in each, they are even at about two million, and at four it pays to end the one and start the other: estimated.
FEW, MANY = 1_000_000, 4_000_000
_STARTS_FAST = "-XX:TieredStopAtLevel=1"
WAREHOUSE = "spark.sql.warehouse.dir"  # Spark's own tables, of which there are none
_OF_EXPRESSIONS = ("PythonUtils", "functions", "org.apache.spark.sql.functions", "org.apache.spark.sql.classic.SparkSession")
_CLASS_PATH = "SPARK_DIST_CLASSPATH"
LOGGING = (Path(__file__).parent / "log4j2.properties").as_uri()

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_hosts: WeakKeyDictionary[SparkSession, SparkSession] = WeakKeyDictionary()  # of sessions in somebody else's JVM


def settings(plan: Plan, rows: int | None = None) -> dict[str, str]:
    """All settings of the session, in a JVM that is started to read about so many rows. The spec's `conf` overrides Sluice's settings,
    except those for the meaning of SQL and for connections to a Spark of this machine."""
    conf = {
        "spark.master": plan.engine.master,
        "spark.app.name": "sluice",
        "spark.driver.memory": plan.engine.memory,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        # On the class path of the driver, not in spark.jars: starts faster, and nothing is copied.
        "spark.driver.extraClassPath": os.pathsep.join([jars.class_path("spark"), str(build.built())]),
        "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",
        # In front of what `conf` says. A message of ten bytes can claim to hold a text of 2 GB.
        "spark.driver.defaultJavaOptions": " ".join(_java_options(rows)),
        # Hadoop's own starts a process for each file that it makes, and for its checksum another: `chmod`.
        "spark.hadoop.fs.file.impl": "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem",
        **scratch.settings(scratch.own()),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # What has been, for pages that nobody sees.
        "spark.ui.retainedJobs": "20",
        "spark.ui.retainedStages": "20",
        "spark.ui.retainedTasks": "100",
        "spark.sql.ui.retainedExecutions": "5",
        "spark.sql.shuffle.partitions": str(os.cpu_count() or 1),
        # HotSpot does not compile methods over 8,000 bytes: Spark then splits them instead.
        "spark.sql.codegen.hugeMethodLimit": "8000",
        # Classes that Spark has written and compiled for its queries: the default of 100 is less than a few pipelines need in turn.
        "spark.sql.codegen.cache.maxEntries": "500",
        "spark.sql.subexpressionElimination.enabled": "true",
        # A batch is kept for seconds: to compress it takes longer than to read it again.
        "spark.sql.inMemoryColumnarStorage.compressed": "false",
        # Spark's older way to read and write Kafka makes Java objects of each message, and columns of these, for a sixth of a batch.
        "spark.sql.sources.useV1SourceList": "avro,csv,json,orc,parquet,text",
        # Messages after the end of a batch, which are fetched with it, serve the next one: up to 20,000 per partition.
        "spark.kafka.consumer.fetchedData.cache.timeout": "10s",
        "spark.kafka.consumer.fetchedData.cache.evictorThreadRunInterval": "10s",
        # Otherwise Spark clones the session for each frame that is kept, to plan it without what these two change.
        "spark.sql.sources.bucketing.autoBucketedScan.enabled": "false",
        "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning": "true",
        # A joined table is copied into whole pages. Pages of Spark's own size, up to 64 MB by the memory, are mostly empty, and Java
        # collects the whole heap more often.
        "spark.buffer.pageSize": "8m",
        # What holds of each row is written down once for each name that a column has had: 2^30 times for a table of 30 columns.
        "spark.sql.constraintPropagation.enabled": "false",
    }
    for catalog in plan.catalogs:
        conf.update(catalog_settings(catalogs.of(catalog)))
    conf |= dict(plan.engine.conf)
    conf |= {**SQL_SETTINGS, f"spark.sql.catalog.{FUNCTIONS}": decoder.CLASS}
    conf[f"spark.sql.catalog.{STAGED_FILES}"] = "sluice.StagedFiles"
    conf["spark.sql.extensions"] = ",".join(filter(None, (conf.get("spark.sql.extensions"), EXTENSIONS)))
    if conf["spark.master"].startswith("local"):
        return {**conf, **LOCAL_SETTINGS}
    # Executors on other machines get the jars from the driver.
    return {"spark.jars": ",".join(map(str, (*jars.files("spark"), build.built(), *more_jars(plan)))), **conf}


def starts_fast(rows: int | None) -> bool:
    """Whether a JVM for so many rows is one that starts fast."""
    return rows is not None and rows <= FEW


def is_outgrown(spark: SparkSession, rows: int | None) -> bool:
    """Whether the JVM starts fast, and so many rows are worth another one."""
    options = spark.sparkContext.getConf().get("spark.driver.defaultJavaOptions", "") or ""
    return rows is not None and rows > MANY and _STARTS_FAST in options


def more_jars(plan: Plan) -> list[Path]:
    """The jars of the catalogs, besides Spark's own."""
    return [file for name in more_sets(plan) for file in jars.files(name)]


def more_sets(plan: Plan) -> tuple[str, ...]:
    """The names of their sets."""
    return tuple(dict.fromkeys(name for catalog in plan.catalogs for name in catalogs.of(catalog).jars()))


def _java_options(rows: int | None) -> Iterator[str]:
    """The cache of Spark's classes from `sluice setup`, which Java ignores where it does not fit. For few rows only the first of Java's
    two compilers: the other one, and all that is counted for it, take half of the processor's time of a run that lasts ten seconds."""
    # Spark's own settings write what it filters, such as a person's address, into the log of the warm Spark.
    yield f"-Dlog4j2.configurationFile={LOGGING}"
    yield "-XX:MetaspaceSize=256m"  # the first time that classes fill less than that, Java looks at all objects, for a third of a second
    if starts_fast(rows):
        yield f"{_STARTS_FAST} -XX:ReservedCodeCacheSize=240m"  # as much as with both; without, Java takes a fifth for one
    for file in jars.place().glob(classes("*")):
        yield f'"-XX:SharedArchiveFile={file}" -Xlog:cds*=off -Xlog:class+path=off'


def classes(digest: str) -> str:
    """The name of a cache of classes, which is for one version of Sluice's own jar."""
    return f"classes-{build.jar().stem.rpartition('-')[2]}-{digest}.jsa"


def catalog_settings(catalog: Catalog) -> dict[str, str]:
    key = f"spark.sql.catalog.{catalog.name}"
    return {
        key: "sluice.SecretCatalog",
        f"{key}.sluice.secrets": catalog.secrets_name,
        **{f"{key}.{name}": value for name, value in catalog.settings().items()},
        # A cached table would hide another writer's commits.
        f"{key}.cache-enabled": "false",
    }


def prepare(plan: Plan) -> None:
    """Prepares the environment and the folders of a session."""
    environment(plan)
    for catalog in plan.catalogs:
        catalogs.of(catalog).prepare()


def environment(plan: Plan) -> None:
    """Sets the environment variables for a plan's JVM. Its Spark is that of the package pyspark, whatever SPARK_HOME names."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        os.environ["SPARK_HOME"] = str(ivy.spark_home())
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    # At the end of Java's class path, where they do not invalidate the cache of classes.
    before = os.environ.get(_CLASS_PATH, "").split(os.pathsep)
    os.environ[_CLASS_PATH] = os.pathsep.join(dict.fromkeys(filter(None, [*before, *map(str, more_jars(plan))])))


def start(plan: Plan, rows: int | None = None) -> SparkSession:
    """A session in a JVM of its own; in that of this process where Spark runs in one, which belongs to somebody else."""
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    prepare(plan)
    if SparkContext._active_spark_context is not None:
        return _in_host(plan)
    place = scratch.make(scratch.own())
    context: Any = SparkContext(conf=SparkConf().setAll(list(settings(plan, rows).items())))
    context._jvm.sluice.Scratch.hold(scratch.lock_of_jvm(place))
    return ready(SparkSession(context, context._jvm.sluice.FirstSession.of(context._jsc.sc())))


def _in_host(plan: Plan) -> SparkSession:
    from pyspark.sql import SparkSession

    host = SparkSession.builder.getOrCreate()
    missing = "Sluice's jars" if not has_jars(host._jvm) else f"`{EXTENSIONS}` in `spark.sql.extensions`"
    there = [each.strip() for each in (host.conf.get("spark.sql.extensions", "") or "").split(",")]
    if not has_jars(host._jvm) or EXTENSIONS not in there:
        what = f"Spark did not start: this process has one without {missing}"
        raise SetupError("spark-not-started", what, "end it by `spark.stop()`, or run Sluice in a process of its own")
    spark = host.newSession()
    configure(spark, plan)
    _hosts[spark] = host
    activate(spark)
    return ready(spark)


def has_jars(jvm: Any) -> bool:
    """Whether a JVM has Sluice's classes."""
    from py4j.java_gateway import JavaClass

    return isinstance(jvm.sluice.SecretCatalog, JavaClass)


def configure(spark: SparkSession, plan: Plan) -> None:
    """Gives the settings of a plan to a session of a JVM that runs; those that are fixed for a JVM are the JVM's."""
    wanted = {key: value for key, value in settings(plan).items() if key.startswith("spark.sql.") and key != WAREHOUSE}
    is_fixed = cast(Any, spark)._jvm.org.apache.spark.sql.internal.SQLConf.isStaticConfigKey
    for key, value in wanted.items():
        if spark.conf.get(key, None) != value and not is_fixed(key):
            spark.conf.set(key, value)
    for catalog in plan.catalogs:  # what another one of this name had
        for key in [
            key for key in spark.conf.getAll if key.startswith(f"spark.sql.catalog.{catalog.name}.") and key not in wanted
        ]:
            spark.conf.unset(key)


def activate(spark: SparkSession) -> None:
    """Makes it the session of this thread, of which Iceberg asks what the catalogs are."""
    jvm: Any = spark._jvm
    jvm.SparkSession.setActiveSession(spark._jsparkSession)


def take(spark: SparkSession) -> None:
    """Makes it the session of this thread, where another one may have been: its login of AWS is forgotten."""
    activate(spark)
    cast(Any, spark)._jvm.sluice.SecretCatalog.logOut()


def ready(spark: SparkSession) -> SparkSession:
    logging.getLogger().addFilter(_is_no_remark_of_py4j)
    _cache_lookups(spark)
    return spark


def refuse_older(spark: SparkSession) -> None:
    """Refuses settings of this machine's `spark-defaults.conf` that a spec may not have either."""
    conf = cast(Any, spark)._jsc.sc().conf()
    for prefix in LEGACY_PREFIXES:
        if len(older := conf.getAllWithPrefix(prefix)):
            message = f"this machine's spark-defaults.conf sets `{prefix}{older[0]._1()}`, which decides what SQL means"
            raise SetupError("fixed-setting", message, "remove it there, or unset SPARK_CONF_DIR")


def _is_no_remark_of_py4j(record: logging.LogRecord) -> bool:
    """Drops Py4J's log records: it logs a traceback where Java's process ends, and also raises."""
    return record.module not in ("clientserver", "java_gateway")


def is_gone(spark: SparkSession) -> bool:
    """Whether the session or its JVM has ended."""
    from py4j.protocol import Py4JError

    try:
        return bool(cast(Any, spark)._jsc.sc().isStopped())
    except (Py4JError, ConnectionError):
        return True


def stop(spark: SparkSession) -> None:
    """Ends a session and its JVM; in somebody else's JVM, gives the thread back to the session that was there."""
    from py4j.protocol import Py4JError

    host = _hosts.pop(spark, None)
    with warnings.catch_warnings(), suppress(Py4JError, ConnectionError):
        warnings.simplefilter("ignore", RuntimeWarning)
        if host is None:
            spark.stop()
        else:
            cast(Any, spark)._jvm.sluice.SecretCatalog.forget(spark._jsparkSession)
            activate(host)
    if host is None:
        end_jvm()


def end_jvm() -> None:
    """Ends the JVM of this process, so that another session starts another one."""
    from py4j.protocol import Py4JError
    from pyspark import SparkContext

    gateway: Any = SparkContext._gateway
    with suppress(Py4JError, OSError, AttributeError):  # it is None where the session was given back before
        gateway.shutdown()
    with suppress(OSError, AttributeError):
        gateway.proc.stdin.close()
    forget()


def forget() -> None:
    """Resets PySpark's globals, so that another session can start in another JVM."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    for owner, name in ((SparkContext, "_gateway"), (SparkContext, "_jvm"), (SparkContext, "_active_spark_context")):
        setattr(owner, name, None)
    for name in ("_instantiatedSession", "_activeSession"):
        setattr(SparkSession, name, None)


def _cache_lookups(spark: SparkSession) -> None:
    """Caches lookups of names that PySpark makes again and again, for each of which Java searches all jars: that of the package `py4j` 13
    times for each Java error, such as a missing table, which takes as long as a commit, and the others for each expression."""
    jvm: Any = spark._jvm
    jvm.__dict__["py4j"] = Package(jvm, "py4j")
    jvm.__dict__ |= {name: getattr(jvm, name) for name in _OF_EXPRESSIONS}
