"""docs/types.md agrees with the tests of Protobuf and JSON Schema; the table of Avro has a test of its own."""

from __future__ import annotations

import json

import pytest

from tests.support import type_table
from tests.support.json_schema_types import TYPES
from tests.support.protobuf_samples import TABLE

PROTOBUF = {declared: type_ for declared, type_, _ in TABLE}
JSON = {json.dumps(schema): type_ for schema, type_ in TYPES}


@pytest.mark.parametrize(("row", "type_"), type_table.rows("Protobuf").items())
def test_the_page_has_protobufs_types(row: str, type_: str) -> None:
    assert PROTOBUF[f"{row} f = 1;"] == type_


@pytest.mark.parametrize(("row", "type_"), type_table.rows("JSON Schema").items())
def test_the_page_has_json_schemas_types(row: str, type_: str) -> None:
    assert JSON[row] == type_


def test_every_type_of_a_column_has_a_row() -> None:
    assert set(type_table.rows("Protobuf").values()) >= {
        "int",
        "bigint",
        "decimal(20,0)",
        "float",
        "double",
        "boolean",
        "binary",
        "date",
        "timestamp",
    }
    assert set(type_table.rows("JSON Schema").values()) >= set(JSON.values()) & {
        "int",
        "bigint",
        "float",
        "double",
        "boolean",
        "binary",
        "date",
        "timestamp",
    }
