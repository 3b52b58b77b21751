"""A key that ends soon. Keys that end are not in this version, so it is refused by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from framework.base.errors import Problem, Where
from framework.documents.draft import Draft
from framework.language.options import OptionGroup, option
from framework.language.scalars import Duration
from framework.plan import Pipeline


@dataclass(frozen=True)
class Options(OptionGroup):
    """A key ends so soon: not in this version."""

    known_by: ClassVar[str | None] = "key_ends_within"

    key_ends_within: Duration = option("How soon. Not in this version.", example="7d")


def plan_condition(written: Options, _where: Where, _pipelines: Sequence[Pipeline], draft: Draft) -> None:
    message = "`key_ends_within` is not in this version of Sluice, which rotates no keys"
    draft.problems.append(
        Problem(written.key_place("key_ends_within"), "not-in-this-version", message, "remove it, and rotate keys by hand")
    )
