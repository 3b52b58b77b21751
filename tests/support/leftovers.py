"""A command that leaves all it can in the warm JVM, and one that finds none of it: `python -m tests.support.leftovers SPECS`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from framework.core.context.context import Context
from framework.host.plans import make
from framework.plan import MaskKey, SecretRef
from framework.sql import masks

SERIALIZER = "org.apache.kafka.common.serialization.ByteArraySerializer"


def sending(jvm: Any) -> list[str]:
    """The threads of producers of Kafka."""
    names = (str(thread.getName()) for thread in jvm.java.lang.Thread.getAllStackTraces().keySet())
    return [name for name in names if name.startswith("kafka-producer-network-thread")]


def main(specs: str) -> None:
    plan = make(Path(specs))
    os.environ["SLUICE_SECRET_OF_A_COMMAND"] = "secret of a command"
    first_context = Context(plan)
    spark: Any = first_context.spark
    jvm = spark._jvm
    process = jvm.java.lang.ProcessHandle.current().pid()
    jvm.sluice.Keys.put("a", "secret of a command")
    jvm.sluice.SecretCatalog.put("lake", "token", "secret of a command")
    jvm.sluice.SecretCatalog.put("lake", "aws.secretAccessKey", "secret of a command")
    producers = getattr(jvm.org.apache.spark.sql.kafka010.producer, "InternalKafkaProducerPool$")
    options = {"bootstrap.servers": "127.0.0.1:1"} | {f"{part}.serializer": SERIALIZER for part in ("key", "value")}
    settings = jvm.java.util.HashMap()
    for name, value in options.items():
        settings.put(name, value)
    getattr(producers, "MODULE$").acquire(settings)
    assert sending(jvm)
    spark.conf.set("spark.sql.catalog.other", "org.apache.iceberg.spark.SparkCatalog")
    spark.conf.set("spark.sql.shuffle.partitions", "77")
    spark.range(3).createOrReplaceTempView("kept")
    spark.range(3).createOrReplaceGlobalTempView("kept_by_all")
    spark.range(1000).cache().count()
    spark.sparkContext.setLocalProperty("spark.job.description", "of a command")
    first_context.stop()

    second_context = Context(plan)
    spark = second_context.spark
    jvm = spark._jvm
    assert jvm.java.lang.ProcessHandle.current().pid() == process, "it is another JVM"
    assert not sending(jvm)
    assert jvm.System.getProperty("aws.secretAccessKey") is None
    secrets = jvm.java.lang.Class.forName("sluice.SecretCatalog").getDeclaredField("SECRETS")
    secrets.setAccessible(True)
    assert secrets.get(None).isEmpty()
    assert jvm.System.getenv("SLUICE_SECRET_OF_A_COMMAND") is None
    assert spark.conf.get("spark.sql.shuffle.partitions") != "77"
    assert spark.conf.get("spark.sql.catalog.other", None) is None
    assert spark.sql("SHOW VIEWS").collect() == []
    assert spark.sql("SHOW VIEWS IN global_temp").collect() == []
    assert spark.sparkContext.getLocalProperty("spark.job.description") is None
    assert spark.sparkContext._jsc.getPersistentRDDs().isEmpty()
    mask_call = masks.call("hmac", [MaskKey("1", SecretRef("a"))], "'x'")
    with pytest.raises(Exception, match="the secret `a` of a mask was not given to this JVM"):
        spark.sql(f"SELECT {mask_call}").collect()
    second_context.stop()
    print("nothing is left")


if __name__ == "__main__":
    main(*sys.argv[1:])
