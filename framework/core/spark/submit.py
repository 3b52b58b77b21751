"""The command by which `spark-submit` runs pipelines, with the settings of a session that Sluice starts itself."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence

from framework.core.spark import session
from framework.machine.java import jars
from framework.machine.jvm import build
from framework.plan import Plan

# Settings of this machine's driver alone, and settings that have an option of their own.
_OTHERWISE = (
    "spark.master", "spark.app.name", "spark.jars", "spark.driver.memory", "spark.driver.extraClassPath", "spark.driver.extraJavaOptions",
    "spark.driver.defaultJavaOptions", "spark.local.dir", "spark.sql.warehouse.dir",
)  # fmt: skip


def lines(plan: Plan, program: str, arguments: Sequence[str]) -> Iterator[str]:
    """Yields a shell line for each option; the last line is the program that runs."""
    conf = session.settings(plan)
    yield "spark-submit"
    for option, value in _options(plan, conf):
        yield f"  {option} {shlex.quote(value)}"
    for key, value in sorted(conf.items()):
        if key not in _OTHERWISE:
            yield f"  --conf {shlex.quote(f'{key}={value}')}"
    yield f"  {shlex.join([program, *arguments])}"


def _options(plan: Plan, conf: dict[str, str]) -> Iterator[tuple[str, str]]:
    catalog_jars = session.more_jars(plan)
    yield "--name", "sluice"
    yield "--master", conf["spark.master"]
    yield "--deploy-mode", "client"
    yield "--driver-memory", conf["spark.driver.memory"]
    yield "--driver-class-path", os.pathsep.join([jars.class_path("spark"), str(build.built()), *map(str, catalog_jars)])
    yield "--driver-java-options", conf["spark.driver.extraJavaOptions"]
    if "spark.jars" in conf:
        yield "--jars", conf["spark.jars"]
