"""The answers of a catalog to a commit: done, refused, or unknown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from framework.core.spark.causes import is_spark_gone, spark_ended


class CommitRefused(Exception):
    """The catalog refused a commit: something else was committed before it."""


class CommitUnknown(Exception):
    """The catalog's answer to a commit is lost; the commit may be done or not."""


_REFUSALS = (
    "CommitFailedException",
    "ValidationException",
    "IllegalArgumentException",
    "IllegalStateException",
    "CherrypickAncestorCommitException",
)
_WRAPPED = ("CommitFailedException", "ValidationException")  # by a RuntimeException of one of Iceberg's actions
_CLASS = re.compile(r"^([a-z]\w*\.)+\w+(Exception|Error): ")  # Java writes an error's class before its message
_LONGEST = 300  # characters of a cause's message
_DEEPEST = 8  # causes of causes


@contextmanager
def commit_answers() -> Iterator[None]:
    try:
        yield
    except (Py4JError, PySparkException, OSError) as error:
        if is_spark_gone(error):
            raise spark_ended() from None
        if _is_refusal(error):
            raise CommitRefused(text(error)) from None
        raise CommitUnknown(text(error)) from None


def _is_refusal(error: Exception) -> bool:
    name = java_class(error)
    if name == "RuntimeException":
        return any(class_name.rpartition(".")[2] in _WRAPPED for class_name in java_classes(error)[1:2])
    return name in _REFUSALS


def is_a(error: Exception, name: str) -> bool:
    return java_class(error) == name


def java_class(error: Exception) -> str:
    """The class of an error in Java; PySpark turns some into classes of its own, which have the same names."""
    if isinstance(error, Py4JJavaError):
        return str(error.java_exception.getClass().getName()).rpartition(".")[2]
    return type(error).__name__


def java_classes(error: Exception) -> tuple[str, ...]:
    """The Java classes of an error and of its causes, with their packages; empty if Java has ended."""
    return tuple(name for name, _ in _named_causes(error))


def message_of(error: Exception, name: str) -> str:
    """The message of an error, or of one of its causes, with this Java class; empty if there is none."""
    return dict(reversed(_named_causes(error))).get(name, "")


def _named_causes(error: Exception) -> tuple[tuple[str, str], ...]:
    """The Java classes and the messages of an error and of its causes."""
    origin = error.java_exception if isinstance(error, Py4JJavaError) else getattr(error, "_origin", None)
    try:
        return tuple((str(cause.getClass().getName()), str(cause.getMessage() or "")) for cause in _causes(origin))
    except (Py4JError, OSError):
        return ()


def text(error: Exception) -> str:
    """The first lines of an error's text and of its causes' texts."""
    lines: list[str] = []
    for message in _messages(error):
        line = _CLASS.sub("", (message.splitlines() or [""])[0])[:_LONGEST]
        if line and not any(line in earlier_line for earlier_line in lines):
            lines.append(line)
    return ": ".join(lines) or java_class(error)


def _messages(error: Exception) -> Iterator[str]:
    if not isinstance(error, Py4JJavaError):
        yield str(error)
        return
    for cause in _causes(error.java_exception):
        yield str(cause.getMessage() or "")


def _causes(error: Any) -> Iterator[Any]:
    """Yields a Java error and its causes."""
    for _ in range(_DEEPEST):
        if error is None:
            return
        yield error
        error = error.getCause()
