"""The warm JVM: the first command that needs a Spark of this machine starts it, and the next ones, one at a time, attach to it.

*Guarantee* A command has a session, a gateway and secrets of its own; what it began is cancelled when it ends, however it ends. The JVM
that is found has the settings, jars, Java, interpreter and environment variables that this command would start one with; else it is ended.
A command never waits for another: where the JVM is busy, it starts a Spark of its own.
*Limit* One JVM for each `.sluice`. Whether an attempt is alive is said by a lock that the JVM holds (`engine/rules/attempts.py`).
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from framework import java
from framework.engine.rules import attempts
from framework.engine.spark import session, warm_jvm
from framework.engine.spark.warm_jvm import Lease
from framework.model import Plan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# What differs from one terminal to the next and decides nothing in a JVM.
_OF_A_TERMINAL = (
    "_", "PWD", "OLDPWD", "SHLVL", "COLUMNS", "LINES", "PS1", "PROMPT_COMMAND", "STY", "TTY", "WINDOWID", "COLORTERM", "NO_COLOR",
    "PYTHONDONTWRITEBYTECODE", "SLUICE_HOME", "SLUICE_COLD", "CI",
    "SPARK_AUTH_SOCKET_TIMEOUT", "SPARK_BUFFER_SIZE",  # PySpark writes them
)  # fmt: skip
_OF_TERMINALS = (
    "TERM", "TMUX", "SSH_", "XDG_", "DBUS_", "VSCODE_", "ITERM", "WEZTERM", "KITTY", "GPG_", "_SLUICE", "DAGSTER_", "PYTEST_",
)  # fmt: skip
_SMALL = {  # of what has been, for pages that nobody sees
    "spark.ui.retainedJobs": "20", "spark.ui.retainedStages": "20", "spark.ui.retainedTasks": "100", "spark.sql.ui.retainedExecutions": "5",
}  # fmt: skip
_STATIC = ("spark.sql.warehouse.dir", "spark.sql.extensions")
_lease: Lease | None = None


def is_wanted(plan: Plan) -> bool:
    """Whether commands may leave a JVM behind here."""
    return plan.engine.master.startswith("local") and not os.environ.get("SLUICE_COLD") and not os.environ.get("CI")


def start(plan: Plan, of: Plan) -> SparkSession | None:
    """A session in the warm JVM of the plan `of`, which is started where there is none. None where it is busy or another one is needed."""
    global _lease
    if _lease is not None or not is_wanted(of):
        return None
    session.prepare(of)
    _lease = _leased(of)
    if _lease is None:
        return None
    try:
        session.prepare(plan)
        spark = _attached(plan, _lease)
    except BaseException:
        release()
        raise
    attempts.written_by(_lease.lock)
    return spark


def is_leased() -> bool:
    return _lease is not None


def release() -> bool:
    """Gives the JVM back; whether this process had it."""
    global _lease
    if _lease is None:
        return False
    attempts.written_by("")
    _detach()
    _lease.connection.close()
    _lease = None
    return True


def _leased(of: Plan) -> Lease | None:
    from pyspark.find_spark_home import _find_spark_home

    conf = _conf(of)
    key = _key(conf)
    with warm_jvm.turn() as mine:
        if not mine:
            return None
        jvm = warm_jvm.there()
        if jvm and jvm.key != key:
            if not warm_jvm.end_if_free(jvm):
                return None
            jvm = None
        if jvm is None:
            spark = _find_spark_home()  # type: ignore[no-untyped-call]
            if not warm_jvm.launch([f"{spark}/bin/spark-submit"], conf, key):
                return None
        return warm_jvm.lease()


def _conf(of: Plan) -> dict[str, str]:
    """The settings of the JVM: those of commands are their sessions'."""
    scratch = warm_jvm.folder().parent / "spark"
    conf = {key: value for key, value in session.settings(of).items() if not key.startswith("spark.sql.catalog.")}
    return {**conf, **_SMALL, "spark.local.dir": str(scratch), "spark.sql.warehouse.dir": str(scratch / "warehouse")}


def _key(conf: Mapping[str, str]) -> str:
    environment = {
        name: value for name, value in os.environ.items() if name not in _OF_A_TERMINAL and not name.startswith(_OF_TERMINALS)
    }
    text = json.dumps([conf, environment, str(java.installed().binary), os.getcwd()], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


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
    for key, value in session.settings(plan).items():
        if key.startswith("spark.sql.") and key not in _STATIC:
            spark.conf.set(key, value)
    session.ready(spark)
    return spark


def _detach() -> None:
    from py4j.protocol import Py4JError
    from pyspark import SparkContext

    context: Any = SparkContext._active_spark_context
    with suppress(Py4JError, OSError, AttributeError):
        context._accumulatorServer.shutdown()
    with suppress(Py4JError, OSError, AttributeError):
        context._gateway.close()
    session.forget()
