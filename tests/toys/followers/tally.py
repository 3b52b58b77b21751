"""Writes one line with the rows of each step into a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from framework.core.follow.committed import FollowInput
from framework.documents.draft import Draft
from framework.language.options import OptionGroup, option
from framework.plan import Follower, Pipeline


@dataclass(frozen=True)
class Options(OptionGroup):
    """Write down how many rows came."""

    known_by: ClassVar[str | None] = "tally"

    tally: str = option("The file.", example="tally.txt")


def plan_follower(written: Options, _pipeline: Pipeline, _draft: Draft) -> Follower:
    return Follower(
        type="tally",
        name=written.tally,
        where=written.place(),
        says=("how many rows came",),
        options=written.tally,
        follow=follow,
    )


def follow(committed: FollowInput) -> int:
    rows = committed.changes.now().count()
    with Path(committed.follower.options).open("a", encoding="utf-8") as file:
        file.write(f"{committed.until} {rows}\n")
    return rows
