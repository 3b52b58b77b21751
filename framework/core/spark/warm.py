"""The warm JVM: the first command that needs a Spark of this machine starts it, and the next ones, one at a time, attach to it.

*Guarantee* A command has a session, a gateway and secrets of its own; what it began is cancelled when it ends, however it ends. The JVM
that is found has the settings, jars, Java, interpreter and environment variables that this command would start one with; else it is ended.
A command never waits for another: where the JVM is busy, it starts a Spark of its own.
*Limit* One JVM for each `.sluice`. Whether an attempt is alive is said by a lock that the JVM holds (`engine/rules/attempts.py`).
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
from framework.systems import secrets

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Environment variables that decide something in a JVM, and beginnings of others; the rest differs from one terminal to the next.
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
_OF_SESSIONS = "spark.sql.catalog."  # but for what Hadoop keeps for all of a JVM
_LOGGER = logging.getLogger(__name__)
_lease: Lease | None = None
_spark: SparkSession | None = None  # the session that has it


def is_wanted(plan: Plan) -> bool:
    """Whether commands may leave a JVM behind here."""
    told = any(os.environ.get(name, "").lower() not in ("", "0", "false") for name in ("SLUICE_COLD", "CI"))
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ  # spark-submit has started a JVM for this process
    return plan.engine.master.startswith("local") and not told and not submitted and not os.environ.get("PYSPARK_SUBMIT_ARGS")


def start(plan: Plan, of: Plan, rows: int | None = None) -> SparkSession | None:
    """A session in the warm JVM of the plan `of`. It is started where there is none, or only one for few rows and these are many.
    None where it is busy, does not work, or this process has a Spark already: the caller starts one of its own."""
    global _lease, _spark
    from pyspark import SparkContext

    if _lease is not None or SparkContext._gateway is not None or not is_wanted(of):
        return None
    try:
        session.environment(of)  # a test does without the jars of the catalogs
        session.prepare(plan)
        lease = _leased(of, rows)
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
    """Whether this process has the JVM."""
    return _lease is not None


def release(spark: SparkSession | None) -> bool:
    """Gives the JVM back; whether it was this session's."""
    global _lease, _spark
    if _lease is None or spark is not _spark:
        return False
    attempts.written_by("")
    _detach()
    lease, _lease, _spark = _lease, None, None
    with lease.connection as connection, suppress(OSError):
        connection.shutdown(socket.SHUT_WR)
        connection.settimeout(CONNECTING)
        while connection.recv(100):  # the next command need not come upon a JVM that is busy with this one's end
            pass
    return True


def give_up() -> None:
    """Ends all that waits for the JVM, for a Ctrl-C while a session starts."""
    warm_jvm.kill_started()
    if _lease is not None:
        with suppress(OSError):
            _lease.connection.shutdown(socket.SHUT_RDWR)


def _leased(of: Plan, rows: int | None) -> Lease | None:
    many = rows is not None and rows > session.MANY
    key = _key(_conf(of, None))
    for_few = f"{key} for few"
    with warm_jvm.turn() as mine:
        if not mine:
            return None
        jvm = warm_jvm.there()
        if jvm and jvm.key != key and (many or jvm.key != for_few):
            if not warm_jvm.end_if_free(jvm):
                return None
            jvm = None
        if jvm is None:
            its = for_few if session.starts_fast(rows) else key
            conf = {**_conf(of, rows), **scratch.settings(scratch.make(scratch.new()))}
            if not warm_jvm.launch([str(ivy.spark_home() / "bin" / "spark-submit")], conf, its, {"SLUICE_HOME", *_secrets()}):
                return None
        return warm_jvm.lease()


def _conf(of: Plan, rows: int | None) -> dict[str, str]:
    """The settings of the JVM, without its own scratch folder: those of commands are their sessions'."""
    conf = {
        key: value for key, value in session.settings(of, rows).items() if not key.startswith(_OF_SESSIONS) or ".hadoop." in key
    }
    options = f"{conf['spark.driver.extraJavaOptions']} -XX:+ExitOnOutOfMemoryError"
    return {**conf, **scratch.settings(scratch.folder()), "spark.driver.extraJavaOptions": options}


def _key(conf: Mapping[str, str]) -> str:
    own = _secrets()
    environment = {name: value for name, value in os.environ.items() if _decides(name) and name not in own}
    folders = [
        ivy.spark_home() / "conf",
        *(Path(os.environ[name]) for name in _FOLDERS if os.environ.get(name)),
    ]
    jars = (jar for name in ("spark.jars", "spark.driver.extraClassPath") for jar in re.split("[,:]", conf.get(name, "")) if jar)
    read = [*(file for folder in folders if folder.is_dir() for file in folder.iterdir()), *filter(Path.is_file, map(Path, jars))]
    files = sorted((str(file), file.stat().st_mtime_ns) for file in read)
    temporary = os.stat(tempfile.gettempdir())  # a service of the system may have one of its own
    program = [version("pyspark"), str(java.installed()), os.getcwd(), temporary.st_dev, temporary.st_ino]
    text = json.dumps([conf, environment, files, program], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _decides(name: str) -> bool:
    return (name.upper() in _DECIDE or name.startswith(_BEGIN)) and name not in _OF_PYSPARK


def _secrets() -> set[str]:
    """The variables that are each command's own, where the JVM stays; not the login of the machine."""
    return secrets.secret_variables() - set(_LOGINS)


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
    if counters:  # it looks twice a second whether it is to end
        Thread(target=counters.shutdown, daemon=True).start()
    with suppress(Py4JError, OSError, AttributeError):
        cast(Any, SparkContext)._gateway.close()
    session.forget()
