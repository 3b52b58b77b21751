"""The catalogs of a plan in a session of Spark that is there already."""

from __future__ import annotations

from typing import TYPE_CHECKING

from framework.core.spark import session
from framework.plan import Plan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def tell(spark: SparkSession, plan: Plan) -> None:
    """Sets the plan's catalogs. Spark keeps the first catalog of a name: one that differs needs another name."""
    for key, value in session.settings(plan).items():
        if key.startswith("spark.sql.catalog."):
            spark.conf.set(key, value)
