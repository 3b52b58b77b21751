"""Spark with the catalogs of the specs, as resources of Dagster: for Sluice's own runs, and for assets of users."""

# Without `from __future__ import annotations`: Dagster reads the types of a resource's attributes.
from contextlib import suppress
from pathlib import Path
from typing import Any

from dagster import InitResourceContext
from dagster_pyspark import LazyPySparkResource
from dagster_spark.utils import flatten_dict
from pydantic import Field
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from framework.base.errors import SetupError
from framework.base.home import environment_of
from framework.core.spark import session, start, warm
from framework.host.plans import make
from framework.plan import Plan


class SparkOfARun(LazyPySparkResource):
    """A session in the warm JVM, or one of its own, which is stopped at the end of the run."""

    def has_session(self, rows: int | None) -> bool:
        """Whether a session is there that works, and for about so many rows."""
        spark = self._spark_session
        return spark is not None and not session.is_gone(spark) and not session.is_outgrown(spark, rows)

    def session_of(self, plan: Plan, rows: int | None) -> SparkSession:
        if not self.has_session(rows):
            self.forget()
        if self._spark_session is None:
            self._spark_session = start.start(plan, plan, rows)
        spark: SparkSession = self._spark_session
        session.take(spark)  # another folder of this code location may have used this thread
        return spark

    def teardown_after_execution(self, context: InitResourceContext) -> None:
        with suppress(Exception):  # its connection may have died with a run that was canceled
            self.forget()

    def forget(self) -> None:
        """Stop the session, so that the next use starts another one."""
        if self._spark_session is not None:
            spark, self._spark_session = self._spark_session, None
            if not warm.release(spark):
                session.stop(spark)


class SluiceSparkResource(SparkOfARun):
    """Dagster's `LazyPySparkResource` with Sluice's Spark session, for assets and ops of your own: it reads the tables of the specs by
    their catalogs, as in `spark_session.table("lake.shop.orders")`. Spark starts at the first use, and stops at the end of the run."""

    specs: str = Field(default="specs", description="The folder with the specs, whose catalogs and engine the session has.")
    env: str | None = Field(
        default=None, description="The environment, a folder of `environments`; without it SLUICE_ENV, or `local`."
    )
    spark_config: dict[str, Any] = Field(default={}, description="Settings of this session, besides those of the specs.")

    def _init_session(self) -> None:
        if self._spark_session is not None and not session.is_gone(self._spark_session):
            session.take(self._spark_session)
            return
        spark = self.session_of(make(Path(self.specs), environment_of(self.env)), None)
        for key, value in flatten_dict(self.spark_config):  # type: ignore[no-untyped-call]
            try:
                spark.conf.set(key, value)
            except PySparkException as error:
                self.forget()
                message = f"`spark_config` cannot set `{key}` in a session that runs: {error.getCondition() or error}"
                raise SetupError("fixed-setting", message, "set it in `conf` of the specs' engine") from None
