"""Unexpected errors: shown in one line, and written in full to a file in `.sluice/logs`."""

from __future__ import annotations

import errno
import hashlib
import os
import sys
import traceback
from contextlib import suppress

from framework.base.errors import Defect, SluiceError
from framework.base.home import home, private
from framework.core.spark.causes import is_spark_gone, spark_ended
from framework.systems.catalogs import DENIED, DISK_FULL

_CAUSES = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), DISK_FULL),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), DENIED),
}


def as_sluice_error(name: str, error: Exception) -> SluiceError:
    """An error of a pipeline or a command with its own code, or as an unexpected error."""
    if isinstance(error, SluiceError):
        return error
    if isinstance(error, OSError) and error.errno in _CAUSES:
        cause = _CAUSES[error.errno]
        prefix = f"{error.filename}: " if error.filename else ""
        return SluiceError(cause.code, f"{prefix}{cause.says}", cause.hint)
    return spark_ended() if _has_spark() and is_spark_gone(error) else as_defect(name, error)


def as_defect(name: str, error: Exception) -> Defect:
    message = f"{type(error).__name__}: {_text(error)}"
    # An error that comes back each time that a pipeline is tried has one file.
    places = [f"{frame.filename}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)]
    digest = hashlib.sha256("\n".join([type(error).__name__, *places]).encode()).hexdigest()[:12]
    path = home() / "logs" / f"{name}-{digest}.log"
    hint = "run again; if it comes back, report it"
    with suppress(OSError):  # a full disk hides no error
        private("logs")
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write("".join(traceback.format_exception(error)))
        hint += f" with {path}, which has the whole error"
    return Defect("unexpected-error", message, hint)


def _has_spark() -> bool:
    """Whether this process has loaded Spark; otherwise no error is Spark's."""
    return "py4j" in sys.modules


def _text(error: Exception) -> str:
    if not _has_spark():
        return str(error)
    from framework.core.spark.java_errors import text

    return text(error)
