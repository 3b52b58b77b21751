"""The Spark session that a plan asks for: one per process, created when it is first needed."""

from __future__ import annotations

import logging
import os
import sys
import threading
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
from framework.systems.catalogs import CatalogClient

# A run of a million rows takes less processor time in a JVM that starts fast than in one that becomes fast: measured. By the cost
# of a row in each, they are equal at about two million rows, and at four million it pays to end one and start the other: estimated.
FEW_ROWS, MANY_ROWS = 1_000_000, 4_000_000
_STARTS_FAST = "-XX:TieredStopAtLevel=1"
WAREHOUSE = "spark.sql.warehouse.dir"  # the folder of Spark's own tables, of which there are none
_OF_EXPRESSIONS = ("PythonUtils", "functions", "org.apache.spark.sql.functions", "org.apache.spark.sql.classic.SparkSession")
_CLASS_PATH = "SPARK_DIST_CLASSPATH"
LOGGING = (Path(__file__).parent / "log4j2.properties").as_uri()

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_hosts: WeakKeyDictionary[SparkSession, SparkSession] = (
    WeakKeyDictionary()
)  # somebody else's session, by the session that Sluice has in its JVM


def settings(plan: Plan, rows: int | None = None) -> dict[str, str]:
    """All settings of the session, in a JVM that is started to read about `rows` rows. The spec's `conf` overrides Sluice's
    settings, except those for the meaning of SQL and for connections to a Spark of this machine."""
    conf = {
        "spark.master": plan.engine.master,
        "spark.app.name": "sluice",
        "spark.driver.memory": plan.engine.memory,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        # On the class path of the driver, not in spark.jars: starts faster, and nothing is copied.
        "spark.driver.extraClassPath": os.pathsep.join([jars.class_path("spark"), str(build.built())]),
        "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",
        # Java reads these before the options that `conf` has.
        "spark.driver.defaultJavaOptions": " ".join(_java_options(rows)),
        # Hadoop's own class starts a process, `chmod`, for each file that it creates, and another for the file's checksum.
        "spark.hadoop.fs.file.impl": "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem",
        **scratch.settings(scratch.own_folder()),
        "spark.scheduler.mode": "FAIR",  # among threads; within a thread, jobs still come one after another
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # The history for Spark's pages, which nobody sees.
        "spark.ui.retainedJobs": "20",
        "spark.ui.retainedStages": "20",
        "spark.ui.retainedTasks": "100",
        "spark.sql.ui.retainedExecutions": "5",
        "spark.sql.shuffle.partitions": str(os.cpu_count() or 1),
        # HotSpot does not compile methods over 8,000 bytes: Spark then splits them instead.
        "spark.sql.codegen.hugeMethodLimit": "8000",
        # Spark generates and compiles classes for its queries: the default of 100 is less than a few pipelines need in turn.
        "spark.sql.codegen.cache.maxEntries": "500",
        "spark.sql.subexpressionElimination.enabled": "true",
        # A batch is cached for seconds: compressing it takes longer than reading it again.
        "spark.sql.inMemoryColumnarStorage.compressed": "false",
        # Spark's older Kafka source turns each message into Java objects, and these into columns: a sixth of the time of a batch.
        "spark.sql.sources.useV1SourceList": "avro,csv,json,orc,parquet,text",
        # Messages after the end of a batch are fetched with it and serve the next batch: up to 20,000 per partition.
        "spark.kafka.consumer.fetchedData.cache.timeout": "10s",
        "spark.kafka.consumer.fetchedData.cache.evictorThreadRunInterval": "10s",
        # Otherwise Spark clones the session for each cached frame, to plan it without what these two settings change.
        "spark.sql.sources.bucketing.autoBucketedScan.enabled": "false",
        "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning": "true",
        # A joined table is copied into whole pages. With Spark's default, up to 64 MB by the memory, they are mostly empty, and
        # Java collects the whole heap more often.
        "spark.buffer.pageSize": "8m",
        # Spark keeps what is true of each row once for each name that a column has had: 2^30 times for a table of 30 columns.
        "spark.sql.constraintPropagation.enabled": "false",
    }
    for catalog in plan.catalogs:
        conf.update(catalog_settings(catalogs.client_of(catalog)))
    conf |= dict(plan.engine.conf)
    conf |= {**SQL_SETTINGS, f"spark.sql.catalog.{FUNCTIONS}": decoder.CLASS}
    conf[f"spark.sql.catalog.{STAGED_FILES}"] = "sluice.StagedFiles"
    conf["spark.sql.extensions"] = ",".join(filter(None, (conf.get("spark.sql.extensions"), EXTENSIONS)))
    if conf["spark.master"].startswith("local"):
        return {**conf, **LOCAL_SETTINGS}
    # Executors on other machines get the jars from the driver.
    return {"spark.jars": ",".join(map(str, (*jars.files("spark"), build.built(), *more_jars(plan)))), **conf}


def starts_fast(rows: int | None) -> bool:
    """Whether a JVM for so many rows is started with the options that make its start fast."""
    return rows is not None and rows <= FEW_ROWS


def is_outgrown(spark: SparkSession, rows: int | None) -> bool:
    """Whether the JVM was started to start fast, and so many rows are worth another JVM."""
    if rows is None or rows <= MANY_ROWS:
        return False  # without asking Spark, which takes longer than to begin a small batch
    return _STARTS_FAST in (spark.conf.get("spark.driver.defaultJavaOptions", "") or "")


def more_jars(plan: Plan) -> list[Path]:
    """The jars of the catalogs, besides Spark's own."""
    return [file for name in more_sets(plan) for file in jars.files(name)]


def more_sets(plan: Plan) -> tuple[str, ...]:
    """The names of the sets of jars that the catalogs need."""
    return tuple(dict.fromkeys(name for catalog in plan.catalogs for name in catalogs.client_of(catalog).jars()))


def _java_options(rows: int | None) -> Iterator[str]:
    """Java's options: among them the cache of Spark's classes from `sluice setup`, which Java ignores if it does not fit, and for
    few rows only the first of Java's two compilers: the other, with all that Java counts for it, takes half of the processor time of a
    run of ten seconds."""
    # Spark's own logging writes the values it filters by, such as a person's address, into the log of the warm Spark.
    yield f"-Dlog4j2.configurationFile={LOGGING}"
    yield "-Xlog:disable -Xlog:all=warning:stderr"  # Java's own warnings are no lines of a command, which others may read as JSON
    yield "-XX:MetaspaceSize=256m"  # with less, Java visits all objects once classes fill it, for a third of a second
    if starts_fast(rows):
        yield f"{_STARTS_FAST} -XX:ReservedCodeCacheSize=240m"  # as much as with both compilers: for one, Java takes a fifth of it
    for file in jars.place().glob(classes("*")):
        yield f'"-XX:SharedArchiveFile={file}" -Xlog:cds*=off:stderr -Xlog:class+path=off:stderr'


def classes(digest: str) -> str:
    """The name of a cache of classes, which is for one version of Sluice's own jar."""
    return f"classes-{build.jar().stem.rpartition('-')[2]}-{digest}.jsa"


def catalog_settings(catalog: CatalogClient) -> dict[str, str]:
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
        catalogs.client_of(catalog).prepare()


def environment(plan: Plan) -> None:
    """Sets the environment variables for a plan's JVM. Its Spark is that of the package pyspark, whatever SPARK_HOME names."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        os.environ["SPARK_HOME"] = str(ivy.spark_home())
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    # At the end of Java's class path, jars do not invalidate the cache of classes.
    earlier_jars = os.environ.get(_CLASS_PATH, "").split(os.pathsep)
    os.environ[_CLASS_PATH] = os.pathsep.join(dict.fromkeys(filter(None, [*earlier_jars, *map(str, more_jars(plan))])))


def start(plan: Plan, rows: int | None = None) -> SparkSession:
    """A session in a JVM of its own, or in this process's JVM if somebody else already runs Spark in it."""
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    prepare(plan)
    if SparkContext._active_spark_context is not None:
        return _in_host(plan)
    place = scratch.make(scratch.own_folder())
    context: Any = SparkContext(conf=SparkConf().setAll(list(settings(plan, rows).items())))
    context._jvm.sluice.Scratch.hold(scratch.lock_of_jvm(place))
    return ready(SparkSession(context, context._jvm.sluice.FirstSession.of(context._jsc.sc())))


def _in_host(plan: Plan) -> SparkSession:
    from pyspark.sql import SparkSession

    host = SparkSession.builder.getOrCreate()
    missing = "Sluice's jars" if not has_jars(host._jvm) else f"`{EXTENSIONS}` in `spark.sql.extensions`"
    extensions = [name.strip() for name in (host.conf.get("spark.sql.extensions", "") or "").split(",")]
    if not has_jars(host._jvm) or EXTENSIONS not in extensions:
        message = f"Spark did not start: this process has one without {missing}"
        raise SetupError("spark-not-started", message, "end it by `spark.stop()`, or run Sluice in a process of its own")
    spark = host.newSession()
    configure(spark, plan)
    _hosts[spark] = host
    activate(spark)
    return ready(spark)


def sibling(spark: SparkSession, plan: Plan) -> SparkSession:
    """A session for this thread beside another one in the same JVM: settings, views and catalogs are its own. Spark shares its cores out
    fairly among threads that have one."""
    spark_of_thread = spark.newSession()
    configure(spark_of_thread, plan)
    activate(spark_of_thread)
    spark_of_thread.sparkContext.setLocalProperty("spark.scheduler.pool", threading.current_thread().name)
    return spark_of_thread


def leave(spark: SparkSession) -> None:
    """Ends a thread's session; the JVM stays for the others."""
    from py4j.protocol import Py4JError

    with suppress(Py4JError, ConnectionError):
        jvm: Any = spark._jvm
        jvm.sluice.SecretCatalog.closeCatalogs(spark._jsparkSession)
        jvm.sluice.ChangedFiles.forget(spark._jsparkSession)


def has_jars(jvm: Any) -> bool:
    """Whether a JVM has Sluice's classes."""
    from py4j.java_gateway import JavaClass

    return isinstance(jvm.sluice.SecretCatalog, JavaClass)


def configure(spark: SparkSession, plan: Plan) -> None:
    """Gives the settings of a plan to a session of a running JVM; settings that are fixed for a JVM stay the JVM's."""
    sql_settings = {key: value for key, value in settings(plan).items() if key.startswith("spark.sql.") and key != WAREHOUSE}
    is_fixed = cast(Any, spark)._jvm.org.apache.spark.sql.internal.SQLConf.isStaticConfigKey
    for key, value in sql_settings.items():
        if spark.conf.get(key, None) != value and not is_fixed(key):
            spark.conf.set(key, value)
    for catalog in plan.catalogs:  # settings of another catalog of this name
        for key in [
            key for key in spark.conf.getAll if key.startswith(f"spark.sql.catalog.{catalog.name}.") and key not in sql_settings
        ]:
            spark.conf.unset(key)


def activate(spark: SparkSession) -> None:
    """Makes a session the session of this thread, from which Iceberg reads the catalogs."""
    jvm: Any = spark._jvm
    jvm.SparkSession.setActiveSession(spark._jsparkSession)


def take(spark: SparkSession) -> None:
    """Makes a session the session of this thread, and forgets the AWS login of a session that was there before."""
    activate(spark)
    cast(Any, spark)._jvm.sluice.SecretCatalog.logOut()


def ready(spark: SparkSession) -> SparkSession:
    logging.getLogger().addFilter(_is_no_remark_of_py4j)
    _cache_lookups(spark)
    return spark


def refuse_older(spark: SparkSession) -> None:
    """Refuses settings in this machine's `spark-defaults.conf` that a spec may not have either."""
    conf = cast(Any, spark)._jsc.sc().conf()
    for prefix in LEGACY_PREFIXES:
        if len(older_settings := conf.getAllWithPrefix(prefix)):
            message = f"this machine's spark-defaults.conf sets `{prefix}{older_settings[0]._1()}`, which decides what SQL means"
            raise SetupError("fixed-setting", message, "remove it there, or unset SPARK_CONF_DIR")


def _is_no_remark_of_py4j(record: logging.LogRecord) -> bool:
    """Drops Py4J's log records: it logs a traceback when Java's process ends, and also raises an error."""
    return record.module not in ("clientserver", "java_gateway")


def is_gone(spark: SparkSession) -> bool:
    """Whether the session or its JVM has ended."""
    from py4j.protocol import Py4JError

    try:
        return bool(cast(Any, spark)._jsc.sc().isStopped())
    except (Py4JError, ConnectionError):
        return True


def memory(spark: SparkSession) -> tuple[int, int] | None:
    """The bytes of memory that the session's Java uses, and the most that it may use; None if it has ended."""
    from py4j.protocol import Py4JError

    try:
        runtime = cast(Any, spark)._jvm.java.lang.Runtime.getRuntime()
        return int(runtime.totalMemory()) - int(runtime.freeMemory()), int(runtime.maxMemory())
    except (Py4JError, OSError, AttributeError, TypeError):  # also while it ends
        return None


def stop(spark: SparkSession) -> None:
    """Ends a session and its JVM; in somebody else's JVM, gives the thread back to the session that was there before."""
    from py4j.protocol import Py4JError

    host = _hosts.pop(spark, None)
    with warnings.catch_warnings(), suppress(Py4JError, ConnectionError):
        warnings.simplefilter("ignore", RuntimeWarning)
        if host is None:
            spark.stop()
        else:
            jvm: Any = spark._jvm
            jvm.sluice.SecretCatalog.forget(spark._jsparkSession)
            jvm.sluice.ChangedFiles.forget(spark._jsparkSession)
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
    """Caches names that PySpark looks up again and again, for each of which Java searches all jars. It looks up the package
    `py4j` 13 times for each Java error, such as a missing table, which takes as long as a commit, others for each expression."""
    jvm: Any = spark._jvm
    jvm.__dict__["py4j"] = Package(jvm, "py4j")
    jvm.__dict__ |= {name: getattr(jvm, name) for name in _OF_EXPRESSIONS}
