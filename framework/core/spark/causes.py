"""Causes of a failed batch or commit, with a code where this machine is the cause: its disk, its permissions, its memory."""

from __future__ import annotations

from framework.base.errors import BatchError, SparkEnded, Transient
from framework.systems import catalogs
from framework.systems.catalogs import DENIED, DISK_FULL, Cause

# Error texts of Java for a full disk and a missing permission. Catalogs add theirs.
_TEXTS = {"no space left on device": DISK_FULL, "permission denied": DENIED, "read-only file system": DENIED}
_STOPPED = ("SparkContext was shut down", "stopped SparkContext", "SparkContext has been shutdown", "Shutdown in progress")
SMALLER = "give `engine` more `memory`, or a pipeline that reads topics a smaller `batch: {rows: …}`"
TRUST = "`JAVA_TOOL_OPTIONS=-Djavax.net.ssl.trustStore=…` names a store that Java trusts"  # where an error says PKIX


def commit_failed(code: str, message: str, cause: str, hint: str) -> BatchError:
    """The error of a commit that is given up, with the catalog's last error text: the next one may go well."""
    return catalog_failed(code, message, cause, hint, Transient)


def catalog_failed(code: str, message: str, cause: str, hint: str, kind: type[BatchError] = BatchError) -> BatchError:
    """The error of a catalog that did not do what it was asked for; a cause on this machine has its own code."""
    named = cause_of(cause)
    if named:
        return BatchError(named.code, f"{message}, since {named.says}: {cause}", named.hint)
    return kind(code, f"{message}: {cause}" if cause else message, hint)


def cause_of(error_text: str) -> Cause | None:
    """The cause on this machine, if the text names one."""
    return next((cause for text, cause in (_TEXTS | catalogs.causes()).items() if text in error_text.lower()), None)


def _java_message(error: Exception) -> str:
    """The text of a Java error; empty if Java, which would have to answer, has ended."""
    from py4j.protocol import Py4JError

    try:
        return str(error)
    except (Py4JError, OSError):
        return ""


def is_spark_gone(error: BaseException) -> bool:
    """Whether Spark has ended or is about to end."""
    from py4j.protocol import Py4JError, Py4JJavaError

    if isinstance(error, ConnectionRefusedError):
        return True
    if not isinstance(error, Py4JError):
        return any(text in str(error) for text in _STOPPED)
    if isinstance(error, Py4JJavaError):
        message = _java_message(error)
        return not message or any(text in message for text in _STOPPED)
    return "Trace:" not in str(error)  # with a trace, Java is alive and does not know the call


def spark_ended() -> SparkEnded:
    return SparkEnded("spark-ended", "Spark ended while it worked", f"{SMALLER}; the next run repeats what was not published")
