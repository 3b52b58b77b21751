"""Steps as they run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from framework.base.errors import Where
from framework.plan.bounds import Bounds
from framework.plan.rule import State
from framework.plan.secret import Masks
from framework.plan.source import Lookup
from framework.plan.topic import Column, Fault


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step: the columns it sets, the rows it keeps, the faults a row can have, and the columns after the step. With `each`,
    every item of a list becomes a row of its own, and the column `into` holds the item. Sluice's own steps write their SQL as
    `ColumnSql`; other steps may write a plain `str`."""

    name: str
    where: Where = field(compare=False, repr=False)
    says: tuple[str, ...]
    attempts: tuple[
        tuple[str, str], ...
    ] = ()  # structs of a value and an error, which `assign`, `keep` and `faults` read by name
    assign: tuple[tuple[str, str], ...] = ()
    keep: str | None = None
    faults: tuple[Fault, ...] = ()
    columns: tuple[Column, ...]
    each: Explode | None = None
    of_tombstones: bool = False  # whether its faults are also checked in messages without a value that delete a row
    memory: Remember | None = None
    masks: Masks | None = None
    join: Lookup | None = None
    bounds: tuple[Bounds, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Remember:
    """The memory of a step that compares rows with those of earlier batches: with the rows of its table, or with a `state` of its own.

    `admit` takes the rows after all steps as a frame, and the earlier rows to compare them with (`Earlier` of
    `framework/core/staging/admission.py`). It returns the rows that land. Each batch adds these rows' columns to the state."""

    columns: tuple[str, ...]  # of the table
    admit: Callable[[Any, Any], Any] = field(compare=False, repr=False)
    state: State | None = None


@dataclass(frozen=True)
class Explode:
    """SQL of a list, and the column that holds one item."""

    list: str
    into: str
