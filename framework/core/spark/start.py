"""Starts Spark, with an error of Sluice's own if Java is missing or does not start, and with a Ctrl-C that ends it at once.

PySpark has neither: a Ctrl-C while it starts ends in tracebacks, and its Java process stays for ever.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from framework.base.errors import NotInstalled, SetupError, SluiceError
from framework.core.spark import scratch, session, warm
from framework.machine.java import java
from framework.machine.processes import children
from framework.plan import Plan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_REMARKS = (b"WARNING: Using incubator modules", b"Setting default log level to ", b"To adjust logging level use ")
_OF_PYSPARK = "_PYSPARK_DRIVER_CONN_INFO_PATH"  # an environment variable that PySpark gives to the Java that it starts
_OFTEN = 0.05  # seconds between two checks for a Ctrl-C


def start(plan: Plan, warm_plan: Plan | None, rows: int | None = None) -> SparkSession:
    """A session for the plan, in the warm JVM of `warm_plan` if that is free, else in a JVM of its own. A JVM that is started for
    few `rows` starts fast and never becomes as fast as others."""
    try:
        from pyspark import SparkContext
    except ModuleNotFoundError as error:
        raise NotInstalled(error.name or "") from None
    java.java()
    earlier_pids, starts_context, has_lease = children(_OF_PYSPARK), SparkContext._active_spark_context is None, warm.is_leased()

    def kill() -> None:
        if not has_lease:  # else a working session uses the warm JVM
            warm.give_up()
        for pid in children(_OF_PYSPARK) - earlier_pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    try:
        with _ctrl_c(kill):
            if warm_plan is not None and (spark := warm.start(plan, warm_plan, rows)) is not None:
                return spark
            _launch(plan, rows)
            return session.start(plan, rows)
    except SluiceError:
        raise
    except Exception as error:
        named_error = _named(error)  # before `kill`: it asks Java for the cause
        kill()
        if starts_context:
            session.forget()
        raise named_error from error


def _launch(plan: Plan, rows: int | None) -> None:
    """Starts Java as PySpark does, without its useless remarks on standard error."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    if SparkContext._gateway is not None:
        if SparkContext._active_spark_context is not None or session.has_jars(SparkContext._jvm):
            return
        session.end_jvm()  # whose Spark has been stopped
    session.prepare(plan)
    place = scratch.make(scratch.own_folder())
    conf = SparkConf().setAll(list(session.settings(plan, rows).items()))
    read_end, write_end = os.pipe()
    threading.Thread(target=_forward, args=(read_end,), daemon=True).start()
    try:
        gateway = launch_gateway(conf, {"stderr": write_end})  # type: ignore[no-untyped-call]
    finally:
        os.close(write_end)
    gateway.jvm.sluice.Scratch.hold(scratch.lock_of_jvm(place))
    gateway.jvm.sluice.Ahead.start()
    SparkContext._ensure_initialized(gateway=gateway)


def _forward(read_end: int) -> None:
    with open(read_end, "rb") as stderr:
        for line in stderr:
            # After a Ctrl-C a command has logging off: its consequences are not shown here either.
            if not line.startswith(_REMARKS) and logging.root.manager.disable < logging.CRITICAL:
                with suppress(OSError, ValueError):  # standard error is closed
                    os.write(2, line)


def _named(error: Exception) -> SetupError:
    from pyspark.errors import PySparkException

    from framework.core.spark.java_errors import text

    is_gone = isinstance(error, PySparkException) and error.getCondition() == "JAVA_GATEWAY_EXITED"
    reason = "its Java ended before it answered, and says why above" if is_gone else text(error)
    hint = "see `memory` and `conf` of the specs' engine; `sluice doctor` checks this machine"
    return SetupError("spark-not-started", f"Spark did not start: {reason}", hint)


@contextmanager
def _ctrl_c(kill: Callable[[], None]) -> Iterator[None]:
    """Makes a Ctrl-C kill Java instead of raising an exception anywhere in PySpark and py4j; the errors that follow become one
    KeyboardInterrupt. Restores the handler of Ctrl-C at the end, since PySpark changes it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.getsignal(signal.SIGINT)
    earlier_mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    finished = threading.Event()

    def watch() -> None:
        while not finished.wait(_OFTEN):
            if signal.SIGINT in signal.sigpending():
                kill()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    interrupted = False
    try:
        yield
    except Exception:
        if signal.SIGINT not in signal.sigpending():
            raise
    finally:
        finished.set()
        watcher.join()
        interrupted = signal.SIGINT in signal.sigpending()
        signal.signal(signal.SIGINT, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, earlier_mask)  # a Ctrl-C that waits arrives now
    if interrupted:
        raise KeyboardInterrupt
