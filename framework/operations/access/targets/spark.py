"""Read the table with Spark, by Iceberg's own catalog classes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from framework.machine.java import jars
from framework.operations.access.about import AccessSubject, TablePlace, name
from framework.operations.access.asked import Value
from framework.operations.access.endpoint import Endpoint, endpoint, properties, serving
from framework.operations.access.python import expression, text
from framework.operations.access.steps import PYTHON, SHELL, ScriptStep, Warned, check, create, query
from framework.sql.quote import identifier

OF = "table"


def steps(about: AccessSubject) -> Iterator[ScriptStep | Warned]:
    place = about.place("Spark", "rest", "glue", "sql")
    server = endpoint(place)
    if place.catalog.type != "glue":
        yield from serving(about, place, server)
    lake = name(place.catalog.name)
    settings: dict[str, Value] = {
        "spark.jars.packages": ",".join(_packages(place.in_bucket)),
        f"spark.sql.catalog.{lake}": "org.apache.iceberg.spark.SparkCatalog",
        **{f"spark.sql.catalog.{lake}.{key}": value for key, value in _properties(place, server).items()},
    }
    lines = "".join(f"    .config({text(key)}, {expression(value)})\n" for key, value in settings.items())
    yield create(SHELL, "The library, of the version that the jars are for.", f'pip install "pyspark=={_version()}"')
    yield create(
        PYTHON, "A session that knows the catalog.",
        f"import os\n\nfrom pyspark.sql import SparkSession\n\nspark = (\n    SparkSession.builder\n{lines}    .getOrCreate()\n)",
        "spark.stop()",
    )  # fmt: skip
    table = identifier(lake, *place.identifier.split("."))
    yield check(PYTHON, "The columns.", f"spark.table({text(table)}).printSchema()")
    yield query(PYTHON, "Rows.", f"spark.table({text(table)}).show(10)")
    yield query(PYTHON, "Its commits.", f"spark.sql({text(f'SELECT * FROM {table}.history')}).show()")


def _version() -> str:
    """The version of Spark that the jars are for, since `sluice-slim` has no Spark itself."""
    return next(jar.version for jar in jars.sets()["spark"] if jar.artifact.startswith("spark-sql-kafka"))


def _packages(bucket: bool) -> Iterator[str]:
    """Iceberg's jars, of the versions that Sluice writes with."""
    jar_sets = jars.sets(later=True)
    for jar in (*jar_sets["spark"], *(jar_sets["aws"] if bucket else ())):
        if jar.artifact.startswith(("iceberg-spark-runtime", "iceberg-aws-bundle")):
            yield f"{jar.group}:{jar.artifact}:{jar.version}"


def _properties(place: TablePlace, server: Endpoint) -> Mapping[str, Value]:
    options: Any = place.catalog.options
    settings: dict[str, Value | None]
    if place.catalog.type == "glue":
        settings = {"type": "glue", "warehouse": options.warehouse, "glue.endpoint": options.endpoint, "glue.id": options.account}
    else:
        settings = {"type": "rest", **properties(server), **({"rest.auth.type": "oauth2"} if server.client else {})}
    if server.gives_keys and place.catalog.type != "glue":
        settings["header.X-Iceberg-Access-Delegation"] = "vended-credentials"
    elif place.in_bucket:
        settings |= {
            "io-impl": "org.apache.iceberg.aws.s3.S3FileIO", "s3.endpoint": server.storage.endpoint, "client.region": server.storage.region,
            "s3.path-style-access": "true" if server.storage.path_style else None,
        }  # fmt: skip
    return {key: value for key, value in settings.items() if value is not None}
