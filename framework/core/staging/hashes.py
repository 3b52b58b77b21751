"""Hashes of keys, by which the rows of a table are looked up before anything is joined, sorted or shuffled.

Guarantee: a row with a key of the batch is never left out; another one may stay, whose key has the same hash.
Cost: 18 to 36 bytes a key in each JVM, and a job that collects them.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from framework.core.staging import StagingTarget, ranges
from framework.core.staging.ranges import KeyRange
from framework.sql.quote import identifier
from framework.sql.settings import FUNCTIONS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MUCH = 64 << 20  # bytes of a table's files; of fewer all rows are compared sooner than the keys are collected
_MOST_MESSAGES = 1_000_000  # of larger batches all JVMs would have to hold the keys


class Hashes:
    """A set of numbers in which tasks look numbers up (`Hashes.java`). It has each number as often as it was given."""

    def __init__(self, numbers: Any, stack: ExitStack) -> None:
        self._numbers = numbers
        self._stack = stack
        stack.callback(_forget, numbers)

    @classmethod
    def of(cls, frame: DataFrame, stack: ExitStack) -> Hashes:
        """The numbers of the frame's first column, kept until the stack ends."""
        jvm: Any = frame.sparkSession._jvm
        return cls(jvm.sluice.Hashes.of(frame._jdf), stack)

    def __len__(self) -> int:
        return int(self._numbers.size())

    def repeated(self) -> Hashes:
        """The numbers that were given more than once."""
        return Hashes(self._numbers.repeated(), self._stack)

    def and_also(self, hashes: Hashes) -> Hashes:
        return Hashes(getattr(self._numbers, "and")(hashes._numbers), self._stack)

    def among(self, hashes: Hashes) -> int:
        """How many of the numbers are among those of `hashes`."""
        return int(self._numbers.among(hashes._numbers))

    def has(self, number: str) -> str:
        """SQL of whether a number, which is given as SQL, is one of them."""
        return f"{FUNCTIONS}.{identifier(f'among:{self._numbers.id()}')}({number})"


def _forget(numbers: Any) -> None:
    from py4j.protocol import Py4JError

    with suppress(Py4JError, ConnectionError):
        numbers.forget()


def narrowed(target: StagingTarget, near: KeyRange, rows: DataFrame, keys: Sequence[str], stack: ExitStack) -> KeyRange:
    """The condition for rows with the same keys, which also compares the hashes of the keys where it leaves much to read. The rows must
    have been kept."""
    is_narrow = near.listed or (near.size is not None and near.size < _MUCH)
    if is_narrow or not ranges.is_large(target) or target.size > _MOST_MESSAGES or target.pipeline.explodes:
        return near
    hashes = Hashes.of(rows.selectExpr(_hash(target, keys)), stack)
    return replace(near, sql=" AND ".join(filter(None, (near.sql, hashes.has(_hash(target, keys, "t"))))))


def _hash(target: StagingTarget, keys: Sequence[str], alias: str = "") -> str:
    """SQL of the hash of a row's keys."""
    return f"xxhash64({', '.join(target.typed(name, alias) for name in keys)})"
