"""What a catalog answers to a commit: nothing wrong, refused, or something that leaves it open."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException


class Refused(Exception):
    """The catalog refused a commit: something else was committed before it."""


class Unknown(Exception):
    """The answer to a commit is lost, which does not say that the commit is."""


_REFUSALS = (
    "CommitFailedException",
    "ValidationException",
    "IllegalArgumentException",
    "IllegalStateException",
    "CherrypickAncestorCommitException",
)


@contextmanager
def answers() -> Iterator[None]:
    try:
        yield
    except (Py4JError, PySparkException, OSError) as error:
        name = java_class(error)
        if name in _REFUSALS:
            raise Refused(text(error)) from None
        raise Unknown(text(error)) from None


def is_a(error: Exception, name: str) -> bool:
    return java_class(error) == name


def java_class(error: Exception) -> str:
    """The Java class of an error, of which PySpark turns some into its own."""
    if isinstance(error, Py4JJavaError):
        return str(error.java_exception.getClass().getName()).rpartition(".")[2]
    return type(error).__name__


def text(error: Exception) -> str:
    said = error.java_exception.getMessage() if isinstance(error, Py4JJavaError) else str(error)
    return (str(said or "") or java_class(error)).splitlines()[0]
