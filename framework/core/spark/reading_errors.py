"""Spark's errors while it reads and writes, with codes and hints."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from framework.base.errors import BatchError, Transient
from framework.core.spark.causes import SMALLER, TRUST, cause_of, is_spark_gone, spark_ended
from framework.plan import Pipeline
from framework.systems.catalogs import Cause

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


# Iceberg's errors if a catalog's server did not answer, or not as it should.
_OF_CATALOG = {
    f"org.apache.iceberg.exceptions.{name}Exception"
    for name in ("CommitStateUnknown", "Forbidden", "NotAuthorized", "REST", "ServiceFailure", "ServiceUnavailable")
}
_NO_TOKEN = "javax.security.auth.login.LoginException"
_LOST = "sluice.MessagesGone"
_LOGIN = {
    "org.apache.kafka.common.errors.SslAuthenticationException": "does not trust its certificate",
    "org.apache.kafka.common.errors.SaslAuthenticationException": "could not log in",
}
_UNKNOWN_KEY = "sluice.UnknownKey"
_NO_BRANCH = "Cannot use branch (does not exist)"  # Iceberg has no class of errors for it


@contextmanager
def named_errors(pipeline: Pipeline) -> Iterator[None]:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JError, PySparkException, ConnectionRefusedError) as error:
        from framework.core.spark.java_errors import java_classes

        if any(name.endswith("OutOfMemoryError") for name in java_classes(error)):
            raise BatchError(
                "out-of-memory", "Spark ran out of memory", f"{SMALLER}; nothing of this batch was published"
            ) from None
        if is_spark_gone(error):
            raise spark_ended() from None
        _name(pipeline, error)
        raise


@contextmanager
def cached_frame(frame: DataFrame) -> Iterator[DataFrame]:
    """Caches a frame while it is used. If Spark ends before the frame is released, the original error is raised."""
    from py4j.protocol import Py4JError

    frame.persist()
    try:
        yield frame
    finally:
        with suppress(Py4JError, ConnectionError):
            frame.unpersist()


@contextmanager
def held_frame(frame: DataFrame, carries: bool = False) -> Iterator[tuple[DataFrame, Any]]:
    """Computes a frame once and holds its rows while they are used (`Held.java`). Returns them, and what Java knows of them. If a machine
    of a cluster is lost, its part is computed again. With `carries`, the bad ones of judged rows are wanted."""
    from py4j.protocol import Py4JError
    from pyspark.sql import DataFrame

    jvm: Any = frame.sparkSession._jvm
    held = jvm.sluice.Held.of(frame._jdf, carries)
    try:
        yield DataFrame(held.rows(), frame.sparkSession), held
    finally:
        with suppress(Py4JError, ConnectionError):
            held.release()


def _name(pipeline: Pipeline, error: Exception) -> None:
    from framework.core.spark.java_errors import CommitRefused, CommitUnknown, java_classes, message_of, text

    error_text, classes = str(error), java_classes(error)
    if _LOST in classes:
        names = ", ".join(pipeline.sources)
        message = f"Kafka lost messages of {names} while they were read"
        raise Transient("messages-gone", message, "run again: the error then names the missing offsets") from None
    if _NO_TOKEN in classes:
        from framework.core.kafka.cluster import without_token

        cluster = next(topic.cluster for topic in pipeline.topics if topic.cluster.security.oauth)
        raise without_token(cluster, text(error)) from None
    if reason := next((_LOGIN[name] for name in classes if name in _LOGIN), None):
        message = f"Spark cannot read from Kafka at {_bootstrap(pipeline)}: Java {reason}"
        raise BatchError("kafka-refused", message, f"{TRUST}; see `security` of the cluster, too") from None
    if _NO_BRANCH in error_text:
        # A branch of remembered deletes that another run has deleted or a rebuild has replaced.
        raise CommitRefused(text(error)) from None
    if _OF_CATALOG.intersection(classes):
        raise CommitUnknown(text(error)) from None
    if key_message := message_of(error, _UNKNOWN_KEY):
        hint = "list the key, with its own secret, under `old` of `mask: {keys: …}`; nothing was published"
        raise BatchError("mask-key", key_message, hint) from None
    if cause := cause_of(error_text):
        message = f"Spark failed, since {cause.says}: {_line_of(error_text, cause)}; nothing of this batch was published"
        raise BatchError(cause.code, message, cause.hint) from None
    if column := _without_null(error):
        message = f"{pipeline.table.identifier} takes no null in `{column}`, and a row has one; nothing was published"
        hint = (
            f"write `required: true` for `{column}`, so that such a message becomes a bad row; or let the table take nulls in it"
        )
        raise BatchError("null-refused", message, hint) from None
    if pipeline.select and (failure := _row_failure(error)):
        hint = f"{failure[1] or 'write it so that it has a value for each row'}; nothing was published"
        message = f"the select of {pipeline.name} cannot be computed for some row: {failure[0]}"
        raise BatchError("select-failed", message, hint) from None


def _without_null(error: Exception) -> str | None:
    """The column of a table that another program created as NOT NULL, if a row had no value for it."""
    from pyspark.errors import PySparkException

    if isinstance(error, PySparkException) and error.getCondition() == "NOT_NULL_ASSERT_VIOLATION":
        return (error.getMessageParameters() or {}).get("walkedTypePath", "").strip() or "a column"
    return None


def _row_failure(error: Exception) -> tuple[str, str] | None:
    """The reason why an expression has no value for some row, and what Spark says to write instead; None for any other error."""
    from pyspark.errors import PySparkException

    if not isinstance(error, PySparkException) or not (error.getSqlState() or "").startswith(("22", "P0001")):
        return None
    text = str(error).partition(" SQLSTATE")[0].partition(" If necessary set ")[0].partition("] ")[2]
    reason, use, hint = text.partition(" Use `")
    return reason.rstrip("."), f"use `{hint}".rstrip(".") if use else ""


def _line_of(error_text: str, cause: Cause) -> str:
    """The line with the cause, without the names of Java's errors."""
    line = next(line for line in error_text.splitlines() if cause_of(line) == cause)
    return line.rpartition("Exception: ")[2][:300]


def _bootstrap(pipeline: Pipeline) -> str:
    return ", ".join(dict.fromkeys(topic.cluster.bootstrap for topic in pipeline.topics))
