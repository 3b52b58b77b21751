"""Why a batch or a commit failed, by name where this machine is to blame: its disk, its rights, its memory."""

from __future__ import annotations

from dataclasses import dataclass

from framework.errors import BatchError, SparkEnded


@dataclass(frozen=True)
class Cause:
    code: str
    says: str
    hint: str


# What a full disk, a missing right and another program say, in Java's and in SQLite's words.
_FULL = Cause("disk-full", "the disk is full", "free some space and run again")
_DENIED = Cause("permission-denied", "access is denied", "give the user who runs Sluice the right that is missing, and run again")
_LOCKED = Cause("catalog-locked", "the catalog's file is locked", "close it in the other program, and run again")
_TEXTS = {
    "no space left on device": _FULL,
    "database or disk is full": _FULL,
    "permission denied": _DENIED,
    "read-only file system": _DENIED,
    "readonly database": _DENIED,
    "database is locked": _LOCKED,
    "sqlite_busy": _LOCKED,
}
_STOPPED = ("SparkContext was shut down", "stopped SparkContext", "SparkContext has been shutdown", "Shutdown in progress")


def commit_failed(code: str, message: str, cause: str, hint: str) -> BatchError:
    """A commit that is given up, with what the catalog said last; a cause that the machine has is named."""
    named = cause_of(cause)
    if named:
        return BatchError(named.code, f"{message}, since {named.says}: {cause}", named.hint)
    return BatchError(code, f"{message}: {cause}" if cause else message, hint)


def cause_of(text: str) -> Cause | None:
    """What is wrong with the machine, if it is that."""
    return next((cause for text, cause in _TEXTS.items() if text in text.lower()), None)


def java_message(error: Exception) -> str:
    """What an error of Java's says; nothing where Java is gone, which is asked for it only now."""
    from py4j.protocol import Py4JError

    try:
        return str(error)
    except (Py4JError, OSError):
        return ""


def is_spark_gone(error: BaseException) -> bool:
    """Whether Spark has ended, or is about to: then nobody is left to answer."""
    from py4j.protocol import Py4JError, Py4JJavaError

    if isinstance(error, ConnectionRefusedError):
        return True
    if not isinstance(error, Py4JError):
        return any(text in str(error) for text in _STOPPED)
    if isinstance(error, Py4JJavaError):
        text = java_message(error)
        return not text or any(text in text for text in _STOPPED)
    return "Trace:" not in str(error)  # of a call that Java did not know it says what it looked for


def spark_ended() -> SparkEnded:
    hint = "give `engine` more `memory`, or the pipeline a smaller `batch: {rows: …}`; what was not published is done again"
    return SparkEnded("spark-ended", "Spark ended while it worked", hint)
