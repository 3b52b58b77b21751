"""The start of Spark: an error with a name where Java is missing or does not come up, and a Ctrl-C that ends it at once.

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
_OF_PYSPARK = "_PYSPARK_DRIVER_CONN_INFO_PATH"  # a variable that it gives to the Java that it starts
_OFTEN = 0.05  # seconds between two checks for a Ctrl-C


def start(plan: Plan, warm_of: Plan | None, rows: int | None = None) -> SparkSession:
    """A session for the plan; in the warm JVM of the plan `warm_of` where it is free, else in a JVM of its own. One that is started for
    few `rows` starts fast and never becomes as fast as another."""
    try:
        from pyspark import SparkContext
    except ModuleNotFoundError as error:
        raise NotInstalled(error.name or "") from None
    java.java()
    before, launches, has = children(_OF_PYSPARK), SparkContext._active_spark_context is None, warm.is_leased()

    def kill() -> None:
        if not has:  # else it is that of a session that works
            warm.give_up()
        for each in children(_OF_PYSPARK) - before:
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)

    try:
        with _ctrl_c(kill):
            if warm_of is not None and (attached := warm.start(plan, warm_of, rows)) is not None:
                return attached
            _launch(plan, rows)
            return session.start(plan, rows)
    except SluiceError:
        raise
    except Exception as error:
        named = _named(error)  # Java is asked what it was
        kill()
        if launches:
            session.forget()
        raise named from error


def _launch(plan: Plan, rows: int | None) -> None:
    """Starts Java as PySpark does, without its useless remarks on standard error."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    if SparkContext._gateway is not None:
        if SparkContext._active_spark_context is not None or session.has_jars(SparkContext._jvm):
            return
        session.end_jvm()  # whose Spark has been stopped
    session.prepare(plan)
    place = scratch.make(scratch.own())
    conf = SparkConf().setAll(list(session.settings(plan, rows).items()))
    reads, writes = os.pipe()
    threading.Thread(target=_forward, args=(reads,), daemon=True).start()
    try:
        gateway = launch_gateway(conf, {"stderr": writes})  # type: ignore[no-untyped-call]
    finally:
        os.close(writes)
    gateway.jvm.sluice.Scratch.hold(scratch.lock_of_jvm(place))
    gateway.jvm.sluice.Ahead.start()
    SparkContext._ensure_initialized(gateway=gateway)


def _forward(reads: int) -> None:
    with open(reads, "rb") as stderr:
        for line in stderr:
            # After a Ctrl-C a command has logging off: its consequences are not shown here either.
            if not line.startswith(_REMARKS) and logging.root.manager.disable < logging.CRITICAL:
                with suppress(OSError, ValueError):  # standard error is closed
                    os.write(2, line)


def _named(error: Exception) -> SetupError:
    from pyspark.errors import PySparkException

    from framework.core.spark.java_errors import text

    gone = isinstance(error, PySparkException) and error.getCondition() == "JAVA_GATEWAY_EXITED"
    why = "its Java ended before it answered, and says why above" if gone else text(error)
    hint = "see `memory` and `conf` of the specs' engine; `sluice doctor` checks this machine"
    return SetupError("spark-not-started", f"Spark did not start: {why}", hint)


@contextmanager
def _ctrl_c(kill: Callable[[], None]) -> Iterator[None]:
    """Inside, a Ctrl-C kills Java instead of raising an exception anywhere in PySpark and py4j; the errors that follow become one
    KeyboardInterrupt. Afterwards restores the handler of Ctrl-C, which PySpark changes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    meaning = signal.getsignal(signal.SIGINT)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    over = threading.Event()

    def watch() -> None:
        while not over.wait(_OFTEN):
            if signal.SIGINT in signal.sigpending():
                kill()

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    interrupted = False
    try:
        yield
    except Exception:
        if signal.SIGINT not in signal.sigpending():
            raise
    finally:
        over.set()
        watching.join()
        interrupted = signal.SIGINT in signal.sigpending()
        signal.signal(signal.SIGINT, meaning)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)  # one that waits comes now
    if interrupted:
        raise KeyboardInterrupt
