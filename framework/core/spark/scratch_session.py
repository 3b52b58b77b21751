"""A Spark session separate from a plan's own: on this machine, quick to start, with Sluice's state in a temporary folder."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from framework.core.spark import session, warm_jvm
from framework.machine.java import jars
from framework.plan import Engine

_CONF = {
    "spark.driver.extraJavaOptions": f"-XX:+UseSerialGC -Dlog4j2.configurationFile={session.LOGGING}",
    "spark.sql.shuffle.partitions": "2",
}


def engine(spec_engine: Engine, conf: Mapping[str, str], catalogs: bool) -> Engine:
    """A quick engine with only the settings of the spec's engine that change SQL and, with `catalogs`, its catalogs."""
    settings = {key: value for key, value in spec_engine.conf if key.startswith("spark.sql.")}
    if not catalogs:
        settings = {key: value for key, value in settings.items() if not key.startswith("spark.sql.catalog")}
    return Engine("local[2]", "1g", tuple(sorted({**_CONF, **conf, **settings}.items())))


@contextmanager
def folder(purpose: str) -> Iterator[Path]:
    """Uses a temporary `.sluice` with the existing jars."""
    earlier_home = os.environ.get("SLUICE_HOME")
    with tempfile.TemporaryDirectory(prefix=f"sluice-{purpose}-", ignore_cleanup_errors=True) as name:
        Path(name, "jars").symlink_to(jars.place())
        Path(name, "warm").symlink_to(warm_jvm.folder())  # which may not exist yet
        os.environ["SLUICE_HOME"] = name
        try:
            yield Path(name)
        finally:
            os.environ.pop("SLUICE_HOME")
            if earlier_home is not None:
                os.environ["SLUICE_HOME"] = earlier_home
