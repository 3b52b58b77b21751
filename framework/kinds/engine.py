"""The Spark that computes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from framework import model
from framework.errors import Problem
from framework.plan.draft import Draft
from framework.spec.kinds import DocumentKind
from framework.spec.options import Kind, later, option
from framework.spec.scalars import Master, Memory
from framework.sql.settings import LEGACY_PREFIXES, LOCAL_SETTINGS, SQL_SETTINGS

EXAMPLE = """\
engine: spark
master: local[*]
memory: 4g
conf: {spark.sql.shuffle.partitions: 4}
"""


@dataclass(frozen=True)
class Engine(Kind):
    """The Spark that computes."""

    master: Master = option(
        "Where Spark runs; `local[*]` is this machine with all its cores.", default="local[*]", example="local[*]"
    )
    memory: Memory = option("Memory of Spark's driver; with `local[…]` that is all of Spark.", default="4g", example="4g")
    conf: dict[str, str] = option(
        "Any further `spark.*` setting.",
        default={},
        example="{spark.sql.shuffle.partitions: 4}",
        aka=["config", "settings"],
    )
    remote: None = later("A Spark Connect server.")

    def problems(self) -> Iterable[Problem]:
        for key in self.conf:
            if key in SQL_SETTINGS:
                yield Problem(
                    self.key_place("conf", key), "fixed-setting", f"`{key}` decides what SQL means, and is always {SQL_SETTINGS[key]} here",
                    "remove it",
                )  # fmt: skip
            elif key in LOCAL_SETTINGS and self.master.startswith("local"):
                yield Problem(
                    self.key_place("conf", key), "fixed-setting", f"`{key}` is always {LOCAL_SETTINGS[key]} for a local Spark: "
                    "other users of the machine can reach its ports", "remove it",
                )  # fmt: skip
            elif key.startswith(LEGACY_PREFIXES):
                yield Problem(
                    self.key_place("conf", key), "fixed-setting", f"`{key}` decides what SQL means, as an older Spark did", "remove it"
                )  # fmt: skip
            elif not key.startswith("spark."):
                yield Problem(
                    self.key_place("conf", key), "bad-setting", f"`{key}` is no setting of Spark, and Spark would pass over it",
                    f"write `spark.{key}`, if it is that one, or remove it",
                )  # fmt: skip


def resolve(draft: Draft, documents: tuple[Engine, ...]) -> None:
    for engine in documents[:1]:
        draft.engine = model.Engine(engine.master, engine.memory, tuple(sorted(engine.conf.items())))


KIND = DocumentKind(Engine, resolve, one_only=True)
