"""The docs say that Iceberg encrypts files with Hive's catalog alone; once that is another way, Sluice can offer it."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from framework.machine.java import jars

pytestmark = pytest.mark.slow
OF_OTHERS = ("jdbc/JdbcTableOperations", "rest/RESTTableOperations", "aws/glue/GlueTableOperations")


def test_only_operations_of_hive_encrypt() -> None:
    jars.fetch("spark")
    (jar,) = (Path(path) for path in jars.class_path("spark").split(":") if "iceberg-spark-runtime" in path)
    with zipfile.ZipFile(jar) as archive:

        def encrypts(name: str) -> bool:
            return b"EncryptionManager" in archive.read(f"org/apache/iceberg/{name}.class")

        assert encrypts("hive/HiveTableOperations")
        assert not [name for name in OF_OTHERS if encrypts(name)]
