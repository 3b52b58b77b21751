"""The warm JVM: the first command that needs a Spark of this machine starts it, and the next ones, one at a time, attach to it.

*Guarantee* A command has a session, a gateway and secrets of its own; its work is cancelled when it ends, however it ends. A
command uses a JVM only if it would start one with the same settings, jars, Java, interpreter and environment variables; it ends
any other. A command never waits for another: if the JVM is busy, it starts a Spark of its own.
*Limit* There is one JVM for each `.sluice`. A lock that the JVM holds tells whether an attempt is alive
(`framework/core/rules/attempts.py`).
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import socket
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, cast

from framework.base.patience import CONNECTING
from framework.core.rules import attempts
from framework.core.spark import scratch, session, warm_jvm
from framework.core.spark.warm_jvm import Lease
from framework.machine.java import ivy, java
from framework.plan import Plan
from framework.systems.secrets.env import secret_variables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Environment variables that decide something in a JVM, and prefixes of others; the rest differs from one terminal to the next.
_DECIDE = (
    "ALL_PROXY",
    "CLASSPATH",
    "HOME",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "NO_PROXY",
    "TMPDIR",
    "TZ",
)
_BEGIN = (
    "AWS_",
    "AZURE_",
    "GOOGLE_",
    "HADOOP_",
    "JAVA_",
    "JDK_",
    "KRB5",
    "LD_",
    "MALLOC_",
    "PYSPARK_",
    "SPARK_",
    "YARN_",
    "_JAVA_",
)
_OF_PYSPARK = ("SPARK_AUTH_SOCKET_TIMEOUT", "SPARK_BUFFER_SIZE")  # which writes them
_LOGINS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "GOOGLE_APPLICATION_CREDENTIALS")  # of the machine
_FOLDERS = ("SPARK_CONF_DIR", "HADOOP_CONF_DIR", "YARN_CONF_DIR")  # of settings in files
_OF_SESSIONS = "spark.sql.catalog."  # except those that Hadoop keeps for the whole JVM
_LOGGER = logging.getLogger(__name__)
_lease: Lease | None = None
_spark: SparkSession | None = None  # the session that uses the lease


def is_wanted(plan: Plan) -> bool:
    """Whether commands may leave a JVM running on this machine."""
    is_refused = any(os.environ.get(name, "").lower() not in ("", "0", "false") for name in ("SLUICE_COLD", "CI"))
    is_submitted = "PYSPARK_GATEWAY_PORT" in os.environ  # spark-submit has started a JVM for this process
    return (
        plan.engine.master.startswith("local")
        and not is_refused
        and not is_submitted
        and not os.environ.get("PYSPARK_SUBMIT_ARGS")
    )


def start(plan: Plan, jvm_plan: Plan, rows: int | None = None) -> SparkSession | None:
    """A session in the warm JVM of `jvm_plan`. Starts that JVM if there is none, or if there is only one for few rows and `rows`
    are many. None if it is busy or does not work, or if this process already has a Spark: the caller then starts its own."""
    global _lease, _spark
    from pyspark import SparkContext

    if _lease is not None or SparkContext._gateway is not None or not is_wanted(jvm_plan):
        return None
    try:
        session.environment(jvm_plan)  # tests may have a JVM without the jars of the catalogs
        session.prepare(plan)
        lease = _leased(jvm_plan, rows)
        if lease is None:
            return None
        _lease = lease
        _spark = _attached(plan, lease)
        attempts.written_by(lease.lock)
        return _spark
    except Exception as error:
        _LOGGER.debug("the warm Spark is not used: %s", error)
        release(_spark)
        return None
    except BaseException:
        release(_spark)
        raise


def is_leased() -> bool:
    """Whether this process uses the warm JVM."""
    return _lease is not None


def release(spark: SparkSession | None) -> bool:
    """Gives the warm JVM back if this session uses it; returns whether it did."""
    global _lease, _spark
    if _lease is None or spark is not _spark:
        return False
    attempts.written_by("")
    _detach()
    lease, _lease, _spark = _lease, None, None
    with lease.connection as connection, suppress(OSError):
        connection.shutdown(socket.SHUT_WR)
        connection.settimeout(CONNECTING)
        while connection.recv(100):  # so that the next command does not meet a JVM that is busy with this one's end
            pass
    return True


def give_up() -> None:
    """Ends all waiting for the JVM, after a Ctrl-C while a session starts."""
    warm_jvm.kill_started()
    if _lease is not None:
        with suppress(OSError):
            _lease.connection.shutdown(socket.SHUT_RDWR)


def _leased(plan: Plan, rows: int | None) -> Lease | None:
    has_many = rows is not None and rows > session.MANY_ROWS
    key = _key(_conf(plan, None))
    for_few = f"{key} for few"
    with warm_jvm.turn() as is_ours:
        if not is_ours:
            return None
        jvm = warm_jvm.living_jvm()
        if jvm and jvm.key != key and (has_many or jvm.key != for_few):
            if not warm_jvm.end_if_free(jvm):
                return None
            jvm = None
        if jvm is None:
            start_key = for_few if session.starts_fast(rows) else key
            conf = {**_conf(plan, rows), **scratch.settings(scratch.make(scratch.new_folder()))}
            if not warm_jvm.launch(
                [str(ivy.spark_home() / "bin" / "spark-submit")], conf, start_key, {"SLUICE_HOME", *_secrets()}
            ):
                return None
        return warm_jvm.lease()


def _conf(plan: Plan, rows: int | None) -> dict[str, str]:
    """The settings of the JVM, without a scratch folder of its own. Settings of catalogs belong to the sessions of commands."""
    conf = {
        key: value for key, value in session.settings(plan, rows).items() if not key.startswith(_OF_SESSIONS) or ".hadoop." in key
    }
    options = f"{conf['spark.driver.extraJavaOptions']} -XX:+ExitOnOutOfMemoryError"
    return {**conf, **scratch.settings(scratch.folder()), "spark.driver.extraJavaOptions": options}


def _key(conf: Mapping[str, str]) -> str:
    secret_names = _secrets()
    environment = {name: value for name, value in os.environ.items() if _decides(name) and name not in secret_names}
    folders = [ivy.spark_home() / "conf", *(Path(os.environ[name]) for name in _FOLDERS if os.environ.get(name))]
    jars = (jar for name in ("spark.jars", "spark.driver.extraClassPath") for jar in re.split("[,:]", conf.get(name, "")) if jar)
    paths = [
        *(file for folder in folders if folder.is_dir() for file in folder.iterdir()),
        *filter(Path.is_file, map(Path, jars)),
    ]
    files = sorted((str(file), file.stat().st_mtime_ns) for file in paths)
    temporary = os.stat(tempfile.gettempdir())  # a service of the system may have one of its own
    program = [version("pyspark"), str(java.installed()), os.getcwd(), temporary.st_dev, temporary.st_ino]
    text = json.dumps([conf, environment, files, program], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _decides(name: str) -> bool:
    return (name.upper() in _DECIDE or name.startswith(_BEGIN)) and name not in _OF_PYSPARK


def _secrets() -> set[str]:
    """The variables with secrets, which each command has for itself while the JVM stays; without the machine's own logins."""
    return secret_variables() - set(_LOGINS)


def _attached(plan: Plan, lease: Lease) -> SparkSession:
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    os.environ |= {"PYSPARK_GATEWAY_PORT": str(lease.port), "PYSPARK_GATEWAY_SECRET": lease.token}
    try:
        gateway: Any = launch_gateway()  # type: ignore[no-untyped-call]
    finally:
        del os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"]
    SparkContext._ensure_initialized(gateway=gateway)
    java_session = gateway.jvm.sluice.Warm.session()
    java_context = gateway.jvm.JavaSparkContext.fromSparkContext(java_session.sparkContext())
    context = SparkContext(gateway=gateway, jsc=java_context, conf=SparkConf(_jconf=java_context.sc().conf()))
    spark = SparkSession(context, java_session)
    session.configure(spark, plan)
    return session.ready(spark)


def _detach() -> None:
    from py4j.protocol import Py4JError
    from pyspark import SparkContext

    counters: Any = getattr(SparkContext._active_spark_context, "_accumulatorServer", None)
    if counters:  # its thread checks twice a second whether to end
        Thread(target=counters.shutdown, daemon=True).start()
    with suppress(Py4JError, OSError, AttributeError):
        cast(Any, SparkContext)._gateway.close()
    session.forget()
