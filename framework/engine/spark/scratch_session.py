"""Spark apart from a plan's own: on this machine, quick to start, with Sluice's state in a folder that is gone afterwards."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from framework.engine.spark import session
from framework.home import home
from framework.model import Engine

_CONF = {
    # Starts in half the time; some hundred rows are never worth more.
    "spark.driver.extraJavaOptions": f"-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dlog4j2.configurationFile={session.LOGGING}",
    "spark.sql.shuffle.partitions": "2",
}


def engine(spec_engine: Engine, conf: Mapping[str, str], catalogs: bool) -> Engine:
    """Of what a spec's engine says only what changes SQL is kept, and, with `catalogs`, what says where its catalogs are."""
    kept = {key: value for key, value in spec_engine.conf if key.startswith("spark.sql.")}
    if not catalogs:
        kept = {key: value for key, value in kept.items() if not key.startswith("spark.sql.catalog")}
    return Engine("local[2]", "1g", tuple(sorted({**_CONF, **conf, **kept}.items())))


@contextmanager
def folder(purpose: str) -> Iterator[Path]:
    """Where `.sluice` is meanwhile, with the jars that there are."""
    before = os.environ.get("SLUICE_HOME")
    with tempfile.TemporaryDirectory(prefix=f"sluice-{purpose}-", ignore_cleanup_errors=True) as name:
        Path(name, "jars").symlink_to(home() / "jars")
        os.environ["SLUICE_HOME"] = name
        try:
            yield Path(name)
        finally:
            os.environ.pop("SLUICE_HOME")
            if before is not None:
                os.environ["SLUICE_HOME"] = before
