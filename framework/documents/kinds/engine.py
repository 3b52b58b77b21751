"""The Spark engine and its settings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from framework import plan as model
from framework.base.errors import Problem
from framework.documents.draft import Draft
from framework.language.kind import Kind
from framework.language.options import Document, later, option
from framework.language.scalars import Master, Memory
from framework.sql.settings import LEGACY_PREFIXES, LOCAL_SETTINGS, SQL_SETTINGS

EXAMPLE = """\
engine: spark
master: local[*]
memory: 4g
conf: {spark.sql.shuffle.partitions: 4}
"""


@dataclass(frozen=True)
class Engine(Document):
    """The Spark engine and its settings."""

    master: Master = option(
        "Where Spark runs; `local[*]` uses all cores of this machine.", default="local[*]", example="local[*]"
    )
    memory: Memory = option("The driver's memory; with `local[…]`, all of Spark's memory.", default="4g", example="4g")
    conf: dict[str, str] = option(
        "Further `spark.*` settings.", default={}, example="{spark.sql.shuffle.partitions: 4}", aka=["config", "settings"]
    )
    remote: None = later(
        "A Spark Connect server.",
        instead="tables are committed in Spark's JVM, which Connect keeps out of reach; name the cluster by `master`",
    )

    def problems(self) -> Iterable[Problem]:
        for key in self.conf:
            if key in SQL_SETTINGS:
                message = f"`{key}` changes the meaning of SQL, so it is always {SQL_SETTINGS[key]}"
                yield Problem(self.key_place("conf", key), "fixed-setting", message, "remove it")
            elif key in LOCAL_SETTINGS and self.master.startswith("local"):
                why = f"{LOCAL_SETTINGS[key]} for a local Spark, since other users of this machine can reach its ports"
                yield Problem(self.key_place("conf", key), "fixed-setting", f"`{key}` is always {why}", "remove it")
            elif key.startswith(LEGACY_PREFIXES):
                message = f"`{key}` gives SQL the meaning of an older Spark"
                yield Problem(self.key_place("conf", key), "fixed-setting", message, "remove it")
            elif not key.startswith("spark."):
                yield Problem(
                    self.key_place("conf", key), "bad-setting", f"`{key}` is not a Spark setting, and Spark would ignore it",
                    f"write `spark.{key}`, if you mean that setting, or remove it",
                )  # fmt: skip


def plan_engine(draft: Draft, documents: tuple[Engine, ...]) -> None:
    for engine in documents[:1]:
        draft.engine = model.Engine(engine.master, engine.memory, tuple(sorted(engine.conf.items())))


KIND = Kind(Engine, plan_engine, one_only=True)
