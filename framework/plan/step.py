"""Steps as they run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field, fields
from typing import Any, TypeAlias

from framework.base.errors import Where
from framework.plan.bounds import Bounds
from framework.plan.rule import State
from framework.plan.secret import Masks
from framework.plan.source import Lookup
from framework.plan.topic import Column, Fault


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


@dataclass(frozen=True)
class Measure:
    """Bounds of groups of rows, which are measured on the pipeline's own table when a batch begins."""

    bounds: tuple[Bounds, ...]


Effect: TypeAlias = Explode | Remember | Masks | Lookup | Measure
"""What a step does that is more than to compute columns, keep rows and find faults."""


@dataclass(frozen=True)
class Computed:
    """The work of a step on rows: the columns it sets, the rows it keeps, the faults a row can have, and the columns after the step.
    Sluice's own steps write their SQL as `ColumnSql`; other steps may write a plain `str`."""

    columns: tuple[Column, ...]
    assign: tuple[tuple[str, str], ...] = ()
    _: KW_ONLY
    keep: str | None = None
    faults: tuple[Fault, ...] = ()
    says: tuple[str, ...] = ()
    effect: Effect | None = None


@dataclass(frozen=True, kw_only=True)
class Step(Computed):
    """One step of a pipeline. `attempts` are structs of a value and an error, which `assign`, `keep` and `faults` read by name."""

    name: str
    where: Where = field(compare=False, repr=False)
    attempts: tuple[tuple[str, str], ...] = ()
    of_tombstones: bool = False  # whether its faults are also checked in messages without a value that delete a row

    @classmethod
    def of(cls, computed: Computed, **own: Any) -> Step:
        """The step that has all parts of `computed`, and fields of its `own`."""
        return cls(**{part.name: getattr(computed, part.name) for part in fields(Computed)}, **own)

    @property
    def each(self) -> Explode | None:
        """The list of which every item becomes a row of its own."""
        return self.effect if isinstance(self.effect, Explode) else None

    @property
    def memory(self) -> Remember | None:
        return self.effect if isinstance(self.effect, Remember) else None

    @property
    def masks(self) -> Masks | None:
        return self.effect if isinstance(self.effect, Masks) else None

    @property
    def join(self) -> Lookup | None:
        return self.effect if isinstance(self.effect, Lookup) else None

    @property
    def bounds(self) -> tuple[Bounds, ...]:
        return self.effect.bounds if isinstance(self.effect, Measure) else ()
