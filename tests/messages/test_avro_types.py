"""Every row of Avro's table in docs/types.md, through a real registry and Kafka into a table and back, with extreme values."""

from __future__ import annotations

import json
from typing import Any

import pytest

from framework.messages.formats.avro import shapes
from framework.plan.schema import Schema
from tests.support import type_table
from tests.support.avro_samples import PLACES, SAMPLES, came, of_union, placed, placed_value
from tests.support.registry_project import Registered, record

TYPES = type_table.rows("Avro")


LEFT_OUT = {"null": "null", "record without fields": record(name="Nothing")}


def test_the_page_has_these_rows() -> None:
    assert set(TYPES) == set(SAMPLES) | set(LEFT_OUT)


@pytest.mark.parametrize("row", SAMPLES)
def test_the_type_is_what_the_page_says(row: str) -> None:
    (shape,) = shapes(Schema("AVRO", json.dumps(record(("c", SAMPLES[row][0])))))
    assert str(shape.type) == TYPES[row].replace(" ", "")


@pytest.mark.parametrize("row", LEFT_OUT)
def test_what_holds_nothing_is_no_column(row: str) -> None:
    columns = shapes(Schema("AVRO", json.dumps(record(("c", LEFT_OUT[row]), ("d", "int")))))
    assert [shape.name for shape in columns] == ["d"]
    assert TYPES[row] == "no column"


@pytest.mark.spark
@pytest.mark.kafka
def test_values_come_back(trades: Registered) -> None:
    """Values of all types come back at once: alone, inside of arrays, maps and records, beside fields that are no columns."""
    fields: list[tuple[Any, ...]] = [("number", "long")]
    for index, (type_, _) in enumerate(SAMPLES.values()):
        fields += [(f"c{index}_{place}", placed(type_, place, f"c{index}")) for place in PLACES]
        fields.append((f"c{index}_nothing", "null"))
    id_ = trades.register(record(*fields))
    messages, expected_rows = [], []
    for number in range(max(len(values) for _, values in SAMPLES.values())):
        message: dict[str, Any] = {"number": number}
        row: dict[str, Any] = {"number": number}
        for index, (kind, (_, values)) in enumerate(SAMPLES.items()):
            value, expected_value = values[number % len(values)]
            message[f"c{index}_nothing"] = None
            for place in PLACES:
                name = f"c{index}_{place}"
                message[name] = placed_value(
                    (f"Rec_{name}", value) if kind == "union of other types" and isinstance(value, dict) else value, place
                )
                row[name] = came(of_union(expected_value, name) if kind == "union of other types" else expected_value, place)
        messages.append(message)
        expected_rows.append(row)
    trades.send(trades.avro(id_, *messages))
    trades.run()
    assert trades.rows(bad=True) == []
    rows = sorted(trades.rows(), key=lambda row: int(row["number"]))
    for row, expected_row in zip(rows, expected_rows, strict=True):
        for name, value in expected_row.items():
            assert row[name] == value, (name, row[name], value)
